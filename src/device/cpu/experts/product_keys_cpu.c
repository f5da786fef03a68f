// Fast kernels of product keys: selecting the nearest pairs, and the gradient, which affects few keys for each row.
#include <string.h>

#include "device/cpu/experts/experts_kernels.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/vec_cpu.h"
#include "ops/product_keys.h"

enum { MOST = TARN__PRODUCT_KEYS_MOST };

// Inserts a value into a decreasing list of at most k values; among equal values the earliest comes first.
static inline int64_t insert(float *values, int32_t *ids, int64_t count, int64_t k, float value, int32_t id) {
  if (count == k && !(value > values[k - 1])) return count;
  int64_t at = count < k ? count++ : k - 1;
  for (; at > 0 && value > values[at - 1]; at--) {
    values[at] = values[at - 1];
    ids[at] = ids[at - 1];
  }
  values[at] = value;
  ids[at] = id;
  return count;
}

static void largest(float *values, int32_t *ids, const float *x, int64_t n, int64_t k) {
  int64_t count = 0;
  for (int32_t i = 0; i < n; i++) count = insert(values, ids, count, k, x[i], i);
}

// The nearest pairs of one head. Both lists are decreasing, so at least (i + 1) (j + 1) - 1 pairs precede pair (i, j).
static void choose_head(float *gates, int32_t *ids, const float *s, const float *t, int64_t n, int64_t k, float *room) {
  float *left = room, *right = room + MOST;
  int32_t left_ids[MOST], right_ids[MOST];
  largest(left, left_ids, s, n, k);
  largest(right, right_ids, t, n, k);
  int64_t count = 0;
  for (int64_t i = 0; i < k; i++)
    for (int64_t j = 0; (i + 1) * (j + 1) <= k; j++)
      count = insert(gates, ids, count, k, left[i] + right[j], (int32_t)(left_ids[i] * n + right_ids[j]));
  const float most = gates[0];
  float sum = 0.0f;
#pragma omp simd
  for (int64_t j = 0; j < k; j++) gates[j] = tarn__row_exp(gates[j] - most);
  for (int64_t j = 0; j < k; j++) sum += gates[j];
  for (int64_t j = 0; j < k; j++) gates[j] /= sum;
}

static void choose(const tarn__node *node, const float *scores, int64_t stride, int64_t r, float *room) {
  const tarn__product_keys_spec *spec = node->attr;
  const int64_t k = spec->nearest, n = node->in[TARN__PRODUCT_KEYS_KEYS]->rows / (2 * spec->heads);
  for (int64_t h = 0; h < spec->heads; h++) {
    const int64_t at = (r * spec->heads + h) * k;
    choose_head((float *)node->out[TARN__PRODUCT_KEYS_GATES]->data + at,
                (int32_t *)node->out[TARN__PRODUCT_KEYS_IDS]->data + at, scores + 2 * h * stride,
                scores + (2 * h + 1) * stride, n, k, room);
  }
}

// The slopes of all sums, and a row per thread.
static size_t backward_scratch(const tarn__node *node, int threads) {
  const tarn__tensor *gates = node->in[TARN__PRODUCT_KEYS_G];
  const size_t width = tarn__row_floats(node->in[TARN__PRODUCT_KEYS_KEYS]->cols);
  return (tarn__row_floats(gates->rows * gates->cols) + width * (size_t)threads) * sizeof(float);
}

static void slopes_of(float *slopes, const float *gates, const float *dgates, int64_t k) {
  float mean = 0.0f;
  for (int64_t j = 0; j < k; j++) mean = tarn__fma(gates[j], dgates[j], mean);
  for (int64_t j = 0; j < k; j++) slopes[j] = gates[j] * (dgates[j] - mean);
}

// sums [w] += slope times elements [at, at + w) of an array.
TARN__VEC_INLINE void add_scaled(float *sums, float slope, const void *from, tarn__dtype dtype, int64_t at, int64_t w) {
#define STEP(c, n)                                                                            \
  tarn__vec_write_first(sums, TARN__F32, c,                                                   \
                        tarn__vec_axpy(slope, tarn__vec_read_first(from, dtype, at + (c), n), \
                                       tarn__vec_read_first(sums, TARN__F32, c, n)),          \
                        n)
  TARN__VEC_EACH(0, w, STEP);
#undef STEP
}

static void add_typed(float *sums, float slope, const tarn__tensor *from, int64_t at, int64_t w) {
  from->dtype == TARN__BF16 ? add_scaled(sums, slope, from->data, TARN__BF16, at, w)
                            : add_scaled(sums, slope, from->data, TARN__F32, at, w);
}

// The key of a group in pair `id`.
static int64_t key_of(int64_t group, int32_t id, int64_t n) { return group * n + (group % 2 ? id % n : id / n); }

// The gradient of the queries of row r.
static void queries_row(const tarn__node *node, const float *slopes, float *sums, int64_t r) {
  const tarn__tensor *keys = node->in[TARN__PRODUCT_KEYS_KEYS], *dqueries = node->out[0];
  const tarn__product_keys_spec *spec = node->attr;
  const int64_t k = spec->nearest, groups = 2 * spec->heads, n = keys->rows / groups, w = keys->cols;
  const int32_t *ids = node->in[TARN__PRODUCT_KEYS_CHOSEN]->data;
  for (int64_t group = 0; group < groups; group++) {
    const int64_t first = (r * spec->heads + group / 2) * k, at = r * dqueries->cols + group * w;
    if (node->in[TARN__PRODUCT_KEYS_PREVIOUS])
      tarn__row_copy(sums, dqueries->data, dqueries->dtype, at, w);
    else
      memset(sums, 0, (size_t)w * sizeof *sums);
    for (int64_t j = first; j < first + k; j++) add_typed(sums, slopes[j], keys, key_of(group, ids[j], n) * w, w);
    tarn__row_write(dqueries->data, dqueries->dtype, at, w, sums);
  }
}

// The gradient of the keys of one group, in the order of rows.
static void keys_group(const tarn__node *node, const float *slopes, int64_t group) {
  const tarn__tensor *queries = node->in[TARN__PRODUCT_KEYS_QUERIES], *keys = node->in[TARN__PRODUCT_KEYS_KEYS];
  const tarn__product_keys_spec *spec = node->attr;
  const int64_t k = spec->nearest, n = keys->rows / (2 * spec->heads), w = keys->cols;
  const int32_t *ids = node->in[TARN__PRODUCT_KEYS_CHOSEN]->data;
  float *grad = node->dparam[0]->training.grad;
  for (int64_t r = 0; r < queries->rows; r++) {
    const int64_t first = (r * spec->heads + group / 2) * k;
    for (int64_t j = first; j < first + k; j++)
      add_typed(grad + key_of(group, ids[j], n) * w, slopes[j], queries, r * queries->cols + group * w, w);
  }
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *gates = node->in[TARN__PRODUCT_KEYS_G];
  const tarn__product_keys_spec *spec = node->attr;
  const int64_t k = spec->nearest, rows = gates->rows;
  const size_t width = tarn__row_floats(node->in[TARN__PRODUCT_KEYS_KEYS]->cols);
  float *slopes = node->scratch, *sums = slopes + tarn__row_floats(rows * gates->cols);
  tarn__param *keys = node->dparam[0];
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int part = 0; part < exec->threads; part++)
    for (int64_t r = rows * part / exec->threads; r < rows * (part + 1) / exec->threads; r++) {
      for (int64_t at = r * gates->cols; at < (r + 1) * gates->cols; at += k)
        slopes_of(slopes + at, (const float *)gates->data + at,
                  (const float *)node->in[TARN__PRODUCT_KEYS_DGATES]->data + at, k);
      if (node->out[0]) queries_row(node, slopes, sums + (size_t)part * width, r);
    }
  if (!keys) return TARN_STATUS_OK;
  if (!tarn__param_accumulate(keys)) memset(keys->training.grad, 0, (size_t)(keys->rows * keys->cols) * sizeof(float));
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int64_t group = 0; group < 2 * spec->heads; group++) keys_group(node, slopes, group);
  return TARN_STATUS_OK;
}

// The product of a key with the tangent of the half of a query that it was compared with.
static float moved_score(const float *dquery, const float *key, int64_t w) {
  tarn__vec sum = {0};
#define STEP(c, n) \
  sum = tarn__vec_fma(tarn__vec_read_first(dquery, TARN__F32, c, n), tarn__vec_read_first(key, TARN__F32, c, n), sum)
  TARN__VEC_EACH(0, w, STEP);
#undef STEP
  return tarn__vec_sum_lanes(sum)[0];
}

// The gates of row `row` of a tangent, which belongs to row r of the forward pass.
static void tangent_row(const tarn__node *node, int64_t row, int64_t r) {
  const tarn__tensor *dqueries = node->in[TARN__PRODUCT_KEYS_DQUERIES], *keys = node->in[TARN__PRODUCT_KEYS_KEYS];
  const tarn__tensor *gates = node->in[TARN__PRODUCT_KEYS_G];
  const tarn__product_keys_spec *spec = node->attr;
  const int64_t k = spec->nearest, n = keys->rows / (2 * spec->heads), w = keys->cols;
  for (int64_t h = 0; h < spec->heads; h++) {
    const int64_t at = r * gates->cols + h * k;
    const int32_t *ids = (const int32_t *)node->in[TARN__PRODUCT_KEYS_CHOSEN]->data + at;
    const float *g = (const float *)gates->data + at, *all = keys->data;
    const float *left = (const float *)dqueries->data + row * dqueries->cols + 2 * h * w, *right = left + w;
    float *out = (float *)node->out[0]->data + row * gates->cols + h * k, mean = 0.0f;
    for (int64_t j = 0; j < k; j++) {
      out[j] = moved_score(left, all + key_of(2 * h, ids[j], n) * w, w) +
               moved_score(right, all + key_of(2 * h + 1, ids[j], n) * w, w);
      mean = tarn__fma(g[j], out[j], mean);
    }
    for (int64_t j = 0; j < k; j++) out[j] = g[j] * (out[j] - mean);
  }
}

static tarn_status tangent(const tarn__exec *exec, const tarn__node *node) {
  const int64_t rows = node->in[TARN__PRODUCT_KEYS_G]->rows;
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t row = 0; row < node->out[0]->rows; row++) tangent_row(node, row, row % rows);
  return TARN_STATUS_OK;
}

const tarn__product_keys_kernels TARN__FAST(tarn__product_keys_kernels) = {choose, backward, backward_scratch, tangent};
