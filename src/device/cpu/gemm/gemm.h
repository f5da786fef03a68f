// Dense products. Both operands are packed into the order in which a kernel reads them (gemm_kernels.h), blocks of C
// are taken by the threads in turn, and what follows a product (bias, ReLU, addition, rounding to BF16) happens while a
// tile of C is still in registers.
//
// Every element of C is one sum over k in a fixed order, cut into chunks whose length depends on k alone. So the bits
// of a row of C depend neither on the number of threads nor on the other rows.
#ifndef TARN_DEVICE_CPU_GEMM_GEMM_H
#define TARN_DEVICE_CPU_GEMM_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/dtype.h"

// C [m, n] = act(A [m, k] B [k, n] + bias), or C += A B. All matrices are row-major; the leading dimension is the
// distance of two rows in elements.
typedef struct tarn__gemm {
  int64_t m, n, k;
  const void *a;       // [m, k], or [k, m] if transpose_a
  const void *b;       // [k, n], or [n, k] if transpose_b; not read if `packed` is there
  const void *packed;  // B as tarn__gemm_pack() wrote it, or NULL
  void *c;             // [m, n]
  const float *bias;   // [n] or NULL
  int64_t lda, ldb, ldc;
  tarn__dtype dtype;    // of A and B: F32 or BF16
  tarn__dtype c_dtype;  // F32 or BF16 (BF16 only if `dtype` is)
  tarn__fp32 fp32;      // for F32 that is not INT8; else without effect. Not EXACT: only on processors with tiles
  bool transpose_a, transpose_b;
  bool accumulate;  // adds to C; without bias and relu
  bool relu;
  // B was packed as INT8, each column with a scale of its own; rows of A are rounded to INT8 as they are read, each
  // with a scale of its own, and sums are exact integers. Needs `packed`; without transpose_a.
  bool int8;
  // What the thread that made a block of C does with it once it is complete, while it is in the cache: rows [row, row +
  // rows) of columns [column, column + columns). NULL: nothing.
  void (*complete)(const struct tarn__gemm *gemm, int64_t row, int64_t rows, int64_t column, int64_t columns);
  const void *user;  // for `complete`
  const float
      *b_scales;  // [n], for tarn__gemm_pack() with int8: B is signed bytes already, with these scales; else NULL
} tarn__gemm;

// Bytes of scratch that tarn__gemm_run() needs for these shapes (the pointers are not looked at, but for whether
// `packed` is NULL); 0 for F64, which only the reference computes in.
size_t tarn__gemm_scratch(const tarn__gemm *gemm, int threads);

// The most of it that any product needs that is like this one but has fewer rows or, `by_terms`, a smaller k: where one
// scratch serves the products of sentences of all lengths.
size_t tarn__gemm_scratch_most(const tarn__gemm *gemm, int threads, bool by_terms);

// Enough of it for any product by one thread that computes in this type, whatever of it is transposed, where m is at
// most TARN__GEMM_FEW and of n and k one is at most `narrow` and the other at most `wide`, or where k is at most
// TARN__GEMM_FEW, n at most `narrow` and m at most `wide`. A bound: what is needed may be less.
enum { TARN__GEMM_FEW = 128 };
size_t tarn__gemm_scratch_bound(tarn__dtype dtype, tarn__fp32 fp32, int64_t narrow, int64_t wide);

// Computes the product with `threads` threads; `scratch` is aligned to 64 bytes.
void tarn__gemm_run(const tarn__gemm *gemm, int threads, void *scratch);

// A matrix B that is used often may be packed once: bytes of B [k, n] when packed, and the packing itself, from the
// fields n, k, b, ldb, dtype, transpose_a (on which the length of a chunk of k depends), transpose_b and int8 (which
// needs transpose_b). The packed form belongs to the instruction set in use.
size_t tarn__gemm_pack_bytes(const tarn__gemm *gemm);
void tarn__gemm_pack(void *packed, const tarn__gemm *gemm, int threads);
// Rounds B as packing with int8 does, whatever the instruction set: values [n, k], and a scale for each column of B.
void tarn__gemm_quantise(signed char *values, float *scales, const tarn__gemm *gemm, int threads);

#endif
