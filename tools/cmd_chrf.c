#include <stdio.h>

#include "cli.h"
#include "commands.h"
#include "json_output.h"
#include "score_input.h"
#include "tarn/score.h"

static const cli_command command = {
    "chrf", "[HYPOTHESIS] < HYPOTHESIS", "Score translations by chrF or chrF++, as sacreBLEU computes them.",
    "The hypothesis is read from a file or from standard input, one detokenized sentence a line; every --reference\n"
    "has the same number of lines. --word-order 2 gives chrF++. The second line printed is the signature to report\n"
    "with the score."};

static int print_json(const tarn_chrf_result *result, const tarn_chrf_options *options) {
  char name[TARN_SIGNATURE_TEXT];
  char signature[TARN_SIGNATURE_TEXT];
  tarn_chrf_name(name, options);
  tarn_chrf_signature(signature, result, options);
  json_t *object = json_pack("{s:s, s:f, s:s, s:I}", "name", name, "score", result->score, "signature", signature,
                             "invalid_utf8", (json_int_t)result->invalid);
  return json_output_print(&command, stdout, object, JSON_COMPACT);
}

static int print_text(const tarn_chrf_result *result, const tarn_chrf_options *options) {
  char name[TARN_SIGNATURE_TEXT];
  char signature[TARN_SIGNATURE_TEXT];
  tarn_chrf_name(name, options);
  tarn_chrf_signature(signature, result, options);
  printf("%s = %.2f\n%s\n", name, result->score, signature);
  return CLI_OK;
}

static int score_sentences(score_input *input, const tarn_chrf_options *options, bool json) {
  int64_t invalid = 0;
  for (size_t s = 0; s < input->hypothesis.count; s++) {
    tarn_chrf_result result;
    tarn_status status =
        tarn_chrf_sentence(&result, input->hypothesis.items[s], score_input_row(input, s), input->count, options);
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

static int score_corpus(score_input *input, const tarn_chrf_options *options, bool json) {
  tarn_chrf_result result;
  tarn_status status = tarn_chrf_corpus(&result, input->hypothesis.items, input->streams, input->hypothesis.count,
                                        input->count, options);
  if (status != TARN_STATUS_OK) return cli_report(&command, status);
  score_report_invalid(&command, result.invalid);
  return json ? print_json(&result, options) : print_text(&result, options);
}

int cmd_chrf(int argc, char **argv) {
  tarn_chrf_options options;
  tarn_chrf_default(&options);
  int64_t char_order = options.char_order;
  int64_t word_order = options.word_order;
  int64_t beta = options.beta;
  cli_list references = {0};
  cli_list positional = {0};
  score_input input = {0};
  bool sentence = false;
  bool json = false;
  const cli_option table[] = {
      {"reference", CLI_LIST, &references, "FILE", "reference translation; give it once for every reference", 0, 0},
      {"lowercase", CLI_FLAG, &options.lowercase, NULL, "ignore case", 0, 0},
      {"char-order", CLI_INT, &char_order, "N", "longest n-gram of characters", 1, TARN_CHRF_ORDER_LIMIT},
      {"word-order", CLI_INT, &word_order, "N", "longest n-gram of words; 2 is chrF++", 0, TARN_CHRF_ORDER_LIMIT},
      {"beta", CLI_INT, &beta, "N", "weight of recall over precision", 1, 100},
      {"whitespace", CLI_FLAG, &options.whitespace, NULL, "keep white space in n-grams of characters", 0, 0},
      {"eps-smoothing", CLI_FLAG, &options.eps_smoothing, NULL, "smooth as chrF++.py, NLTK and Moses do", 0, 0},
      {"sentence", CLI_FLAG, &sentence, NULL, "print one score a line", 0, 0},
      {"json", CLI_FLAG, &json, NULL, "print JSON", 0, 0},
      {0}};
  int code = cli_parse(&command, table, argc, argv, &positional, 0, 1);
  if (code < 0) code = score_input_open(&input, &command, positional.count ? positional.items[0] : NULL, &references);
  if (code < 0) {
    options.char_order = (int)char_order;
    options.word_order = (int)word_order;
    options.beta = (int)beta;
    code = sentence ? score_sentences(&input, &options, json) : score_corpus(&input, &options, json);
  }
  score_input_close(&input);
  cli_list_free(&references);
  cli_list_free(&positional);
  return code;
}
