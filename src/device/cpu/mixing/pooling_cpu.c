// Fast kernels. The rows are divided into one part per thread, regardless of sentences; a row is summed in registers
// over the rows that it sees, in order, so that its bits depend on its sentence alone. A running sum, whose cost would
// not grow with the window, would carry the rounding error of every row to all later rows.
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/node_tables.h"
#include "ops/offsets.h"
#include "ops/pooling.h"

// The rows that a row is computed from: their first elements, and their factors.
typedef struct taps {
  int64_t *at;
  float *weight;
  int64_t count;
} taps;

// Floats of one part's scratch: the elements, whose indices take two each, and the weights.
static size_t part_floats(const tarn__node *node) { return 3 * tarn__row_floats(tarn__pooling_most(node)); }

static size_t scratch(const tarn__node *node, int threads) {
  return part_floats(node) * sizeof(float) * (size_t)threads;
}

static taps room(const tarn__node *node, int which) {
  float *base = (float *)node->scratch + (size_t)which * part_floats(node);
  return (taps){(int64_t *)(void *)base, base + part_floats(node) / 3 * 2, 0};
}

// y[to] = the sum of the taps of x, minus the row that begins at element `own`. `add`: added to y.
TARN__VEC_INLINE void sum_row(void *y, const void *x, const taps *t, int64_t d, int64_t own, int64_t to,
                              tarn__dtype dtype, bool add) {
#define STEP(i, n)                                                                                \
  do {                                                                                            \
    tarn__vec sum = {0};                                                                          \
    for (int64_t k = 0; k < t->count; k++)                                                        \
      sum = tarn__vec_axpy(t->weight[k], tarn__vec_read_first(x, dtype, t->at[k] + (i), n), sum); \
    sum -= tarn__vec_read_first(x, dtype, own + (i), n);                                          \
    if (add) sum += tarn__vec_read_first(y, dtype, to + (i), n);                                  \
    tarn__vec_write_first(y, dtype, to + (i), sum, n);                                            \
  } while (0)
  TARN__VEC_EACH(0, d, STEP);
#undef STEP
}

// The rows that row r of a sentence [begin, end) sees.
static void seen_by(taps *t, int64_t r, int64_t begin, int64_t end, const tarn__pooling_spec *spec, int64_t d) {
  const tarn__pooling_window w = tarn__pooling_window_of(r, begin, end, spec);
  t->count = w.last - w.first;
  for (int64_t k = 0; k < t->count; k++) {
    t->at[k] = (w.first + k) * d;
    t->weight[k] = 1.0f / (float)t->count;
  }
}

// The rows of the sentence that see row r: each averaged it with a weight.
static void seeing(taps *t, int64_t r, int64_t begin, int64_t end, const tarn__pooling_spec *spec, int64_t d) {
  const tarn__pooling_spec turned = {.width = spec->width, .before = spec->width - 1 - spec->before};
  const tarn__pooling_window w = tarn__pooling_window_of(r, begin, end, &turned);
  t->count = w.last - w.first;
  for (int64_t k = 0; k < t->count; k++) {
    const tarn__pooling_window of = tarn__pooling_window_of(w.first + k, begin, end, spec);
    t->at[k] = (w.first + k) * d;
    t->weight[k] = 1.0f / (float)(of.last - of.first);
  }
}

// The rows seen by a row of a decoding step; the last of them is its own.
static void listed(taps *t, int64_t r, const tarn__node *node, int64_t d) {
  const int32_t *list = node->in[TARN__POOLING_ROWS]->data;
  const int32_t *range = (const int32_t *)node->in[TARN__POOLING_RANGES]->data + 2 * r;
  const tarn__pooling_window w = tarn__pooling_window_of(range[1] - 1, range[0], range[1], node->attr);
  t->count = w.last - w.first;
  for (int64_t k = 0; k < t->count; k++) {
    t->at[k] = list[w.first + k] * d;
    t->weight[k] = 1.0f / (float)t->count;
  }
}

// Rows [first, last) of the result or, `transposed`, of the gradient of x.
TARN__VEC_INLINE void run_part(const tarn__node *node, taps t, int64_t first, int64_t last, bool transposed,
                               tarn__dtype dtype) {
  const tarn__tensor *x = node->in[TARN__POOLING_X], *offsets = node->in[TARN__POOLING_OFFSETS];
  const int64_t d = x->cols;
  const bool add = transposed && node->in[TARN__POOLING_PREVIOUS];
  int64_t begin = 0, end = 0;
  for (int64_t r = first; r < last; r++) {
    int64_t own = r * d;
    if (offsets && r >= end) {
      const int32_t *offset = (const int32_t *)offsets->data + tarn__offsets_find(offsets, r);
      begin = offset[0], end = offset[1];
    }
    if (!offsets) {
      listed(&t, r, node, d);
      own = t.at[t.count - 1];
    } else if (transposed) {
      seeing(&t, r, begin, end, node->attr, d);
    } else {
      seen_by(&t, r, begin, end, node->attr, d);
    }
    sum_row(node->out[0]->data, x->data, &t, d, own, r * d, dtype, add);
  }
}

static void run_all(const tarn__exec *exec, const tarn__node *node, bool transposed) {
  const tarn__tensor *y = node->out[0];
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int which = 0; which < exec->threads; which++) {
    const int64_t first = y->rows * which / exec->threads, last = y->rows * (which + 1) / exec->threads;
    const taps t = room(node, which);
    if (y->dtype == TARN__BF16)
      run_part(node, t, first, last, transposed, TARN__BF16);
    else
      run_part(node, t, first, last, transposed, TARN__F32);
  }
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  run_all(exec, node, false);
  return TARN_STATUS_OK;
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  run_all(exec, node, true);
  return TARN_STATUS_OK;
}

const tarn__pooling_kernels TARN__FAST(tarn__pooling_kernels) = {forward, backward, scratch};
