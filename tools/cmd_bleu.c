#include <math.h>
#include <stdio.h>

#include "cli.h"
#include "commands.h"
#include "json_output.h"
#include "score_input.h"
#include "tarn/score.h"

static const cli_command command = {
    "bleu", "[HYPOTHESIS] < HYPOTHESIS", "Score translations by BLEU, as sacreBLEU computes it.",
    "The hypothesis is read from a file or from standard input, one detokenized sentence a line; every --reference\n"
    "has the same number of lines. The second line printed is the signature to report with the score."};

static double ratio(const tarn_bleu_result *result) {
  return result->reference_length ? (double)result->hypothesis_length / (double)result->reference_length : 0;
}

static int print_json(const tarn_bleu_result *result, const tarn_bleu_options *options) {
  char signature[TARN_SIGNATURE_TEXT];
  tarn_bleu_signature(signature, result, options);
  json_t *precisions = json_array();
  json_t *counts = json_array();
  json_t *totals = json_array();
  for (int n = 0; n < TARN_BLEU_ORDER; n++) {
    json_array_append_new(precisions, json_real(result->precisions[n]));
    json_array_append_new(counts, json_integer(result->counts[n]));
    json_array_append_new(totals, json_integer(result->totals[n]));
  }
  json_t *object =
      json_pack("{s:s, s:f, s:s, s:o, s:o, s:o, s:f, s:f, s:I, s:I, s:I}", "name", "BLEU", "score", result->score,
                "signature", signature, "precisions", precisions, "counts", counts, "totals", totals, "bp", result->bp,
                "ratio", ratio(result), "hyp_len", (json_int_t)result->hypothesis_length, "ref_len",
                (json_int_t)result->reference_length, "invalid_utf8", (json_int_t)result->invalid);
  return json_output_print(&command, stdout, object, JSON_COMPACT);
}

static int print_text(const tarn_bleu_result *result, const tarn_bleu_options *options) {
  char signature[TARN_SIGNATURE_TEXT];
  const double *p = result->precisions;
  tarn_bleu_signature(signature, result, options);
  printf("BLEU = %.2f %.1f/%.1f/%.1f/%.1f (BP = %.3f ratio = %.3f hyp_len = %lld ref_len = %lld)\n%s\n", result->score,
         p[0], p[1], p[2], p[3], result->bp, ratio(result), (long long)result->hypothesis_length,
         (long long)result->reference_length, signature);
  return CLI_OK;
}

static int score_sentences(score_input *input, const tarn_bleu_options *options, bool json) {
  int64_t invalid = 0;
  for (size_t s = 0; s < input->hypothesis.count; s++) {
    tarn_bleu_result result;
    tarn_status status =
        tarn_bleu_sentence(&result, input->hypothesis.items[s], score_input_row(input, s), input->count, options);
    if (status != TARN_STATUS_OK) return cli_report(&command, status);
    invalid += result.invalid;
    if (!json)
      printf("%.2f\n", result.score);
    else if (print_json(&result, options) != CLI_OK)
      return CLI_FAILURE;
  }
  score_report_invalid(&command, invalid);
  return CLI_OK;
}

static int score_corpus(score_input *input, const tarn_bleu_options *options, bool json) {
  tarn_bleu_result result;
  tarn_status status = tarn_bleu_corpus(&result, input->hypothesis.items, input->streams, input->hypothesis.count,
                                        input->count, options);
  if (status != TARN_STATUS_OK) return cli_report(&command, status);
  score_report_invalid(&command, result.invalid);
  return json ? print_json(&result, options) : print_text(&result, options);
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
  cli_list references = {0};
  cli_list positional = {0};
  score_input input = {0};
  double smooth_value = NAN;
  bool sentence = false;
  bool json = false;
  const cli_option table[] = {
      {"reference", CLI_LIST, &references, "FILE", "reference translation; give it once for every reference", 0, 0},
      {"lowercase", CLI_FLAG, &options.lowercase, NULL, "ignore case", 0, 0},
      {"tokenize", CLI_TEXT, &tokenizer, "NAME", "13a, intl, char or none", 0, 0},
      {"smooth", CLI_TEXT, &smoothing, "NAME", "exp, floor, add-k or none", 0, 0},
      {"smooth-value", CLI_REAL, &smooth_value, "X", "of floor (default 0.1) and add-k (default 1)", 0, 1e9},
      {"sentence", CLI_FLAG, &sentence, NULL, "print one score a line, with effective order", 0, 0},
      {"json", CLI_FLAG, &json, NULL, "print JSON", 0, 0},
      {0}};
  int code = cli_parse(&command, table, argc, argv, &positional, 0, 1);
  if (code < 0) code = take_words(&options, tokenizer, smoothing, smooth_value);
  if (code < 0) code = score_input_open(&input, &command, positional.count ? positional.items[0] : NULL, &references);
  if (code < 0) {
    options.effective_order = sentence;
    code = sentence ? score_sentences(&input, &options, json) : score_corpus(&input, &options, json);
  }
  score_input_close(&input);
  cli_list_free(&references);
  cli_list_free(&positional);
  return code;
}
