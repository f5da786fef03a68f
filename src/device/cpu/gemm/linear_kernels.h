// The fast kernel of linear_dz; the products of the other nodes of linear use tarn__gemm_run().
#ifndef TARN_DEVICE_CPU_GEMM_LINEAR_KERNELS_H
#define TARN_DEVICE_CPU_GEMM_LINEAR_KERNELS_H

#include "device/variant.h"
#include "ops/linear.h"

typedef struct tarn__linear_kernels {
  // Rows [first, last): dz = dy times the activation's derivative, from `saved`, and sums [cols] += dz (sums NULL: not
  // wanted; else with room for cols rounded up to 16).
  void (*dz)(void *dy, const void *saved, float *sums, tarn__dtype dtype, tarn__activation activation, int64_t cols,
             int64_t first, int64_t last);
} tarn__linear_kernels;
TARN__TABLES(tarn__linear_kernels);

#endif
