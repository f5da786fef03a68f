// A few rows of A at once, of which C has every one.
#include "device/cpu/gemm/gemm_arm_cpu.h"
#include "device/cpu/gemm/gemm_int4.h"
#include "device/cpu/isa/vec_cpu.h"

enum {
  LANES = TARN__VEC_LANES,
  PANEL = 2 * LANES,
#if defined(__AVX512F__) || defined(TARN__ARM_LOOPS)
  ROWS = 4,
#else
  ROWS = 2,
#endif
  WORDS = TARN__INT4_WORDS,
  PAIR_BYTES = PANEL * TARN__INT4_PAIR_BYTES,  // of a panel
  FAR = 2048,                                  // bytes by which prefetching is ahead
#if defined(TARN__ARM_LOOPS)
  BESIDE = TARN__ARM_BESIDE  // units of a column side by side in a panel of INT8
#else
  BESIDE = 1
#endif
};

typedef tarn__vec_int whole;
typedef tarn__vec_bits words;
typedef uint16_t halves __attribute__((vector_size(4 * LANES)));
typedef uint8_t bytes __attribute__((vector_size(4 * LANES)));
typedef int32_t whole_any __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint32_t words_any __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint16_t factors_any __attribute__((vector_size(2 * LANES), aligned(1), may_alias));
typedef uint32_t unit_any __attribute__((aligned(1), may_alias));

#define INLINE static inline __attribute__((always_inline))

// sum + the products of four numbers of B, from 0 on, and the four signed bytes of `a`.
INLINE whole add_product(whole sum, words b, uint32_t a) {
#if defined(__AVX512VNNI__)
  return (whole)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)b, _mm512_set1_epi32((int)a));
#elif defined(__AVX512BW__)
  const __m512i pairs = _mm512_maddubs_epi16((__m512i)b, _mm512_set1_epi32((int)a));
  return sum + (whole)_mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
#elif defined(__AVX2__)
  const __m256i pairs = _mm256_maddubs_epi16((__m256i)b, _mm256_set1_epi32((int)a));
  return sum + (whole)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#elif defined(TARN__ARM_LOOPS)
  return (whole)tarn__arm_add_bytes((tarn__vec)sum, (tarn__arm_units)b, tarn__arm_all(a));
#else
  for (int i = 0; i < 4; i++) sum += (whole)(b >> 8 * i & 255u) * (int32_t)(int8_t)(a >> 8 * i & 255u);
  return sum;
#endif
}

// Both factors of each column, from the 2 LANES bytes at `from`.
INLINE words load_factors(const unsigned char *from) {
#if defined(TARN_SVE)  // gcc converts registers of different lengths lane by lane
  return (words)tarn__vec_load_u16((const uint16_t *)(const void *)from);
#else
  return __builtin_convertvector(*(const factors_any *)(const void *)from, words);
#endif
}

// The first and the second byte of a lane, signed.
INLINE whole factor(words both, int group) { return (whole)(both << (24 - 8 * group)) >> 24; }

// total + first * its factor + second * its factor; both sums fit 16 bits.
INLINE whole add_pair(whole total, whole first, whole second, const unsigned char *factors) {
#if defined(__AVX512BW__)
  const __m512i pairs = (__m512i)(((words)first & 0xFFFFu) | (words)second << 16);
  const __m512i by = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)factors));
#if defined(__AVX512VNNI__)
  return (whole)_mm512_dpwssd_epi32((__m512i)total, pairs, by);
#else
  return total + (whole)_mm512_madd_epi16(pairs, by);
#endif
#elif defined(__AVX2__)
  const __m256i pairs = (__m256i)(((words)first & 0xFFFFu) | (words)second << 16);
  const __m256i by = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)factors));
  return total + (whole)_mm256_madd_epi16(pairs, by);
#else
  const words both = load_factors(factors);
  return total + first * factor(both, 0) + second * factor(both, 1);
#endif
}

// Sums of a group of a panel with rows of A, whose integers of B are -8 to 7. Both halves of the panel are multiplied
// by a unit of A at a time: else compilers keep the units of a whole group for the second half, in memory.
INLINE void sum_group(whole sums[ROWS][2], const unsigned char *from, const tarn__int4_block *g, const signed char *a,
                      const int32_t *zeros, int rows) {
  whole high_sums[2] = {{0}};
  for (int r = 0; r < rows; r++) sums[r][0] = sums[r][1] = (whole){0} + zeros[r * g->pairs * 2];
#pragma GCC unroll 4
  for (int i = 0; i < WORDS; i++, from += PANEL * 4) {
    const words left = *(const words_any *)(const void *)from,
                right = *(const words_any *)(const void *)(from + LANES * 4);
    const words low[2] = {left & 0x0F0F0F0Fu, right & 0x0F0F0F0Fu};
#if defined(__AVX512VNNI__)
    // 16 times the high half, which saves a shift of each word; sums of pairs of 16 bits have no room for this.
    if (rows == 1) {
      const uint32_t first = *(const unit_any *)(a + 8 * i), second = *(const unit_any *)(a + 8 * i + 4);
      sums[0][0] = add_product(sums[0][0], low[0], first);
      sums[0][1] = add_product(sums[0][1], low[1], first);
      high_sums[0] = add_product(high_sums[0], left & 0xF0F0F0F0u, second);
      high_sums[1] = add_product(high_sums[1], right & 0xF0F0F0F0u, second);
      continue;
    }
#endif
    const words high[2] = {left >> 4 & 0x0F0F0F0Fu, right >> 4 & 0x0F0F0F0Fu};
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
      const signed char *units = a + r * g->pairs * TARN__INT4_PAIR + 8 * i;
      const uint32_t first = *(const unit_any *)units, second = *(const unit_any *)(units + 4);
      sums[r][0] = add_product(sums[r][0], low[0], first);
      sums[r][1] = add_product(sums[r][1], low[1], first);
      sums[r][0] = add_product(sums[r][0], high[0], second);
      sums[r][1] = add_product(sums[r][1], high[1], second);
    }
  }
  for (int half = 0; rows == 1 && half < 2; half++) sums[0][half] += high_sums[half] >> 4;
}

// The operations are those of INT8 (gemm_cpu.c).
INLINE void finish(const tarn__int4_block *g, int64_t row, int64_t column, whole sums) {
  const int64_t left = g->columns - column, n = left < LANES ? left : LANES, at = row * g->ldc + column;
  const tarn__vec bias = g->bias ? tarn__vec_read_first(g->bias, TARN__F32, column, n) : (tarn__vec){0};
  const tarn__vec scale = g->row_scales[row] * tarn__vec_load(g->column_scales + column);
  tarn__vec v = tarn__vec_fma(__builtin_convertvector(sums, tarn__vec), scale, bias);
  if (g->accumulate) v += tarn__vec_read_first(g->c, g->c_dtype, at, n);
  if (g->relu) v = tarn__vec_select(v < 0.0f, (tarn__vec){0}, v);  // keeps NaN
  tarn__vec_write_first(g->c, g->c_dtype, at, v, n);
}

INLINE void multiply_panel(const tarn__int4_block *g, const unsigned char *b, int64_t row, int64_t column, int rows) {
  whole total[ROWS][2] = {{{0}}};
  const signed char *a = g->a + row * g->pairs * TARN__INT4_PAIR;
  const int32_t *zeros = g->zeros + row * g->pairs * 2;
  for (int64_t pair = 0; pair < g->pairs; pair++, b += PAIR_BYTES, a += TARN__INT4_PAIR, zeros += 2) {
    for (int line = 0; line < PAIR_BYTES; line += 64) __builtin_prefetch(b + FAR + line);
    whole first[ROWS][2], second[ROWS][2];
    sum_group(first, b + 2 * PANEL, g, a, zeros, rows);
    sum_group(second, b + 2 * PANEL + WORDS * PANEL * 4, g, a + TARN__INT4_GROUP, zeros + 1, rows);
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
      total[r][0] = add_pair(total[r][0], first[r][0], second[r][0], b);
      total[r][1] = add_pair(total[r][1], first[r][1], second[r][1], b + PANEL);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < rows; r++)
    for (int half = 0; half < 2; half++)
      if (column + half * LANES < g->columns) finish(g, row + r, column + half * LANES, total[r][half]);
}

INLINE void multiply_rows(const tarn__int4_block *g, int64_t row, int rows) {
  const unsigned char *b = g->b;
  for (int64_t column = 0; column < g->columns; column += PANEL) {
    multiply_panel(g, b, row, column, rows);
    b += g->pairs * PAIR_BYTES;
  }
}

static void multiply(const tarn__int4_block *g) {
  for (int64_t row = 0; row < g->rows; row += ROWS) switch (g->rows - row) {
      case 1:
        multiply_rows(g, row, 1);
        break;
#if defined(__AVX512F__) || defined(TARN__ARM_LOOPS)
      case 2:
        multiply_rows(g, row, 2);
        break;
      case 3:
        multiply_rows(g, row, 3);
        break;
#endif
      default:
        multiply_rows(g, row, ROWS);
        break;
    }
}

static void find_zeros(int32_t *zeros, const signed char *a, int64_t groups) {
  for (int64_t group = 0; group < groups; group++, a += TARN__INT4_GROUP) {
    int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < TARN__INT4_GROUP; i++) sum += a[i];
    zeros[group] = -TARN__INT4_ZERO * sum;
  }
}

// The four bytes of each lane times the factor of its column, which fit bytes.
INLINE words times(words numbers, halves by) {
  const halves even = ((halves)numbers & 255) * by, odd = ((halves)numbers >> 8) * by;
  return (words)((even & 255) | odd << 8);
}

// Two units of LANES columns, in the order of gemm_kernels.h; to: the first column's first one.
INLINE void put_units(uint32_t *to, words first, words second) {
#if defined(TARN__ARM_BLOCKS)
  tarn__arm_store_beside(to, (tarn__arm_units)first, (tarn__arm_units)second);
#else
  *(words_any *)to = first;
  *(words_any *)(to + PANEL) = second;
#endif
}

static void widen(uint32_t *out, const unsigned char *b, int64_t pairs) {
  for (int64_t pair = 0; pair < pairs; pair++, b += PAIR_BYTES)
    for (int group = 0; group < 2; group++, out += 2 * WORDS * PANEL)
      for (int half = 0; half < 2; half++) {
        const unsigned char *from = b + 2 * PANEL + (group * WORDS * PANEL + half * LANES) * 4;
        const words own = (words)factor(load_factors(b + half * PANEL), group) & 0xFFFFu;
        const halves by = (halves)(own | own << 16);
        const bytes zero = (bytes)times((words){0} + TARN__INT4_ZERO * 0x01010101u, by);
        uint32_t *to = out + half * LANES * BESIDE;
        for (int i = 0; i < WORDS; i++, from += PANEL * 4, to += 2 * PANEL) {
          const words both = *(const words_any *)(const void *)from;
          put_units(to, (words)((bytes)times(both & 0x0F0F0F0Fu, by) - zero),
                    (words)((bytes)times(both >> 4 & 0x0F0F0F0Fu, by) - zero));
        }
      }
}

const tarn__gemm_int4_kernels TARN__FAST(tarn__gemm_int4_kernels) = {
    .multiply = multiply, .find_zeros = find_zeros, .widen = widen};
