// Ridge regression on the processor (specified in device/device.h), and its kernel: sums of products in double.
#ifndef TARN_DEVICE_CPU_OPTIM_RIDGE_KERNELS_H
#define TARN_DEVICE_CPU_OPTIM_RIDGE_KERNELS_H

#include <stdint.h>

#include "device/variant.h"
#include "optim/ridge.h"

tarn_status tarn__cpu_ridge_add(const tarn__device *device, const tarn__ridge *ridge) TARN_CHECKED;
tarn_status tarn__cpu_ridge_take(const tarn__device *device, const tarn__ridge *ridge, const void *rows,
                                 tarn__dtype dtype, int64_t first, int64_t count) TARN_CHECKED;
tarn_status tarn__cpu_cholesky(const tarn__device *device, bool *done, double *a, int64_t n, double least) TARN_CHECKED;

enum { TARN__RIDGE_ROWS = 8 };  // rows that are summed together

typedef struct tarn__ridge_kernels {
  // sums[r * width + j] += sign * (sum over t < samples of z[t * stride + first + r] * z[t * stride + j]) for rows
  // r < rows, at most TARN__RIDGE_ROWS, and j from first + r to end. Some of a row's columns from `first` up to first +
  // r may be changed too.
  void (*add_products)(double *sums, int64_t width, const double *z, int64_t stride, int64_t samples, int64_t first,
                       int64_t rows, int64_t end, double sign);
} tarn__ridge_kernels;

TARN__TABLES(tarn__ridge_kernels);

#endif
