// Instruction sets of the fast kernels, chosen at run time. The environment variable TARN_ISA (on x86-64 portable,
// avx2, avx512, avx512_bf16, amx; on 64-bit ARM portable, neon, neon_dot, neon_bf16, sve_256, sve_512) lowers the
// choice, for tests; those of SVE are used only where it names them.
#ifndef TARN_DEVICE_CPU_ISA_ISA_H
#define TARN_DEVICE_CPU_ISA_ISA_H

#include <stdbool.h>

// Those of one kind of processor follow one another, from the least to the greatest. Kernels of SVE are compiled for
// one length of its registers, and no processor runs both sets.
typedef enum tarn__isa {
  TARN__ISA_PORTABLE,     // plain C, for every processor
  TARN__ISA_AVX2,         // AVX2, FMA
  TARN__ISA_AVX512,       // F, BW, DQ, VL
  TARN__ISA_AVX512_BF16,  // and dot products of bf16 pairs and of int8 (BF16, VNNI)
  TARN__ISA_AMX,          // and products of tiles of bf16 (AMX-TILE, AMX-BF16): *_amx.c; other kernels are those of the
                          // previous set
  TARN__ISA_NEON,         // 64-bit ARM: every processor
  TARN__ISA_NEON_DOT,     // and dot products of int8 (FEAT_DotProd)
  TARN__ISA_NEON_BF16,    // and products of 2 x 2 blocks of bf16 and of int8 (FEAT_BF16, FEAT_I8MM)
  TARN__ISA_SVE_256,      // the same with registers of SVE, if these have 256 bits
  TARN__ISA_SVE_512       // SVE and nothing else, with registers of 512 bits
} tarn__isa;

// The best set supported by the processor and the operating system, or the one requested by TARN_ISA. Constant
// during a run.
tarn__isa tarn__isa_now(void);
// Whether that is TARN__ISA_AMX with products of tiles of INT8 (AMX-INT8).
bool tarn__isa_int8_tiles(void);
// "avx512_bf16" and so on.
const char *tarn__isa_name(void);

#endif
