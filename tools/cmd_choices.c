// tarn choices: answers questions of multiple choice with a language model.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "json_output.h"
#include "lm_output.h"
#include "model_options.h"
#include "progress_show.h"
#include "shared_ranks.h"
#include "tarn/choices.h"
#include "text_output.h"
#include "text_table.h"

static const cli_command COMMAND = {
    "choices", "RUN FILE...", "Answer questions of multiple choice by likelihood (ARC, HellaSwag, PIQA, LAMBADA).",
    "RUN is a run directory or a checkpoint of a language model. FILE has a question on each line, in JSON:\n"
    "{\"context\", \"choices\": [...], \"answer\": INDEX}, or the lines of ARC, HellaSwag, PIQA or LAMBADA, which are "
    "put "
    "as in\n"
    "lm-evaluation-harness, without examples. acc counts the questions whose right choice has the greatest\n"
    "log-probability after the context, acc_norm by log-probability / characters and acc_bytes / bytes; of LAMBADA "
    "acc\n"
    "counts last words that greedy decoding gives. The intervals are Wilson's at 95 %."};

typedef struct settings {
  const cli_list *paths;  // the model, then files
  const char *format, *output;
  tarn_choices_options options;
  bool json, no_bos;
} settings;

static void add_share(text_table *table, const tarn_choices_accuracy *a, bool there) {
  text_table_cell(table, there ? "%.2f" : "-", 100.0 * a->accuracy);
  text_table_cell(table, there ? "%.2f .. %.2f" : "-", 100.0 * a->low, 100.0 * a->high);
}

static void add_header(text_table *table) {
  static const char *const names[] = {"file",   "format", "questions", "acc %", "95 %",
                                      "norm %", "95 %",   "bytes %",   "95 %",  "perplexity"};
  text_table_row(table);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) text_table_cell(table, "%s", names[i]);
}

static void add_row(text_table *table, const char *path, const tarn_choices_result *r) {
  const bool lambada = r->format == TARN_CHOICES_FORMAT_LAMBADA;
  text_table_row(table);
  text_table_cell(table, "%s", path);
  text_table_cell(table, "%s", tarn_choices_format_name(r->format));
  text_table_cell(table, "%" PRId64, r->questions);
  add_share(table, &r->acc, true);
  add_share(table, &r->norm, !lambada);
  add_share(table, &r->bytes, !lambada);
  text_table_cell(table, lambada ? "%.3f" : "-", r->perplexity);
}

static json_t *share_json(const tarn_choices_accuracy *a, bool there) {
  if (!there) return json_null();
  return json_pack("{s:I, s:f, s:f, s:f}", "right", (json_int_t)a->right, "accuracy", a->accuracy, "low", a->low,
                   "high", a->high);
}

static json_t *row_json(const char *path, const tarn_choices_result *r) {
  const bool lambada = r->format == TARN_CHOICES_FORMAT_LAMBADA;
  return json_pack("{s:o, s:s, s:I, s:o, s:o, s:o, s:o, s:s, s:I, s:I, s:I}", "file", json_output_text(path), "format",
                   tarn_choices_format_name(r->format), "questions", (json_int_t)r->questions, "acc",
                   share_json(&r->acc, true), "acc_norm", share_json(&r->norm, !lambada), "acc_bytes",
                   share_json(&r->bytes, !lambada), "perplexity", lambada ? json_real(r->perplexity) : json_null(),
                   "answers", r->answers, "unknown", (json_int_t)r->unknown, "truncated", (json_int_t)r->truncated,
                   "replaced", (json_int_t)r->replaced);
}

static int print_json(const tarn_lm *lm, json_t *files, FILE *file) {
  json_t *object = json_pack("{s:o, s:O}", "checkpoint", json_output_text(tarn_lm_path(lm)), "files", files);
  return json_output_print(&COMMAND, file, object, JSON_COMPACT);
}

static int answer(tarn_lm *lm, FILE *file, void *user) {
  const settings *s = user;
  const cli_list *paths = s->paths;
  json_t *files = json_array();
  text_table table = {.columns = 10};
  int64_t unknown = 0, truncated = 0, replaced = 0;
  int code = CLI_OK;
  for (size_t i = 1; code == CLI_OK && i < paths->count; i++) {
    tarn_choices_result *result;
    tarn_status status = tarn_choices_run(&result, lm, paths->items[i], &s->options);
    if (status != TARN_STATUS_OK) code = cli_report(&COMMAND, status);
    if (!result) continue;  // only rank 0 has it
    if (table.rows == 0) add_header(&table);
    add_row(&table, paths->items[i], result);
    if (json_array_append_new(files, row_json(paths->items[i], result)) != 0)
      code = json_output_print(&COMMAND, stdout, NULL, JSON_COMPACT);
    unknown += result->unknown;
    truncated += result->truncated;
    replaced += result->replaced;
    tarn_choices_close(&result);
  }
  const bool here = table.rows > 0 && !s->json;
  if (here && !text_table_print(&table)) code = cli_no_memory(&COMMAND);
  if (!here) free(table.cells);
  if (code == CLI_OK && s->json && json_array_size(files) > 0) code = print_json(lm, files, stdout);
  if (code == CLI_OK && file) code = print_json(lm, files, file);
  lm_print_changes(unknown, truncated, "context", replaced);
  json_decref(files);
  return code;
}

static int settle(settings *s) {
  s->options.bos = !s->no_bos;
  tarn_status status = tarn_choices_format_parse(&s->options.format, s->format);
  if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  if (s->options.labels && s->paths->count > 2)
    return cli_usage(&COMMAND, "--labels has the answers of one file, and %zu are given", s->paths->count - 1);
  return -1;
}

int cmd_choices(int argc, char **argv) {
  tarn_lm_options options;
  tarn_lm_default(&options);
  cli_list paths = {0};
  settings s = {.paths = &paths, .format = "auto"};
  tarn_choices_default(&s.options);
  const char *comm = NULL;
  model_options model = {.precision = "auto", .overlong = "refuse"};
  const cli_option table[] = {
      {"json", CLI_FLAG, &s.json, NULL, "print JSON in place of the table", 0, 0},
      {"output", CLI_TEXT, &s.output, "FILE", "write the JSON here as well", 0, 0},
      PROGRESS_OPTIONS,
      {"format", CLI_TEXT, &s.format, "NAME", "choices, arc, hellaswag, piqa, lambada, or auto: by the keys", 0, 0},
      {"labels", CLI_TEXT, &s.options.labels, "FILE", "indices of the right choices, one a line, such as PIQA's", 0, 0},
      {"no-bos", CLI_FLAG, &s.no_bos, NULL, "begin contexts without an end of sentence, as the harness does for GPT-2",
       0, 0},
      MODEL_PRECISION_OPTION(model),
      MODEL_OVERLONG_OPTION(model, "contexts, at their beginning,"),
      {"strict", CLI_FLAG, &options.strict, NULL, "refuse invalid UTF-8 instead of replacing it by U+FFFD", 0, 0},
      {"max-tokens", CLI_INT, &options.max_tokens, "N", "tokens computed together", 1, 1 << 24},
      MODEL_RUN_OPTIONS(model),
      RANKS_OPTION(comm),
      LIMIT_OPTIONS(model.limits),
      {0}};
  cli_together(&comm);
  int code = cli_parse(&COMMAND, table, argc, argv, &paths, 2, 1000);
  if (code < 0) code = settle(&s);
  if (code < 0) code = model_options_set(&COMMAND, &model, &options.precision, &options.overlong, &options.threads);
  if (code < 0) code = shared_ranks_open(&COMMAND, comm);
  if (code < 0) code = model_options_find(&COMMAND, &model.found, paths.items[0], model.checkpoint);
  const bool helps = shared_ranks_help();
  options.ranks = shared_ranks();
  if (code < 0) code = lm_output_run(&COMMAND, model.found.path, &options, helps ? NULL : s.output, answer, &s);
  code = shared_ranks_end(&COMMAND, code);
  model_options_done(&COMMAND, &model.found, code, helps);
  cli_list_free(&paths);
  return code;
}
