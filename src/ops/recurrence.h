// Inside of the op recurrence: its nodes, its time loop and its kernels.
//
// A direction's time loop goes over the sentences by falling length, so that those that still run at a step are a
// prefix: one product computes what the recurrent weights make of their states, and one pass over them all that
// follows. Nothing is computed for sentences that have ended. Sentences may be dealt out to threads, each with a time
// loop of its own and no meeting before the end; no bit of a row depends on that.
//
// States and the gradients that flow back in time are carried in fp32 (products read them rounded to the activations'
// type). If something is trained, forward keeps, in the activations' type: the gates behind their activations, in the
// memory of x where nobody else reads that, and one more number a unit (GRU: W_hn h + b_hn; LSTM: the cell).
//
// Nodes:
//   recurrence           in: x, offsets, weights, biases                                      out: y, gates, extra
//   recurrence_backward  in: dy, y, gates, extra, offsets, weights, gradient so far           out: dx, du
//                        dparam: biases
//   recurrence_dweight   in: du, y                                                            dparam: weight
//   recurrence_rows      in: x, cache, rows, ranges, weight, bias                             out: y
// du [R, directions * gates * hidden] is the gradient of what the weights add to x, 0 in the first row of a sentence,
// whose state before is 0.
#ifndef TARN_OPS_RECURRENCE_H
#define TARN_OPS_RECURRENCE_H

#include "device/variant.h"
#include "graph/graph.h"
#include "ops/ops.h"

enum {
  TARN__RECURRENCE_X,
  TARN__RECURRENCE_OFFSETS,
  TARN__RECURRENCE_WEIGHTS,                               // one or two
  TARN__RECURRENCE_BIASES = TARN__RECURRENCE_WEIGHTS + 2  // each NULL if absent
};
enum { TARN__RECURRENCE_Y, TARN__RECURRENCE_GATES, TARN__RECURRENCE_EXTRA };

enum {
  TARN__RECURRENCE_BACK_DY,
  TARN__RECURRENCE_BACK_Y,
  TARN__RECURRENCE_BACK_GATES,
  TARN__RECURRENCE_BACK_EXTRA,
  TARN__RECURRENCE_BACK_OFFSETS,
  TARN__RECURRENCE_BACK_WEIGHTS,
  TARN__RECURRENCE_BACK_PREVIOUS = TARN__RECURRENCE_BACK_WEIGHTS + 2
};
enum { TARN__RECURRENCE_BACK_DX, TARN__RECURRENCE_BACK_DU };

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

// What the kernels do at one time step: row i of the scratch matrices belongs to row rows[i] of the bands.
typedef struct tarn__recurrence_step {
  tarn__recurrence_spec spec;
  tarn__dtype dtype;
  int64_t count;
  const int32_t *rows;
  float *state;    // [count, state_ld]: h, in and out; backward: dh from later steps, in and out
  float *cell;     // [count, hidden], LSTM: c, in and out; backward: dc from later steps
  void *operand;   // [count, operand_ld] out: h, or the gradient du [count, gates * hidden], for the next product
  const float *u;  // [count, u_ld] forward: W h + b; u_ld is 0 where all rows are equal
  int64_t state_ld, operand_ld, u_ld;
  tarn__recurrence_band y, gates, extra;
  tarn__recurrence_band x;           // forward
  tarn__recurrence_band dy, dx, du;  // backward; dx and du may be absent
  int64_t before;                    // backward: distance of the row of the step before; 0 at a sentence's first step
  bool accumulate;                   // backward: dx += in place of dx =
  float *sums;                       // backward: [gates * hidden] += du over all rows; or NULL
} tarn__recurrence_step;

typedef struct tarn__recurrence_kernels {
  // Units [first, last) of all rows; `first` is a multiple of 32.
  void (*forward)(const tarn__recurrence_step *step, int64_t first, int64_t last);
  void (*backward)(const tarn__recurrence_step *step, int64_t first, int64_t last);
} tarn__recurrence_kernels;

TARN__TABLES(tarn__recurrence_kernels);

// The fast time loop (recurrence_steps.c) of the nodes recurrence and recurrence_backward, and its scratch in bytes.
tarn_status tarn__recurrence_forward_cpu(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__recurrence_backward_cpu(const tarn__exec *exec, const tarn__node *node);
size_t tarn__recurrence_forward_scratch(const tarn__node *node, int threads);
size_t tarn__recurrence_backward_scratch(const tarn__node *node, int threads);

// Whether that loop takes a recurrent weight as sparse, by what is known of it before it has values.
bool tarn__recurrence_sparse(const tarn__tensor *weight);

tarn_status tarn__recurrence_ref_f32(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__recurrence_ref_f64(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__recurrence_backward_ref_f32(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__recurrence_backward_ref_f64(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__recurrence_dweight_ref_f32(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__recurrence_dweight_ref_f64(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__recurrence_rows_ref_f32(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__recurrence_rows_ref_f64(const tarn__exec *exec, const tarn__node *node);

#endif
