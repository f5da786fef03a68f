// Fast kernel: one query row at a time, head by head, with the head of the query (or of the result) in registers while
// it passes over the rows of keys (or values) in place. Rows of BF16, and heads whose width is not a multiple of a
// register, are first copied into fp32 rows whose heads are padded with zeros.
#include <math.h>
#include <omp.h>
#include <string.h>

#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/tile_cpu.h"
#include "device/cpu/node_tables.h"
#include "ops/attention.h"
#include "ops/attention_rows.h"

// Registers of a head that are processed together.
enum { VECTORS = 4 };

enum { FLOATS_AN_ADDRESS = sizeof(void *) / 4 };

// Fewer rows than this are not worth waking other threads.
enum { ROWS_TO_SHARE = 16 };

// Score of the elements after the last key: two to this power is 0.
static const float MASKED = -1e30f;

static const float TO_BASE_2 = 1.44269504088896341f;

// Scratch of one thread, in floats: the query, the result, the scores of all heads, a factor per head, the addresses of
// the rows, copies of the rows.
typedef struct layout {
  int64_t head, row, keys;  // floats of a padded head, of a row of padded heads, of the scores of a head
  int64_t scores, factors, addresses, copies, all;
} layout;

static layout layout_of(const tarn__attention_spec *spec) {
  const int64_t head = tarn__tile_pad(spec->d / spec->heads), row = head * spec->heads;
  layout l = {.head = head, .row = row, .keys = tarn__tile_pad(spec->longest), .scores = 2 * row};
  l.factors = l.scores + l.keys * spec->heads;
  l.addresses = l.factors + tarn__tile_pad(spec->heads);
  l.copies = l.addresses + l.keys * FLOATS_AN_ADDRESS;
  l.all = l.copies + l.keys * row;
  return l;
}

static size_t scratch(const tarn__attention_spec *spec, int threads) {
  const size_t bytes = (size_t)layout_of(spec).all * sizeof(float) * (size_t)threads;
  // Not needed here, but included to keep the sizes of plans unchanged.
  const size_t reference = (size_t)spec->longest * sizeof(double);
  return bytes > reference ? bytes : reference;
}

typedef struct view {
  const tarn__attention_spec *spec;
  int64_t kv_heads;
  const tarn__tensor *kv;
  const int32_t *list;  // NULL: the range gives consecutive rows
  int64_t first, count;
  layout l;
  const float **rows;  // [count] addresses of the keys, then of the values
  float *scores;       // of the current head
  float *copies;
  const double *slopes;                                 // from tarn__attention_slopes()
  const tarn__tensor *biases;                           // or NULL
  const tarn__tensor *relative_keys, *relative_values;  // tables by distance, or NULL
} view;

// Copies `heads` heads from element `at` on to padded heads, as floats.
static void copy_heads(float *out, const tarn__tensor *from, int64_t at, int64_t heads,
                       const tarn__attention_spec *spec, const layout *l) {
  const int64_t width = spec->d / spec->heads;
  for (int64_t h = 0; h < heads; h++) {
    float *head = out + h * l->head;
    tarn__row_copy(head, from->data, from->dtype, at + h * width, width);
    for (int64_t c = width; c < l->head; c++) head[c] = 0.0f;
  }
}

// Sets the addresses of all rows at `column`, or copies the rows.
static void find_rows(const view *v, int64_t column) {
  const bool as_they_lie = v->kv->dtype == TARN__F32 && v->l.row == v->spec->d;
  for (int64_t j = 0; j < v->count; j++) {
    const int64_t row = v->list ? v->list[v->first + j] : v->first + j, at = row * v->kv->cols + column;
    if (as_they_lie) {
      v->rows[j] = (const float *)v->kv->data + at;
      continue;
    }
    float *copy = v->copies + j * v->l.row;
    copy_heads(copy, v->kv, at, v->kv_heads, v->spec, &v->l);
    v->rows[j] = copy;
  }
}

// score[j] = (score[j] +) q . rows[j][at ..], over n registers; q: from there on.
TARN__VEC_INLINE void score_part(const view *v, const float *q, int64_t at, int n, bool add) {
  tarn__vec x[VECTORS];
#pragma GCC unroll 4
  for (int i = 0; i < n; i++) x[i] = tarn__vec_load(q + i * TARN__VEC_LANES);
  for (int64_t j = 0; j < v->count; j++) {
    const float *k = v->rows[j] + at;
    tarn__vec sum = n > 1 ? x[1] * tarn__vec_load(k + TARN__VEC_LANES) : (tarn__vec){0};
    sum = n > 1 ? tarn__vec_fma(x[0], tarn__vec_load(k), sum) : x[0] * tarn__vec_load(k);
#pragma GCC unroll 4
    for (int i = 2; i < n; i++) sum = tarn__vec_fma(x[i], tarn__vec_load(k + i * TARN__VEC_LANES), sum);
    const float total = tarn__vec_sum_lanes(sum)[0];
    v->scores[j] = add ? v->scores[j] + total : total;
  }
}

// out = factor * sum of score[j] rows[j][at ..], over n registers.
TARN__VEC_INLINE void value_part(const view *v, float *out, float factor, int64_t at, int n) {
  tarn__vec sum[VECTORS];
#pragma GCC unroll 4
  for (int i = 0; i < n; i++) sum[i] = (tarn__vec){0};
  for (int64_t j = 0; j < v->count; j++) {
    const float *value = v->rows[j] + at, weight = v->scores[j];
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) sum[i] = tarn__vec_axpy(weight, tarn__vec_load(value + i * TARN__VEC_LANES), sum[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < n; i++) tarn__vec_store(out + i * TARN__VEC_LANES, factor * sum[i]);
}

// Replaces scores by powers of two, the largest of them 1; returns their sum. n is a multiple of TARN__TILE_PAD.
static float powers_of_two(float *scores, int64_t n) {
  tarn__vec most = tarn__vec_load(scores), sum = {0};
  for (int64_t j = TARN__VEC_LANES; j < n; j += TARN__VEC_LANES) most = tarn__vec_max(most, tarn__vec_load(scores + j));
  most = tarn__vec_max_lane(most);
  for (int64_t j = 0; j < n; j += TARN__VEC_LANES) {
    const tarn__vec power = tarn__vec_exp2(tarn__vec_load(scores + j) - most);
    tarn__vec_store(scores + j, power);
    sum += power;
  }
  return tarn__vec_sum_lanes(sum)[0];
}

// at: of the head's keys in their rows.
static void score_head(const view *v, const float *q, int64_t at) {
  int64_t c = 0;
  for (; c + VECTORS * TARN__VEC_LANES <= v->l.head; c += VECTORS * TARN__VEC_LANES)
    score_part(v, q + c, at + c, VECTORS, c > 0);
  for (; c < v->l.head; c += TARN__VEC_LANES) score_part(v, q + c, at + c, 1, c > 0);
}

static void value_head(const view *v, float *out, float factor, int64_t at) {
  int64_t c = 0;
  for (; c + VECTORS * TARN__VEC_LANES <= v->l.head; c += VECTORS * TARN__VEC_LANES)
    value_part(v, out + c, factor, at + c, VECTORS);
  for (; c < v->l.head; c += TARN__VEC_LANES) value_part(v, out + c, factor, at + c, 1);
}

// The keys are in temporal order, and the query is at the position of the last one.
static void add_biases(const view *v, int64_t head) {
  if (v->biases) {
    const int64_t reach = v->biases->cols / 2;
    const float *bias = (const float *)v->biases->data + head * v->biases->cols + reach;
    for (int64_t j = 0; j < v->count; j++) {
      const int64_t distance = v->count - 1 - j;
      v->scores[j] += TO_BASE_2 * bias[distance < reach ? -distance : -reach];
    }
  }
  if (v->spec->alibi <= 0) return;
  const float slope = (float)v->slopes[head] * TO_BASE_2;
  const int last = (int)v->count - 1;
  for (int j = 0; j <= last; j++) v->scores[j] -= slope * (float)(last - j);
}

// The offset in a table of relative keys or values of the vector for the key `before` positions before the last one.
static int64_t vector_at(const tarn__tensor *table, int64_t before) { return (table->rows / 2 - before) * table->cols; }

// The largest distance from the query with a vector of its own, which more distant keys also use.
static int64_t farthest(const view *v, const tarn__tensor *table) {
  return v->count - 1 < table->rows / 2 ? v->count - 1 : table->rows / 2;
}

// Adds the products of a head's query, a row of padded floats, with the relative keys to its scores.
static void add_relative(const view *v, const float *q) {
  const tarn__tensor *table = v->relative_keys;
  if (!table) return;
  const int64_t most = farthest(v, table);
  for (int64_t before = 0; before <= most; before++) {
    const int64_t at = vector_at(table, before);
    tarn__vec sum = {0};
#define STEP(i, n)                                              \
  sum = tarn__vec_fma(tarn__vec_read_first(q, TARN__F32, i, n), \
                      tarn__vec_read_first(table->data, table->dtype, at + (i), n), sum)
    TARN__VEC_EACH(0, table->cols, STEP);
#undef STEP
    const float score = tarn__vec_sum_lanes(sum)[0];
    const int64_t last = v->count - 1 - before;
    for (int64_t j = before == most ? 0 : last; j <= last; j++) v->scores[j] += score;
  }
}

// Adds relative values to the mean of the values, weighted by the powers in `scores`.
static void add_relative_values(const view *v, float *out, float factor) {
  const tarn__tensor *table = v->relative_values;
  if (!table) return;
  const int64_t most = farthest(v, table);
  for (int64_t before = 0; before <= most; before++) {
    const int64_t at = vector_at(table, before), last = v->count - 1 - before;
    float weight = 0.0f;
    for (int64_t j = before == most ? 0 : last; j <= last; j++) weight += v->scores[j];
    weight *= factor;
#define STEP(i, n)                                                                                           \
  tarn__vec_write_first(out, TARN__F32, i,                                                                   \
                        tarn__vec_axpy(weight, tarn__vec_read_first(table->data, table->dtype, at + (i), n), \
                                       tarn__vec_read_first(out, TARN__F32, i, n)),                          \
                        n)
    TARN__VEC_EACH(0, table->cols, STEP);
#undef STEP
  }
}

// The scores of all heads are kept in [heads][padded keys] until the values are loaded.
static void attend(view *v, float *out, const float *q, float *all_scores, float *factors) {
  const int64_t heads = v->spec->heads, keys = tarn__tile_pad(v->count), group = heads / v->kv_heads;
  if (v->count == 0) {
    memset(out, 0, (size_t)v->l.row * sizeof *out);
    return;
  }
  find_rows(v, v->spec->key_column);
  for (int64_t h = 0; h < heads; h++) {
    v->scores = all_scores + h * keys;
    score_head(v, q + h * v->l.head, h / group * v->l.head);
    add_biases(v, h);
    add_relative(v, q + h * v->l.head);
    for (int64_t j = v->count; j < keys; j++) v->scores[j] = MASKED;
    factors[h] = 1.0f / powers_of_two(v->scores, keys);
  }
  find_rows(v, v->spec->value_column);
  for (int64_t h = 0; h < heads; h++) {
    v->scores = all_scores + h * keys;
    value_head(v, out + h * v->l.head, factors[h], h / group * v->l.head);
    add_relative_values(v, out + h * v->l.head, factors[h]);
  }
}

// Loads the query, scaled for powers of two, into padded heads; then stores the result.
static void attend_row(const tarn__node *node, view *v, float *memory, int64_t i) {
  const tarn__attention_spec *spec = v->spec;
  const tarn__tensor *queries = node->in[TARN__ATTENTION_ROWS_QUERIES], *out = node->out[0];
  const int64_t width = spec->d / spec->heads;
  float *q = memory, *result = memory + v->l.row;
  copy_heads(q, queries, i * queries->cols + spec->query_column, spec->heads, spec, &v->l);
  tarn__row_scale(q, TO_BASE_2 / sqrtf((float)width), v->l.row);
  attend(v, result, q, memory + v->l.scores, memory + v->l.factors);
  for (int64_t h = 0; h < spec->heads; h++)
    tarn__row_write(out->data, out->dtype, i * spec->d + h * width, width, result + h * v->l.head);
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__attention_rows_attr *attr = node->attr;
  const tarn__attention_spec *spec = &attr->spec;
  const tarn__tensor *list = node->in[TARN__ATTENTION_ROWS_ROWS];
  const int32_t *range = node->in[TARN__ATTENTION_ROWS_RANGES]->data;
  const int64_t queries = node->in[TARN__ATTENTION_ROWS_QUERIES]->rows;
  const layout l = layout_of(spec);
  double slopes[TARN__ATTENTION_HEADS];
  tarn__attention_slopes(spec, slopes);
#pragma omp parallel for num_threads(exec->threads) schedule(static) if (queries >= ROWS_TO_SHARE)
  for (int64_t i = 0; i < queries; i++) {
    float *memory = (float *)node->scratch + omp_get_thread_num() * l.all;
    view v = {.spec = spec,
              .kv_heads = attr->kv_heads,
              .kv = node->in[TARN__ATTENTION_ROWS_KEYS_VALUES],
              .list = list ? list->data : NULL,
              .first = range[2 * i],
              .count = range[2 * i + 1] - range[2 * i],
              .l = l,
              .rows = (const float **)(void *)(memory + l.addresses),
              .copies = memory + l.copies,
              .slopes = slopes,
              .biases = node->in[TARN__ATTENTION_ROWS_BIASES],
              .relative_keys = node->in[TARN__ATTENTION_ROWS_RELATIVE_KEYS],
              .relative_values = node->in[TARN__ATTENTION_ROWS_RELATIVE_VALUES]};
    attend_row(node, &v, memory, i);
  }
  return TARN_STATUS_OK;
}

const tarn__attention_rows_kernels TARN__FAST(tarn__attention_rows_kernels) = {forward, scratch};
