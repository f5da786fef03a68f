// Products of dense rows with a sparse matrix (SpMM), for the matrices of echo state networks: at the sparsity common
// in the literature (0.9 and more) they take a fraction of the time of a dense product (bench/performance.md).
#ifndef TARN_DEVICE_CPU_GEMM_SPMM_H
#define TARN_DEVICE_CPU_GEMM_SPMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/dtype.h"
#include "device/variant.h"
#include "graph/graph.h"

// A matrix of n rows and `cols` columns by rows (CSR): row i has the entries starts[i] .. starts[i + 1] - 1, by
// increasing column.
typedef struct tarn__spmm_rows {
  int64_t n, cols, room;  // room: capacity in entries
  int32_t *starts;        // [n + 1]
  int32_t *columns;
  float *values;
} tarn__spmm_rows;

// Maximum capacity for a matrix of n rows with that sparsity: more than its graphs have.
int64_t tarn__spmm_room(int64_t n, double sparsity);

// Fills the rows of a square matrix from a dense one [n, n] of F32 or BF16, or from its transpose, with that many
// threads. False: it has too many entries, and is better used in dense form.
bool tarn__spmm_take(tarn__spmm_rows *rows, const void *dense, tarn__dtype dtype, bool transpose, int threads);

// The matrix of a parameter in CSR format, F32 or BF16, in place.
tarn__spmm_rows tarn__spmm_of(const tarn__tensor *weight);
// The transpose of a matrix, into arrays for from->cols rows and the same number of entries.
void tarn__spmm_transpose(tarn__spmm_rows *to, const tarn__spmm_rows *from);

// c [m, n] = a matrix^T + bias, or c += a matrix^T; a [m, cols] in F32 or BF16, sums in fp32 and in the order of the
// columns, so that the bits of a row depend on that row alone.
typedef struct tarn__spmm {
  const tarn__spmm_rows *matrix;
  const void *a;
  int64_t m, lda, ldc;
  tarn__dtype dtype;  // of a
  const float *bias;  // [n] or NULL
  bool accumulate;
  float *c;
  float *scratch;  // tarn__spmm_scratch() floats
} tarn__spmm;

enum { TARN__SPMM_WIDE = 32 };  // rows of a that are computed together
static inline int64_t tarn__spmm_scratch(int64_t cols) { return cols * TARN__SPMM_WIDE; }

// Computes the product with `threads` threads, each of which takes some rows of the matrix: no sum is divided, so the
// bits do not depend on their number. Products that are not worth waking other threads run on the caller alone.
void tarn__spmm_run(const tarn__spmm *product, int threads);

typedef struct tarn__spmm_kernels {
  // Rows [first, last) of a dense matrix, or its columns if transposed: `count` stores the number of entries of row i
  // in starts[i + 1]; then the entries are written from starts[i + 1] on, which advances past them.
  void (*count)(const tarn__spmm_rows *rows, const void *dense, tarn__dtype dtype, bool transpose, int64_t first,
                int64_t last);
  void (*fill)(const tarn__spmm_rows *rows, const void *dense, tarn__dtype dtype, bool transpose, int64_t first,
               int64_t last);
  // Rows [first, first + count) of a, 1 .. TARN__SPMM_WIDE of them: columns [column, last) are transposed to the
  // scratch; when all are there, columns [row, last) of c, which are rows of the matrix, are computed.
  void (*turn)(const tarn__spmm *product, int64_t first, int64_t count, int64_t column, int64_t last);
  void (*multiply)(const tarn__spmm *product, int64_t first, int64_t count, int64_t row, int64_t last);
} tarn__spmm_kernels;
TARN__TABLES(tarn__spmm_kernels);

#endif
