// Products of dense rows with a sparse square matrix, for the recurrent matrices of echo state networks: at the
// sparsity of most of the literature (0.9 and more) they take a fraction of the time of a dense product
// (docs/performance.md).
#ifndef TARN_OPS_SPARSE_PRODUCT_H
#define TARN_OPS_SPARSE_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "graph/dtype.h"
#include "ops/variant.h"

// A square matrix by rows (CSR): row i has the entries starts[i] .. starts[i + 1] - 1, by growing column.
typedef struct tarn__sparse_rows {
  int64_t n, room;  // room: most entries
  int32_t *starts;  // [n + 1]
  int32_t *columns;
  float *values;
} tarn__sparse_rows;

// Whether a matrix of which this share is zeros is better taken as sparse.
bool tarn__sparse_wins(double sparsity);

// Most entries that are made room for in a matrix of n rows of that sparsity: more than graphs of it have.
int64_t tarn__sparse_room(int64_t n, double sparsity);

// Fills rows from a dense matrix [n, n] of F32 or BF16, or from its transpose. False: it has more entries than there is
// room for, and is better taken as it is.
bool tarn__sparse_take(tarn__sparse_rows *rows, const void *dense, tarn__dtype dtype, bool transpose);

// c [m, n] = a matrix^T + bias, or c += a matrix^T; a [m, n] in F32 or BF16, sums in fp32 and in the order of the
// columns, so that the bits of a row depend on that row alone.
typedef struct tarn__sparse_product {
  const tarn__sparse_rows *matrix;
  const void *a;
  int64_t m, lda, ldc;
  tarn__dtype dtype;  // of a
  const float *bias;  // [n] or NULL
  bool accumulate;
  float *c;
  float *scratch;  // tarn__sparse_scratch() floats
} tarn__sparse_product;

enum { TARN__SPARSE_WIDE = 32 };  // rows of a that are computed together
static inline int64_t tarn__sparse_scratch(int64_t n) { return (n + TARN__SPARSE_WIDE) * TARN__SPARSE_WIDE; }

void tarn__sparse_run(const tarn__sparse_product *product);

typedef struct tarn__sparse_kernels {
  // Rows [first, first + count) of a and c; count is 1 .. TARN__SPARSE_WIDE.
  void (*block)(const tarn__sparse_product *product, int64_t first, int64_t count);
} tarn__sparse_kernels;
TARN__TABLES(tarn__sparse_kernels);

#endif
