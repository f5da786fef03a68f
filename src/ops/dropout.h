// Dropout masks as a function of (seed, step, site, row, column), recomputed in the backward pass instead of stored.
// One block of Philox 4x32-10 serves 8 adjacent columns of a row:
//
//   counter = (column / 8, row, site, step), key = seed          columns 8 b .. 8 b + 7 of the row
//   4 words of 32 bits = 8 numbers of 16 bits, low half first:   | w0 lo | w0 hi | w1 lo | ... | w3 hi |
//
// An element is kept if its number is at least threshold = round(p * 65536), and then scaled by 1 / (1 - threshold /
// 65536), so its expectation is exact for the probability actually used.
#ifndef TARN_OPS_DROPOUT_H
#define TARN_OPS_DROPOUT_H

#include <math.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(TARN_NEON)
#include <arm_neon.h>
#elif defined(TARN_SVE)
#include <arm_sve.h>
#endif

#include "base/random.h"
#include "graph/graph.h"

// Columns of one block, and columns per pass of tarn__dropout_numbers().
enum { TARN__DROPOUT_BLOCK = 8, TARN__DROPOUT_CHUNK = 128 };

// One place of dropout in the model; an attribute of the node.
typedef struct tarn__dropout {
  uint32_t threshold;  // of 65536; 0: no dropout
  uint32_t site;
} tarn__dropout;

// Takes a site of the graph if p is not 0, so that places without dropout do not affect the numbers of others. Without
// training nothing is dropped.
static inline tarn__dropout tarn__dropout_make(tarn__graph *graph, double p) {
  tarn__dropout dropout = {0, p > 0.0 ? tarn__graph_site(graph) : 0};
  if (!(p >= 0.0 && p < 1.0)) {
    tarn__graph_fail(graph, TARN_STATUS_USAGE, "dropout is %g; expected 0 or more and less than 1", p);
  } else if (graph->training) {
    long threshold = lround(p * 65536.0);
    dropout.threshold = threshold < 65536 ? (uint32_t)threshold : 65535u;
  }
  return dropout;
}

static inline double tarn__dropout_scale(tarn__dropout dropout) { return 65536.0 / (65536.0 - dropout.threshold); }

// The 8 numbers of one block.
static inline void tarn__dropout_block(uint16_t numbers[TARN__DROPOUT_BLOCK], const tarn__exec *exec, uint32_t site,
                                       uint32_t row, uint32_t block) {
  uint32_t counter[4] = {block, row, site, exec->step};
  uint32_t key[2] = {(uint32_t)exec->seed, (uint32_t)(exec->seed >> 32)};
  uint32_t words[4];
  tarn__philox(words, counter, key);
  for (int w = 0; w < 4; w++) {
    numbers[2 * w] = (uint16_t)words[w];
    numbers[2 * w + 1] = (uint16_t)(words[w] >> 16);
  }
}

// Whether one element is kept: the definition, for the reference kernels.
static inline bool tarn__dropout_keeps(tarn__dropout dropout, const tarn__exec *exec, int64_t row, int64_t column) {
  if (dropout.threshold == 0) return true;
  uint16_t numbers[TARN__DROPOUT_BLOCK];
  tarn__dropout_block(numbers, exec, dropout.site, (uint32_t)row, (uint32_t)(column / TARN__DROPOUT_BLOCK));
  return numbers[column % TARN__DROPOUT_BLOCK] >= dropout.threshold;
}

// Required elements of a buffer for the numbers of `cols` columns.
static inline size_t tarn__dropout_room(int64_t cols) {
  return ((size_t)cols + TARN__DROPOUT_CHUNK - 1) / TARN__DROPOUT_CHUNK * TARN__DROPOUT_CHUNK;
}

// The vector forms of x86 keep each 32-bit word in a 64-bit lane, whose upper half may hold anything, because the
// widening multiplication reads and writes such lanes: a round is 2 multiplications, 2 shifts and 2 exclusive ors for 8
// (4) counters. Lanes start with the blocks in the order that makes the interleaving at the end a shuffle within 128
// bits:
//   even lanes: blocks 0, 1, 2, 3 -> first half of the output; odd lanes: blocks 4, 5, 6, 7 -> second half.
// That of ARM has four lanes of 32 bits in the order of the blocks: two multiplications give the 64 bits of the
// products, which two instructions sort into low and high words, and one interleaves the words while it stores them.
// That of SVE has instructions for either word.
#if defined(__AVX512F__)

enum { TARN__DROPOUT_LANES = 8 };
typedef __m512i tarn__dropout_vec;

static inline tarn__dropout_vec tarn__dropout_fill(uint32_t x) { return _mm512_set1_epi64((int64_t)x); }
static inline tarn__dropout_vec tarn__dropout_first(uint32_t block) {
  return _mm512_add_epi64(_mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0), _mm512_set1_epi64((int64_t)block));
}
static inline tarn__dropout_vec tarn__dropout_mul(tarn__dropout_vec a, tarn__dropout_vec b) {
  return _mm512_mul_epu32(a, b);
}
static inline tarn__dropout_vec tarn__dropout_mix(tarn__dropout_vec product, tarn__dropout_vec a, tarn__dropout_vec b) {
  return _mm512_ternarylogic_epi64(_mm512_srli_epi64(product, 32), a, b, 0x96);
}
static inline void tarn__dropout_store(uint16_t *out, const tarn__dropout_vec w[4]) {
  __m512i low = _mm512_mask_shuffle_epi32(w[0], 0xAAAA, w[1], _MM_PERM_CCAA);
  __m512i high = _mm512_mask_shuffle_epi32(w[2], 0xAAAA, w[3], _MM_PERM_CCAA);
  _mm512_storeu_si512(out, _mm512_unpacklo_epi64(low, high));
  _mm512_storeu_si512(out + 32, _mm512_unpackhi_epi64(low, high));
}

#elif defined(TARN_NEON)

enum { TARN__DROPOUT_LANES = 4 };
typedef uint32x4_t tarn__dropout_vec;

static inline tarn__dropout_vec tarn__dropout_fill(uint32_t x) { return vdupq_n_u32(x); }
static inline tarn__dropout_vec tarn__dropout_first(uint32_t block) {
  return vaddq_u32((uint32x4_t){0, 1, 2, 3}, vdupq_n_u32(block));
}
static inline void tarn__dropout_store(uint16_t *out, const tarn__dropout_vec w[4]) {
  vst4q_u32((uint32_t *)(void *)out, ((uint32x4x4_t){{w[0], w[1], w[2], w[3]}}));
}

#elif defined(TARN_SVE)

enum { TARN__DROPOUT_LANES = __ARM_FEATURE_SVE_BITS / 32 };
typedef uint32_t tarn__dropout_vec __attribute__((vector_size(4 * TARN__DROPOUT_LANES)));

static inline tarn__dropout_vec tarn__dropout_fill(uint32_t x) { return (tarn__dropout_vec)svdup_u32(x); }
static inline tarn__dropout_vec tarn__dropout_first(uint32_t block) { return (tarn__dropout_vec)svindex_u32(block, 1); }
static inline void tarn__dropout_store(uint16_t *out, const tarn__dropout_vec w[4]) {
  svst4_u32(svptrue_b32(), (uint32_t *)(void *)out,
            svcreate4_u32((svuint32_t)w[0], (svuint32_t)w[1], (svuint32_t)w[2], (svuint32_t)w[3]));
}

#elif defined(__AVX2__)

enum { TARN__DROPOUT_LANES = 4 };
typedef __m256i tarn__dropout_vec;

static inline tarn__dropout_vec tarn__dropout_fill(uint32_t x) { return _mm256_set1_epi64x((int64_t)x); }
static inline tarn__dropout_vec tarn__dropout_first(uint32_t block) {
  return _mm256_add_epi64(_mm256_set_epi64x(3, 1, 2, 0), _mm256_set1_epi64x((int64_t)block));
}
static inline tarn__dropout_vec tarn__dropout_mul(tarn__dropout_vec a, tarn__dropout_vec b) {
  return _mm256_mul_epu32(a, b);
}
static inline tarn__dropout_vec tarn__dropout_mix(tarn__dropout_vec product, tarn__dropout_vec a, tarn__dropout_vec b) {
  return _mm256_xor_si256(_mm256_srli_epi64(product, 32), _mm256_xor_si256(a, b));
}
static inline void tarn__dropout_store(uint16_t *out, const tarn__dropout_vec w[4]) {
  __m256i low = _mm256_blend_epi32(w[0], _mm256_slli_epi64(w[1], 32), 0xAA);
  __m256i high = _mm256_blend_epi32(w[2], _mm256_slli_epi64(w[3], 32), 0xAA);
  _mm256_storeu_si256((__m256i *)(void *)out, _mm256_unpacklo_epi64(low, high));
  _mm256_storeu_si256((__m256i *)(void *)(out + 16), _mm256_unpackhi_epi64(low, high));
}

#endif

#if defined(__AVX2__)

#define TARN__DROPOUT_VECTOR 1
typedef uint64_t tarn__dropout_lane;

// The lane of counter l of a vector in the order of tarn__dropout_first().
static inline int tarn__dropout_place(int l) {
  const int half = TARN__DROPOUT_LANES / 2;
  return l % half * 2 + l / half;
}

static inline __attribute__((always_inline)) void tarn__dropout_round(tarn__dropout_vec w[4], tarn__dropout_vec m0,
                                                                      tarn__dropout_vec m1, tarn__dropout_vec key0,
                                                                      tarn__dropout_vec key1) {
  tarn__dropout_vec p0 = tarn__dropout_mul(w[0], m0), p1 = tarn__dropout_mul(w[2], m1);
  w[0] = tarn__dropout_mix(p1, w[1], key0);
  w[2] = tarn__dropout_mix(p0, w[3], key1);
  w[1] = p1;
  w[3] = p0;
}

#elif defined(TARN_NEON)

#define TARN__DROPOUT_VECTOR 1
typedef uint32_t tarn__dropout_lane;

static inline int tarn__dropout_place(int l) { return l; }

// The low and the high words of the products.
static inline __attribute__((always_inline)) uint32x4x2_t tarn__dropout_product(uint32x4_t a, uint32x4_t b) {
  const uint32x4_t first = vreinterpretq_u32_u64(vmull_u32(vget_low_u32(a), vget_low_u32(b)));
  const uint32x4_t second = vreinterpretq_u32_u64(vmull_high_u32(a, b));
  return (uint32x4x2_t){{vuzp1q_u32(first, second), vuzp2q_u32(first, second)}};
}

static inline __attribute__((always_inline)) void tarn__dropout_round(tarn__dropout_vec w[4], tarn__dropout_vec m0,
                                                                      tarn__dropout_vec m1, tarn__dropout_vec key0,
                                                                      tarn__dropout_vec key1) {
  const uint32x4x2_t p0 = tarn__dropout_product(w[0], m0), p1 = tarn__dropout_product(w[2], m1);
  w[0] = veorq_u32(p1.val[1], veorq_u32(w[1], key0));
  w[2] = veorq_u32(p0.val[1], veorq_u32(w[3], key1));
  w[1] = p1.val[0];
  w[3] = p0.val[0];
}

#elif defined(TARN_SVE)

#define TARN__DROPOUT_VECTOR 1
typedef uint32_t tarn__dropout_lane;

static inline int tarn__dropout_place(int l) { return l; }

static inline tarn__dropout_vec tarn__dropout_high(tarn__dropout_vec a, tarn__dropout_vec b) {
  return (tarn__dropout_vec)svmulh_u32_x(svptrue_b32(), (svuint32_t)a, (svuint32_t)b);
}

static inline __attribute__((always_inline)) void tarn__dropout_round(tarn__dropout_vec w[4], tarn__dropout_vec m0,
                                                                      tarn__dropout_vec m1, tarn__dropout_vec key0,
                                                                      tarn__dropout_vec key1) {
  const tarn__dropout_vec low0 = w[0] * m0, low1 = w[2] * m1;
  const tarn__dropout_vec high0 = tarn__dropout_high(w[0], m0), high1 = tarn__dropout_high(w[2], m1);
  w[0] = high1 ^ (w[1] ^ key0);
  w[2] = high0 ^ (w[3] ^ key1);
  w[1] = low1;
  w[3] = low0;
}

#endif

#if defined(TARN__DROPOUT_VECTOR)

// Vectors of counters processed at once, and their counters: of no more than a pass of columns.
enum {
  TARN__DROPOUT_VECTORS = TARN__DROPOUT_LANES > 8 ? 1 : 2,
  TARN__DROPOUT_STEP = TARN__DROPOUT_VECTORS * TARN__DROPOUT_LANES
};
_Static_assert(TARN__DROPOUT_CHUNK % (TARN__DROPOUT_STEP * TARN__DROPOUT_BLOCK) == 0,
               "numbers would exceed their room");

// The ten rounds: counters become words.
static inline __attribute__((always_inline)) void tarn__dropout_rounds(tarn__dropout_vec w[][4], int vectors,
                                                                       const tarn__exec *exec) {
  const tarn__dropout_vec m0 = tarn__dropout_fill(0xD2511F53u), m1 = tarn__dropout_fill(0xCD9E8D57u);
  uint32_t k0 = (uint32_t)exec->seed, k1 = (uint32_t)(exec->seed >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < 10; round++) {
    const tarn__dropout_vec key0 = tarn__dropout_fill(k0), key1 = tarn__dropout_fill(k1);
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) tarn__dropout_round(w[v], m0, m1, key0, key1);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

#endif

// The numbers of a row from block `first` on, for `cols` columns; writes tarn__dropout_room(cols) numbers, equal to
// those of tarn__dropout_block().
static inline void tarn__dropout_numbers(uint16_t *numbers, const tarn__exec *exec, uint32_t site, int64_t row,
                                         int64_t first, int64_t cols) {
  int64_t blocks = (int64_t)(tarn__dropout_room(cols) / TARN__DROPOUT_BLOCK);
#if defined(TARN__DROPOUT_VECTOR)
  const tarn__dropout_vec c1 = tarn__dropout_fill((uint32_t)row), c2 = tarn__dropout_fill(site);
  const tarn__dropout_vec c3 = tarn__dropout_fill(exec->step);
  for (int64_t b = 0; b < blocks; b += TARN__DROPOUT_STEP) {
    tarn__dropout_vec w[TARN__DROPOUT_VECTORS][4];
    for (int v = 0; v < TARN__DROPOUT_VECTORS; v++) {
      w[v][0] = tarn__dropout_first((uint32_t)(first + b + v * TARN__DROPOUT_LANES));
      w[v][1] = c1;
      w[v][2] = c2;
      w[v][3] = c3;
    }
    tarn__dropout_rounds(w, TARN__DROPOUT_VECTORS, exec);
    for (int v = 0; v < TARN__DROPOUT_VECTORS; v++)
      tarn__dropout_store(numbers + (b + v * TARN__DROPOUT_LANES) * TARN__DROPOUT_BLOCK, w[v]);
  }
#else
  for (int64_t b = 0; b < blocks; b++)
    tarn__dropout_block(numbers + b * TARN__DROPOUT_BLOCK, exec, site, (uint32_t)row, (uint32_t)(first + b));
#endif
}

// The numbers of `rows` consecutive rows, each from block `first` on for `blocks` blocks; writes
// tarn__dropout_room(rows * blocks * 8) numbers. Faster than row by row if rows are short.
static inline void tarn__dropout_matrix(uint16_t *numbers, const tarn__exec *exec, uint32_t site, int64_t row,
                                        int64_t rows, int64_t first, int64_t blocks) {
#if defined(TARN__DROPOUT_VECTOR)
  const tarn__dropout_vec c2 = tarn__dropout_fill(site), c3 = tarn__dropout_fill(exec->step);
  int64_t block = 0;
  for (int64_t i = 0; i < rows * blocks; i += TARN__DROPOUT_STEP) {
    _Alignas(64) tarn__dropout_lane row_of[TARN__DROPOUT_STEP], block_of[TARN__DROPOUT_STEP];
    for (int l = 0; l < TARN__DROPOUT_STEP; l++) {
      const int in = l % TARN__DROPOUT_LANES, place = l - in + tarn__dropout_place(in);
      row_of[place] = (uint32_t)row;
      block_of[place] = (uint32_t)(first + block);
      if (++block == blocks) block = 0, row++;
    }
    tarn__dropout_vec w[TARN__DROPOUT_VECTORS][4];
    for (int v = 0; v < TARN__DROPOUT_VECTORS; v++) {
      memcpy(&w[v][0], block_of + v * TARN__DROPOUT_LANES, sizeof w[v][0]);
      memcpy(&w[v][1], row_of + v * TARN__DROPOUT_LANES, sizeof w[v][1]);
      w[v][2] = c2;
      w[v][3] = c3;
    }
    tarn__dropout_rounds(w, TARN__DROPOUT_VECTORS, exec);
    for (int v = 0; v < TARN__DROPOUT_VECTORS; v++)
      tarn__dropout_store(numbers + (i + v * TARN__DROPOUT_LANES) * TARN__DROPOUT_BLOCK, w[v]);
  }
#else
  for (int64_t r = 0; r < rows; r++)
    for (int64_t b = 0; b < blocks; b++)
      tarn__dropout_block(numbers + (r * blocks + b) * TARN__DROPOUT_BLOCK, exec, site, (uint32_t)(row + r),
                          (uint32_t)(first + b));
#endif
}

#endif
