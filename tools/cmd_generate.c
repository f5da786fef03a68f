// tarn generate: continues prompts with a language model, line by line and in order.
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "decoding_options.h"
#include "json_output.h"
#include "model_options.h"
#include "progress_line.h"
#include "progress_show.h"
#include "tarn/lm.h"
#include "text_notes.h"
#include "text_output.h"

static const cli_command COMMAND = {
    "generate", "RUN|FILE", "Continue prompts, or begin sentences, by a language model.",
    "RUN is a run directory (see --checkpoint), FILE a checkpoint. Each prompt gives --number lines of text, prompt "
    "and\n"
    "continuation; without a prompt, and for an empty one, a sentence is begun. Without further options the most "
    "likely\n"
    "token is taken every time (greedy); --temperature, --top-k and --top-p draw tokens, --beam searches. The same "
    "seed\n"
    "and prompt give the same samples. Scores are log-probabilities (natural logarithm) divided by\n"
    "tokens^length-penalty. --json gives an object a prompt. A summary goes to standard error."};

typedef struct output {
  text_output to;
  const tarn_generator *generator;
  bool scores, json, stream;
  bool one;      // of several samples, the first
  bool answers;  // flush each line
  int64_t window;
} output;

// The options as given, before checks of which ones were.
typedef struct given {
  cli_list prompts, banned, stop;
  const char *input;
  int64_t beam;
  double length_penalty;
  drawing_options drawing;
} given;

static json_t *pieces_json(const output *out, const tarn_generator_text *text) {
  json_t *pieces = json_array();
  int failed = 0;
  for (int64_t t = 0; t < text->tokens; t++) {
    json_t *piece = json_string(tarn_generator_piece(out->generator, text->ids[t]));  // NULL if it is not UTF-8
    failed |= json_array_append_new(pieces, json_pack("[o, I, f]", piece ? piece : json_null(),
                                                      (json_int_t)text->ids[t], (double)text->log_probabilities[t]));
  }
  if (!failed) return pieces;
  json_decref(pieces);
  return NULL;
}

static int print_json(const output *out, const tarn_generator_result *result) {
  json_t *texts = json_array();
  int failed = 0;
  for (int64_t i = 0; i < result->count; i++) {
    const tarn_generator_text *text = &result->texts[i];
    failed |= json_array_append_new(
        texts, json_pack("{s:s%, s:s%, s:s, s:f, s:f, s:I, s:o}", "text", text->text, text->length, "continuation",
                         text->continuation, text->continuation_length, "end", tarn_generator_end_word(text->end),
                         "log_probability", text->log_probability, "score", text->score, "tokens",
                         (json_int_t)text->tokens, "pieces", pieces_json(out, text)));
  }
  json_t *object = json_pack("{s:I, s:I, s:I, s:o, s:o}", "index", (json_int_t)(result->number - 1), "prompt_tokens",
                             (json_int_t)result->prompt_tokens, "unknown", (json_int_t)result->unknown, "texts", texts,
                             "checkpoint", json_output_text(tarn_generator_path(out->generator)));
  failed |= !json_output_dump(out->to.file, object, JSON_COMPACT);
  json_decref(object);
  fputc('\n', out->to.file);
  return failed;
}

// Stops at the first line that cannot be written.
static tarn_status print_result(void *user, const tarn_generator_result *result) {
  output *out = user;
  progress_line_make_way();
  int failed = 0;
  if (out->json) failed = print_json(out, result);
  for (int64_t i = 0; !out->json && i < (out->one ? 1 : result->count); i++) {
    const tarn_generator_text *text = &result->texts[i];
    if (out->scores) fprintf(out->to.file, "%.6f\t", text->score);
    text_output_line(&out->to, text->text, text->length);
    fputc('\n', out->to.file);
  }
  // A pipe gets every window as soon as it is done, and a reader that may be waiting every line.
  if (out->answers || result->number % out->window == 0) fflush(out->to.file);
  if (ferror(out->to.file)) return TARN_STATUS_IO;
  return failed ? TARN_STATUS_MEMORY : TARN_STATUS_OK;
}

static void print_summary(const tarn_generator *generator) {
  tarn_generator_summary s;
  tarn_generator_get_summary(generator, &s);
  fprintf(stderr, "%s, %s, %s, %s in %.2f s: %.0f tokens/s\n", CLI_COUNT(s.prompts, "prompt"),
          CLI_COUNT(s.prompt_tokens, "prompt token"), CLI_COUNT(s.texts, "text"), CLI_COUNT(s.tokens, "token"),
          s.seconds, s.seconds > 0 ? (double)s.tokens / s.seconds : 0);
  if (s.unknown) fprintf(stderr, "tokens of prompts that are not in the vocabulary: %" PRId64 "\n", s.unknown);
  text_notes_cut(s.cut);
  text_notes_unknown(&COMMAND, "tokens of prompts", s.unknown, s.prompt_tokens);
}

// The prompts of the command line, or an empty one.
static tarn_status continue_prompts(tarn_generator *generator, const cli_list *prompts, output *out) {
  static const char *const nothing[] = {""};
  const size_t count = prompts->count > 0 ? prompts->count : 1;
  const char *const *lines = prompts->count > 0 ? prompts->items : nothing;
  tarn_generator_result *results = calloc(count, sizeof *results);
  size_t *lengths = calloc(count, sizeof *lengths);
  tarn_status status = results && lengths ? TARN_STATUS_OK : TARN_STATUS_MEMORY;
  for (size_t i = 0; status == TARN_STATUS_OK && i < count; i++) lengths[i] = strlen(lines[i]);
  if (status == TARN_STATUS_OK) status = tarn_generator_lines(generator, results, lines, lengths, count);
  for (size_t i = 0; status == TARN_STATUS_OK && i < count; i++) status = print_result(out, &results[i]);
  free(results);
  free(lengths);
  return status;
}

static tarn_status print_part(void *user, const char *text, size_t length) {
  output *out = user;
  fwrite(text, 1, length, out->to.file);
  fflush(out->to.file);
  return ferror(out->to.file) ? TARN_STATUS_IO : TARN_STATUS_OK;
}

// The continuations of the prompts of the command line, as they come.
static tarn_status stream_prompts(tarn_generator *generator, const cli_list *prompts, output *out) {
  const size_t count = prompts->count > 0 ? prompts->count : 1;
  tarn_status status = TARN_STATUS_OK;
  for (size_t i = 0; status == TARN_STATUS_OK && i < count; i++) {
    const char *prompt = prompts->count > 0 ? prompts->items[i] : "";
    tarn_generator_result result;
    fputs(prompt, out->to.file);
    status = tarn_generator_stream(generator, &result, prompt, strlen(prompt), print_part, out);
    if (status == TARN_STATUS_OK) fputc('\n', out->to.file);
  }
  return status;
}

static int run(const char *path, const given *g, const char *destination, output *out,
               const tarn_generator_options *options) {
  tarn_generator *generator;
  tarn_status status = tarn_generator_open(&generator, path, options);
  if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  out->generator = generator;
  int code = text_output_open(&COMMAND, &out->to, destination);
  if (code == CLI_OK) {
    if (g->input) out->answers = text_output_answers(&COMMAND, g->input);
    if (g->input)
      status = tarn_generator_file(generator, g->input, print_result, out);
    else if (out->stream)
      status = stream_prompts(generator, &g->prompts, out);
    else
      status = continue_prompts(generator, &g->prompts, out);
    code = text_output_close(&COMMAND, &out->to, status == TARN_STATUS_OK);
    if (code == CLI_OK && status != TARN_STATUS_OK)
      code = cli_report(&COMMAND, status);
    else if (code == CLI_OK)
      print_summary(generator);
  }
  tarn_generator_close(&generator);
  return code;
}

// The method implied by the options; -1, or the exit code of a usage error.
static int settle_method(tarn_generator_options *options, const given *g) {
  const bool samples = drawing_options_given(&g->drawing) || g->drawing.mbr;
  const bool beam = g->beam != CLI_NO_INT;
  if (g->input && g->prompts.count > 0) return cli_usage(&COMMAND, "--prompt and --input exclude each other");
  if (beam && samples)
    return cli_usage(&COMMAND,
                     "--beam searches: it excludes --temperature, --top-k, --top-p, --min-p, --typical-p and --mbr, "
                     "for which tokens are drawn");
  if (!beam && !isnan(g->length_penalty)) return cli_usage(&COMMAND, "--length-penalty needs --beam");
  if (!samples && g->drawing.seed != CLI_NO_INT)
    return cli_usage(
        &COMMAND,
        "--seed needs --temperature, --top-k, --top-p, --min-p, --typical-p or --mbr: without them nothing is drawn");
  if (beam) {
    options->method = TARN_GENERATOR_METHOD_BEAM;
    options->beam = g->beam;
    if (!isnan(g->length_penalty)) options->length_penalty = g->length_penalty;
  }
  if (samples) {
    options->method = TARN_GENERATOR_METHOD_SAMPLE;
    const int code = drawing_options_set(&COMMAND, &g->drawing, &options->temperature, &options->top_k, &options->top_p,
                                         &options->seed, &options->decoding);
    if (code >= 0) return code;
  }
  decoding_options_set(&options->decoding, &g->banned);
  options->stop = g->stop.items;
  options->stop_count = g->stop.count;
  return -1;
}

// --stream shows one text at a time as it grows.
static int settle_stream(const tarn_generator_options *options, const given *g, const output *out) {
  if (!out->stream) return -1;
  if (g->input || out->json || out->scores)
    return cli_usage(&COMMAND, "--stream is for --prompt, and excludes --input, --json and --scores");
  if (options->method == TARN_GENERATOR_METHOD_BEAM || options->number > 1)
    return cli_usage(&COMMAND, "--stream has one continuation of each prompt: it excludes --beam and --number");
  return -1;
}

int cmd_generate(int argc, char **argv) {
  tarn_generator_options options;
  tarn_generator_default(&options);
  const char *destination = NULL;
  model_options model = {.precision = "auto"};
  output out = {0};
  cli_list paths = {0};
  given g = {.beam = CLI_NO_INT, .length_penalty = NAN, .drawing = DRAWING_OPTIONS_NONE};
  const cli_option table[] = {
      {"prompt", CLI_LIST, &g.prompts, "TEXT", "text to continue; may be given several times", 0, 0},
      {"input", CLI_TEXT, &g.input, "FILE", "prompts, one a line; -: standard input", 0, 0},
      {"max-tokens", CLI_INT, &options.max_tokens, "N", "most tokens of a continuation, its end of sentence counted", 1,
       1 << 30},
      {"min-tokens", CLI_INT, &options.min_tokens, "N", "tokens before which no sentence ends", 0, 1 << 30},
      {"number", CLI_INT, &options.number, "N", "samples, or best hypotheses of the beam, of each prompt", 1, 1000000},
      DRAWING_OPTIONS(g.drawing),
      {"beam", CLI_INT, &g.beam, "N", "search with N hypotheses", 1, 1024},
      {"length-penalty", CLI_REAL, &g.length_penalty, "X", "power of the length in the beam's scores (default 1)", -10,
       10},
      DECODING_OPTIONS(options.decoding, g.banned),
      {"stop", CLI_LIST, &g.stop, "TEXT", "end a continuation before TEXT; may be given several times", 0, 0},
      {"stream", CLI_FLAG, &out.stream, NULL, "show each continuation while it is generated", 0, 0},
      {"scores", CLI_FLAG, &out.scores, NULL, "put the score and a tab before each text", 0, 0},
      {"json", CLI_FLAG, &out.json, NULL, "print JSON, one object a prompt", 0, 0},
      {"window", CLI_INT, &options.window, "N", "prompts read and continued together", 1, 10000000},
      {"strict", CLI_FLAG, &options.strict, NULL, "refuse prompts with invalid UTF-8 or unknown tokens", 0, 0},
      MODEL_PRECISION_OPTION(model),
      MODEL_RUN_OPTIONS(model),
      {"output", CLI_TEXT, &destination, "FILE", "where to write instead of standard output", 0, 0},
      LIMIT_OPTIONS(model.limits),
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &paths, 1, 1);
  if (code < 0) code = model_options_set(&COMMAND, &model, &options.precision, NULL, &options.threads);
  if (code < 0) code = settle_method(&options, &g);
  if (code < 0) code = settle_stream(&options, &g, &out);
  if (code < 0) code = model_options_find(&COMMAND, &model.found, paths.items[0], model.checkpoint);
  if (code < 0) {
    out.window = options.window;
    out.one = options.decoding.mbr != TARN_MBR_NONE;
    code = run(model.found.path, &g, destination, &out, &options);
  }
  model_options_done(&COMMAND, &model.found, code, false);
  cli_list_free(&paths);
  cli_list_free(&g.prompts);
  cli_list_free(&g.banned);
  cli_list_free(&g.stop);
  return code;
}
