#include <math.h>
#include <stdio.h>

#include "cli.h"
#include "commands.h"
#include "progress_show.h"
#include "score_files.h"

static const cli_command command = {"bleu", "[SYSTEM...] < SYSTEM",
                                    "Score translations by BLEU, as sacreBLEU computes it.",
                                    SCORE_FILES_TEXT "\n\n" SCORE_FILES_TESTS_TEXT};

static tarn_status compute(tarn_statistics **statistics, score_result *out, const char *const *hypotheses,
                           const char *const *const *references, size_t sentences, size_t streams,
                           const void *options) {
  if (!statistics) return tarn_bleu_corpus(&out->bleu, hypotheses, references, sentences, streams, options);
  return tarn_bleu_statistics(statistics, &out->bleu, hypotheses, references, sentences, streams, options);
}

static void summarize(score_summary *out, const score_result *result, const void *options) {
  snprintf(out->name, sizeof out->name, "BLEU");
  tarn_bleu_signature(out->signature, &result->bleu, options);
  out->score = result->bleu.score;
  out->invalid = result->bleu.invalid;
}

static double ratio(const tarn_bleu_result *b) {
  return b->reference_length ? (double)b->hypothesis_length / (double)b->reference_length : 0;
}

static void print_details(const score_result *result) {
  const tarn_bleu_result *b = &result->bleu;
  const double *p = b->precisions;
  printf(" %.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %lld ref_len = %lld)", p[0], p[1], p[2], p[3], b->bp,
         ratio(b), (long long)b->hypothesis_length, (long long)b->reference_length);
}

static void add_details(json_t *object, const score_result *result) {
  const tarn_bleu_result *b = &result->bleu;
  json_t *precisions = json_array();
  json_t *counts = json_array();
  json_t *totals = json_array();
  for (int n = 0; n < TARN_BLEU_ORDER; n++) {
    json_array_append_new(precisions, json_real(b->precisions[n]));
    json_array_append_new(counts, json_integer(b->counts[n]));
    json_array_append_new(totals, json_integer(b->totals[n]));
  }
  json_object_set_new(object, "precisions", precisions);
  json_object_set_new(object, "counts", counts);
  json_object_set_new(object, "totals", totals);
  json_object_set_new(object, "bp", json_real(b->bp));
  json_object_set_new(object, "ratio", json_real(ratio(b)));
  json_object_set_new(object, "hyp_len", json_integer(b->hypothesis_length));
  json_object_set_new(object, "ref_len", json_integer(b->reference_length));
}

static int take_words(tarn_bleu_options *options, const char *tokenizer, const char *smoothing, double smooth_value) {
  tarn_status status = tarn_bleu_tokenizer_parse(&options->tokenizer, tokenizer);
  if (status == TARN_STATUS_OK) status = tarn_bleu_smoothing_parse(&options->smoothing, smoothing);
  if (status != TARN_STATUS_OK) return cli_report(&command, status);
  bool takes_value = options->smoothing == TARN_BLEU_SMOOTHING_FLOOR || options->smoothing == TARN_BLEU_SMOOTHING_ADD_K;
  if (!isnan(smooth_value) && !takes_value)
    return cli_usage(&command, "--smooth-value is for --smooth floor and add-k, not %s", smoothing);
  if (!isnan(smooth_value)) options->smooth_value = smooth_value;
  return -1;
}

int cmd_bleu(int argc, char **argv) {
  tarn_bleu_options options;
  tarn_bleu_default(&options);
  const char *tokenizer = tarn_bleu_tokenizer_name(options.tokenizer);
  const char *smoothing = tarn_bleu_smoothing_name(options.smoothing);
  double smooth_value = NAN;
  score_files files = SCORE_FILES;
  const score_metric metric = {&command, &options, compute, summarize, print_details, add_details};
  const cli_option table[] = {
      SCORE_FILES_REFERENCE(files),
      {"lowercase", CLI_FLAG, &options.lowercase, NULL, "ignore case", 0, 0},
      {"tokenize", CLI_TEXT, &tokenizer, "NAME", "13a, intl, char or none", 0, 0},
      {"smooth", CLI_TEXT, &smoothing, "NAME", "exp, floor, add-k or none", 0, 0},
      {"smooth-value", CLI_REAL, &smooth_value, "X", "of floor (default 0.1) and add-k (default 1)", 0, 1e9},
      SCORE_FILES_SENTENCE(files, "print one score a line, with effective order"),
      SCORE_FILES_TESTS(files),
      PROGRESS_OPTIONS,
      {0}};
  int code = cli_parse(&command, table, argc, argv, &files.systems, 0, SCORE_FILES_MOST);
  if (code < 0) code = take_words(&options, tokenizer, smoothing, smooth_value);
  if (code < 0) {
    options.effective_order = files.sentence;
    code = score_files_run(&files, &metric);
  }
  score_files_close(&files);
  return code;
}
