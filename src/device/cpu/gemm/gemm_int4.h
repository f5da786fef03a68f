// Products with a B of INT4 (device/int4.h). Rows of A are quantised to INT8 with a scale each, sums are exact
// integers, and what follows is that of products with an INT8 B that has the same integers: bits are the same for few
// rows, which are made for the speed of reading B, at 4.25 bits a weight, and for many, which read a B that is widened
// to INT8 piece by piece.
//
// A packed B is a sequence of panels of columns, then the scales and the sums of all columns. A panel is pairs of
// groups: the factors [columns][2], then of each group [4][columns] words of 32 bits. Byte t of word i of a column has
// term 8 i + t of the group in its low half and term 8 i + 4 + t in its high one: four terms that follow each other are
// a unit of dot products of bytes. So a product of few rows reads B from the first byte to the last.
#ifndef TARN_DEVICE_CPU_GEMM_GEMM_INT4_H
#define TARN_DEVICE_CPU_GEMM_GEMM_INT4_H

#include "device/cpu/gemm/gemm_kernels.h"
#include "device/int4.h"

enum {
  TARN__INT4_WORDS = 4,                    // of a group of a column
  TARN__INT4_PAIR = 2 * TARN__INT4_GROUP,  // terms
  TARN__INT4_PAIR_BYTES = 2 + 2 * 16       // of a column and a pair of groups
};

static inline int64_t tarn__int4_pairs(int64_t terms) { return (terms + TARN__INT4_PAIR - 1) / TARN__INT4_PAIR; }

// C = act(A B + bias), or C += A B, of few rows, for some columns from the first of a panel on.
typedef struct tarn__int4_block {
  const signed char *a;        // [rows][pairs][64]
  const float *row_scales;     // [rows]
  const int32_t *zeros;        // [rows][pairs][2]: -8 times the sums of the groups of A
  const unsigned char *b;      // packed
  const float *column_scales;  // [columns], up to the end of a panel
  int64_t rows, columns, pairs;
  void *c;
  int64_t ldc;
  tarn__dtype c_dtype;
  const float *bias;  // [columns] or NULL
  bool accumulate, relu;
} tarn__int4_block;

typedef struct tarn__gemm_int4_kernels {
  void (*multiply)(const tarn__int4_block *block);
  // zeros[i] of a row of A.
  void (*find_zeros)(int32_t *zeros, const signed char *a, int64_t groups);
  // A panel as INT8: [units][columns], as gemm_kernels.h describes it.
  void (*widen)(uint32_t *out, const unsigned char *panel, int64_t pairs);
} tarn__gemm_int4_kernels;

TARN__TABLES(tarn__gemm_int4_kernels);

extern const tarn__gemm_way tarn__gemm_int4;

// Rounds B as packing with int4 does, on any instruction set: values [n][groups][17], and the scales [n]. If a number
// of a column is not finite, neither is its scale.
void tarn__gemm_round_int4(unsigned char *values, float *scales, const tarn__gemm *gemm, int threads);

#endif
