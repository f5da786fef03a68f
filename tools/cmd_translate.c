// tarn translate: translates text, line by line and in order.
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "alignment_output.h"
#include "cli.h"
#include "commands.h"
#include "decoding_options.h"
#include "json_output.h"
#include "model_options.h"
#include "profile_output.h"
#include "progress_line.h"
#include "progress_show.h"
#include "shared_ranks.h"
#include "tarn/translate.h"
#include "text_notes.h"
#include "text_output.h"

static const cli_command COMMAND = {
    "translate", "RUN|FILE", "Translate text, one sentence a line.",
    "Reads raw text from standard input and writes one translation a line, in the same order; an empty line stays\n"
    "empty. RUN is a run directory (see --checkpoint), FILE a checkpoint.\n"
    "With --n-best every line gives up to N lines \"index ||| text ||| score\", index from 0, best first. A score is "
    "the\n"
    "log-probability (natural logarithm) divided by length^length-penalty, the end of sentence counted. --json gives\n"
    "an object a line. A summary goes to standard error."};

typedef struct output {
  FILE *file;
  bool n_best, scores, json, tokens, alignment;
  const tarn_translator *translator;
  int64_t window;          // lines translated together
  const char *checkpoint;  // file
  bool answers;            // flush each line
} output;

// Pairs of the numbers, from 0, of a source token and of the token of the translation that attends to it most.
static void print_alignment(const output *out, const tarn_translate_result *result,
                            const tarn_translate_hypothesis *hypothesis) {
  for (int64_t i = 0; i + 1 < hypothesis->tokens; i++)
    fprintf(out->file, "%s%" PRId64 "-%" PRId64, i > 0 ? " " : "", alignment_most(result, hypothesis, i), i);
}

static void print_plain(const output *out, const tarn_translate_result *result) {
  for (int64_t i = 0; i < result->count; i++) {
    const tarn_translate_hypothesis *hypothesis = &result->hypotheses[i];
    if (out->n_best) fprintf(out->file, "%" PRId64 " ||| ", result->number - 1);
    if (out->scores && !out->n_best) fprintf(out->file, "%.6f\t", hypothesis->score);
    fwrite(hypothesis->text, 1, hypothesis->length, out->file);
    if (out->alignment) {
      fputs(out->n_best ? " ||| " : "\t", out->file);
      print_alignment(out, result, hypothesis);
    }
    if (out->n_best) fprintf(out->file, " ||| %.6f", hypothesis->score);
    fputc('\n', out->file);
  }
}

// Its number among the lines translated together.
static size_t line_of(const output *out, const tarn_translate_result *result) {
  return (size_t)((result->number - 1) % out->window);
}

// The tokens of a hypothesis of the last window, each with its id and log-probability.
static json_t *pieces_json(const output *out, const tarn_translate_result *result, int64_t place) {
  const int32_t *ids;
  const float *log_probabilities;
  const int64_t count = tarn_translator_tokens(out->translator, &ids, &log_probabilities, line_of(out, result), place);
  json_t *pieces = json_array();
  int failed = 0;
  for (int64_t i = 0; i < count; i++)
    failed |= json_array_append_new(
        pieces, json_pack("[o, I, f]", json_output_text(tarn_translator_piece(out->translator, ids[i])),
                          (json_int_t)ids[i], (double)log_probabilities[i]));
  if (!failed) return pieces;
  json_decref(pieces);
  return NULL;
}

static int print_json(const output *out, const tarn_translate_result *result) {
  json_t *hypotheses = json_array();
  int failed = 0;
  for (int64_t i = 0; i < result->count; i++) {
    const tarn_translate_hypothesis *hypothesis = &result->hypotheses[i];
    failed |= json_array_append_new(
        hypotheses,
        json_pack("{s:s%, s:f, s:f, s:I}", "text", hypothesis->text, hypothesis->length, "score", hypothesis->score,
                  "log_probability", hypothesis->log_probability, "tokens", (json_int_t)hypothesis->tokens));
    if (out->tokens)
      failed |= json_object_set_new(json_array_get(hypotheses, (size_t)i), "pieces", pieces_json(out, result, i));
    if (!out->alignment) continue;
    json_t *object = json_array_get(hypotheses, (size_t)i);
    failed |= json_object_set_new(object, "alignment", alignment_json(result, hypothesis));
    failed |= json_object_set_new(object, "attention", alignment_weights(result, hypothesis));
  }
  json_t *object = json_pack("{s:I, s:I, s:b, s:o, s:o}", "index", (json_int_t)(result->number - 1), "source_tokens",
                             (json_int_t)result->source_tokens, "truncated", (int)result->truncated, "hypotheses",
                             hypotheses, "checkpoint", json_output_text(out->checkpoint));
  if (out->alignment)
    failed |= json_object_set_new(object, "source_pieces", alignment_source(out->translator, line_of(out, result)));
  failed |= !json_output_dump(out->file, object, JSON_COMPACT);
  json_decref(object);
  fputc('\n', out->file);
  return failed;
}

// Stops at the first line that cannot be written.
static tarn_status print_result(void *user, const tarn_translate_result *result) {
  const output *out = user;
  progress_line_make_way();
  int failed = 0;
  if (out->json)
    failed = print_json(out, result);
  else
    print_plain(out, result);
  // A pipe gets every window as soon as it is done, and a reader that may be waiting every line.
  if (out->answers || result->number % out->window == 0) fflush(out->file);
  if (ferror(out->file)) return TARN_STATUS_IO;
  return failed ? TARN_STATUS_MEMORY : TARN_STATUS_OK;
}

static void print_summary(const tarn_translator *translator) {
  tarn_translate_summary s;
  tarn_translator_summary(translator, &s);
  double rate = s.seconds > 0 ? (double)s.target_tokens / s.seconds : 0;
  fprintf(stderr, "%s, %s, %s in %.2f s: %.0f target tokens/s\n", CLI_COUNT(s.lines, "sentence"),
          CLI_COUNT(s.source_tokens, "source token"), CLI_COUNT(s.target_tokens, "target token"), s.seconds, rate);
  if (s.iterations > 0 && s.lines > s.empty)
    fprintf(stderr, "iterations over a sentence: %.2f on average\n",
            (double)s.iterations / (double)(s.lines - s.empty));
  if (s.empty) fprintf(stderr, "empty lines: %" PRId64 "\n", s.empty);
  if (s.truncated) fprintf(stderr, "truncated to the model's longest sentence: %s\n", CLI_COUNT(s.truncated, "line"));
  if (s.replaced) fprintf(stderr, "invalid UTF-8 replaced in: %s\n", CLI_COUNT(s.replaced, "line"));
  text_notes_cut(s.cut);
  if (s.unknown) fprintf(stderr, "unknown to the vocabulary: %s\n", CLI_COUNT(s.unknown, "source token"));
  text_notes_unknown(&COMMAND, "source tokens", s.unknown, s.source_tokens);
}

static int translate(const char *path, const char *input, const char *destination, output *out,
                     const tarn_translator_options *options) {
  tarn_translator *translator;
  tarn_status status = tarn_translator_open(&translator, path, options);
  if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  text_output to;
  int code = text_output_open(&COMMAND, &to, shared_ranks_help() ? NULL : destination);
  if (code == CLI_OK) {
    out->file = to.file;
    out->checkpoint = tarn_translator_path(translator);
    out->translator = translator;
    out->answers = text_output_answers(&COMMAND, input);
    status = tarn_translator_file(translator, input ? input : "-", print_result, out);
    code = text_output_close(&COMMAND, &to, status == TARN_STATUS_OK);
    if (code == CLI_OK && status != TARN_STATUS_OK)
      code = cli_report(&COMMAND, status);
    else if (code == CLI_OK && !shared_ranks_help())
      print_summary(translator);
  }
  tarn_translator_close(&translator);
  return code;
}

// Runs with or without a profile.
static int run(const char *path, const char *input, const char *destination, output *out,
               tarn_translator_options *options, const char *profile) {
  options->ranks = shared_ranks();
  // The profile of rank 0 is enough.
  if (!profile || shared_ranks_help()) return translate(path, input, destination, out, options);
  tarn_status status = tarn_profile_open(&options->profile, TARN_PROFILE_TRACED);
  if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  int code = translate(path, input, destination, out, options);
  if (code == CLI_OK) code = profile_output(&COMMAND, options->profile, profile, stderr, out->json);
  tarn_profile_close(&options->profile);
  return code;
}

// An option of drawing draws, and one of the search does not.
static int settle_drawing(tarn_translator_options *options, const drawing_options *drawing, const cli_list *banned) {
  decoding_options_set(&options->decoding, banned);
  if ((drawing_options_given(drawing) || drawing->mbr) && options->samples == 0) options->samples = 1;
  if (options->samples == 0 && drawing->seed != CLI_NO_INT)
    return cli_usage(&COMMAND, "--seed needs --samples: without it nothing is drawn");
  if (options->samples > 0 && options->beam > 0)
    return cli_usage(&COMMAND, "--beam searches: it excludes --samples, and the options of drawing");
  return drawing_options_set(&COMMAND, drawing, &options->temperature, &options->top_k, &options->top_p, &options->seed,
                             &options->decoding);
}

static void set_content(tarn_translator_options *options, const cli_list *texts, bool alignment) {
  options->force_words = texts->items;
  options->force_words_count = texts->count;
  options->alignment = alignment;
}

// What translations contain, and what they attend to; `texts`: a cli_list, `alignment`: a flag.
#define CONTENT_OPTIONS(options, texts, alignment)                                                                     \
  {"force-words",                                                                                                      \
   CLI_LIST,                                                                                                           \
   &(texts),                                                                                                           \
   "TEXT",                                                                                                             \
   "translations must contain the tokens of TEXT (constrained beam search); may be given several times",               \
   0,                                                                                                                  \
   0},                                                                                                                 \
      {"force-columns",                                                                                                \
       CLI_FLAG,                                                                                                       \
       &(options).force_columns,                                                                                       \
       NULL,                                                                                                           \
       "what follows each tab in a line, or each but the first with --prefixes, must stand in its translation",        \
       0,                                                                                                              \
       0},                                                                                                             \
      {"coverage-penalty",                                                                                             \
       CLI_REAL,                                                                                                       \
       &(options).coverage_penalty,                                                                                    \
       "X",                                                                                                            \
       "add X * the sum of ln(attention) over source tokens with an attention below 1 to scores",                      \
       -100,                                                                                                           \
       100},                                                                                                           \
  {                                                                                                                    \
    "alignment", CLI_FLAG, &(alignment), NULL,                                                                         \
        "give the source token that each token attends to most, as pairs source-target; with --json all weights", 0, 0 \
  }

int cmd_translate(int argc, char **argv) {
  tarn_translator_options options;
  tarn_translator_default(&options);
  int64_t n_best = 0;
  int64_t max_len_b = CLI_NO_INT;
  const char *input = NULL;
  const char *destination = NULL;
  const char *profile = NULL;
  const char *comm = NULL;
  model_options model = {.precision = "auto", .overlong = "truncate"};
  output out = {0};
  cli_list paths = {0}, banned = {0}, force_words = {0};
  drawing_options drawing = DRAWING_OPTIONS_NONE;
  const cli_option table[] = {
      {"beam", CLI_INT, &options.beam, "N", "hypotheses kept at each step, 1 for greedy; 0: the model's translate.beam",
       0, 1024},
      {"length-penalty", CLI_REAL, &options.length_penalty, "X",
       "power of the length in scores (default the model's translate.length_penalty)", -10, 10},
      {"max-len-a", CLI_REAL, &options.max_len_a, "X",
       "a translation has at most X * source tokens + max-len-b tokens (default the model's translate.max_len_a)", 0,
       1e6},
      {"max-len-b", CLI_INT, &max_len_b, "N", "the same, its constant part (default the model's translate.max_len_b)",
       0, 1 << 30},
      REFINEMENT_OPTIONS(options),
      {"n-best", CLI_INT, &n_best, "N", "print the N best translations, with scores; 0: the best, plain", 0, 1024},
      DECODING_OPTIONS(options.decoding, banned),
      {"samples", CLI_INT, &options.samples, "N", "draw N samples of each line and print the best; 0: search", 0,
       1000000},
      DRAWING_OPTIONS(drawing),
      {"prefixes", CLI_FLAG, &options.prefixes, NULL,
       "what follows a tab in a line is the beginning of its translation", 0, 0},
      CONTENT_OPTIONS(options, force_words, out.alignment),
      {"scores", CLI_FLAG, &out.scores, NULL, "put the score and a tab before each translation", 0, 0},
      {"json", CLI_FLAG, &out.json, NULL, "print JSON, one object a line", 0, 0},
      {"tokens", CLI_FLAG, &out.tokens, NULL, "with --json, give every token with its id and log-probability", 0, 0},
      {"max-tokens", CLI_INT, &options.max_tokens, "N", "source tokens in work on a thread; 0: the model's", 0,
       1 << 24},
      {"window", CLI_INT, &options.window, "N", "lines read and sorted by length at a time", 1, 10000000},
      MODEL_OVERLONG_OPTION(model, "lines"),
      {"strict", CLI_FLAG, &options.strict, NULL, "refuse invalid UTF-8 instead of replacing it by U+FFFD", 0, 0},
      MODEL_PRECISION_OPTION(model),
      MODEL_RUN_OPTIONS(model),
      RANKS_OPTION(comm),
      {"input", CLI_TEXT, &input, "FILE", "text to translate instead of standard input", 0, 0},
      {"encoder-layers-to-keep", CLI_TEXT, &options.prune.encoder_layers_to_keep, "N,N,...",
       "depths of the encoder that run, from 1; the others are left out", 0, 0},
      {"decoder-layers-to-keep", CLI_TEXT, &options.prune.decoder_layers_to_keep, "N,N,...", "the same of the decoder",
       0, 0},
      {"prune-rate", CLI_REAL, &options.prune.rate, "X",
       "of a stack without a list, leave out depths that floor(1/X) divides", 0, 0.5},
      {"profile", CLI_TEXT, &profile, "FILE",
       "measure every op: print a table (time, operations, bytes, and what both would take at the machine's peaks) to "
       "standard error, write a trace for chrome://tracing to FILE",
       0, 0},
      {"output", CLI_TEXT, &destination, "FILE", "where to write instead of standard output", 0, 0},
      LIMIT_OPTIONS(model.limits),
      PROGRESS_OPTIONS,
      {0}};
  cli_together(&comm);
  int code = cli_parse(&COMMAND, table, argc, argv, &paths, 1, 1);
  if (code < 0) code = model_options_set(&COMMAND, &model, &options.precision, &options.overlong, &options.threads);
  if (code < 0) code = settle_drawing(&options, &drawing, &banned);
  set_content(&options, &force_words, out.alignment);
  if (code < 0) code = shared_ranks_open(&COMMAND, comm);
  if (code < 0) code = model_options_find(&COMMAND, &model.found, paths.items[0], model.checkpoint);
  if (code < 0) {
    if (max_len_b != CLI_NO_INT) options.max_len_b = max_len_b;
    options.n_best = n_best > 0 ? n_best : 1;
    out.n_best = n_best > 0;
    out.window = options.window;
    code = run(model.found.path, input, destination, &out, &options, profile);
  }
  const bool helps = shared_ranks_help();
  code = shared_ranks_end(&COMMAND, code);
  model_options_done(&COMMAND, &model.found, code, helps);
  cli_list_free(&paths);
  cli_list_free(&banned);
  cli_list_free(&force_words);
  return code;
}
