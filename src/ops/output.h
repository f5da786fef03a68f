// Inside of the output layer: its nodes and kernels.
//   output_loss               in: x, table, bias or NULL, targets
//                             out: loss [1, 2], dx or NULL, losses of the rows [R, 2] or NULL
//                             dparam: table or NULL, bias or NULL
//   output_log_probabilities  in: x, table, bias or NULL               out: log-probabilities [R, V]
#ifndef TARN_OPS_OUTPUT_H
#define TARN_OPS_OUTPUT_H

#include "device/variant.h"
#include "graph/graph.h"

typedef struct tarn__output_attr {
  double smoothing;
  const double *grad_scale;
} tarn__output_attr;

tarn_status tarn__output_loss_ref_f32(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__output_loss_ref_f64(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__output_log_ref_f32(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__output_log_ref_f64(const tarn__exec *exec, const tarn__node *node);

// What one row of logits is turned into.
typedef struct tarn__output_row {
  int64_t words;
  int32_t target;
  double smoothing;
  float scale;        // of the gradient
  tarn__dtype dtype;  // of the gradient
  bool wants_grad;    // false: only the loss
  float *sums;        // [words] += gradient; NULL: not wanted
} tarn__output_row;

typedef struct tarn__output_kernels {
  // loss = {smoothed loss, nll}. dlogits: F32, and then it may be the logits, or BF16. The logits are lost.
  void (*loss)(float *logits, void *dlogits, double loss[2], const tarn__output_row *row);
  // logits become log-probabilities.
  void (*log_softmax)(float *logits, int64_t words);
} tarn__output_kernels;

TARN__TABLES(tarn__output_kernels);

#endif
