// Square sparse matrices of doubles by rows (CSR).
#ifndef TARN_BASE_SPARSE_H
#define TARN_BASE_SPARSE_H

#include <stdint.h>

#include "base/status.h"

// Zero-initialise it. Row i has the entries starts[i] .. starts[i + 1] - 1, by ascending column; none is zero.
typedef struct tarn__sparse {
  int64_t n;
  int64_t *starts;   // [n + 1]
  int32_t *columns;  // [starts[n]]
  double *values;    // [starts[n]]
} tarn__sparse;

enum { TARN__SPARSE_MOST = 1 << 24 };  // most rows

// Memory for n rows (1 .. TARN__SPARSE_MOST) and so many entries; the caller fills it.
tarn_status tarn__sparse_alloc(tarn__sparse *matrix, int64_t n, int64_t entries) TARN_CHECKED;
// Takes over arrays from tarn__alloc(), starts [n + 1] and columns, of which those after the last entry stay unused,
// and allocates the values; on failure they remain the caller's.
tarn_status tarn__sparse_take(tarn__sparse *matrix, int64_t n, int64_t *starts, int32_t *columns) TARN_CHECKED;
// From a dense matrix [n, n], row-major; zeros are left out.
tarn_status tarn__sparse_from_dense(tarn__sparse *matrix, const double *dense, int64_t n) TARN_CHECKED;
// To a dense matrix [n, n], row-major.
void tarn__sparse_to_dense(double *dense, const tarn__sparse *matrix);
void tarn__sparse_close(tarn__sparse *matrix);

// y = A x. Sums have the order of the columns.
void tarn__sparse_product(double *y, const tarn__sparse *matrix, const double *x);

// Strongly connected components of the graph with an edge i -> j for every entry (i, j) (Tarjan 1972): component[i] is
// in 0 .. *count - 1.
tarn_status tarn__sparse_components(int32_t *component, int32_t *count, const tarn__sparse *matrix) TARN_CHECKED;

#endif
