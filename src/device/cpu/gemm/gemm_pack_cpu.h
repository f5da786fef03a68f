// Packing of operands (see gemm_kernels.h): contiguous lines are transposed in 4 x 4 units; strided lines are read
// sequentially and distributed to the panels.
#ifndef TARN_DEVICE_CPU_GEMM_GEMM_PACK_CPU_H
#define TARN_DEVICE_CPU_GEMM_GEMM_PACK_CPU_H

#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "device/cpu/gemm/gemm_kernels.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/isa/vec_cpu.h"

typedef uint32_t tarn__gemm_quad __attribute__((vector_size(16)));
typedef uint32_t tarn__gemm_quad_any __attribute__((vector_size(16), aligned(1), may_alias));

// Four units of each of four lines that are `stride` bytes apart, to four rows of `width` units.
static inline void tarn__gemm_transpose4(uint32_t *out, int64_t width, const char *from, int64_t stride) {
  tarn__gemm_quad a = *(const tarn__gemm_quad_any *)from;
  tarn__gemm_quad b = *(const tarn__gemm_quad_any *)(from + stride);
  tarn__gemm_quad c = *(const tarn__gemm_quad_any *)(from + 2 * stride);
  tarn__gemm_quad d = *(const tarn__gemm_quad_any *)(from + 3 * stride);
  tarn__gemm_quad ab_low = TARN__VEC_SHUFFLE(tarn__gemm_quad, a, b, 0, 4, 1, 5);
  tarn__gemm_quad ab_high = TARN__VEC_SHUFFLE(tarn__gemm_quad, a, b, 2, 6, 3, 7);
  tarn__gemm_quad cd_low = TARN__VEC_SHUFFLE(tarn__gemm_quad, c, d, 0, 4, 1, 5);
  tarn__gemm_quad cd_high = TARN__VEC_SHUFFLE(tarn__gemm_quad, c, d, 2, 6, 3, 7);
  *(tarn__gemm_quad_any *)out = TARN__VEC_SHUFFLE(tarn__gemm_quad, ab_low, cd_low, 0, 1, 4, 5);
  *(tarn__gemm_quad_any *)(out + width) = TARN__VEC_SHUFFLE(tarn__gemm_quad, ab_low, cd_low, 2, 3, 6, 7);
  *(tarn__gemm_quad_any *)(out + 2 * width) = TARN__VEC_SHUFFLE(tarn__gemm_quad, ab_high, cd_high, 0, 1, 4, 5);
  *(tarn__gemm_quad_any *)(out + 3 * width) = TARN__VEC_SHUFFLE(tarn__gemm_quad, ab_high, cd_high, 2, 3, 6, 7);
}

// The unit of one line that begins at `from`, of which `bytes` exist.
static inline uint32_t tarn__gemm_unit(const char *from, int64_t bytes) {
  uint32_t unit = 0;
  memcpy(&unit, from, (size_t)(bytes < 4 ? bytes : 4));
  return unit;
}

enum { TARN__GEMM_LINE_UNITS = 16 };  // a cache line of each line at a time, while the next one is prefetched

// One panel of contiguous lines, in units of elements of `size` bytes.
static inline void tarn__gemm_pack_along(uint32_t *out, const tarn__gemm_lines *l, int64_t first, int64_t count,
                                         int64_t size) {
  const char *from = (const char *)l->from + first * l->ld * size;
  int64_t bytes = l->k * size, whole = bytes / 4, stride = l->ld * size, width = l->width;
  int64_t quads = count / 4 * 4, deep = whole / 4 * 4, units = (bytes + 3) / 4;
  for (int64_t begin = 0; begin < deep; begin += TARN__GEMM_LINE_UNITS) {
    const int64_t end = deep - begin < TARN__GEMM_LINE_UNITS ? deep : begin + TARN__GEMM_LINE_UNITS;
    for (int64_t line = 0; line < quads; line += 4) {
      const char *rows = from + line * stride;
      for (int64_t u = begin; u < end; u += 4) {
        // The lines are too far apart for the hardware prefetcher.
        __builtin_prefetch(rows + u / 4 % 4 * stride + 4 * (begin + TARN__GEMM_LINE_UNITS));
        tarn__gemm_transpose4(out + u * width + line, width, rows + 4 * u, stride);
      }
    }
  }
  for (int64_t line = 0; line < count; line++)
    for (int64_t u = line < quads ? deep : 0; u < units; u++)
      out[u * width + line] = tarn__gemm_unit(from + line * stride + 4 * u, bytes - 4 * u);
  for (int64_t u = 0; count < width && u < units; u++)
    memset(out + u * width + count, 0, (size_t)(width - count) * sizeof *out);
}

// One unit of `count` strided lines: pairs of BF16 of two rows.
static inline void tarn__gemm_pairs(uint32_t *restrict out, const uint16_t *restrict first,
                                    const uint16_t *restrict second, int64_t count) {
  int64_t line = 0;
#if defined(__AVX512BW__)
  // Whole registers: for rows that are not in a cache, a third faster than the loop below.
  for (; line + 16 <= count; line += 16) {
    __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(first + line)));
    __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(second + line)));
    _mm512_storeu_si512(out + line, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
  }
#endif
#if defined(__SSE2__)
  for (; line + 8 <= count; line += 8) {
    __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(first + line));
    __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(second + line));
    _mm_storeu_si128((__m128i *)(void *)(out + line), _mm_unpacklo_epi16(a, b));
    _mm_storeu_si128((__m128i *)(void *)(out + line + 4), _mm_unpackhi_epi16(a, b));
  }
  for (; line + 4 <= count; line += 4) {
    __m128i a = _mm_loadl_epi64((const __m128i *)(const void *)(first + line));
    __m128i b = _mm_loadl_epi64((const __m128i *)(const void *)(second + line));
    _mm_storeu_si128((__m128i *)(void *)(out + line), _mm_unpacklo_epi16(a, b));
  }
#endif
  for (; line < count; line++) out[line] = first[line] | (uint32_t)second[line] << 16;
}

// The unit of row k of strided lines [first, first + count). The last pair of an odd k has a zero.
static inline void tarn__gemm_unit_across(uint32_t *out, const tarn__gemm_lines *l, int64_t k, int64_t first,
                                          int64_t count) {
  int64_t at = k * l->ld + first;
  if (l->arithmetic == TARN__GEMM_F32) {
    const uint32_t *from = (const uint32_t *)l->from + at;
    for (int64_t line = 0; line < count; line++) out[line] = from[line];
  } else if (l->arithmetic == TARN__GEMM_BF16 && k + 1 < l->k) {
    const uint16_t *from = (const uint16_t *)l->from + at;
    tarn__gemm_pairs(out, from, from + l->ld, count);
  } else {
    const uint16_t *from = (const uint16_t *)l->from + at;
    int shift = l->arithmetic == TARN__GEMM_WIDE ? 16 : 0;
    for (int64_t line = 0; line < count; line++) out[line] = (uint32_t)from[line] << shift;
  }
}

enum { TARN__GEMM_ROWS_AHEAD = 16 };

// All panels at a time; `width` is a constant for the compiler.
static inline __attribute__((always_inline)) void tarn__gemm_pack_across(uint32_t *out, const tarn__gemm_lines *l,
                                                                         int64_t width) {
  int64_t step = l->arithmetic == TARN__GEMM_BF16 ? 2 : 1, whole = l->count / width * width;
  int64_t size = l->arithmetic == TARN__GEMM_F32 ? 4 : 2, row_bytes = l->ld * size;
  for (int64_t k = 0; k < l->k; k += step, out += width) {
    // Pieces of rows are too short for the hardware prefetcher.
    const char *later = (const char *)l->from + (k + TARN__GEMM_ROWS_AHEAD) * row_bytes;
    for (int64_t row = 0; row < step && k + TARN__GEMM_ROWS_AHEAD + row < l->k; row++, later += row_bytes)
      for (int64_t at = 0; at < l->count * size; at += 64) __builtin_prefetch(later + at);
    uint32_t *panel = out;
    for (int64_t line = 0; line < whole; line += width, panel += l->stride)
      tarn__gemm_unit_across(panel, l, k, line, width);
    if (whole == l->count) continue;
    tarn__gemm_unit_across(panel, l, k, whole, l->count - whole);
    memset(panel + l->count - whole, 0, (size_t)(width - (l->count - whole)) * sizeof *out);
  }
}

// One panel of contiguous BF16 lines, as F32.
static inline void tarn__gemm_pack_wide(uint32_t *out, const tarn__gemm_lines *l, int64_t first, int64_t count) {
  const uint16_t *from = (const uint16_t *)l->from + first * l->ld;
  for (int64_t k = 0; k < l->k; k++, out += l->width) {
    for (int64_t line = 0; line < count; line++) out[line] = (uint32_t)from[line * l->ld + k] << 16;
    for (int64_t line = count; line < l->width; line++) out[line] = 0;
  }
}

#if defined(TARN_NEON) || defined(TARN_SVE)

// Two units of one line that begin at `from`, of which `bytes` exist.
static inline uint64_t tarn__gemm_two_units(const char *from, int64_t bytes) {
  uint64_t units = 0;
  memcpy(&units, from, (size_t)(bytes < 8 ? bytes : 8));
  return units;
}

// Two units of `count` strided lines of BF16 from four rows, of which `rows` exist.
static inline void tarn__gemm_beside_across(uint64_t *out, const uint16_t *from, int64_t ld, int64_t rows,
                                            int64_t count) {
  int64_t line = 0;
  for (; rows == 4 && line + 8 <= count; line += 8) {
    uint16x8x4_t four;
    for (int r = 0; r < 4; r++) four.val[r] = vld1q_u16(from + r * ld + line);
    vst4q_u16((uint16_t *)(void *)(out + line), four);
  }
  for (; line < count; line++) {
    out[line] = 0;
    for (int r = 0; r < rows; r++) out[line] |= (uint64_t)from[r * ld + line] << 16 * r;
  }
}

// Two units of the lines of the panel that begins at line `first`, from term k on.
static inline void tarn__gemm_beside_panel(uint64_t *out, const tarn__gemm_lines *l, int64_t first, int64_t k) {
  const int64_t size = 4 / tarn__gemm_unit_terms(l->arithmetic), terms = l->k - k < 8 / size ? l->k - k : 8 / size;
  const int64_t count = l->count - first < l->width ? l->count - first : l->width;
  if (l->across) {
    tarn__gemm_beside_across(out, (const uint16_t *)l->from + k * l->ld + first, l->ld, terms, count);
  } else {
    const char *from = (const char *)l->from + (first * l->ld + k) * size;
    for (int64_t line = 0; line < count; line++, from += l->ld * size)
      out[line] = tarn__gemm_two_units(from, terms * size);
  }
  for (int64_t line = count; line < l->width; line++) out[line] = 0;
}

// All panels, with two units of a line side by side (`beside` of gemm_kernels.h), in the order in which lines lie.
static inline void tarn__gemm_pack_beside(uint32_t *out, const tarn__gemm_lines *l) {
  const int64_t terms = 2 * tarn__gemm_unit_terms(l->arithmetic), panels = (l->count + l->width - 1) / l->width;
  const int64_t steps = (l->k + terms - 1) / terms;
  for (int64_t i = 0; i < panels * steps; i++) {
    const int64_t panel = l->across ? i % panels : i / steps, step = l->across ? i / panels : i % steps;
    tarn__gemm_beside_panel((uint64_t *)(void *)(out + panel * l->stride) + step * l->width, l, panel * l->width,
                            step * terms);
  }
}

#endif

#endif
