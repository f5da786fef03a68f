// Self-attention with relative keys and values (Shaw, Uszkoreit, Vaswani 2018, arXiv 1803.02155): a query is compared
// with the sum of a key and a vector for the distance between both, and a vector for the distance is added to each
// value. For token i of a sentence and the tokens j that it sees, w = d / heads, and r(n) = clip(n, -k, k):
//   e[i, j] = q[i] . (k[j] + K[k + r(j - i)]) / sqrt(w)
//   y[i]    = sum over j of softmax(e[i])[j] (v[j] + V[k + r(j - i)])
// with tables K and V [2 k + 1, w] shared by all heads. Dropout of the weights acts on both sums.
//
// Callers pass the tables to tarn__attention_with() or tarn__attention_rows_with(). Kernels prepend the rows of the
// tables for distances that occur in a sentence to its keys and values: the rest is attention to a longer list, whose
// first scores are distributed to the others by distance, and whose first weights are sums of the others by distance.
#ifndef TARN_OPS_RELATIVE_ATTENTION_H
#define TARN_OPS_RELATIVE_ATTENTION_H

#include "ops/attention.h"

// queries, keys_values, offsets and spec as for tarn__attention() in self-attention; kv_heads as in
// tarn__attention_extras, 0: as many as heads. spec.alibi is 0. Gradient: to queries, keys_values and both tables.
tarn__tensor *tarn__relative_attention(tarn__graph *graph, tarn__tensor *queries, tarn__tensor *keys_values,
                                       tarn__tensor *offsets, tarn__attention_spec spec, int kv_heads,
                                       tarn__relative relative);

// Whether tables fit heads of that width.
bool tarn__relative_fits(const tarn__relative *relative, int64_t width);

// The attribute is a tarn__attention_attr, whose reach is that of the tables, k. Inputs have the indices of the op
// attention (QUERIES, KEYS_VALUES and QUERY_OFFSETS, and in the backward pass DO and the gradients so far), and the
// tables indices that it does not use here; VALUES may be NULL. So do outputs. The node's dparam are the tables.
enum { TARN__RELATIVE_KEYS = TARN__ATTENTION_KEY_OFFSETS, TARN__RELATIVE_VALUES = TARN__ATTENTION_FORWARD_RESULT };
enum { TARN__RELATIVE_DKEYS, TARN__RELATIVE_DVALUES };

// Tangents: the inputs of the forward pass, and the tangents of QUERIES and KEYS_VALUES, either of which may be NULL;
// the output is the result's tangent. Only the reference computes them.
enum { TARN__RELATIVE_MOVED_QUERIES = TARN__ATTENTION_DO, TARN__RELATIVE_MOVED_KEYS_VALUES };

// Distances in a sentence of n tokens: from -reach to reach, or to 0 if causal.
typedef struct tarn__distances {
  int64_t reach;
  int64_t count;
} tarn__distances;

static inline tarn__distances tarn__distances_of(const tarn__attention_attr *attr, int64_t n) {
  const int64_t reach = n < 1 ? 0 : n - 1 < attr->reach ? n - 1 : attr->reach;
  return (tarn__distances){reach, attr->spec.causal ? reach + 1 : 2 * reach + 1};
}

#endif
