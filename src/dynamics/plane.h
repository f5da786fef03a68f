// The plane of the two principal components of states.
#ifndef TARN_DYNAMICS_PLANE_H
#define TARN_DYNAMICS_PLANE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct tarn__plane {
  double *mean, *axes;  // [width], [2, width], orthonormal; with one column the second is 0
  double share[2];      // of the variance, along each
} tarn__plane;

// Uses at most 4096 evenly spaced rows of x [count, width]. The largest number of an axis is positive. Fails with
// MEMORY or NUMERIC. Closing frees it; zero-initialise.
tarn_status tarn__plane_open(tarn__plane *plane, const float *x, int64_t count, int64_t width) TARN_CHECKED;
void tarn__plane_close(tarn__plane *plane);
// Upper bound of the memory of opening, for at most `count` rows.
size_t tarn__plane_bytes(int64_t count, int64_t width);
// The coordinates of a row.
void tarn__plane_place(const tarn__plane *plane, double place[2], const float *row, int64_t width);

#endif
