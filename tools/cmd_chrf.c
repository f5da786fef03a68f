#include <stdio.h>

#include "cli.h"
#include "commands.h"
#include "progress_show.h"
#include "score_files.h"

static const cli_command command = {"chrf", "[SYSTEM...] < SYSTEM",
                                    "Score translations by chrF or chrF++, as sacreBLEU computes them.",
                                    SCORE_FILES_TEXT "\n--word-order 2 gives chrF++.\n\n" SCORE_FILES_TESTS_TEXT};

static tarn_status compute(tarn_statistics **statistics, score_result *out, const char *const *hypotheses,
                           const char *const *const *references, size_t sentences, size_t streams,
                           const void *options) {
  if (!statistics) return tarn_chrf_corpus(&out->chrf, hypotheses, references, sentences, streams, options);
  return tarn_chrf_statistics(statistics, &out->chrf, hypotheses, references, sentences, streams, options);
}

static void summarize(score_summary *out, const score_result *result, const void *options) {
  tarn_chrf_name(out->name, options);
  tarn_chrf_signature(out->signature, &result->chrf, options);
  out->score = result->chrf.score;
  out->invalid = result->chrf.invalid;
}

int cmd_chrf(int argc, char **argv) {
  tarn_chrf_options options;
  tarn_chrf_default(&options);
  int64_t char_order = options.char_order;
  int64_t word_order = options.word_order;
  int64_t beta = options.beta;
  score_files files = SCORE_FILES;
  const score_metric metric = {.command = &command, .options = &options, .compute = compute, .summarize = summarize};
  const cli_option table[] = {
      SCORE_FILES_REFERENCE(files),
      {"lowercase", CLI_FLAG, &options.lowercase, NULL, "ignore case", 0, 0},
      {"char-order", CLI_INT, &char_order, "N", "longest n-gram of characters", 1, TARN_CHRF_ORDER_LIMIT},
      {"word-order", CLI_INT, &word_order, "N", "longest n-gram of words; 2 is chrF++", 0, TARN_CHRF_ORDER_LIMIT},
      {"beta", CLI_INT, &beta, "N", "weight of recall over precision", 1, 100},
      {"whitespace", CLI_FLAG, &options.whitespace, NULL, "keep white space in n-grams of characters", 0, 0},
      {"eps-smoothing", CLI_FLAG, &options.eps_smoothing, NULL, "smooth as chrF++.py, NLTK and Moses do", 0, 0},
      SCORE_FILES_SENTENCE(files, "print one score a line"),
      SCORE_FILES_TESTS(files),
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&command, table, argc, argv, &files.systems, 0, SCORE_FILES_MOST);
  if (code < 0) {
    options.char_order = (int)char_order;
    options.word_order = (int)word_order;
    options.beta = (int)beta;
    code = score_files_run(&files, &metric);
  }
  score_files_close(&files);
  return code;
}
