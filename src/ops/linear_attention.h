// The op linear_attention (Katharopoulos, Vyas, Pappas, Fleuret 2020, arXiv 2006.16236): attention whose weights are
// products of positive features, so its cost grows linearly with the length of a sentence. Per sentence and head, with
// features phi(q_i), phi(k_j) of m numbers and values v_j of `width`:
//   y_i = (phi(q_i) S_i) / (phi(q_i) . z_i),  S_i = sum over j of phi(k_j) v_j^T [m, width],  z_i = sum of phi(k_j) [m]
// over all rows j of the sentence, or, `causal`, over j <= i. The denominator is at least TARN__LINEAR_ATTENTION_LEAST:
// if the features of all keys have underflowed, y is 0.
//
// `exponents`: phi holds e, the logarithms of the features, in F32 (F64 in double). Then a state also has for each
// feature f the largest exponent M_f of its keys, and
//   phi(k_j)_f = exp(e(k_j)_f - M_f),  phi(q_i)_f = exp(e(q_i)_f + M_f - c_i),  c_i the largest e(q_i)_f + M_f
// so neither underflows however far from 0 the exponents are: the shifts cancel, and the denominator is at least about
// 1. M is that of the whole sentence or, causal, a running maximum; the sums are rescaled when it rises. Kernels may
// let keys rise up to TARN__LINEAR_ATTENTION_RISE above M before they rescale. Gradients and tangents are those of e.
//
// phi [R, 2 heads features] is what tarn__feature_map() returns; values [R, *] holds v from value_column on; offsets:
// I32 [1, n + 1]. Returns [R, heads * width]. start, end: both or neither; of causal attention. EXTERNAL [at least as
// many rows as sentences, tarn__linear_attention_state()], F32 (F64 in double): sentence s begins with the state
// start[s] instead of zeros, and its last state is written to end[s]. They must not share memory. A state is, head by
// head, S and then z, and with exponents M (meaningless if z is 0, before the first key). Gradient: to phi and values;
// none flows to the start.
//
// Nodes, gN_i = dy_i / D_i, gD_i = -(dy_i . y_i) / D_i, D the denominators:
//   linear_attention           in: phi, values, offsets, start, end                          out: y, D [R, heads]
//   linear_attention_backward  in: phi, values, offsets, start, -, y, D, dy, dvalues so far  out: dphi, dvalues
//     dphi(q_i) = S_i gN_i + gD_i z_i;  dphi(k_j) = U_j v_j + u_j;  dv_j = U_j^T phi(k_j),
//     U_j = sum of phi(q_i) gN_i^T and u_j = sum of gD_i phi(q_i) over the i that see j
//   linear_attention_tangent   in: phi, values, offsets, start, -, y, D, tangents of phi and of values, each or NULL
//     dy_i = (dphi(q_i) S_i + phi(q_i) dS_i - y_i (dphi(q_i) . z_i + phi(q_i) . dz_i)) / D_i,
//     dS_i = sum of dphi(k_j) v_j^T + phi(k_j) dv_j^T, dz_i = sum of dphi(k_j); the start does not move
//   linear_attention_rows      in: phi, values, cache, rows, ranges                          out: y
#ifndef TARN_OPS_LINEAR_ATTENTION_H
#define TARN_OPS_LINEAR_ATTENTION_H

#include "graph/graph.h"

typedef struct tarn__linear_attention_spec {
  int64_t heads, width, features;
  int64_t value_column;
  int64_t causal;     // 0 or 1; not bool, which would leave bytes unset
  int64_t exponents;  // 0 or 1
} tarn__linear_attention_spec;

tarn__tensor *tarn__linear_attention(tarn__graph *graph, tarn__tensor *phi, tarn__tensor *values, tarn__tensor *offsets,
                                     tarn__linear_attention_spec spec, tarn__tensor *start, tarn__tensor *end);

// Sizes of a head's state, and of a state.
static inline int64_t tarn__linear_attention_head_state(const tarn__linear_attention_spec *spec) {
  return spec->features * (spec->width + (spec->exponents ? 2 : 1));
}

static inline int64_t tarn__linear_attention_state(const tarn__linear_attention_spec *spec) {
  return spec->heads * tarn__linear_attention_head_state(spec);
}

// One step of the causal form for incremental decoding (no gradient). Row i of phi and values follows the token whose
// cache row is rows[ranges[2 i + 1] - 2], or begins if its range has only one row. cache (EXTERNAL, F32, or F64 in
// double, for any type of phi: sums of many features need it) [*, tarn__linear_attention_state()] holds the state after
// every token; that of row i goes to its row first_row + i, which is rows[ranges[2 i + 1] - 1].
tarn__tensor *tarn__linear_attention_rows(tarn__graph *graph, tarn__tensor *phi, tarn__tensor *values,
                                          tarn__tensor *cache, int64_t first_row, tarn__tensor *rows,
                                          tarn__tensor *ranges, tarn__linear_attention_spec spec);

static inline tarn__dtype tarn__linear_attention_state_dtype(tarn__dtype dtype) {
  return dtype == TARN__F64 ? TARN__F64 : TARN__F32;
}

static const float TARN__LINEAR_ATTENTION_LEAST = 1e-35f;

// exp of it, times thousands of keys, features and values, is far from the largest float (exp(88)), and terms smaller
// by the range of floats below 1 are negligible against it.
static const float TARN__LINEAR_ATTENTION_RISE = 30.0f;

enum {
  TARN__LINEAR_ATTENTION_PHI,
  TARN__LINEAR_ATTENTION_VALUES,
  TARN__LINEAR_ATTENTION_OFFSETS,
  TARN__LINEAR_ATTENTION_START,
  TARN__LINEAR_ATTENTION_END
};
enum { TARN__LINEAR_ATTENTION_Y, TARN__LINEAR_ATTENTION_DENOMINATORS };

// Backward: the same inputs without END, and then these. Unwanted outputs are NULL.
enum {
  TARN__LINEAR_ATTENTION_BACK_Y = TARN__LINEAR_ATTENTION_END + 1,
  TARN__LINEAR_ATTENTION_BACK_DENOMINATORS,
  TARN__LINEAR_ATTENTION_BACK_DY,
  TARN__LINEAR_ATTENTION_BACK_PREVIOUS
};
enum { TARN__LINEAR_ATTENTION_DPHI, TARN__LINEAR_ATTENTION_DVALUES };
enum {
  TARN__LINEAR_ATTENTION_TANGENT_Y = TARN__LINEAR_ATTENTION_BACK_Y,
  TARN__LINEAR_ATTENTION_TANGENT_DENOMINATORS,
  TARN__LINEAR_ATTENTION_TANGENT_PHI,
  TARN__LINEAR_ATTENTION_TANGENT_VALUES
};

// Single rows: PHI and VALUES, and instead of OFFSETS:
enum { TARN__LINEAR_ATTENTION_CACHE = 2, TARN__LINEAR_ATTENTION_ROWS, TARN__LINEAR_ATTENTION_RANGES };

typedef struct tarn__linear_attention_rows_attr {
  tarn__linear_attention_spec spec;
  int64_t first_row;
} tarn__linear_attention_rows_attr;

// The cache row of the previous token of row i, or -1 at the beginning.
static inline int64_t tarn__linear_attention_before(const tarn__node *node, int64_t i) {
  const int32_t *rows = (const int32_t *)node->in[TARN__LINEAR_ATTENTION_ROWS]->data;
  const int32_t *range = (const int32_t *)node->in[TARN__LINEAR_ATTENTION_RANGES]->data + 2 * i;
  return range[1] - range[0] > 1 ? rows[range[1] - 2] : -1;
}

#endif
