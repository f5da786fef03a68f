// What the files of the op attention_rows share.
#ifndef TARN_OPS_ATTENTION_ROWS_H
#define TARN_OPS_ATTENTION_ROWS_H

#include "device/variant.h"
#include "graph/graph.h"
#include "ops/ops.h"

// ROWS may be NULL: the range itself names rows.
enum {
  TARN__ATTENTION_ROWS_QUERIES,
  TARN__ATTENTION_ROWS_KEYS_VALUES,
  TARN__ATTENTION_ROWS_ROWS,
  TARN__ATTENTION_ROWS_RANGES
};

tarn_status tarn__attention_rows_f32(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__attention_rows_f64(const tarn__exec *exec, const tarn__node *node);

typedef struct tarn__attention_rows_kernels {
  tarn__kernel forward;
  size_t (*scratch)(const tarn__attention_spec *spec, int threads);  // bytes
} tarn__attention_rows_kernels;
TARN__TABLES(tarn__attention_rows_kernels);

#endif
