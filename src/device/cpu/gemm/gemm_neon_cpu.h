// The inner loops of products on 64-bit ARM, for tiles of 8 rows and two registers of columns: 16 of the 32 registers
// are sums, as many as the latency of a multiply-add requires on processors that begin four in a cycle. Instructions
// multiply a register by one lane of another, so four units of a row of A are loaded at once, and a unit needs no
// broadcast.
#ifndef TARN_DEVICE_CPU_GEMM_GEMM_NEON_CPU_H
#define TARN_DEVICE_CPU_GEMM_GEMM_NEON_CPU_H

#if defined(TARN_NEON)

#include <string.h>

#include "device/cpu/gemm/gemm_kernels.h"
#include "device/cpu/isa/vec_cpu.h"

enum { TARN__NEON_ROWS = 8, TARN__NEON_STEP = 4, TARN__NEON_PANEL = 2 * TARN__VEC_LANES };

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC) && defined(__ARM_FEATURE_MATMUL_INT8)
#define TARN__NEON_BLOCKS 1
enum { TARN__NEON_BESIDE = 2 };
#else
enum { TARN__NEON_BESIDE = 1 };
#endif

typedef tarn__vec tarn__neon_sums[2];  // of a row

TARN__VEC_INLINE uint32x4_t tarn__neon_load(const void *from) { return vreinterpretq_u32_u8(vld1q_u8(from)); }

// Sums of INT8 are integers in the bits of a register. With intrinsics gcc copies such sums, because they change the
// type of the register, so these instructions are written out.

// sum + the products of the four bytes of each lane of b and of a, both signed. The sum of two products fits 16 bits.
TARN__VEC_INLINE tarn__vec tarn__neon_add_bytes(tarn__vec sum, uint32x4_t b, uint32x4_t a) {
#if defined(__ARM_FEATURE_DOTPROD)
  __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(b), "w"(a));
#else
  const int8x16_t x = vreinterpretq_s8_u32(b), y = vreinterpretq_s8_u32(a);
  const int16x8_t pairs = vpaddq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(y)), vmull_high_s8(x, y));
  __asm__("sadalp %0.4s, %1.8h" : "+w"(sum) : "w"(pairs));
#endif
  return sum;
}

// One unit for all lanes: sum + a b.
TARN__VEC_INLINE tarn__vec tarn__neon_add(tarn__vec sum, uint32x4_t b, uint32_t a, tarn__gemm_arithmetic arithmetic) {
  if (arithmetic == TARN__GEMM_INT8) return tarn__neon_add_bytes(sum, b, vdupq_n_u32(a));
  float by;
  memcpy(&by, &a, sizeof by);
  return (tarn__vec)vfmaq_n_f32((float32x4_t)sum, (float32x4_t)b, by);
}

// The same with lane `lane` of a, which is a constant where the loop is unrolled.
TARN__VEC_INLINE tarn__vec tarn__neon_add_lane(tarn__vec sum, uint32x4_t b, uint32x4_t a, int lane,
                                               tarn__gemm_arithmetic arithmetic) {
#if defined(__ARM_FEATURE_DOTPROD)
#define ADD_BYTES(n) __asm__("sdot %0.4s, %1.16b, %2.4b[" #n "]" : "+w"(sum) : "w"(b), "w"(a))
#else
#define ADD_BYTES(n) sum = tarn__neon_add_bytes(sum, b, vdupq_laneq_u32(a, n))
#endif
#define ADD(n)                                                                               \
  case n:                                                                                    \
    if (arithmetic == TARN__GEMM_INT8)                                                       \
      ADD_BYTES(n);                                                                          \
    else                                                                                     \
      sum = (tarn__vec)vfmaq_laneq_f32((float32x4_t)sum, (float32x4_t)b, (float32x4_t)a, n); \
    break
  switch (lane) {
    ADD(0);
    ADD(1);
    ADD(2);
    ADD(3);
    default:
      break;
  }
#undef ADD
#undef ADD_BYTES
  return sum;
}

// Says that the address depends on a sum, so that compilers do not load what is there much earlier than it is used, for
// which there are no registers.
#define TARN__NEON_AFTER(address, sum) __asm__("" : "+r"(address), "+w"(sum))

// The sums of a tile of 4 or 8 rows. row_bytes: 0 for a packed group of A.
TARN__VEC_INLINE void tarn__neon_tile(tarn__neon_sums *sums, const char *a, int64_t row_bytes, const uint32_t *b,
                                      int64_t units, int rows, tarn__gemm_arithmetic arithmetic) {
  enum { AHEAD = 512 };  // bytes of B by which prefetching is ahead
  const int64_t unit = 4 * (int64_t)rows;
  int64_t u = 0;
  if (row_bytes == 0) {  // rows lie side by side
    for (; u < units; u++, a += unit, b += TARN__NEON_PANEL) {
      const uint32x4_t low = tarn__neon_load(b), high = tarn__neon_load(b + TARN__VEC_LANES);
      __builtin_prefetch((const char *)b + AHEAD);
      uint32x4_t of[TARN__NEON_ROWS / 4];
#pragma GCC unroll 2
      for (int i = 0; i < rows / 4; i++) {
        of[i] = tarn__neon_load(a + 16 * i);
        __asm__("" : "+w"(of[i]));
      }
#pragma GCC unroll 8
      for (int r = 0; r < rows; r++) {
        sums[r][0] = tarn__neon_add_lane(sums[r][0], low, of[r / 4], r % 4, arithmetic);
        sums[r][1] = tarn__neon_add_lane(sums[r][1], high, of[r / 4], r % 4, arithmetic);
      }
    }
    return;
  }
  for (; u + 4 <= units; u += 4, a += 16) {
    uint32x4_t of[TARN__NEON_ROWS];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
      of[r] = tarn__neon_load(a + r * row_bytes);
      __asm__("" : "+w"(of[r]));  // else gcc loads each lane by itself, and keeps them in memory
    }
    __builtin_prefetch((const char *)b + AHEAD);
    __builtin_prefetch((const char *)b + AHEAD + 64);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++, b += TARN__NEON_PANEL) {
      TARN__NEON_AFTER(b, sums[0][0]);
      const uint32x4_t low = tarn__neon_load(b), high = tarn__neon_load(b + TARN__VEC_LANES);
#pragma GCC unroll 8
      for (int r = 0; r < rows; r++) {
        sums[r][0] = tarn__neon_add_lane(sums[r][0], low, of[r], i, arithmetic);
        sums[r][1] = tarn__neon_add_lane(sums[r][1], high, of[r], i, arithmetic);
      }
    }
  }
  for (; u < units; u++, a += 4, b += TARN__NEON_PANEL) {
    const uint32x4_t low = tarn__neon_load(b), high = tarn__neon_load(b + TARN__VEC_LANES);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
      uint32_t one;
      memcpy(&one, a + r * row_bytes, sizeof one);
      sums[r][0] = tarn__neon_add(sums[r][0], low, one, arithmetic);
      sums[r][1] = tarn__neon_add(sums[r][1], high, one, arithmetic);
    }
  }
}

#if defined(TARN__NEON_BLOCKS)

// Blocks of two rows and two columns, [columns / 2] for two rows. b: two units of two columns; a: of two rows.
typedef tarn__vec tarn__neon_blocks[TARN__NEON_PANEL / 2];

TARN__VEC_INLINE tarn__vec tarn__neon_add_block(tarn__vec block, uint32x4_t a, uint32x4_t b,
                                                tarn__gemm_arithmetic arithmetic) {
  if (arithmetic == TARN__GEMM_INT8)
    __asm__("smmla %0.4s, %1.16b, %2.16b" : "+w"(block) : "w"(a), "w"(b));
  else
    __asm__("bfmmla %0.4s, %1.8h, %2.8h" : "+w"(block) : "w"(a), "w"(b));
  return block;
}

TARN__VEC_INLINE uint32x4_t tarn__neon_both(uint32x2_t first, uint32x2_t second) { return vcombine_u32(first, second); }

// Two units of one row.
TARN__VEC_INLINE uint32x2_t tarn__neon_two_units(const char *from) {
  return vreinterpret_u32_u8(vld1_u8((const uint8_t *)from));
}

// The halves of two registers: the first units of two rows, and the second ones.
TARN__VEC_INLINE uint32x4_t tarn__neon_firsts(uint32x4_t x, uint32x4_t y) {
  return vreinterpretq_u32_u64(vzip1q_u64(vreinterpretq_u64_u32(x), vreinterpretq_u64_u32(y)));
}
TARN__VEC_INLINE uint32x4_t tarn__neon_seconds(uint32x4_t x, uint32x4_t y) {
  return vreinterpretq_u32_u64(vzip2q_u64(vreinterpretq_u64_u32(x), vreinterpretq_u64_u32(y)));
}

// Two units of all columns of a panel times those of `rows` rows; `rows` is even.
TARN__VEC_INLINE void tarn__neon_add_blocks(tarn__neon_blocks *blocks, const uint32x4_t *a, const uint32_t *b, int rows,
                                            tarn__gemm_arithmetic arithmetic) {
#pragma GCC unroll 4
  for (int c = 0; c < TARN__NEON_PANEL / 2; c++) {
    const uint32x4_t columns = tarn__neon_load(b + 4 * c);
#pragma GCC unroll 4
    for (int p = 0; p < rows / 2; p++) blocks[p][c] = tarn__neon_add_block(blocks[p][c], a[p], columns, arithmetic);
  }
}

// Rows of sums from blocks.
TARN__VEC_INLINE void tarn__neon_unblock(tarn__neon_sums *sums, tarn__neon_blocks *blocks, int rows) {
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
      const uint32x4_t left = (uint32x4_t)blocks[r / 2][2 * half], right = (uint32x4_t)blocks[r / 2][2 * half + 1];
      sums[r][half] = (tarn__vec)(r % 2 == 0 ? tarn__neon_firsts(left, right) : tarn__neon_seconds(left, right));
    }
}

// As tarn__neon_tile(), of BF16 or INT8.
TARN__VEC_INLINE void tarn__neon_block_tile(tarn__neon_sums *sums, const char *a, int64_t row_bytes, const uint32_t *b,
                                            int64_t units, int rows, tarn__gemm_arithmetic arithmetic) {
  enum { AHEAD = 512, PAIRS = TARN__NEON_ROWS / 2 };
  tarn__neon_blocks blocks[PAIRS] = {{{0}}};
  uint32x4_t of[PAIRS];
  int64_t u = 0;
  if (row_bytes == 0) {
    for (; u < units; u += 2, a += 8 * rows, b += 2 * TARN__NEON_PANEL) {
      __builtin_prefetch((const char *)b + AHEAD);
#pragma GCC unroll 4
      for (int p = 0; p < rows / 2; p++) of[p] = tarn__neon_load(a + 16 * p);
      tarn__neon_add_blocks(blocks, of, b, rows, arithmetic);
    }
  } else {
    for (; u + 4 <= units; u += 4, a += 16, b += 4 * TARN__NEON_PANEL) {
      uint32x4_t later[PAIRS];
      __builtin_prefetch((const char *)b + AHEAD);
      __builtin_prefetch((const char *)b + AHEAD + 64);
#pragma GCC unroll 4
      for (int p = 0; p < rows / 2; p++) {
        const uint32x4_t x = tarn__neon_load(a + 2 * p * row_bytes), y = tarn__neon_load(a + (2 * p + 1) * row_bytes);
        of[p] = tarn__neon_firsts(x, y);
        later[p] = tarn__neon_seconds(x, y);
      }
      tarn__neon_add_blocks(blocks, of, b, rows, arithmetic);
      tarn__neon_add_blocks(blocks, later, b + 2 * TARN__NEON_PANEL, rows, arithmetic);
    }
    for (; u < units; u += 2, a += 8, b += 2 * TARN__NEON_PANEL) {
#pragma GCC unroll 4
      for (int p = 0; p < rows / 2; p++)
        of[p] = tarn__neon_both(tarn__neon_two_units(a + 2 * p * row_bytes),
                                tarn__neon_two_units(a + (2 * p + 1) * row_bytes));
      tarn__neon_add_blocks(blocks, of, b, rows, arithmetic);
    }
  }
  tarn__neon_unblock(sums, blocks, rows);
}

// Few rows, 1 to 4: `units` units of one or two panels, which are `panel` units apart. row_bytes: of A, 0 for a packed
// group of 4 rows. A row without a partner is multiplied twice.
TARN__VEC_INLINE void tarn__neon_block_few(tarn__neon_sums sums[2][TARN__NEON_ROWS], const char *a, int64_t row_bytes,
                                           const uint32_t *b, int64_t units, int64_t panel, int rows, int panels,
                                           tarn__gemm_arithmetic arithmetic) {
  enum { FAR = 4096 };  // bytes by which prefetching is ahead
  const int64_t row = row_bytes != 0 ? row_bytes : 8, two = row_bytes != 0 ? 8 : 8 * TARN__NEON_STEP;
  tarn__neon_blocks blocks[2][TARN__NEON_STEP / 2] = {{{{0}}}};
  for (int64_t u = 0; u < units; u += 2, a += two, b += 2 * TARN__NEON_PANEL) {
    uint32x4_t of[TARN__NEON_STEP / 2];
#pragma GCC unroll 2
    for (int p = 0; p < (rows + 1) / 2; p++) {
      const char *first = a + 2 * p * row;
      of[p] =
          tarn__neon_both(tarn__neon_two_units(first), tarn__neon_two_units(2 * p + 1 < rows ? first + row : first));
    }
#pragma GCC unroll 2
    for (int i = 0; i < panels; i++) {
      __builtin_prefetch((const char *)(b + i * panel) + FAR);
      tarn__neon_add_blocks(blocks[i], of, b + i * panel, (rows + 1) / 2 * 2, arithmetic);
    }
  }
#pragma GCC unroll 2
  for (int i = 0; i < panels; i++) tarn__neon_unblock(sums[i], blocks[i], rows);
}

#endif

#endif

#endif
