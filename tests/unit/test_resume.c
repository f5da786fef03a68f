// Training: a resumed run gives the bits and the log of one that ran through, equal seeds give equal bits, frozen
// weights stay, and what goes wrong leaves the last good checkpoint.
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
#include "same_run.h"
#include "sample_step.h"
#include "store/checkpoint.h"
#include "tarn/process.h"
#include "tiny_run.h"
#include "train/trainer.h"

static void pieces_give_the_bits_of_the_whole(void **state) {
  (void)state;
  static const char *const variants[][3] = {{"train.precision=fp32", "train.accumulate=1", "train.moments=fp32"},
                                            {"train.precision=fp32", "train.accumulate=3", "train.moments=fp32"},
                                            {"train.precision=bf16", "train.accumulate=1", "train.moments=fp32"},
                                            {"train.precision=bf16", "train.accumulate=3", "train.moments=fp32"},
                                            {"train.precision=bf16", "train.accumulate=1", "train.moments=fp8"},
                                            {"train.precision=fp32", "train.accumulate=3", "train.moments=bf16"}};
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i += (size_t)sample_step(2)) {
    char whole[32];
    char pieces[32];
    snprintf(whole, sizeof whole, "whole%zu", i);
    snprintf(pieces, sizeof pieces, "pieces%zu", i);
    run_through(whole, variants[i], 3);
    // 1: between any two updates; 3 and 4 fall on validations, and 5 on checkpoints, in turn.
    run_in_pieces(pieces, i == 0 ? 1 : 2 + (int64_t)i % 4, variants[i], 3);
    assert_same_run(whole, pieces);
  }
}

// Recomputation changes no bit, so a run may go on with another choice.
static void recomputation_may_change(void **state) {
  (void)state;
  const char *const overrides[] = {"train.precision=bf16", "train.accumulate=2", "train.recompute=block"};
  stopper s = {.every = 5};
  run_through("keeping", overrides, 2);
  tarn_status status = tiny_train("tiny.yaml", "again", overrides, 2, stop_now_and_then, &s, &s.stop);
  assert_int_equal(status, TARN_STATUS_INTERRUPTED);
  resume_until_done("again", &s, status, &overrides[2], 1);
  assert_same_run("keeping", "again");
}

static void equal_seeds_give_equal_bits(void **state) {
  (void)state;
  const char *other[] = {"train.seed=2"};
  run_through("first", NULL, 0);
  run_through("second", NULL, 0);
  run_through("third", other, 1);
  assert_same_run("first", "second");
  json_t *x = read_log("first");
  json_t *y = read_log("third");
  assert_false(json_equal(x, y));
  json_decref(x);
  json_decref(y);
}

// Updates that a line of the log tells of, and the last line's step.
static int64_t logged(const char *run, int *lines) {
  json_t *log = read_log(run);
  int64_t step = 0;
  *lines = 0;
  for (size_t i = 0; i < json_array_size(log); i++) {
    const json_t *record = json_array_get(log, i);
    if (strcmp(json_string_value(json_object_get(record, "kind")), "train") != 0) continue;
    step = json_integer_value(json_object_get(record, "step"));
    ++*lines;
  }
  json_decref(log);
  return step;
}

// An end between two lines of the log has one of its own, whether a limit or patience ends the training.
static void the_last_updates_are_logged(void **state) {
  (void)state;
  static const char *const limit[] = {"train.log_every=5", "valid.every=1"}, *const patience[] = {"train.log_every=5",
                                                                                                  "train.patience=1",
                                                                                                  "train.lr=1e-30",
                                                                                                  "valid.every=3"};
  int lines;
  run_through("ended", limit, 2);
  assert_int_equal(logged("ended", &lines), 12);
  assert_int_equal(lines, 3);
  run_in_pieces("ended_pieces", 4, limit, 2);
  assert_same_log("ended", "ended_pieces");
  run_through("patient", patience, 4);
  const int64_t end = logged("patient", &lines);
  assert_true(end < 12 && end % 5 != 0 && end % 3 == 0);
}

// Those that got no token of all updates of a line, which a stop between two lines does not change.
static void unused_experts_are_those_of_all_updates(void **state) {
  (void)state;
  static const char *const each[] = {MANY_EXPERTS, "train.log_every=1"}, *const six[] = {MANY_EXPERTS,
                                                                                         "train.log_every=6"};
  run_through("experts-each", each, 3);
  run_through("experts-six", six, 3);
  for (int64_t end = 6; end <= 12; end += 6) {
    const int64_t together = unused_experts("experts-six", end);
    assert_true(together >= 0);
    for (int64_t step = end - 5; step <= end; step++) assert_true(unused_experts("experts-each", step) > together);
  }
  static const char *const two[] = {MANY_EXPERTS, "train.log_every=2"};
  run_through("experts-two", two, 3);
  run_in_pieces("experts-pieces", 3, two, 3);
  assert_same_log("experts-two", "experts-pieces");
}

static void frozen_weights_stay_and_others_move(void **state) {
  (void)state;
  run_through("moving", NULL, 0);
  tarn__checkpoint *c;
  assert_int_equal(tarn__checkpoint_open(&c, "moving", TARN__F32), TARN_STATUS_OK);
  int frozen = 0;
  for (size_t i = 0; i < c->model->param_count; i++) {
    const tarn__param *param = c->model->params[i];
    size_t count = (size_t)(param->rows * param->cols);
    float *first = malloc(count * sizeof *first);
    assert_non_null(first);
    assert_int_equal(tarn__param_initialise(param, c->model->seed, first), TARN_STATUS_OK);
    bool same = memcmp(first, param->value, count * sizeof *first) == 0;
    if (same == param->trained) fail_msg("%s: %s", param->name, same ? "did not move" : "moved");
    frozen += !param->trained;
    free(first);
  }
  assert_true(frozen > 5);
  tarn__checkpoint_close(&c);
}

// The values that training computes with, as they are in memory.
static uint64_t hash_frozen(const tarn_train *train) {
  uint64_t hash = 0;
  for (size_t i = 0; i < train->model->param_count; i++) {
    const tarn__param *param = train->model->params[i];
    if (param->trained) continue;
    assert_null(param->training.grad);
    assert_null(param->training.master);
    assert_null(param->training.moment1);
    size_t bytes = (size_t)(param->rows * param->cols) * tarn__dtype_size(param->dtype);
    hash = tarn__hash64(param->value, bytes, hash);
  }
  return hash;
}

static void frozen_weights_stay_in_memory(void **state) {
  (void)state;
  const char *overrides[] = {"train.precision=bf16", "train.weight_decay=0.1"};
  tarn_train *train = tiny_open_train("tiny.yaml", "memory", overrides, 2);
  tarn_train_result result;
  uint64_t before = hash_frozen(train);
  assert_int_equal(tarn_train_run(train, &result), TARN_STATUS_OK);
  assert_true(hash_frozen(train) == before);
  assert_int_equal(result.update, 12);
  assert_int_equal(result.end, TARN_TRAIN_END_UPDATES);
  tarn_train_close(&train);
}

// From the second update on every step must do with the memory that it has.
static void forbid_memory(void *user, const tarn_train_event *event) {
  (void)user;
  if (event->kind == TARN_TRAIN_EVENT_UPDATE) tarn__memory_fail_after(event->update < 11 ? 1 : 0);
}

static void steps_take_no_memory(void **state) {
  (void)state;
  const char *overrides[] = {"train.log_every=100", "train.save_every=100", "valid.every=100", "train.accumulate=2"};
  tarn_status status = tiny_train("tiny.yaml", "thrifty", overrides, 4, forbid_memory, NULL, NULL);
  tarn__memory_fail_after(0);
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static void poison(void *user, const tarn_train_event *event) {
  tarn_train *train = *(tarn_train **)user;
  if (event->kind != TARN_TRAIN_EVENT_UPDATE || event->update != 7) return;
  for (size_t i = 0; i < train->model->param_count; i++) {
    tarn__param *param = train->model->params[i];
    if (param->trained && param->rows > 1) param->training.master[3] = NAN;
  }
}

static void stops_at_numbers_that_are_none(void **state) {
  (void)state;
  tarn_train *train = tiny_open_train("tiny.yaml", "nan", NULL, 0);
  tarn_train_result result;
  train->on_event = poison;
  train->user = &train;
  assert_int_equal(tarn_train_run(train, &result), TARN_STATUS_NUMERIC);
  assert_non_null(strstr(tarn_error_message(), "update 8"));
  assert_non_null(strstr(tarn_error_message(), TARN__CHECKPOINT_LAST));
  tarn_train_close(&train);
  // The checkpoint of update 5 is whole, and the run goes on from it as if nothing had been.
  tarn__checkpoint_file file;
  assert_int_equal(tarn__checkpoint_file_open(&file, "nan/" TARN__CHECKPOINT_LAST), TARN_STATUS_OK);
  assert_int_equal(file.update, 5);
  tarn__checkpoint_file_close(&file);
  assert_int_equal(tiny_train(NULL, "nan", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
  run_through("healthy", NULL, 0);
  assert_same_run("nan", "healthy");
}

// From the gain of the last norm on, all that the decoder learns from is large, but finite.
static void swell(void *user, const tarn_train_event *event) {
  tarn_train *train = *(tarn_train **)user;
  if (event->kind != TARN_TRAIN_EVENT_UPDATE || event->update != 7) return;
  tarn__param *gain = NULL;
  for (size_t i = 0; i < train->model->param_count; i++)
    if (strstr(train->model->params[i]->name, ".gain")) gain = train->model->params[i];
  assert_non_null(gain);
  for (int64_t i = 0; i < gain->cols; i++) gain->training.master[i] *= 1e20f;
}

// The square of a gradient of 1e20 is infinite in fp32: its weight would never move again.
static void stops_at_gradients_too_large(void **state) {
  (void)state;
  tarn_train *train = tiny_open_train("tiny.yaml", "large", (const char *const[]){"train.clip_norm=0"}, 1);
  tarn_train_result result;
  train->on_event = swell;
  train->user = &train;
  assert_int_equal(tarn_train_run(train, &result), TARN_STATUS_NUMERIC);
  assert_non_null(strstr(tarn_error_message(), "the norm of the gradients is "));
  assert_non_null(strstr(tarn_error_message(), "(expected less than 1e+18, whose square fp32 holds) at update 8"));
  tarn_train_close(&train);
  // Clipped to a norm of 1 they pass; that the model is lost is seen when it is validated.
  train = tiny_open_train("tiny.yaml", "clipped", NULL, 0);
  train->on_event = swell;
  train->user = &train;
  assert_int_equal(tarn_train_run(train, &result), TARN_STATUS_NUMERIC);
  if (!strstr(tarn_error_message(), "the training has diverged: the validation loss is "))
    fail_msg("%s", tarn_error_message());
  tarn_train_close(&train);
}

static void only_one_process_at_a_time(void **state) {
  (void)state;
  tarn_train *train = tiny_open_train("tiny.yaml", "busy", NULL, 0);
  assert_int_equal(tiny_train("tiny.yaml", "busy", NULL, 0, NULL, NULL, NULL), TARN_STATUS_BUSY);
  tarn_train_close(&train);
  assert_int_equal(tiny_train("tiny.yaml", "busy", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
}

static void refuse(const char *config, const char *run, const char *override, tarn_status expected, const char *words) {
  tarn_status status = tiny_train(config, run, &override, override ? 1 : 0, NULL, NULL, NULL);
  assert_int_equal(status, expected);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
}

static void refuses_what_would_mix_runs(void **state) {
  (void)state;
  run_through("run", NULL, 0);
  refuse("tiny.yaml", "run", NULL, TARN_STATUS_USAGE, "--resume");
  refuse("tiny.yaml", "run", "train.lr=0.5", TARN_STATUS_USAGE, "another configuration");
  refuse(NULL, "run", "train.lr=0.5", TARN_STATUS_USAGE, "train.lr");
  // The file has moments of one kind, and rounding them, or not any more, would make another training.
  refuse(NULL, "run", "train.moments=bf16", TARN_STATUS_USAGE, "train.moments cannot change");
  refuse(NULL, "run", "model.d_model=8", TARN_STATUS_USAGE, "model.d_model");
  refuse(NULL, "none", NULL, TARN_STATUS_USAGE, "no run to resume");
  make_shard("other", 120, TINY_VOCAB, TINY_VOCAB, 9);
  refuse(NULL, "run", "data.train=other", TARN_STATUS_DATA, "other data");
  make_shard("small", 20, TINY_VOCAB - 1, TINY_VOCAB, 9);
  refuse("tiny.yaml", "new", "data.train=small", TARN_STATUS_DATA, "another vocabulary");
  refuse("tiny.yaml", "new", "data.valid=small", TARN_STATUS_DATA, "another vocabulary");
  // Nothing of that has harmed the run, which goes on when its limit is raised.
  const char *more[] = {"train.max_updates=14"};
  assert_int_equal(tiny_train(NULL, "run", more, 1, NULL, NULL, NULL), TARN_STATUS_OK);
  tarn__checkpoint_file file;
  assert_int_equal(tarn__checkpoint_file_open(&file, "run/" TARN__CHECKPOINT_LAST), TARN_STATUS_OK);
  assert_int_equal(file.update, 14);
  tarn__checkpoint_file_close(&file);
}

// The scores of one curve are of the same sentences.
static void refuses_other_validation_data(void **state) {
  (void)state;
  const char *early[] = {"train.max_updates=2", "valid.every=100", "valid.max_sentences=3"};
  stopper s = {.every = 1};
  make_shard("valid2", 12, TINY_VOCAB, TINY_VOCAB, 16);
  // Before the first validation there is nothing to compare with.
  assert_int_equal(tiny_train("tiny.yaml", "curve", early, 3, stop_now_and_then, &s, &s.stop), TARN_STATUS_INTERRUPTED);
  const char *other = "data.valid=valid2";
  assert_int_equal(tiny_train(NULL, "curve", &other, 1, NULL, NULL, NULL), TARN_STATUS_OK);
  const char *more[] = {"train.max_updates=4", "data.valid=valid"};
  assert_int_equal(tiny_train(NULL, "curve", more, 2, NULL, NULL, NULL), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "was validated on other data than valid"));
  refuse(NULL, "curve", "data.valid=", TARN_STATUS_DATA, "without data.valid");
  assert_int_equal(tiny_train(NULL, "curve", more, 1, NULL, NULL, NULL), TARN_STATUS_OK);
  // The validation of the untrained model is one too.
  const char *start = "valid.at_start=yes";
  s = (stopper){.every = 1};
  assert_int_equal(tiny_train("tiny.yaml", "start", &start, 1, stop_now_and_then, &s, &s.stop),
                   TARN_STATUS_INTERRUPTED);
  refuse(NULL, "start", "data.valid=valid2", TARN_STATUS_DATA, "was validated on other data than valid2");
}

// Takes a text out of a checkpoint's metadata, as if an older version had written it.
static void remove_text(const char *path, const char *key) {
  tarn__safetensors file;
  tarn__stored_text texts[64];
  size_t count = 0;
  assert_int_equal(tarn__safetensors_open(&file, path), TARN_STATUS_OK);
  assert_true(file.text_count < 64);
  for (size_t i = 0; i < file.text_count; i++)
    if (strcmp(file.texts[i].key, key) != 0) texts[count++] = file.texts[i];
  assert_int_equal(count + 1, file.text_count);
  assert_int_equal(tarn__checkpoint_write(path, file.tensors, file.count, texts, count), TARN_STATUS_OK);
  tarn__safetensors_close(&file);
}

static void older_checkpoints_do_not_name_their_validation_data(void **state) {
  (void)state;
  const char *overrides[] = {"train.max_updates=4", "data.valid=valid"};
  run_through("older", overrides, 2);
  remove_text("older/" TARN__CHECKPOINT_LAST, "tarn.data.valid");
  overrides[0] = "train.max_updates=8";
  assert_int_equal(tiny_train(NULL, "older", overrides, 2, NULL, NULL, NULL), TARN_STATUS_OK);
}

static void assert_average(const char *run, bool there) {
  char path[256];
  snprintf(path, sizeof path, "%s/" TARN__CHECKPOINT_AVERAGE, run);
  assert_int_equal(tarn__file_exists(path), there);
}

// The average of an earlier end is not the result of a run that went on.
static void an_average_does_not_outlive_its_end(void **state) {
  (void)state;
  run_through("mean", NULL, 0);
  assert_average("mean", true);
  // At the limit already: nothing is trained, and the average is that of the run.
  assert_int_equal(tiny_train(NULL, "mean", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
  assert_average("mean", true);
  const char *on[] = {"train.max_updates=15"};
  stopper s = {.every = 14};
  assert_int_equal(tiny_train(NULL, "mean", on, 1, stop_now_and_then, &s, &s.stop), TARN_STATUS_INTERRUPTED);
  assert_average("mean", false);
  assert_int_equal(tiny_train(NULL, "mean", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
  assert_average("mean", true);
  const char *off[] = {"train.average=0"};
  assert_int_equal(tiny_train(NULL, "mean", off, 1, NULL, NULL, NULL), TARN_STATUS_OK);
  assert_average("mean", false);
}

// Every file of a run is written under another name first, and a kill can come at each.
static void removes_what_was_half_written(void **state) {
  (void)state;
  static const char *const names[] = {"config.yaml",
                                      "log.jsonl",
                                      "result.json",
                                      TARN__CHECKPOINT_LAST,
                                      TARN__CHECKPOINT_AVERAGE,
                                      "frozen_cache.bin",
                                      "checkpoint_7.safetensors"};
  static const char *const numbers[] = {"123", "1.45"};
  static const char *const others[] = {"notes.tmp.12",       "config.yaml.tmp.old",   "checkpoint_x.safetensors.tmp.3",
                                       "config.yaml.tmp.1.", "config.yaml.tmp.1.2.3", "config.yaml.tmp..1"};
  enum { FILES = sizeof names / sizeof *names, NUMBERS = sizeof numbers / sizeof *numbers };
  char path[256];
  run_through("torn", NULL, 0);
  for (size_t i = 0; i < FILES * NUMBERS; i++) {
    snprintf(path, sizeof path, "torn/%s.tmp.%s", names[i % FILES], numbers[i / FILES]);
    sandbox_write(path, "half", 4);
  }
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    join(path, "torn", others[i]);
    sandbox_write(path, "whole", 5);
  }
  assert_int_equal(tiny_train(NULL, "torn", NULL, 0, NULL, NULL, NULL), TARN_STATUS_OK);
  for (size_t i = 0; i < FILES * NUMBERS; i++) {
    snprintf(path, sizeof path, "torn/%s.tmp.%s", names[i % FILES], numbers[i / FILES]);
    if (tarn__file_exists(path)) fail_msg("%s is still there", path);
  }
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    join(path, "torn", others[i]);
    assert_true(tarn__file_exists(path));
  }
}

static char warned[1024];

static void note_warning(void *user, tarn_log_level level, const char *text) {
  (void)user;
  size_t used = strlen(warned);
  if (level == TARN_LOG_WARNING) snprintf(warned + used, sizeof warned - used, "%s\n", text);
}

static void tells_what_is_too_long(void **state) {
  (void)state;
  const char *overrides[] = {"model.max_length=30", "train.max_updates=1"};
  tarn_log_set(note_warning, NULL);
  run_through("long", overrides, 2);
  tarn_log_set(NULL, NULL);
  assert_non_null(strstr(warned, "train.tarn: "));
  const char *valid = strstr(warned, "valid.tarn: ");
  assert_non_null(valid);
  assert_non_null(strstr(valid,
                         " of 12 pairs are left out of the validation loss, because a side is longer than "
                         "model.max_length (30 tokens)"));
}

static void stops_when_patience_ends(void **state) {
  (void)state;
  const char *overrides[] = {"train.patience=2", "valid.every=1", "train.max_updates=0", "train.max_epochs=50",
                             "valid.bleu=no",    "train.lr=1",    "train.average=0",     "train.save_every=1000"};
  tarn_train *train = tiny_open_train("tiny.yaml", "patience", overrides, 8);
  tarn_train_result result;
  assert_int_equal(tarn_train_run(train, &result), TARN_STATUS_OK);
  assert_int_equal(result.end, TARN_TRAIN_END_PATIENCE);
  assert_int_equal(result.update, result.best_update + 2);
  tarn_train_close(&train);
}

static void lists_a_run_for_every_seed(void **state) {
  (void)state;
  const char *overrides[] = {"train.seeds=[4,7]", "train.max_updates=2", "train.average=0"};
  tarn_train_options options;
  tarn_train_default(&options);
  options.config = "tiny.yaml";
  options.run = "seeds";
  options.overrides = overrides;
  options.override_count = 3;
  tarn_train_list *list;
  assert_int_equal(tarn_train_list_open(&list, &options), TARN_STATUS_OK);
  assert_int_equal(list->count, 2);
  assert_int_equal(list->seeds[1], 7);
  assert_string_equal(list->runs[1].run, "seeds/seed-7");
  tarn_train *train;
  assert_int_equal(tarn_train_open(&train, &list->runs[0]), TARN_STATUS_OK);
  assert_int_equal(tarn_train_config(train)->train.seed, 4);
  tarn_train_close(&train);
  tarn_train_list_close(&list);
  assert_int_equal(tarn_train_list_open(&list, &options), TARN_STATUS_USAGE);
  // Seed 4 goes on, seed 7 begins.
  options.config = NULL;
  options.resume = true;
  options.override_count = 0;
  assert_int_equal(tarn_train_list_open(&list, &options), TARN_STATUS_OK);
  assert_true(list->runs[0].resume);
  assert_false(list->runs[1].resume);
  for (size_t i = 0; i < 2; i++) {
    tarn_train_result result;
    if (tarn_train_open(&train, &list->runs[i]) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
    assert_int_equal(tarn_train_config(train)->train.seed, list->seeds[i]);
    assert_int_equal(tarn_train_run(train, &result), TARN_STATUS_OK);
    assert_int_equal(result.update, 2);
    tarn_train_close(&train);
  }
  tarn_train_list_close(&list);
}

static tarn_status open_list(tarn_train_list **list, const char *config, const char *run, const char *const *overrides,
                             size_t count) {
  static tarn_train_options options;
  tarn_train_default(&options);
  options.config = config;
  options.resume = config == NULL;
  options.run = run;
  options.overrides = overrides;
  options.override_count = count;
  return tarn_train_list_open(list, &options);
}

static int64_t limit_of(const char *path) {
  tarn_config *config;
  if (tarn_config_read(&config, path, NULL, 0) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
  int64_t updates = config->train.max_updates;
  tarn_config_close(&config);
  return updates;
}

// The limit that stands in the description of all seeds and in those of the first ones.
static void assert_limits(const char *run, int begun, int64_t expected) {
  char path[64];
  snprintf(path, sizeof path, "%s/config.yaml", run);
  assert_int_equal(limit_of(path), expected);
  for (int seed = 1; seed <= begun; seed++) {
    snprintf(path, sizeof path, "%s/seed-%d/config.yaml", run, seed);
    assert_int_equal(limit_of(path), expected);
  }
}

// Seeds that one mean is taken of must not differ in anything else, whenever their turn comes.
static void changes_hold_for_every_seed(void **state) {
  (void)state;
  const char *overrides[] = {"train.seeds=[1,2,3]", "train.max_updates=2", "train.average=0"};
  tarn_train_list *list;
  tarn_train *train;
  tarn_train_result result;
  assert_int_equal(open_list(&list, "tiny.yaml", "all", overrides, 3), TARN_STATUS_OK);
  tarn_train_list_close(&list);
  // None has begun, and a key of the course is refused all the same, as those are that would change the seeds.
  const char *course[] = {"train.lr=0.5"};
  assert_int_equal(open_list(&list, NULL, "all", course, 1), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "train.lr cannot change"));
  assert_int_equal(open_list(&list, NULL, "all", overrides, 1), TARN_STATUS_USAGE);
  assert_int_equal(open_list(&list, NULL, "all/", NULL, 0), TARN_STATUS_OK);
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(tarn_train_open(&train, &list->runs[i]), TARN_STATUS_OK);
    assert_int_equal(tarn_train_run(train, &result), TARN_STATUS_OK);
    tarn_train_close(&train);
  }
  tarn_train_list_close(&list);
  // The first one is stopped on its way to a higher limit, which the others know of already.
  const char *more[] = {"train.max_updates=4"};
  assert_int_equal(open_list(&list, NULL, "all/", more, 1), TARN_STATUS_OK);
  tarn_train_options first = list->runs[0];
  stopper s = {.every = 3};
  first.on_event = stop_now_and_then;
  first.user = &s;
  first.stop = &s.stop;
  assert_int_equal(tarn_train_open(&train, &first), TARN_STATUS_OK);
  assert_int_equal(tarn_train_run(train, &result), TARN_STATUS_INTERRUPTED);
  assert_string_equal(strstr(tarn_error_message(), "go on with"), "go on with: tarn train --resume all");
  tarn_train_close(&train);
  // Nothing is changed while a seed trains, be it the last one that was begun.
  const char *most[] = {"train.max_updates=5"};
  assert_int_equal(tarn_train_open(&train, &list->runs[1]), TARN_STATUS_OK);
  tarn_train_list_close(&list);
  assert_int_equal(open_list(&list, NULL, "all", most, 1), TARN_STATUS_BUSY);
  assert_limits("all", 2, 4);
  tarn_train_close(&train);
  assert_int_equal(open_list(&list, NULL, "all", NULL, 0), TARN_STATUS_OK);
  for (size_t i = 0; i < 3; i++) {
    if (tarn_train_open(&train, &list->runs[i]) != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
    assert_int_equal(tarn_train_run(train, &result), TARN_STATUS_OK);
    assert_int_equal(result.update, 4);
    tarn_train_close(&train);
  }
  tarn_train_list_close(&list);
}

static void refuse_change(const char *run, int begun, const char *override, tarn_status expected, const char *words) {
  const char *overrides[] = {"train.max_updates=9", override};
  tarn_train_list *list;
  assert_int_equal(open_list(&list, NULL, run, overrides, 2), expected);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
  assert_limits(run, begun, 2);
}

// What a seed cannot go on with is not written into any description, or nothing would go on.
static void changes_that_cannot_hold_change_nothing(void **state) {
  (void)state;
  const char *overrides[] = {"train.seeds=[1,2]", "train.max_updates=2", "train.average=0", "valid.every=100",
                             "data.train=typo"};
  tarn_train_list *list;
  tarn_train *train;
  tarn_train_result result;
  // Nor does a new description stay behind, in the way of the right one.
  assert_int_equal(open_list(&list, "tiny.yaml", "firm", overrides, 5), TARN_STATUS_IO);
  assert_int_equal(open_list(&list, "tiny.yaml", "firm", overrides, 4), TARN_STATUS_OK);
  make_shard("foreign", 120, TINY_VOCAB, TINY_VOCAB, 9);
  refuse_change("firm", 0, "data.train=typo", TARN_STATUS_IO, "typo");
  // Seed 1 is validated at its end; seed 2 is stopped before.
  assert_int_equal(tarn_train_open(&train, &list->runs[0]), TARN_STATUS_OK);
  assert_int_equal(tarn_train_run(train, &result), TARN_STATUS_OK);
  tarn_train_close(&train);
  volatile sig_atomic_t stop = 1;
  tarn_train_options second = list->runs[1];
  second.stop = &stop;
  assert_int_equal(tarn_train_open(&train, &second), TARN_STATUS_OK);
  assert_int_equal(tarn_train_run(train, &result), TARN_STATUS_INTERRUPTED);
  tarn_train_close(&train);
  tarn_train_list_close(&list);
  refuse_change("firm", 2, "data.train=typo", TARN_STATUS_IO, "typo");
  refuse_change("firm", 2, "data.train=foreign", TARN_STATUS_DATA, "was trained on other data than foreign");
  refuse_change("firm", 2, "data.valid=foreign", TARN_STATUS_DATA, "was validated on other data than foreign");
  refuse_change("firm", 2, "train.max_minutes=-1", TARN_STATUS_USAGE, "train.max_minutes");
  const char *more[] = {"train.max_updates=3"};
  assert_int_equal(open_list(&list, NULL, "firm", more, 1), TARN_STATUS_OK);
  assert_limits("firm", 2, 3);
  tarn_train_list_close(&list);
}

// A dry run says whether the training can go on, and leaves it as it was.
static void a_dry_run_looks_at_the_checkpoint(void **state) {
  (void)state;
  run_through("dry", NULL, 0);
  make_shard("foreign", 120, TINY_VOCAB, TINY_VOCAB, 9);
  const char *override = "data.train=foreign";
  tarn_train_options options;
  tarn_train_default(&options);
  options.run = "dry";
  options.resume = options.plan_only = true;
  options.overrides = &override;
  tarn_train *train;
  assert_int_equal(tarn_train_open(&train, &options), TARN_STATUS_OK);
  assert_int_equal(tarn_train_update(train), 12);
  assert_true(tarn_train_plan(train)->epoch_tokens ==
              (double)(train->shard.source_tokens + train->shard.target_tokens));
  tarn_train_close(&train);
  options.override_count = 1;
  assert_int_equal(tarn_train_open(&train, &options), TARN_STATUS_DATA);
  assert_non_null(strstr(tarn_error_message(), "other data"));
}

// The options are the caller's, who may be done with them: a list of runs is often closed before they are.
static void options_may_go_before_the_training(void **state) {
  (void)state;
  char folder[] = "parent", run[] = "parent/seed-1";
  volatile sig_atomic_t stop = 1;
  tarn_train_options options;
  tarn_train_default(&options);
  options.config = "tiny.yaml";
  options.run = run;
  options.folder = folder;
  options.stop = &stop;
  tarn_train *train;
  tarn_train_result result;
  assert_int_equal(tarn_train_open(&train, &options), TARN_STATUS_OK);
  memset(folder, 'x', sizeof folder - 1);
  memset(run, 'x', sizeof run - 1);
  assert_int_equal(tarn_train_run(train, &result), TARN_STATUS_INTERRUPTED);
  assert_string_equal(strstr(tarn_error_message(), "go on with"), "go on with: tarn train --resume parent");
  tarn_train_close(&train);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(pieces_give_the_bits_of_the_whole),
                                     cmocka_unit_test(equal_seeds_give_equal_bits),
                                     cmocka_unit_test(recomputation_may_change),
                                     cmocka_unit_test(the_last_updates_are_logged),
                                     cmocka_unit_test(unused_experts_are_those_of_all_updates),
                                     cmocka_unit_test(frozen_weights_stay_and_others_move),
                                     cmocka_unit_test(frozen_weights_stay_in_memory),
                                     cmocka_unit_test(steps_take_no_memory),
                                     cmocka_unit_test(stops_at_numbers_that_are_none),
                                     cmocka_unit_test(stops_at_gradients_too_large),
                                     cmocka_unit_test(only_one_process_at_a_time),
                                     cmocka_unit_test(refuses_what_would_mix_runs),
                                     cmocka_unit_test(stops_when_patience_ends),
                                     cmocka_unit_test(lists_a_run_for_every_seed),
                                     cmocka_unit_test(changes_hold_for_every_seed),
                                     cmocka_unit_test(changes_that_cannot_hold_change_nothing),
                                     cmocka_unit_test(a_dry_run_looks_at_the_checkpoint),
                                     cmocka_unit_test(options_may_go_before_the_training),
                                     cmocka_unit_test(refuses_other_validation_data),
                                     cmocka_unit_test(older_checkpoints_do_not_name_their_validation_data),
                                     cmocka_unit_test(an_average_does_not_outlive_its_end),
                                     cmocka_unit_test(removes_what_was_half_written),
                                     cmocka_unit_test(tells_what_is_too_long)};
  return cmocka_run_group_tests(tests, tiny_open, sandbox_close);
}
