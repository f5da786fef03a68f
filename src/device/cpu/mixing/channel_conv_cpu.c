// Fast kernels. The rows are divided into one part per thread, regardless of sentences; a row is summed in registers
// over its taps, in order, so that its bits depend on its sentence alone. The gradient of the kernel is summed by
// sentences, each tap and group of columns by one thread, so that it has the same bits with any number of threads.
#include "ops/channel_conv.h"

#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/node_tables.h"
#include "ops/offsets.h"

// Rows that are taps: the first element of number k is base + stride * (list ? list[k] : k).
typedef struct source {
  const void *data;
  int64_t base, stride;
  const int32_t *list;
} source;

static inline int64_t place(const source *from, int64_t k) {
  return from->base + from->stride * (from->list ? from->list[k] : k);
}

// y[to] = the sum of taps [first, last), each multiplied by its row of the kernel. `add`: added to y.
TARN__VEC_INLINE void sum_row(void *y, int64_t to, const source *from, const float *kernel, int64_t first, int64_t last,
                              int64_t cols, tarn__dtype dtype, bool add) {
#define STEP(i, n)                                                                                \
  do {                                                                                            \
    tarn__vec sum = {0};                                                                          \
    for (int64_t k = first; k < last; k++)                                                        \
      sum = tarn__vec_fma(tarn__vec_read_first(kernel, TARN__F32, k * cols + (i), n),             \
                          tarn__vec_read_first(from->data, dtype, place(from, k) + (i), n), sum); \
    if (add) sum += tarn__vec_read_first(y, dtype, to + (i), n);                                  \
    tarn__vec_write_first(y, dtype, to + (i), sum, n);                                            \
  } while (0)
  TARN__VEC_EACH(0, cols, STEP);
#undef STEP
}

static const tarn__channel_conv_attr *attr_of(const tarn__node *node) { return node->attr; }

// Row r of a decoding step.
TARN__VEC_INLINE void listed_row(const tarn__node *node, int64_t r, tarn__dtype dtype) {
  const tarn__tensor *x = node->in[TARN__CC_X], *y = node->out[0];
  const int32_t *range = (const int32_t *)node->in[TARN__CC_RANGES]->data + 2 * r;
  const int64_t width = attr_of(node)->taps.width, seen = range[1] - range[0];
  const int32_t *list = node->in[TARN__CC_ROWS]->data;
  const int64_t count = seen < width ? seen : width;
  const float *kernel = (const float *)node->in[TARN__CC_KERNEL]->data + (width - count) * y->cols;
  const source from = {x->data, attr_of(node)->column, x->cols, list + range[1] - count};
  sum_row(y->data, r * y->cols, &from, kernel, 0, count, y->cols, dtype, false);
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Row r of a sentence [begin, end).
TARN__VEC_INLINE void whole_row(const tarn__node *node, int64_t r, int64_t begin, int64_t end, tarn__dtype dtype) {
  const tarn__tensor *x = node->in[TARN__CC_X], *y = node->out[0];
  const tarn__taps *taps = &attr_of(node)->taps;
  const source from = {x->data, (r - taps->before) * x->cols, x->cols, NULL};
  sum_row(y->data, r * y->cols, &from, node->in[TARN__CC_KERNEL]->data, larger(0, begin - r + taps->before),
          smaller(taps->width, end - r + taps->before), y->cols, dtype, false);
}

// The gradient of row j, which is tap k of row j + before - k.
TARN__VEC_INLINE void gradient_row(const tarn__node *node, int64_t j, int64_t begin, int64_t end, tarn__dtype dtype) {
  const tarn__tensor *dy = node->in[TARN__CC_DY], *dx = node->out[0];
  const tarn__taps *taps = &attr_of(node)->taps;
  const source from = {dy->data, (j + taps->before) * dy->cols, -dy->cols, NULL};
  sum_row(dx->data, j * dx->cols, &from, node->in[TARN__CC_KERNEL]->data, larger(0, j + taps->before - end + 1),
          smaller(taps->width, j + taps->before - begin + 1), dx->cols, dtype, node->in[TARN__CC_PREVIOUS] != NULL);
}

TARN__VEC_INLINE void run_part(const tarn__node *node, int64_t first, int64_t last, bool gradient, tarn__dtype dtype) {
  const tarn__tensor *offsets = node->in[TARN__CC_OFFSETS];
  int64_t begin = 0, end = 0;
  for (int64_t r = first; r < last; r++) {
    if (!offsets) {
      listed_row(node, r, dtype);
      continue;
    }
    if (r >= end) {
      const int32_t *offset = (const int32_t *)offsets->data + tarn__offsets_find(offsets, r);
      begin = offset[0], end = offset[1];
    }
    if (gradient)
      gradient_row(node, r, begin, end, dtype);
    else
      whole_row(node, r, begin, end, dtype);
  }
}

static void run_rows(const tarn__exec *exec, const tarn__node *node, bool gradient) {
  const tarn__tensor *y = node->out[0];
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int which = 0; which < exec->threads; which++) {
    const int64_t first = y->rows * which / exec->threads, last = y->rows * (which + 1) / exec->threads;
    if (y->dtype == TARN__BF16)
      run_part(node, first, last, gradient, TARN__BF16);
    else
      run_part(node, first, last, gradient, TARN__F32);
  }
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  run_rows(exec, node, false);
  return TARN_STATUS_OK;
}

enum { GROUP = 4 };  // registers of columns that are summed together: their chains of sums overlap

// The gradient of tap k for `n` registers of columns from `at` on, or for the first `lanes` lanes of a single one.
// `more`: it is added to what is there.
TARN__VEC_INLINE void add_tap(const tarn__node *node, bool more, int64_t k, int64_t at, int n, int64_t lanes,
                              tarn__dtype dtype) {
  const tarn__tensor *x = node->in[TARN__CC_X], *dy = node->in[TARN__CC_DY], *offsets = node->in[TARN__CC_OFFSETS];
  const int32_t *offset = offsets->data;
  const int64_t cols = dy->cols, ahead = k - attr_of(node)->taps.before;
  tarn__vec total[GROUP] = {{0}};
  for (int64_t s = 0; s + 1 < offsets->cols; s++) {
    tarn__vec sum[GROUP] = {{0}};
    const int64_t first = larger(offset[s], offset[s] - ahead), last = smaller(offset[s + 1], offset[s + 1] - ahead);
    for (int64_t r = first; r < last; r++)
      for (int v = 0; v < n; v++) {
        const int64_t column = at + v * TARN__VEC_LANES;
        sum[v] = tarn__vec_fma(tarn__vec_read_first(dy->data, dtype, r * cols + column, lanes),
                               tarn__vec_read_first(x->data, dtype, (r + ahead) * cols + column, lanes), sum[v]);
      }
    for (int v = 0; v < n; v++) total[v] += sum[v];
  }
  float *to = (float *)node->dparam[0]->training.grad + k * cols + at;
  for (int v = 0; v < n; v++) {
    float *own = to + v * TARN__VEC_LANES;
    if (more) total[v] += tarn__vec_read_first(own, TARN__F32, 0, lanes);
    tarn__vec_write_first(own, TARN__F32, 0, total[v], lanes);
  }
}

// The same for all columns of group `g`.
TARN__VEC_INLINE void add_group(const tarn__node *node, bool more, int64_t k, int64_t g, tarn__dtype dtype) {
  enum { COLS = GROUP * TARN__VEC_LANES };
  const int64_t cols = node->in[TARN__CC_DY]->cols, first = g * COLS;
  if (first + COLS <= cols) {
    add_tap(node, more, k, first, GROUP, TARN__VEC_LANES, dtype);
    return;
  }
#define STEP(i, n) add_tap(node, more, k, i, 1, n, dtype)
  TARN__VEC_EACH(first, cols, STEP);
#undef STEP
}

static void add_kernel(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__CC_DY];
  const bool more = tarn__param_accumulate(node->dparam[0]);
  const int64_t groups = (dy->cols + GROUP * TARN__VEC_LANES - 1) / (GROUP * TARN__VEC_LANES);
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t i = 0; i < groups * attr_of(node)->taps.width; i++) {
    const int64_t k = i / groups, g = i % groups;
    if (dy->dtype == TARN__BF16)
      add_group(node, more, k, g, TARN__BF16);
    else
      add_group(node, more, k, g, TARN__F32);
  }
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  if (node->out[0]) run_rows(exec, node, true);
  if (node->dparam[0]) add_kernel(exec, node);
  return TARN_STATUS_OK;
}

const tarn__channel_conv_kernels TARN__FAST(tarn__channel_conv_kernels) = {.forward = forward, .backward = backward};
