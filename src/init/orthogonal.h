// Random orthogonal matrices (Saxe, McClelland, Ganguli 2013).
#ifndef TARN_INIT_ORTHOGONAL_H
#define TARN_INIT_ORTHOGONAL_H

#include <stdint.h>

#include "base/random.h"
#include "base/status.h"

// values [rows, cols] gets orthonormal columns (rows >= cols) or rows (rows < cols), times gain: Q of the QR
// decomposition of a normal matrix, with signs such that the diagonal of R is positive, so that Q is uniform (Haar).
// All sums have a fixed order, so equal generators give equal bits on every machine.
tarn_status tarn__orthogonal(float *values, int64_t rows, int64_t cols, double gain, tarn__random *random) TARN_CHECKED;

#endif
