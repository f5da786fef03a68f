// Random orthogonal matrices (Saxe, McClelland, Ganguli 2013).
#ifndef TARN_INIT_ORTHOGONAL_H
#define TARN_INIT_ORTHOGONAL_H

#include <stdint.h>

#include "base/random.h"
#include "base/status.h"

// values [rows, cols] gets orthonormal columns (rows >= cols) or rows (rows < cols), times gain: Q of the QR
// decomposition of a normal matrix, with signs such that the diagonal of R is positive, so Q is uniform (Haar). All
// sums have a fixed order, so equal generators give equal bits on every machine.
tarn_status tarn__orthogonal(float *values, int64_t rows, int64_t cols, double gain, tarn__random *random) TARN_CHECKED;

// Orthogonal random features (Choromanski et al. 2021): rows of as many random orthogonal matrices [cols, cols] as
// needed, each with the length of a vector of `cols` normal numbers. So each row has the distribution of such a vector,
// and the rows of a block are orthogonal.
tarn_status tarn__orthogonal_features(float *values, int64_t rows, int64_t cols, tarn__random *random) TARN_CHECKED;

#endif
