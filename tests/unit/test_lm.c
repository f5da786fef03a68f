// Scores of sentences: token by token they are what the model's own log-probabilities say, whatever the batch, and the
// shared beginning of a pair changes nothing.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/memory.h"
#include "score/lm_text.h"
#include "score/scorer.h"
#include "store/checkpoint.h"
#include "tarn/train.h"
#include "tiny_run.h"

static const char text_config[] =
    "model: { d_model: 16, dropout: 0.2, output_bias: yes, max_length: 20 }\n"
    "decoder: { layers: L R }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 2, ffn: 32 }\n"
    "  R: { mixer: attention, heads: 2, ffn: 32, frozen: yes }\n"
    "data: { vocab: vocab, train: text }\n"
    "train: { max_updates: 5, lr: 0.05, warmup: 2, max_tokens: 400, threads: 2 }\n";

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  make_text_shard("text", 120, TINY_VOCAB, 5);
  sandbox_write("text.yaml", text_config, strlen(text_config));
  return tiny_train("text.yaml", "run", NULL, 0, NULL, NULL, NULL) == TARN_STATUS_OK ? 0 : -1;
}

// The log-probabilities of a sentence by the reference kernels in double, the whole sentence alone.
static void reference(double *out, const int32_t *ids, int64_t length) {
  tarn__checkpoint *c;
  assert_int_equal(tarn__checkpoint_open(&c, "run", TARN__F64), TARN_STATUS_OK);
  tarn__scorer_options options;
  tarn__scorer_default(&options);
  tarn__scorer *scorer;
  assert_int_equal(tarn__scorer_open(&scorer, c->model, 2, &options), TARN_STATUS_OK);
  tarn__scorer_sentence sentence = {.ids = ids, .length = length, .log_probabilities = out};
  assert_int_equal(tarn__scorer_run(scorer, &sentence, 1), TARN_STATUS_OK);
  tarn__scorer_close(&scorer);
  tarn__checkpoint_close(&c);
}

static const char *const lines[] = {"w3 w4 w5 w6",       "w3 w4 w9",          "",
                                    "w10 w11 w12 w3 w3", "w10 w11 w12 w3 w4", "w59 w58 w57 w56 w55 w54 w3 w4 w5 w6"};
enum { LINES = 6 };

static tarn_lm *open_lm(int64_t max_tokens) {
  tarn_lm_options options;
  tarn_lm_default(&options);
  options.max_tokens = max_tokens;
  tarn_lm *lm;
  if (tarn_lm_open(&lm, "run", &options) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  return lm;
}

static void lengths_of(size_t lengths[LINES]) {
  for (int i = 0; i < LINES; i++) lengths[i] = strlen(lines[i]);
}

static void scores_are_those_of_the_reference(void **state) {
  (void)state;
  tarn_lm *lm = open_lm(4096);
  size_t lengths[LINES];
  tarn_lm_line results[LINES];
  lengths_of(lengths);
  assert_int_equal(tarn_lm_score(lm, results, lines, lengths, LINES), TARN_STATUS_OK);
  assert_int_equal(results[2].tokens, 1);
  assert_int_equal(results[0].tokens, 5);
  assert_int_equal(results[0].bytes, 12);
  tarn_lm_total total = {0};
  double sum = 0.0;
  for (int i = 0; i < LINES; i++) {
    double expected[16];
    double whole = 0.0;
    reference(expected, results[i].ids, results[i].tokens);
    for (int64_t t = 0; t < results[i].tokens; t++) {
      assert_true(expected[t] < 0.0);
      assert_true(fabs(expected[t] - results[i].log_probabilities[t]) < 1e-4);
      whole += expected[t];
    }
    assert_true(fabs(whole - results[i].log_probability) < 1e-3);
    sum += whole;
    tarn_lm_total_add(&total, &results[i]);
  }
  assert_int_equal(total.tokens, 5 + 4 + 1 + 6 + 6 + 11);
  assert_true(fabs(tarn_lm_perplexity(&total) - exp(-sum / 33.0)) < 1e-2);
  tarn_lm_close(&lm);
}

static void batches_and_pairs_change_no_bit(void **state) {
  (void)state;
  tarn_lm *all = open_lm(4096);
  tarn_lm *few = open_lm(7);
  size_t lengths[LINES];
  tarn_lm_line first[LINES], second[LINES];
  lengths_of(lengths);
  assert_int_equal(tarn_lm_score(all, first, lines, lengths, LINES), TARN_STATUS_OK);
  assert_int_equal(tarn_lm_score(few, second, lines, lengths, LINES), TARN_STATUS_OK);
  for (int i = 0; i < LINES; i++)
    assert_memory_equal(first[i].log_probabilities, second[i].log_probabilities,
                        (size_t)first[i].tokens * sizeof(double));
  const int64_t numbers[LINES / 2] = {1, 2, 3};
  assert_int_equal(tarn__lm_run(few, second, lines, lengths, LINES, numbers), TARN_STATUS_OK);
  for (int i = 0; i < LINES; i++)
    assert_memory_equal(first[i].log_probabilities, second[i].log_probabilities,
                        (size_t)first[i].tokens * sizeof(double));
  tarn_lm_close(&all);
  tarn_lm_close(&few);
}

static void long_lines_are_refused_or_cut(void **state) {
  (void)state;
  const char *line = "w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3";
  size_t length = strlen(line);
  tarn_lm_line result;
  tarn_lm *lm = open_lm(4096);
  assert_int_equal(tarn_lm_score(lm, &result, &line, &length, 1), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "line 1: 22 tokens"));
  tarn_lm_close(&lm);
  tarn_lm_options options;
  tarn_lm_default(&options);
  options.overlong = TARN_TRANSLATE_OVERLONG_TRUNCATE;
  assert_int_equal(tarn_lm_open(&lm, "run", &options), TARN_STATUS_OK);
  assert_int_equal(tarn_lm_score(lm, &result, &line, &length, 1), TARN_STATUS_OK);
  assert_true(result.truncated);
  assert_int_equal(result.tokens, 20);
  // The figures of a character and of a byte are about the text that was scored, and so are its lengths.
  const char *kept = "w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3";
  const size_t kept_length = strlen(kept);
  tarn_lm_line whole;
  assert_int_equal(result.characters, (int64_t)kept_length + 1);
  assert_int_equal(result.bytes, (int64_t)kept_length + 1);
  double log_probability = result.log_probability;
  assert_int_equal(tarn_lm_score(lm, &whole, &kept, &kept_length, 1), TARN_STATUS_OK);
  assert_true(whole.log_probability == log_probability);
  assert_false(whole.truncated);
  tarn_lm_close(&lm);
}

static void write_pairs(const char *path, const char *text) { sandbox_write(path, text, strlen(text)); }

#define PAIR(field) "{\"sentence_good\": \"w3\", \"sentence_bad\": \"w4\", \"field\": \"" field "\"}\n"

static void minimal_pairs_are_counted(void **state) {
  (void)state;
  tarn_lm *lm = open_lm(4096);
  // Which of two sentences is the likelier one, so that the files hold two right pairs of three.
  size_t lengths[LINES];
  tarn_lm_line scores[LINES];
  lengths_of(lengths);
  assert_int_equal(tarn_lm_score(lm, scores, lines, lengths, LINES), TARN_STATUS_OK);
  bool higher = scores[3].log_probability > scores[4].log_probability;
  const char *good = lines[higher ? 3 : 4], *bad = lines[higher ? 4 : 3];
  char text[1024];
  assert_int_equal(mkdir("pairs", 0777), 0);
  snprintf(text, sizeof text,
           "{\"sentence_good\": \"%s\", \"sentence_bad\": \"%s\", \"field\": \"syntax/semantics\"}\n"
           "{\"sentence_good\": \"%s\", \"sentence_bad\": \"%s\", \"field\": \"syntax_semantics\"}\n\n"
           "{\"sentence_good\": \"%s\", \"sentence_bad\": \"%s\", \"field\": \"syntax/semantics\"}\n",
           good, bad, bad, good, good, bad);
  write_pairs("pairs/b.jsonl", text);
  snprintf(text, sizeof text, "{\"sentence_good\": \"%s\", \"sentence_bad\": \"%s\", \"field\": \"morphology\"}\n",
           good, good);
  write_pairs("pairs/a.jsonl", text);
  tarn_minimal_pairs_result *result;
  if (tarn_minimal_pairs_run(&result, lm, "pairs", NULL, NULL) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  assert_int_equal(result->paradigm_count, 2);
  assert_string_equal(result->paradigms[0].name, "a");
  assert_int_equal(result->paradigms[0].right, 0);  // equal sentences are no success
  assert_int_equal(result->paradigms[1].right, 2);
  assert_int_equal(result->paradigms[1].pairs, 3);
  assert_true(fabs(result->overall.accuracy - 1.0 / 3.0) < 1e-12);
  assert_int_equal(result->overall.pairs, 4);
  assert_int_equal(result->field_count, 2);
  assert_string_equal(result->fields[0].name, "morphology");
  assert_string_equal(result->fields[1].name, "syntax_semantics");
  // Wilson's interval of 2 of 3, as statsmodels gives it.
  assert_true(fabs(result->paradigms[1].low - 0.2076596) < 1e-6);
  assert_true(fabs(result->paradigms[1].high - 0.9385081) < 1e-6);
  // A mean over paradigms of one and of three pairs, and what their intervals, 0 .. 0.7934507 for 0 of 1, make of it.
  assert_true(fabs(result->overall.low - (1.0 / 3.0 - (2.0 / 3.0 - 0.2076596) / 2.0)) < 1e-6);
  assert_true(fabs(result->overall.high - (1.0 / 3.0 + hypot(0.7934507, 0.9385081 - 2.0 / 3.0) / 2.0)) < 1e-6);
  assert_true(fabs(result->fields[1].low - 0.2076596) < 1e-6);
  assert_int_equal(result->unknown, 0);
  assert_int_equal(result->truncated, 0);
  assert_int_equal(result->replaced, 0);
  assert_int_equal(result->equal, 1);
  tarn_minimal_pairs_close(&result);
  const char *const broken[][2] = {
      {"{\"sentence_good\": \"w3\"}\n", "c.jsonl:1: expected a text \"sentence_bad\""},
      {"{\"sentence_good\": \"w3\", \"sentence_bad\": \"w4\"}\n[1]\n", "c.jsonl:2: "},
      {"{", "c.jsonl:1: expected a JSON object"},
      {"{\"sentence_good\": \"w3\", \"sentence_bad\": \" \"}\n", "c.jsonl:1: the text \"sentence_bad\" is empty"},
      {PAIR("syntax") "\n" PAIR("syntax_semantics"),
       "c.jsonl:3: the field is \"syntax_semantics\", but \"syntax\" in the pairs before it"},
      {PAIR("syntax_semantics") PAIR("syntax"), "c.jsonl:2: the field is \"syntax\", but"},
      {PAIR("syntax") "{\"sentence_good\": \"w3\", \"sentence_bad\": \"w4\"}\n",
       "c.jsonl:2: the field is \"\", but \"syntax\" in the pairs"},
      {"\n", "c.jsonl: it holds no pair"}};
  for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
    write_pairs("pairs/c.jsonl", broken[i][0]);
    assert_int_equal(tarn_minimal_pairs_run(&result, lm, "pairs", NULL, NULL), TARN_STATUS_DATA);
    assert_null(result);
    if (!strstr(tarn_error_message(), broken[i][1])) fail_msg("\"%s\"", tarn_error_message());
  }
  write_pairs("pairs/c.jsonl",
              "{\"sentence_good\": \"w3\", \"sentence_bad\": \"w4\"}\n\n"
              "{\"sentence_good\": \"w3\", \"sentence_bad\": \"w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 "
              "w3 w3\"}\n");
  assert_int_equal(tarn_minimal_pairs_run(&result, lm, "pairs", NULL, NULL), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "c.jsonl: line 3, its bad sentence: 21 tokens"));
  assert_int_equal(tarn_minimal_pairs_run(&result, lm, "nowhere", NULL, NULL), TARN_STATUS_IO);
  tarn_lm_close(&lm);
}

// A mean lies in its interval whatever the sizes: most pairs are right, but most paradigms are not.
static void a_mean_lies_in_its_interval(void **state) {
  (void)state;
  tarn_lm *lm = open_lm(4096);
  size_t lengths[LINES];
  tarn_lm_line scores[LINES];
  lengths_of(lengths);
  assert_int_equal(tarn_lm_score(lm, scores, lines, lengths, LINES), TARN_STATUS_OK);
  const bool higher = scores[3].log_probability > scores[4].log_probability;
  const char *good = lines[higher ? 3 : 4], *bad = lines[higher ? 4 : 3];
  enum { MANY = 200 };
  static char text[MANY * 128];
  assert_int_equal(mkdir("sizes", 0777), 0);
  for (int i = 0, used = 0; i < MANY; i++)
    used += snprintf(text + used, sizeof text - (size_t)used, "{\"sentence_good\": \"%s\", \"sentence_bad\": \"%s\"}\n",
                     good, bad);
  write_pairs("sizes/large.jsonl", text);
  snprintf(text, sizeof text, "{\"sentence_good\": \"%s\", \"sentence_bad\": \"%s\"}\n", bad, good);
  write_pairs("sizes/small.jsonl", text);
  write_pairs("sizes/tiny.jsonl", text);
  tarn_minimal_pairs_result *result;
  if (tarn_minimal_pairs_run(&result, lm, "sizes", NULL, NULL) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  const tarn_minimal_pairs_count *all = &result->overall;
  assert_true(fabs(all->accuracy - 1.0 / 3.0) < 1e-12);
  assert_true(0 <= all->low && all->low < all->accuracy && all->accuracy < all->high && all->high <= 1);
  tarn_minimal_pairs_close(&result);
  tarn_lm_close(&lm);
}

static tarn_status add_to_total(void *user, int64_t number, const tarn_lm_line *line) {
  (void)number;
  tarn_lm_total_add(user, line);
  return TARN_STATUS_OK;
}

static void what_was_changed_is_counted(void **state) {
  (void)state;
  const char text[] =
      "w3 \xff w4\nw3 qqq\n"
      "w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3\n";
  sandbox_write("changed", text, sizeof text - 1);
  tarn_lm_options options;
  tarn_lm_default(&options);
  options.overlong = TARN_TRANSLATE_OVERLONG_TRUNCATE;
  tarn_lm *lm;
  assert_int_equal(tarn_lm_open(&lm, "run", &options), TARN_STATUS_OK);
  tarn_lm_total total = {0};
  assert_int_equal(tarn_lm_score_file(lm, "changed", add_to_total, &total), TARN_STATUS_OK);
  assert_int_equal(total.lines, 3);
  assert_int_equal(total.replaced, 1);
  assert_int_equal(total.truncated, 1);
  assert_int_equal(total.unknown, 2);  // U+FFFD is no word either
  const char pairs[] =
      "{\"sentence_good\": \"w3 \xff\", \"sentence_bad\": \"w4 qqq\"}\n"
      "{\"sentence_good\": \"w3\", \"sentence_bad\": "
      "\"w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3 w3\"}\n";
  assert_int_equal(mkdir("changed_pairs", 0777), 0);
  sandbox_write("changed_pairs/a.jsonl", pairs, sizeof pairs - 1);
  tarn_minimal_pairs_result *result;
  assert_int_equal(tarn_minimal_pairs_run(&result, lm, "changed_pairs", NULL, NULL), TARN_STATUS_OK);
  assert_int_equal(result->unknown, 2);
  assert_int_equal(result->truncated, 1);
  assert_int_equal(result->replaced, 1);
  tarn_minimal_pairs_close(&result);
  tarn_lm_close(&lm);
  options.strict = true;
  assert_int_equal(tarn_lm_open(&lm, "run", &options), TARN_STATUS_OK);
  assert_int_equal(tarn_lm_score_file(lm, "changed", add_to_total, &total), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "changed: line 1: invalid UTF-8 at byte 4"));
  assert_int_equal(tarn_minimal_pairs_run(&result, lm, "changed_pairs", NULL, NULL), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "a.jsonl:1: invalid UTF-8"));
  tarn_lm_close(&lm);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(scores_are_those_of_the_reference), cmocka_unit_test(batches_and_pairs_change_no_bit),
      cmocka_unit_test(long_lines_are_refused_or_cut),     cmocka_unit_test(minimal_pairs_are_counted),
      cmocka_unit_test(a_mean_lies_in_its_interval),       cmocka_unit_test(what_was_changed_is_counted),
  };
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
