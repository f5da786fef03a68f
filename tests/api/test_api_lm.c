// Scores of sentences by language models, and minimal pairs: tarn/lm.h.
#include <math.h>

#include "api_models.h"
#include "tarn/checkpoint.h"
#include "tarn/lm.h"

static const char *const lines[] = {"w3 w4 w5", "", "w10 unheard"};
static const size_t lengths[] = {8, 0, 11};
static const char *const long_line = "w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3";

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  api_language("run");
  api_masked("masked_run");
  api_translation("pairs_run");
  api_no_models("run");
  api_texts();
  return 0;
}

static tarn_lm_options one_thread(void) {
  tarn_lm_options options;
  tarn_lm_default(&options);
  options.threads = 1;
  return options;
}

static tarn_lm *opened_of(const char *run) {
  tarn_lm *lm;
  tarn_lm_options options = one_thread();
  options.strict = true;
  works(tarn_lm_open(&lm, run, &options));
  return lm;
}

static tarn_lm *opened(void) { return opened_of("run"); }

static void use_tarn_lm_default(void) {
  tarn_lm_options options;
  tarn_lm_default(&options);
  assert_int_equal(options.precision, TARN_TRANSLATE_PRECISION_AUTO);
  assert_int_equal(options.overlong, TARN_TRANSLATE_OVERLONG_REFUSE);
  assert_int_equal(options.max_tokens, 4096);
  assert_int_equal(options.window, 4000);
  assert_false(options.strict || options.ranks);
}

static void refuses_options(tarn_lm_options options, const char *words) {
  tarn_lm *lm;
  refuses(tarn_lm_open(&lm, "run", &options), TARN_STATUS_USAGE, words);
  assert_null(lm);
}

static void use_tarn_lm_open(void) {
  tarn_lm *lm = opened();
  tarn_lm_options options = one_thread();
  tarn_lm_close(&lm);
  REFUSES_NO_MODELS(tarn_lm_open, lm, options);
  refuses(tarn_lm_open(&lm, "pairs_run", &options), TARN_STATUS_USAGE, "does not score single sentences");
  assert_null(lm);
  options.max_tokens = 0;
  refuses_options(options, "1 to 16777216, not 0");
  options = one_thread();
  options.window = -1;
  refuses_options(options, "window must be from 1 to 10000000, not -1");
  options = one_thread();
  options.threads = -1;
  refuses_options(options, "threads must be from 0 to 1024, not -1");
  options = one_thread();
  options.overlong = (tarn_translate_overlong)7;
  refuses_options(options, "there is no rule 7 for texts that are overlong");
  options = one_thread();
  options.precision = TARN_TRANSLATE_PRECISION_COUNT;
  refuses_options(options, "unknown precision");
}

static void use_tarn_lm_close(void) {
  tarn_lm *lm = opened();
  tarn_lm_close(&lm);
  assert_null(lm);
  tarn_lm_close(&lm);
}

static void use_tarn_lm_path(void) {
  tarn_lm *lm = opened();
  assert_non_null(strstr(tarn_lm_path(lm), "run/checkpoint"));
  tarn_lm_close(&lm);
}

static void use_tarn_lm_piece(void) {
  tarn_lm *lm = opened();
  assert_string_equal(tarn_lm_piece(lm, 9), "w9");
  assert_string_equal(tarn_lm_piece(lm, -1), "");
  assert_string_equal(tarn_lm_piece(lm, TINY_VOCAB), "");
  tarn_lm_close(&lm);
}

static void use_tarn_lm_score(void) {
  tarn_lm *lm = opened();
  tarn_lm_line results[3];
  works(tarn_lm_score(lm, results, lines, lengths, 3));
  assert_int_equal(results[0].tokens, 4);
  assert_true(results[0].log_probability < 0 && results[0].ids[0] == 3);
  assert_int_equal(results[1].tokens, 1);
  assert_int_equal(results[2].unknown, 1);
  works(tarn_lm_score(lm, results, NULL, NULL, 0));
  refuses(tarn_lm_score(lm, results, &long_line, (const size_t[]){strlen(long_line)}, 1), TARN_STATUS_DATA,
          "line 1: 25 tokens, and the model takes 20");
  const char *const invalid = "w3 \xFF";
  refuses(tarn_lm_score(lm, results, &invalid, (const size_t[]){4}, 1), TARN_STATUS_DATA, "line 1: invalid UTF-8");
  tarn_lm_close(&lm);
  lm = opened_of("masked_run");
  const char *const masked[] = {"w6 w7", ""};
  works(tarn_lm_score(lm, results, masked, (const size_t[]){5, 0}, 2));
  assert_int_equal(results[0].tokens, 2);
  assert_int_equal(results[1].tokens, 0);
  tarn_lm_close(&lm);
  // A file whose values stay in it.
  works(tarn_checkpoint_export_int8("quarter", "run"));
  lm = opened_of("quarter");
  works(tarn_lm_score(lm, results, lines, lengths, 2));
  api_change("quarter");
  refuses(tarn_lm_score(lm, results, lines, lengths, 2), TARN_STATUS_IO, "quarter: it changed while it was in use");
  tarn_lm_close(&lm);
}

static void use_tarn_lm_total_add(void) {
  tarn_lm_total total = {0};
  const tarn_lm_line line = {.log_probability = -2, .tokens = 4, .characters = 7, .bytes = 8, .truncated = true};
  tarn_lm_total_add(&total, &line);
  tarn_lm_total_add(&total, &line);
  assert_int_equal(total.lines, 2);
  assert_int_equal(total.tokens, 8);
  assert_int_equal(total.truncated, 2);
  assert_true(total.log_probability == -4);
}

static const tarn_lm_total nothing,
    sums = {.lines = 1, .tokens = 4, .characters = 8, .bytes = 16, .log_probability = -4 * 0.69314718055994531};

static void use_tarn_lm_perplexity(void) {
  assert_true(fabs(tarn_lm_perplexity(&sums) - 2) < 1e-12);
  assert_true(isnan(tarn_lm_perplexity(&nothing)));
}

static void use_tarn_lm_bits_per_character(void) {
  assert_true(fabs(tarn_lm_bits_per_character(&sums) - 0.5) < 1e-12);
  assert_true(isnan(tarn_lm_bits_per_character(&nothing)));
}

static void use_tarn_lm_bits_per_byte(void) {
  assert_true(fabs(tarn_lm_bits_per_byte(&sums) - 0.25) < 1e-12);
  assert_true(isnan(tarn_lm_bits_per_byte(&nothing)));
}

static tarn_status count_to(void *user, int64_t number, const tarn_lm_line *line) {
  int64_t *left = user;
  assert_true(number >= 1 && line->tokens >= 1);
  return --*left == 0 ? TARN_STATUS_INTERRUPTED : TARN_STATUS_OK;
}

static void use_tarn_lm_score_file(void) {
  tarn_lm *lm = opened();
  int64_t left = 10;
  works(tarn_lm_score_file(lm, "lines", count_to, &left));
  assert_int_equal(left, 7);
  left = 1;
  assert_int_equal(tarn_lm_score_file(lm, "lines", count_to, &left), TARN_STATUS_INTERRUPTED);
  left = 10;
  refuses(tarn_lm_score_file(lm, "missing", count_to, &left), TARN_STATUS_IO, "missing: ");
  refuses(tarn_lm_score_file(lm, "folder", count_to, &left), TARN_STATUS_IO, "folder: ");
  refuses(tarn_lm_score_file(lm, "zero", count_to, &left), TARN_STATUS_DATA, "zero:2: ");
  refuses(tarn_lm_score_file(lm, "invalid", count_to, &left), TARN_STATUS_DATA, "invalid");
  refuses(tarn_lm_score_file(lm, "long", count_to, &left), TARN_STATUS_DATA, "long: line 1: 25 tokens");
  tarn_lm_close(&lm);
}

static tarn_status stretch_to(void *user, const tarn_lm_stretch *stretch) {
  int64_t *left = user;
  assert_true(stretch->count >= 1 && stretch->log_probabilities[0] < 0);
  *left -= stretch->count;
  return *left <= 0 ? TARN_STATUS_INTERRUPTED : TARN_STATUS_OK;
}

static void use_tarn_lm_score_stream(void) {
  tarn_lm *lm = opened();
  tarn_lm_total total;
  int64_t left = 100;
  works(tarn_lm_score_stream(lm, &total, "lines", 4, 2, stretch_to, &left));
  assert_int_equal(left, 100 - total.tokens);
  assert_int_equal(total.tokens, 8);
  works(tarn_lm_score_stream(lm, &total, "lines", 0, 20, NULL, NULL));
  assert_int_equal(total.tokens, 8);
  api_write("empty", "");
  works(tarn_lm_score_stream(lm, &total, "empty", 0, 1, NULL, NULL));
  assert_int_equal(total.tokens, 0);
  left = 1;
  assert_int_equal(tarn_lm_score_stream(lm, &total, "lines", 4, 2, stretch_to, &left), TARN_STATUS_INTERRUPTED);
  refuses(tarn_lm_score_stream(lm, &total, "lines", 21, 2, NULL, NULL), TARN_STATUS_USAGE,
          "a window of 21 tokens, and the model takes 1 to 20");
  refuses(tarn_lm_score_stream(lm, &total, "lines", -1, 2, NULL, NULL), TARN_STATUS_USAGE, "a window of -1");
  refuses(tarn_lm_score_stream(lm, &total, "lines", 4, 0, NULL, NULL), TARN_STATUS_USAGE, "window of 4 tokens, not 0");
  refuses(tarn_lm_score_stream(lm, &total, "lines", 4, 5, NULL, NULL), TARN_STATUS_USAGE, "window of 4 tokens, not 5");
  refuses(tarn_lm_score_stream(lm, &total, "missing", 4, 2, NULL, NULL), TARN_STATUS_IO, "missing: ");
  refuses(tarn_lm_score_stream(lm, &total, "zero", 4, 2, NULL, NULL), TARN_STATUS_DATA, "zero:2: ");
  refuses(tarn_lm_score_stream(lm, &total, "invalid", 4, 2, NULL, NULL), TARN_STATUS_DATA, "invalid:2: ");
  tarn_lm_close(&lm);
  lm = opened_of("masked_run");
  refuses(tarn_lm_score_stream(lm, &total, "lines", 4, 2, NULL, NULL), TARN_STATUS_USAGE, "a masked language model");
  tarn_lm_close(&lm);
}

static void write_pairs(const char *folder, const char *name, const char *text) {
  char path[64];
  mkdir(folder, 0777);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  api_write(path, text);
}

static void count_paradigms(void *user, const tarn_minimal_pairs_count *paradigm, size_t done, size_t count) {
  assert_true(paradigm->pairs == 2 && done >= 1 && done <= count);
  ++*(int *)user;
}

#define PAIR(good, bad) "{\"sentence_good\": \"" good "\", \"sentence_bad\": \"" bad "\"}\n"

static void refuses_pairs(tarn_lm *lm, const char *text, const char *words) {
  tarn_minimal_pairs_result *result;
  write_pairs("bad", "x.jsonl", text);
  refuses(tarn_minimal_pairs_run(&result, lm, "bad", NULL, NULL), TARN_STATUS_DATA, words);
  assert_null(result);
}

static void use_tarn_minimal_pairs_run(void) {
  tarn_lm *lm = opened();
  tarn_minimal_pairs_result *result;
  int seen = 0;
  write_pairs("blimp", "a.jsonl", PAIR("w3 w4", "w3 w5") PAIR("w3", "w3"));
  write_pairs("blimp", "b.jsonl", PAIR("w6 w4", "w3 w5") PAIR("w7", "w3 w9"));
  works(tarn_minimal_pairs_run(&result, lm, "blimp", count_paradigms, &seen));
  assert_int_equal(seen, 2);
  assert_int_equal(result->paradigm_count, 2);
  assert_int_equal(result->overall.pairs, 4);
  assert_int_equal(result->equal, 1);
  assert_string_equal(result->paradigms[1].name, "b");
  tarn_minimal_pairs_close(&result);
  refuses(tarn_minimal_pairs_run(&result, lm, "missing", NULL, NULL), TARN_STATUS_IO,
          "missing: cannot read the folder");
  assert_null(result);
  refuses(tarn_minimal_pairs_run(&result, lm, "folder", NULL, NULL), TARN_STATUS_DATA, "there is no file *.jsonl");
  refuses_pairs(lm, "", "bad/x.jsonl: it holds no pair");
  refuses_pairs(lm, "[1]\n", "bad/x.jsonl:1: expected a JSON object");
  refuses_pairs(lm, PAIR("w3", "w4") "{\"sentence_good\": \"w3\"}\n",
                "bad/x.jsonl:2: expected a text \"sentence_bad\"");
  refuses_pairs(lm, PAIR("", "w4"), "the text \"sentence_good\" is empty");
  refuses_pairs(lm, "{\"sentence_good\": \"w3\", \"sentence_bad\": \"w4\", \"field\": \"a\"}\n" PAIR("w3", "w4"),
                "field");
  refuses_pairs(lm, PAIR("w3", "w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3"),
                "bad/x.jsonl: line 1, its bad sentence: 22 tokens");
  tarn_lm_close(&lm);
}

static void use_tarn_minimal_pairs_close(void) {
  tarn_lm *lm = opened();
  tarn_minimal_pairs_result *result = NULL;
  tarn_minimal_pairs_close(&result);
  write_pairs("pairs", "a.jsonl", PAIR("w3 w4", "w3 w5"));
  works(tarn_minimal_pairs_run(&result, lm, "pairs", NULL, NULL));
  tarn_minimal_pairs_close(&result);
  assert_null(result);
  tarn_minimal_pairs_close(&result);
  tarn_lm_close(&lm);
}

int main(void) {
  static const char *const headers[] = {"lm.h", NULL};
  static const api_use uses[] = {USE(tarn_lm_default),
                                 USE(tarn_lm_open),
                                 USE(tarn_lm_close),
                                 USE(tarn_lm_path),
                                 USE(tarn_lm_piece),
                                 USE(tarn_lm_score),
                                 USE(tarn_lm_total_add),
                                 USE(tarn_lm_perplexity),
                                 USE(tarn_lm_bits_per_character),
                                 USE(tarn_lm_bits_per_byte),
                                 USE(tarn_lm_score_file),
                                 USE(tarn_lm_score_stream),
                                 USE(tarn_minimal_pairs_run),
                                 USE(tarn_minimal_pairs_close)};
  return api_main(headers, uses, sizeof uses / sizeof *uses, open_all, sandbox_close);
}
