// Moments of the columns of a series.
#ifndef TARN_SERIES_MEASURE_H
#define TARN_SERIES_MEASURE_H

#include "tarn/series.h"

// Mean and variance (divided by the number of rows) of each column over the first `rows` rows. The variance of a column
// of equal numbers is 0.
void tarn__column_moments(double *mean, double *variance, const tarn_series *series, int64_t rows);

#endif
