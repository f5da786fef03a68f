// Kernels of the ops token_linear other than products, for each instruction set.
#ifndef TARN_DEVICE_CPU_MIXING_TOKEN_LINEAR_KERNELS_H
#define TARN_DEVICE_CPU_MIXING_TOKEN_LINEAR_KERNELS_H

#include "device/variant.h"
#include "graph/graph.h"

typedef struct tarn__token_linear_kernels {
  // Rows [first, last) of a sentence whose result begins at row `row`: y, and the gate's saved values, from the
  // products z.
  void (*finish)(const tarn__node *node, const float *z, int64_t row, int64_t first, int64_t last);
  // Rows [first, last) of the lower triangle [n, n] of a weight, with zeros above it.
  void (*lower)(void *out, const tarn__tensor *weight, int64_t n, int64_t first, int64_t last);
  // dz and dgate of rows [first, last) of token_linear_dx.
  void (*through_gate)(const tarn__node *node, int64_t first, int64_t last);
  // sums[i - first] += the sum of row i of x, for rows [first, last).
  void (*sum_rows)(float *sums, const tarn__tensor *x, int64_t first, int64_t last);
  // Rows [first, last) of token_linear_rows; `weights`: as many floats as the longest of them sees.
  void (*step)(const tarn__node *node, int64_t first, int64_t last, float *weights);
} tarn__token_linear_kernels;
TARN__TABLES(tarn__token_linear_kernels);

tarn_status tarn__cpu_token_linear(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_token_linear_dx(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_token_linear_dweight(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_token_linear_rows(const tarn__exec *exec, const tarn__node *node);
size_t tarn__cpu_token_linear_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_token_linear_dx_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_token_linear_dweight_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_token_linear_rows_scratch(const tarn__node *node, int threads);

#endif
