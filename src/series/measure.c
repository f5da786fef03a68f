#include "series/measure.h"

#include <math.h>

#include "base/memory.h"
#include "series/table.h"

static tarn_status check_variances(const double *variance, const tarn_series *series) {
  for (int64_t c = 0; c < series->columns; c++) {
    TARN_REQUIRE(isfinite(variance[c]), DATA, "column %s: its numbers are too large, so that its variance is infinite",
                 series->names[c]);
    TARN_REQUIRE(variance[c] > 0, DATA,
                 "column %s is constant, so that neither it nor its errors can be normalised by its variance",
                 series->names[c]);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__column_moments(double *mean, double *variance, const tarn_series *series, int64_t rows) {
  int64_t d = series->columns;
  for (int64_t c = 0; c < d; c++) {
    double sum = 0, squares = 0;
    const double first = series->values[c];
    bool constant = true;
    for (int64_t r = 0; r < rows; r++) {
      sum += series->values[r * d + c];
      constant &= series->values[r * d + c] == first;
    }
    // A mean that is rounded would leave a constant column some variance.
    mean[c] = constant ? first : sum / (double)rows;
    for (int64_t r = 0; r < rows; r++) squares += pow(series->values[r * d + c] - mean[c], 2);
    variance[c] = squares / (double)rows;
  }
  return check_variances(variance, series);
}

static void compare(tarn_forecast_measures *m, const tarn_series *forecast, const double *truth, const double *variance,
                    double threshold) {
  int64_t d = forecast->columns;
  double sum = 0;
  m->valid_to_end = true;
  for (int64_t r = 0; r < m->rows; r++) {
    double error = 0;
    for (int64_t c = 0; c < d; c++) error += pow(forecast->values[r * d + c] - truth[r * d + c], 2) / variance[c];
    if (isnan(error)) error = INFINITY;
    sum += error;
    m->valid_to_end = m->valid_to_end && sqrt(error / (double)d) <= threshold;
    m->valid_steps += m->valid_to_end;
  }
  m->nrmse = sqrt(sum / (double)(m->rows * d));
}

tarn_status tarn_forecast_measure(tarn_forecast_measures *measures, const tarn_series *forecast,
                                  const tarn_series *series, int64_t from, double threshold) {
  *measures = (tarn_forecast_measures){0};
  TARN_TRY(
      tarn__series_check_columns(series, (const char *const *)forecast->names, forecast->columns, "the forecast has"));
  TARN_REQUIRE(from >= 0 && from < series->rows && forecast->rows > 0, DATA, "the series has no row that was forecast");
  TARN_REQUIRE(threshold > 0, USAGE, "threshold %g: a number above 0 is expected", threshold);
  measures->rows = forecast->rows < series->rows - from ? forecast->rows : series->rows - from;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 2 * (size_t)series->columns, sizeof(double)));
  double *mean = memory, *variance = mean + series->columns;
  tarn_status status = tarn__column_moments(mean, variance, series, series->rows);
  if (status == TARN_STATUS_OK)
    compare(measures, forecast, series->values + from * series->columns, variance, threshold);
  tarn__free(memory);
  return status;
}
