// Shared by the files of the op attention: attributes, indices of inputs and outputs.
#ifndef TARN_OPS_ATTENTION_H
#define TARN_OPS_ATTENTION_H

#include "ops/dropout.h"
#include "ops/ops.h"

// Dropout of the weights: query row r (of all sequences), head h and key j of its sequence, from 0, use the number of
// row r and column h * KEYS + j.
enum { TARN__ATTENTION_HEADS = 1024, TARN__ATTENTION_KEYS = 1 << 25 };  // limits on heads, and keys of a sequence

typedef struct tarn__attention_attr {
  tarn__attention_spec spec;  // the first member: kernels without dropout read only this
  tarn__dropout dropout;
  int64_t kv_heads;  // a divisor of spec.heads
  int64_t reach;     // of the biases; -1: none
} tarn__attention_attr;

// Relative keys and values (Shaw et al. 2018; ops/relative_attention.h): tables [2 k + 1, d / heads], row k + n for the
// distance n from query to key. keys NULL: none; values NULL: only relative keys.
typedef struct tarn__relative {
  tarn__param *keys, *values;
} tarn__relative;

// Optional arguments of attention in addition to its spec.
typedef struct tarn__attention_extras {
  // Heads of keys and values, a divisor of spec.heads: head h has the keys and values of head h / (heads / kv_heads),
  // so that both are kv_heads * d / heads columns (1: multi-query attention, Shazeer 2019; else grouped-query
  // attention, Ainslie et al. 2023). 0: as many as heads.
  int kv_heads;
  // Biases by head and distance (T5: Raffel et al. 2020): [spec.heads, 2 reach + 1], F32, F64 in double. Column reach +
  // clip(j - i, -reach, reach) of row h is added to the scaled score of query i and key j of head h. The attention is
  // then self-attention: query_offsets and key_offsets are one tensor. Gradient: to biases, if needed, the sums by
  // distance of each sequence, added in the order of sequences. NULL: none.
  tarn__tensor *biases;
  // The attention is then self-attention without biases.
  tarn__relative relative;
} tarn__attention_extras;

// tarn__attention() and tarn__attention_rows() with extras. In the latter, the query is at the place of the last row of
// its range.
tarn__tensor *tarn__attention_with(tarn__graph *graph, tarn__tensor *queries, tarn__tensor *keys_values,
                                   tarn__tensor *query_offsets, tarn__tensor *key_offsets, tarn__attention_spec spec,
                                   tarn__attention_extras extras);
tarn__tensor *tarn__attention_rows_with(tarn__graph *graph, tarn__tensor *queries, tarn__tensor *keys_values,
                                        tarn__tensor *rows, tarn__tensor *ranges, tarn__attention_spec spec,
                                        tarn__attention_extras extras);

// Columns of keys, or of values.
static inline int64_t tarn__attention_kv_width(const tarn__attention_attr *attr) {
  return attr->spec.d / attr->spec.heads * attr->kv_heads;
}

// Whether extras fit a spec.
bool tarn__attention_extras_fit(const tarn__graph *graph, const tarn__attention_spec *spec,
                                const tarn__attention_extras *extras);

// slopes [spec.heads], at most TARN__ATTENTION_HEADS: the amount per unit of distance subtracted from the scaled scores
// of a head; all 0 if spec.alibi is 0. If heads is a power of two, head i = 1 .. heads has 2^(-alibi i / heads). Else
// the slopes of the next lower power of two come first, and then every second one of twice that many heads (Press et
// al.'s code, with alibi 8).
void tarn__attention_slopes(const tarn__attention_spec *spec, double *slopes);

static inline int64_t tarn__attention_column(int64_t head, int64_t key) {
  return head * (int64_t)TARN__ATTENTION_KEYS + key;
}

// Sequences of more keys than this are long: for those in BF16 the backward pass reads the result and statistics of the
// forward pass, so it can process the keys in pieces that stay in a cache (Dao 2023: FlashAttention-2). For shorter
// ones it needs only its inputs, and nothing else is kept.
enum { TARN__ATTENTION_LONG = 384 };

// Forward: in QUERIES, KEYS_VALUES, the offsets of both, BIASES or NULL; out RESULT [R, d] and STATISTICS F32 [2 H, R]
// or NULL, written for long sequences if the kernels use them: the largest score of query row r and head h, scaled for
// powers of two, and 1 / the sum of the powers, are in column r of rows 2 h and 2 h + 1.
enum {
  TARN__ATTENTION_QUERIES,
  TARN__ATTENTION_KEYS_VALUES,
  TARN__ATTENTION_QUERY_OFFSETS,
  TARN__ATTENTION_KEY_OFFSETS,
  TARN__ATTENTION_BIASES
};
enum { TARN__ATTENTION_RESULT, TARN__ATTENTION_STATISTICS };

// Backward: the same inputs (KEYS_VALUES is NULL if it is QUERIES), the gradient DO of the result, and the gradients so
// far of queries and keys_values (NULL: none); then both outputs of the forward pass, if there are STATISTICS. With
// biases, whose offsets are one tensor, BIASES replace the keys' offsets.
// Out DQUERIES and DKEYS_VALUES, each NULL if not wanted; both are one tensor, DQUERIES, if the inputs are one. If
// biases need a gradient, DBIASES of their shape, and BIAS_SUMS F32 (F64 in double) [2 H, R], scratch memory: the sums
// of sequence s and head h by distance, from -m to m, m the largest distance in it or reach if that is less, are the 2
// m + 1 numbers from 2 (H first + h length) on, of a sequence of `length` rows from row `first` on.
enum {
  TARN__ATTENTION_DO = 4,
  TARN__ATTENTION_PREVIOUS_QUERIES,
  TARN__ATTENTION_PREVIOUS_KEYS_VALUES,
  TARN__ATTENTION_FORWARD_RESULT,
  TARN__ATTENTION_FORWARD_STATISTICS
};
enum { TARN__ATTENTION_DQUERIES, TARN__ATTENTION_DKEYS_VALUES, TARN__ATTENTION_DBIASES, TARN__ATTENTION_BIAS_SUMS };
enum { TARN__ATTENTION_BACKWARD_BIASES = TARN__ATTENTION_KEY_OFFSETS };

// Tangent: the forward inputs in the same places, BIASES among them, and the tangents of queries and of keys and values
// (one tensor if the inputs are one; NULL: zero). For query i and key j of a sequence, with the weights p of the
// forward pass, its dropout mask m (1 / the kept share, or 0; 1 without) and the scale of scores:
//   ds_ij = scale (dq_i k_j + q_i dk_j),  dp_ij = p_ij (ds_ij - sum over j' of p_ij' ds_ij')
//   dout_i = sum over j of m_ij (dp_ij v_j + p_ij dv_j)
enum { TARN__ATTENTION_TANGENT_QUERIES = TARN__ATTENTION_BIASES + 1, TARN__ATTENTION_TANGENT_KEYS_VALUES };

// The tensors of a backward node, with the sharing of self-attention resolved.
typedef struct tarn__attention_backward {
  const tarn__tensor *queries, *keys_values, *dout;
  const tarn__tensor *dqueries, *dkeys_values;  // NULL: not wanted
  const tarn__tensor *result, *statistics;      // NULL if no sequence is long
  bool add_queries, add_keys_values;            // add to the present values
  const tarn__tensor *biases;                   // NULL: none
  const tarn__tensor *dbiases, *bias_sums;      // NULL: not wanted
  const int32_t *query_offsets, *key_offsets;
  int64_t sequences;
} tarn__attention_backward;

// With biases the offsets of keys are those of queries; in a backward node the biases replace them.
static inline const tarn__tensor *tarn__attention_key_offsets(const tarn__node *node) {
  const bool biased = ((const tarn__attention_attr *)node->attr)->reach >= 0;
  return node->in[biased ? TARN__ATTENTION_QUERY_OFFSETS : TARN__ATTENTION_KEY_OFFSETS];
}

static inline tarn__attention_backward tarn__attention_backward_of(const tarn__node *node) {
  const bool self = node->in[TARN__ATTENTION_KEYS_VALUES] == NULL;
  const bool biased = ((const tarn__attention_attr *)node->attr)->reach >= 0;
  const tarn__attention_backward b = {
      .queries = node->in[TARN__ATTENTION_QUERIES],
      .keys_values = node->in[self ? TARN__ATTENTION_QUERIES : TARN__ATTENTION_KEYS_VALUES],
      .dout = node->in[TARN__ATTENTION_DO],
      .dqueries = node->out[TARN__ATTENTION_DQUERIES],
      .dkeys_values = node->out[self ? TARN__ATTENTION_DQUERIES : TARN__ATTENTION_DKEYS_VALUES],
      .result = node->in[TARN__ATTENTION_FORWARD_RESULT],
      .statistics = node->in[TARN__ATTENTION_FORWARD_STATISTICS],
      .add_queries = node->in[TARN__ATTENTION_PREVIOUS_QUERIES] != NULL,
      .add_keys_values =
          node->in[self ? TARN__ATTENTION_PREVIOUS_QUERIES : TARN__ATTENTION_PREVIOUS_KEYS_VALUES] != NULL,
      .biases = biased ? node->in[TARN__ATTENTION_BACKWARD_BIASES] : NULL,
      .dbiases = node->out[TARN__ATTENTION_DBIASES],
      .bias_sums = node->out[TARN__ATTENTION_BIAS_SUMS],
      .query_offsets = (const int32_t *)node->in[TARN__ATTENTION_QUERY_OFFSETS]->data,
      .key_offsets = (const int32_t *)tarn__attention_key_offsets(node)->data,
      .sequences = node->in[TARN__ATTENTION_QUERY_OFFSETS]->cols - 1};
  return b;
}

#endif
