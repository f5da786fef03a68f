// tarn_translator_set(): a translator whose options changed computes as one that was opened with them, and options that
// are refused leave it as it was.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <math.h>

#include "same_run.h"
#include "tarn/translate.h"

static const char small_config[] =
    "model: { d_model: 16, embeddings: all, dropout: 0 }\n"
    "encoder: { layers: L }\n"
    "decoder: { layers: L }\n"
    "kinds: { L: { mixer: attention, heads: 2, ffn: 32 } }\n"
    "data: { vocab: vocab, train: train }\n"
    "train: { max_updates: 4, lr: 0.01, warmup: 4, max_tokens: 400, threads: 1 }\n"
    "translate: { beam: 2, length_penalty: 0.5 }\n";

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  sandbox_write("tiny.yaml", small_config, strlen(small_config));
  run_through("run", NULL, 0);
  return 0;
}

static tarn_translator *opened(const tarn_translator_options *options) {
  tarn_translator *translator;
  if (tarn_translator_open(&translator, "run", options) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  return translator;
}

// All hypotheses of some lines with their scores.
static void translate(char text[8192], tarn_translator *translator) {
  static const char *const lines[] = {"t3 t4 t5", "t10 t11", "t20 t21 t22 t23 t24", ""};
  size_t lengths[4];
  tarn_translate_result results[4];
  for (int i = 0; i < 4; i++) lengths[i] = strlen(lines[i]);
  assert_int_equal(tarn_translator_lines(translator, results, lines, lengths, 4), TARN_STATUS_OK);
  text[0] = 0;
  for (int i = 0; i < 4; i++)
    for (int64_t h = 0; h < results[i].count; h++) {
      const size_t used = strlen(text);
      snprintf(text + used, 8192 - used, "%d %.200s %.17g\n", i, results[i].hypotheses[h].text,
               results[i].hypotheses[h].score);
    }
}

static const struct {
  int64_t beam, n_best, max_len_b, max_tokens;
  double length_penalty, max_len_a;
} cases[] = {{0, 1, -1, 0, NAN, NAN}, {1, 1, -1, 0, NAN, NAN}, {5, 5, -1, 0, NAN, NAN},
             {3, 2, -1, 0, -2, NAN},  {4, 4, 3, 0, 1, 0},      {2, 2, -1, 7, 0.5, NAN}};

static void other_options_give_what_opening_with_them_gives(void **state) {
  (void)state;
  char set[8192], fresh[8192];
  tarn_translator_options options;
  tarn_translator_default(&options);
  options.threads = 1;
  tarn_translator *translator = opened(&options);
  // Twice: the second time each comes after another one.
  for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
    const size_t at = i % (sizeof cases / sizeof *cases);
    options.beam = cases[at].beam;
    options.n_best = cases[at].n_best;
    options.max_len_b = cases[at].max_len_b;
    options.max_tokens = cases[at].max_tokens;
    options.length_penalty = cases[at].length_penalty;
    options.max_len_a = cases[at].max_len_a;
    assert_int_equal(tarn_translator_set(translator, &options), TARN_STATUS_OK);
    tarn_translator *other = opened(&options);
    translate(set, translator);
    translate(fresh, other);
    assert_string_equal(set, fresh);
    const tarn_translator_options *a = tarn_translator_settings(translator), *b = tarn_translator_settings(other);
    assert_int_equal(a->beam, b->beam);
    assert_true(a->length_penalty == b->length_penalty);
    tarn_translator_close(&other);
  }
  tarn_translator_close(&translator);
}

static void refused_options_change_nothing(void **state) {
  (void)state;
  char before[8192], after[8192];
  const int32_t *ids;
  const float *log_probabilities;
  tarn_translator_options good, bad[9];
  tarn_translator_default(&good);
  good.threads = 1;
  good.beam = good.n_best = 3;
  tarn_translator *translator = opened(&good);
  translate(before, translator);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) bad[i] = good;
  bad[0].beam = 1025;
  bad[1].beam = -1;
  bad[2].n_best = 4;
  bad[3].n_best = 0;
  bad[4].length_penalty = 101;
  bad[5].length_penalty = -INFINITY;
  bad[6].max_len_a = -1;
  bad[7].max_len_b = INT64_MAX;
  bad[8].max_tokens = -1;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(tarn_translator_set(translator, &bad[i]), TARN_STATUS_USAGE);
    assert_int_equal(tarn_translator_settings(translator)->beam, 3);
    assert_true(tarn_translator_tokens(translator, &ids, &log_probabilities, 0, 2) > 0);
  }
  translate(after, translator);
  assert_string_equal(before, after);
  // Results of the call before are gone.
  good.beam = good.n_best = 2;
  assert_int_equal(tarn_translator_set(translator, &good), TARN_STATUS_OK);
  assert_int_equal(tarn_translator_tokens(translator, &ids, &log_probabilities, 0, 0), 0);
  assert_null(ids);
  tarn_translator_close(&translator);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(other_options_give_what_opening_with_them_gives),
      cmocka_unit_test(refused_options_change_nothing),
  };
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
