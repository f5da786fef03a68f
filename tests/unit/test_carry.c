// Recurrent states that are carried from window to window of a text (train.carry_state): the order of tracks,
// validation over any number of windows, and trainings that are stopped, recomputed, or run on another device.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/batch.h"
#include "same_run.h"
#include "shadow_device.h"

static const char carried_config[] =
    "model: { d_model: 16, positions: none, dropout: 0.1, max_length: 4000 }\n"
    "decoder: { layers: C A E G }\n"
    "kinds:\n"
    "  C: { mixer: lstm, ffn: 0 }\n"
    "  A: { mixer: attention, heads: 2, ffn: 32 }\n"
    "  E: { mixer: esn, hidden: 20, frozen: yes, ffn: 0 }\n"
    "  G: { mixer: gru, ffn: 0 }\n"
    "data: { vocab: vocab, train: stream, valid: stream.valid }\n"
    "train: { carry_state: yes, max_updates: 12, lr: 0.01, warmup: 4, max_tokens: 60, log_every: 2, save_every: 5,\n"
    "         keep_last: 2, average: 2, threads: 2, clip_norm: 1 }\n"
    "valid: { every: 4 }\n";

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

enum { WINDOW = 5, WINDOWS = 23 };

// What each sentence of a batch reads first is what the one that it goes on with predicted last.
static void tracks_go_on(void **state) {
  (void)state;
  tarn__shard shard = {0};
  make_stream_shard("short", WINDOW * WINDOWS - 2, WINDOW, TINY_VOCAB, 3);
  must(tarn__shard_open(&shard, "short"));
  for (int64_t together = 1; together <= 3; together++) {
    tarn__batcher_options options;
    tarn__batcher_default(&options);
    options.max_tokens = 3 * WINDOW + 1;
    options.tracks = together;
    tarn__batcher *batcher;
    must(tarn__batcher_open(&batcher, &shard, &options));
    assert_int_equal(tarn__batcher_tracks(batcher), 3);
    const int64_t batches = tarn__batcher_batches(batcher);
    int64_t pair[32][3], sentences[32], seen = 0;
    assert_in_range(batches, 8, 31);
    for (int epoch = 0; epoch < 2; epoch++)
      for (int64_t b = 0; b < batches; b++) {
        tarn__batch batch;
        tarn__batcher_next(batcher, &batch);
        sentences[b] = batch.target.sentences;
        seen += sentences[b];
        for (int64_t s = 0; s < sentences[b]; s++) {
          pair[b][s] = batch.index[s];
          if (b >= together) assert_int_equal(pair[b][s], pair[b - together][s] + 1);
        }
        assert_true(b < together || sentences[b] <= sentences[b - together]);
      }
    assert_int_equal(seen, 2 * WINDOWS);
    assert_int_equal(pair[0][0], 0);
    // The position of a batch is found again.
    must(tarn__batcher_seek(batcher, 4, 5));
    tarn__batch batch;
    tarn__batcher_next(batcher, &batch);
    assert_int_equal(batch.index[0], pair[5][0]);
    tarn__batcher_close(&batcher);
  }
  tarn__shard_close(&shard);
}

// Of the untrained model.
static double valid_nll(const char *run, const char *const *overrides, size_t count) {
  run_through(run, overrides, count);
  json_t *log = read_log(run), *first = json_array_get(log, 0);
  assert_int_equal(json_integer_value(json_object_get(first, "step")), 0);
  const double nll = json_number_value(json_object_get(first, "valid_nll"));
  assert_true(nll > 0);
  json_decref(log);
  return nll;
}

// Validation in windows that go on is validation of one long sentence.
static void windows_see_all_before_them(void **state) {
  (void)state;
  make_stream_shard("whole", 400, 400, TINY_VOCAB, 8);
  make_stream_shard("pieces", 400, 7, TINY_VOCAB, 8);
  const char *keys[] = {"data.valid=whole",     "valid.at_start=yes",    "train.max_updates=1",
                        "decoder.layers=C E G", "train.carry_state=yes", "train.average=0"};
  const double whole = valid_nll("whole-run", keys, 6);
  keys[0] = "data.valid=pieces";
  const double pieces = valid_nll("pieces-run", keys, 6);
  keys[4] = "train.carry_state=no";
  const double apart = valid_nll("apart-run", keys, 6);
  assert_true(fabs(pieces - whole) <= 1e-6 * whole);
  assert_true(fabs(apart - whole) > 1e-4 * whole);
}

static void a_stop_changes_no_bit(void **state) {
  (void)state;
  static const char *const keys[][2] = {{"train.precision=fp32", "train.accumulate=1"},
                                        {"train.precision=bf16", "train.accumulate=3"},
                                        {"train.clip_norm=0", "train.max_sentences=4"}};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) check_stops(i, 3, keys[i], 2);
}

// What the backward pass computes again begins with the states that the forward pass began with.
static void recomputation_changes_no_bit(void **state) {
  (void)state;
  const char *keys[] = {"train.recompute=none"};
  run_through("kept", keys, 1);
  keys[0] = "train.recompute=block";
  run_through("again", keys, 1);
  tarn__checkpoint_file a, b;
  must(tarn__checkpoint_file_open(&a, "kept/" TARN__CHECKPOINT_LAST));
  must(tarn__checkpoint_file_open(&b, "again/" TARN__CHECKPOINT_LAST));
  int carried = 0;
  for (size_t i = 0; i < a.tensors.count; i++) {
    const tarn__stored *tensor = &a.tensors.tensors[i];
    carried += strncmp(tensor->name, "carried.", 8) == 0;
    assert_memory_equal(tensor->data, b.tensors.tensors[i].data, tensor->bytes);
  }
  assert_int_equal(carried, 3);
  tarn__checkpoint_file_close(&a);
  tarn__checkpoint_file_close(&b);
}

static void another_device_has_the_same_bits(void **state) {
  (void)state;
  const char *keys[] = {"train.accumulate=2", "train.precision=bf16"};
  run_through("cpu", keys, 2);
  tarn__device_use(&shadow_device);
  run_in_pieces("shadow", 5, keys, 2);
  tarn__device_use(NULL);
  assert_int_equal(shadow.now, 0);
  assert_same_run("cpu", "shadow");
}

// Of tarn plan and of a training alike: of the LSTM, the ESN and the GRU, before and behind an update of three batches,
// and before and behind a batch of the set with the most tracks.
static void plans_count_the_states(void **state) {
  (void)state;
  enum { TRACKS = 5, SET_TRACKS = 1500 / 2 / 64 };
  const size_t track = 2 * (32 + 20 + 16) * sizeof(float);
  size_t program[2], validation[2], order = 0;
  tarn__shard shard = {0};
  make_stream_shard("stream.narrow", 1500, 2, TINY_VOCAB, 6);
  for (int carry = 0; carry < 2; carry++) {
    const char *keys[] = {"train.accumulate=3", "sets.narrow.data=stream.narrow", "train.average=0",
                          carry ? "train.carry_state=yes" : "train.carry_state=no"};
    tarn_config *config;
    tarn_plan plan;
    must(tarn_config_read(&config, "tiny.yaml", keys, 4));
    must(tarn_plan_make(&plan, config, &(tarn_plan_options){.threads = 1}));
    tarn_train *train = tiny_open_train("tiny.yaml", carry ? "planned" : "planned-apart", keys, 4);
    if (!carry) {
      tarn__batcher_options options;
      tarn__batcher_default(&options);
      options.max_tokens = config->train.max_tokens;
      must(tarn__shard_open(&shard, config->data.train));
      order = tarn__batcher_bytes(&shard, &options);
      options.shuffle = false;
      tarn__shard_close(&shard);
      must(tarn__shard_open(&shard, config->data.valid));
      order += tarn__batcher_bytes(&shard, &options);
      tarn__shard_close(&shard);
      must(tarn__shard_open(&shard, "stream.narrow"));
      order += tarn__batcher_bytes(&shard, &options);
      tarn__shard_close(&shard);
      assert_true(order > 0);
    }
    assert_int_equal(plan.program_bytes, tarn_train_plan(train)->program_bytes);
    assert_int_equal(plan.validation_bytes, tarn_train_plan(train)->validation_bytes);
    program[carry] = plan.program_bytes;
    validation[carry] = plan.validation_bytes;
    tarn_train_close(&train);
    tarn_plan_close(&plan);
    tarn_config_close(&config);
  }
  // What describes the tensors of states in the graph comes on top. The order of tracks takes no memory, in
  // the training and in the sets.
  assert_in_range(program[1] + order - program[0], 3 * TRACKS * track, 3 * TRACKS * track + 4096);
  assert_int_equal(validation[1] - validation[0], SET_TRACKS * track);
}

static void must_refuse(const char *override, const char *more, const char *words) {
  const char *keys[] = {override, more};
  assert_int_not_equal(tiny_train("tiny.yaml", "refused", keys, more ? 2 : 1, NULL, NULL, NULL), TARN_STATUS_OK);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
}

static void what_cannot_be_is_refused(void **state) {
  (void)state;
  make_text_shard("lines", 40, TINY_VOCAB, 3);
  must_refuse("data.train=lines", NULL, "lines.tarn: its rows are no windows of one long text");
  must_refuse("data.valid=lines", NULL, "tarn prepare --stream");
  must_refuse("decoder.layers=A", NULL, "train.carry_state: no layer has a state to carry");
  must_refuse("decoder.layerdrop=0.1", NULL, "decoder.layerdrop");
  must_refuse("train.accumulate=60000", NULL, "cannot be read in tracks by 60000 batches");
  must_refuse("model.embeddings=all", "encoder.layers=A", "train.carry_state: states are carried through");
}

static int setup(void **state) {
  if (tiny_open(state) != 0) return -1;
  // 31 windows, which 5 tracks read in 7 updates: 12 go beyond the end of an epoch.
  make_stream_shard("stream", 337, 11, TINY_VOCAB, 5);
  make_stream_shard("stream.valid", 1500, 11, TINY_VOCAB, 6);
  sandbox_write("tiny.yaml", carried_config, strlen(carried_config));
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tracks_go_on),
                                     cmocka_unit_test(windows_see_all_before_them),
                                     cmocka_unit_test(a_stop_changes_no_bit),
                                     cmocka_unit_test(recomputation_changes_no_bit),
                                     cmocka_unit_test(another_device_has_the_same_bits),
                                     cmocka_unit_test(plans_count_the_states),
                                     cmocka_unit_test(what_cannot_be_is_refused)};
  return cmocka_run_group_tests(tests, setup, sandbox_close);
}
