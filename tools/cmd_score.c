// tarn score: log-probabilities of sentences with a language model.
#include <inttypes.h>
#include <stdio.h>

#include "commands.h"
#include "json_output.h"
#include "lm_output.h"
#include "model_options.h"
#include "progress_line.h"
#include "progress_show.h"
#include "shared_ranks.h"
#include "tarn/lm.h"
#include "text_notes.h"
#include "text_output.h"

static const cli_command COMMAND = {
    "score", "RUN [FILE]", "Print log-probabilities, perplexity and bits per character of sentences.",
    "RUN is a run directory or a checkpoint of a language model or a masked one; FILE has one sentence a line "
    "(default:\n"
    "standard input). The first column is the log-probability of the line (natural logarithm, its end of sentence "
    "counted),\n"
    "then come tokens and characters. With --tokens each line is followed by its tokens and their log-probabilities.\n"
    "The summary goes to standard error.\n"
    "Of a masked model each token is hidden in turn and predicted from all others: the sum is the pseudo-log-\n"
    "likelihood (Salazar et al. 2020), without the end of sentence, and the perplexity the pseudo-perplexity.\n"
    "With --stride FILE is one text over its line ends, as tarn prepare --stream makes it, and a window of --window\n"
    "tokens slides over it: every token is counted once, with window - stride tokens before it at least (but for the\n"
    "first window). A line is then what a window adds: its log-probability, its tokens, and the tokens read before."};

typedef struct output {
  const tarn_lm *lm;
  tarn_lm_total total;
  bool json, tokens, quiet;
  int64_t window;  // lines scored together; with a stride: size of the sliding window in tokens
  int64_t stride;  // 0: score line by line
  bool answers;    // flush each line
  int code;        // of a line that could not be created
} output;

// NULL: out of memory.
static json_t *pieces_of(const output *out, const int32_t *ids, const double *log_probabilities, int64_t count) {
  int failed = 0;
  json_t *pieces = json_array();
  for (int64_t t = 0; t < count; t++) {
    json_t *text = json_string(tarn_lm_piece(out->lm, ids[t]));  // NULL for a piece that is not UTF-8: its id only
    json_t *pair =
        json_pack("[o, I, o]", text ? text : json_null(), (json_int_t)ids[t], json_output_real(log_probabilities[t]));
    failed |= json_array_append_new(pieces, pair) != 0;
  }
  if (!failed) return pieces;
  json_decref(pieces);
  return NULL;
}

static int print_json(const output *out, int64_t number, const tarn_lm_line *line) {
  json_t *object = json_pack(
      "{s:I, s:o, s:I, s:I, s:I, s:I, s:b, s:b, s:o}", "line", (json_int_t)number, "log_probability",
      json_output_real(line->log_probability), "tokens", (json_int_t)line->tokens, "characters",
      (json_int_t)line->characters, "bytes", (json_int_t)line->bytes, "unknown", (json_int_t)line->unknown, "truncated",
      (int)line->truncated, "replaced", (int)line->replaced, "checkpoint", json_output_text(tarn_lm_path(out->lm)));
  int failed = !object;
  if (out->tokens && !failed)
    failed =
        json_object_set_new(object, "pieces", pieces_of(out, line->ids, line->log_probabilities, line->tokens)) != 0;
  if (failed) json_decref(object);
  return json_output_print(&COMMAND, stdout, failed ? NULL : object, JSON_COMPACT);
}

static void print_tokens(const output *out, const int32_t *ids, const double *log_probabilities, int64_t count) {
  for (int64_t t = 0; out->tokens && t < count; t++)
    printf("  %.6f\t%s\n", log_probabilities[t], tarn_lm_piece(out->lm, ids[t]));
}

static void print_text(const output *out, const tarn_lm_line *line) {
  printf("%.6f\t%" PRId64 "\t%" PRId64 "\n", line->log_probability, line->tokens, line->characters);
  print_tokens(out, line->ids, line->log_probabilities, line->tokens);
}

static tarn_status print_line(void *user, int64_t number, const tarn_lm_line *line) {
  output *out = user;
  if (!out->quiet) progress_line_make_way();
  tarn_lm_total_add(&out->total, line);
  if (out->quiet) return TARN_STATUS_OK;
  if (out->json)
    out->code = print_json(out, number, line);
  else
    print_text(out, line);
  // A pipe gets every window as soon as it is done, and a reader that may be waiting every line.
  if (out->answers || number % out->window == 0) fflush(stdout);
  return out->code != CLI_OK || ferror(stdout) ? TARN_STATUS_IO : TARN_STATUS_OK;
}

static int print_stretch_json(const output *out, const tarn_lm_stretch *s, double sum) {
  json_t *object = json_pack("{s:I, s:I, s:I, s:o}", "first", (json_int_t)s->first, "tokens", (json_int_t)s->count,
                             "context", (json_int_t)s->context, "log_probability", json_output_real(sum));
  int failed = !object;
  if (out->tokens && !failed)
    failed = json_object_set_new(object, "pieces", pieces_of(out, s->ids, s->log_probabilities, s->count)) != 0;
  if (failed) json_decref(object);
  return json_output_print(&COMMAND, stdout, failed ? NULL : object, JSON_COMPACT);
}

static tarn_status print_stretch(void *user, const tarn_lm_stretch *s) {
  output *out = user;
  if (!out->quiet) progress_line_make_way();
  double sum = 0;
  for (int64_t t = 0; t < s->count; t++) sum += s->log_probabilities[t];
  if (out->quiet) return TARN_STATUS_OK;
  if (out->json) {
    out->code = print_stretch_json(out, s, sum);
  } else {
    printf("%.6f\t%" PRId64 "\t%" PRId64 "\n", sum, s->count, s->context);
    print_tokens(out, s->ids, s->log_probabilities, s->count);
  }
  return out->code != CLI_OK || ferror(stdout) ? TARN_STATUS_IO : TARN_STATUS_OK;
}

static int print_summary(const output *out) {
  const tarn_lm_total *t = &out->total;
  if (out->quiet && out->json) {
    json_t *object =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "lines", (json_int_t)t->lines,
                  "tokens", (json_int_t)t->tokens, "characters", (json_int_t)t->characters, "bytes",
                  (json_int_t)t->bytes, "unknown", (json_int_t)t->unknown, "truncated", (json_int_t)t->truncated,
                  "replaced", (json_int_t)t->replaced, "log_probability", json_output_real(t->log_probability), "nll",
                  json_output_real(-t->log_probability / (double)t->tokens), "perplexity",
                  json_output_real(tarn_lm_perplexity(t)), "bits_per_character",
                  json_output_real(tarn_lm_bits_per_character(t)), "bits_per_byte",
                  json_output_real(tarn_lm_bits_per_byte(t)), "checkpoint", json_output_text(tarn_lm_path(out->lm)));
    return json_output_print(&COMMAND, stdout, object, JSON_COMPACT);
  }
  fprintf(out->quiet ? stdout : stderr,
          "%s, %s: %.4f nats a token, perplexity %.4f, %.4f bits a character, %.4f bits a "
          "byte\n",
          CLI_COUNT(t->lines, "line"), CLI_COUNT(t->tokens, "token"), -t->log_probability / (double)t->tokens,
          tarn_lm_perplexity(t), tarn_lm_bits_per_character(t), tarn_lm_bits_per_byte(t));
  return CLI_OK;
}

static int run(const char *path, const char *input, const tarn_lm_options *options, output *out) {
  tarn_lm *lm;
  tarn_status status = tarn_lm_open(&lm, path, options);
  if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  out->lm = lm;
  out->answers = !out->quiet && text_output_answers(&COMMAND, input);
  status = out->stride ? tarn_lm_score_stream(lm, &out->total, input, out->window, out->stride, print_stretch, out)
                       : tarn_lm_score_file(lm, input, print_line, out);
  int code = out->code;
  const bool helps = shared_ranks_help();
  if (text_output_lines_end(&COMMAND, &code, status, !helps && out->total.tokens == 0, input) && !helps) {
    code = print_summary(out);
    lm_print_changes(out->total.unknown, out->total.truncated, "line", out->total.replaced);
    text_notes_cut(out->total.cut);
    text_notes_unknown(&COMMAND, "tokens", out->total.unknown, out->total.tokens);
  }
  tarn_lm_close(&lm);
  return code;
}

int cmd_score(int argc, char **argv) {
  tarn_lm_options options;
  tarn_lm_default(&options);
  model_options model = {.precision = "auto", .overlong = "refuse"};
  output out = {0};
  const char *comm = NULL;
  cli_list paths = {0};
  const cli_option table[] = {
      {"tokens", CLI_FLAG, &out.tokens, NULL, "print every token with its log-probability", 0, 0},
      {"summary-only", CLI_FLAG, &out.quiet, NULL, "print the summary only, to standard output", 0, 0},
      {"json", CLI_FLAG, &out.json, NULL, "print JSON, one object a line", 0, 0},
      MODEL_PRECISION_OPTION(model),
      MODEL_OVERLONG_OPTION(model, "lines"),
      {"max-tokens", CLI_INT, &options.max_tokens, "N", "tokens computed together", 1, 1 << 24},
      {"window", CLI_INT, &out.window, "N",
       "lines read and sorted by length at a time, 0: 4000; with --stride tokens of the window, 0: model.max_length", 0,
       10000000},
      {"stride", CLI_INT, &out.stride, "N", "tokens by which a window advances; 0: score line by line", 0, 10000000},
      {"strict", CLI_FLAG, &options.strict, NULL, "refuse invalid UTF-8 instead of replacing it by U+FFFD", 0, 0},
      MODEL_RUN_OPTIONS(model),
      RANKS_OPTION(comm),
      LIMIT_OPTIONS(model.limits),
      PROGRESS_OPTIONS,
      {0}};
  cli_together(&comm);
  int code = cli_parse(&COMMAND, table, argc, argv, &paths, 1, 2);
  if (code < 0) code = model_options_set(&COMMAND, &model, &options.precision, &options.overlong, &options.threads);
  if (code < 0 && out.tokens && out.quiet)
    code = cli_usage(&COMMAND, "--summary-only leaves out the lines that --tokens adds to");
  if (code < 0 && out.stride && options.overlong != TARN_TRANSLATE_OVERLONG_REFUSE)
    code = cli_usage(&COMMAND, "--stride leaves nothing out that --overlong could truncate");
  if (code < 0) code = shared_ranks_open(&COMMAND, comm);
  if (code < 0) code = model_options_find(&COMMAND, &model.found, paths.items[0], model.checkpoint);
  if (code < 0) {
    if (!out.stride && out.window) options.window = out.window;
    if (!out.stride) out.window = options.window;
    options.ranks = shared_ranks();
    code = run(model.found.path, paths.count > 1 ? paths.items[1] : "-", &options, &out);
  }
  const bool helps = shared_ranks_help();
  code = shared_ranks_end(&COMMAND, code);
  model_options_done(&COMMAND, &model.found, code, helps);
  cli_list_free(&paths);
  return code;
}
