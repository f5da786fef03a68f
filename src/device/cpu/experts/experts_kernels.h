// Fast kernels of experts and of product-key memories, whole nodes each: one table per file (NAME_cpu.c). Grouped
// products use the products of gemm.h (grouped_node.c).
#ifndef TARN_DEVICE_CPU_EXPERTS_EXPERTS_KERNELS_H
#define TARN_DEVICE_CPU_EXPERTS_EXPERTS_KERNELS_H

#include "device/variant.h"
#include "graph/graph.h"

typedef struct tarn__route_kernels {
  tarn__kernel forward, backward, tangent;
  size_t (*scratch)(const tarn__node *node, int threads);  // bytes, for all
} tarn__route_kernels;
TARN__TABLES(tarn__route_kernels);

typedef struct tarn__weighted_rows_kernels {
  tarn__kernel forward, backward;
  tarn__kernel gather, gather_backward;
  tarn__kernel tangent;  // of the sums
} tarn__weighted_rows_kernels;
TARN__TABLES(tarn__weighted_rows_kernels);

// For a product-key memory: the steps after the scores of keys, which are products (product_keys_node.c).
typedef struct tarn__product_keys_kernels {
  // The nearest pairs of row r of the node, whose scores of each group of keys (head and half) are `stride` apart.
  // `room`: four times TARN__PRODUCT_KEYS_MOST numbers.
  void (*choose)(const tarn__node *node, const float *scores, int64_t stride, int64_t r, float *room);
  tarn__kernel backward;
  size_t (*backward_scratch)(const tarn__node *node, int threads);  // bytes
  tarn__kernel tangent;
} tarn__product_keys_kernels;
TARN__TABLES(tarn__product_keys_kernels);

tarn_status tarn__cpu_product_keys(const tarn__exec *exec, const tarn__node *node);
size_t tarn__cpu_product_keys_scratch(const tarn__node *node, int threads);

tarn_status tarn__cpu_grouped_linear(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_grouped_dweight(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_grouped_dx(const tarn__exec *exec, const tarn__node *node);
size_t tarn__cpu_grouped_linear_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_grouped_dweight_scratch(const tarn__node *node, int threads);
size_t tarn__cpu_grouped_dx_scratch(const tarn__node *node, int threads);

#endif
