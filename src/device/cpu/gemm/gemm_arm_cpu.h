// The inner loops of products on 64-bit ARM, for tiles of 8 rows and two registers of columns: 16 of the 32 registers
// are sums, as many as the latency of a multiply-add requires on processors that begin four in a cycle. Instructions
// multiply a register by one lane of another, so with NEON four units of a row of A are loaded at once, and a unit
// needs no broadcast. SVE takes the lane from each 128 bits of a longer register, and does so only where A is
// packed; where A lies in place a unit is loaded into all lanes.
#ifndef TARN_DEVICE_CPU_GEMM_GEMM_ARM_CPU_H
#define TARN_DEVICE_CPU_GEMM_GEMM_ARM_CPU_H

#if defined(TARN_NEON) || defined(TARN_SVE)
#define TARN__ARM_LOOPS 1

#include <string.h>

#include "device/cpu/gemm/gemm_kernels.h"
#include "device/cpu/gemm/gemm_neon_cpu.h"
#include "device/cpu/gemm/gemm_sve_cpu.h"
#include "device/cpu/isa/vec_cpu.h"

enum { TARN__ARM_ROWS = 8, TARN__ARM_STEP = 4, TARN__ARM_PANEL = 2 * TARN__VEC_LANES };

#if defined(TARN__ARM_BLOCKS)
enum { TARN__ARM_BESIDE = 2 };
#else
enum { TARN__ARM_BESIDE = 1 };
#endif

typedef tarn__vec tarn__arm_sums[2];  // of a row

// Sums of INT8 are integers in the bits of a register. With intrinsics gcc copies such sums, because they change the
// type of the register, so these instructions are written out.

// sum + a b with unit `lane` of each 128 bits of a, which is a constant where the loop is unrolled.
TARN__VEC_INLINE tarn__vec tarn__arm_add_lane(tarn__vec sum, tarn__arm_units b, tarn__arm_units a, int lane,
                                              tarn__gemm_arithmetic arithmetic) {
#define ADD(n)                               \
  case n:                                    \
    if (arithmetic == TARN__GEMM_INT8)       \
      TARN__ARM_ADD_BYTES(sum, b, a, n);     \
    else                                     \
      sum = TARN__ARM_ADD_F32(sum, b, a, n); \
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
  return sum;
}

// Prefetches what one step of a loop reads of B.
TARN__VEC_INLINE void tarn__arm_prefetch(const uint32_t *b, int units) {
  enum { AHEAD = 512 };  // bytes
#pragma GCC unroll 8
  for (int at = 0; at < units * TARN__ARM_PANEL * 4; at += 64) __builtin_prefetch((const char *)b + AHEAD + at);
}

// Says that the address depends on a sum, so that compilers do not load what is there much earlier than it is used, for
// which there are no registers.
#define TARN__ARM_AFTER(address, sum) __asm__("" : "+r"(address), "+w"(sum))

// One unit of each row.
TARN__VEC_INLINE void tarn__arm_one_unit(tarn__arm_sums *sums, const char *a, int64_t row_bytes, const uint32_t *b,
                                         int rows, tarn__gemm_arithmetic arithmetic) {
  const tarn__arm_units low = tarn__arm_load(b), high = tarn__arm_load(b + TARN__VEC_LANES);
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) {
    uint32_t one;
    memcpy(&one, a + r * row_bytes, sizeof one);
    sums[r][0] = tarn__arm_add(sums[r][0], low, one, arithmetic);
    sums[r][1] = tarn__arm_add(sums[r][1], high, one, arithmetic);
  }
}

// Four units of each row that lies in place; returns what follows in b.
TARN__VEC_INLINE const uint32_t *tarn__arm_four_units(tarn__arm_sums *sums, const char *a, int64_t row_bytes,
                                                      const uint32_t *b, int rows, tarn__gemm_arithmetic arithmetic) {
#if defined(TARN_SVE)
  tarn__arm_prefetch(b, 4);
  // Loading a unit into all lanes is one instruction, and takes any register.
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++, b += TARN__ARM_PANEL) tarn__arm_one_unit(sums, a + 4 * i, row_bytes, b, rows, arithmetic);
#else
  tarn__arm_units of[TARN__ARM_ROWS];
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) {
    of[r] = tarn__arm_load(a + r * row_bytes);
    __asm__("" : "+w"(of[r]));  // else gcc loads each lane by itself, and keeps them in memory
  }
  tarn__arm_prefetch(b, 4);
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++, b += TARN__ARM_PANEL) {
    TARN__ARM_AFTER(b, sums[0][0]);
    const tarn__arm_units low = tarn__arm_load(b), high = tarn__arm_load(b + TARN__VEC_LANES);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
      sums[r][0] = tarn__arm_add_lane(sums[r][0], low, of[r], i, arithmetic);
      sums[r][1] = tarn__arm_add_lane(sums[r][1], high, of[r], i, arithmetic);
    }
  }
#endif
  return b;
}

// The sums of a tile of 4 or 8 rows. row_bytes: 0 for a packed group of A.
TARN__VEC_INLINE void tarn__arm_tile(tarn__arm_sums *sums, const char *a, int64_t row_bytes, const uint32_t *b,
                                     int64_t units, int rows, tarn__gemm_arithmetic arithmetic) {
  const int64_t unit = 4 * (int64_t)rows;
  int64_t u = 0;
  if (row_bytes == 0) {  // rows lie side by side
    for (; u < units; u++, a += unit, b += TARN__ARM_PANEL) {
      const tarn__arm_units low = tarn__arm_load(b), high = tarn__arm_load(b + TARN__VEC_LANES);
      tarn__arm_prefetch(b, 1);
      tarn__arm_units of[TARN__ARM_ROWS / 4];
#pragma GCC unroll 2
      for (int i = 0; i < rows / 4; i++) {
        of[i] = tarn__arm_load_four(a + 16 * i);
        __asm__("" : "+w"(of[i]));
      }
#pragma GCC unroll 8
      for (int r = 0; r < rows; r++) {
        sums[r][0] = tarn__arm_add_lane(sums[r][0], low, of[r / 4], r % 4, arithmetic);
        sums[r][1] = tarn__arm_add_lane(sums[r][1], high, of[r / 4], r % 4, arithmetic);
      }
    }
    return;
  }
  for (; u + 4 <= units; u += 4, a += 16) b = tarn__arm_four_units(sums, a, row_bytes, b, rows, arithmetic);
  for (; u < units; u++, a += 4, b += TARN__ARM_PANEL) tarn__arm_one_unit(sums, a, row_bytes, b, rows, arithmetic);
}

#if defined(TARN__ARM_BLOCKS)

// Blocks of two rows and two columns, one in each 128 bits of the registers for two rows. b: two units of two columns,
// a: of two rows, in each 128 bits.
enum { TARN__ARM_QUARTERS = 4 };
typedef tarn__vec tarn__arm_blocks[TARN__ARM_QUARTERS];  // of LANES / 2 columns each

// Two units of all columns of a panel times those of `rows` rows; `rows` is even.
TARN__VEC_INLINE void tarn__arm_add_blocks(tarn__arm_blocks *blocks, const tarn__arm_units *a, const uint32_t *b,
                                           int rows, tarn__gemm_arithmetic arithmetic) {
#pragma GCC unroll 4
  for (int c = 0; c < TARN__ARM_QUARTERS; c++) {
    const tarn__arm_units columns = tarn__arm_load(b + TARN__VEC_LANES * c);
#pragma GCC unroll 4
    for (int p = 0; p < rows / 2; p++) blocks[p][c] = tarn__arm_add_block(blocks[p][c], a[p], columns, arithmetic);
  }
}

// Rows of sums from blocks.
TARN__VEC_INLINE void tarn__arm_unblock(tarn__arm_sums *sums, tarn__arm_blocks *blocks, int rows) {
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
      const tarn__vec left = blocks[r / 2][2 * half], right = blocks[r / 2][2 * half + 1];
      sums[r][half] = r % 2 == 0 ? tarn__arm_first_row(left, right) : tarn__arm_second_row(left, right);
    }
}

// As tarn__arm_tile(), of BF16 or INT8.
TARN__VEC_INLINE void tarn__arm_block_tile(tarn__arm_sums *sums, const char *a, int64_t row_bytes, const uint32_t *b,
                                           int64_t units, int rows, tarn__gemm_arithmetic arithmetic) {
  enum { PAIRS = TARN__ARM_ROWS / 2 };
  tarn__arm_blocks blocks[PAIRS] = {{{0}}};
  tarn__arm_units of[PAIRS];
  int64_t u = 0;
  if (row_bytes == 0) {
    for (; u < units; u += 2, a += 8 * rows, b += 2 * TARN__ARM_PANEL) {
      tarn__arm_prefetch(b, 2);
#pragma GCC unroll 4
      for (int p = 0; p < rows / 2; p++) of[p] = tarn__arm_load_four(a + 16 * p);
      tarn__arm_add_blocks(blocks, of, b, rows, arithmetic);
    }
  } else {
    for (; u + 4 <= units; u += 4, a += 16, b += 4 * TARN__ARM_PANEL) {
      tarn__arm_units later[PAIRS];
      tarn__arm_prefetch(b, 4);
#pragma GCC unroll 4
      for (int p = 0; p < rows / 2; p++) {
        const tarn__arm_units x = tarn__arm_load_four(a + 2 * p * row_bytes);
        const tarn__arm_units y = tarn__arm_load_four(a + (2 * p + 1) * row_bytes);
        of[p] = tarn__arm_firsts(x, y);
        later[p] = tarn__arm_seconds(x, y);
      }
      tarn__arm_add_blocks(blocks, of, b, rows, arithmetic);
      tarn__arm_add_blocks(blocks, later, b + 2 * TARN__ARM_PANEL, rows, arithmetic);
    }
    for (; u < units; u += 2, a += 8, b += 2 * TARN__ARM_PANEL) {
#pragma GCC unroll 4
      for (int p = 0; p < rows / 2; p++) of[p] = tarn__arm_both(a + 2 * p * row_bytes, a + (2 * p + 1) * row_bytes);
      tarn__arm_add_blocks(blocks, of, b, rows, arithmetic);
    }
  }
  tarn__arm_unblock(sums, blocks, rows);
}

// Few rows, 1 to 4: `units` units of one or two panels, which are `panel` units apart. row_bytes: of A, 0 for a packed
// group of 4 rows. A row without a partner is multiplied twice.
TARN__VEC_INLINE void tarn__arm_block_few(tarn__arm_sums sums[2][TARN__ARM_ROWS], const char *a, int64_t row_bytes,
                                          const uint32_t *b, int64_t units, int64_t panel, int rows, int panels,
                                          tarn__gemm_arithmetic arithmetic) {
  enum { FAR = 4096 };  // bytes by which prefetching is ahead
  const int64_t row = row_bytes != 0 ? row_bytes : 8, two = row_bytes != 0 ? 8 : 8 * TARN__ARM_STEP;
  tarn__arm_blocks blocks[2][TARN__ARM_STEP / 2] = {{{{0}}}};
  for (int64_t u = 0; u < units; u += 2, a += two, b += 2 * TARN__ARM_PANEL) {
    tarn__arm_units of[TARN__ARM_STEP / 2];
#pragma GCC unroll 2
    for (int p = 0; p < (rows + 1) / 2; p++) {
      const char *first = a + 2 * p * row;
      of[p] = tarn__arm_both(first, 2 * p + 1 < rows ? first + row : first);
    }
#pragma GCC unroll 2
    for (int i = 0; i < panels; i++) {
#pragma GCC unroll 4
      for (int line = 0; line < 2 * TARN__ARM_PANEL * 4; line += 64)
        __builtin_prefetch((const char *)(b + i * panel) + FAR + line);
      tarn__arm_add_blocks(blocks[i], of, b + i * panel, (rows + 1) / 2 * 2, arithmetic);
    }
  }
#pragma GCC unroll 2
  for (int i = 0; i < panels; i++) tarn__arm_unblock(sums[i], blocks[i], rows);
}

#endif

#endif

#endif
