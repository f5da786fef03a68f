// Ridge regression in one pass: sums over samples, a closed form at the end.
//
// With means m of x and of y over n samples, as in reservoirpy's Ridge with fit_bias (the bias is not penalised):
//   W = (X'X - n mx mx' + ridge I)^-1 (X'Y - n mx my'),   b = my - mx W
#ifndef TARN_SERIES_RIDGE_H
#define TARN_SERIES_RIDGE_H

#include <stdint.h>

#include "base/status.h"

enum { TARN__RIDGE_PIECE = 64 };  // samples that are added at once

// The sums, and samples that wait to be added. Zero-initialise or open it.
typedef struct tarn__ridge {
  int64_t inputs, outputs, width;  // width = inputs + outputs
  int64_t count;                   // samples in the sums
  double *products;                // [inputs, width]: X'X (from the diagonal on) and X'Y
  double *totals;                  // [width]: sums of x and y
  double *waiting;                 // [TARN__RIDGE_PIECE, width]
  int64_t waiting_count;
} tarn__ridge;

tarn_status tarn__ridge_open(tarn__ridge *ridge, int64_t inputs, int64_t outputs) TARN_CHECKED;
void tarn__ridge_close(tarn__ridge *ridge);

// One sample: x [inputs], y [outputs]. The sums do not depend on the number of threads.
void tarn__ridge_add(tarn__ridge *ridge, const double *x, const double *y);

// Adds the samples of `other`, of the same widths, so that parts of a series may be summed apart.
void tarn__ridge_merge(tarn__ridge *ridge, tarn__ridge *other);

// weights [inputs, outputs] and bias [outputs]. Where Cholesky's factorisation fails, or a pivot is below 2^-49 of the
// largest, the ridge is made ten times larger (at least 2^-52 of the mean of the diagonal); *used is what it came to.
// The sums are kept. Fails with DATA (no samples), NUMERIC (sums that are not finite) or MEMORY.
tarn_status tarn__ridge_solve(double *weights, double *bias, double *used, tarn__ridge *ridge,
                              double penalty) TARN_CHECKED;

#endif
