// tarn blimp: scores minimal pairs with a language model.
#include <inttypes.h>
#include <stdio.h>

#include "commands.h"
#include "json_output.h"
#include "lm_output.h"
#include "model_options.h"
#include "progress_show.h"
#include "shared_ranks.h"
#include "tarn/lm.h"
#include "text_output.h"

static const cli_command COMMAND = {
    "blimp", "RUN DIR", "Test a language model on minimal pairs (BLiMP).",
    "RUN is a run directory or a checkpoint of a language model. DIR holds one file PARADIGM.jsonl for each paradigm,\n"
    "with the keys sentence_good and sentence_bad, and one field if there are groups. A pair counts when the good "
    "sentence\n"
    "has the higher log-probability. Overall and of a field the accuracy is the mean over paradigms. The intervals "
    "are\n"
    "Wilson's at 95 %, and of a mean what those of its paradigms make together."};

static void print_count(const tarn_minimal_pairs_count *c, const char *field) {
  printf("%-52s %-18s %8" PRId64 " %7.2f   %5.2f .. %5.2f\n", c->name, field, c->pairs, 100.0 * c->accuracy,
         100.0 * c->low, 100.0 * c->high);
}

static void print_text(const tarn_minimal_pairs_result *result) {
  printf("%-52s %-18s %8s %7s   %s\n", "paradigm", "field", "pairs", "%", "95 % interval");
  for (size_t i = 0; i < result->paradigm_count; i++) print_count(&result->paradigms[i], result->paradigms[i].field);
  printf("\n");
  for (size_t i = 0; i < result->field_count; i++) print_count(&result->fields[i], "");
  print_count(&result->overall, "");
}

static json_t *count_json(const tarn_minimal_pairs_count *c) {
  return json_pack("{s:o, s:s, s:s, s:I, s:I, s:f, s:f, s:f}", "name", json_output_text(c->name), "field", c->field,
                   "term", c->term, "pairs", (json_int_t)c->pairs, "right", (json_int_t)c->right, "accuracy",
                   c->accuracy, "low", c->low, "high", c->high);
}

static int print_json(const tarn_lm *lm, const tarn_minimal_pairs_result *result, FILE *file) {
  json_t *paradigms = json_array();
  json_t *fields = json_array();
  int failed = 0;
  for (size_t i = 0; i < result->paradigm_count; i++)
    failed |= json_array_append_new(paradigms, count_json(&result->paradigms[i])) != 0;
  for (size_t i = 0; i < result->field_count; i++)
    failed |= json_array_append_new(fields, count_json(&result->fields[i])) != 0;
  json_t *object =
      json_pack("{s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I}", "checkpoint", json_output_text(tarn_lm_path(lm)), "overall",
                count_json(&result->overall), "fields", fields, "paradigms", paradigms, "unknown",
                (json_int_t)result->unknown, "truncated", (json_int_t)result->truncated, "replaced",
                (json_int_t)result->replaced, "equal", (json_int_t)result->equal);
  if (failed) json_decref(object);
  return json_output_print(&COMMAND, file, failed ? NULL : object, JSON_COMPACT);
}

typedef struct settings {
  const char *folder;
  bool json;
} settings;

static int test_pairs(tarn_lm *lm, FILE *file, void *user) {
  const settings *s = user;
  tarn_minimal_pairs_result *result;
  tarn_status status = tarn_minimal_pairs_run(&result, lm, s->folder, NULL, NULL);
  if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  if (!result) return CLI_OK;  // only rank 0 has it
  if (!s->json) print_text(result);
  int code = s->json ? print_json(lm, result, stdout) : CLI_OK;
  if (code == CLI_OK && file) code = print_json(lm, result, file);
  lm_print_changes(result->unknown, result->truncated, "sentence", result->replaced);
  lm_print_equal(result->equal);
  tarn_minimal_pairs_close(&result);
  return code;
}

int cmd_blimp(int argc, char **argv) {
  tarn_lm_options options;
  tarn_lm_default(&options);
  bool json = false;
  const char *output = NULL, *comm = NULL;
  model_options model = {.precision = "auto", .overlong = "refuse"};
  cli_list paths = {0};
  const cli_option table[] = {
      {"json", CLI_FLAG, &json, NULL, "print JSON in place of the table", 0, 0},
      {"output", CLI_TEXT, &output, "FILE", "write the JSON here as well", 0, 0},
      PROGRESS_OPTIONS,
      MODEL_PRECISION_OPTION(model),
      MODEL_OVERLONG_OPTION(model, "sentences"),
      {"strict", CLI_FLAG, &options.strict, NULL, "refuse invalid UTF-8 instead of replacing it by U+FFFD", 0, 0},
      {"max-tokens", CLI_INT, &options.max_tokens, "N", "tokens computed together", 1, 1 << 24},
      MODEL_RUN_OPTIONS(model),
      RANKS_OPTION(comm),
      LIMIT_OPTIONS(model.limits),
      {0}};
  cli_together(&comm);
  int code = cli_parse(&COMMAND, table, argc, argv, &paths, 2, 2);
  if (code < 0) code = model_options_set(&COMMAND, &model, &options.precision, &options.overlong, &options.threads);
  if (code < 0) code = shared_ranks_open(&COMMAND, comm);
  if (code < 0) code = model_options_find(&COMMAND, &model.found, paths.items[0], model.checkpoint);
  const bool helps = shared_ranks_help();
  options.ranks = shared_ranks();
  if (code < 0) {
    settings s = {.folder = paths.items[1], .json = json};
    code = lm_output_run(&COMMAND, model.found.path, &options, helps ? NULL : output, test_pairs, &s);
  }
  code = shared_ranks_end(&COMMAND, code);
  model_options_done(&COMMAND, &model.found, code, helps);
  cli_list_free(&paths);
  return code;
}
