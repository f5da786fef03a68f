// Forecasts: closed loop, or one step ahead.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/work.h"
#include "series/esn.h"
#include "series/table.h"

static tarn_status check(const tarn_esn *esn, const tarn_series *series, int64_t from, int64_t steps,
                         tarn_forecast_mode mode) {
  TARN_TRY(tarn__series_check_columns(series, tarn_esn_names(esn), esn->info.columns, "the network was trained on"));
  TARN_REQUIRE(from >= 1 && from <= series->rows, USAGE,
               "a forecast can begin at row 1 to %" PRId64 ", not at %" PRId64, series->rows, from);
  TARN_REQUIRE(steps >= 1 && steps <= INT64_MAX / 65536, USAGE, "%" PRId64 " steps: at least one is expected", steps);
  TARN_REQUIRE(mode == TARN_FORECAST_CLOSED || mode == TARN_FORECAST_ONE_STEP, USAGE, "an unknown mode of forecasts");
  TARN_REQUIRE(mode == TARN_FORECAST_CLOSED || steps <= series->rows - from + 1, DATA,
               "%" PRId64 " forecasts one step ahead from row %" PRId64 " need %" PRId64
               " rows, the series has %" PRId64,
               steps, from, from + steps - 1, series->rows);
  return TARN_STATUS_OK;
}

static bool is_finite(const double *row, int64_t columns) {
  for (int64_t c = 0; c < columns; c++)
    if (!isfinite(row[c])) return false;
  return true;
}

// A forecast that diverges ends there.
static void run(const tarn_esn *esn, tarn_series *forecast, const tarn_series *series, int64_t from,
                tarn_forecast_mode mode, double *state, tarn__work *work) {
  int64_t d = esn->info.columns;
  double *room = state + esn->info.units;
  const double all = (double)(from + forecast->rows);
  for (int64_t r = 0; r < from; r++) {
    tarn__esn_step(esn, state, series->values + r * d, room);
    tarn__work_at(work, (double)r, (double)r / all);
  }
  for (int64_t r = 0; r < forecast->rows; r++) {
    tarn__work_at(work, (double)(from + r), (double)(from + r) / all);
    double *row = forecast->values + r * d;
    tarn__esn_read(esn, row, state);
    if (!is_finite(row, d)) {
      for (int64_t i = r * d; i < forecast->rows * d; i++) forecast->values[i] = NAN;
      return;
    }
    const double *input = mode == TARN_FORECAST_CLOSED ? row : series->values + (from + r) * d;
    if (r + 1 < forecast->rows) tarn__esn_step(esn, state, input, room);
  }
}

tarn_status tarn_esn_forecast(const tarn_esn *esn, tarn_series **forecast, const tarn_series *series, int64_t from,
                              int64_t steps, tarn_forecast_mode mode) {
  *forecast = NULL;
  TARN_TRY(check(esn, series, from, steps, mode));
  TARN_TRY(tarn__series_new(forecast, steps, esn->info.columns, (const char *const *)esn->names));
  void *state;
  tarn_status status =
      tarn__alloc(&state, TARN__MEMORY_OTHER, (size_t)(2 * esn->info.units + esn->info.columns), sizeof(double));
  if (status == TARN_STATUS_OK) {
    tarn__work work;
    tarn__work_begin(&work, "forecasting", "rows");
    run(esn, *forecast, series, from, mode, state, &work);
    tarn__work_end(&work);
    tarn__free(state);
  }
  if (status != TARN_STATUS_OK) tarn_series_close(forecast);
  return status;
}
