// Kernels of tangents (graph/tangents.h), in F32: each reads a row of the forward pass once for all directions.
#ifndef TARN_DEVICE_CPU_ROWS_TANGENT_KERNELS_H
#define TARN_DEVICE_CPU_ROWS_TANGENT_KERNELS_H

#include "device/variant.h"
#include "graph/graph.h"
#include "ops/attention.h"

typedef struct tarn__activation_tangent_kernels {
  tarn__kernel activation, glu;
} tarn__activation_tangent_kernels;
TARN__TABLES(tarn__activation_tangent_kernels);

typedef struct tarn__gate_tangent_kernels {
  tarn__kernel tanh, token_gate;
} tarn__gate_tangent_kernels;
TARN__TABLES(tarn__gate_tangent_kernels);

typedef struct tarn__conv_tangent_kernels {
  tarn__kernel run;
} tarn__conv_tangent_kernels;
TARN__TABLES(tarn__conv_tangent_kernels);

typedef struct tarn__norm_tangent_kernels {
  tarn__kernel run;
  size_t (*scratch)(int64_t cols, int threads);  // bytes
} tarn__norm_tangent_kernels;
TARN__TABLES(tarn__norm_tangent_kernels);

typedef struct tarn__attention_tangent_kernels {
  tarn__kernel run;
  size_t (*scratch)(const tarn__attention_attr *attr, int threads);  // bytes
} tarn__attention_tangent_kernels;
TARN__TABLES(tarn__attention_tangent_kernels);

typedef struct tarn__output_tangent_kernels {
  tarn__kernel run;
  size_t (*scratch)(const tarn__node *node, int threads);  // bytes
} tarn__output_tangent_kernels;
TARN__TABLES(tarn__output_tangent_kernels);

#endif
