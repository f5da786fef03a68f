// Fast kernels for weighted sums of gathered rows. Memory-bound.
#include <string.h>

#include "device/cpu/experts/experts_kernels.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/vec_cpu.h"
#include "ops/route.h"
#include "ops/weighted_rows.h"

enum {
  LANES = TARN__VEC_LANES,
  BLOCK = 8,           // registers of a row that are summed together
  AHEAD = 3,           // rows after which a gathered row is wanted, when it is prefetched
  AHEAD_BYTES = 16384  // at most, of one row's gathered rows: more would evict what is in use from the L1 cache
};

// Rows of a table are gathered in an order that the hardware prefetcher does not recognise: prefetches those of row
// r + AHEAD. `wanted`: to be written.
TARN__VEC_INLINE void fetch_ahead(const tarn__tensor *table, const tarn__tensor *ids, int64_t r, bool wanted) {
  if (r + AHEAD >= ids->rows) return;
  const int64_t bytes = table->cols * (int64_t)tarn__dtype_size(table->dtype);
  if (ids->cols * bytes > AHEAD_BYTES) return;
  const int32_t *id = (const int32_t *)ids->data + (r + AHEAD) * ids->cols;
  for (int64_t j = 0; j < ids->cols; j++) {
    if (id[j] < 0) continue;
    const char *row = (const char *)table->data + id[j] * bytes;
    for (int64_t at = 0; at < bytes; at += 64) {
      if (wanted)
        __builtin_prefetch(row + at, 1);
      else
        __builtin_prefetch(row + at, 0);
    }
  }
}

// Columns [c, c + n) of the sum over j of gates[j] times row ids[j] of a table, plus `start`, in `count` registers; n
// is LANES, except for a single register at the end of a row. gates NULL: ones.
TARN__VEC_INLINE void sum_block(tarn__vec *sums, const void *table, tarn__dtype dtype, const int32_t *ids,
                                const float *gates, int64_t k, int64_t d, int64_t c, int64_t n, int64_t count) {
  for (int64_t j = 0; j < k; j++) {
    if (ids[j] < 0) continue;
    const int64_t at = ids[j] * d + c;
    for (int64_t i = 0; i < count; i++) {
      const tarn__vec v = tarn__vec_read_first(table, dtype, at + i * LANES, n);
      sums[i] = gates ? tarn__vec_axpy(gates[j], v, sums[i]) : sums[i] + v;
    }
  }
}

// out row r (+)= such sums.
TARN__VEC_INLINE void sum_row(void *out, tarn__dtype out_dtype, bool add, const void *table, tarn__dtype dtype,
                              const int32_t *ids, const float *gates, int64_t k, int64_t d, int64_t r) {
#define STEP(c, n, count)                                                                                            \
  {                                                                                                                  \
    tarn__vec sums[BLOCK] = {{0}};                                                                                   \
    for (int64_t i = 0; add && i < (count); i++)                                                                     \
      sums[i] = tarn__vec_read_first(out, out_dtype, r * d + (c) + i * LANES, n);                                    \
    sum_block(sums, table, dtype, ids, gates, k, d, c, n, count);                                                    \
    for (int64_t i = 0; i < (count); i++) tarn__vec_write_first(out, out_dtype, r *d + (c) + i * LANES, sums[i], n); \
  }
  int64_t c = 0;
  for (; c + BLOCK * LANES <= d; c += BLOCK * LANES) STEP(c, LANES, BLOCK)
  for (; c + LANES <= d; c += LANES) STEP(c, LANES, 1)
  if (c < d) STEP(c, d - c, 1)
#undef STEP
}

static void row_of(const tarn__tensor *out, bool add, const tarn__tensor *table, const int32_t *ids, const float *gates,
                   int64_t k, int64_t r) {
  if (out->dtype == TARN__BF16)
    sum_row(out->data, TARN__BF16, add, table->data, TARN__BF16, ids, gates, k, out->cols, r);
  else
    sum_row(out->data, TARN__F32, add, table->data, TARN__F32, ids, gates, k, out->cols, r);
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *ids = node->in[TARN__WEIGHTED_IDS], *y = node->out[0];
  const float *gates = node->in[TARN__WEIGHTED_GATES]->data;
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t r = 0; r < y->rows; r++) {
    fetch_ahead(node->in[TARN__WEIGHTED_TABLE], ids, r, false);
    row_of(y, false, node->in[TARN__WEIGHTED_TABLE], (const int32_t *)ids->data + r * ids->cols, gates + r * ids->cols,
           ids->cols, r);
  }
  return TARN_STATUS_OK;
}

static tarn_status gather_backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *places = node->in[TARN__GATHER_PLACES], *dx = node->out[0];
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t r = 0; r < dx->rows; r++) {
    fetch_ahead(node->in[TARN__GATHER_DY], places, r, false);
    row_of(dx, node->in[TARN__GATHER_PREVIOUS] != NULL, node->in[TARN__GATHER_DY],
           (const int32_t *)places->data + r * places->cols, NULL, places->cols, r);
  }
  return TARN_STATUS_OK;
}

static tarn_status gather(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__GATHER_X], *places = node->in[TARN__GATHER_PLACES];
  const size_t bytes = (size_t)x->cols * tarn__dtype_size(x->dtype);
  const int64_t block = tarn__gather_block(node);
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t r = 0; r < x->rows; r++) {
    if (x->rows == places->rows) fetch_ahead(node->out[0], places, r, true);
    for (int64_t j = 0; j < places->cols; j++) {
      const int32_t place = ((const int32_t *)places->data)[r % places->rows * places->cols + j];
      const int64_t to = r / places->rows * block + place;
      if (place >= 0)
        memcpy((char *)node->out[0]->data + (size_t)to * bytes, (const char *)x->data + (size_t)r * bytes, bytes);
    }
  }
  return TARN_STATUS_OK;
}

// Row r of a tangent, which belongs to row r of its block.
static void tangent_row(const tarn__node *node, int64_t r) {
  const tarn__tensor *table = node->in[TARN__WEIGHTED_TABLE], *ids = node->in[TARN__WEIGHTED_IDS], *dy = node->out[0];
  const tarn__tensor *dtable = node->in[TARN__WEIGHTED_TANGENT_TABLE];
  const tarn__tensor *dgates = node->in[TARN__WEIGHTED_TANGENT_GATES];
  const int64_t k = ids->cols, d = dy->cols, own = r % ids->rows, block = r / ids->rows;
  const int32_t *id = (const int32_t *)ids->data + own * k;
  const float *gates = (const float *)node->in[TARN__WEIGHTED_GATES]->data + own * k;
  if (dgates)
    sum_row(dy->data, TARN__F32, false, table->data, TARN__F32, id, (const float *)dgates->data + r * k, k, d, r);
  if (dtable)
    sum_row(dy->data, TARN__F32, dgates != NULL, (const float *)dtable->data + block * table->rows * d, TARN__F32, id,
            gates, k, d, r);
}

static tarn_status tangent(const tarn__exec *exec, const tarn__node *node) {
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t r = 0; r < node->out[0]->rows; r++) tangent_row(node, r);
  return TARN_STATUS_OK;
}

TARN__VEC_INLINE float dot(const void *a, const void *b, tarn__dtype dtype, int64_t a_first, int64_t b_first,
                           int64_t d) {
  tarn__vec even = {0}, odd = {0};
  int64_t c = 0;
  for (; c + 2 * LANES <= d; c += 2 * LANES) {
    even = tarn__vec_fma(tarn__vec_read(a, dtype, a_first + c), tarn__vec_read(b, dtype, b_first + c), even);
    odd = tarn__vec_fma(tarn__vec_read(a, dtype, a_first + c + LANES), tarn__vec_read(b, dtype, b_first + c + LANES),
                        odd);
  }
  for (; c < d; c += LANES) {
    const int64_t n = d - c < LANES ? d - c : LANES;
    even = tarn__vec_fma(tarn__vec_read_first(a, dtype, a_first + c, n), tarn__vec_read_first(b, dtype, b_first + c, n),
                         even);
  }
  return tarn__vec_sum_lanes(even + odd)[0];
}

// to = gate times elements [first, first + d) of `from`.
TARN__VEC_INLINE void scale_row(void *to, int64_t at, const void *from, tarn__dtype dtype, int64_t first, float gate,
                                int64_t d) {
#define STEP(c, n) \
  tarn__vec_write_first(to, dtype, at + (c), gate * tarn__vec_read_first(from, dtype, first + (c), n), n)
  TARN__VEC_EACH(0, d, STEP);
#undef STEP
}

// dgates of row r, and the gradient of the rows of a tensor.
TARN__VEC_INLINE void backward_row(const tarn__node *node, tarn__dtype dtype, int64_t r) {
  const tarn__tensor *table = node->in[TARN__WEIGHTED_TABLE], *ids = node->in[TARN__WEIGHTED_IDS];
  const tarn__tensor *dgates = node->out[TARN__WEIGHTED_DGATES], *dtable = node->out[TARN__WEIGHTED_DTABLE];
  const float *gates = node->in[TARN__WEIGHTED_GATES]->data;
  const void *dy = node->in[TARN__WEIGHTED_DY]->data;
  const int64_t d = table->cols;
  for (int64_t j = r * ids->cols; j < (r + 1) * ids->cols; j++) {
    const int32_t id = ((const int32_t *)ids->data)[j];
    if (dgates) ((float *)dgates->data)[j] = id < 0 ? 0.0f : dot(dy, table->data, dtype, r * d, id * d, d);
    if (dtable && id >= 0) scale_row(dtable->data, id * d, dy, dtype, r * d, gates[j], d);
  }
}

// Clears the rows used by the last update, if known, else all. Workspace memory contains nothing from the last update:
// there rows are cleared when they are first used.
static void clear_gradient(const tarn__exec *exec, const tarn__param *table) {
  uint8_t *used = table->training.used_rows;
  const size_t row_bytes = (size_t)table->cols * sizeof(float);
  if (used && table->training.planned) {
    memset(used, 0, (size_t)table->rows);
    return;
  }
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t row = 0; row < table->rows; row++) {
    if (used && !used[row]) continue;
    memset((char *)table->training.grad + (size_t)row * row_bytes, 0, row_bytes);
    if (used) used[row] = 0;
  }
}

static void use_rows(tarn__param *table, const int32_t *ids, int64_t count) {
  uint8_t *used = table->training.used_rows;
  for (int64_t j = 0; used && j < count; j++) {
    if (ids[j] < 0) continue;
    if (table->training.planned && !used[ids[j]])
      memset((float *)table->training.grad + ids[j] * table->cols, 0, (size_t)table->cols * sizeof(float));
    used[ids[j]] = 1;
  }
}

// Columns [first, last) of the gradient of a parameter, in the order of rows, whatever the threads.
TARN__VEC_INLINE void table_part(const tarn__node *node, tarn__dtype dtype, int64_t first, int64_t last) {
  const tarn__tensor *ids = node->in[TARN__WEIGHTED_IDS], *dy = node->in[TARN__WEIGHTED_DY];
  const float *gates = node->in[TARN__WEIGHTED_GATES]->data;
  float *grad = node->dparam[0]->training.grad;
  const int64_t k = ids->cols, d = dy->cols;
  for (int64_t j = 0; j < ids->rows * k; j++) {
    const int32_t id = ((const int32_t *)ids->data)[j];
    if (id < 0) continue;
    float *out = grad + id * d;
#define STEP(c, n)                                                                                          \
  tarn__vec_write_first(out, TARN__F32, c,                                                                  \
                        tarn__vec_axpy(gates[j], tarn__vec_read_first(dy->data, dtype, j / k * d + (c), n), \
                                       tarn__vec_read_first(out, TARN__F32, c, n)),                         \
                        n)
    TARN__VEC_EACH(first, last, STEP);
#undef STEP
  }
}

static void table_gradient(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *ids = node->in[TARN__WEIGHTED_IDS], *dy = node->in[TARN__WEIGHTED_DY];
  tarn__param *table = node->dparam[0];
  const int64_t d = dy->cols, blocks = (d + LANES - 1) / LANES;
  if (!tarn__param_accumulate(table)) clear_gradient(exec, table);
  use_rows(table, ids->data, ids->rows * ids->cols);
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int part = 0; part < exec->threads; part++) {
    const int64_t first = blocks * part / exec->threads * LANES, end = blocks * (part + 1) / exec->threads * LANES;
    const int64_t last = end < d ? end : d;
    if (first >= last) continue;
    dy->dtype == TARN__BF16 ? table_part(node, TARN__BF16, first, last) : table_part(node, TARN__F32, first, last);
  }
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__WEIGHTED_DY], *dgates = node->out[TARN__WEIGHTED_DGATES];
  const tarn__tensor *dtable = node->out[TARN__WEIGHTED_DTABLE];
  if (dgates || dtable) {
#pragma omp parallel for num_threads(exec->threads) schedule(static)
    for (int64_t r = 0; r < dy->rows; r++) {
      if (dgates) fetch_ahead(node->in[TARN__WEIGHTED_TABLE], node->in[TARN__WEIGHTED_IDS], r, false);
      if (dtable) fetch_ahead(dtable, node->in[TARN__WEIGHTED_IDS], r, true);
      dy->dtype == TARN__BF16 ? backward_row(node, TARN__BF16, r) : backward_row(node, TARN__F32, r);
    }
  }
  if (node->dparam[0]) table_gradient(exec, node);
  return TARN_STATUS_OK;
}

const tarn__weighted_rows_kernels TARN__FAST(tarn__weighted_rows_kernels) = {forward, backward, gather, gather_backward,
                                                                             tangent};
