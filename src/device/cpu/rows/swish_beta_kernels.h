// Kernels of the op swish_beta.
#ifndef TARN_DEVICE_CPU_ROWS_SWISH_BETA_KERNELS_H
#define TARN_DEVICE_CPU_ROWS_SWISH_BETA_KERNELS_H

#include "device/variant.h"
#include "graph/graph.h"

typedef struct tarn__swish_kernels {
  tarn__kernel forward, backward;
  size_t (*scratch)(int threads);  // bytes, of the backward kernel
} tarn__swish_kernels;
TARN__TABLES(tarn__swish_kernels);

#endif
