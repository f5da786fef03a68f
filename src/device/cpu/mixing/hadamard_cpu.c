// Fast Walsh-Hadamard transforms of rows in L1. The stages of H commute, so a round that ends with the stages of near
// elements is followed by one that begins with them: in the three rounds,
//   1: far, near   2: near, far   3: far, near
// each pair "near, near" and "far, far" is one pass over the row, with the signs between them applied in registers.
#include <math.h>

#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/mixing/hadamard_kernels.h"
#include "ops/hadamard.h"

typedef tarn__vec vec;

// A pass over near elements holds NEAR registers, SPAN consecutive floats; one over far elements holds 2, 4 or 8.
enum { LANES = TARN__VEC_LANES, NEAR = 8, SPAN = NEAR * LANES, FARS = 20 };

TARN__VEC_INLINE void pair(vec *a, vec *b) {
  vec difference = *a - *b;
  *a += *b;
  *b = difference;
}

// The transform across 2, 4 or 8 registers.
TARN__VEC_INLINE void across(vec *v, int count) {
#pragma GCC unroll 4
  for (int i = 0; count > 4 && i < 4; i++) pair(&v[i], &v[i + 4]);
#pragma GCC unroll 4
  for (int i = 0; count > 2 && i < count; i += 4) {
    pair(&v[i], &v[i + 2]);
    pair(&v[i + 1], &v[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < count; i += 2) pair(&v[i], &v[i + 1]);
}

// Lane i is -1 if bit h of i is 1, else 1.
TARN__VEC_INLINE vec signs_of(int h) {
  vec sign = {0};
#pragma GCC unroll 16
  for (int i = 0; i < LANES; i++) sign[i] = i & h ? -1.0f : 1.0f;
  return sign;
}

// The stage of distance h within a register: lane i becomes v[i ^ h] + v[i] if bit h of i is 0, else v[i ^ h] - v[i].
#if TARN__VEC_LANES >= 16
TARN__VEC_INLINE vec stage_8(vec v) { return tarn__vec_fma(v, signs_of(8), TARN__VEC_TURN_8(v)); }
#endif
#if TARN__VEC_LANES >= 8
TARN__VEC_INLINE vec stage_4(vec v) { return tarn__vec_fma(v, signs_of(4), TARN__VEC_TURN_4(v)); }
#endif
TARN__VEC_INLINE vec stage_2(vec v) { return tarn__vec_fma(v, signs_of(2), TARN__VEC_TURN_2(v)); }
TARN__VEC_INLINE vec stage_1(vec v) { return tarn__vec_fma(v, signs_of(1), TARN__VEC_TURN_1(v)); }

// All stages of a span, each applied to all registers: the processor's out-of-order window is too short to overlap the
// registers if each went through all stages first.
TARN__VEC_INLINE void near_stages(vec *v) {
#if TARN__VEC_LANES >= 16
#pragma GCC unroll 8
  for (int k = 0; k < NEAR; k++) v[k] = stage_8(v[k]);
#endif
#if TARN__VEC_LANES >= 8
#pragma GCC unroll 8
  for (int k = 0; k < NEAR; k++) v[k] = stage_4(v[k]);
#endif
#pragma GCC unroll 8
  for (int k = 0; k < NEAR; k++) v[k] = stage_2(v[k]);
#pragma GCC unroll 8
  for (int k = 0; k < NEAR; k++) v[k] = stage_1(v[k]);
  across(v, NEAR);
}

// The operation with which a transformed row is stored: elements `at` .. of `to` become act(scale * signs * x + add).
// signs and add may be NULL; add may be the destination.
typedef struct finish {
  const float *signs, *add;
  void *to;
  int64_t at;
  tarn__dtype dtype;
  float scale;
  bool relu;
} finish;

// The near stages of two rounds, with signs between them.
static void near_twice(float *x, const float *signs, int64_t n) {
  for (int64_t i = 0; i < n; i += SPAN) {
    vec v[NEAR];
#pragma GCC unroll 8
    for (int k = 0; k < NEAR; k++) v[k] = tarn__vec_load(x + i + k * LANES);
    near_stages(v);
#pragma GCC unroll 8
    for (int k = 0; k < NEAR; k++) v[k] *= tarn__vec_load(signs + i + k * LANES);
    near_stages(v);
#pragma GCC unroll 8
    for (int k = 0; k < NEAR; k++) tarn__vec_store(x + i + k * LANES, v[k]);
  }
}

TARN__VEC_INLINE void near_last_of(const float *x, int64_t n, const finish *last, tarn__dtype dtype) {
  const vec scale = tarn__vec_all(last->scale);
  for (int64_t i = 0; i < n; i += SPAN) {
    vec v[NEAR];
#pragma GCC unroll 8
    for (int k = 0; k < NEAR; k++) v[k] = tarn__vec_load(x + i + k * LANES);
    near_stages(v);
#pragma GCC unroll 8
    for (int k = 0; k < NEAR; k++) {
      if (last->signs) v[k] *= tarn__vec_load(last->signs + i + k * LANES);
      v[k] *= scale;
      if (last->add) v[k] += tarn__vec_load(last->add + i + k * LANES);
      if (last->relu) v[k] = tarn__vec_max((vec){0}, v[k]);
      tarn__vec_write(last->to, dtype, last->at + i + k * LANES, v[k]);
    }
  }
}

static void near_last(const float *x, int64_t n, const finish *last) {
  if (last->dtype == TARN__F32)
    near_last_of(x, n, last, TARN__F32);
  else
    near_last_of(x, n, last, TARN__BF16);
}

// How a pass over far elements applies signs.
typedef enum far_kind { FAR_PLAIN, FAR_SIGNED, FAR_TWICE } far_kind;

// The stages of distance h, 2 h .. (count / 2) h: plain, with signs before them, or twice with signs between.
TARN__VEC_INLINE void far_of(float *to, const float *x, const float *signs, int64_t n, int64_t h, int count,
                             far_kind kind) {
  for (int64_t g = 0; g < n; g += count * h)
    for (int64_t i = g; i < g + h; i += LANES) {
      vec v[NEAR];
#pragma GCC unroll 8
      for (int k = 0; k < count; k++) {
        v[k] = tarn__vec_load(x + i + k * h);
        if (kind == FAR_SIGNED) v[k] *= tarn__vec_load(signs + i + k * h);
      }
      across(v, count);
#pragma GCC unroll 8
      for (int k = 0; kind == FAR_TWICE && k < count; k++) v[k] *= tarn__vec_load(signs + i + k * h);
      if (kind == FAR_TWICE) across(v, count);
#pragma GCC unroll 8
      for (int k = 0; k < count; k++) tarn__vec_store(to + i + k * h, v[k]);
    }
}

TARN__VEC_INLINE void far_counted(float *to, const float *x, const float *signs, int64_t n, int64_t h, int count,
                                  far_kind kind) {
  if (count == 8)
    far_of(to, x, signs, n, h, 8, kind);
  else if (count == 4)
    far_of(to, x, signs, n, h, 4, kind);
  else
    far_of(to, x, signs, n, h, 2, kind);
}

static void far_pass(float *to, const float *x, const float *signs, int64_t n, int64_t h, int count, far_kind kind) {
  if (kind == FAR_PLAIN)
    far_counted(to, x, signs, n, h, count, FAR_PLAIN);
  else if (kind == FAR_SIGNED)
    far_counted(to, x, signs, n, h, count, FAR_SIGNED);
  else
    far_counted(to, x, signs, n, h, count, FAR_TWICE);
}

// The passes over far elements of a width n.
typedef struct passes {
  int64_t distance[FARS];
  int registers[FARS];
  int count;
} passes;

static passes passes_of(int64_t n) {
  passes p = {.count = 0};
  for (int64_t h = SPAN; h < n; h *= p.registers[p.count++]) {
    p.distance[p.count] = h;
    p.registers[p.count] = n / h >= 8 ? 8 : (int)(n / h);
  }
  return p;
}

// The three rounds for a power of two of at least 2 SPAN, from `from` through `work` to the destination of `last`.
static void rotate_fast(float *work, const float *from, const float *signs, int64_t n, bool transposed,
                        const passes *far, finish last) {
  const float *between[2] = {signs + (transposed ? 2 : 1) * n, signs + (transposed ? 1 : 2) * n};
  int top = far->count - 1;
  for (int p = 0; p <= top; p++)
    far_pass(work, p == 0 ? from : work, signs, n, far->distance[p], far->registers[p],
             p == 0 && !transposed ? FAR_SIGNED : FAR_PLAIN);
  near_twice(work, between[0], n);
  for (int p = 0; p < top; p++) far_pass(work, work, NULL, n, far->distance[p], far->registers[p], FAR_PLAIN);
  far_pass(work, work, between[1], n, far->distance[top], far->registers[top], FAR_TWICE);
  for (int p = top - 1; p >= 0; p--) far_pass(work, work, NULL, n, far->distance[p], far->registers[p], FAR_PLAIN);
  last.signs = transposed ? signs : NULL;
  near_last(work, n, &last);
}

// x = scale * H x in place, n any power of two.
static void transform(float *x, int64_t n, float scale) {
  if (n >= SPAN) {
    passes far = passes_of(n);
    for (int p = 0; p < far.count; p++) far_pass(x, x, NULL, n, far.distance[p], far.registers[p], FAR_PLAIN);
    near_last(x, n, &(finish){.to = x, .dtype = TARN__F32, .scale = scale});
    return;
  }
  for (int64_t h = 1; h < n; h *= 2)
    for (int64_t g = 0; g < n; g += 2 * h)
#pragma omp simd
      for (int64_t i = g; i < g + h; i++) {
        float a = x[i], b = x[i + h];
        x[i] = a + b;
        x[i + h] = a - b;
      }
  tarn__row_scale(x, scale, n);
}

static void flip(float *x, const float *signs, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) x[i] *= signs[i];
}

// The rounds for any width in place.
static void rotate_any(float *x, const float *signs, const tarn__hadamard_shape *shape, bool transposed) {
  int64_t n = shape->width;
  float scale = 1.0f / sqrtf((float)shape->window);
  for (int step = 0; step < shape->rounds; step++) {
    int round = transposed ? shape->rounds - 1 - step : step;
    if (!transposed) flip(x, signs + round * n, n);
    transform(x + tarn__hadamard_start(shape, round), shape->window, scale);
    if (transposed) flip(x, signs + round * n, n);
  }
}

// One transform of a row: from [from_count] to to_count elements at the destination of `last`.
static void rotate(float *work, const float *from, int64_t from_count, int64_t to_count, const float *signs,
                   const tarn__hadamard_shape *shape, bool transposed, const passes *far, finish last) {
  int64_t n = shape->width;
  if (far->count > 0 && from_count == n && to_count == n) {
    last.scale = (float)(last.scale / ((double)n * sqrt((double)n)));
    rotate_fast(work, from, signs, n, transposed, far, last);
    return;
  }
  memcpy(work, from, (size_t)from_count * sizeof *work);
  memset(work + from_count, 0, (size_t)(n - from_count) * sizeof *work);
  rotate_any(work, signs, shape, transposed);
#pragma omp simd
  for (int64_t i = 0; i < to_count; i++) {
    float value = last.add ? tarn__fma(work[i], last.scale, last.add[i]) : work[i] * last.scale;
    work[i] = last.relu && value < 0.0f ? 0.0f : value;
  }
  tarn__row_write(last.to, last.dtype, last.at, to_count, work);
}

static void run_row(const tarn__hadamard_job *job, const float *from, const float *start, int64_t r, const passes *far,
                    float *work, float *sum) {
  const tarn__hadamard_shape *shape = &job->shape;
  bool back = job->transposed;
  tarn__hadamard_cut cut = tarn__hadamard_cut_of(shape, back);
  for (int64_t region = 0; region < cut.regions; region++)
    for (int64_t term = 0; term < cut.terms; term++) {
      int64_t t = tarn__hadamard_transform_of(shape, back, region, term);
      tarn__hadamard_ends ends = tarn__hadamard_ends_of(shape, t);
      int64_t from_at = back ? ends.out_at : ends.in_at, to_at = back ? ends.in_at : ends.out_at;
      finish last = {.add = term > 0 ? sum : start ? start + to_at : NULL, .to = sum, .dtype = TARN__F32};
      last.scale = (float)shape->scale;
      if (term + 1 == cut.terms) {
        last.to = job->to;
        last.at = r * job->to_cols + to_at;
        last.dtype = job->dtype;
        last.relu = job->relu;
      }
      rotate(work, from + from_at, back ? ends.out_count : ends.in_count, back ? ends.in_count : ends.out_count,
             job->signs + tarn__hadamard_signs_at(shape, t), shape, back, far, last);
    }
}

// n floats of a row of `from`, 0 where `mask` is not above 0.
static void read_masked(float *out, const void *from, const void *mask, tarn__dtype dtype, int64_t at, int64_t n) {
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    vec x = tarn__vec_read(from, dtype, at + i);
    tarn__vec_store(out + i, tarn__vec_select(tarn__vec_read(mask, dtype, at + i) > 0.0f, x, (vec){0}));
  }
  for (; i < n; i++) {
    float x, m;
    tarn__row_copy(&x, from, dtype, at + i, 1);
    tarn__row_copy(&m, mask, dtype, at + i, 1);
    out[i] = m > 0.0f ? x : 0.0f;
  }
}

static void run(const tarn__hadamard_job *job, int64_t first, int64_t last, float *scratch) {
  int64_t from_cols = job->from_cols, to_cols = job->to_cols, n = job->shape.width;
  int64_t longest = from_cols > to_cols ? from_cols : to_cols;
  float *work = scratch, *input = work + tarn__row_floats(n), *sum = input + tarn__row_floats(longest);
  float *so_far = sum + tarn__row_floats(longest);
  passes far = {.count = 0};
  if (job->shape.window == n) far = passes_of(n);
  for (int64_t r = first; r < last; r++) {
    const float *from = input, *start = job->bias;
    if (job->mask)
      read_masked(input, job->from, job->mask, job->dtype, r * from_cols, from_cols);
    else
      from = tarn__row_read(job->from, job->dtype, r * from_cols, from_cols, input);
    if (job->accumulate) start = tarn__row_read(job->to, job->dtype, r * to_cols, to_cols, so_far);
    run_row(job, from, start, r, &far, work, sum);
  }
}

const tarn__hadamard_kernels TARN__FAST(tarn__hadamard_kernels) = {.run = run};
