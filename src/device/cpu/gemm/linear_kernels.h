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

// Multiplies a block of the gradient that a product computes by the slope of the activation before it, while the block
// is in the cache; `saved` belongs to the first row of the product.
struct tarn__gemm;
void tarn__linear_slope(const struct tarn__gemm *gemm, const void *saved, tarn__activation activation, int64_t row,
                        int64_t rows, int64_t column, int64_t columns);

#endif
