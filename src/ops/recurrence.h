// Inside of the op recurrence: its nodes.
//
// If something is trained, forward keeps, in the activations' type: the gates behind their activations, in the
// memory of x where nobody else reads that, and one more number a unit (GRU: W_hn h + b_hn; LSTM: the cell).
//
// Nodes:
//   recurrence           in: x, offsets, weights, biases, start, end                          out: y, gates, extra
//   recurrence_backward  in: dy, y, gates, extra, offsets, weights, gradient so far, start    out: dx, du, du first
//                        dparam: biases
//   recurrence_dweight   in: du, y, du first, start                                           dparam: weight
//   recurrence_rows      in: x, cache, rows, ranges, weight, bias                             out: y
// du [R, directions * gates * hidden] is the gradient of what the weights add to x, with 0 in the first row of a
// sentence, which has no row before it. Where sentences begin with a state of their own, the gradient of that row is in
// du first [sentences, gates * hidden].
//
// `end`, though an input, is written: a node that runs again in the backward pass writes what it wrote before.
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
  TARN__RECURRENCE_END
};
enum { TARN__RECURRENCE_Y, TARN__RECURRENCE_GATES, TARN__RECURRENCE_EXTRA };

enum {
  TARN__RECURRENCE_BACK_DY,
  TARN__RECURRENCE_BACK_Y,
  TARN__RECURRENCE_BACK_GATES,
  TARN__RECURRENCE_BACK_EXTRA,
  TARN__RECURRENCE_BACK_OFFSETS,
  TARN__RECURRENCE_BACK_WEIGHTS,
  TARN__RECURRENCE_BACK_PREVIOUS = TARN__RECURRENCE_BACK_WEIGHTS + 2,
  TARN__RECURRENCE_BACK_START
};
enum { TARN__RECURRENCE_BACK_DX, TARN__RECURRENCE_BACK_DU, TARN__RECURRENCE_BACK_FIRST };

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
  TARN__RECURRENCE_ROWS_BIAS
};

typedef struct tarn__recurrence_rows_attr {
  tarn__recurrence_spec spec;
  int64_t first_row;
} tarn__recurrence_rows_attr;

// The cache row of the token before row i, or -1 at the beginning.
static inline int64_t tarn__recurrence_row_before(const tarn__node *node, int64_t i) {
  const int32_t *rows = node->in[TARN__RECURRENCE_ROWS_ROWS]->data;
  const int32_t *range = (const int32_t *)node->in[TARN__RECURRENCE_ROWS_RANGES]->data + 2 * i;
  return range[1] - range[0] > 1 ? rows[range[1] - 2] : -1;
}

// Which direction a weight belongs to.
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

// Some columns of a matrix in the activations' type; data is NULL where it is absent.
typedef struct tarn__recurrence_band {
  void *data;
  int64_t cols, first;
} tarn__recurrence_band;

// The columns of a direction; tensor may be NULL.
static inline tarn__recurrence_band tarn__recurrence_band_of(const tarn__tensor *tensor, int direction, int64_t width) {
  if (!tensor) return (tarn__recurrence_band){0};
  return (tarn__recurrence_band){tensor->data, tensor->cols, direction * width};
}

static inline int64_t tarn__recurrence_at(const tarn__recurrence_band *band, int64_t row) {
  return row * band->cols + band->first;
}

// Whether a recurrent weight is better multiplied as a sparse matrix, by what is known of it before it has values.
bool tarn__recurrence_sparse(const tarn__tensor *weight);

#endif
