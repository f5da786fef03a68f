// Language models: a model without an encoder is trained on a text, resumes to the bit, and is kept apart from
// translation models.
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

#include "data/batch.h"
#include "data/shard.h"
#include "same_run.h"
#include "store/checkpoint.h"
#include "tarn/data.h"
#include "tarn/translate.h"
#include "tiny_run.h"

static const char text_config[] =
    "model: { d_model: 16, dropout: 0.2, output_bias: yes }\n"
    "decoder: { layers: L R L }\n"
    "kinds:\n"
    "  L: { mixer: attention, heads: 2, ffn: 32 }\n"
    "  R: { mixer: attention, heads: 2, ffn: 32, frozen: yes }\n"
    "data: { vocab: vocab, train: text, valid: valid_text }\n"
    "train: { max_updates: 12, lr: 0.01, warmup: 4, max_tokens: 400, max_sentences: 9, log_every: 2, save_every: 5,\n"
    "         keep_last: 2, average: 2, threads: 2, clip_norm: 1 }\n"
    "valid: { every: 4 }\n";

static int open_all(void **state) {
  // The helpers of same_run.h train tiny.yaml.
  if (tiny_open_text(state, text_config) != 0) return -1;
  sandbox_write("pairs.yaml", tiny_config, strlen(tiny_config));
  return 0;
}

static void a_text_is_prepared_and_read(void **state) {
  (void)state;
  sandbox_write("lines", "w3 w4 w5\n\nw9\nw6 w7 w8 w9\nw3 w3 w3 w3 w3 w3\n", 42);
  tarn_prepare_options options;
  tarn_prepare_default(&options);
  options.vocab = "vocab";
  options.text = "lines";
  options.output = "prepared";
  options.min_tokens = 3;
  options.max_tokens = 6;
  options.overlong = TARN_PREPARE_OVERLONG_DROP;
  tarn_prepare_result result;
  assert_int_equal(tarn_prepare_run(&result, &options), TARN_STATUS_OK);
  assert_int_equal(result.lines, 5);
  assert_int_equal(result.pairs, 2);
  assert_int_equal(result.empty, 1);
  assert_int_equal(result.brief, 1);
  assert_int_equal(result.dropped, 1);
  assert_int_equal(result.source_tokens, 0);
  assert_int_equal(result.target_tokens, 9);
  tarn__shard shard;
  assert_int_equal(tarn__shard_open(&shard, "prepared"), TARN_STATUS_OK);
  assert_true(shard.text);
  int32_t ids[6];
  assert_int_equal(tarn__shard_source_length(&shard, 1), 0);
  assert_int_equal(tarn__shard_target_length(&shard, 1), 5);
  tarn__shard_target(&shard, 1, ids);
  assert_memory_equal(ids, ((int32_t[]){6, 7, 8, 9, 2}), 5 * sizeof *ids);
  tarn__shard_close(&shard);
  options.source = "lines";
  assert_int_equal(tarn_prepare_run(&result, &options), TARN_STATUS_USAGE);
}

static void batches_keep_to_both_limits(void **state) {
  (void)state;
  tarn__shard shard;
  assert_int_equal(tarn__shard_open(&shard, "text"), TARN_STATUS_OK);
  tarn__batcher_options options;
  tarn__batcher_default(&options);
  options.max_tokens = 200;
  options.max_sentences = 7;
  tarn__batcher *batcher;
  assert_int_equal(tarn__batcher_open(&batcher, &shard, &options), TARN_STATUS_OK);
  int64_t source_rows, target_rows, most, sentences = 0, largest = 0;
  tarn__batcher_largest(batcher, &source_rows, &target_rows, &most);
  assert_int_equal(source_rows, 0);
  assert_int_equal(most, 7);
  for (int64_t b = tarn__batcher_batches(batcher); b > 0; b--) {
    tarn__batch batch;
    tarn__batcher_next(batcher, &batch);
    assert_true(batch.target.sentences <= 7 && batch.target.rows <= target_rows);
    assert_int_equal(batch.source.rows, 0);
    for (int64_t s = 0; s < batch.target.sentences; s++) {
      int32_t first = batch.target.offsets[s], last = batch.target.offsets[s + 1] - 1;
      assert_int_equal(batch.target.ids[first], 2);
      assert_int_equal(batch.targets[last], 2);
    }
    sentences += batch.target.sentences;
    if (batch.target.sentences > largest) largest = batch.target.sentences;
  }
  assert_int_equal(sentences, 120);
  assert_int_equal(largest, 7);
  tarn__batcher_close(&batcher);
  tarn__shard_close(&shard);
}

static void pieces_give_the_bits_of_the_whole(void **state) {
  (void)state;
  static const char *const precisions[] = {"train.precision=fp32", "train.precision=bf16"};
  for (size_t i = 0; i < 2; i++) {
    char whole[32];
    char pieces[32];
    snprintf(whole, sizeof whole, "whole%zu", i);
    snprintf(pieces, sizeof pieces, "pieces%zu", i);
    run_through(whole, &precisions[i], 1);
    run_in_pieces(pieces, 3, &precisions[i], 1);
    assert_same_run(whole, pieces);
  }
}

// Recurrent layers one on the other, without residuals, norms and FFNs.
static void plain_recurrent_stacks_are_trained(void **state) {
  (void)state;
  static const char *const stack[] = {"decoder.layers=G*2",      "kinds.G.mixer=lstm",   "kinds.G.hidden=16",
                                      "kinds.G.residual=no",     "model.positions=none", "model.embedding_std=1",
                                      "model.embedding_scale=no"};
  run_through("recurrent", stack, 7);
  run_in_pieces("recurrent_pieces", 5, stack, 7);
  assert_same_run("recurrent", "recurrent_pieces");
  tarn__checkpoint *c;
  assert_int_equal(tarn__checkpoint_open(&c, "recurrent", TARN__F32), TARN_STATUS_OK);
  for (size_t i = 0; i < c->model->param_count; i++) {
    assert_null(strstr(c->model->params[i]->name, "norm"));
    assert_null(strstr(c->model->params[i]->name, "ffn"));
  }
  tarn__checkpoint_close(&c);
}

// There is no cross-attention, and the bias has moved from its zero.
static void the_model_has_what_it_needs(void **state) {
  (void)state;
  run_through("looked_at", NULL, 0);
  tarn__checkpoint *c;
  assert_int_equal(tarn__checkpoint_open(&c, "looked_at", TARN__F32), TARN_STATUS_OK);
  bool bias = false;
  for (size_t i = 0; i < c->model->param_count; i++) {
    const tarn__param *param = c->model->params[i];
    assert_null(strstr(param->name, "cross_attn"));
    assert_null(strstr(param->name, "encoder"));
    if (strcmp(param->name, "output.bias") == 0) bias = ((const float *)param->value)[5] != 0.0f;
  }
  assert_true(bias);
  tarn__checkpoint_close(&c);
}

static void expect(tarn_status status, tarn_status expected, const char *words) {
  assert_int_equal(status, expected);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
}

static void texts_and_pairs_are_kept_apart(void **state) {
  (void)state;
  const char *pairs = "data.train=train";
  const char *text = "data.train=text";
  expect(tiny_train("tiny.yaml", "wrong", &pairs, 1, NULL, NULL, NULL), TARN_STATUS_DATA, "tarn prepare --text");
  expect(tiny_train("pairs.yaml", "wrong", &text, 1, NULL, NULL, NULL), TARN_STATUS_DATA, "--source");
  run_through("speechless", NULL, 0);
  tarn_translator_options options;
  tarn_translator_default(&options);
  tarn_translator *translator;
  expect(tarn_translator_open(&translator, "speechless", &options), TARN_STATUS_USAGE, "does not translate");
  assert_null(translator);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_text_is_prepared_and_read, open_all, sandbox_close),
      cmocka_unit_test_setup_teardown(batches_keep_to_both_limits, open_all, sandbox_close),
      cmocka_unit_test_setup_teardown(pieces_give_the_bits_of_the_whole, open_all, sandbox_close),
      cmocka_unit_test_setup_teardown(plain_recurrent_stacks_are_trained, open_all, sandbox_close),
      cmocka_unit_test_setup_teardown(the_model_has_what_it_needs, open_all, sandbox_close),
      cmocka_unit_test_setup_teardown(texts_and_pairs_are_kept_apart, open_all, sandbox_close),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
