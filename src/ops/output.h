// Internals of the output layer: its nodes.
//   output_loss               in: x, table, bias or NULL, targets
//                             out: loss [1, 2], dx or NULL, losses of the rows [R, 2] or NULL
//                             dparam: table or NULL, bias or NULL
//   output_log_probabilities  in: x, table, bias or NULL               out: log-probabilities, or logits, [R, V]
#ifndef TARN_OPS_OUTPUT_H
#define TARN_OPS_OUTPUT_H

#include "graph/graph.h"

typedef struct tarn__output_attr {
  double smoothing;
  double grad_scale;
} tarn__output_attr;

typedef struct tarn__output_log_attr {
  bool raw;  // logits
} tarn__output_log_attr;

#endif
