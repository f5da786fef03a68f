#include <float.h>

#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/output/output_blocks.h"

enum { LANES = TARN__VEC_LANES, SUMS = 4 };  // SUMS: registers of columns that are summed at a time

TARN__VEC_INLINE void weigh_step(float *x, float shift, tarn__vec sums[2], int64_t i, int64_t n) {
  const tarn__vec v = tarn__vec_read_first(x, TARN__F32, i, n);
  const tarn__vec t = (v - shift) * 1.44269504088896341f;
  tarn__vec e = tarn__vec_exp2(tarn__vec_select(t > 126.0f, tarn__vec_all(126.0f), t));
  if (n < LANES) e = tarn__vec_first(e, n, 0.0f);
  tarn__vec_write_first(x, TARN__F32, i, e, n);
  sums[0] += e;
  sums[1] += v;
}

static void weigh(float *x, int64_t n, float shift, double sums[2]) {
  tarn__vec even[2] = {{0}, {0}}, odd[2] = {{0}, {0}};
  int64_t i = 0;
  for (; i + 2 * LANES <= n; i += 2 * LANES) {
    weigh_step(x, shift, even, i, LANES);
    weigh_step(x, shift, odd, i + LANES, LANES);
  }
  for (; i + LANES <= n; i += LANES) weigh_step(x, shift, even, i, LANES);
  if (i < n) weigh_step(x, shift, odd, i, n - i);
  for (int s = 0; s < 2; s++) sums[s] += (double)tarn__vec_sum_lanes(even[s] + odd[s])[0];
}

static float largest(const float *x, int64_t n) {
  tarn__vec most = tarn__vec_all(-FLT_MAX);
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) most = tarn__vec_max(tarn__vec_load(x + i), most);
  if (i < n) most = tarn__vec_max(tarn__vec_first(tarn__vec_read_first(x, TARN__F32, i, n - i), n - i, -FLT_MAX), most);
  return tarn__vec_max_lane(most)[0];
}

static float dot(const float *x, const float *y, int64_t n) {
  tarn__vec sum = {0};
#define STEP(i, n) \
  sum = tarn__vec_fma(tarn__vec_read_first(x, TARN__F32, i, n), tarn__vec_read_first(y, TARN__F32, i, n), sum)
  TARN__VEC_EACH(0, n, STEP);
#undef STEP
  return tarn__vec_sum_lanes(sum)[0];
}

// `count` registers of columns from column j on, the last of which has `last` numbers.
TARN__VEC_INLINE void add_columns(float *sums, const float *rows, const float *factors, int64_t number, int64_t n,
                                  int64_t j, int count, int64_t last) {
  tarn__vec sum[SUMS] = {{0}};
  for (int64_t r = 0; r < number; r++) {
    const float factor = factors ? factors[r] : 1.0f;
    for (int c = 0; c < count; c++)
      sum[c] = tarn__vec_axpy(
          factor, tarn__vec_read_first(rows + r * n, TARN__F32, j + c * LANES, c < count - 1 ? LANES : last), sum[c]);
  }
  for (int c = 0; c < count; c++)
    tarn__vec_write_first(sums, TARN__F32, j + c * LANES, sum[c], c < count - 1 ? LANES : last);
}

static void add_rows(float *sums, const float *rows, const float *factors, int64_t count, int64_t n) {
  int64_t j = 0;
  for (; j + SUMS * LANES <= n; j += SUMS * LANES) add_columns(sums, rows, factors, count, n, j, SUMS, LANES);
  for (; j + LANES <= n; j += LANES) add_columns(sums, rows, factors, count, n, j, 1, LANES);
  if (j < n) add_columns(sums, rows, factors, count, n, j, 1, n - j);
}

static void finish_dx(float *dx, const float *sums, const float *table, const float *table_sums, const float factors[3],
                      int64_t n) {
  const tarn__vec factor = tarn__vec_all(factors[0]), wanted = tarn__vec_all(factors[1]);
  const tarn__vec offset = tarn__vec_all(-factors[2]);
#define STEP(i, n)                                                                                   \
  do {                                                                                               \
    tarn__vec v = factor * tarn__vec_read_first(sums, TARN__F32, i, n);                              \
    v = tarn__vec_fma(wanted, tarn__vec_read_first(table, TARN__F32, i, n), v);                      \
    if (table_sums) v = tarn__vec_fma(offset, tarn__vec_read_first(table_sums, TARN__F32, i, n), v); \
    tarn__vec_write_first(dx, TARN__F32, i, v, n);                                                   \
  } while (0)
  TARN__VEC_EACH(0, n, STEP);
#undef STEP
}

const tarn__output_blocks_kernels TARN__FAST(tarn__output_blocks_kernels) = {
    .weigh = weigh, .largest = largest, .dot = dot, .add_rows = add_rows, .finish_dx = finish_dx};
