// What the files of the op attention share: attributes, places of inputs and outputs.
#ifndef TARN_OPS_ATTENTION_H
#define TARN_OPS_ATTENTION_H

#include "ops/dropout.h"
#include "ops/ops.h"

// Dropout of the weights: that of query row r (of all sequences), head h and key j of its sequence, counted from 0, is
// that of row r and column h * KEYS + j.
enum { TARN__ATTENTION_HEADS = 1024, TARN__ATTENTION_KEYS = 1 << 25 };  // the most heads, and keys of a sequence

typedef struct tarn__attention_attr {
  tarn__attention_spec spec;  // the first member: kernels without dropout look at it alone
  tarn__dropout dropout;
} tarn__attention_attr;

static inline int64_t tarn__attention_column(int64_t head, int64_t key) {
  return head * (int64_t)TARN__ATTENTION_KEYS + key;
}

// Forward: in QUERIES, KEYS_VALUES, the offsets of both; out [R, d].
enum {
  TARN__ATTENTION_QUERIES,
  TARN__ATTENTION_KEYS_VALUES,
  TARN__ATTENTION_QUERY_OFFSETS,
  TARN__ATTENTION_KEY_OFFSETS
};

// Backward: the same inputs (KEYS_VALUES is NULL if it is QUERIES), the gradient DO of the result, and the gradients
// so far of queries and keys_values (NULL: none). Out DQUERIES and DKEYS_VALUES, each NULL if not wanted; both are one
// tensor, DQUERIES, if the inputs are one.
enum { TARN__ATTENTION_DO = 4, TARN__ATTENTION_PREVIOUS_QUERIES, TARN__ATTENTION_PREVIOUS_KEYS_VALUES };
enum { TARN__ATTENTION_DQUERIES, TARN__ATTENTION_DKEYS_VALUES };

// The tensors of a backward node, with the sharing of self-attention resolved.
typedef struct tarn__attention_backward {
  const tarn__tensor *queries, *keys_values, *dout;
  const tarn__tensor *dqueries, *dkeys_values;  // NULL: not wanted
  bool add_queries, add_keys_values;            // add to what is there
  const int32_t *query_offsets, *key_offsets;
  int64_t sequences;
} tarn__attention_backward;
tarn__attention_backward tarn__attention_backward_of(const tarn__node *node);

#endif
