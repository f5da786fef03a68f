// Internals of the op recurrence: its nodes.
//
// If something is trained, forward keeps, in the activations' type: the gates after their activations, in the memory of
// x if it has no other reader, and one more number per unit (GRU: W_hn h + b_hn; LSTM: the cell).
//
// Nodes:
//   recurrence           in: x, offsets, weights, biases, start, end, leaks                   out: y, gates, extra
//   recurrence_backward  in: dy, y, gates, extra, offsets, weights, gradient so far, start    out: dx, du, du first
//                        (ECHO, which has no extra: leaks in its place)
//                        dparam: biases
//   recurrence_dweight   in: du, y, du first, start                                           dparam: weight
//   recurrence_tangent   in: dx, y, gates, extra, offsets, weights, start, dstart             out: dy, dend
//                        (ECHO: leaks in place of extra)
//   recurrence_rows      in: x, cache, rows, ranges, weight, bias, leaks                      out: y
// du [R, directions * gates * hidden] is the gradient of the weights' addition to x, with 0 in the first row of a
// sentence. If sentences begin with given states, the gradient of that row is in du first [sentences, gates * hidden].
//
// Tangents for row t of a sentence, with the kept tensors of the forward pass and dh, dc the tangents of the previous
// states:
//   GRU   dr = r (1 - r) (dx_r + W_r dh), dz likewise, dn = (1 - n^2) (dx_n + dr e + r W_n dh), e = W_n h + b_n,
//         dh' = (1 - z) dn + z dh + dz (h - n)
//   LSTM  di, df, do as dr, dg = (1 - g^2) (dx_g + W_g dh), dc' = df c + f dc + di g + i dg,
//         dh' = do tanh(c') + o (1 - tanh(c')^2) dc'
//   ECHO  dh' = (1 - leak) dh + leak f' (dx + W dh)
// The caller may give `start` a tangent [directions * its rows, *], that of the initial states. If `end` has memory for
// a tangent, that of the last states is written there.
//
// `end`, though an input, is written: a node that runs again in the backward pass writes the same values.
#ifndef TARN_OPS_RECURRENCE_H
#define TARN_OPS_RECURRENCE_H

#include "graph/graph.h"
#include "ops/ops.h"

enum {
  TARN__RECURRENCE_X,
  TARN__RECURRENCE_OFFSETS,
  TARN__RECURRENCE_WEIGHTS,                                // one or two
  TARN__RECURRENCE_BIASES = TARN__RECURRENCE_WEIGHTS + 2,  // each NULL if absent
  TARN__RECURRENCE_START = TARN__RECURRENCE_BIASES + 2,    // both or neither
  TARN__RECURRENCE_END,
  TARN__RECURRENCE_LEAKS  // [1, hidden] in F32 (F64 in double), or NULL: spec.leak
};
enum { TARN__RECURRENCE_Y, TARN__RECURRENCE_GATES, TARN__RECURRENCE_EXTRA };

enum {
  TARN__RECURRENCE_BACK_DY,
  TARN__RECURRENCE_BACK_Y,
  TARN__RECURRENCE_BACK_GATES,
  TARN__RECURRENCE_BACK_EXTRA,
  TARN__RECURRENCE_BACK_LEAKS = TARN__RECURRENCE_BACK_EXTRA,
  TARN__RECURRENCE_BACK_OFFSETS,
  TARN__RECURRENCE_BACK_WEIGHTS,
  TARN__RECURRENCE_BACK_PREVIOUS = TARN__RECURRENCE_BACK_WEIGHTS + 2,
  TARN__RECURRENCE_BACK_START
};
enum { TARN__RECURRENCE_BACK_DX, TARN__RECURRENCE_BACK_DU, TARN__RECURRENCE_BACK_FIRST };

enum {
  TARN__RECURRENCE_TANGENT_DX,  // NULL: zero
  TARN__RECURRENCE_TANGENT_Y,
  TARN__RECURRENCE_TANGENT_GATES,
  TARN__RECURRENCE_TANGENT_EXTRA,
  TARN__RECURRENCE_TANGENT_LEAKS = TARN__RECURRENCE_TANGENT_EXTRA,
  TARN__RECURRENCE_TANGENT_OFFSETS,
  TARN__RECURRENCE_TANGENT_WEIGHTS,
  TARN__RECURRENCE_TANGENT_START = TARN__RECURRENCE_TANGENT_WEIGHTS + 2,
  TARN__RECURRENCE_TANGENT_DSTART  // NULL: zero
};
enum { TARN__RECURRENCE_TANGENT_DY, TARN__RECURRENCE_TANGENT_DEND };

enum {
  TARN__RECURRENCE_DWEIGHT_DU,
  TARN__RECURRENCE_DWEIGHT_Y,
  TARN__RECURRENCE_DWEIGHT_FIRST,
  TARN__RECURRENCE_DWEIGHT_START
};

enum {
  TARN__RECURRENCE_ROWS_X,
  TARN__RECURRENCE_ROWS_CACHE,
  TARN__RECURRENCE_ROWS_ROWS,
  TARN__RECURRENCE_ROWS_RANGES,
  TARN__RECURRENCE_ROWS_WEIGHT,
  TARN__RECURRENCE_ROWS_BIAS,
  TARN__RECURRENCE_ROWS_LEAKS
};

typedef struct tarn__recurrence_rows_attr {
  tarn__recurrence_spec spec;
  int64_t first_row;
} tarn__recurrence_rows_attr;

// The cache row of the previous token of row i, or -1 at the beginning.
static inline int64_t tarn__recurrence_row_before(const tarn__node *node, int64_t i) {
  const int32_t *rows = (const int32_t *)node->in[TARN__RECURRENCE_ROWS_ROWS]->data;
  const int32_t *range = (const int32_t *)node->in[TARN__RECURRENCE_ROWS_RANGES]->data + 2 * i;
  return range[1] - range[0] > 1 ? rows[range[1] - 2] : -1;
}

// The direction of a weight.
typedef struct tarn__recurrence_dweight_attr {
  tarn__recurrence_spec spec;
  int direction;
} tarn__recurrence_dweight_attr;

// Blocks of `hidden` columns of x, rows of a weight: GRU r, z, n; LSTM i, f, g, o (PyTorch's order); echo state one.
static inline int64_t tarn__recurrence_gates(const tarn__recurrence_spec *spec) {
  return spec->cell == TARN__CELL_GRU ? 3 : spec->cell == TARN__CELL_LSTM ? 4 : 1;
}

static inline bool tarn__recurrence_reverse(const tarn__recurrence_spec *spec, int direction) {
  return spec->directions == 2 ? direction == 1 : spec->reverse;
}

// Some columns of a matrix in the activations' type; data is NULL if absent.
typedef struct tarn__recurrence_band {
  void *data;
  int64_t cols, first;
} tarn__recurrence_band;

// The columns of a direction; tensor may be NULL.
static inline tarn__recurrence_band tarn__recurrence_band_of(const tarn__tensor *tensor, int direction, int64_t width) {
  if (!tensor) return (tarn__recurrence_band){NULL, 0, 0};
  return (tarn__recurrence_band){tensor->data, tensor->cols, direction * width};
}

static inline int64_t tarn__recurrence_at(const tarn__recurrence_band *band, int64_t row) {
  return row * band->cols + band->first;
}

// Whether a recurrent weight is better multiplied as a sparse matrix, as known before it has values, or can only be
// multiplied so.
bool tarn__recurrence_sparse(const tarn__tensor *weight);

// Floating-point operations of the products of `rows` states with a recurrent weight, dense or sparse by
// tarn__recurrence_sparse().
double tarn__recurrence_product_flops(const tarn__tensor *weight, int64_t rows);

// Whether weight, bias and leaks fit a recurrence with that input.
bool tarn__recurrence_fits(const tarn__tensor *x, const tarn__recurrent *weights, const tarn__recurrence_spec *spec);

#endif
