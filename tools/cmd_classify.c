// tarn classify: the labels of sentences.
#include <inttypes.h>
#include <stdio.h>

#include "commands.h"
#include "json_output.h"
#include "model_options.h"
#include "progress_line.h"
#include "progress_show.h"
#include "shared_ranks.h"
#include "tarn/classify.h"
#include "text_output.h"

static const cli_command COMMAND = {
    "classify", "RUN [FILE]", "Print the labels of sentences, or of pairs of sentences, with their probabilities.",
    "RUN is a run directory or a checkpoint of a classifier or a regression model; FILE has one sentence a line, or "
    "two\n"
    "that a tab separates (default: standard input). A line of the output has the likeliest label and its "
    "probability,\n"
    "with --top K those of the K likeliest, separated by tabs; of regression a number."};

typedef struct output {
  const tarn_classifier *classifier;
  int64_t top, window, lines, truncated, replaced;
  bool answers;  // each line is written at once
  bool json;
  int code;  // of a line that could not be made
} output;

static int print_json(const output *out, int64_t number, const tarn_classify_result *result) {
  json_t *object = json_pack("{s:I, s:b, s:b}", "line", (json_int_t)number, "truncated", (int)result->truncated,
                             "replaced", (int)result->replaced);
  bool failed = !object;
  if (!failed && !result->probabilities)
    failed = json_object_set_new(object, "number", json_output_real(result->number)) != 0;
  if (!failed && result->probabilities) {
    json_t *labels = json_object();
    for (int64_t k = 0; k < out->top; k++) {
      const int32_t label = result->order[k];
      failed |= json_object_set_new(labels, tarn_classifier_label(out->classifier, label),
                                    json_output_real(result->probabilities[label])) != 0;
    }
    failed |= json_object_set_new(object, "label",
                                  json_output_text(tarn_classifier_label(out->classifier, result->order[0]))) != 0;
    failed |= json_object_set_new(object, "probabilities", labels) != 0;
  }
  if (failed) json_decref(object);
  return json_output_print(&COMMAND, stdout, failed ? NULL : object, JSON_COMPACT);
}

static void print_text(const output *out, const tarn_classify_result *result) {
  if (!result->probabilities) {
    printf("%.6g\n", result->number);
    return;
  }
  for (int64_t k = 0; k < out->top; k++) {
    const int32_t label = result->order[k];
    printf("%s%s\t%.6f", k ? "\t" : "", tarn_classifier_label(out->classifier, label), result->probabilities[label]);
  }
  putchar('\n');
}

static tarn_status print_line(void *user, int64_t number, const tarn_classify_result *result) {
  output *out = user;
  progress_line_make_way();
  out->lines++;
  out->truncated += result->truncated;
  out->replaced += result->replaced;
  if (out->json)
    out->code = print_json(out, number, result);
  else
    print_text(out, result);
  // Whoever reads from a pipe gets every window as soon as it is there, and whoever may wait every line.
  if (out->answers || number % out->window == 0) fflush(stdout);
  return out->code != CLI_OK || ferror(stdout) ? TARN_STATUS_IO : TARN_STATUS_OK;
}

static void print_notes(const output *out) {
  if (out->truncated)
    fprintf(stderr, "tarn classify: %s cut to what the model takes\n", CLI_COUNT(out->truncated, "line"));
  if (out->replaced) fprintf(stderr, "tarn classify: invalid UTF-8 replaced in %s\n", CLI_COUNT(out->replaced, "line"));
}

static int run(const char *path, const char *input, const tarn_classify_options *options, output *out) {
  tarn_classifier *classifier;
  tarn_status status = tarn_classifier_open(&classifier, path, options);
  if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  out->classifier = classifier;
  out->answers = text_output_answers(&COMMAND, input);
  if (out->top > tarn_classifier_classes(classifier)) out->top = tarn_classifier_classes(classifier);
  status = tarn_classifier_file(classifier, input, print_line, out);
  int code = out->code;
  const bool none = out->lines == 0 && !shared_ranks_help();
  if (text_output_lines_end(&COMMAND, &code, status, none, input)) print_notes(out);
  tarn_classifier_close(&classifier);
  return code;
}

int cmd_classify(int argc, char **argv) {
  tarn_classify_options options;
  tarn_classify_default(&options);
  model_options model = {.precision = "auto", .overlong = "truncate"};
  output out = {.top = 1};
  const char *comm = NULL;
  cli_list paths = {0};
  const cli_option table[] = {
      {"top", CLI_INT, &out.top, "K", "labels that are printed; more than there are: all", 1, 10000},
      {"json", CLI_FLAG, &out.json, NULL, "print JSON, one object a line", 0, 0},
      MODEL_PRECISION_OPTION(model),
      MODEL_OVERLONG_OPTION(model, "lines"),
      {"max-tokens", CLI_INT, &options.max_tokens, "N", "tokens computed together", 1, 1 << 24},
      {"window", CLI_INT, &options.window, "N", "lines read at a time", 1, 1000000},
      {"strict", CLI_FLAG, &options.strict, NULL, "refuse invalid UTF-8 instead of replacing it by U+FFFD", 0, 0},
      MODEL_RUN_OPTIONS(model),
      RANKS_OPTION(comm),
      LIMIT_OPTIONS(model.limits),
      PROGRESS_OPTIONS,
      {0}};
  cli_together(&comm);
  int code = cli_parse(&COMMAND, table, argc, argv, &paths, 1, 2);
  if (code < 0) code = model_options_set(&COMMAND, &model, &options.precision, &options.overlong, &options.threads);
  if (code < 0) code = shared_ranks_open(&COMMAND, comm);
  if (code < 0) code = model_options_find(&COMMAND, &model.found, paths.items[0], model.checkpoint);
  if (code < 0) {
    out.window = options.window;
    options.ranks = shared_ranks();
    code = run(model.found.path, paths.count > 1 ? paths.items[1] : "-", &options, &out);
  }
  const bool helps = shared_ranks_help();
  code = shared_ranks_end(&COMMAND, code);
  model_options_done(&COMMAND, &model.found, code, helps);
  cli_list_free(&paths);
  return code;
}
