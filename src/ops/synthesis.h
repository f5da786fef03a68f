// Synthetic attention (Tay et al. 2021: Synthesizer): the weights of a token's mean over the tokens of its sentence
// come from the token alone, or from its position, not from comparisons with other tokens. For head h of `heads`, token
// i of a sentence with n tokens, and token j of those that it sees (all, or those up to itself if `causal`):
//   logit[i, j]  DENSE       source[i] . weight[j] + bias[j], head by head
//                FACTORISED  left[i, j mod a] right[i, j div a]
//                RANDOM      weight[i, j]
//   score[i, j]  = q[i] . k[j] / sqrt(d / heads), where there is a mix
//   y[i]         = sum of softmax(logit)[i, j] v[j], or of softmax(m1 logit + m2 score)[i, j] v[j], m = softmax(mix)
// Positions i and j count from 0 in each sentence and are less than `places`, N.
//   x       [R, d] the values v, or, where there is a mix, [R, 3 d] = q | k | v
//   source  DENSE [R, heads * k]; FACTORISED [R, heads * (a + b)] with left [a] and right [b] of each head side
//           by side, a * b >= N; RANDOM NULL
//   weight  DENSE [heads * N, k], RANDOM [heads * N, N]: the rows of head h from h * N on; FACTORISED NULL
//   bias    DENSE [1, heads * N] or NULL; else NULL
//   mix     [1, 2] or NULL
// Returns y [R, d]. Nothing of the size of all pairs is kept: the backward pass recomputes the weights.
// Gradient: to x, source, weight, bias and mix. Rows of weight beyond the longest sentence get zeros.
#ifndef TARN_OPS_SYNTHESIS_H
#define TARN_OPS_SYNTHESIS_H

#include "graph/graph.h"

typedef enum tarn__synthesis_form {
  TARN__SYNTHESIS_DENSE,
  TARN__SYNTHESIS_FACTORISED,
  TARN__SYNTHESIS_RANDOM
} tarn__synthesis_form;

typedef struct tarn__synthesis_spec {
  tarn__synthesis_form form;
  int causal;        // 0 or 1, ignored for single rows; with the form it leaves no byte unset
  int64_t heads, d;  // d: a multiple of heads
  int64_t places;    // N
  int64_t left;      // a
  int64_t longest;   // upper bound of the tokens of a sentence; at most N
} tarn__synthesis_spec;

// The sources of the logits.
typedef struct tarn__synthesis_logits {
  tarn__tensor *source;
  tarn__param *weight, *bias, *mix;
} tarn__synthesis_logits;

tarn__tensor *tarn__synthesis(tarn__graph *graph, tarn__tensor *x, tarn__synthesis_logits logits, tarn__tensor *offsets,
                              tarn__synthesis_spec spec);

// The same for single rows in incremental decoding (no gradient). Row i sees the rows rows[ranges[2 i]] ..
// rows[ranges[2 i + 1] - 1] of the cache [*, d] = v, or [*, 2 d] = k | v; its own is the last, whose index in the
// range, from 0, is its position. x and source have the step's own rows; only the queries of x are read.
tarn__tensor *tarn__synthesis_rows(tarn__graph *graph, tarn__tensor *x, tarn__synthesis_logits logits,
                                   tarn__tensor *cache, tarn__tensor *rows, tarn__tensor *ranges,
                                   tarn__synthesis_spec spec);

// Inputs of all nodes, then of whole sentences, and of their backward pass; and of single rows.
enum { TARN__SYNTHESIS_X, TARN__SYNTHESIS_SOURCE, TARN__SYNTHESIS_WEIGHT, TARN__SYNTHESIS_BIAS, TARN__SYNTHESIS_MIX };
enum { TARN__SYNTHESIS_OFFSETS = 5, TARN__SYNTHESIS_DY, TARN__SYNTHESIS_PREVIOUS_X, TARN__SYNTHESIS_PREVIOUS_SOURCE };
enum { TARN__SYNTHESIS_CACHE = 5, TARN__SYNTHESIS_LIST, TARN__SYNTHESIS_RANGES };
// Tangents: inputs of whole sentences and the tangents of x and source, each NULL if zero. With l the combined logits
// of a token and p their softmax, dy = sum of dp[j] v[j] + p[j] dv[j], dp = p (dl - sum of p dl).
enum { TARN__SYNTHESIS_TANGENT_X = 6, TARN__SYNTHESIS_TANGENT_SOURCE };
// Outputs of the backward pass, NULL if not wanted. DMIX [1, 2] is the gradient of mix, F32 (F64 in the reference in
// double). The node's dparam are the weight and the bias.
enum { TARN__SYNTHESIS_DX, TARN__SYNTHESIS_DSOURCE, TARN__SYNTHESIS_DMIX };
enum { TARN__SYNTHESIS_DWEIGHT, TARN__SYNTHESIS_DBIAS };

// Columns of source per head.
static inline int64_t tarn__synthesis_width(const tarn__node *node) {
  const tarn__tensor *source = node->in[TARN__SYNTHESIS_SOURCE];
  return source ? source->cols / ((const tarn__synthesis_spec *)node->attr)->heads : 0;
}

#endif
