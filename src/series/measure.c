#include "series/measure.h"

#include <math.h>

#include "base/memory.h"
#include "series/table.h"

static tarn_status check_variance(double variance, const char *column) {
  TARN_REQUIRE(isfinite(variance), DATA, "column %s: its numbers are too large, so that its variance is infinite",
               column);
  TARN_REQUIRE(variance > 0, DATA,
               "column %s is constant, so that neither it nor its errors can be normalised by its variance", column);
  return TARN_STATUS_OK;
}

static tarn_status check_variances(const double *variance, const tarn_series *series) {
  for (int64_t c = 0; c < series->columns; c++) TARN_TRY(check_variance(variance[c], series->names[c]));
  return TARN_STATUS_OK;
}

static void moments(double *mean, double *variance, const double *values, int64_t rows, int64_t d) {
  for (int64_t c = 0; c < d; c++) {
    double sum = 0, squares = 0;
    const double first = values[c];
    bool constant = true;
    for (int64_t r = 0; r < rows; r++) {
      sum += values[r * d + c];
      constant &= values[r * d + c] == first;
    }
    // A rounded mean would leave a constant column some variance.
    mean[c] = constant ? first : sum / (double)rows;
    for (int64_t r = 0; r < rows; r++) squares += pow(values[r * d + c] - mean[c], 2);
    variance[c] = squares / (double)rows;
  }
}

tarn_status tarn__column_moments(double *mean, double *variance, const tarn_series *series, int64_t rows) {
  moments(mean, variance, series->values, rows, series->columns);
  return check_variances(variance, series);
}

// `whole`: variances that normalise a row's error; `compared`: those for the NRMSE.
static void compare(tarn_forecast_measures *m, const tarn_series *forecast, const double *truth, const double *whole,
                    const double *compared, double threshold) {
  int64_t d = forecast->columns;
  double sum = 0;
  m->valid_to_end = true;
  for (int64_t r = 0; r < m->rows; r++) {
    double error = 0;
    for (int64_t c = 0; c < d; c++) {
      const double square = pow(forecast->values[r * d + c] - truth[r * d + c], 2);
      error += square / whole[c];
      sum += isnan(square) ? INFINITY : square / compared[c];
    }
    if (isnan(error)) error = INFINITY;
    m->valid_to_end = m->valid_to_end && sqrt(error / (double)d) <= threshold;
    m->valid_steps += m->valid_to_end;
  }
  m->nrmse = sqrt(sum / (double)(m->rows * d));
  for (int64_t c = 0; c < d; c++)
    if (compared[c] == 0) m->nrmse = NAN;
}

static int64_t rows_from(const tarn_series *series, int64_t from, int64_t rows) {
  return rows < series->rows - from ? rows : series->rows - from;
}

tarn_status tarn_forecast_measure(tarn_forecast_measures *measures, const tarn_series *forecast,
                                  const tarn_series *series, int64_t from, const tarn_series_range *range,
                                  double threshold) {
  *measures = (tarn_forecast_measures){0};
  TARN_TRY(
      tarn__series_check_columns(series, (const char *const *)forecast->names, forecast->columns, "the forecast has"));
  TARN_REQUIRE(from >= 0 && from < series->rows && forecast->rows > 0, DATA, "the series has no row that was forecast");
  TARN_REQUIRE(threshold > 0, USAGE, "threshold %g: a number above 0 is expected", threshold);
  measures->rows = rows_from(series, from, forecast->rows);
  const tarn_series_range own = {from, measures->rows};
  if (!range) range = &own;
  TARN_REQUIRE(range->from >= 0 && range->from < series->rows && range->rows > 0, USAGE,
               "the rows whose variance is taken are not in the series");
  const int64_t d = series->columns;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 3 * (size_t)d, sizeof(double)));
  double *mean = memory, *whole = mean + d, *compared = whole + d;
  tarn_status status = tarn__column_moments(mean, whole, series, series->rows);
  moments(mean, compared, series->values + range->from * d, rows_from(series, range->from, range->rows), d);
  // If the compared rows do not vary, there is no NRMSE, but everything else.
  for (int64_t c = 0; c < d && status == TARN_STATUS_OK; c++)
    if (compared[c] != 0) status = check_variance(compared[c], series->names[c]);
  if (status == TARN_STATUS_OK) compare(measures, forecast, series->values + from * d, whole, compared, threshold);
  tarn__free(memory);
  return status;
}
