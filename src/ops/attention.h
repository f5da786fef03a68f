// What the files of the op attention share: attributes, places of inputs and outputs.
#ifndef TARN_OPS_ATTENTION_H
#define TARN_OPS_ATTENTION_H

#include "graph/graph.h"
#include "ops/ops.h"

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
