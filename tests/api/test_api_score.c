// Scores of translations, and intervals and tests of them: tarn/score.h, tarn/lab/results.h.
#include "api.h"

#include <math.h>

#include "sandbox.h"
#include "tarn/lab/results.h"

enum { SENTENCES = 3 };
static const char *const hypotheses[] = {"the cat sat on the mat", "a dog barks", "it rains in the town"};
static const char *const others[] = {"the cat is on a mat", "dogs bark", "it rains here"};
static const char *const references[] = {"the cat sat on the mat", "a dog barked", "it rains in this town"};
static const char *const *const streams[] = {references};
// The second sentence has no reference.
static const char *const gap[] = {"the cat sat on the mat", NULL, "it rains in this town"};
static const char *const *const gaps[] = {gap};

static void use_tarn_bleu_tokenizer_parse(void) {
  tarn_bleu_tokenizer tokenizer;
  works(tarn_bleu_tokenizer_parse(&tokenizer, "intl"));
  assert_int_equal(tokenizer, TARN_BLEU_TOKENIZER_INTL);
  refuses(tarn_bleu_tokenizer_parse(&tokenizer, "13b"), TARN_STATUS_USAGE, "did you mean \"13a\"?");
  refuses(tarn_bleu_tokenizer_parse(&tokenizer, ""), TARN_STATUS_USAGE, "unknown BLEU tokenizer \"\"");
}

static void use_tarn_bleu_smoothing_parse(void) {
  tarn_bleu_smoothing smoothing;
  works(tarn_bleu_smoothing_parse(&smoothing, "add-k"));
  assert_int_equal(smoothing, TARN_BLEU_SMOOTHING_ADD_K);
  refuses(tarn_bleu_smoothing_parse(&smoothing, "add_k"), TARN_STATUS_USAGE, "did you mean \"add-k\"?");
}

static void use_tarn_bleu_tokenizer_name(void) {
  assert_string_equal(tarn_bleu_tokenizer_name(TARN_BLEU_TOKENIZER_13A), "13a");
  assert_string_equal(tarn_bleu_tokenizer_name(TARN_BLEU_TOKENIZER_NONE), "none");
  assert_string_equal(tarn_bleu_tokenizer_name(TARN_BLEU_TOKENIZER_COUNT), "?");
}

static void use_tarn_bleu_smoothing_name(void) {
  assert_string_equal(tarn_bleu_smoothing_name(TARN_BLEU_SMOOTHING_FLOOR), "floor");
  assert_string_equal(tarn_bleu_smoothing_name(TARN_BLEU_SMOOTHING_COUNT), "?");
}

static void use_tarn_bleu_default(void) {
  tarn_bleu_options options;
  tarn_bleu_default(&options);
  assert_int_equal(options.tokenizer, TARN_BLEU_TOKENIZER_13A);
  assert_int_equal(options.smoothing, TARN_BLEU_SMOOTHING_EXP);
  assert_true(options.smooth_value < 0 && !options.lowercase && !options.effective_order);
}

static void use_tarn_bleu_corpus(void) {
  tarn_bleu_result result;
  tarn_bleu_options options;
  works(tarn_bleu_corpus(&result, references, streams, SENTENCES, 1, NULL));
  assert_true(fabs(result.score - 100) < 1e-9);
  works(tarn_bleu_corpus(&result, hypotheses, streams, SENTENCES, 1, NULL));
  assert_true(result.score > 30 && result.score < 100);
  assert_int_equal(result.hypothesis_length, 14);
  refuses(tarn_bleu_corpus(&result, hypotheses, streams, 0, 1, NULL), TARN_STATUS_DATA, "no sentence");
  refuses(tarn_bleu_corpus(&result, hypotheses, gaps, SENTENCES, 1, NULL), TARN_STATUS_DATA, "2 has no reference");
  refuses(tarn_bleu_corpus(&result, hypotheses, streams, SENTENCES, 0, NULL), TARN_STATUS_DATA, "1 has no reference");
  tarn_bleu_default(&options);
  options.tokenizer = TARN_BLEU_TOKENIZER_COUNT;
  refuses(tarn_bleu_corpus(&result, hypotheses, streams, SENTENCES, 1, &options), TARN_STATUS_USAGE,
          "unknown BLEU tokenizer number 4");
  tarn_bleu_default(&options);
  options.smoothing = (tarn_bleu_smoothing)-1;
  refuses(tarn_bleu_corpus(&result, hypotheses, streams, SENTENCES, 1, &options), TARN_STATUS_USAGE,
          "unknown BLEU smoothing number -1");
  tarn_bleu_default(&options);
  options.smooth_value = NAN;
  refuses(tarn_bleu_corpus(&result, hypotheses, streams, SENTENCES, 1, &options), TARN_STATUS_USAGE,
          "must be a finite number");
}

static void use_tarn_bleu_sentence(void) {
  tarn_bleu_result result;
  tarn_bleu_options options;
  tarn_bleu_default(&options);
  options.effective_order = true;
  works(tarn_bleu_sentence(&result, "a dog", references, SENTENCES, &options));
  assert_true(result.precisions[0] == 100);
  works(tarn_bleu_sentence(&result, "\xFF\xFF", references, SENTENCES, &options));
  assert_int_equal(result.invalid, 2);
  refuses(tarn_bleu_sentence(&result, "a dog", references, 0, &options), TARN_STATUS_DATA, "no reference");
  options.smooth_value = INFINITY;
  refuses(tarn_bleu_sentence(&result, "a dog", references, 1, &options), TARN_STATUS_USAGE, "must be a finite number");
}

static void use_tarn_bleu_signature(void) {
  char text[TARN_SIGNATURE_TEXT];
  tarn_bleu_result result;
  tarn_bleu_options options;
  tarn_bleu_default(&options);
  works(tarn_bleu_corpus(&result, hypotheses, streams, SENTENCES, 1, &options));
  tarn_bleu_signature(text, &result, &options);
  assert_non_null(strstr(text, "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:tarn "));
  // A word that there is not is no reason to read behind the words.
  options.tokenizer = TARN_BLEU_TOKENIZER_COUNT;
  tarn_bleu_signature(text, &result, &options);
  assert_non_null(strstr(text, "tok:?"));
}

static void use_tarn_chrf_default(void) {
  tarn_chrf_options options;
  tarn_chrf_default(&options);
  assert_int_equal(options.char_order, 6);
  assert_int_equal(options.word_order, 0);
  assert_int_equal(options.beta, 2);
}

static void use_tarn_chrf_corpus(void) {
  tarn_chrf_result result;
  tarn_chrf_options options;
  works(tarn_chrf_corpus(&result, references, streams, SENTENCES, 1, NULL));
  assert_true(fabs(result.score - 100) < 1e-9);
  refuses(tarn_chrf_corpus(&result, references, streams, 0, 1, NULL), TARN_STATUS_DATA, "no sentence");
  refuses(tarn_chrf_corpus(&result, references, gaps, SENTENCES, 1, NULL), TARN_STATUS_DATA, "2 has no reference");
  tarn_chrf_default(&options);
  options.char_order = TARN_CHRF_ORDER_LIMIT + 1;
  refuses(tarn_chrf_corpus(&result, references, streams, SENTENCES, 1, &options), TARN_STATUS_USAGE,
          "must be from 1 to 16, not 17");
  tarn_chrf_default(&options);
  options.word_order = -1;
  refuses(tarn_chrf_corpus(&result, references, streams, SENTENCES, 1, &options), TARN_STATUS_USAGE,
          "must be from 0 to 16, not -1");
  tarn_chrf_default(&options);
  options.beta = 0;
  refuses(tarn_chrf_corpus(&result, references, streams, SENTENCES, 1, &options), TARN_STATUS_USAGE,
          "must be from 1 to 100, not 0");
}

static void use_tarn_chrf_sentence(void) {
  tarn_chrf_result result;
  works(tarn_chrf_sentence(&result, "a dog barked", references, SENTENCES, NULL));
  assert_true(fabs(result.score - 100) < 1e-9);
  assert_int_equal(result.references, SENTENCES);
  refuses(tarn_chrf_sentence(&result, "a dog", references, 0, NULL), TARN_STATUS_DATA, "no reference");
  refuses(tarn_chrf_sentence(&result, "a dog", gap + 1, 1, NULL), TARN_STATUS_DATA, "no reference");
}

static void use_tarn_chrf_name(void) {
  char text[TARN_SIGNATURE_TEXT];
  tarn_chrf_options options;
  tarn_chrf_default(&options);
  tarn_chrf_name(text, &options);
  assert_string_equal(text, "chrF2");
  options.word_order = 2, options.beta = 3;
  tarn_chrf_name(text, &options);
  assert_string_equal(text, "chrF3++");
  // More plus signs than there is room for.
  options.word_order = 100000;
  tarn_chrf_name(text, &options);
  assert_true(strlen(text) < TARN_SIGNATURE_TEXT);
}

static void use_tarn_chrf_signature(void) {
  char text[TARN_SIGNATURE_TEXT];
  tarn_chrf_result result;
  tarn_chrf_options options;
  tarn_chrf_default(&options);
  works(tarn_chrf_corpus(&result, hypotheses, streams, SENTENCES, 1, &options));
  tarn_chrf_signature(text, &result, &options);
  assert_non_null(strstr(text, "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:tarn "));
}

static void use_tarn_ter_default(void) {
  tarn_ter_options options;
  tarn_ter_default(&options);
  assert_false(options.case_sensitive || options.normalized || options.no_punct || options.asian_support);
}

static void use_tarn_ter_corpus(void) {
  static const char *const empty[] = {"", "", ""};
  static const char *const *const none[] = {empty};
  tarn_ter_result result;
  works(tarn_ter_corpus(&result, hypotheses, streams, SENTENCES, 1, NULL));
  assert_int_equal(result.edits, 2);
  assert_true(result.reference_length == 14);
  works(tarn_ter_corpus(&result, hypotheses, none, SENTENCES, 1, NULL));
  assert_true(result.score == 100);
  refuses(tarn_ter_corpus(&result, hypotheses, streams, 0, 1, NULL), TARN_STATUS_DATA, "no sentence");
  refuses(tarn_ter_corpus(&result, hypotheses, gaps, SENTENCES, 1, NULL), TARN_STATUS_DATA, "2 has no reference");
}

static void use_tarn_ter_sentence(void) {
  tarn_ter_result result;
  works(tarn_ter_sentence(&result, "a dog barks", references, SENTENCES, NULL));
  assert_int_equal(result.edits, 1);
  refuses(tarn_ter_sentence(&result, "a dog", references, 0, NULL), TARN_STATUS_DATA, "no reference");
}

static void use_tarn_ter_signature(void) {
  char text[TARN_SIGNATURE_TEXT];
  tarn_ter_result result;
  tarn_ter_options options;
  tarn_ter_default(&options);
  works(tarn_ter_corpus(&result, hypotheses, streams, SENTENCES, 1, &options));
  tarn_ter_signature(text, &result, &options);
  assert_non_null(strstr(text, "nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:tarn "));
}

static void use_tarn_score_lines_open(void) {
  tarn_score_lines lines;
  sandbox_write("three", "one \ntwo\n\xFF three", 16);
  works(tarn_score_lines_open(&lines, "three"));
  assert_int_equal(lines.count, 3);
  assert_string_equal(lines.items[0], "one");
  assert_string_equal(lines.items[2], "\xFF three");
  assert_string_equal(lines.name, "three");
  tarn_score_lines_close(&lines);
  refuses(tarn_score_lines_open(&lines, "missing"), TARN_STATUS_IO, "missing: ");
  assert_null(lines.items);
  refuses(tarn_score_lines_open(&lines, "."), TARN_STATUS_IO, ".: ");
  sandbox_write("zero", "one\nt\0wo\n", 9);
  refuses(tarn_score_lines_open(&lines, "zero"), TARN_STATUS_DATA, "zero:2: ");
  sandbox_write("wide", "\xFF\xFEo\0n\0e\0\n\0", 10);
  refuses(tarn_score_lines_open(&lines, "wide"), TARN_STATUS_DATA, "UTF-16");
  sandbox_write("packed", "BZh91AY&SY\1\2\3\4", 14);
  refuses(tarn_score_lines_open(&lines, "packed"), TARN_STATUS_DATA, "packed: ");
}

static void use_tarn_score_lines_close(void) {
  tarn_score_lines lines = {0};
  tarn_score_lines_close(&lines);
  sandbox_write("one", "one\n", 4);
  works(tarn_score_lines_open(&lines, "one"));
  tarn_score_lines_close(&lines);
  assert_true(!lines.items && lines.count == 0 && !lines.name);
  tarn_score_lines_close(&lines);
  tarn_score_lines_close(NULL);
}

static void use_tarn_score_lines_match(void) {
  tarn_score_lines one, two;
  sandbox_write("one", "one\n", 4);
  sandbox_write("two", "one\ntwo\n", 8);
  works(tarn_score_lines_open(&one, "one"));
  works(tarn_score_lines_open(&two, "two"));
  works(tarn_score_lines_match(&one, &one));
  refuses(tarn_score_lines_match(&one, &two), TARN_STATUS_DATA, "one has 1 lines but two has 2");
  tarn_score_lines_close(&one);
  tarn_score_lines_close(&two);
}

static tarn_statistics *bleu_of(const char *const *lines) {
  tarn_statistics *statistics;
  tarn_bleu_result result;
  works(tarn_bleu_statistics(&statistics, &result, lines, streams, SENTENCES, 1, NULL));
  return statistics;
}

static void use_tarn_bleu_statistics(void) {
  tarn_statistics *statistics;
  tarn_bleu_result result, same;
  tarn_bleu_options options;
  works(tarn_bleu_corpus(&same, hypotheses, streams, SENTENCES, 1, NULL));
  works(tarn_bleu_statistics(&statistics, &result, hypotheses, streams, SENTENCES, 1, NULL));
  assert_true(statistics && result.score == same.score);
  tarn_statistics_close(&statistics);
  refuses(tarn_bleu_statistics(&statistics, &result, hypotheses, streams, 0, 1, NULL), TARN_STATUS_DATA, "no sentence");
  assert_null(statistics);
  refuses(tarn_bleu_statistics(&statistics, &result, hypotheses, gaps, SENTENCES, 1, NULL), TARN_STATUS_DATA,
          "2 has no reference");
  tarn_bleu_default(&options);
  options.tokenizer = (tarn_bleu_tokenizer)-1;
  refuses(tarn_bleu_statistics(&statistics, &result, hypotheses, streams, SENTENCES, 1, &options), TARN_STATUS_USAGE,
          "unknown BLEU tokenizer number -1");
  assert_null(statistics);
}

static void use_tarn_chrf_statistics(void) {
  tarn_statistics *statistics;
  tarn_chrf_result result, same;
  tarn_chrf_options options;
  works(tarn_chrf_corpus(&same, hypotheses, streams, SENTENCES, 1, NULL));
  works(tarn_chrf_statistics(&statistics, &result, hypotheses, streams, SENTENCES, 1, NULL));
  assert_true(statistics && result.score == same.score);
  tarn_statistics_close(&statistics);
  tarn_chrf_default(&options);
  options.char_order = 0;
  refuses(tarn_chrf_statistics(&statistics, &result, hypotheses, streams, SENTENCES, 1, &options), TARN_STATUS_USAGE,
          "must be from 1 to 16, not 0");
  assert_null(statistics);
}

static void use_tarn_ter_statistics(void) {
  tarn_statistics *statistics;
  tarn_ter_result result, same;
  works(tarn_ter_corpus(&same, hypotheses, streams, SENTENCES, 1, NULL));
  works(tarn_ter_statistics(&statistics, &result, hypotheses, streams, SENTENCES, 1, NULL));
  assert_true(statistics && result.score == same.score);
  tarn_statistics_close(&statistics);
  refuses(tarn_ter_statistics(&statistics, &result, hypotheses, gaps, SENTENCES, 1, NULL), TARN_STATUS_DATA,
          "2 has no reference");
  assert_null(statistics);
}

static void use_tarn_statistics_close(void) {
  tarn_statistics *statistics = bleu_of(hypotheses);
  tarn_statistics_close(&statistics);
  assert_null(statistics);
  tarn_statistics_close(&statistics);
}

static void use_tarn_significance_default(void) {
  tarn_significance_options options;
  tarn_significance_default(&options);
  assert_int_equal(options.resamples, 0);
  assert_int_equal(options.trials, 0);
  assert_int_equal(options.seed, 12345);
  assert_false(options.paired_bootstrap);
}

static void use_tarn_significance_compute(void) {
  tarn_statistics *a = bleu_of(hypotheses), *b = bleu_of(others), *c;
  tarn_chrf_result chrf;
  works(tarn_chrf_statistics(&c, &chrf, hypotheses, streams, SENTENCES, 1, NULL));
  const tarn_statistics *const systems[] = {a, b}, *const mixed[] = {a, c};
  tarn_significance found[2];
  tarn_significance_options options;
  tarn_significance_default(&options);
  options.resamples = 100, options.paired_bootstrap = true;
  works(tarn_significance_compute(found, systems, 2, &options));
  assert_true(found[0].low <= found[0].high && isnan(found[0].p));
  assert_true(found[1].difference < 0 && found[1].p > 0 && found[1].p <= 1);
  works(tarn_significance_compute(found, systems, 2, NULL));
  assert_true(isnan(found[1].mean) && isnan(found[1].p));
  refuses(tarn_significance_compute(found, systems, 1, &options), TARN_STATUS_USAGE, "two systems or more");
  refuses(tarn_significance_compute(found, systems, 0, NULL), TARN_STATUS_USAGE, "no system");
  refuses(tarn_significance_compute(found, mixed, 2, NULL), TARN_STATUS_USAGE, "not scored alike");
  options.trials = 100;
  refuses(tarn_significance_compute(found, systems, 2, &options), TARN_STATUS_USAGE, "take one");
  options.trials = 0, options.resamples = 0;
  refuses(tarn_significance_compute(found, systems, 2, &options), TARN_STATUS_USAGE, "needs a number of resamples");
  options.resamples = TARN_SIGNIFICANCE_LEAST - 1;
  refuses(tarn_significance_compute(found, systems, 2, &options), TARN_STATUS_USAGE, "must be from 40 to 1000000");
  tarn_significance_default(&options);
  options.trials = TARN_SIGNIFICANCE_MOST + 1;
  refuses(tarn_significance_compute(found, systems, 2, &options), TARN_STATUS_USAGE, "not 1000001");
  tarn_statistics_close(&a);
  tarn_statistics_close(&b);
  tarn_statistics_close(&c);
}

static void use_tarn_significance_signature(void) {
  char text[TARN_SIGNATURE_TEXT], longest[TARN_SIGNATURE_TEXT];
  tarn_significance_options options;
  tarn_significance_default(&options);
  tarn_significance_signature(text, "nrefs:1|case:mixed", &options);
  assert_string_equal(text, "nrefs:1|case:mixed");
  options.resamples = 1000;
  tarn_significance_signature(text, "nrefs:1|case:mixed", &options);
  assert_string_equal(text, "nrefs:1|bs:1000|seed:12345|case:mixed");
  memset(longest, 'x', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  tarn_significance_signature(text, longest, &options);
  assert_true(strlen(text) < TARN_SIGNATURE_TEXT);
}

int main(void) {
  static const char *const headers[] = {"score.h", "lab/results.h", NULL};
  static const api_use uses[] = {
      USE(tarn_bleu_tokenizer_parse), USE(tarn_bleu_smoothing_parse), USE(tarn_bleu_tokenizer_name),
      USE(tarn_bleu_smoothing_name),  USE(tarn_bleu_default),         USE(tarn_bleu_corpus),
      USE(tarn_bleu_sentence),        USE(tarn_bleu_signature),       USE(tarn_chrf_default),
      USE(tarn_chrf_corpus),          USE(tarn_chrf_sentence),        USE(tarn_chrf_name),
      USE(tarn_chrf_signature),       USE(tarn_ter_default),          USE(tarn_ter_corpus),
      USE(tarn_ter_sentence),         USE(tarn_ter_signature),        USE(tarn_score_lines_open),
      USE(tarn_score_lines_close),    USE(tarn_score_lines_match),    USE(tarn_bleu_statistics),
      USE(tarn_chrf_statistics),      USE(tarn_ter_statistics),       USE(tarn_statistics_close),
      USE(tarn_significance_default), USE(tarn_significance_compute), USE(tarn_significance_signature)};
  return api_main(headers, uses, sizeof uses / sizeof *uses, sandbox_open, sandbox_close);
}
