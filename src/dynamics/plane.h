// The plane of the two principal components of states.
#ifndef TARN_DYNAMICS_PLANE_H
#define TARN_DYNAMICS_PLANE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct tarn__plane {
  double *mean, *axes;  // [width], [2, width], orthonormal; of one column the second is 0
  double share[2];      // of the variance, along each
} tarn__plane;

// Of rows x [count, width], of which at most 4096 at equal distances are looked at. The largest number of an axis is
// positive. Fails with MEMORY or NUMERIC. Closing frees it; zero-initialise.
tarn_status tarn__plane_open(tarn__plane *plane, const float *x, int64_t count, int64_t width) TARN_CHECKED;
void tarn__plane_close(tarn__plane *plane);
// What opening takes at most, of at most `count` rows.
size_t tarn__plane_bytes(int64_t count, int64_t width);
// Where a row lies.
void tarn__plane_place(const tarn__plane *plane, double place[2], const float *row, int64_t width);

#endif
