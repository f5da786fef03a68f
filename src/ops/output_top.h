// Internals of the output layer of decoding.
//   output_top   in: x, table, bias or NULL   out: log-probabilities [R, best + 1], ids [R, best]
#ifndef TARN_OPS_OUTPUT_TOP_H
#define TARN_OPS_OUTPUT_TOP_H

#include "graph/graph.h"

typedef struct tarn__output_top_attr {
  int64_t best;
  int32_t always;
} tarn__output_top_attr;

#endif
