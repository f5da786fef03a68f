// Fast kernel: one query row with all its heads at a time, reading every row of keys, then every row of values, whole:
// decoding is bound by reading the cache.
#include <math.h>
#include <omp.h>
#include <string.h>

#include "ops/attention_rows.h"
#include "ops/row_cpu.h"

// Scratch of one thread, in floats: rows of the query, of keys or values, and of the result; scores [heads, keys].
static size_t thread_floats(const tarn__attention_spec *spec) {
  return 3 * tarn__row_floats(spec->d) + (size_t)spec->heads * tarn__row_floats(spec->longest);
}

static size_t scratch(const tarn__attention_spec *spec, int threads) {
  const size_t bytes = thread_floats(spec) * sizeof(float) * (size_t)threads;
  const size_t reference = (size_t)spec->longest * sizeof(double);
  return bytes > reference ? bytes : reference;
}

typedef struct view {
  const tarn__attention_spec *spec;
  const tarn__tensor *kv;
  const int32_t *list;  // NULL: the range names rows
  int64_t first, count;
  float *row, *scores;
  int64_t score_row;
} view;

static const float *row_of(const view *v, int64_t j, int64_t column) {
  const int64_t row = v->list ? v->list[v->first + j] : v->first + j;
  return tarn__row_read(v->kv->data, v->kv->dtype, row * v->kv->cols + column, v->spec->d, v->row);
}

static void attend(const view *v, float *out, const float *q) {
  const int64_t heads = v->spec->heads, width = v->spec->d / heads;
  const float scale = 1.0f / sqrtf((float)width);
  for (int64_t j = 0; j < v->count; j++) {
    const float *k = row_of(v, j, v->spec->key_column);
    for (int64_t h = 0; h < heads; h++)
      v->scores[h * v->score_row + j] = scale * tarn__row_dot(q + h * width, k + h * width, width);
  }
  for (int64_t h = 0; h < heads && v->count > 0; h++) {
    float *score = v->scores + h * v->score_row;
    const float sum = tarn__row_exp_sum(score, score, tarn__row_max(score, v->count), v->count);
    tarn__row_scale(score, 1.0f / sum, v->count);
  }
  memset(out, 0, (size_t)v->spec->d * sizeof *out);
  for (int64_t j = 0; j < v->count; j++) {
    const float *value = row_of(v, j, v->spec->value_column);
    for (int64_t h = 0; h < heads; h++)
      tarn__row_axpy(out + h * width, v->scores[h * v->score_row + j], value + h * width, width);
  }
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__attention_spec *spec = node->attr;
  const tarn__tensor *queries = node->in[TARN__ATTENTION_ROWS_QUERIES], *out = node->out[0];
  const tarn__tensor *list = node->in[TARN__ATTENTION_ROWS_ROWS];
  const int32_t *range = node->in[TARN__ATTENTION_ROWS_RANGES]->data;
  const int64_t d = spec->d;
  const size_t row = tarn__row_floats(d);
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t i = 0; i < queries->rows; i++) {
    float *memory = (float *)node->scratch + (size_t)omp_get_thread_num() * thread_floats(spec);
    const view v = {.spec = spec,
                    .kv = node->in[TARN__ATTENTION_ROWS_KEYS_VALUES],
                    .list = list ? list->data : NULL,
                    .first = range[2 * i],
                    .count = range[2 * i + 1] - range[2 * i],
                    .row = memory,
                    .scores = memory + 3 * row,
                    .score_row = (int64_t)tarn__row_floats(spec->longest)};
    const float *q =
        tarn__row_read(queries->data, queries->dtype, i * queries->cols + spec->query_column, d, memory + row);
    attend(&v, memory + 2 * row, q);
    tarn__row_write(out->data, out->dtype, i * d, d, memory + 2 * row);
  }
  return TARN_STATUS_OK;
}

const tarn__attention_rows_kernels TARN__FAST(tarn__attention_rows_kernels) = {forward, scratch};
