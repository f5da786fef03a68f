// Peak rates of the processor: loops of multiply-adds in registers.
#ifndef TARN_DEVICE_CPU_ISA_PEAK_KERNELS_H
#define TARN_DEVICE_CPU_ISA_PEAK_KERNELS_H

#include <stdint.h>

#include "device/device.h"
#include "device/variant.h"

// Returns a number that depends on all computed values.
typedef float (*tarn__peak_loop)(int64_t rounds);

typedef struct tarn__peak_kernels {
  tarn__peak_loop f32, bf16;
  double f32_flops, bf16_flops;  // per round; a multiply-add counts as two
} tarn__peak_kernels;
TARN__TABLES(tarn__peak_kernels);

// In peak_amx.c, replacing `bf16`; has this many operations per round.
enum { TARN__PEAK_AMX_FLOPS = 4 * 2 * 16 * 16 * 32 };
float tarn__peak_amx(int64_t rounds);

// As specified in device/device.h.
tarn_status tarn__cpu_peaks(tarn__device_peaks *peaks, int threads) TARN_CHECKED;
double tarn__cpu_flops_now(int threads);

#endif
