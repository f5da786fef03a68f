// tarn series: echo state networks with ridge regression on series of real numbers.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "json_output.h"
#include "progress_show.h"
#include "series_output.h"
#include "table_options.h"
#include "tarn/lab/series.h"

static const cli_command COMMAND = {
    "series", "generate|train|forecast ...", "Train and run echo state networks on series of numbers.",
    "tarn series generate mackey-glass|lorenz   write an example series\n"
    "tarn series train FILE                     train the readout by ridge regression\n"
    "tarn series forecast MODEL FILE            forecast in closed loop or one step ahead, and measure\n\n"
    "Each has options of its own: tarn series train --help. Series are tables of numbers, by commas,\n"
    "semicolons or tabs; FILE -: standard input."};
static const cli_command GENERATE = {"series generate", "mackey-glass|lorenz", "Write an example series.",
                                     "Integrates the system by Runge and Kutta's fourth-order method. Equal options "
                                     "give equal files."};
static const cli_command TRAIN = {
    "series train", "FILE", "Train an echo state network on a series.",
    "Reads the first rows (--rows), each with the next one as its target, and fits the readout by ridge regression to\n"
    "the states behind the warmup. Rows behind those are the test: errors one step ahead on them are printed as well.\n"
    "With --matrices W, Win and bias come from a safetensors file, and the options that draw them cannot be given."};
static const cli_command FORECAST = {
    "series forecast", "MODEL FILE", "Forecast a series and measure the forecast.",
    "Reads the rows of FILE before --from and goes on alone (closed loop), or with the true rows (--one-step). Where\n"
    "FILE has the rows that were forecast, prints the error (NRMSE: root mean square, columns divided by their\n"
    "standard deviation over these rows) and the valid time: until the error of a row, divided by the standard\n"
    "deviations over all rows of FILE, first exceeds --threshold.\n"
    "With --starts there are several forecasts, each --steps rows behind the other, and their means."};

// --- shared code

typedef struct table_source {
  const char *columns, *header, *delimiter, *decimal;
} table_source;

static int read_series(const cli_command *command, tarn_series **series, const char *path, const table_source *source) {
  tarn_series_format format = {.columns = source->columns};
  if (strcmp(source->header, "yes") == 0)
    format.header = TARN_SERIES_HEADER_YES;
  else if (strcmp(source->header, "no") == 0)
    format.header = TARN_SERIES_HEADER_NO;
  else if (strcmp(source->header, "auto") != 0)
    return cli_usage(command, "--header %s: auto, yes or no is expected", source->header);
  int code = table_options_delimiter(command, &format.delimiter, source->delimiter);
  if (code < 0) code = table_options_decimal(command, &format.decimal, source->decimal);
  if (code >= 0) return code;
  tarn_status status = tarn_series_read(series, path, &format);
  return status == TARN_STATUS_OK ? -1 : cli_report(command, status);
}

#define SOURCE_OPTIONS(source)                                                                                     \
  {"columns", CLI_TEXT, &(source).columns, "LIST", "columns, by name or number, with commas between; all", 0, 0},  \
      {"header", CLI_TEXT, &(source).header, "WHAT", "whether the first line is a header: auto, yes or no", 0, 0}, \
      TABLE_OPTIONS(source)

// --- generate

static int generate(int argc, char **argv) {
  tarn_series_recipe recipe;
  tarn_series_recipe_default(&recipe, TARN_SERIES_MACKEY_GLASS);
  int64_t rows = 0, substeps = 0;
  double dt = NAN, tau = NAN;
  const char *output = NULL;
  bool json = false;
  cli_list words = {0};
  const cli_option table[] = {
      {"output", CLI_TEXT, &output, "FILE", "the file to write; needed", 0, 0},
      {"rows", CLI_INT, &rows, "N", "rows; 0: 5000 for mackey-glass, 10000 for lorenz", 0, 1e8},
      {"discard", CLI_INT, &recipe.discard, "N", "rows left out at the beginning", 0, 1e8},
      {"dt", CLI_REAL, &dt, "T", "time between rows, default 1 for mackey-glass, 0.02 for lorenz", 1e-9, 1e9},
      {"substeps", CLI_INT, &substeps, "N", "steps in that time; 0: 10 for mackey-glass, 4 for lorenz", 0, 1e6},
      {"tau", CLI_REAL, &tau, "T", "delay of mackey-glass, default 17", 1e-9, 1e9},
      {"json", CLI_FLAG, &json, NULL, "print what was made as JSON", 0, 0},
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&GENERATE, table, argc, argv, &words, 1, 1);
  static const char *const names[] = {"mackey-glass", "lorenz"};
  int place = 0;
  if (code < 0) code = cli_word(&GENERATE, &place, "the series", words.items[0], names, 2);
  if (code < 0 && place == 1) {
    int64_t discard = recipe.discard;
    tarn_series_recipe_default(&recipe, TARN_SERIES_LORENZ);
    recipe.discard = discard;
  }
  cli_list_free(&words);
  if (code < 0 && place == 1 && !isnan(tau)) code = cli_usage(&GENERATE, "lorenz has no delay and takes no --tau");
  if (code < 0 && !output) code = cli_usage(&GENERATE, "--output is missing");
  if (code >= 0) return code;
  if (rows) recipe.rows = rows;
  if (substeps) recipe.substeps = substeps;
  if (!isnan(dt)) recipe.dt = dt;
  if (!isnan(tau)) recipe.tau = tau;
  tarn_series *series;
  tarn_status status = tarn_series_generate(&series, &recipe);
  if (status == TARN_STATUS_OK) status = tarn_series_write(series, output);
  tarn_series_close(&series);
  if (status != TARN_STATUS_OK) return cli_report(&GENERATE, status);
  return json ? json_output_made(&GENERATE, output, NULL, NULL) : CLI_OK;
}

// --- train

typedef struct training {
  tarn_esn_options options;
  table_source source;
  const char *output;
  int64_t rows;
  bool json;
} training;

static int train(const training *t, const char *path) {
  tarn_series *series = NULL, *ahead = NULL;
  tarn_esn *esn = NULL;
  tarn_forecast_measures test = {0};
  int code = read_series(&TRAIN, &series, path, &t->source);
  if (code >= 0) return code;
  int64_t rows = t->rows ? t->rows : series->rows * 4 / 5;
  tarn_status status = tarn_esn_train(&esn, series, rows, &t->options);
  if (status == TARN_STATUS_OK && rows < series->rows) {
    status = tarn_esn_forecast(esn, &ahead, series, rows, series->rows - rows, TARN_FORECAST_ONE_STEP);
    if (status == TARN_STATUS_OK) status = tarn_forecast_measure(&test, ahead, series, rows, NULL, 1);
  }
  if (status == TARN_STATUS_OK) status = tarn_esn_save(esn, t->output);
  if (status == TARN_STATUS_OK)
    code = series_print_training(&TRAIN, esn, &test, t->options.ridge, t->json);
  else
    code = cli_report(&TRAIN, status);
  tarn_series_close(&ahead);
  tarn_series_close(&series);
  tarn_esn_close(&esn);
  return code;
}

static int check_training(training *t, const char *activation, int64_t seed, bool raw) {
  tarn_esn_options *o = &t->options, fresh;
  tarn_esn_default(&fresh);
  if (!t->output) return cli_usage(&TRAIN, "--output is missing");
  if (strcmp(activation, "relu") == 0)
    o->activation = TARN_ESN_RELU;
  else if (strcmp(activation, "tanh") != 0)
    return cli_usage(&TRAIN, "--activation %s: tanh or relu is expected", activation);
  bool drawn = o->units != fresh.units || o->sr != fresh.sr || o->input_scaling != fresh.input_scaling ||
               o->bias_scaling != fresh.bias_scaling || o->input_connectivity != fresh.input_connectivity ||
               o->rc_connectivity != fresh.rc_connectivity || seed != (int64_t)fresh.seed;
  if (o->matrices && drawn)
    return cli_usage(&TRAIN, "--matrices gives W, Win and bias as they are; leave out the options that draw them");
  o->seed = (uint64_t)seed;
  o->standardize = !raw;
  return -1;
}

static int parse_training(int argc, char **argv) {
  training t = {.source = {.header = "auto"}};
  tarn_esn_default(&t.options);
  tarn_esn_options *o = &t.options;
  const char *activation = "tanh";
  int64_t seed = (int64_t)o->seed;
  bool raw = false;
  cli_list paths = {0};
  const cli_option table[] = {
      {"output", CLI_TEXT, &t.output, "MODEL", "the model's file (safetensors); needed", 0, 0},
      SOURCE_OPTIONS(t.source),
      {"rows", CLI_INT, &t.rows, "N", "rows to train on, the warmup among them; 0: four fifths", 0, 0},
      {"warmup", CLI_INT, &o->warmup, "N", "first states that are not fitted", 0, 0},
      {"raw", CLI_FLAG, &raw, NULL, "do not standardize columns to mean 0 and variance 1", 0, 0},
      {"units", CLI_INT, &o->units, "N", "units of the reservoir", 0, 0},
      {"sr", CLI_REAL, &o->sr, "X", "spectral radius of W; 0: units hear their inputs alone", 0, 0},
      {"lr", CLI_REAL, &o->lr, "X", "leak rate", 0, 0},
      {"input-scaling", CLI_REAL, &o->input_scaling, "X", "Win is uniform between -X and X", 0, 0},
      {"bias-scaling", CLI_REAL, &o->bias_scaling, "X", "the bias is uniform between -X and X", 0, 0},
      {"input-connectivity", CLI_REAL, &o->input_connectivity, "X", "share of entries of Win that are not 0", 0, 0},
      {"rc-connectivity", CLI_REAL, &o->rc_connectivity, "X", "share of entries of W that are not 0", 0, 0},
      {"activation", CLI_TEXT, &activation, "NAME", "tanh or relu", 0, 0},
      {"ridge", CLI_REAL, &o->ridge, "X", "ridge of the regression", 0, 0},
      CLI_DEVICE_OPTION,
      {"seed", CLI_INT, &seed, "N", "seed of W, Win and bias", 0, 0},
      {"matrices", CLI_TEXT, &o->matrices, "FILE", "safetensors file with W, Win and bias", 0, 0},
      {"json", CLI_FLAG, &t.json, NULL, "print JSON", 0, 0},
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&TRAIN, table, argc, argv, &paths, 1, 1);
  if (code < 0) code = check_training(&t, activation, seed, raw);
  if (code < 0) code = train(&t, paths.items[0]);
  cli_list_free(&paths);
  return code;
}

// --- forecast

static tarn_status measure_starts(series_forecasts *f, const tarn_esn *esn, const tarn_series *series,
                                  tarn_forecast_mode mode) {
  const tarn_series_range range = {f->from, f->starts * f->steps};
  for (int64_t s = 0; s < f->starts; s++) {
    tarn_series *forecast;
    int64_t from = f->from + s * f->steps;
    tarn_status status = tarn_esn_forecast(esn, &forecast, series, from, f->steps, mode);
    if (status != TARN_STATUS_OK) return status;
    memcpy(f->all->values + s * f->steps * f->all->columns, forecast->values,
           (size_t)(f->steps * f->all->columns) * sizeof(double));
    f->diverged += isnan(forecast->values[f->steps * f->all->columns - 1]) != 0;
    if (from < series->rows)
      status = tarn_forecast_measure(&f->measures[s], forecast, series, from, &range, f->threshold);
    tarn_series_close(&forecast);
    if (status != TARN_STATUS_OK) return status;
  }
  return TARN_STATUS_OK;
}

static int forecast(series_forecasts *f, const table_source *source, const char *model, const char *path,
                    tarn_forecast_mode mode) {
  tarn_series *series = NULL;
  tarn_esn *esn = NULL;
  tarn_status status = tarn_esn_open(&esn, model);
  int code = status == TARN_STATUS_OK ? read_series(&FORECAST, &series, path, source) : cli_report(&FORECAST, status);
  if (code < 0) {
    tarn_esn_info info;
    tarn_esn_describe(esn, &info);
    if (!f->from) f->from = info.rows;
    tarn_series all = {f->starts * f->steps, info.columns, NULL, NULL};
    if (f->starts > 1 && f->from + (f->starts - 1) * f->steps >= series->rows)
      code = cli_usage(&FORECAST, "%s has no true rows for the last of %" PRId64 " forecasts",
                       strcmp(path, "-") == 0 ? "standard input" : path, f->starts);
    f->all = &all;
    all.values = calloc((size_t)all.rows, (size_t)all.columns * sizeof *all.values);
    f->measures = calloc((size_t)f->starts, sizeof *f->measures);
    if (code < 0 && (!all.values || !f->measures)) code = cli_usage(&FORECAST, "too many steps for the memory");
    if (code < 0) {
      status = measure_starts(f, esn, series, mode);
      code = status == TARN_STATUS_OK ? series_print_forecasts(&FORECAST, f, tarn_esn_names(esn))
                                      : cli_report(&FORECAST, status);
    }
    free(all.values);
    free(f->measures);
  }
  tarn_series_close(&series);
  tarn_esn_close(&esn);
  return code;
}

static int parse_forecast(int argc, char **argv) {
  series_forecasts f = {.steps = 500, .starts = 1, .threshold = 0.4, .dt = 1, .lyapunov = NAN};
  table_source source = {.header = "auto"};
  bool one_step = false;
  cli_list paths = {0};
  const cli_option table[] = {
      SOURCE_OPTIONS(source),
      {"from", CLI_INT, &f.from, "N", "rows that are read before the first forecast; 0: those of the training", 0, 0},
      {"steps", CLI_INT, &f.steps, "N", "rows to forecast", 1, 1e8},
      {"starts", CLI_INT, &f.starts, "N", "forecasts, one behind the other", 1, 1e5},
      {"one-step", CLI_FLAG, &one_step, NULL, "forecast one step ahead, from the true rows", 0, 0},
      {"threshold", CLI_REAL, &f.threshold, "X", "normalised error up to which a forecast is valid", 1e-9, 1e9},
      {"dt", CLI_REAL, &f.dt, "T", "time between rows", 1e-12, 1e12},
      {"lyapunov", CLI_REAL, &f.lyapunov, "X", "largest Lyapunov exponent (Mackey-Glass 0.006, Lorenz 0.9056)", 1e-12,
       1e12},
      {"output", CLI_TEXT, &f.output, "FILE", "write the forecasts as comma-separated values", 0, 0},
      {"json", CLI_FLAG, &f.json, NULL, "print JSON", 0, 0},
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&FORECAST, table, argc, argv, &paths, 2, 2);
  if (code < 0 && f.from < 0) code = cli_usage(&FORECAST, "--from %" PRId64 ": a row is expected", f.from);
  if (code < 0 && f.starts * f.steps > 100000000) code = cli_usage(&FORECAST, "more than 10^8 rows to forecast");
  if (code < 0)
    code =
        forecast(&f, &source, paths.items[0], paths.items[1], one_step ? TARN_FORECAST_ONE_STEP : TARN_FORECAST_CLOSED);
  cli_list_free(&paths);
  return code;
}

int cmd_series(int argc, char **argv) {
  static const cli_step steps[] = {{"generate", generate}, {"train", parse_training}, {"forecast", parse_forecast}};
  return cli_choose(&COMMAND, steps, sizeof steps / sizeof *steps, argc, argv);
}
