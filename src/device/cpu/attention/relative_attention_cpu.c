// Fast row kernels for attention with relative keys and values.
#include "device/cpu/attention/relative_attention_kernels.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/vec_cpu.h"
#include "ops/dropout.h"

enum { LANES = TARN__VEC_LANES };

static const float TO_BASE_2 = 1.44269504088896341f;

// Below every score: two to this power is 0.
static const float MASKED = -1e30f;

// Keys before `from` have the first distance, those from `to` on the last.
typedef struct middle {
  int64_t from, to, at;  // at: distance of key `from`
} middle;

static middle middle_of(const tarn__relative_row *row) {
  const int64_t from = row->place > row->reach ? row->place - row->reach : 0;
  const int64_t to = row->place + row->reach + 1 < row->count ? row->place + row->reach + 1 : row->count;
  return (middle){from, to, from - row->place + row->reach};
}

// out[j] = x[j] + by_distance of key j, j < count. out and x may be the same.
static void spread(float *out, const float *x, const float *by_distance, const tarn__relative_row *row) {
  const middle m = middle_of(row);
  const tarn__vec first = tarn__vec_all(by_distance[0]), last = tarn__vec_all(by_distance[row->distances - 1]);
  const int64_t shift = m.at - m.from;
#define NEAR(i, n)       \
  tarn__vec_write_first( \
      out, TARN__F32, i, \
      tarn__vec_read_first(x, TARN__F32, i, n) + tarn__vec_read_first(by_distance, TARN__F32, (i) + shift, n), n)
#define FIRST(i, n) tarn__vec_write_first(out, TARN__F32, i, tarn__vec_read_first(x, TARN__F32, i, n) + first, n)
#define LAST(i, n) tarn__vec_write_first(out, TARN__F32, i, tarn__vec_read_first(x, TARN__F32, i, n) + last, n)
  TARN__VEC_EACH(0, m.from, FIRST);
  TARN__VEC_EACH(m.from, m.to, NEAR);
  TARN__VEC_EACH(m.to, row->count, LAST);
#undef NEAR
#undef FIRST
#undef LAST
}

static float sum_of(const float *x, int64_t from, int64_t to) {
  tarn__vec sum = {0};
#define STEP(i, n) sum += tarn__vec_read_first(x, TARN__F32, i, n)
  TARN__VEC_EACH(from, to, STEP);
#undef STEP
  return tarn__vec_sum_lanes(sum)[0];
}

// Sets the first numbers of a row to the sums of the others by distance, and those after the last key to zero. The row,
// in room, is written to `out`.
static void gather(void *out, const tarn__relative_row *row) {
  const middle m = middle_of(row);
  float *by_distance = row->room, *x = row->room + row->distances;
  memset(by_distance, 0, (size_t)row->distances * sizeof *by_distance);
  memcpy(by_distance + m.at, x + m.from, (size_t)(m.to - m.from) * sizeof *x);
  if (m.from > 0) by_distance[0] += sum_of(x, 0, m.from);
  if (m.to < row->count) by_distance[row->distances - 1] += sum_of(x, m.to, row->count);
  memset(x + row->count, 0, (size_t)(row->columns - row->count) * sizeof *x);
  tarn__row_write(out, row->dtype, 0, row->distances + row->columns, row->room);
}

static void drop(const tarn__relative_row *row, float *x) {
  const uint32_t threshold = row->threshold;
  const float scale = row->keep_scale;
#pragma omp simd
  for (int64_t j = 0; j < row->count; j++) x[j] = row->drop[j] >= threshold ? x[j] * scale : 0.0f;
}

static void weigh(const tarn__relative_row *row) {
  float *p = row->score + row->distances, *x = row->room + row->distances;
  const tarn__vec factor = tarn__vec_all(row->scale * TO_BASE_2);
  spread(p, p, row->score, row);
  tarn__vec most = tarn__vec_all(MASKED), sum = {0};
#define MOST(i, n) most = tarn__vec_max(most, tarn__vec_first(tarn__vec_read_first(p, TARN__F32, i, n), n, MASKED))
  TARN__VEC_EACH(0, row->count, MOST);
#undef MOST
  most = tarn__vec_max_lane(most);
#define POWER(i, n)                                                                                           \
  do {                                                                                                        \
    const tarn__vec power =                                                                                   \
        tarn__vec_first(tarn__vec_exp2((tarn__vec_read_first(p, TARN__F32, i, n) - most) * factor), n, 0.0f); \
    tarn__vec_write_first(p, TARN__F32, i, power, n);                                                         \
    sum += power;                                                                                             \
  } while (0)
  TARN__VEC_EACH(0, row->count, POWER);
#undef POWER
  const tarn__vec inverse = tarn__vec_all(1.0f) / tarn__vec_sum_lanes(sum);
#define SHARE(i, n)                                                             \
  do {                                                                          \
    const tarn__vec share = tarn__vec_read_first(p, TARN__F32, i, n) * inverse; \
    tarn__vec_write_first(p, TARN__F32, i, share, n);                           \
    tarn__vec_write_first(x, TARN__F32, i, share, n);                           \
  } while (0)
  TARN__VEC_EACH(0, row->count, SHARE);
#undef SHARE
  if (row->drop) drop(row, x);
  gather(row->weight, row);
}

// x = p (x - rowsum(p x)) scale
static void through_softmax(const tarn__relative_row *row, float *x) {
  const float *p = row->score + row->distances;
  tarn__vec mean = {0};
#define MEAN(i, n) \
  mean = tarn__vec_fma(tarn__vec_read_first(p, TARN__F32, i, n), tarn__vec_read_first(x, TARN__F32, i, n), mean)
  TARN__VEC_EACH(0, row->count, MEAN);
#undef MEAN
  mean = tarn__vec_sum_lanes(mean);
  const tarn__vec scale = tarn__vec_all(row->scale);
#define DOWN(i, n)       \
  tarn__vec_write_first( \
      x, TARN__F32, i,   \
      tarn__vec_read_first(p, TARN__F32, i, n) * (tarn__vec_read_first(x, TARN__F32, i, n) - mean) * scale, n)
  TARN__VEC_EACH(0, row->count, DOWN);
#undef DOWN
}

static void back(const tarn__relative_row *row) {
  float *x = row->room + row->distances;
  spread(x, row->dweight + row->distances, row->dweight, row);
  if (row->drop) drop(row, x);
  through_softmax(row, x);
  gather(row->dscore, row);
}

static void push(const tarn__relative_row *row) {
  float *x = row->room + row->distances;
  spread(x, row->dweight + row->distances, row->dweight, row);
  through_softmax(row, x);
  if (row->drop) drop(row, x);
  gather(row->dscore, row);
}

static void put(void *to, tarn__dtype dtype, int64_t at, const float *from, int64_t n, bool add) {
#define STEP(i, m)                                              \
  do {                                                          \
    tarn__vec x = tarn__vec_read_first(from, TARN__F32, i, m);  \
    if (add) x += tarn__vec_read_first(to, dtype, at + (i), m); \
    tarn__vec_write_first(to, dtype, at + (i), x, m);           \
  } while (0)
  TARN__VEC_EACH(0, n, STEP);
#undef STEP
}

static void add_row(float *sum, const float *x, int64_t n) { tarn__row_add(sum, x, n); }

static void numbers(uint16_t *to, const tarn__exec *exec, uint32_t site, int64_t row, int64_t first, int64_t n) {
  tarn__dropout_numbers(to, exec, site, row, first, n);
}

const tarn__relative_kernels TARN__FAST(tarn__relative_kernels) = {weigh, back, push, put, add_row, numbers};
