// Moments of the columns of a series.
#ifndef TARN_SERIES_MEASURE_H
#define TARN_SERIES_MEASURE_H

#include "base/status.h"
#include "tarn/lab/series.h"

// Mean and variance (divided by the number of rows) of each column over the first `rows` rows. The variance of a column
// of equal numbers is 0. Fails with DATA, naming the column, if a variance is 0 or not finite, so that it cannot
// normalise anything.
tarn_status tarn__column_moments(double *mean, double *variance, const tarn_series *series, int64_t rows) TARN_CHECKED;

#endif
