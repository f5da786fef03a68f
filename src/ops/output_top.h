// Inside of the output layer of decoding.
//   output_top   in: x, table, bias or NULL   out: log-probabilities [R, best + 1], ids [R, best]
#ifndef TARN_OPS_OUTPUT_TOP_H
#define TARN_OPS_OUTPUT_TOP_H

#include "device/variant.h"
#include "graph/graph.h"

typedef struct tarn__output_top_attr {
  int64_t best;
  int32_t always;
} tarn__output_top_attr;

tarn_status tarn__output_top_ref_f32(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__output_top_ref_f64(const tarn__exec *exec, const tarn__node *node);

typedef struct tarn__output_top_kernels {
  // One row: values [best + 1] and ids [best] from logits [words]. `maxima` is scratch of scratch_floats(words).
  void (*row)(float *values, int32_t *ids, const float *logits, int64_t words, const tarn__output_top_attr *attr,
              float *maxima);
  size_t (*scratch_floats)(int64_t words);
} tarn__output_top_kernels;

TARN__TABLES(tarn__output_top_kernels);

#endif
