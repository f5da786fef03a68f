// What is done with complete sums of bf16 products for matrix tiles: two registers of a row, which go to C. For files
// NAME_amx.c.
#ifndef TARN_DEVICE_CPU_GEMM_GEMM_FINISH_AMX_H
#define TARN_DEVICE_CPU_GEMM_GEMM_FINISH_AMX_H

#include <immintrin.h>
#include <math.h>

#include "device/cpu/gemm/gemm_tiles.h"

// The forms for which compilers generate specialised code.
typedef enum tarn__tiles_result {
  TARN__TILES_NOTHING,
  TARN__TILES_NARROW,
  TARN__TILES_NARROW_ADDED,
  TARN__TILES_WIDE,
  TARN__TILES_WIDE_ADDED
} tarn__tiles_result;

static inline tarn__tiles_result tarn__tiles_result_of(const tarn__tiles_finish *f) {
  if (!f) return TARN__TILES_NOTHING;
  if (f->c_dtype == TARN__BF16) return f->accumulate ? TARN__TILES_NARROW_ADDED : TARN__TILES_NARROW;
  return f->accumulate ? TARN__TILES_WIDE_ADDED : TARN__TILES_WIDE;
}

// What the rows of a panel have in common.
typedef struct tarn__tiles_columns {
  __m512 bias[2];
  __m512 least;  // smaller values are replaced by this one
  __mmask16 here[2];
} tarn__tiles_columns;

// Columns [column, column + 32) of `all`.
static inline __attribute__((always_inline)) tarn__tiles_columns tarn__tiles_columns_of(const tarn__tiles_finish *f,
                                                                                        int64_t column, int64_t all) {
  tarn__tiles_columns s = {.least = _mm512_set1_ps(f->relu ? 0.0f : -INFINITY)};
  for (int64_t half = 0; half < 2; half++) {
    const int64_t first = column + 16 * half, left = all - first;
    s.here[half] = left >= 16 ? 0xFFFF : left <= 0 ? 0 : (__mmask16)((1u << left) - 1);
    // A zero that changes no sum.
    s.bias[half] = _mm512_set1_ps(-0.0f);
    if (f->bias && left > 0) s.bias[half] = _mm512_maskz_loadu_ps(s.here[half], f->bias + first);
  }
  return s;
}

static inline __attribute__((always_inline)) __m512 tarn__tiles_widened(__m256i v) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
}

static inline __attribute__((always_inline)) void tarn__tiles_finish_row(const tarn__tiles_columns *s, __m512 low,
                                                                         __m512 high, char *c,
                                                                         tarn__tiles_result form) {
  __m512 v[2] = {low, high};
  for (int half = 0; half < 2; half++) {
    v[half] = _mm512_add_ps(v[half], s->bias[half]);
    if (form == TARN__TILES_NARROW_ADDED)
      v[half] = _mm512_add_ps(v[half], tarn__tiles_widened(_mm256_maskz_loadu_epi16(s->here[half], c + 32 * half)));
    if (form == TARN__TILES_WIDE_ADDED)
      v[half] = _mm512_add_ps(v[half], _mm512_maskz_loadu_ps(s->here[half], c + 64 * half));
    // Keeps NaN.
    v[half] = _mm512_mask_mov_ps(v[half], _mm512_cmp_ps_mask(v[half], s->least, _CMP_LT_OQ), s->least);
  }
  if (form == TARN__TILES_NARROW || form == TARN__TILES_NARROW_ADDED) {
    const __mmask32 here = (__mmask32)s->here[0] | (__mmask32)s->here[1] << 16;
    _mm512_mask_storeu_epi16(c, here, (__m512i)_mm512_cvtne2ps_pbh(v[1], v[0]));
  } else {
    _mm512_mask_storeu_ps(c, s->here[0], v[0]);
    _mm512_mask_storeu_ps(c + 64, s->here[1], v[1]);
  }
}

#endif
