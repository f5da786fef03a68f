// Products of tensor cores: one warp multiplies [16, 16] by [16, 8] in bf16 and adds to [16, 8] in fp32.
//
// With g = lane / 4 and t = lane % 4, a register of two bf16 numbers, the lower half first, holds
//   a[0], a[1]   rows g and g + 8 of A, columns 2 t and 2 t + 1;   a[2], a[3]   the same rows, columns 8 on
//   b[0], b[1]   column g of B, rows 2 t and 2 t + 1, and the same from row 8 on
//   d[0..1], d[2..3]   rows g and g + 8 of the sums, columns 2 t and 2 t + 1
// (PTX ISA, "Matrix fragments for mma.m16n8k16 with floating point type").
#ifndef TARN_DEVICE_CUDA_MMA_CUDA_H
#define TARN_DEVICE_CUDA_MMA_CUDA_H

#include "device/cuda/cuda.h"

static __device__ __forceinline__ void tarn__mma(float d[4], const unsigned a[4], const unsigned b[2]) {
#if defined(TARN_CUDA_HOST)
  tarn__host_mma(d, a, b);
#else
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

#endif
