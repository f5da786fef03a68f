// Texts as streams: windows of a shard are the text, each read behind the token before it; a window that slides over a
// text counts every token once, with the context that is promised, and as the model predicts it from that context.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <jansson.h>

#include "data/batch.h"
#include "score/scorer.h"
#include "store/checkpoint.h"
#include "tarn/data.h"
#include "tarn/lm.h"
#include "tiny_run.h"

static const char config[] =
    "model: { d_model: 16, dropout: 0, max_length: 24 }\n"
    "decoder: { layers: L*2 }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 2, ffn: 32 }\n"
    "data: { vocab: bytes, train: text, valid: text }\n"
    "train: { max_updates: 8, lr: 0.01, warmup: 0, max_tokens: 240, threads: 2 }\n"
    "valid: { every: 8, metric: bpb }\n";

enum { WINDOW = 24, EOS = 2, FIRST_BYTE = 3 };
static char text[600 + WINDOW];
static int64_t length;

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static int make_all(void **state) {
  if (sandbox_open(state) != 0) return -1;
  for (int i = 0; i < 23; i++)
    length +=
        snprintf(text + length, sizeof text - (size_t)length, "%s%d \xc3\xa4 b%s", i % 3 ? "line " : "", i * i * 7,
                 i % 4 == 3 ? "\r\n\n"
                 : i == 22  ? ""
                            : "\n");
  while (length % WINDOW != 0) text[length++] = 'z';  // for a validation has no window that overlaps another
  sandbox_write("text", text, (size_t)length);
  sandbox_write("config.yaml", config, sizeof config - 1);
  tarn_vocab_options how;
  tarn_vocab_default(&how);
  how.type = TARN_VOCAB_TYPE_BYTE;
  must(tarn_vocab_train("bytes", NULL, 0, &how));
  tarn_prepare_options options;
  tarn_prepare_result result;
  tarn_prepare_default(&options);
  options.vocab = "bytes";
  options.text = "text";
  options.output = "text";
  options.stream = WINDOW;
  must(tarn_prepare_run(&result, &options));
  assert_int_equal(result.target_tokens, length);
  assert_int_equal(result.bytes, length);
  must(tiny_train("config.yaml", "run", NULL, 0, NULL, NULL, NULL));
  return 0;
}

static int32_t token(int64_t place) { return place < 0 ? EOS : FIRST_BYTE + (unsigned char)text[place]; }

// Before the text there is the end of sentence, or the token that the options name.
static void check_windows(int32_t first) {
  tarn__shard shard;
  tarn__batcher *batcher;
  tarn__batcher_options options;
  int seen[sizeof text / WINDOW + 1] = {0};
  must(tarn__shard_open(&shard, "text"));
  assert_true(shard.continues);
  tarn__batcher_default(&options);
  options.max_tokens = 3 * WINDOW;
  options.first = first;
  must(tarn__batcher_open(&batcher, &shard, &options));
  const int64_t batches = tarn__batcher_batches(batcher);
  for (int64_t b = 0; b < batches; b++) {
    tarn__batch batch;
    tarn__batcher_next(batcher, &batch);
    for (int64_t s = 0; s < batch.target.sentences; s++) {
      const int64_t begin = batch.index[s] * WINDOW;
      seen[batch.index[s]]++;
      for (int64_t r = batch.target.offsets[s]; r < batch.target.offsets[s + 1]; r++) {
        const int64_t place = begin + r - batch.target.offsets[s];
        assert_true(place < length);
        assert_int_equal(batch.target.ids[r], place == 0 && first >= 0 ? first : token(place - 1));
        assert_int_equal(batch.targets[r], token(place));
      }
    }
  }
  for (int64_t w = 0; w < shard.pairs; w++) assert_int_equal(seen[w], 1);
  assert_int_equal(shard.pairs, (length + WINDOW - 1) / WINDOW);
  tarn__batcher_close(&batcher);
  tarn__shard_close(&shard);
}

static void windows_are_the_text(void **state) {
  (void)state;
  check_windows(-1);
  check_windows(7);
}

// What a sliding window gives, token by token.
typedef struct slid {
  int64_t count, window, stride;
  double log_probabilities[sizeof text];
} slid;

static tarn_status take(void *user, const tarn_lm_stretch *stretch) {
  slid *s = user;
  assert_int_equal(stretch->first, s->count);
  assert_true(stretch->count >= 1 && stretch->count <= (s->count ? s->stride : s->window));
  assert_true(s->count == 0 || stretch->context >= s->window - s->stride);
  for (int64_t t = 0; t < stretch->count; t++, s->count++) {
    assert_int_equal(stretch->ids[t], token(s->count));
    s->log_probabilities[s->count] = stretch->log_probabilities[t];
  }
  return TARN_STATUS_OK;
}

// Where the window begins that counts a token.
static int64_t begin_of(int64_t place, int64_t window, int64_t stride) {
  if (place < window) return 0;
  const int64_t begin = (place - window) / stride * stride + stride;
  return begin + window <= length ? begin : length - window;
}

static double predict(tarn__scorer *scorer, int64_t begin, int64_t place) {
  int32_t ids[WINDOW + 1];
  double log_probabilities[WINDOW];
  for (int64_t i = begin - 1; i <= place; i++) ids[i - begin + 1] = token(i);
  const tarn__scorer_sentence sentence = {.ids = ids + 1,
                                          .length = place - begin + 1,
                                          .known = place - begin,
                                          .before = ids,
                                          .log_probabilities = log_probabilities};
  must(tarn__scorer_run(scorer, &sentence, 1));
  return log_probabilities[place - begin];
}

static void a_sliding_window_counts_each_token_once(void **state) {
  (void)state;
  static const int64_t sizes[][2] = {{24, 24}, {24, 1}, {24, 7}, {20, 13}, {1, 1}, {23, 22}};
  tarn_lm_options options;
  tarn__scorer_options core;
  tarn__checkpoint *c;
  tarn__scorer *scorer;
  tarn_lm *lm;
  tarn_lm_default(&options);
  options.max_tokens = 60;  // two windows and a half
  must(tarn_lm_open(&lm, "run", &options));
  must(tarn__checkpoint_open(&c, "run", TARN__F32));
  tarn__scorer_default(&core);
  must(tarn__scorer_open(&scorer, c->model, EOS, &core));
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    slid s = {.window = sizes[k][0], .stride = sizes[k][1]};
    tarn_lm_total total;
    double sum = 0;
    must(tarn_lm_score_stream(lm, &total, "text", s.window, s.stride, take, &s));
    assert_int_equal(s.count, length);
    for (int64_t t = 0; t < length; t++) {
      const double expected = predict(scorer, begin_of(t, s.window, s.stride), t);
      assert_true(fabs(s.log_probabilities[t] - expected) < 1e-5);
      sum += s.log_probabilities[t];
    }
    assert_int_equal(total.tokens, length);
    assert_int_equal(total.bytes, length);
    assert_true(fabs(total.log_probability - sum) < 1e-9 * length);
    assert_true(fabs(tarn_lm_bits_per_byte(&total) + sum / log(2) / (double)length) < 1e-12);
  }
  tarn__scorer_close(&scorer);
  tarn__checkpoint_close(&c);
  tarn_lm_close(&lm);
}

// Windows one behind the other are what a validation computes.
static void validation_is_of_whole_windows(void **state) {
  (void)state;
  tarn_lm_options options;
  tarn_lm *lm;
  tarn_lm_total total;
  tarn_lm_default(&options);
  must(tarn_lm_open(&lm, "run", &options));
  must(tarn_lm_score_stream(lm, &total, "text", 0, WINDOW, NULL, NULL));
  json_t *result = json_load_file("run/result.json", 0, NULL);
  assert_non_null(result);
  assert_string_equal(json_string_value(json_object_get(result, "metric")), "bpb");
  assert_true(fabs(tarn_lm_bits_per_byte(&total) - json_real_value(json_object_get(result, "best"))) < 1e-4);
  assert_true(total.characters < total.bytes);  // some have two bytes
  json_decref(result);
  tarn_lm_close(&lm);
}

static void what_cannot_be_is_refused(void **state) {
  (void)state;
  static const char *const set[] = {"model.max_length=23"};
  static const int64_t sizes[][2] = {{25, 1}, {24, 0}, {24, 25}};
  tarn_lm_options options;
  tarn_lm *lm;
  tarn_lm_total total;
  assert_int_equal(tiny_train("config.yaml", "short", set, 1, NULL, NULL, NULL), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "its windows have 24 tokens, more than model.max_length (23)"));
  tarn_lm_default(&options);
  must(tarn_lm_open(&lm, "run", &options));
  for (int k = 0; k < 3; k++)
    assert_int_equal(tarn_lm_score_stream(lm, &total, "text", sizes[k][0], sizes[k][1], NULL, NULL), TARN_STATUS_USAGE);
  tarn_lm_close(&lm);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(windows_are_the_text), cmocka_unit_test(a_sliding_window_counts_each_token_once),
      cmocka_unit_test(validation_is_of_whole_windows), cmocka_unit_test(what_cannot_be_is_refused)};
  return cmocka_run_group_tests(tests, make_all, sandbox_close);
}
