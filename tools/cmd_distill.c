// tarn distill: makes the training data of a student from translations by a teacher.
#include <inttypes.h>
#include <stdio.h>

#include "cli.h"
#include "commands.h"
#include "json_output.h"
#include "model_options.h"
#include "prepare_output.h"
#include "progress_show.h"
#include "tarn/distill.h"
#include "text_notes.h"

static const cli_command COMMAND = {
    "distill", "TEACHER", "Translate a training text by a teacher, and prepare it for a student.",
    "TEACHER is the run directory or checkpoint of a translation model. Writes PREFIX.tarn, the source with its\n"
    "translations in the student's vocabularies, and PREFIX.hyp, the translations as text, so that teacher and "
    "student\n"
    "may have different vocabularies. After an interruption the same command goes on where it was."};

static int print_json(const tarn_distill_result *r) {
  json_t *data = prepare_output_json(&r->data);
  json_t *object = json_pack("{s:I, s:I, s:f, s:o}", "found", (json_int_t)r->found, "translated",
                             (json_int_t)r->translation.lines, "seconds", r->translation.seconds, "data", data);
  return json_output_print(&COMMAND, stdout, object, JSON_COMPACT);
}

static int print(const tarn_distill_result *r, bool json) {
  const tarn_translate_summary *t = &r->translation;
  if (t->truncated)
    fprintf(stderr, "truncated to the teacher's longest sentence: %s\n", CLI_COUNT(t->truncated, "line"));
  text_notes_unknown(&COMMAND, "tokens of the teacher's source", t->unknown, t->source_tokens);
  if (json) return print_json(r);
  if (r->found) printf("found  %10" PRId64 " lines that were translated before\n", r->found);
  if (t->lines)
    printf("new    %10" PRId64 " lines, %s in %.1f s\n", t->lines, CLI_COUNT(t->target_tokens, "token"), t->seconds);
  prepare_output_print(&r->data);
  return CLI_OK;
}

int cmd_distill(int argc, char **argv) {
  tarn_distill_options options;
  tarn_distill_default(&options);
  tarn_translator_options *t = &options.translation;
  model_options model = {.precision = "auto", .overlong = "truncate"};
  bool json = false;
  cli_list paths = {0};
  const cli_option table[] = {
      {"source", CLI_TEXT, &options.source, "FILE", "text to translate; needed", 0, 0},
      {"vocab", CLI_TEXT, &options.vocab, "FILE", "the student's vocabulary of both sides, or of the source; needed", 0,
       0},
      {"target-vocab", CLI_TEXT, &options.target_vocab, "FILE", "its vocabulary of the target if it has its own", 0, 0},
      {"output", CLI_TEXT, &options.output, "PREFIX", "writes PREFIX.tarn and PREFIX.hyp; needed", 0, 0},
      {"beam", CLI_INT, &t->beam, "N", "hypotheses of the teacher's search; 0: its translate.beam", 0, 1024},
      {"length-penalty", CLI_REAL, &t->length_penalty, "X", "default: the teacher's translate.length_penalty", -10, 10},
      REFINEMENT_OPTIONS(*t),
      {"max-tokens", CLI_INT, &t->max_tokens, "N", "source tokens in work on a thread; 0: the teacher's", 0, 1 << 24},
      {"window", CLI_INT, &t->window, "N", "lines translated and saved at a time", 1, 10000000},
      {"strict", CLI_FLAG, &t->strict, NULL, "refuse invalid UTF-8 instead of replacing it by U+FFFD", 0, 0},
      MODEL_OVERLONG_OPTION(model, "lines"),
      MODEL_PRECISION_OPTION(model),
      MODEL_RUN_OPTIONS(model),
      {"json", CLI_FLAG, &json, NULL, "print the summary as JSON", 0, 0},
      LIMIT_OPTIONS(model.limits),
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &paths, 1, 1);
  const char *missing = !options.source ? "source" : !options.vocab ? "vocab" : !options.output ? "output" : NULL;
  if (code < 0 && missing) code = cli_usage(&COMMAND, "--%s is missing", missing);
  if (code < 0) code = model_options_set(&COMMAND, &model, &t->precision, &t->overlong, &t->threads);
  if (code < 0) code = model_options_find(&COMMAND, &model.found, paths.items[0], model.checkpoint);
  if (code < 0) {
    tarn_distill_result result;
    options.teacher = model.found.path;
    const tarn_status status = tarn_distill_run(&result, &options);
    code = status == TARN_STATUS_OK ? print(&result, json) : cli_report(&COMMAND, status);
  }
  model_options_done(&COMMAND, &model.found, code, false);
  cli_list_free(&paths);
  return code;
}
