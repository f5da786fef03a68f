// Moments of the columns of a series.
#ifndef TARN_SERIES_MEASURE_H
#define TARN_SERIES_MEASURE_H

#include "base/status.h"
#include "tarn/lab/series.h"

// Mean and variance (divided by the number of rows) of each column over the first `rows` rows. The variance of a column
// of equal numbers is 0. Fails with DATA, naming the column, where a variance is 0 or no finite number, so that nothing
// can be normalised by it.
tarn_status tarn__column_moments(double *mean, double *variance, const tarn_series *series, int64_t rows) TARN_CHECKED;

#endif
