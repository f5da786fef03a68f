// Masked translation models: they learn words and lengths from masks, resume to the bit, have the same bits on memory
// that the host cannot touch, and have options of their own.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <jansson.h>

#include "same_run.h"
#include "sample_step.h"
#include "shadow_device.h"
#include "tarn/translate.h"
#include "tiny_run.h"

static const char description[] =
    "model: { task: masked-translation, d_model: 16, dropout: 0.1, max_length: 48, embeddings: all }\n"
    "encoder: { layers: L R }\n"
    "decoder: { layers: R L }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 2, ffn: 32 }\n"
    "  R: { mixer: attention, heads: 2, ffn: 32, frozen: yes }\n"
    "data: { vocab: masks, train: pairs, valid: valid_pairs }\n"
    "train: { max_updates: 12, lr: 0.01, warmup: 4, max_tokens: 400, log_every: 2, save_every: 5, keep_last: 2,\n"
    "         average: 2, threads: 2 }\n"
    "valid: { every: 4 }\n"
    "translate: { iterations: 3, length_beam: 2 }\n";

enum { SPECIALS = 6 };

// Pairs of 2 to 9 words: each word of the target is its neighbour's in the source, and there is one word more.
static void write_pairs(const char *prefix, int32_t count, uint64_t seed, const tarn_vocab *vocab) {
  tarn__shard_writer *writer;
  tarn__random random;
  tarn__random_init(&random, seed, 1);
  if (tarn__shard_writer_open(&writer, prefix, vocab, vocab) != TARN_STATUS_OK) abort();
  for (int32_t i = 0; i < count; i++) {
    int32_t source[10], target[11];
    const int32_t length = 2 + (int32_t)tarn__random_below(&random, 8);
    for (int32_t k = 0; k < length; k++) {
      source[k] = SPECIALS + (int32_t)tarn__random_below(&random, TINY_VOCAB - SPECIALS);
      target[k] = SPECIALS + (source[k] - SPECIALS + 1) % (TINY_VOCAB - SPECIALS);
    }
    target[length] = SPECIALS + length;
    if (tarn__shard_writer_put(writer, source, length, target, length + 1) != TARN_STATUS_OK) abort();
  }
  if (tarn__shard_writer_commit(&writer) != TARN_STATUS_OK) abort();
}

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  tarn_vocab *vocab = make_masked_vocab(TINY_VOCAB);
  size_t size;
  const void *bytes = tarn_vocab_bytes(vocab, &size);
  sandbox_write("masks", bytes, size);
  write_pairs("pairs", 150, 5, vocab);
  write_pairs("valid_pairs", 12, 6, vocab);
  write_pairs("many", 3000, 7, vocab);
  tarn_vocab_close(&vocab);
  sandbox_write("tiny.yaml", description, strlen(description));
  return 0;
}

static void it_resumes_to_the_bit(void **state) {
  (void)state;
  static const char *const variants[][3] = {
      {"train.precision=bf16", "train.accumulate=2", "train.clip_norm=1"},
      {"model.embeddings=none", "model.frozen_embeddings=encoder", "train.cache_frozen=no"}};
  run_through("whole", NULL, 0);
  run_in_pieces("pieces", 3, NULL, 0);
  assert_same_run("whole", "pieces");
  const size_t each = (size_t)sample_step(2);
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i += each) check_stops(i, 5, variants[i], 3);
}

static void it_is_the_same_on_a_device(void **state) {
  (void)state;
  run_through("here", NULL, 0);
  tarn__device_use(&shadow_device);
  run_in_pieces("apart", 5, NULL, 0);
  tarn__device_use(NULL);
  assert_true(shadow.most > 0);
  assert_int_equal(shadow.now, 0);
  assert_same_run("here", "apart");
}

// The last value of a key in a run's log.
static double last_of(const char *run, const char *key) {
  json_t *log = read_log(run);
  double value = NAN;
  for (size_t i = 0; i < json_array_size(log); i++) {
    const json_t *found = json_object_get(json_array_get(log, i), key);
    if (found) value = json_number_value(found);
  }
  json_decref(log);
  return value;
}

// Words follow from the source alone, so that a trained model knows them all, and how many there are.
static void it_learns_words_and_lengths(void **state) {
  (void)state;
  static const char *const keys[] = {"data.train=many", "train.max_updates=500", "train.lr=0.01",
                                     "train.warmup=50", "train.average=0",       "valid.every=500",
                                     "model.dropout=0", "model.d_model=32",      "train.label_smoothing=0"};
  run_through("learnt", keys, sizeof keys / sizeof *keys);
  const double nll = last_of("learnt", "valid_nll"), bleu = last_of("learnt", "valid_bleu");
  // Of equal chances: 4 and, with the length's, about 5.
  if (!(nll < 1.0 && bleu > 70)) fail_msg("nll %g, BLEU %g", nll, bleu);
}

static tarn_translator *open_translator(const char *run, const tarn_translator_options *options) {
  tarn_translator *translator;
  if (tarn_translator_open(&translator, run, options) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  return translator;
}

static void refused(const tarn_translator_options *options, const char *text) {
  tarn_translator *translator;
  assert_int_equal(tarn_translator_open(&translator, "whole", options), TARN_STATUS_USAGE);
  if (!strstr(tarn_error_message(), text)) fail_msg("\"%s\" is not in \"%s\"", text, tarn_error_message());
}

static void it_has_options_of_its_own(void **state) {
  (void)state;
  tarn_translator_options options;
  tarn_translator_default(&options);
  tarn_translator *translator = open_translator("whole", &options);
  const tarn_translator_options *settings = tarn_translator_settings(translator);
  assert_int_equal(settings->iterations, 3);
  assert_int_equal(settings->length_beam, 2);
  assert_int_equal(settings->beam, 0);
  // They can be set again as they are.
  assert_int_equal(tarn_translator_set(translator, settings), TARN_STATUS_OK);
  options.n_best = 2;
  options.iterations = 5;
  assert_int_equal(tarn_translator_set(translator, &options), TARN_STATUS_OK);
  const char *line = "w8 w20 w30";
  const size_t length = strlen(line);
  tarn_translate_result result;
  assert_int_equal(tarn_translator_lines(translator, &result, &line, &length, 1), TARN_STATUS_OK);
  assert_int_equal(result.count, 2);
  options.beam = 3;
  assert_int_equal(tarn_translator_set(translator, &options), TARN_STATUS_USAGE);
  tarn_translator_close(&translator);
  tarn_translator_default(&options);
  options.beam = 3;
  refused(&options, "a masked translation model has no beam; its options are iterations and length_beam");
  tarn_translator_default(&options);
  options.length_penalty = 1;
  refused(&options, "has no length_penalty");
}

static void refused_config(const char *const *overrides, size_t count, const char *text) {
  tarn_config *config;
  assert_int_equal(tarn_config_read(&config, "tiny.yaml", overrides, count), TARN_STATUS_USAGE);
  if (!strstr(tarn_error_message(), text)) fail_msg("\"%s\" is not in \"%s\"", text, tarn_error_message());
}

static void wrong_use_is_refused(void **state) {
  (void)state;
  static const char *const beam[] = {"translate.beam=3"}, *const valid[] = {"valid.beam=3"},
                           *const start[] = {"model.decoder_start=3"};
  static const char *const other[] = {"model.task=translation"};
  refused_config(beam, 1, "translate.beam: a masked translation model has no beam");
  refused_config(valid, 1, "valid.beam: a masked translation model has no beam");
  refused_config(start, 1, "model.decoder_start: the decoder reads the target as it is");
  refused_config(other, 1, "a translation model has no iterations; its options are beam, length_penalty");
  const char *unmasked[] = {"data.vocab=vocab", "data.train=train", "data.valid="};
  assert_int_equal(tiny_train("tiny.yaml", "refused", unmasked, 3, NULL, NULL, NULL), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "has no <mask>, which a masked translation model reads"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_resumes_to_the_bit),       cmocka_unit_test(it_is_the_same_on_a_device),
      cmocka_unit_test(it_learns_words_and_lengths), cmocka_unit_test(it_has_options_of_its_own),
      cmocka_unit_test(wrong_use_is_refused),
  };
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
