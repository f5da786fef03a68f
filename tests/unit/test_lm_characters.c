// Perplexity and bits of characters and bytes, under character and byte vocabularies, against counts made by hand: of a
// model that gives every token the same probability, and of a trained one by the reference kernels in double.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/file.h"
#include "score/scorer.h"
#include "store/checkpoint.h"
#include "tarn/data.h"
#include "tarn/lm.h"
#include "tiny_run.h"

static const char config[] =
    "model: { d_model: 16, dropout: 0, embeddings: none, output_bias: yes, max_length: 40, embedding_std: 1,\n"
    "         embedding_scale: no, positions: none }\n"
    "decoder: { layers: E }\n"
    "kinds:\n"
    "  E: { mixer: esn, input: direct, residual: no, frozen: yes }\n"
    "train: { max_updates: 8, lr: 0.05, warmup: 0, max_tokens: 400, threads: 2 }\n";

static const char training[] =
    "a b ab\n\xc3\xa4 b a\nbb \xe2\x82\xac\na \xe2\x82\xac \xc3\xa4\nab ab\nba b\naa \xc3\xa4\n";

// What is scored: "ab", "äb €a", an empty line.
static const char *const lines[] = {"ab",
                                    "\xc3\xa4"
                                    "b \xe2\x82\xac"
                                    "a",
                                    ""};
enum { LINES = 3, CHARACTERS = 2 + 5 + 0 + LINES, BYTES = 2 + 8 + 0 + LINES };

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

// Vocabulary NAME, shard NAME_text, run NAME.run, and NAME.zero, the same model with an output layer of zeros.
static void make(const char *name, tarn_vocab_type type) {
  static const char *const files[] = {"training"};
  char shard[32], run[32], zero[32], overrides[2][64];
  snprintf(shard, sizeof shard, "%s_text", name);
  snprintf(run, sizeof run, "%s.run", name);
  snprintf(zero, sizeof zero, "%s.zero", name);
  snprintf(overrides[0], sizeof overrides[0], "data.vocab=%s", name);
  snprintf(overrides[1], sizeof overrides[1], "data.train=%s", shard);
  tarn_vocab_options how;
  tarn_vocab_default(&how);
  how.type = type;
  must(tarn_vocab_train(name, files, type == TARN_VOCAB_TYPE_BYTE ? 0 : 1, &how));
  tarn_prepare_options options;
  tarn_prepare_default(&options);
  options.vocab = name;
  options.text = "training";
  options.output = shard;
  tarn_prepare_result result;
  must(tarn_prepare_run(&result, &options));
  const char *const set[] = {overrides[0], overrides[1]};
  must(tiny_train("config.yaml", run, set, 2, NULL, NULL, NULL));
  tarn__checkpoint *c;
  must(tarn__checkpoint_open(&c, run, TARN__F32));
  memset(c->model->weights.output_table->value, 0,
         (size_t)(c->model->weights.output_table->rows * c->model->weights.output_table->cols) * sizeof(float));
  memset(c->model->weights.output_bias->value, 0, (size_t)c->model->weights.output_bias->cols * sizeof(float));
  tarn__checkpoint_extra extra = {.source = c->source, .target = c->target};
  must(tarn__checkpoint_save(zero, c->model, &extra));
  tarn__checkpoint_close(&c);
}

static int open_all(void **state) {
  if (sandbox_open(state) != 0) return -1;
  sandbox_write("training", training, strlen(training));
  sandbox_write("config.yaml", config, strlen(config));
  make("char", TARN_VOCAB_TYPE_CHAR);
  make("byte", TARN_VOCAB_TYPE_BYTE);
  return 0;
}

static tarn_lm_total score(tarn_lm_line results[LINES], const char *path, tarn_lm **lm) {
  size_t lengths[LINES];
  tarn_lm_options options;
  tarn_lm_default(&options);
  must(tarn_lm_open(lm, path, &options));
  for (int i = 0; i < LINES; i++) lengths[i] = strlen(lines[i]);
  must(tarn_lm_score(*lm, results, lines, lengths, LINES));
  tarn_lm_total total = {0};
  for (int i = 0; i < LINES; i++) tarn_lm_total_add(&total, &results[i]);
  return total;
}

static void near(double value, double expected) {
  if (!(fabs(value - expected) <= 1e-5 * fabs(expected))) fail_msg("%.9g, expected %.9g", value, expected);
}

// 4 letters or so and 3 special tokens against 256 bytes and 3: with one token a character the bits of a character are
// those of a token, with one token a byte those of a byte.
static void an_even_model_has_the_logarithm_of_its_vocabulary(void **state) {
  (void)state;
  const double words[] = {3 + 5, 3 + 256};  // a b ä € and the space
  static const char *const paths[] = {"char.zero", "byte.zero"};
  for (int i = 0; i < 2; i++) {
    tarn_lm *lm;
    tarn_lm_line results[LINES];
    const int64_t tokens = i == 0 ? CHARACTERS : BYTES;
    tarn_lm_total total = score(results, paths[i], &lm);
    assert_int_equal(total.tokens, tokens);
    assert_int_equal(total.characters, CHARACTERS);
    assert_int_equal(total.bytes, BYTES);
    assert_int_equal(total.unknown, 0);
    near(tarn_lm_perplexity(&total), words[i]);
    near(tarn_lm_bits_per_character(&total), log2(words[i]) * (double)tokens / CHARACTERS);
    near(tarn_lm_bits_per_byte(&total), log2(words[i]) * (double)tokens / BYTES);
    tarn_lm_close(&lm);
  }
}

static void a_trained_model_has_what_the_reference_says(void **state) {
  (void)state;
  static const char *const paths[] = {"char.run", "byte.run"};
  for (int i = 0; i < 2; i++) {
    tarn_lm *lm;
    tarn_lm_line results[LINES];
    tarn_lm_total total = score(results, paths[i], &lm);
    tarn__checkpoint *c;
    must(tarn__checkpoint_open(&c, paths[i], TARN__F64));
    tarn__scorer_options options;
    tarn__scorer_default(&options);
    tarn__scorer *scorer;
    must(tarn__scorer_open(&scorer, c->model, 2, &options));
    double sum = 0;
    for (int k = 0; k < LINES; k++) {
      double values[16];
      tarn__scorer_sentence sentence = {
          .ids = results[k].ids, .length = results[k].tokens, .log_probabilities = values};
      must(tarn__scorer_run(scorer, &sentence, 1));
      for (int64_t t = 0; t < sentence.length; t++) sum += values[t];
    }
    near(tarn_lm_perplexity(&total), exp(-sum / (i == 0 ? CHARACTERS : BYTES)));
    near(tarn_lm_bits_per_character(&total), -sum / log(2) / CHARACTERS);
    near(tarn_lm_bits_per_byte(&total), -sum / log(2) / BYTES);
    tarn__scorer_close(&scorer);
    tarn__checkpoint_close(&c);
    tarn_lm_close(&lm);
  }
}

// A character that the vocabulary lacks is one token, and told apart; bytes are never unknown.
static void unknown_characters_are_counted(void **state) {
  (void)state;
  const char *line = "az\xc3\xb6";
  const size_t length = strlen(line);
  for (int i = 0; i < 2; i++) {
    tarn_lm_options options;
    tarn_lm_default(&options);
    tarn_lm *lm;
    tarn_lm_line result;
    must(tarn_lm_open(&lm, i == 0 ? "char.run" : "byte.run", &options));
    must(tarn_lm_score(lm, &result, &line, &length, 1));
    assert_int_equal(result.unknown, i == 0 ? 2 : 0);
    assert_int_equal(result.tokens, i == 0 ? 4 : 5);
    assert_int_equal(result.characters, 4);
    tarn_lm_close(&lm);
  }
}

static tarn_status drop(void *user, int64_t number, const tarn_lm_line *line) {
  (void)user;
  (void)number;
  (void)line;
  return TARN_STATUS_OK;
}

// Lines are scored in windows, and named by their place in the file.
static void a_line_is_named_by_its_place_in_the_file(void **state) {
  (void)state;
  enum { BEFORE = 4100 };
  char text[2 * BEFORE + 2];
  for (int i = 0; i < BEFORE; i++) memcpy(text + 2 * (size_t)i, "a\n", 2);
  memcpy(text + 2 * (size_t)BEFORE, "\xff\n", 2);
  sandbox_write("many", text, sizeof text);
  tarn_lm_options options;
  tarn_lm_default(&options);
  options.strict = true;
  tarn_lm *lm;
  must(tarn_lm_open(&lm, "char.run", &options));
  assert_int_equal(tarn_lm_score_file(lm, "many", drop, NULL), TARN_STATUS_DATA);
  if (!strstr(tarn_error_message(), "many: line 4101: invalid UTF-8 at byte 1")) fail_msg("%s", tarn_error_message());
  tarn_lm_close(&lm);
}

// Two vocabularies of one text: data and runs of one are not those of the other.
static void another_vocabulary_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *config, *run;
    const char *set[2];
    size_t count;
    const char *words;
  } cases[] = {
      {"config.yaml",
       "new",
       {"data.vocab=char", "data.train=byte_text"},
       2,
       "byte_text.tarn: its text was prepared with another vocabulary"},
      {NULL, "char.run", {"data.train=byte_text"}, 1, "byte_text.tarn: its text was prepared with another vocabulary"},
      {NULL, "char.run", {"data.valid=byte_text"}, 1, "byte_text.tarn: its text was prepared with another vocabulary"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(tiny_train(cases[i].config, cases[i].run, cases[i].set, cases[i].count, NULL, NULL, NULL),
                     TARN_STATUS_DATA);
    if (!strstr(tarn_error_message(), cases[i].words)) fail_msg("%s", tarn_error_message());
  }
  const char *const all[] = {"data.vocab=byte", "data.target_vocab=byte", "data.train=byte_text"};
  assert_int_equal(tiny_train(NULL, "char.run", all, 3, NULL, NULL, NULL), TARN_STATUS_DATA);
  if (!strstr(tarn_error_message(), "was trained with another vocabulary than byte"))
    fail_msg("%s", tarn_error_message());
  assert_int_equal(tiny_train(NULL, "char.run", all, 1, NULL, NULL, NULL), TARN_STATUS_USAGE);
  if (!strstr(tarn_error_message(), "a language model has one vocabulary")) fail_msg("%s", tarn_error_message());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_even_model_has_the_logarithm_of_its_vocabulary),
      cmocka_unit_test(a_trained_model_has_what_the_reference_says),
      cmocka_unit_test(unknown_characters_are_counted),
      cmocka_unit_test(a_line_is_named_by_its_place_in_the_file),
      cmocka_unit_test(another_vocabulary_is_refused),
  };
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
