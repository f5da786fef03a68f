// Instruction sets of the fast kernels, chosen at run time. The environment variable TARN_ISA (portable, avx2, avx512,
// avx512_bf16, amx) lowers the choice, for tests.
#ifndef TARN_DEVICE_CPU_ISA_ISA_H
#define TARN_DEVICE_CPU_ISA_ISA_H

#include <stdbool.h>

typedef enum tarn__isa {
  TARN__ISA_PORTABLE,
  TARN__ISA_AVX2,         // AVX2, FMA
  TARN__ISA_AVX512,       // F, BW, DQ, VL
  TARN__ISA_AVX512_BF16,  // and dot products of bf16 pairs and of int8 (BF16, VNNI)
  TARN__ISA_AMX           // and products of tiles of bf16 (AMX-TILE, AMX-BF16): *_amx.c; other kernels are those of the
                          // previous set
} tarn__isa;

// The best set supported by the processor and the operating system, or a lower one requested by TARN_ISA. Constant
// during a run.
tarn__isa tarn__isa_now(void);
// Whether that is TARN__ISA_AMX with products of tiles of INT8 (AMX-INT8).
bool tarn__isa_int8_tiles(void);
// "avx512_bf16" and so on.
const char *tarn__isa_name(void);

#endif
