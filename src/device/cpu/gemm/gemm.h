// Dense products. Both operands are packed into the order in which a kernel reads them (gemm_kernels.h), threads take
// blocks of C in turn, and operations that follow a product (bias, ReLU, addition, rounding to BF16) are applied while
// a tile of C is still in registers.
//
// Every element of C is one sum over k in a fixed order, divided into chunks whose length depends only on k. So the
// bits of a row of C depend neither on the number of threads nor on the other rows.
#ifndef TARN_DEVICE_CPU_GEMM_GEMM_H
#define TARN_DEVICE_CPU_GEMM_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/dtype.h"

// C [m, n] = act(A [m, k] B [k, n] + bias), or C += A B. All matrices are row-major; the leading dimension is the
// distance between rows in elements.
typedef struct tarn__gemm {
  int64_t m, n, k;
  const void *a;       // [m, k], or [k, m] if transpose_a
  const void *b;       // [k, n], or [n, k] if transpose_b; not read if `packed` is set
  const void *packed;  // B as tarn__gemm_pack() wrote it, or NULL
  void *c;             // [m, n]
  const float *bias;   // [n] or NULL
  int64_t lda, ldb, ldc;
  tarn__dtype dtype;    // of A and B: F32 or BF16
  tarn__dtype c_dtype;  // F32 or BF16 (BF16 only if `dtype` is)
  tarn__fp32 fp32;      // for F32 that is not INT8; otherwise ignored. Not EXACT: only on processors with matrix tiles
  bool transpose_a, transpose_b;
  bool accumulate;  // add to C; without bias and relu
  bool relu;
  // B was packed as INT8 with one scale per column. Rows of A are quantised to INT8 as they are read, with one scale
  // per row, and sums are exact integers. Needs `packed`; without transpose_a.
  bool int8;
  // The same with B as INT4, with a factor for 32 terms of a column (gemm_int4.h); k is at most TARN__INT4_MOST_TERMS.
  bool int4;
  // INT8: A is already bytes, as tarn__gemm_quantise_row() writes them, with a_scales; lda is then
  // tarn__gemm_int8_row(), and the rows are followed by memory up to a multiple of TARN__GEMM_INT8_ROWS.
  bool a_rounded;
  const float *a_scales;  // [m]
  // Only columns [first, first + n) of a packed B of `of` columns are multiplied, `first` being a multiple of
  // TARN__GEMM_PART; c and bias begin there. of = 0: B has n columns.
  int64_t first, of;
  // Called for each complete block of C by the thread that computed it, while it is in the cache: rows [row, row +
  // rows) of columns [column, column + columns). NULL: none.
  void (*complete)(const struct tarn__gemm *gemm, int64_t row, int64_t rows, int64_t column, int64_t columns);
  const void *user;  // for `complete`
  // [m]: to each the sum of its row of A is added; NULL: none. Only if tarn__gemm_sums_rows() says so.
  float *row_sums;
  // [n], for tarn__gemm_pack() with int8 or int4: B is already integers with these scales, signed bytes or those of
  // device/int4.h; else NULL.
  const float *b_scales;
} tarn__gemm;

enum {
  TARN__GEMM_PART = 32,     // whole panels of every packed B
  TARN__GEMM_INT8_ROWS = 4  // the kernels of INT8 read rows of A in multiples of this
};

// The columns of a packed B.
static inline int64_t tarn__gemm_all_columns(const tarn__gemm *g) { return g->of > 0 ? g->of : g->n; }

// Bytes of scratch that tarn__gemm_run() needs for these shapes (pointers are not used, except whether `packed` is
// NULL); 0 for F64, which only the reference computes.
size_t tarn__gemm_scratch(const tarn__gemm *gemm, int threads);

// The maximum for all similar products with fewer rows or, `by_terms`, a smaller k: for one scratch that serves the
// products of sentences of all lengths.
size_t tarn__gemm_scratch_most(const tarn__gemm *gemm, int threads, bool by_terms);

// An upper bound for any single-threaded product in this type, transposed or not, with m at most TARN__GEMM_FEW and one
// of n and k at most `narrow` and the other at most `wide`, or with k at most TARN__GEMM_FEW, n at most `narrow` and m
// at most `wide`.
enum { TARN__GEMM_FEW = 128 };
size_t tarn__gemm_scratch_bound(tarn__dtype dtype, tarn__fp32 fp32, int64_t narrow, int64_t wide);

// Whether the product can also sum the rows of A: where it reads each of them anyhow to pack it. Depends on the types
// and on transpose_a.
bool tarn__gemm_sums_rows(const tarn__gemm *gemm);

// Computes the product with `threads` threads; `scratch` is aligned to 64 bytes.
void tarn__gemm_run(const tarn__gemm *gemm, int threads, void *scratch);

// A row of k numbers as bytes, and its scale, for products of INT8 that several calls compute; and its bytes.
int64_t tarn__gemm_int8_row(int64_t k);
void tarn__gemm_quantise_row(uint8_t *out, float *scale, const void *row, tarn__dtype dtype, int64_t k);

// A frequently used matrix B can be packed once: bytes of B [k, n] when packed, and the packing itself, from the fields
// n, k, b, ldb, dtype, transpose_a (which affects the length of a chunk of k), transpose_b, int8 and int4 (which need
// transpose_b). The packed form is specific to the instruction set in use.
size_t tarn__gemm_pack_bytes(const tarn__gemm *gemm);
void tarn__gemm_pack(void *packed, const tarn__gemm *gemm, int threads);
// Quantises B as packing with int8 does, on any instruction set: values [n, k], and a scale for each column of B.
void tarn__gemm_quantise(signed char *values, float *scales, const tarn__gemm *gemm, int threads);

#endif
