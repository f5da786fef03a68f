// Dense products, by oneDNN, which no other file knows of. A product is cut into tiles of rows that the threads take in
// turn, each tile computed by one thread; primitives are made once for each shape of a tile and kept.
//
// Measured on one core of Zen 4 (fp32 / bf16, GFLOP/s): tiles of 256 rows with the weights as they lie reach 113 / 225,
// with weights packed ahead 116 / 232, so nothing is packed; weight gradients reach 102-112 / 200-215. A tail of rows
// costs no more than its share, because all tiles of a product have nearly the same height.
#ifndef TARN_OPS_GEMM_H
#define TARN_OPS_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "graph/graph.h"

// C [m, n] = act(A [m, k] B [k, n] + bias), or C += A B. All matrices are row-major; the leading dimension is the
// distance of two rows in elements.
typedef struct tarn__gemm {
  int64_t m, n, k;
  const void *a;      // [m, k], or [k, m] if transpose_a
  const void *b;      // [k, n], or [n, k] if transpose_b
  void *c;            // [m, n]
  const float *bias;  // [n] or NULL
  int64_t lda, ldb, ldc;
  tarn__dtype dtype;    // of A and B: F32 or BF16
  tarn__dtype c_dtype;  // F32 or BF16 (BF16 only if `dtype` is)
  bool transpose_a, transpose_b;
  bool accumulate;  // adds to C; without bias and relu
  bool relu;
} tarn__gemm;

// Rows of a tensor that a product may read and write: with the spare rows of the workspace, if it has them.
int64_t tarn__gemm_rows(const tarn__tensor *tensor);

// Bytes of scratch that tarn__gemm_run() needs for these shapes (the pointers are not looked at); 0 for F64,
// which only the reference computes in.
size_t tarn__gemm_scratch(const tarn__gemm *gemm, int threads);

// Computes the product with `threads` threads; `scratch` is aligned to 64 bytes. The bits of the result do not depend
// on which thread computes which tile.
tarn_status tarn__gemm_run(const tarn__gemm *gemm, int threads, void *scratch) TARN_CHECKED;

#endif
