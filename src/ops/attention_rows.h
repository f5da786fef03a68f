// Shared by the files of the op attention_rows.
#ifndef TARN_OPS_ATTENTION_ROWS_H
#define TARN_OPS_ATTENTION_ROWS_H

#include "graph/graph.h"
#include "ops/ops.h"

typedef struct tarn__attention_rows_attr {
  tarn__attention_spec spec;  // the first member
  int64_t kv_heads;
  int64_t reach;  // of the biases; -1: none
} tarn__attention_rows_attr;

// ROWS may be NULL: the range itself names rows. BIASES may be NULL: none. RELATIVE_KEYS, which makes the node one of
// the op relative_attention_rows, and RELATIVE_VALUES may be NULL too.
enum {
  TARN__ATTENTION_ROWS_QUERIES,
  TARN__ATTENTION_ROWS_KEYS_VALUES,
  TARN__ATTENTION_ROWS_ROWS,
  TARN__ATTENTION_ROWS_RANGES,
  TARN__ATTENTION_ROWS_BIASES,
  TARN__ATTENTION_ROWS_RELATIVE_KEYS,
  TARN__ATTENTION_ROWS_RELATIVE_VALUES
};

#endif
