// Kernels of the op scale.
#ifndef TARN_DEVICE_CPU_ROWS_SCALE_KERNELS_H
#define TARN_DEVICE_CPU_ROWS_SCALE_KERNELS_H

#include "device/variant.h"
#include "graph/graph.h"

typedef struct tarn__scale_kernels {
  tarn__kernel forward, backward;
  size_t (*scratch)(int threads);  // bytes, of the backward kernel
} tarn__scale_kernels;
TARN__TABLES(tarn__scale_kernels);

#endif
