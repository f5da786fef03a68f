// Trains an echo state network on the Mackey-Glass series and measures what it forecasts, one step ahead and alone.
#include <stdio.h>

#include "tarn/lab/series.h"

static tarn_status forecast(const tarn_esn *esn, const tarn_series *series, const char *name, tarn_forecast_mode mode) {
  tarn_series *values = NULL;
  tarn_forecast_measures measures;
  tarn_status status = tarn_esn_forecast(esn, &values, series, 2000, 300, mode);
  if (status == TARN_STATUS_OK) status = tarn_forecast_measure(&measures, values, series, 2000, NULL, 0.4);
  if (status == TARN_STATUS_OK) printf("%s: NRMSE %.5f\n", name, measures.nrmse);
  tarn_series_close(&values);
  return status;
}

int main(void) {
  tarn_series_recipe recipe;
  tarn_series_recipe_default(&recipe, TARN_SERIES_MACKEY_GLASS);
  recipe.rows = 2500;
  tarn_esn_options options;
  tarn_esn_default(&options);
  options.units = 300;
  tarn_series *series = NULL;
  tarn_esn *esn = NULL;
  tarn_status status = tarn_series_generate(&series, &recipe);
  if (status == TARN_STATUS_OK) status = tarn_esn_train(&esn, series, 2000, &options);
  if (status == TARN_STATUS_OK) status = forecast(esn, series, "one step ahead", TARN_FORECAST_ONE_STEP);
  if (status == TARN_STATUS_OK) status = forecast(esn, series, "closed loop", TARN_FORECAST_CLOSED);
  if (status != TARN_STATUS_OK) fprintf(stderr, "forecast_series: %s\n", tarn_error_message());
  tarn_esn_close(&esn);
  tarn_series_close(&series);
  return status == TARN_STATUS_OK ? 0 : 1;
}
