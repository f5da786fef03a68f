// tarn states: writes the internal states of a model for the sentences of a file.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "json_output.h"
#include "model_options.h"
#include "progress_line.h"
#include "progress_show.h"
#include "stop_signal.h"
#include "tarn/lab/states.h"
#include "text_notes.h"

static const cli_command COMMAND = {
    "states", "RUN [NAME...]", "Write what a model computes inside for the sentences of a file, by name.",
    "RUN is a run directory or a checkpoint. NAMEs select what is written: outputs of layers (encoder.3; 0 is the\n"
    "embeddings), attention weights (encoder.3.attention, decoder.1.cross_attention), gates and states of recurrent\n"
    "layers (decoder.2.gates, decoder.2.states), logits (output) or the 10 likeliest words (output.top10), and more:\n"
    "--list prints all names that the model has. * in a NAME stands for anything: \"encoder.*.attention\".\n"
    "The decoder of a translation model needs the translations too (--target). There is a row for each token that\n"
    "the model reads; the tokens, and where each sentence begins among them, are written as well (docs/states.md).\n"
    "Besides the model the command holds in memory the tokens of the text (4 bytes each) and one batch of results,\n"
    "so the output may be larger than memory; --batch-memory limits the batch and --max-size the output."};

enum { MOST_NAMES = 10000 };

typedef struct request {
  const char *input, *target, *output, *format, *batch_memory, *max_size;
  bool list, json;
} request;

static const char *shape_of(char text[64], const tarn_states *states, const tarn_states_array *array, size_t a,
                            int64_t sentences) {
  tarn_states_summary summary;
  tarn_states_get_summary(states, &summary);
  if (array->form == TARN_STATES_FORM_ATTENTION)
    snprintf(text, 64, "%" PRId64 " (%" PRId64 " heads)", tarn_states_place(states, a, sentences), array->width);
  else
    snprintf(text, 64, "%" PRId64 " x %" PRId64,
             array->form == TARN_STATES_FORM_TOKENS ? summary.tokens[array->side] : sentences, array->width);
  return text;
}

static const char *rows_of(const tarn_states *states, const tarn_states_array *array) {
  if (array->form == TARN_STATES_FORM_SENTENCE) return "sentence";
  if (tarn_states_sides(states) == 1) return "token";
  return array->side == TARN_STATES_SIDE_SOURCE ? "source token" : "target token";
}

static const char *width_of(char text[32], const tarn_states_array *array) {
  if (array->width == 0) return "K";
  snprintf(text, 32, "%" PRId64 "%s", array->width, array->form == TARN_STATES_FORM_ATTENTION ? " heads" : "");
  return text;
}

static int print_offered_json(const tarn_states *states) {
  size_t count;
  const tarn_states_array *arrays = tarn_states_offered(states, &count);
  json_t *list = json_array();
  bool failed = !list;
  for (size_t a = 0; a < count; a++)
    failed |= json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:I, s:s}", "name", arrays[a].name, "type",
                                                    arrays[a].type == TARN_STATES_TYPE_I32 ? "int32" : "float32",
                                                    "rows", rows_of(states, &arrays[a]), "width",
                                                    (json_int_t)arrays[a].width, "text", arrays[a].text)) != 0;
  json_t *object = json_pack("{s:o, s:o}", "checkpoint", json_output_text(tarn_states_path(states)), "offers", list);
  if (failed) json_decref(object);
  return json_output_print(&COMMAND, stdout, failed ? NULL : object, JSON_COMPACT);
}

static int print_offered(const tarn_states *states) {
  size_t count;
  char text[32];
  const tarn_states_array *arrays = tarn_states_offered(states, &count);
  printf("%-26s %9s  %-13s what\n", "name", "width", "a row of each");
  for (size_t a = 0; a < count; a++)
    printf("%-26s %9s  %-13s %s\n", arrays[a].name, width_of(text, &arrays[a]), rows_of(states, &arrays[a]),
           arrays[a].text);
  return CLI_OK;
}

static int print_written(const tarn_states *states, const request *r) {
  size_t count;
  char text[64];
  tarn_states_summary summary;
  tarn_states_get_summary(states, &summary);
  const tarn_states_array *arrays = tarn_states_selected(states, &count);
  if (!r->json) {
    for (size_t a = 0; a < count && !progress_wanted.quiet; a++)
      printf("%s\t%s\n", arrays[a].name, shape_of(text, states, &arrays[a], a, summary.sentences));
    return CLI_OK;
  }
  json_t *list = json_array();
  bool failed = !list;
  for (size_t a = 0; a < count; a++)
    failed |= json_array_append_new(
                  list, json_pack("{s:s, s:I, s:I}", "name", arrays[a].name, "width", (json_int_t)arrays[a].width,
                                  "numbers", (json_int_t)tarn_states_place(states, a, summary.sentences))) != 0;
  json_t *object = json_pack(
      "{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "checkpoint", json_output_text(tarn_states_path(states)),
      "output", json_output_text(r->output), "sentences", (json_int_t)summary.sentences, "tokens",
      (json_int_t)summary.tokens[TARN_STATES_SIDE_SOURCE], "target_tokens",
      (json_int_t)summary.tokens[TARN_STATES_SIDE_TARGET], "truncated", (json_int_t)summary.truncated, "replaced",
      (json_int_t)summary.replaced, "unknown", (json_int_t)summary.unknown, "arrays", list);
  if (failed) json_decref(object);
  return json_output_print(&COMMAND, stdout, failed ? NULL : object, JSON_COMPACT);
}

static void print_notes(const tarn_states *states) {
  tarn_states_summary s;
  tarn_states_get_summary(states, &s);
  if (s.truncated) fprintf(stderr, "tarn states: %s cut to what the model takes\n", CLI_COUNT(s.truncated, "line"));
  if (s.replaced) fprintf(stderr, "tarn states: invalid UTF-8 replaced in %s\n", CLI_COUNT(s.replaced, "line"));
  text_notes_unknown(&COMMAND, "tokens", s.unknown, s.tokens[0] + s.tokens[1]);
}

static tarn_status on_progress(void *user, int64_t done, int64_t total) {
  (void)user, (void)done, (void)total;
  return stop_signal ? TARN_STATUS_INTERRUPTED : TARN_STATUS_OK;
}

static int write_all(tarn_states *states, const request *r, tarn_states_format format) {
  tarn_status status = tarn_states_encode_file(states, r->input, r->target);
  if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  tarn_states_summary summary;
  tarn_states_get_summary(states, &summary);
  if (summary.sentences == 0) {
    fprintf(stderr, "tarn states: %s: there is no line\n", strcmp(r->input, "-") == 0 ? "standard input" : r->input);
    return CLI_FAILURE;
  }
  stop_in_order(true);
  status = tarn_states_write(states, r->output, format);
  stop_in_order(false);
  if (status == TARN_STATUS_INTERRUPTED && stop_signal) {
    progress_line_clear();
    fprintf(stderr, "tarn states: stopped; %s is as it was\n", r->output);
    return 128 + (int)stop_signal;
  }
  if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  if (!progress_wanted.quiet) print_notes(states);
  return print_written(states, r);
}

static int run(const char *path, const char *const *names, size_t count, const tarn_states_options *options,
               const request *r, tarn_states_format format) {
  tarn_states *states;
  tarn_status status = tarn_states_open(&states, path, options);
  if (status == TARN_STATUS_OK && !r->list) status = tarn_states_select(states, names, count);
  int code = status != TARN_STATUS_OK ? cli_report(&COMMAND, status) : CLI_OK;
  if (code == CLI_OK && r->list) code = r->json ? print_offered_json(states) : print_offered(states);
  if (code == CLI_OK && !r->list) code = write_all(states, r, format);
  tarn_states_close(&states);
  return code;
}

// -1, or the exit code of a usage error.
static int check(const request *r, size_t names, tarn_states_options *options, int *format) {
  static const char *const formats[] = {"safetensors", "npy"};
  double amount;
  int code = cli_word(&COMMAND, format, "--format", r->format, formats, 2);
  if (code < 0 && r->batch_memory) {
    code = limit_options_amount(&COMMAND, &amount, "batch-memory", r->batch_memory);
    options->max_memory = amount < 1e18 ? (size_t)amount : 0;
  }
  if (code < 0 && r->max_size) {
    code = limit_options_amount(&COMMAND, &amount, "max-size", r->max_size);
    options->max_result = amount < 1e18 ? (size_t)amount : 0;
  }
  if (code >= 0) return code;
  if (r->list && (names || r->output)) return cli_usage(&COMMAND, "--list takes no NAME and no --output");
  if (!r->list && !names) return cli_usage(&COMMAND, "no NAME is given; tarn states RUN --list prints what there is");
  if (!r->list && !r->output) return cli_usage(&COMMAND, "--output is missing");
  return -1;
}

int cmd_states(int argc, char **argv) {
  tarn_states_options options;
  tarn_states_default(&options);
  model_options model = {.precision = "auto", .overlong = "refuse"};
  request r = {.input = "-", .format = "safetensors"};
  cli_list words = {0};
  int format = 0;
  const cli_option table[] = {
      {"input", CLI_TEXT, &r.input, "FILE",
       "sentences, one per line; for classifiers, and masked models that know pairs, also two separated by a tab; - is "
       "standard input",
       0, 0},
      {"target", CLI_TEXT, &r.target, "FILE", "for a translation model: their translations, which the decoder reads", 0,
       0},
      {"output", CLI_TEXT, &r.output, "FILE", "where to write the results; a folder with --format npy", 0, 0},
      {"format", CLI_TEXT, &r.format, "NAME", "safetensors: one file; npy: a NumPy file for each array", 0, 0},
      {"list", CLI_FLAG, &r.list, NULL, "print the names that the model offers, and what they are", 0, 0},
      {"json", CLI_FLAG, &r.json, NULL, "print JSON", 0, 0},
      PROGRESS_OPTION,
      {"quiet", CLI_FLAG, &progress_wanted.quiet, NULL, "print nothing but errors", 0, 0},
      {"batch-memory", CLI_TEXT, &r.batch_memory, "BYTES",
       "memory for what is computed together, such as 500M: batches have fewer sentences if need be; 0: no limit "
       "(default 1G)",
       0, 0},
      {"max-size", CLI_TEXT, &r.max_size, "BYTES",
       "refuse to write more than this, before anything is computed; 0: no limit (default 8G)", 0, 0},
      {"max-tokens", CLI_INT, &options.max_tokens, "N", "tokens computed together", 1, 1 << 24},
      MODEL_PRECISION_OPTION(model),
      MODEL_OVERLONG_OPTION(model, "lines"),
      {"strict", CLI_FLAG, &options.strict, NULL, "refuse invalid UTF-8 instead of replacing it by U+FFFD", 0, 0},
      MODEL_RUN_OPTIONS(model),
      LIMIT_OPTIONS(model.limits),
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &words, 1, MOST_NAMES);
  if (code < 0) catch_stop_signals("tarn states: stopped; nothing was written\n");
  if (code < 0) code = model_options_set(&COMMAND, &model, &options.precision, &options.overlong, &options.threads);
  if (code < 0) code = check(&r, words.count - 1, &options, &format);
  if (code < 0) code = model_options_find(&COMMAND, &model.found, words.items[0], model.checkpoint);
  if (code < 0) {
    options.progress = on_progress;
    code = run(model.found.path, words.items + 1, words.count - 1, &options, &r, (tarn_states_format)format);
  }
  model_options_done(&COMMAND, &model.found, code, progress_wanted.quiet);
  cli_list_free(&words);
  return code;
}
