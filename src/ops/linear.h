// Inside of the op linear: its nodes and kernels.
//   linear          in: x, weight, bias or NULL         out: y, z (GELU, with gradients: y = GELU(z)) or NULL
//   linear_dz       in: dy, y (relu), z (GELU) or NULL  out: dz, in the memory of dy, or NULL  dparam: bias or NULL
//   linear_dweight  in: dz, x                                                                  dparam: weight
//   linear_dx       in: dz, weight, gradient so far     out: dx
#ifndef TARN_OPS_LINEAR_H
#define TARN_OPS_LINEAR_H

#include "device/variant.h"
#include "graph/graph.h"
#include "ops/ops.h"

// Of linear and linear_dz.
typedef struct tarn__linear_attr {
  tarn__activation activation;
} tarn__linear_attr;

// The gradient before an activation from that behind it, dy: in the memory of dy, or dy itself without an activation.
// saved: what the activation's gradient is computed from, as above. The gradient of `bias` (NULL: none) comes with it.
tarn__tensor *tarn__linear_dz(tarn__graph *graph, tarn__tensor *dy, tarn__tensor *saved, tarn__param *bias,
                              tarn__activation activation);

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
  // Rows [first, last): dz = dy times the activation's derivative, from `saved`, and sums [cols] += dz (sums NULL: not
  // wanted; else with room for cols rounded up to 16).
  void (*dz)(void *dy, const void *saved, float *sums, tarn__dtype dtype, tarn__activation activation, int64_t cols,
             int64_t first, int64_t last);
} tarn__linear_kernels;

TARN__TABLES(tarn__linear_kernels);

#endif
