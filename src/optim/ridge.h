// Ridge regression in one pass: sums over samples, a closed form at the end.
//
// With means m of x and of y over n samples, as in reservoirpy's Ridge with fit_bias (the bias is not penalised):
//   W = (X'X - n mx mx' + ridge I)^-1 (X'Y - n mx my'),   b = my - mx W
//
// Targets may be classes: y is then a row of zeros with a one in its place, and only the sums know its width.
#ifndef TARN_OPTIM_RIDGE_H
#define TARN_OPTIM_RIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "device/device.h"

enum { TARN__RIDGE_PIECE = 64 };  // samples added at once

// The sums, and samples waiting to be added. Zero-initialise or open it. Products, totals and waiting samples are in
// the memory of the device, which adds them (device/device.h); the host solves.
typedef struct tarn__ridge {
  const tarn__device *device;
  int64_t inputs, outputs, width;  // width = inputs + outputs
  bool classes;                    // targets are classes 0 .. outputs - 1
  int64_t count;                   // samples in the sums
  double *products;                // [inputs, width]: X'X (from the diagonal on) and X'Y
  double *totals;                  // [width]: sums of x and y
  int64_t wide, pitch;             // numbers per waiting sample: width, for classes inputs; and their distance
  double *waiting;                 // [TARN__RIDGE_PIECE, pitch]
  int32_t waiting_classes[TARN__RIDGE_PIECE];  // in the host's memory, passed with the call
  int64_t waiting_count;
  // In the host's memory, which may be the device's: the buffer of samples with values, and the totals of the last
  // solution.
  double *filling, *solved_totals;
} tarn__ridge;

tarn_status tarn__ridge_open(tarn__ridge *ridge, const tarn__device *device, int64_t inputs,
                             int64_t outputs) TARN_CHECKED;
tarn_status tarn__ridge_open_classes(tarn__ridge *ridge, const tarn__device *device, int64_t inputs,
                                     int64_t outputs) TARN_CHECKED;
void tarn__ridge_close(tarn__ridge *ridge);

// One sample: x [inputs], y [outputs]. The sums do not depend on the number of threads.
tarn_status tarn__ridge_add(tarn__ridge *ridge, const double *x, const double *y) TARN_CHECKED;

// With classes: `count` samples, the rows of a matrix [*, inputs] in the memory of the device, F32 or BF16, from row
// `first` on, and their classes [count] in the host's. The division into calls changes no bit.
tarn_status tarn__ridge_add_rows(tarn__ridge *ridge, const void *rows, tarn__dtype dtype, int64_t first, int64_t count,
                                 const int32_t *classes) TARN_CHECKED;

// Adds the samples of `other`, of the same widths and kind, so that parts of a series can be summed separately.
tarn_status tarn__ridge_merge(tarn__ridge *ridge, tarn__ridge *other) TARN_CHECKED;

// Passes all sums to `change`, numbers [count]: the products, meaningless below the diagonal, and the totals. Waiting
// samples are added first; the caller adjusts ridge->count.
tarn_status tarn__ridge_change(tarn__ridge *ridge, tarn_status (*change)(void *user, double *numbers, int64_t count),
                               void *user) TARN_CHECKED;

// Upper bound of the bytes of the sums with classes and of solving, without weights and bias, in the memory of the
// device and in the host's.
size_t tarn__ridge_bytes(const tarn__device *device, int64_t inputs, int64_t outputs);

// weights [inputs, outputs] and bias [outputs]. If Cholesky's factorisation fails, or a pivot is below 2^-49 of the
// largest, the ridge is made ten times larger (at least 2^-52 of the mean of the diagonal); *used is the final one. The
// sums are kept. Fails with DATA (no samples), NUMERIC (sums that are not finite) or MEMORY.
tarn_status tarn__ridge_solve(double *weights, double *bias, double *used, tarn__ridge *ridge,
                              double penalty) TARN_CHECKED;

#endif
