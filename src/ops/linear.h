// Inside of the op linear: its nodes and kernels.
//   linear          in: x, weight, bias or NULL         out: y
//   linear_dz       in: dy, y (relu) or NULL            out: dz, in the memory of dy (relu)    dparam: bias or NULL
//   linear_dweight  in: dz, x                                                                  dparam: weight
//   linear_dx       in: dz, weight, gradient so far     out: dx
#ifndef TARN_OPS_LINEAR_H
#define TARN_OPS_LINEAR_H

#include "graph/graph.h"
#include "ops/variant.h"

typedef struct tarn__linear_attr {
  bool relu;
} tarn__linear_attr;

tarn_status tarn__linear_ref_f32(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__linear_ref_f64(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__linear_dz_ref_f32(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__linear_dz_ref_f64(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__linear_dweight_ref_f32(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__linear_dweight_ref_f64(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__linear_dx_ref_f32(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__linear_dx_ref_f64(const tarn__exec *exec, const tarn__node *node);

// The fast kernel of linear_dz; the products of the other nodes are tarn__gemm_run().
typedef struct tarn__linear_kernels {
  // Rows [first, last): dz = dy where y > 0, else 0 (y NULL: dy), and sums [cols] += dz (sums NULL: not wanted; else
  // with room for cols rounded up to 16).
  void (*dz)(void *dy, const void *y, float *sums, tarn__dtype dtype, int64_t cols, int64_t first, int64_t last);
} tarn__linear_kernels;

TARN__TABLES(tarn__linear_kernels);

#endif
