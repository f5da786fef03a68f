// Fast kernels of rows, for synthetic attention.
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/mixing/synthesis_kernels.h"

static const float TO_BASE_2 = 1.44269504088896341f;

// Below every score: two to this power is 0.
static const float MASKED = -1e30f;

// share[0] logit + share[1] score of the numbers from j on, in powers of two.
TARN__VEC_INLINE tarn__vec mixed(const tarn__synthesis_row *row, int64_t j) {
  const tarn__vec logit = tarn__vec_load(row->logit + j);
  const tarn__vec sum =
      row->score ? tarn__vec_axpy(row->share[1], tarn__vec_load(row->score + j), tarn__vec_all(row->share[0]) * logit)
                 : logit;
  return tarn__vec_first(sum * tarn__vec_all(TO_BASE_2), row->count - j, MASKED);
}

static void softmax(const tarn__synthesis_row *row) {
  const int64_t width = row->width;
  tarn__vec most = tarn__vec_all(MASKED), sum = {0};
  for (int64_t j = 0; j < width; j += TARN__VEC_LANES) {
    const tarn__vec x = mixed(row, j);
    tarn__vec_store(row->weight + j, x);
    most = tarn__vec_max(most, x);
  }
  most = tarn__vec_max_lane(most);
  for (int64_t j = 0; j < width; j += TARN__VEC_LANES) {
    const tarn__vec power =
        tarn__vec_first(tarn__vec_exp2(tarn__vec_load(row->weight + j) - most), row->count - j, 0.0f);
    tarn__vec_store(row->weight + j, power);
    sum += power;
  }
  const tarn__vec factor = tarn__vec_all(1.0f) / tarn__vec_sum_lanes(sum);
  for (int64_t j = 0; j < width; j += TARN__VEC_LANES) {
    const tarn__vec weight = tarn__vec_load(row->weight + j) * factor;
    tarn__vec_store(row->weight + j, weight);
    if (row->rounded) tarn__vec_store_bf16((uint16_t *)row->rounded + j, weight);
  }
}

static void softmax_back(tarn__synthesis_back *back, const tarn__synthesis_row *row) {
  const int64_t width = row->width;
  tarn__vec mean = {0}, of_logit = {0}, of_score = {0};
  for (int64_t j = 0; j < width; j += TARN__VEC_LANES) {
    const tarn__vec d = tarn__vec_first(tarn__vec_load(back->dweight + j), row->count - j, 0.0f);
    mean = tarn__vec_fma(tarn__vec_load(row->weight + j), d, mean);
  }
  mean = tarn__vec_sum_lanes(mean);
  for (int64_t j = 0; j < width; j += TARN__VEC_LANES) {
    const tarn__vec d = tarn__vec_first(tarn__vec_load(back->dweight + j) - mean, row->count - j, 0.0f);
    const tarn__vec g = tarn__vec_load(row->weight + j) * d, down = g * tarn__vec_all(row->share[0]);
    tarn__vec_store(back->dlogit + j, down);
    if (back->dlogit_rounded) tarn__vec_store_bf16((uint16_t *)back->dlogit_rounded + j, down);
    if (!row->score) continue;
    if (back->dscore) tarn__vec_write(back->dscore, back->dtype, j, g * tarn__vec_all(row->share[1] * back->scale));
    of_logit = tarn__vec_fma(g, tarn__vec_first(tarn__vec_load(row->logit + j), row->count - j, 0.0f), of_logit);
    of_score = tarn__vec_fma(g, tarn__vec_first(tarn__vec_load(row->score + j), row->count - j, 0.0f), of_score);
  }
  back->sums[0] = tarn__vec_sum_lanes(of_logit)[0];
  back->sums[1] = tarn__vec_sum_lanes(of_score)[0];
}

static float number(const void *data, tarn__dtype dtype, int64_t at) {
  float x;
  tarn__row_copy(&x, data, dtype, at, 1);
  return x;
}

static void factorised(float *logit, const void *pairs, tarn__dtype dtype, int64_t at, int64_t a, int64_t count) {
  for (int64_t first = 0, q = 0; first < count; first += a, q++) {
    const int64_t n = count - first < a ? count - first : a;
    const tarn__vec right = tarn__vec_all(number(pairs, dtype, at + a + q));
#define STEP(i, m) \
  tarn__vec_write_first(logit, TARN__F32, first + (i), right * tarn__vec_read_first(pairs, dtype, at + (i), m), m)
    TARN__VEC_EACH(0, n, STEP);
#undef STEP
  }
}

static void factorised_push(float *dlogit, const float *pairs, int64_t at, const float *dpairs, int64_t moved,
                            int64_t a, int64_t count) {
  const float *left = pairs + at, *dleft = dpairs + moved;
  for (int64_t first = 0, q = 0; first < count; first += a, q++) {
    const int64_t n = count - first < a ? count - first : a;
    const tarn__vec right = tarn__vec_all(left[a + q]);
    const float dright = dleft[a + q];
#define STEP(i, m)                                                                            \
  tarn__vec_write_first(dlogit, TARN__F32, first + (i),                                       \
                        tarn__vec_axpy(dright, tarn__vec_read_first(left, TARN__F32, i, m),   \
                                       right * tarn__vec_read_first(dleft, TARN__F32, i, m)), \
                        m)
    TARN__VEC_EACH(0, n, STEP);
#undef STEP
  }
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

static float dot(const void *x, int64_t x_at, const void *y, int64_t y_at, tarn__dtype dtype, int64_t n, float scale) {
  tarn__vec sum = {0};
#define STEP(i, m) \
  sum = tarn__vec_fma(tarn__vec_read_first(x, dtype, x_at + (i), m), tarn__vec_read_first(y, dtype, y_at + (i), m), sum)
  TARN__VEC_EACH(0, n, STEP);
#undef STEP
  return scale * tarn__vec_sum_lanes(sum)[0];
}

static void axpy(float *sum, float factor, const void *x, tarn__dtype dtype, int64_t at, int64_t n) {
#define STEP(i, m)                                                                                                     \
  tarn__vec_write_first(                                                                                               \
      sum, TARN__F32, i,                                                                                               \
      tarn__vec_axpy(factor, tarn__vec_read_first(x, dtype, at + (i), m), tarn__vec_read_first(sum, TARN__F32, i, m)), \
      m)
  TARN__VEC_EACH(0, n, STEP);
#undef STEP
}

static void factorised_back(void *dpairs, const void *pairs, tarn__dtype dtype, int64_t at, int64_t a, int64_t width,
                            const float *dlogit, int64_t count, bool add, float *room) {
  memset(room, 0, (size_t)width * sizeof *room);
  for (int64_t first = 0, q = 0; first < count; first += a, q++) {
    const int64_t n = count - first < a ? count - first : a;
    const float right = number(pairs, dtype, at + a + q);
    tarn__row_axpy(room, right, dlogit + first, n);
    tarn__vec sum = {0};
#define STEP(i, m)                                                             \
  sum = tarn__vec_fma(tarn__vec_read_first(dlogit, TARN__F32, first + (i), m), \
                      tarn__vec_read_first(pairs, dtype, at + (i), m), sum)
    TARN__VEC_EACH(0, n, STEP);
#undef STEP
    room[a + q] = tarn__vec_sum_lanes(sum)[0];
  }
  put(dpairs, dtype, at, room, width, add);
}

static void copy(float *out, const void *from, tarn__dtype dtype, int64_t at, int64_t n) {
  tarn__row_copy(out, from, dtype, at, n);
}

static void add_row(float *sum, const float *x, int64_t n) { tarn__row_add(sum, x, n); }

static void scale_row(float *x, float factor, int64_t n) { tarn__row_scale(x, factor, n); }

const tarn__synthesis_kernels TARN__FAST(tarn__synthesis_kernels) = {
    softmax, softmax_back, factorised, factorised_push, factorised_back, copy, add_row, scale_row, put, dot, axpy};
