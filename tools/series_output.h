// Output of `tarn series`.
#ifndef TARN_TOOLS_SERIES_OUTPUT_H
#define TARN_TOOLS_SERIES_OUTPUT_H

#include "cli.h"
#include "tarn/lab/series.h"

// Forecasts of `steps` rows each, from rows from, from + steps, ...
typedef struct series_forecasts {
  int64_t from, steps, starts;
  int64_t diverged;                  // forecasts that became non-finite
  double threshold, dt, lyapunov;    // lyapunov: NAN if unknown
  tarn_series *all;                  // [starts * steps] rows
  tarn_forecast_measures *measures;  // [starts]; 0 rows without true values
  const char *output;                // NULL: no file
  bool json;
} series_forecasts;

// Both return the exit code. `ridge` is the requested value.
int series_print_training(const cli_command *command, const tarn_esn *esn, const tarn_forecast_measures *test,
                          double ridge, bool json);
int series_print_forecasts(const cli_command *command, const series_forecasts *forecasts, const char *const *names);

#endif
