// tarn fit: scaling laws of the runs of sweeps.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "fit_output.h"
#include "progress_show.h"
#include "tarn/lab/fit.h"
#include "text_table.h"

static const cli_command COMMAND = {
    "fit", "RUN...", "Fit scaling laws: the loss of runs as a power of their size, with predictions.",
    "RUN is a run directory, a sweep's folder, or a folder that holds some. L = a x^-b + c is fitted to the best loss "
    "of\n"
    "each finished run; with two axes L = a x^-b + a' y^-b' + c. Sizes are in parameters, trained (parameters), "
    "tokens\n"
    "(trained on), text (tokens of the training data, each once) or operations. See docs/experiments.md."};

// As many as a table has columns for.
enum { MOST_FAMILIES = TEXT_TABLE_COLUMNS - 1, MOST_PREDICTIONS = 64 };

typedef struct request {
  tarn_fit_options options;
  cli_list families, predictions;
  tarn_fit_family family[MOST_FAMILIES];
  char names[MOST_FAMILIES][128];
  double predict[MOST_PREDICTIONS * TARN_FIT_MOST_AXES];
} request;

// "parameters" or "parameters,tokens".
static int take_axes(request *r, const char *text) {
  r->options.axis_count = 0;
  for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
    if (r->options.axis_count == TARN_FIT_MOST_AXES)
      return cli_usage(&COMMAND, "--axis %s: a law has at most %d axes", text, TARN_FIT_MOST_AXES);
    const tarn_status status = tarn_fit_axis_parse(&r->options.axes[r->options.axis_count++], name);
    if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  }
  return -1;
}

// NAME=PATTERN.
static int take_families(request *r) {
  if (r->families.count > MOST_FAMILIES)
    return cli_usage(&COMMAND, "--family is given %zu times, and at most %d are taken", r->families.count,
                     MOST_FAMILIES);
  for (size_t i = 0; i < r->families.count; i++) {
    const char *item = r->families.items[i], *sign = strchr(item, '=');
    if (!sign || sign == item || !sign[1] || (size_t)(sign - item) >= sizeof *r->names)
      return cli_usage(&COMMAND, "--family %s: it is NAME=PATTERN, such as reservoir='reservoir-*'", item);
    snprintf(r->names[i], sizeof *r->names, "%.*s", (int)(sign - item), item);
    r->family[i] = (tarn_fit_family){r->names[i], sign + 1};
  }
  r->options.families = r->family;
  r->options.family_count = r->families.count;
  return -1;
}

// A size, or one for each axis with a comma between them.
static int take_predictions(request *r) {
  const size_t axes = r->options.axis_count;
  if (r->predictions.count > MOST_PREDICTIONS)
    return cli_usage(&COMMAND, "--predict is given %zu times, and at most %d are taken", r->predictions.count,
                     MOST_PREDICTIONS);
  for (size_t i = 0; i < r->predictions.count; i++) {
    const char *item = r->predictions.items[i], *at = item;
    for (size_t k = 0; k < axes; k++) {
      char *end;
      double *x = &r->predict[i * axes + k];
      *x = strtod(at, &end);
      if (end == at || !(*x > 0) || !isfinite(*x) || *end != (k + 1 < axes ? ',' : '\0'))
        return cli_usage(&COMMAND, "--predict %s: expected %s above 0, such as %s", item,
                         axes > 1 ? "two sizes" : "a size", axes > 1 ? "1e8,2e9" : "1e8");
      at = end + 1;
    }
  }
  r->options.predict = r->predictions.count ? r->predict : NULL;
  r->options.predict_count = r->predictions.count;
  return -1;
}

static int fit(const cli_list *paths, const request *r, const char *svg, bool json) {
  tarn_results *results;
  tarn_fit *found = NULL;
  tarn_status status = tarn_results_open(&results, paths->items, paths->count);
  if (status == TARN_STATUS_OK) status = tarn_fit_make(&found, results, &r->options);
  if (status == TARN_STATUS_OK && svg) status = tarn_fit_write_svg(found, svg);
  const int code = status != TARN_STATUS_OK ? cli_report(&COMMAND, status)
                   : json                   ? fit_print_json(&COMMAND, results, found)
                                            : fit_print_text(&COMMAND, found);
  tarn_fit_close(&found);
  tarn_results_close(&results);
  return code;
}

int cmd_fit(int argc, char **argv) {
  request r = {.predict = {0}};
  tarn_fit_default(&r.options);
  cli_list paths = {0};
  const char *axes = tarn_fit_axis_name(r.options.axes[0]), *svg = NULL;
  int64_t seed = (int64_t)r.options.seed;
  bool json = false;
  const cli_option table[] = {
      {"axis", CLI_TEXT, &axes, "NAMES",
       "what sizes are: parameters, trained, tokens, text or operations, or two of them", 0, 0},
      {"metric", CLI_TEXT, &r.options.metric, "NAME",
       "loss to fit: nll, loss, ppl, or any other of the log of which less is better; without it nll where all runs "
       "have "
       "it, else loss",
       0, 0},
      {"family", CLI_LIST, &r.families, "NAME=PATTERN",
       "a law of its own for the configurations with such names (repeatable); later ones are compared with the first",
       0, 0},
      {"predict", CLI_LIST, &r.predictions, "SIZE",
       "size to predict the loss of (repeatable), X,Y with two axes; without it 2, 4 and 10 times the largest", 0, 0},
      {"huber", CLI_REAL, &r.options.huber, "X", "difference of logarithms beyond which it counts linearly", 1e-9, 1e9},
      {"resamples", CLI_INT, &r.options.resamples, "N", "resamples of the bootstrap, 40 to 1000000; 0: no intervals", 0,
       1e6},
      {"seed", CLI_INT, &seed, "N", "seed of the bootstrap", 0, 9007199254740992},
      {"svg", CLI_TEXT, &svg, "FILE", "write a figure", 0, 0},
      {"json", CLI_FLAG, &json, NULL, "print everything as one JSON object", 0, 0},
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &paths, 1, 100000);
  if (code < 0) {
    r.options.seed = (uint64_t)seed;
    code = take_axes(&r, axes);
  }
  if (code < 0) code = take_families(&r);
  if (code < 0) code = take_predictions(&r);
  if (code < 0) code = fit(&paths, &r, svg, json);
  cli_list_free(&paths);
  cli_list_free(&r.families);
  cli_list_free(&r.predictions);
  return code;
}
