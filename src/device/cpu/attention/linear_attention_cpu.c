// Fast kernels: each row in registers, so its bits depend only on itself. Sums run lane by lane over a row, or row by
// row over a band, in order.
#include "device/cpu/attention/linear_attention_kernels.h"

#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/vec_cpu.h"
#include "ops/feature_map.h"
#include "ops/linear_attention.h"

// Calls a function of bands that is compiled for both types of a band, so that the type is constant within its loops.
#define BY_DTYPE(dtype, call_f32, call_bf16) \
  do {                                       \
    if ((dtype) == TARN__F32)                \
      call_f32;                              \
    else                                     \
      call_bf16;                             \
  } while (0)

TARN__VEC_INLINE tarn__vec read(const tarn__band *b, tarn__dtype dtype, int64_t row, int64_t at, int64_t n) {
  return tarn__vec_read_first(b->data, dtype, row * b->step + at, n);
}

TARN__VEC_INLINE void write(const tarn__band *b, tarn__dtype dtype, int64_t row, int64_t at, tarn__vec v, int64_t n) {
  tarn__vec_write_first(b->data, dtype, row * b->step + at, v, n);
}

TARN__VEC_INLINE tarn__vec read_floats(const float *x, int64_t at, int64_t n) {
  return tarn__vec_read_first(x, TARN__F32, at, n);
}

TARN__VEC_INLINE float total(tarn__vec v) { return tarn__vec_sum_lanes(v)[0]; }

TARN__VEC_INLINE void dot_as(float *sums, const tarn__band *rows, const float *z, bool add, tarn__dtype dtype) {
  for (int64_t i = 0; i < rows->count; i++) {
    tarn__vec sum = {0};
#define STEP(j, n) sum = tarn__vec_fma(read(rows, dtype, i, j, n), read_floats(z, j, n), sum)
    TARN__VEC_EACH(0, rows->n, STEP);
#undef STEP
    sums[i] = (add ? sums[i] : 0.0f) + total(sum);
  }
}

static void dot(float *sums, tarn__band rows, const float *z, bool add) {
  BY_DTYPE(rows.dtype, dot_as(sums, &rows, z, add, TARN__F32), dot_as(sums, &rows, z, add, TARN__BF16));
}

TARN__VEC_INLINE void sum_as(float *to, const tarn__band *rows, const float *factors, bool add, tarn__dtype dtype) {
#define STEP(j, lanes)                                              \
  do {                                                              \
    tarn__vec sum = {0};                                            \
    if (add) sum = read_floats(to, j, lanes);                       \
    for (int64_t i = 0; i < rows->count; i++) {                     \
      const tarn__vec x = read(rows, dtype, i, j, lanes);           \
      sum = factors ? tarn__vec_axpy(factors[i], x, sum) : sum + x; \
    }                                                               \
    tarn__vec_write_first(to, TARN__F32, j, sum, lanes);            \
  } while (0)
  TARN__VEC_EACH(0, rows->n, STEP);
#undef STEP
}

static void sum(float *to, tarn__band rows, const float *factors, bool add) {
  BY_DTYPE(rows.dtype, sum_as(to, &rows, factors, add, TARN__F32), sum_as(to, &rows, factors, add, TARN__BF16));
}

TARN__VEC_INLINE void mask_as(const tarn__band *to, const tarn__band *from, const float *shifts, bool causal,
                              float *sums, tarn__dtype dtype) {
  for (int64_t i = 0; i < from->count; i++) {
    const tarn__vec shift = tarn__vec_all(shifts ? shifts[i] : 0.0f);
    const int64_t seen = causal ? i + 1 : from->n;
    tarn__vec all = {0};
#define STEP(j, n)                                                                                 \
  do {                                                                                             \
    const tarn__vec x = tarn__vec_first(read(from, TARN__F32, i, j, n) + shift, seen - (j), 0.0f); \
    write(to, dtype, i, j, x, n);                                                                  \
    all += x;                                                                                      \
  } while (0)
    TARN__VEC_EACH(0, from->n, STEP);
#undef STEP
    if (sums) sums[i] = total(all);
  }
}

static void mask(tarn__band to, tarn__band from, const float *shifts, bool causal, float *sums) {
  BY_DTYPE(to.dtype, mask_as(&to, &from, shifts, causal, sums, TARN__F32),
           mask_as(&to, &from, shifts, causal, sums, TARN__BF16));
}

TARN__VEC_INLINE void divide_as(const tarn__band *to, const tarn__band *from, const float *sums, int64_t sum_step,
                                tarn__dtype dtype, tarn__dtype from_dtype) {
  for (int64_t i = 0; i < to->count; i++) {
    const float factor = 1.0f / sums[i * sum_step];
#define STEP(j, n) write(to, dtype, i, j, read(from, from_dtype, i, j, n) * factor, n)
    TARN__VEC_EACH(0, to->n, STEP);
#undef STEP
  }
}

static void divide(tarn__band to, tarn__band from, const float *sums, int64_t sum_step) {
  if (from.dtype == TARN__BF16)
    divide_as(&to, &from, sums, sum_step, TARN__BF16, TARN__BF16);
  else
    BY_DTYPE(to.dtype, divide_as(&to, &from, sums, sum_step, TARN__F32, TARN__F32),
             divide_as(&to, &from, sums, sum_step, TARN__BF16, TARN__F32));
}

TARN__VEC_INLINE void shift_as(float *shifts, const tarn__band *a, const tarn__band *b, const float *sums,
                               int64_t sum_step, tarn__dtype dtype) {
  for (int64_t i = 0; i < a->count; i++) {
    tarn__vec all = {0};
#define STEP(j, n) all = tarn__vec_fma(read(a, dtype, i, j, n), read(b, dtype, i, j, n), all)
    TARN__VEC_EACH(0, a->n, STEP);
#undef STEP
    shifts[i] = -total(all) / sums[i * sum_step];
  }
}

static void shift(float *shifts, tarn__band a, tarn__band b, const float *sums, int64_t sum_step) {
  BY_DTYPE(a.dtype, shift_as(shifts, &a, &b, sums, sum_step, TARN__F32),
           shift_as(shifts, &a, &b, sums, sum_step, TARN__BF16));
}

TARN__VEC_INLINE void finish_as(const tarn__band *to, const tarn__band *from, const float *factors, const float *row,
                                bool add, tarn__dtype dtype) {
  for (int64_t i = 0; i < to->count; i++) {
    const float factor = factors ? factors[i] : 1.0f;
#define STEP(j, n)                                                  \
  do {                                                              \
    tarn__vec x = read(from, TARN__F32, i, j, n);                   \
    if (row) x = tarn__vec_axpy(factor, read_floats(row, j, n), x); \
    if (add) x += read(to, dtype, i, j, n);                         \
    write(to, dtype, i, j, x, n);                                   \
  } while (0)
    TARN__VEC_EACH(0, to->n, STEP);
#undef STEP
  }
}

static void finish(tarn__band to, tarn__band from, const float *factors, const float *row, bool add) {
  BY_DTYPE(to.dtype, finish_as(&to, &from, factors, row, add, TARN__F32),
           finish_as(&to, &from, factors, row, add, TARN__BF16));
}

TARN__VEC_INLINE float number(const void *data, tarn__dtype dtype, int64_t at) {
  return dtype == TARN__F32 ? ((const float *)data)[at] : tarn__bf16_to_f32(((const uint16_t *)data)[at]);
}

// A register of columns of the state, over all features.
TARN__VEC_INLINE tarn__vec step_columns(const void *q, const void *k, tarn__vec v, tarn__dtype dtype,
                                        const float *before, const float *factors, float *after, int64_t features,
                                        int64_t width, int64_t at, int64_t n) {
  tarn__vec y = {0};
  for (int64_t f = 0; f < features; f++) {
    tarn__vec state = {0};
    if (before) state = read_floats(before, f * width + at, n);
    if (factors) state *= factors[f];
    state = tarn__vec_axpy(number(k, dtype, f), v, state);
    tarn__vec_write_first(after, TARN__F32, f * width + at, state, n);
    y = tarn__vec_axpy(number(q, dtype, f), state, y);
  }
  return y;
}

TARN__VEC_INLINE void step_as(void *y, const void *q, const void *k, const void *v, tarn__dtype dtype,
                              const float *before, const float *factors, float *after, int64_t features,
                              int64_t width) {
  const int64_t z = features * width;
  tarn__vec all = {0};
#define STEP(j, n)                                                                                                    \
  do {                                                                                                                \
    tarn__vec state = tarn__vec_read_first(k, dtype, j, n);                                                           \
    if (before && factors) state = tarn__vec_fma(read_floats(before, z + (j), n), read_floats(factors, j, n), state); \
    if (before && !factors) state += read_floats(before, z + (j), n);                                                 \
    tarn__vec_write_first(after, TARN__F32, z + (j), state, n);                                                       \
    all = tarn__vec_fma(tarn__vec_read_first(q, dtype, j, n), state, all);                                            \
  } while (0)
  TARN__VEC_EACH(0, features, STEP);
#undef STEP
  const float sums = total(all);
  const float factor = 1.0f / (sums > TARN__LINEAR_ATTENTION_LEAST ? sums : TARN__LINEAR_ATTENTION_LEAST);
#define STEP(j, n)                                                                                                     \
  tarn__vec_write_first(                                                                                               \
      y, dtype, j,                                                                                                     \
      step_columns(q, k, tarn__vec_read_first(v, dtype, j, n), dtype, before, factors, after, features, width, j, n) * \
          factor,                                                                                                      \
      n)
  TARN__VEC_EACH(0, width, STEP);
#undef STEP
}

static void step(void *y, const void *q, const void *k, const void *v, tarn__dtype dtype, const float *before,
                 const float *factors, float *after, int64_t features, int64_t width) {
  BY_DTYPE(dtype, step_as(y, q, k, v, TARN__F32, before, factors, after, features, width),
           step_as(y, q, k, v, TARN__BF16, before, factors, after, features, width));
}

TARN__VEC_INLINE tarn__vec exp_of(tarn__vec x) { return tarn__vec_exp2(x * 1.44269504088896341f); }

TARN__VEC_INLINE void elu_as(const tarn__band *to, const tarn__band *from, tarn__dtype dtype) {
  for (int64_t i = 0; i < to->count; i++) {
#define STEP(j, n)                                                                                         \
  do {                                                                                                     \
    const tarn__vec x = read(from, dtype, i, j, n);                                                        \
    write(to, dtype, i, j,                                                                                 \
          tarn__vec_select(x > 0.0f, x + 1.0f, exp_of(tarn__vec_select(x > 0.0f, (tarn__vec){0}, x))), n); \
  } while (0)
    TARN__VEC_EACH(0, to->n, STEP);
#undef STEP
  }
}

static void elu(tarn__band to, tarn__band from) {
  BY_DTYPE(to.dtype, elu_as(&to, &from, TARN__F32), elu_as(&to, &from, TARN__BF16));
}

TARN__VEC_INLINE void elu_back_as(const tarn__band *to, const tarn__band *phi, const tarn__band *dphi, bool add,
                                  tarn__dtype dtype) {
  for (int64_t i = 0; i < to->count; i++) {
#define STEP(j, n)                                                                  \
  do {                                                                              \
    const tarn__vec y = read(phi, dtype, i, j, n), dy = read(dphi, dtype, i, j, n); \
    tarn__vec x = tarn__vec_select(y > 1.0f, dy, dy * y);                           \
    if (add) x += read(to, dtype, i, j, n);                                         \
    write(to, dtype, i, j, x, n);                                                   \
  } while (0)
    TARN__VEC_EACH(0, to->n, STEP);
#undef STEP
  }
}

static void elu_back(tarn__band to, tarn__band phi, tarn__band dphi, bool add) {
  BY_DTYPE(to.dtype, elu_back_as(&to, &phi, &dphi, add, TARN__F32), elu_back_as(&to, &phi, &dphi, add, TARN__BF16));
}

TARN__VEC_INLINE void exponents_as(const tarn__band *to, const tarn__band *products, const tarn__band *x, float scale,
                                   bool query, tarn__dtype dtype) {
  for (int64_t i = 0; i < to->count; i++) {
    tarn__vec square = {0};
#define STEP(j, n)                                       \
  do {                                                   \
    const tarn__vec u = read(x, dtype, i, j, n) * scale; \
    square = tarn__vec_fma(u, u, square);                \
  } while (0)
    if (!query) TARN__VEC_EACH(0, x->n, STEP);
#undef STEP
    const tarn__vec less = tarn__vec_all(-0.5f * total(square));
#define STEP(j, n) write(to, TARN__F32, i, j, tarn__vec_axpy(scale, read(products, TARN__F32, i, j, n), less), n)
    TARN__VEC_EACH(0, to->n, STEP);
#undef STEP
  }
}

static void exponents(tarn__band to, tarn__band products, tarn__band x, float scale, bool query) {
  BY_DTYPE(x.dtype, exponents_as(&to, &products, &x, scale, query, TARN__F32),
           exponents_as(&to, &products, &x, scale, query, TARN__BF16));
}

static void highest(float *levels, tarn__band rows, bool add) {
#define STEP(j, lanes)                                                                                        \
  do {                                                                                                        \
    tarn__vec most = add ? read_floats(levels, j, lanes) : tarn__vec_all(-INFINITY);                          \
    for (int64_t i = 0; i < rows.count; i++) most = tarn__vec_max(most, read(&rows, TARN__F32, i, j, lanes)); \
    tarn__vec_write_first(levels, TARN__F32, j, most, lanes);                                                 \
  } while (0)
  TARN__VEC_EACH(0, rows.n, STEP);
#undef STEP
}

static int64_t below(tarn__band rows, const float *levels, float most) {
  for (int64_t i = 0; i < rows.count; i++) {
    tarn__vec far = tarn__vec_all(-INFINITY);
#define STEP(j, lanes) \
  far = tarn__vec_max( \
      far, tarn__vec_first(read(&rows, TARN__F32, i, j, lanes) - read_floats(levels, j, lanes), lanes, -INFINITY))
    TARN__VEC_EACH(0, rows.n, STEP);
#undef STEP
    if (tarn__vec_max_lane(far)[0] > most) return i;
  }
  return rows.count;
}

TARN__VEC_INLINE void raise_as(const tarn__band *to, const tarn__band *e, const float *levels, bool query,
                               tarn__dtype dtype) {
  for (int64_t i = 0; i < e->count; i++) {
    tarn__vec most = tarn__vec_all(-INFINITY);
#define STEP(j, n) \
  most = tarn__vec_max(most, tarn__vec_first(read(e, TARN__F32, i, j, n) + read_floats(levels, j, n), n, -INFINITY))
    if (query) TARN__VEC_EACH(0, e->n, STEP);
#undef STEP
    const float less = query ? tarn__vec_max_lane(most)[0] : 0.0f;
#define STEP(j, n)                                                                      \
  do {                                                                                  \
    const tarn__vec x = read(e, TARN__F32, i, j, n), level = read_floats(levels, j, n); \
    write(to, dtype, i, j, exp_of(query ? x + level - less : x - level), n);            \
  } while (0)
    TARN__VEC_EACH(0, e->n, STEP);
#undef STEP
  }
}

static void raise_features(tarn__band to, tarn__band e, const float *levels, bool query) {
  BY_DTYPE(to.dtype, raise_as(&to, &e, levels, query, TARN__F32), raise_as(&to, &e, levels, query, TARN__BF16));
}

TARN__VEC_INLINE void weigh_as(const tarn__band *to, const tarn__band *from, const float *factors, const float *row,
                               const tarn__band *by, tarn__dtype dtype) {
  for (int64_t i = 0; i < to->count; i++) {
    const float factor = factors ? factors[i] : 1.0f;
#define STEP(j, n)                                                  \
  do {                                                              \
    tarn__vec x = read(from, TARN__F32, i, j, n);                   \
    if (row) x = tarn__vec_axpy(factor, read_floats(row, j, n), x); \
    write(to, TARN__F32, i, j, x *read(by, dtype, i, j, n), n);     \
  } while (0)
    TARN__VEC_EACH(0, to->n, STEP);
#undef STEP
  }
}

static void weigh(tarn__band to, tarn__band from, const float *factors, const float *row, tarn__band by) {
  BY_DTYPE(by.dtype, weigh_as(&to, &from, factors, row, &by, TARN__F32),
           weigh_as(&to, &from, factors, row, &by, TARN__BF16));
}

static void lift(float *factors, const float *to, const float *from, int64_t n) {
#define STEP(j, lanes)                                                                                    \
  do {                                                                                                    \
    const tarn__vec far = read_floats(from, j, lanes) - read_floats(to, j, lanes);                        \
    tarn__vec_write_first(factors, TARN__F32, j, exp_of(tarn__vec_select(far > 0.0f, -far, far)), lanes); \
  } while (0)
  TARN__VEC_EACH(0, n, STEP);
#undef STEP
}

TARN__VEC_INLINE void pull_as(const tarn__band *to, const tarn__band *products, const float *sums, const tarn__band *x,
                              float scale, bool add, tarn__dtype dtype) {
  for (int64_t i = 0; i < to->count; i++) {
    const float factor = sums ? -sums[i] * scale : 0.0f;
#define STEP(j, n)                                                                                             \
  do {                                                                                                         \
    tarn__vec d = tarn__vec_axpy(factor, read(x, dtype, i, j, n), read(products, TARN__F32, i, j, n)) * scale; \
    if (add) d += read(to, dtype, i, j, n);                                                                    \
    write(to, dtype, i, j, d, n);                                                                              \
  } while (0)
    TARN__VEC_EACH(0, to->n, STEP);
#undef STEP
  }
}

static void pull(tarn__band to, tarn__band products, const float *sums, tarn__band x, float scale, bool add) {
  BY_DTYPE(to.dtype, pull_as(&to, &products, sums, &x, scale, add, TARN__F32),
           pull_as(&to, &products, sums, &x, scale, add, TARN__BF16));
}

static void push(tarn__band to, tarn__band products, tarn__band x, tarn__band dx, float scale, bool query) {
  for (int64_t i = 0; i < to.count; i++) {
    tarn__vec all = {0};
#define STEP(j, n) all = tarn__vec_fma(read(&x, TARN__F32, i, j, n), read(&dx, TARN__F32, i, j, n), all)
    if (!query) TARN__VEC_EACH(0, x.n, STEP);
#undef STEP
    const tarn__vec less = tarn__vec_all(scale * total(all));
#define STEP(j, n) write(&to, TARN__F32, i, j, (read(&products, TARN__F32, i, j, n) - less) * scale, n)
    TARN__VEC_EACH(0, to.n, STEP);
#undef STEP
  }
}

static void divide_moved(tarn__band to, tarn__band from, tarn__band y, const float *moved, const float *sums,
                         int64_t sum_step) {
  for (int64_t i = 0; i < to.count; i++) {
    const float factor = 1.0f / sums[i * sum_step], of_sum = -moved[i];
#define STEP(j, n)            \
  write(&to, TARN__F32, i, j, \
        tarn__vec_axpy(of_sum, read(&y, TARN__F32, i, j, n), read(&from, TARN__F32, i, j, n)) * factor, n)
    TARN__VEC_EACH(0, to.n, STEP);
#undef STEP
  }
}

const tarn__linear_attention_kernels TARN__FAST(tarn__linear_attention_kernels) = {
    dot,       sum,     mask,  divide,         shift, finish, step, elu,  elu_back,
    exponents, highest, below, raise_features, weigh, lift,   pull, push, divide_moved};
