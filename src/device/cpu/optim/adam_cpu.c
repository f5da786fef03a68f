#include <math.h>
#include <string.h>

#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/vec_double_cpu.h"
#include "device/cpu/optim/adam_kernels.h"
#include "optim/moments.h"

enum { PIECE = 512 };  // elements that stay in L1 with all their arrays
_Static_assert(PIECE % TARN__DROPOUT_CHUNK == 0, "the random numbers of a piece fit into an array of its size");
_Static_assert(PIECE % TARN__MOMENT_BLOCK == 0, "a piece has whole blocks of moments in F8");

static inline __attribute__((always_inline)) void step_with(float *restrict master, float *restrict moment1,
                                                            float *restrict moment2, const float *restrict grad,
                                                            bool zero, int64_t n, const tarn__adam_floats *factors) {
  const tarn__adam_floats f = *factors;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    float w = master[i];
    float g =
        zero ? tarn__fma(w, f.decay_gradient, 0.0f * f.gradient) : tarn__fma(grad[i], f.gradient, w * f.decay_gradient);
    float m = tarn__fma(g - moment1[i], f.beta1_rest, moment1[i]);
    float v = tarn__fma(moment2[i], f.beta2, g * g * f.beta2_rest);
    moment1[i] = m;
    moment2[i] = v;
    float change = f.step_size * (m / tarn__fma(sqrtf(v), f.inverse_correction2, f.epsilon));
    master[i] = tarn__fma(w, f.keep_weight, -change);
  }
}

static void step_floats(const tarn__adam_piece *p, float *moment1, float *moment2, int64_t at, int64_t n,
                        const tarn__adam_floats *factors) {
  p->grad != NULL ? step_with(p->master + at, moment1, moment2, p->grad + at, false, n, factors)
                  : step_with(p->master + at, moment1, moment2, p->master, true, n, factors);
}

// tarn__moment_round() of n values, in a vectorisable form.
static void store_rounded(uint16_t *restrict out, const float *restrict in, const uint16_t *restrict numbers,
                          int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const uint32_t bits = tarn__row_float_to_bits(in[i]), sum = bits + numbers[i];
    out[i] = (uint16_t)(((bits & 0x7FFFFFFFu) > 0x7F800000u ? bits | 0x400000u : sum) >> 16);
  }
}

static void step_rounded(const tarn__adam_piece *p, int64_t at, int64_t n, const tarn__adam_floats *factors) {
  TARN__ROW_ALIGNED float moment1[PIECE], moment2[PIECE];
  TARN__ROW_ALIGNED uint16_t all[PIECE];
  uint16_t *numbers = all + at % TARN__DROPOUT_BLOCK;
  tarn__row_from_bf16(moment1, (const uint16_t *)p->moment1 + at, n);
  tarn__row_from_bf16(moment2, (const uint16_t *)p->moment2 + at, n);
  step_floats(p, moment1, moment2, at, n, factors);
  tarn__dropout_numbers(all, &p->stream, p->number, 0, (p->before + at) / TARN__DROPOUT_BLOCK,
                        at % TARN__DROPOUT_BLOCK + n);
  store_rounded((uint16_t *)p->moment1 + at, moment1, numbers, n);
  for (int64_t i = 0; i < n; i++) numbers[i] = tarn__moment_second(numbers[i]);
  store_rounded((uint16_t *)p->moment2 + at, moment2, numbers, n);
}

// --- moments in F8

static uint32_t largest_of(const float *x, int64_t n) {
  uint32_t largest = 0;
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < n; i++) {
    const uint32_t bits = tarn__row_float_to_bits(x[i]) & 0x7FFFFFFFu;
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

static void load_block(float *restrict moment1, float *restrict moment2, const tarn__moment_block *block1,
                       const tarn__moment_block *block2, int64_t n) {
  const uint8_t *restrict codes1 = block1->codes, *restrict codes2 = block2->codes;
  const float unit1 = block1->unit, unit2 = block2->unit;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) moment1[i] = tarn__moment_value1(codes1[i], unit1);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) moment2[i] = tarn__moment_value2(codes2[i], unit2);
}

static void store_block(tarn__moment_block *block1, tarn__moment_block *block2, const float *restrict moment1,
                        const float *restrict moment2, const uint16_t *restrict numbers, int64_t n) {
  uint8_t *restrict codes1 = block1->codes, *restrict codes2 = block2->codes;
  const float unit1 = tarn__moment_unit_of(largest_of(moment1, n), TARN__MOMENT_SPAN1);
  const float unit2 = tarn__moment_unit_of(largest_of(moment2, n), TARN__MOMENT_SPAN2);
  block1->unit = unit1;
  block2->unit = unit2;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) codes1[i] = tarn__moment_code1(moment1[i], unit1, numbers[i]);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) codes2[i] = tarn__moment_code2(moment2[i], unit2, numbers[i]);
}

// The gradient of elements of several rows, of which some are not used: those are zero.
static void take_used(float *grad, const tarn__adam_piece *p, int64_t at, int64_t n) {
  for (int64_t i = 0; i < n;) {
    const int64_t row = (at + i) / p->cols, left = (row + 1) * p->cols - (at + i), now = left < n - i ? left : n - i;
    if (p->used_rows[row])
      memcpy(grad + i, p->grad + at + i, (size_t)now * sizeof *grad);
    else
      memset(grad + i, 0, (size_t)now * sizeof *grad);
    i += now;
  }
}

static void step_blocks(const tarn__adam_piece *p, int64_t at, int64_t n, const tarn__adam_floats *factors) {
  enum { BLOCK = TARN__MOMENT_BLOCK };
  TARN__ROW_ALIGNED float moment1[BLOCK], moment2[BLOCK], grad[BLOCK];
  TARN__ROW_ALIGNED uint16_t numbers[PIECE];
  tarn__dropout_numbers(numbers, &p->stream, p->number, 0, (p->before + at) / TARN__DROPOUT_BLOCK, n);
  for (int64_t first = 0; first < n; first += BLOCK) {
    const int64_t i = at + first, count = n - first < BLOCK ? n - first : BLOCK;
    tarn__moment_block *block1 = (tarn__moment_block *)p->moment1 + i / BLOCK;
    tarn__moment_block *block2 = (tarn__moment_block *)p->moment2 + i / BLOCK;
    if (p->used_rows) take_used(grad, p, i, count);
    load_block(moment1, moment2, block1, block2, count);
    if (p->used_rows)
      step_with(p->master + i, moment1, moment2, grad, false, count, factors);
    else
      step_floats(p, moment1, moment2, i, count, factors);
    store_block(block1, block2, moment1, moment2, numbers + first, count);
  }
}

// Pieces begin at multiples of their size, so that none needs numbers for more elements than that.
static void step(const tarn__adam_piece *p, const tarn__adam_floats *factors) {
  for (int64_t at = p->first, end; at < p->end; at = end) {
    end = (at / PIECE + 1) * PIECE < p->end ? (at / PIECE + 1) * PIECE : p->end;
    if (p->moments == TARN__MOMENTS_BF16)
      step_rounded(p, at, end - at, factors);
    else if (p->moments == TARN__MOMENTS_F8)
      step_blocks(p, at, end - at, factors);
    else
      step_floats(p, (float *)p->moment1 + at, (float *)p->moment2 + at, at, end - at, factors);
    if (p->value != NULL) tarn__row_to_bf16(p->value + at, p->master + at, end - at);
  }
}

static double squares(const float *x, int64_t n) { return tarn__vec_double_dot(x, x, n); }

const tarn__adam_kernels TARN__FAST(tarn__adam_kernels) = {.step = step, .squares = squares};
