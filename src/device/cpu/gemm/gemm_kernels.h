// Internals of gemm: packed operands, and the kernels that multiply them.
//
// k is counted in units of 32 bits: one F32, two BF16 or four INT8 that are consecutive in k. A packed B is a sequence
// of panels of columns, each [units][panel]; a packed A is a sequence of groups of rows, each [units][rows of the
// group]. If a panel or a group extends beyond the matrix, it is padded with zeros. So a kernel reads both operands
// sequentially, and a tile of C stays in registers for the whole sum (Goto and van de Geijn 2008; Van Zee and van de
// Geijn 2015). An A with contiguous rows is read in place: packing it would cost more than it gains.
//
// Where instructions multiply blocks of two rows and two columns, two units of a line lie side by side (`beside`):
// panels of BF16 and INT8 are then [units / 2][panel][2], and groups likewise.
#ifndef TARN_DEVICE_CPU_GEMM_GEMM_KERNELS_H
#define TARN_DEVICE_CPU_GEMM_GEMM_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "device/cpu/gemm/gemm.h"
#include "device/dtype.h"
#include "device/variant.h"

// The contents of packed operands.
typedef enum tarn__gemm_arithmetic {
  TARN__GEMM_F32,   // F32
  TARN__GEMM_WIDE,  // BF16, packed as F32: for processors without dot products of BF16
  TARN__GEMM_BF16,  // pairs of BF16; only with multiply_bf16
  TARN__GEMM_INT8   // A: -127 to 127 as bytes, of which `zero` represents 0; B: signed bytes
} tarn__gemm_arithmetic;

// Rows of A or columns of B: the lines. They are packed to panels of `width` lines each, `stride` units apart.
typedef struct tarn__gemm_lines {
  const void *from;  // first element
  int64_t ld;        // distance in elements between two lines (along), or between two terms of k (across)
  int64_t count;     // lines
  int64_t k;         // elements of each line
  int64_t width, stride;
  bool across;  // false: a line is contiguous; true: strided
  tarn__gemm_arithmetic arithmetic;
} tarn__gemm_lines;

// C [m, n] = A B with a packed B.
typedef struct tarn__gemm_block {
  const void *a;      // packed groups, or the first row if row_bytes is not 0
  int64_t row_bytes;  // distance between two rows of A in place; m is then a multiple of `step`, or less than one
  const void *next;   // rows of A that this thread will read next, for prefetching; only with row_bytes
  int64_t next_rows;
  const uint32_t *b;
  int64_t m, n, units;
  void *c;
  int64_t ldc;
  tarn__dtype c_dtype;
  const float *bias;  // [n] or NULL
  // INT8: the scales of rows of A and of columns of B, and the sums of the columns of B.
  const float *row_scales, *column_scales;
  const int32_t *column_sums;
  bool accumulate, relu;  // C += A B; C = max(C, 0) at the end
} tarn__gemm_block;

typedef struct tarn__gemm_kernels {
  int64_t panel;                  // columns of a panel
  int64_t group, step;            // rows of a group: `group`, and for the last one a multiple of `step`
  int64_t group_bf16, step_bf16;  // the same for multiply_bf16
  int64_t beside;                 // units of a line of BF16 or INT8 that lie side by side: 1 or 2
  int zero;                       // INT8: the byte of A that represents 0, 128 or 0
  void (*pack)(uint32_t *out, const tarn__gemm_lines *lines);
  void (*multiply_f32)(const tarn__gemm_block *block);
  void (*multiply_bf16)(const tarn__gemm_block *block);  // NULL without dot products of BF16
  void (*multiply_int8)(const tarn__gemm_block *block);
  // Largest magnitude of n numbers.
  float (*magnitude)(const void *x, tarn__dtype dtype, int64_t n);
  // out[i] = x[i] * inverse, rounded to the nearest integer, plus `zero`; padded with `zero` to a whole unit. Returns
  // the sum of the integers. |x[i] * inverse| is at most 127.
  int32_t (*quantise)(uint8_t *out, const void *x, tarn__dtype dtype, int64_t n, float inverse, int zero);
} tarn__gemm_kernels;

TARN__TABLES(tarn__gemm_kernels);

// Those in use; products of INT8 are by tiles if the processor has them.
const tarn__gemm_kernels *tarn__gemm_kernels_now(void);

// In gemm_int8_amx.c, for tarn__isa_int8_tiles().
void tarn__gemm_int8_amx_multiply(const tarn__gemm_block *block);

// The functions of gemm.h for products with a separate implementation; none is empty.
typedef struct tarn__gemm_way {
  size_t (*scratch)(const tarn__gemm *gemm, int threads);
  void (*run)(const tarn__gemm *gemm, int threads, void *scratch);
  size_t (*pack_bytes)(const tarn__gemm *gemm);
  void (*pack)(void *packed, const tarn__gemm *gemm, int threads);
} tarn__gemm_way;

enum { TARN__GEMM_ZERO = 128 };  // the byte of A that represents 0 where bytes of A are multiplied as unsigned ones

// Rows of the next group when `left` rows remain.
static inline int64_t tarn__gemm_group(int64_t left, int64_t group, int64_t step) {
  return left >= group ? group : (left + step - 1) / step * step;
}

// Elements of a line in a unit.
static inline int64_t tarn__gemm_unit_terms(tarn__gemm_arithmetic arithmetic) {
  return arithmetic == TARN__GEMM_BF16 ? 2 : arithmetic == TARN__GEMM_INT8 ? 4 : 1;
}

// Units that lie side by side.
static inline int64_t tarn__gemm_beside(const tarn__gemm_kernels *kernels, tarn__gemm_arithmetic arithmetic) {
  return tarn__gemm_unit_terms(arithmetic) > 1 ? kernels->beside : 1;
}

// Units of k elements, padded to whole ones that lie side by side.
static inline int64_t tarn__gemm_units(const tarn__gemm_kernels *kernels, int64_t k, tarn__gemm_arithmetic arithmetic) {
  const int64_t beside = tarn__gemm_beside(kernels, arithmetic), terms = tarn__gemm_unit_terms(arithmetic) * beside;
  return (k + terms - 1) / terms * beside;
}

#endif
