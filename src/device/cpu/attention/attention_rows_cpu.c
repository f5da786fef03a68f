// Fast kernel: one query row at a time, by blocks of rows of keys (or values) that stay in the cache while head by head
// passes over them, with the head of the query (or of the result) in registers. Rows lie as they are, except those of
// BF16 and heads whose width is not a multiple of a register: these are first copied into fp32 rows whose heads are
// padded with zeros. Threads take rows of queries or, of few, also parts of their heads.
#include <math.h>
#include <omp.h>
#include <string.h>

#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/tile_cpu.h"
#include "device/cpu/node_tables.h"
#include "ops/attention.h"
#include "ops/attention_rows.h"

enum {
  VECTORS = 4,  // registers of a head that are processed together
  BLOCK = 8,    // rows of keys or values
  // Fewer queries than this share their heads, if they read as many elements, which makes waking other threads worth
  // it.
  ROWS_TO_SHARE = 16,
  ELEMENTS_TO_SHARE = 1 << 15
};

// Score of the elements after the last key: two to this power is 0.
static const float MASKED = -1e30f;

static const float TO_BASE_2 = 1.44269504088896341f;

// Scratch of one thread, in floats: the query, the result, the scores of all heads, a factor per head, copies of a
// block of rows.
typedef struct layout {
  int64_t head, row, keys;  // floats of a padded head, of a row of padded heads, of the scores of a head
  int64_t scores, factors, copies, all;
} layout;

static layout layout_of(const tarn__attention_spec *spec) {
  const int64_t head = tarn__tile_pad(spec->d / spec->heads), row = head * spec->heads;
  layout l = {.head = head, .row = row, .keys = tarn__tile_pad(spec->longest), .scores = 2 * row};
  l.factors = l.scores + l.keys * spec->heads;
  l.copies = l.factors + tarn__tile_pad(spec->heads);
  l.all = l.copies + BLOCK * row;
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
  int64_t kv_heads, first_kv, end_kv;  // of all, those of this part
  const tarn__tensor *kv;
  const int32_t *list;  // NULL: the range gives consecutive rows
  int64_t first, count;
  layout l;
  const float *rows[BLOCK];  // addresses of the keys, then of the values, of a block
  int64_t here;              // rows of it
  float *scores;             // of the current head
  float *copies;
  const double *slopes;                                 // from tarn__attention_slopes()
  const tarn__tensor *biases;                           // or NULL
  const tarn__tensor *relative_keys, *relative_values;  // tables by distance, or NULL
} view;

// Copies heads [first, end) of the row at element `at` to padded heads, as floats.
static void copy_heads(float *out, const tarn__tensor *from, int64_t at, int64_t first, int64_t end,
                       const tarn__attention_spec *spec, const layout *l) {
  const int64_t width = spec->d / spec->heads;
  for (int64_t h = first; h < end; h++) {
    float *head = out + h * l->head;
    tarn__row_copy(head, from->data, from->dtype, at + h * width, width);
    for (int64_t c = width; c < l->head; c++) head[c] = 0.0f;
  }
}

static int64_t row_at(const view *v, int64_t row) { return v->list ? v->list[v->first + row] : v->first + row; }

// Sets the addresses of the rows of the block from row `begin` on, at `column`, or copies the rows.
static void find_rows(view *v, int64_t column, int64_t begin) {
  const bool as_they_lie = v->kv->dtype == TARN__F32 && v->l.row == v->spec->d;
  v->here = v->count - begin < BLOCK ? v->count - begin : BLOCK;
  for (int64_t j = 0; j < v->here; j++) {
    const int64_t at = row_at(v, begin + j) * v->kv->cols + column;
    if (as_they_lie) {
      v->rows[j] = (const float *)v->kv->data + at;
      continue;
    }
    float *copy = v->copies + j * v->l.row;
    copy_heads(copy, v->kv, at, v->first_kv, v->end_kv, v->spec, &v->l);
    v->rows[j] = copy;
  }
}

// out[i] = the sum of all lanes of v[i], with the bits of tarn__vec_sum_lanes(): several registers share each step.
TARN__VEC_INLINE void sum_lanes_8(float *out, const tarn__vec v[8]) {
#if TARN__VEC_LANES == 16
#define JOIN(a, b, ...) TARN__VEC_SHUFFLE(tarn__vec_int, a, b, __VA_ARGS__)
  tarn__vec four[4], two[2];
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    const tarn__vec a = v[2 * i], b = v[2 * i + 1];
    four[i] = JOIN(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
              JOIN(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; i++) {
    const tarn__vec a = four[2 * i], b = four[2 * i + 1];
    two[i] = JOIN(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
             JOIN(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  }
  const tarn__vec one = JOIN(two[0], two[1], 0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29) +
                        JOIN(two[0], two[1], 2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23, 26, 27, 30, 31);
  const tarn__vec sums = one + TARN__VEC_TURN_1(one);
  for (int i = 0; i < 8; i++) out[i] = sums[2 * i];
#undef JOIN
#else
  for (int i = 0; i < 8; i++) out[i] = tarn__vec_sum_lanes(v[i])[0];
#endif
}

// The lanes of x . k, over n registers.
TARN__VEC_INLINE tarn__vec product_lanes(const tarn__vec *x, const float *k, int n) {
  tarn__vec sum = n > 1 ? x[1] * tarn__vec_load(k + TARN__VEC_LANES) : (tarn__vec){0};
  sum = n > 1 ? tarn__vec_fma(x[0], tarn__vec_load(k), sum) : x[0] * tarn__vec_load(k);
#pragma GCC unroll 4
  for (int i = 2; i < n; i++) sum = tarn__vec_fma(x[i], tarn__vec_load(k + i * TARN__VEC_LANES), sum);
  return sum;
}

// scores[j] = (scores[j] +) q . rows[j][at ..], over n registers; q: from there on.
TARN__VEC_INLINE void score_part(const view *v, float *scores, const float *q, int64_t at, int n, bool add) {
  tarn__vec x[VECTORS], sums[BLOCK];
  float totals[BLOCK];
#pragma GCC unroll 4
  for (int i = 0; i < n; i++) x[i] = tarn__vec_load(q + i * TARN__VEC_LANES);
  if (v->here == BLOCK) {
#pragma GCC unroll 8
    for (int j = 0; j < BLOCK; j++) sums[j] = product_lanes(x, v->rows[j] + at, n);
    sum_lanes_8(totals, sums);
  } else {
    for (int64_t j = 0; j < v->here; j++) totals[j] = tarn__vec_sum_lanes(product_lanes(x, v->rows[j] + at, n))[0];
  }
  for (int64_t j = 0; j < v->here; j++) scores[j] = add ? scores[j] + totals[j] : totals[j];
}

// out = (out +) sum of scores[j] rows[j][at ..], over n registers.
TARN__VEC_INLINE void value_part(const view *v, float *out, const float *scores, int64_t at, int n, bool add) {
  tarn__vec sum[VECTORS];
#pragma GCC unroll 4
  for (int i = 0; i < n; i++) sum[i] = add ? tarn__vec_load(out + i * TARN__VEC_LANES) : (tarn__vec){0};
  for (int64_t j = 0; j < v->here; j++) {
    const float *value = v->rows[j] + at, weight = scores[j];
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) sum[i] = tarn__vec_axpy(weight, tarn__vec_load(value + i * TARN__VEC_LANES), sum[i]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < n; i++) tarn__vec_store(out + i * TARN__VEC_LANES, sum[i]);
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

// Of a block; at: of the head's keys in their rows.
static void score_head(const view *v, float *scores, const float *q, int64_t at) {
  int64_t c = 0;
  for (; c + VECTORS * TARN__VEC_LANES <= v->l.head; c += VECTORS * TARN__VEC_LANES)
    score_part(v, scores, q + c, at + c, VECTORS, c > 0);
  for (; c < v->l.head; c += TARN__VEC_LANES) score_part(v, scores, q + c, at + c, 1, c > 0);
}

static void value_head(const view *v, float *out, const float *scores, int64_t at, bool add) {
  int64_t c = 0;
  for (; c + VECTORS * TARN__VEC_LANES <= v->l.head; c += VECTORS * TARN__VEC_LANES)
    value_part(v, out + c, scores, at + c, VECTORS, add);
  for (; c < v->l.head; c += TARN__VEC_LANES) value_part(v, out + c, scores, at + c, 1, add);
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

// The scores of the part's heads are kept in [heads][padded keys] until the values are loaded.
static void attend(view *v, float *out, const float *q, float *all_scores, float *factors) {
  const int64_t keys = tarn__tile_pad(v->count), group = v->spec->heads / v->kv_heads;
  const int64_t begin = v->first_kv * group, end = v->end_kv * group;
  if (v->count == 0) {
    memset(out + begin * v->l.head, 0, (size_t)((end - begin) * v->l.head) * sizeof *out);
    return;
  }
  for (int64_t row = 0; row < v->count; row += BLOCK) {
    find_rows(v, v->spec->key_column, row);
    for (int64_t h = begin; h < end; h++)
      score_head(v, all_scores + h * keys + row, q + h * v->l.head, h / group * v->l.head);
  }
  for (int64_t h = begin; h < end; h++) {
    v->scores = all_scores + h * keys;
    add_biases(v, h);
    add_relative(v, q + h * v->l.head);
    for (int64_t j = v->count; j < keys; j++) v->scores[j] = MASKED;
    factors[h] = 1.0f / powers_of_two(v->scores, keys);
  }
  for (int64_t row = 0; row < v->count; row += BLOCK) {
    find_rows(v, v->spec->value_column, row);
    for (int64_t h = begin; h < end; h++)
      value_head(v, out + h * v->l.head, all_scores + h * keys + row, h / group * v->l.head, row > 0);
  }
  for (int64_t h = begin; h < end; h++) {
    v->scores = all_scores + h * keys;
    tarn__row_scale(out + h * v->l.head, factors[h], v->l.head);
    add_relative_values(v, out + h * v->l.head, factors[h]);
  }
}

// Loads the query, scaled for powers of two, into padded heads; then stores the result.
static void attend_row(const tarn__node *node, view *v, float *memory, int64_t i) {
  const tarn__attention_spec *spec = v->spec;
  const tarn__tensor *queries = node->in[TARN__ATTENTION_ROWS_QUERIES], *out = node->out[0];
  const int64_t width = spec->d / spec->heads, group = spec->heads / v->kv_heads;
  const int64_t begin = v->first_kv * group, end = v->end_kv * group;
  float *q = memory, *result = memory + v->l.row;
  copy_heads(q, queries, i * queries->cols + spec->query_column, begin, end, spec, &v->l);
  tarn__row_scale(q + begin * v->l.head, TO_BASE_2 / sqrtf((float)width), (end - begin) * v->l.head);
  attend(v, result, q, memory + v->l.scores, memory + v->l.factors);
  for (int64_t h = begin; h < end; h++)
    tarn__row_write(out->data, out->dtype, i * spec->d + h * width, width, result + h * v->l.head);
}

// The number of parts of the heads of a query, which threads take separately.
static int64_t parts_of(const tarn__attention_rows_attr *attr, const int32_t *range, int64_t queries, int threads,
                        bool *shared) {
  *shared = queries >= ROWS_TO_SHARE;
  if (*shared || threads == 1) return 1;
  int64_t rows = 0;
  for (int64_t i = 0; i < queries; i++) rows += range[2 * i + 1] - range[2 * i];
  *shared = rows * attr->spec.d >= ELEMENTS_TO_SHARE;
  return !*shared ? 1 : threads < attr->kv_heads ? threads : attr->kv_heads;
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__attention_rows_attr *attr = node->attr;
  const tarn__attention_spec *spec = &attr->spec;
  const tarn__tensor *list = node->in[TARN__ATTENTION_ROWS_ROWS];
  const int32_t *range = node->in[TARN__ATTENTION_ROWS_RANGES]->data;
  const int64_t queries = node->in[TARN__ATTENTION_ROWS_QUERIES]->rows;
  bool shared;
  const int64_t parts = parts_of(attr, range, queries, exec->threads, &shared);
  const layout l = layout_of(spec);
  double slopes[TARN__ATTENTION_HEADS];
  tarn__attention_slopes(spec, slopes);
#pragma omp parallel for num_threads(exec->threads) schedule(static) if (shared)
  for (int64_t task = 0; task < queries * parts; task++) {
    const int64_t i = task / parts, part = task % parts;
    float *memory = (float *)node->scratch + omp_get_thread_num() * l.all;
    view v = {.spec = spec,
              .kv_heads = attr->kv_heads,
              .first_kv = attr->kv_heads * part / parts,
              .end_kv = attr->kv_heads * (part + 1) / parts,
              .kv = node->in[TARN__ATTENTION_ROWS_KEYS_VALUES],
              .list = list ? list->data : NULL,
              .first = range[2 * i],
              .count = range[2 * i + 1] - range[2 * i],
              .l = l,
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
