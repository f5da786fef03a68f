// Common code of the two families of attention kernels for BF16 tensors. Include only if the instruction set has
// conversions to bf16 (AVX512_BF16).
#ifndef TARN_DEVICE_CPU_ATTENTION_ATTENTION_BF16_CPU_H
#define TARN_DEVICE_CPU_ATTENTION_ATTENTION_BF16_CPU_H

#include "device/cpu/attention/attention_head_cpu.h"
#include "device/cpu/isa/vec_cpu.h"
#include "graph/graph.h"

#define TARN__ATTENTION_UNROLL _Pragma("GCC unroll 16")

TARN__VEC_INLINE uint16_t *tarn__attention_at(const tarn__tensor *tensor, int64_t row, int64_t column) {
  return (uint16_t *)tensor->data + row * tensor->cols + column;
}

// The columns of a head in scratch: whole registers of 32, zero after the last column.
TARN__VEC_INLINE int64_t tarn__attention_padded(int64_t width) { return (width + 31) / 32 * 32; }

// The first `left` of 32 columns, or all.
TARN__VEC_INLINE __mmask32 tarn__attention_columns(int64_t left) {
  return left >= 32 ? ~(__mmask32)0 : ((__mmask32)1 << left) - 1;
}

// 32 columns, of which the head has `left` from here on.
TARN__VEC_INLINE __m512i tarn__attention_read(const uint16_t *at, int64_t left) {
  return _mm512_maskz_loadu_epi16(tarn__attention_columns(left), at);
}

// Stores 32 columns of a result, or the first `left`, optionally added to the destination. They are in the order that
// results from unpacking pairs of rows: columns 0-3, 8-11, 16-19 and 24-27 in `low`, the others in `high`.
TARN__VEC_INLINE void tarn__attention_put(uint16_t *out, int64_t left, bool add, __m512 low, __m512 high) {
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  if (add) {
    const __m512i there = tarn__attention_read(out, left), zero = _mm512_setzero_si512();
    low = _mm512_add_ps(low, _mm512_castsi512_ps(_mm512_unpacklo_epi16(zero, there)));
    high = _mm512_add_ps(high, _mm512_castsi512_ps(_mm512_unpackhi_epi16(zero, there)));
  }
  _mm512_mask_storeu_epi16(out, tarn__attention_columns(left),
                           _mm512_permutexvar_epi64(order, (__m512i)_mm512_cvtne2ps_pbh(high, low)));
}

// Transposes 16 registers: x[c] lane r becomes x[r] lane c.
TARN__VEC_INLINE void tarn__attention_transpose(__m512i x[16]) {
  __m512i y[16];
  TARN__ATTENTION_UNROLL for (int i = 0; i < 16; i += 2) {
    y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
  }
  TARN__ATTENTION_UNROLL for (int i = 0; i < 16; i += 4) TARN__ATTENTION_UNROLL for (int k = 0; k < 2; k++) {
    x[i + 2 * k] = _mm512_unpacklo_epi64(y[i + k], y[i + k + 2]);
    x[i + 2 * k + 1] = _mm512_unpackhi_epi64(y[i + k], y[i + k + 2]);
  }
  TARN__ATTENTION_UNROLL for (int i = 0; i < 16; i += 8) TARN__ATTENTION_UNROLL for (int k = 0; k < 4; k++) {
    y[i + k] = _mm512_shuffle_i32x4(x[i + k], x[i + k + 4], 0x88);
    y[i + k + 4] = _mm512_shuffle_i32x4(x[i + k], x[i + k + 4], 0xDD);
  }
  TARN__ATTENTION_UNROLL for (int k = 0; k < 8; k++) {
    x[k] = _mm512_shuffle_i32x4(y[k], y[k + 8], 0x88);
    x[k + 8] = _mm512_shuffle_i32x4(y[k], y[k + 8], 0xDD);
  }
}

// The dropout masks of the weights of TARN__DROPOUT_BLOCK keys, from key j on, and of LANES queries each from `query`
// of the head on: kept[v][k] has the bits for key j + k and register v of queries.
enum { TARN__ATTENTION_MASK_LANES = 16 };
TARN__VEC_INLINE void tarn__attention_kept(__mmask16 (*kept)[TARN__DROPOUT_BLOCK], const tarn__attention_head *h,
                                           int64_t query, int64_t j, int vectors) {
  const __m512i row =
      _mm512_add_epi64(_mm512_set1_epi64(h->query + query), _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0));
  const __m512i threshold = _mm512_set1_epi32((int32_t)(h->dropout.threshold << 16));
  __m512i w[4][4];  // the even queries of a register, the odd ones
  TARN__ATTENTION_UNROLL for (int i = 0; i < 2 * vectors; i++) {
    w[i][0] = tarn__dropout_fill((uint32_t)tarn__attention_block(h, j));
    w[i][1] = _mm512_add_epi64(row, _mm512_set1_epi64(i / 2 * TARN__ATTENTION_MASK_LANES + i % 2));
    w[i][2] = tarn__dropout_fill(h->dropout.site);
    w[i][3] = tarn__dropout_fill(h->exec->step);
  }
  tarn__dropout_rounds(w, 2 * vectors, h->exec);
  TARN__ATTENTION_UNROLL for (int v = 0; v < vectors; v++) TARN__ATTENTION_UNROLL for (int k = 0; k < 4; k++) {
    const __m512i words = _mm512_mask_shuffle_epi32(w[2 * v][k], 0xAAAA, w[2 * v + 1][k], _MM_PERM_CCAA);
    kept[v][2 * k] = _mm512_cmpge_epu32_mask(_mm512_slli_epi32(words, 16), threshold);
    kept[v][2 * k + 1] = _mm512_cmpge_epu32_mask(words, threshold);
  }
}

// exp(scale (s - most)), for lanes of the mask, else 0.
TARN__VEC_INLINE __m512 tarn__attention_probability(const float *s, __mmask16 mask, __m512 scale, __m512 shift) {
  const __m512 x = _mm512_fmsub_ps(_mm512_maskz_loadu_ps(mask, s), scale, shift);
  return _mm512_maskz_mov_ps(mask, (__m512)tarn__vec_exp2((tarn__vec)x));
}

#endif
