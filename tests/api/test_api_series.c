// Series of numbers and echo state networks on them: tarn/lab/series.h.
#include "api.h"

#include <math.h>

#include "sandbox.h"
#include "tarn/lab/series.h"

enum { ROWS = 300 };

static tarn_series *mackey_glass(void) {
  tarn_series *series;
  tarn_series_recipe recipe;
  tarn_series_recipe_default(&recipe, TARN_SERIES_MACKEY_GLASS);
  recipe.rows = ROWS, recipe.discard = 50, recipe.substeps = 2;
  works(tarn_series_generate(&series, &recipe));
  return series;
}

static tarn_series *lorenz(void) {
  tarn_series *series;
  tarn_series_recipe recipe;
  tarn_series_recipe_default(&recipe, TARN_SERIES_LORENZ);
  recipe.rows = ROWS;
  works(tarn_series_generate(&series, &recipe));
  return series;
}

static void small(tarn_esn_options *options) {
  tarn_esn_default(options);
  options->units = 20, options->rc_connectivity = 0.5, options->warmup = 20;
}

static tarn_esn *trained(const tarn_series *series) {
  tarn_esn *esn;
  tarn_esn_options options;
  small(&options);
  works(tarn_esn_train(&esn, series, 200, &options));
  return esn;
}

static void write_text(const char *path, const char *text) { sandbox_write(path, text, strlen(text)); }

static void refuses_table(const char *text, const tarn_series_format *format, tarn_status status, const char *words) {
  tarn_series *series;
  write_text("table", text);
  refuses(tarn_series_read(&series, "table", format), status, words);
  assert_null(series);
}

static void use_tarn_series_read(void) {
  tarn_series *series;
  write_text("good", "time;\"a;b\"\n0,5;1\n1,5;2\n");
  works(tarn_series_read(&series, "good", NULL));
  assert_int_equal(series->rows, 2);
  assert_string_equal(series->names[1], "a;b");
  assert_true(series->values[2] == 1.5);
  tarn_series_close(&series);
  tarn_series_format format = {.columns = "2"};
  works(tarn_series_read(&series, "good", &format));
  assert_int_equal(series->columns, 1);
  tarn_series_close(&series);
  refuses(tarn_series_read(&series, "missing", NULL), TARN_STATUS_IO, "missing: ");
  refuses_table("", NULL, TARN_STATUS_DATA, "there are no rows");
  refuses_table("x,y\n", NULL, TARN_STATUS_DATA, "no rows behind the header");
  refuses_table("x,y\n1,2\n3\n", NULL, TARN_STATUS_DATA, "table:3: 1 columns, expected 2");
  refuses_table("x,y\n1,2\n3,\n", NULL, TARN_STATUS_DATA, "table:3: column 2 y: the number is missing");
  refuses_table("x,y\n1,2\n3,inf\n", NULL, TARN_STATUS_DATA, "\"inf\" is no finite number");
  refuses_table("x,y\n1,2\n3,0x10\n", NULL, TARN_STATUS_DATA, "is hexadecimal");
  format.columns = "3";
  refuses_table("x,y\n1,2\n", &format, TARN_STATUS_USAGE, "there is no column \"3\"");
  format.columns = "x";
  refuses_table("x,x\n1,2\n", &format, TARN_STATUS_USAGE, "are both named \"x\"");
  format = (tarn_series_format){.delimiter = ':'};
  refuses_table("x\n1\n", &format, TARN_STATUS_USAGE, "not by \":\"");
  format = (tarn_series_format){.decimal = '\''};
  refuses_table("x\n1\n", &format, TARN_STATUS_USAGE, "the decimal mark is a point or a comma");
}

static void use_tarn_series_write(void) {
  tarn_series *series = lorenz(), *again;
  works(tarn_series_write(series, "lorenz.csv"));
  works(tarn_series_read(&again, "lorenz.csv", NULL));
  assert_int_equal(again->rows, ROWS);
  assert_string_equal(again->names[2], "z");
  assert_memory_equal(again->values, series->values, sizeof(double) * ROWS * 3);
  tarn_series_close(&again);
  refuses(tarn_series_write(series, "no/folder/lorenz.csv"), TARN_STATUS_IO, "no/folder/lorenz.csv");
  refuses(tarn_series_write(series, "."), TARN_STATUS_IO, ".: ");
  tarn_series_close(&series);
}

static void use_tarn_series_close(void) {
  tarn_series *series = lorenz();
  tarn_series_close(&series);
  assert_null(series);
  tarn_series_close(&series);
}

static void use_tarn_series_recipe_default(void) {
  tarn_series_recipe recipe;
  tarn_series_recipe_default(&recipe, TARN_SERIES_MACKEY_GLASS);
  assert_int_equal(recipe.rows, 5000);
  assert_true(recipe.tau == 17 && recipe.dt == 1);
  tarn_series_recipe_default(&recipe, TARN_SERIES_LORENZ);
  assert_int_equal(recipe.rows, 10000);
  assert_int_equal(recipe.substeps, 4);
}

static void use_tarn_series_generate(void) {
  tarn_series *series = mackey_glass();
  tarn_series_recipe recipe;
  assert_int_equal(series->rows, ROWS);
  assert_string_equal(series->names[0], "x");
  tarn_series_close(&series);
  for (int i = 0; i < 5; i++) {
    tarn_series_recipe_default(&recipe, TARN_SERIES_MACKEY_GLASS);
    const char *words = i < 2 ? "rows must be 1" : i < 4 ? "dt must be above 0" : "tau must be a multiple";
    if (i == 0) recipe.rows = 0;
    if (i == 1) recipe.discard = -1;
    if (i == 2) recipe.dt = 0;
    if (i == 3) recipe.substeps = 0;
    if (i == 4) recipe.tau = 0.05;
    refuses(tarn_series_generate(&series, &recipe), TARN_STATUS_USAGE, words);
    assert_null(series);
  }
  tarn_series_recipe_default(&recipe, TARN_SERIES_LORENZ);
  recipe.dt = 10;
  refuses(tarn_series_generate(&series, &recipe), TARN_STATUS_NUMERIC, "take more steps in dt");
  recipe.system = (tarn_series_system)7;
  recipe.dt = 0.02;
  refuses(tarn_series_generate(&series, &recipe), TARN_STATUS_USAGE, "system");
}

static void use_tarn_esn_default(void) {
  tarn_esn_options options;
  tarn_esn_default(&options);
  assert_int_equal(options.units, 500);
  assert_true(options.sr == 0.9 && options.lr == 1 && options.ridge == 1e-6 && options.standardize);
}

// One option after the other out of its range.
static void each_bad_option(tarn_status (*make)(const tarn_esn_options *options)) {
  static const char *const words[] = {"units 0",     "sr -1", "lr 0",           "input_scaling 0", "bias_scaling -1",
                                      "input_conne", "rc_c",  "an unknown act", "ridge -1"};
  for (int i = 0; i < 9; i++) {
    tarn_esn_options options;
    small(&options);
    if (i == 0) options.units = 0;
    if (i == 1) options.sr = -1;
    if (i == 2) options.lr = 0;
    if (i == 3) options.input_scaling = 0;
    if (i == 4) options.bias_scaling = -1;
    if (i == 5) options.input_connectivity = 1.5;
    if (i == 6) options.rc_connectivity = NAN;
    if (i == 7) options.activation = (tarn_esn_activation)9;
    if (i == 8) options.ridge = -1;
    refuses(make(&options), TARN_STATUS_USAGE, words[i]);
  }
}

static const tarn_series *given;
static tarn_status train_given(const tarn_esn_options *options) {
  tarn_esn *esn;
  const tarn_status status = tarn_esn_train(&esn, given, 200, options);
  assert_null(esn);
  return status;
}

static void use_tarn_esn_train(void) {
  tarn_series *series = lorenz();
  tarn_esn *esn = trained(series);
  tarn_esn_options options;
  tarn_esn_close(&esn);
  given = series;
  each_bad_option(train_given);
  small(&options);
  refuses(tarn_esn_train(&esn, series, ROWS + 1, &options), TARN_STATUS_USAGE, "training on 301 rows");
  refuses(tarn_esn_train(&esn, series, 0, &options), TARN_STATUS_USAGE, "training on 0 rows");
  options.warmup = 199;
  refuses(train_given(&options), TARN_STATUS_DATA, "leave no sample");
  options.warmup = -1;
  refuses(train_given(&options), TARN_STATUS_USAGE, "warmup -1");
  small(&options);
  options.units = 1, options.rc_connectivity = 1e-9;
  refuses(train_given(&options), TARN_STATUS_DATA, "edge");
  small(&options);
  options.matrices = "missing";
  refuses(train_given(&options), TARN_STATUS_IO, "missing: ");
  write_text("garbage", "garbage");
  options.matrices = "garbage";
  refuses(train_given(&options), TARN_STATUS_DATA, "garbage: ");
  for (int64_t t = 0; t < ROWS; t++) series->values[3 * t + 1] = 5;
  small(&options);
  refuses(train_given(&options), TARN_STATUS_DATA, "column y is constant");
  tarn_series_close(&series);
}

static void use_tarn_esn_save(void) {
  tarn_series *series = lorenz();
  tarn_esn *esn = trained(series);
  works(tarn_esn_save(esn, "saved"));
  refuses(tarn_esn_save(esn, "no/folder/esn"), TARN_STATUS_IO, "no/folder/esn");
  tarn_esn_close(&esn);
  tarn_series_close(&series);
}

static void use_tarn_esn_open(void) {
  tarn_series *series = lorenz(), *forecast[2];
  tarn_esn *esn = trained(series), *again;
  works(tarn_esn_save(esn, "model"));
  works(tarn_esn_open(&again, "model"));
  works(tarn_esn_forecast(esn, &forecast[0], series, 200, 20, TARN_FORECAST_CLOSED));
  works(tarn_esn_forecast(again, &forecast[1], series, 200, 20, TARN_FORECAST_CLOSED));
  assert_memory_equal(forecast[0]->values, forecast[1]->values, sizeof(double) * 60);
  for (int i = 0; i < 2; i++) tarn_series_close(&forecast[i]);
  tarn_esn_close(&again);
  tarn_esn_close(&esn);
  tarn_series_close(&series);
  refuses(tarn_esn_open(&esn, "missing"), TARN_STATUS_IO, "missing: ");
  assert_null(esn);
  write_text("garbage", "garbage");
  refuses(tarn_esn_open(&esn, "garbage"), TARN_STATUS_DATA, "garbage: ");
  char text[1 << 14];
  FILE *file = fopen("model", "rb");
  const size_t size = fread(text, 1, sizeof text, file);
  fclose(file);
  assert_in_range(size, 100, sizeof text - 1);
  sandbox_write("short", text, size - 100);
  refuses(tarn_esn_open(&esn, "short"), TARN_STATUS_DATA, "short: ");
  assert_null(esn);
}

static void use_tarn_esn_close(void) {
  tarn_series *series = lorenz();
  tarn_esn *esn = trained(series);
  tarn_esn_close(&esn);
  assert_null(esn);
  tarn_esn_close(&esn);
  tarn_series_close(&series);
}

static void use_tarn_esn_describe(void) {
  tarn_series *series = lorenz();
  tarn_esn *esn = trained(series);
  tarn_esn_info info;
  tarn_esn_describe(esn, &info);
  assert_int_equal(info.units, 20);
  assert_int_equal(info.columns, 3);
  assert_int_equal(info.rows, 200);
  assert_int_equal(info.samples, 179);
  assert_true(info.nrmse > 0 && info.nrmse < 0.5);
  tarn_esn_close(&esn);
  tarn_series_close(&series);
}

static void use_tarn_esn_names(void) {
  tarn_series *series = lorenz();
  tarn_esn *esn = trained(series);
  assert_string_equal(tarn_esn_names(esn)[0], "x");
  assert_string_equal(tarn_esn_names(esn)[2], "z");
  tarn_esn_close(&esn);
  tarn_series_close(&series);
}

static void use_tarn_esn_forecast(void) {
  tarn_series *series = lorenz(), *other = mackey_glass(), *forecast;
  tarn_esn *esn = trained(series);
  works(tarn_esn_forecast(esn, &forecast, series, 200, 101, TARN_FORECAST_ONE_STEP));
  assert_int_equal(forecast->rows, 101);
  tarn_series_close(&forecast);
  works(tarn_esn_forecast(esn, &forecast, series, ROWS, 5, TARN_FORECAST_CLOSED));
  tarn_series_close(&forecast);
  refuses(tarn_esn_forecast(esn, &forecast, series, 0, 5, TARN_FORECAST_CLOSED), TARN_STATUS_USAGE,
          "a forecast can begin at row 1 to 300, not at 0");
  assert_null(forecast);
  refuses(tarn_esn_forecast(esn, &forecast, series, ROWS + 1, 5, TARN_FORECAST_CLOSED), TARN_STATUS_USAGE,
          "not at 301");
  refuses(tarn_esn_forecast(esn, &forecast, series, 200, 0, TARN_FORECAST_CLOSED), TARN_STATUS_USAGE, "0 steps");
  refuses(tarn_esn_forecast(esn, &forecast, series, 200, INT64_MAX, TARN_FORECAST_CLOSED), TARN_STATUS_USAGE, "steps");
  refuses(tarn_esn_forecast(esn, &forecast, series, 200, 102, TARN_FORECAST_ONE_STEP), TARN_STATUS_DATA,
          "need 301 rows, the series has 300");
  refuses(tarn_esn_forecast(esn, &forecast, other, 200, 5, TARN_FORECAST_CLOSED), TARN_STATUS_DATA, "3 columns");
  series->names[1][0] = 'q';
  refuses(tarn_esn_forecast(esn, &forecast, series, 200, 5, TARN_FORECAST_CLOSED), TARN_STATUS_DATA, "column y");
  assert_null(forecast);
  tarn_esn_close(&esn);
  tarn_series_close(&series);
  tarn_series_close(&other);
}

static tarn_reservoir *drawn(void) {
  tarn_reservoir *reservoir;
  tarn_esn_options options;
  small(&options);
  works(tarn_reservoir_open(&reservoir, 2, &options));
  return reservoir;
}

static tarn_status open_alone(const tarn_esn_options *options) {
  tarn_reservoir *reservoir;
  const tarn_status status = tarn_reservoir_open(&reservoir, 2, options);
  assert_null(reservoir);
  return status;
}

static void use_tarn_reservoir_open(void) {
  tarn_reservoir *reservoir = drawn();
  tarn_esn_options options;
  tarn_reservoir_close(&reservoir);
  each_bad_option(open_alone);
  small(&options);
  refuses(tarn_reservoir_open(&reservoir, 0, &options), TARN_STATUS_USAGE, "for 0 columns");
  refuses(tarn_reservoir_open(&reservoir, 65537, &options), TARN_STATUS_USAGE, "for 65537 columns");
  assert_null(reservoir);
  options.matrices = "missing";
  refuses(open_alone(&options), TARN_STATUS_IO, "missing: ");
}

static void use_tarn_reservoir_close(void) {
  tarn_reservoir *reservoir = drawn();
  tarn_reservoir_close(&reservoir);
  assert_null(reservoir);
  tarn_reservoir_close(&reservoir);
}

static void use_tarn_reservoir_units(void) {
  tarn_reservoir *reservoir = drawn();
  assert_int_equal(tarn_reservoir_units(reservoir), 20);
  tarn_reservoir_close(&reservoir);
}

static void use_tarn_reservoir_matrices(void) {
  tarn_reservoir *reservoir = drawn();
  double w[20 * 20], again[20 * 20], win[20 * 2], bias[20], sum = 0;
  tarn_reservoir_matrices(reservoir, w, win, bias);
  tarn_reservoir_matrices(reservoir, again, NULL, NULL);
  tarn_reservoir_matrices(reservoir, NULL, NULL, NULL);
  assert_memory_equal(w, again, sizeof w);
  for (int i = 0; i < 20; i++) sum += fabs(bias[i]) + fabs(win[2 * i]);
  assert_true(sum > 0);
  tarn_reservoir_close(&reservoir);
}

static void use_tarn_reservoir_states(void) {
  tarn_reservoir *reservoir = drawn();
  double rows[2 * 4] = {1, 2, 3, 4, 5, 6, 7, 8}, states[20 * 4], last[20] = {0}, pieces[20];
  works(tarn_reservoir_states(reservoir, states, NULL, rows, 4));
  works(tarn_reservoir_states(reservoir, states, last, rows, 3));
  works(tarn_reservoir_states(reservoir, pieces, last, rows + 6, 1));
  works(tarn_reservoir_states(reservoir, states, NULL, rows, 4));
  assert_memory_equal(pieces, states + 60, sizeof pieces);
  assert_memory_equal(last, pieces, sizeof pieces);
  rows[3] = NAN;
  refuses(tarn_reservoir_states(reservoir, states, NULL, rows, 4), TARN_STATUS_NUMERIC, "after row 1 is not finite");
  tarn_reservoir_close(&reservoir);
}

static void use_tarn_ridge_regress(void) {
  double x[] = {0, 1, 2, 3}, y[] = {1, 3, 5, 7}, weights[1], bias[1], used;
  works(tarn_ridge_regress(weights, bias, &used, x, y, 4, 1, 1, 0));
  assert_true(fabs(weights[0] - 2) < 1e-9 && fabs(bias[0] - 1) < 1e-9 && used == 0);
  refuses(tarn_ridge_regress(weights, bias, &used, x, y, 0, 1, 1, 0), TARN_STATUS_USAGE, "0 samples");
  refuses(tarn_ridge_regress(weights, bias, &used, x, y, 4, 0, 1, 0), TARN_STATUS_USAGE, "0 inputs");
  refuses(tarn_ridge_regress(weights, bias, &used, x, y, 4, 1, 0, 0), TARN_STATUS_USAGE, "0 outputs");
  refuses(tarn_ridge_regress(weights, bias, &used, x, y, 4, 1, 1, -1), TARN_STATUS_USAGE, "ridge -1");
  refuses(tarn_ridge_regress(weights, bias, &used, x, y, 4, 1, 1, NAN), TARN_STATUS_USAGE, "ridge ");
  y[2] = INFINITY;
  refuses(tarn_ridge_regress(weights, bias, &used, x, y, 4, 1, 1, 1), TARN_STATUS_NUMERIC, "finite");
  y[2] = 5, x[1] = NAN;
  refuses(tarn_ridge_regress(weights, bias, &used, x, y, 4, 1, 1, 1), TARN_STATUS_NUMERIC, "");
}

static void use_tarn_forecast_measure(void) {
  tarn_series *series = lorenz(), *other = mackey_glass(), *forecast;
  tarn_esn *esn = trained(series);
  tarn_forecast_measures m;
  const tarn_series_range all = {0, ROWS}, outside = {ROWS, 5}, empty = {0, 0};
  works(tarn_esn_forecast(esn, &forecast, series, 200, 150, TARN_FORECAST_CLOSED));
  works(tarn_forecast_measure(&m, forecast, series, 200, NULL, 0.4));
  assert_int_equal(m.rows, 100);
  works(tarn_forecast_measure(&m, forecast, series, 200, &all, 1e9));
  assert_true(m.valid_to_end && m.valid_steps == 100);
  refuses(tarn_forecast_measure(&m, forecast, series, 200, NULL, 0), TARN_STATUS_USAGE, "threshold 0");
  refuses(tarn_forecast_measure(&m, forecast, series, 200, NULL, NAN), TARN_STATUS_USAGE, "threshold ");
  refuses(tarn_forecast_measure(&m, forecast, series, ROWS, NULL, 1), TARN_STATUS_DATA, "no row that was forecast");
  refuses(tarn_forecast_measure(&m, forecast, series, -1, NULL, 1), TARN_STATUS_DATA, "no row that was forecast");
  refuses(tarn_forecast_measure(&m, forecast, series, 200, &outside, 1), TARN_STATUS_USAGE, "not in the series");
  refuses(tarn_forecast_measure(&m, forecast, series, 200, &empty, 1), TARN_STATUS_USAGE, "not in the series");
  refuses(tarn_forecast_measure(&m, forecast, other, 200, NULL, 1), TARN_STATUS_DATA, "3 columns");
  for (int64_t t = 0; t < ROWS; t++) series->values[3 * t] = 5;
  refuses(tarn_forecast_measure(&m, forecast, series, 200, NULL, 1), TARN_STATUS_DATA, "column x is constant");
  tarn_esn_close(&esn);
  tarn_series_close(&forecast);
  tarn_series_close(&series);
  tarn_series_close(&other);
}

int main(void) {
  static const char *const headers[] = {"lab/series.h", NULL};
  static const api_use uses[] = {USE(tarn_series_read),        USE(tarn_series_write),
                                 USE(tarn_series_close),       USE(tarn_series_recipe_default),
                                 USE(tarn_series_generate),    USE(tarn_esn_default),
                                 USE(tarn_esn_train),          USE(tarn_esn_save),
                                 USE(tarn_esn_open),           USE(tarn_esn_close),
                                 USE(tarn_esn_describe),       USE(tarn_esn_names),
                                 USE(tarn_esn_forecast),       USE(tarn_reservoir_open),
                                 USE(tarn_reservoir_close),    USE(tarn_reservoir_units),
                                 USE(tarn_reservoir_matrices), USE(tarn_reservoir_states),
                                 USE(tarn_ridge_regress),      USE(tarn_forecast_measure)};
  return api_main(headers, uses, sizeof uses / sizeof *uses, sandbox_open, sandbox_close);
}
