// The Levenshtein Transformer as a task: it learns to edit, resumes to the bit, has the same bits on memory that the
// host cannot touch, translates a sentence alike in any company, and refuses what does not go with it.
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

#include "base/memory.h"
#include "decode/translate.h"
#include "same_run.h"
#include "sample_step.h"
#include "shadow_device.h"
#include "store/checkpoint.h"
#include "tarn/translate.h"
#include "tiny_run.h"

enum { END = 2, MASK = 5, FIRST_WORD = 6 };

static const char description[] =
    "model: { task: levenshtein, d_model: 16, embeddings: all, dropout: 0.2, max_length: 48 }\n"
    "encoder: { layers: \"(R1 L1)*2\" }\n"
    "decoder: { layers: L R }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 2, ffn: 32 }\n"
    "  R: { mixer: attention, heads: 2, ffn: 32, frozen: yes }\n"
    "levenshtein: { max_placeholders: 7 }\n"
    "data: { vocab: masks, train: pairs, valid: valid_pairs }\n"
    "train: { max_updates: 12, lr: 0.01, warmup: 4, max_tokens: 400, log_every: 2, save_every: 5, keep_last: 2,\n"
    "         average: 2, threads: 2, clip_norm: 1 }\n"
    "valid: { every: 4 }\n";

// Sentences of which the target is the source, each word replaced by another.
static int32_t other_word(int32_t id) { return FIRST_WORD + (id * 7 + 3) % (TINY_VOCAB - FIRST_WORD); }

static void make_easy(const char *prefix, int pairs, const tarn_vocab *vocab, uint64_t seed) {
  tarn__shard_writer *writer;
  tarn__random random;
  tarn__random_init(&random, seed, 1);
  if (tarn__shard_writer_open(&writer, prefix, vocab, vocab) != TARN_STATUS_OK) abort();
  for (int i = 0; i < pairs; i++) {
    int32_t ids[2][12];
    const int64_t length = 3 + (int64_t)tarn__random_below(&random, 6);
    for (int64_t k = 0; k < length; k++) {
      ids[0][k] = FIRST_WORD + (int32_t)tarn__random_below(&random, TINY_VOCAB - FIRST_WORD);
      ids[1][k] = other_word(ids[0][k]);
    }
    if (tarn__shard_writer_put(writer, ids[0], length, ids[1], length) != TARN_STATUS_OK) abort();
  }
  if (tarn__shard_writer_commit(&writer) != TARN_STATUS_OK) abort();
}

static int open_all(void **state) {
  if (tiny_open(state) != 0) return -1;
  tarn_vocab *vocab = make_masked_vocab(TINY_VOCAB);
  size_t size;
  const void *bytes = tarn_vocab_bytes(vocab, &size);
  sandbox_write("masks", bytes, size);
  make_shard_of("pairs", 120, vocab, vocab, 5);
  make_shard_of("valid_pairs", 12, vocab, vocab, 6);
  make_easy("easy", 600, vocab, 7);
  make_easy("valid_easy", 40, vocab, 8);
  tarn_vocab_close(&vocab);
  sandbox_write("tiny.yaml", description, strlen(description));
  return 0;
}

static void it_resumes_to_the_bit(void **state) {
  (void)state;
  static const char *const variants[][3] = {
      {"train.precision=bf16", "train.accumulate=2", "model.positions=learned"},
      {"train.clip_norm=0", "kinds.L={ mixer: light_conv, heads: 2, ffn: 32 }", "train.recompute=block"},
      {"model.embeddings=none", "model.frozen_embeddings=encoder", "kinds.R.frozen=yes"}};
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

enum { SENTENCES = 9, LONGEST = 12 };

// Sentences of several lengths, translated with so many tokens at a time; NULL: the arrays are left alone.
static void translate(tarn__checkpoint *c, int32_t found[SENTENCES][48], int64_t lengths[SENTENCES], int64_t max_tokens,
                      int threads, int64_t iterations, tarn__translator_stats *stats) {
  static int32_t ids[SENTENCES * LONGEST];
  int64_t offsets[SENTENCES + 1] = {0};
  tarn__translator_options options;
  tarn__translator *translator;
  tarn__translation translations[SENTENCES];
  for (int s = 0; s < SENTENCES; s++) {
    const int64_t length = 1 + s;
    for (int64_t i = 0; i < length; i++)
      ids[offsets[s] + i] =
          i == length - 1 ? END : FIRST_WORD + (int32_t)((s * 5 + i * i * 3) % (TINY_VOCAB - FIRST_WORD));
    offsets[s + 1] = offsets[s] + length;
  }
  tarn__translator_default(&options);
  options.max_tokens = max_tokens;
  options.threads = threads;
  options.iterations = iterations;
  options.mask = MASK;
  if (tarn__translator_open(&translator, c->model, END, &options) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
  if (tarn__translator_run(translator, translations, ids, offsets, SENTENCES) != TARN_STATUS_OK)
    fail_msg("%s", tarn_error_message());
  for (int s = 0; s < SENTENCES; s++) {
    const tarn__hypothesis *best = &translations[s].hypotheses[0];
    lengths[s] = best->length;
    assert_true(best->length >= 1 && best->length <= 48 && best->ids[best->length - 1] == END);
    for (int64_t i = 0; i + 1 < best->length; i++) assert_true(best->ids[i] != END && best->ids[i] != MASK);
    memcpy(found[s], best->ids, (size_t)best->length * sizeof(int32_t));
  }
  tarn__translator_get_stats(translator, stats);
  assert_int_equal(stats->sentences, SENTENCES);
  tarn__translator_close(&translator);
}

// A model that has learnt nothing edits long and wildly, and alike in any company.
static void company_does_not_matter(void **state) {
  (void)state;
  static int32_t found[3][SENTENCES][48];
  int64_t lengths[3][SENTENCES];
  tarn__translator_stats stats[3];
  run_through("wild", NULL, 0);
  tarn__checkpoint *c;
  assert_int_equal(tarn__checkpoint_open(&c, "wild", TARN__F32), TARN_STATUS_OK);
  translate(c, found[0], lengths[0], 4096, 1, 6, &stats[0]);
  translate(c, found[1], lengths[1], 1, 2, 6, &stats[1]);
  assert_memory_equal(lengths[0], lengths[1], sizeof lengths[0]);
  assert_memory_equal(found[0], found[1], sizeof found[0]);
  assert_int_equal(stats[0].iterations, stats[1].iterations);
  assert_true(stats[0].iterations >= SENTENCES && stats[0].iterations <= 6 * SENTENCES);
  translate(c, found[2], lengths[2], 4096, 1, 1, &stats[2]);
  assert_int_equal(stats[2].iterations, SENTENCES);
  tarn__checkpoint_close(&c);
}

static void it_learns_and_translates(void **state) {
  (void)state;
  static const char *const keys[] = {"data.train=easy",    "data.valid=valid_easy", "train.max_updates=320",
                                     "train.average=0",    "valid.every=320",       "model.d_model=32",
                                     "model.dropout=0",    "train.warmup=40",       "encoder.layers=L",
                                     "decoder.layers=L*2", "train.lr=0.007",        "train.max_tokens=400"};
  run_through("easy_run", keys, sizeof keys / sizeof *keys);
  const double bleu = last_of("easy_run", "valid_bleu"), nll = last_of("easy_run", "valid_nll");
  if (!(bleu > 60)) fail_msg("BLEU %g, nll %g", bleu, nll);
  tarn_translator_options options;
  tarn_translator *translator;
  tarn_translate_summary summary;
  tarn_translate_result results[3];
  static const char *const lines[] = {"w8 w20 w31", "", "w40 w9 w10 w11"};
  const size_t sizes[] = {strlen(lines[0]), 0, strlen(lines[2])};
  tarn_translator_default(&options);
  assert_int_equal(tarn_translator_open(&translator, "easy_run", &options), TARN_STATUS_OK);
  assert_int_equal(tarn_translator_lines(translator, results, lines, sizes, 3), TARN_STATUS_OK);
  tarn_translator_summary(translator, &summary);
  assert_true(summary.iterations >= 2 && summary.iterations <= 20);
  tarn_translator_close(&translator);
}

static void refused(const char *override, const char *message) {
  const char *keys[] = {override};
  assert_int_equal(tiny_train("tiny.yaml", "refused", keys, 1, NULL, NULL, NULL), TARN_STATUS_USAGE);
  if (!strstr(tarn_error_message(), message)) fail_msg("%s", tarn_error_message());
}

static void wrong_use_is_refused(void **state) {
  (void)state;
  refused("translate.beam=3",
          "a Levenshtein Transformer has no beam; its options are iterations and placeholder_penalty");
  refused("translate.length_beam=3", "a Levenshtein Transformer has no length_beam");
  refused("valid.length_penalty=0.5", "a Levenshtein Transformer has no length_penalty");
  refused("model.output_mixtures=2", "a Levenshtein Transformer's token policy has one softmax");
  refused("model.adaptive_softmax_cutoff=[20]", "a Levenshtein Transformer's token policy has one softmax");
  refused("masking.share=0.5", "a Levenshtein Transformer has no masking");
  const char *unmasked[] = {"data.vocab=vocab", "data.train=train", "data.valid="};
  assert_int_equal(tiny_train("tiny.yaml", "refused", unmasked, 3, NULL, NULL, NULL), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "has no <mask>, the placeholder of a Levenshtein Transformer"));
  const char *other[] = {"model.task=translation"};
  assert_int_equal(tiny_train("tiny.yaml", "refused", other, 1, NULL, NULL, NULL), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "a translation model has no levenshtein; leave the section out"));
  run_through("edits", NULL, 0);
  tarn_translator_options options;
  tarn_translator *translator;
  tarn_translator_default(&options);
  options.beam = 4;
  assert_int_equal(tarn_translator_open(&translator, "edits", &options), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "a Levenshtein Transformer has no beam"));
  tarn_translator_default(&options);
  options.n_best = 2;
  assert_int_equal(tarn_translator_open(&translator, "edits", &options), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "n-best must be 1, not 2"));
  tarn_translator_default(&options);
  options.placeholder_penalty = -1;
  assert_int_equal(tarn_translator_open(&translator, "edits", &options), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "placeholder-penalty must be from 0 to 100, not -1"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_resumes_to_the_bit),   cmocka_unit_test(it_is_the_same_on_a_device),
      cmocka_unit_test(company_does_not_matter), cmocka_unit_test(it_learns_and_translates),
      cmocka_unit_test(wrong_use_is_refused),
  };
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
