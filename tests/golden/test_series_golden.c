// Echo state networks against reservoirpy (make_series.py): with its matrices, its readout and its forecasts come out.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "init/spectral_radius.h"
#include "series/esn.h"
#include "series/table.h"
#include "store/safetensors.h"

static const double TOLERANCE = 1e-6;

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static const double *tensor(const tarn__safetensors *file, const char *name, size_t count) {
  const tarn__stored *t = tarn__safetensors_find(file, name);
  assert_non_null(t);
  assert_int_equal(t->bytes, count * sizeof(double));
  return t->data;
}

static double metadata(const tarn__safetensors *file, const char *key) {
  const char *text = tarn__safetensors_text(file, key);
  assert_non_null(text);
  return strtod(text, NULL);
}

static void expect(const char *what, const double *found, const double *expected, size_t count) {
  double worst = 0;
  for (size_t i = 0; i < count; i++) {
    double error = fabs(found[i] - expected[i]);
    if (!(error <= TOLERANCE)) fail_msg("%s[%zu]: %.15g, expected %.15g", what, i, found[i], expected[i]);
    worst = fmax(worst, error);
  }
  print_message("%s: largest difference %.1e\n", what, worst);
}

// By the variance of the 40 rows that are compared, not that of the whole series.
static void measure(const tarn_series *forecast, const tarn_series *series, int64_t from, double expected) {
  tarn_forecast_measures m;
  must(tarn_forecast_measure(&m, forecast, series, from, NULL, 0.4));
  assert_int_equal(m.rows, 40);
  if (!(fabs(m.nrmse - expected) <= 1e-6 * expected)) fail_msg("NRMSE %.15g, expected %.15g", m.nrmse, expected);
}

static void forecasts(const tarn_esn *esn, const tarn_series *series, const tarn__safetensors *file, int64_t from) {
  tarn_series *forecast;
  must(tarn_esn_forecast(esn, &forecast, series, from, 40, TARN_FORECAST_ONE_STEP));
  expect("one_step", forecast->values, tensor(file, "one_step", 80), 80);
  measure(forecast, series, from, tensor(file, "nrmse", 2)[0]);
  tarn_series_close(&forecast);
  must(tarn_esn_forecast(esn, &forecast, series, from, 40, TARN_FORECAST_CLOSED));
  expect("closed", forecast->values, tensor(file, "closed", 80), 80);
  measure(forecast, series, from, tensor(file, "nrmse", 2)[1]);
  tarn_series_close(&forecast);
}

static void compare(const char *path, tarn_esn_activation activation, int64_t units) {
  tarn__safetensors file;
  must(tarn__safetensors_open(&file, path));
  const int64_t rows = 330, from = (int64_t)metadata(&file, "train");
  size_t n = (size_t)units;
  tarn_series *series;
  must(tarn__series_new(&series, rows, 2, NULL));
  memcpy(series->values, tensor(&file, "series", 660), 660 * sizeof(double));

  double radius;
  must(tarn__spectral_radius_dense(&radius, tensor(&file, "W", n * n), units));
  assert_true(fabs(radius - metadata(&file, "sr")) < 1e-10);

  tarn_esn_options options;
  tarn_esn_default(&options);
  options.matrices = path;
  options.activation = activation;
  options.lr = metadata(&file, "lr");
  options.ridge = metadata(&file, "ridge");
  options.warmup = (int64_t)metadata(&file, "warmup");
  options.standardize = false;
  tarn_esn *esn;
  must(tarn_esn_train(&esn, series, from, &options));
  expect("Wout", esn->wout, tensor(&file, "Wout", 2 * n), 2 * n);
  expect("Wout_bias", esn->readout, tensor(&file, "Wout_bias", 2), 2);
  assert_true(esn->info.ridge == options.ridge);
  forecasts(esn, series, &file, from);
  tarn_esn_close(&esn);
  tarn_series_close(&series);
  tarn__safetensors_close(&file);
}

static void tanh_with_leak(void **state) {
  (void)state;
  compare(TARN_SOURCE_DIR "/tests/golden/series_tanh.safetensors", TARN_ESN_TANH, 40);
}

static void relu_without_leak(void **state) {
  (void)state;
  compare(TARN_SOURCE_DIR "/tests/golden/series_relu.safetensors", TARN_ESN_RELU, 30);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tanh_with_leak),
      cmocka_unit_test(relu_without_leak),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
