// What the files of the op attention_rows share.
#ifndef TARN_OPS_ATTENTION_ROWS_H
#define TARN_OPS_ATTENTION_ROWS_H

#include "graph/graph.h"
#include "ops/ops.h"

// ROWS may be NULL: the range itself names rows.
enum {
  TARN__ATTENTION_ROWS_QUERIES,
  TARN__ATTENTION_ROWS_KEYS_VALUES,
  TARN__ATTENTION_ROWS_ROWS,
  TARN__ATTENTION_ROWS_RANGES
};

#endif
