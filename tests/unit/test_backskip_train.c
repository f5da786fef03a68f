// Trainings with backskipping: the log, resuming bit by bit, what a checkpoint holds, what is planned.
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
#include "store/checkpoint.h"
#include "store/checkpoint_keys.h"
#include "tarn/checkpoint.h"
#include "tiny_run.h"
#include "train/trainer.h"

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

// Overrides of the tiny run: shared reservoirs and one of its own, next to each other.
static const char layers[] = "encoder.layers=L R1 R L R1";

static void stop_at_5(void *user, const tarn_train_event *event) {
  if (event->kind == TARN_TRAIN_EVENT_UPDATE && event->update == 5) *(volatile sig_atomic_t *)user = 1;
}

// Tensors of two checkpoints, but for those whose names begin with `except`.
static void assert_same_tensors(const char *a, const char *b, const char *except) {
  tarn__checkpoint_file x, y;
  must(tarn__checkpoint_file_open(&x, a));
  must(tarn__checkpoint_file_open(&y, b));
  size_t compared = 0;
  for (size_t i = 0; i < x.tensors.count; i++) {
    const tarn__stored *s = &x.tensors.tensors[i];
    if (except && strstr(s->name, except)) continue;
    const tarn__stored *t = tarn__safetensors_find(&y.tensors, s->name);
    if (!t || t->bytes != s->bytes || memcmp(s->data, t->data, s->bytes) != 0)
      fail_msg("%s differs between %s and %s", s->name, a, b);
    compared++;
  }
  assert_true(compared > 20);
  if (!except) assert_int_equal(x.tensors.count, y.tensors.count);
  tarn__checkpoint_file_close(&x);
  tarn__checkpoint_file_close(&y);
}

// The records of backskipping of a run, without times.
static json_t *read_cosines(const char *run) {
  char path[256], *text;
  size_t size;
  snprintf(path, sizeof path, "%s/log.jsonl", run);
  must(tarn__file_read(path, &text, &size));
  json_t *all = json_array();
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    json_t *record = json_loads(line, 0, NULL);
    assert_non_null(record);
    if (strcmp(json_string_value(json_object_get(record, "kind")), "backskip") == 0) {
      assert_true(json_is_real(json_object_get(record, "time")));
      json_object_del(record, "time");
      json_array_append(all, record);
    }
    json_decref(record);
  }
  tarn__free(text);
  return all;
}

static void pieces_give_the_bits_of_the_whole(void **state) {
  (void)state;
  static const char *const variants[][3] = {
      {"kinds.R.backskip={method: predictor, refresh: 3}", "train.precision=fp32", "train.accumulate=2"},
      {"kinds.R.backskip={method: predictor, refresh: 3}", "train.precision=bf16", "train.recompute=block"},
      {"kinds.R.backskip={method: feedback, refresh: 4}", "train.precision=bf16", "encoder.layerdrop=0.3"},
      {"kinds.R.backskip={method: identity, refresh: 2}", "train.precision=fp32", "model.norm=pre"}};
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
    const char *overrides[] = {layers, variants[i][0], variants[i][1], variants[i][2]};
    char whole[32], pieces[32], a[96], b[96];
    volatile sig_atomic_t stop = 0;
    snprintf(whole, sizeof whole, "whole%zu", i);
    snprintf(pieces, sizeof pieces, "pieces%zu", i);
    must(tiny_train("tiny.yaml", whole, overrides, 4, NULL, NULL, NULL));
    assert_int_equal(tiny_train("tiny.yaml", pieces, overrides, 4, stop_at_5, (void *)(uintptr_t)&stop, &stop),
                     TARN_STATUS_INTERRUPTED);
    must(tiny_train(NULL, pieces, NULL, 0, NULL, NULL, NULL));
    snprintf(a, sizeof a, "%s/" TARN__CHECKPOINT_LAST, whole);
    snprintf(b, sizeof b, "%s/" TARN__CHECKPOINT_LAST, pieces);
    assert_same_tensors(a, b, NULL);
    json_t *x = read_cosines(whole), *y = read_cosines(pieces);
    assert_true(json_equal(x, y));
    json_decref(x);
    json_decref(y);
  }
}

static void logs_cosines_of_refreshes(void **state) {
  (void)state;
  const char *overrides[] = {layers, "kinds.R.backskip={method: identity, refresh: 5}", "train.accumulate=2"};
  static const char *const labels[] = {"encoder 2 R1", "encoder 3 R", "encoder 5 R1"};
  must(tiny_train("tiny.yaml", "log", overrides, 3, NULL, NULL, NULL));
  json_t *all = read_cosines("log");
  assert_int_equal(json_array_size(all), 3);
  for (size_t i = 0; i < 3; i++) {
    const json_t *record = json_array_get(all, i), *cosine = json_object_get(record, "cosine");
    assert_int_equal(json_integer_value(json_object_get(record, "step")), 1 + 5 * (int)i);
    assert_int_equal(json_object_size(cosine), 3);
    for (int k = 0; k < 3; k++) {
      double value = json_real_value(json_object_get(cosine, labels[k]));
      assert_true(value > 0.1 && value <= 1.0);
    }
  }
  json_decref(all);
}

// With refresh 1 a training is one without backskipping, whatever else the refreshes compute.
static void refreshing_always_is_not_skipping(void **state) {
  (void)state;
  const char *precision[] = {"train.precision=fp32", "train.precision=bf16"};
  for (int i = 0; i < 2; i++) {
    char with[32], without[32], a[96], b[96];
    const char *overrides[] = {layers, precision[i], "kinds.R.backskip={method: predictor, refresh: 1}"};
    snprintf(with, sizeof with, "with%d", i);
    snprintf(without, sizeof without, "without%d", i);
    must(tiny_train("tiny.yaml", without, overrides, 2, NULL, NULL, NULL));
    must(tiny_train("tiny.yaml", with, overrides, 3, NULL, NULL, NULL));
    snprintf(a, sizeof a, "%s/" TARN__CHECKPOINT_LAST, with);
    snprintf(b, sizeof b, "%s/" TARN__CHECKPOINT_LAST, without);
    assert_same_tensors(a, b, TARN__TENSOR_HELPER);
  }
}

static size_t count_helpers(const char *path) {
  tarn__checkpoint_file file;
  size_t found = 0;
  must(tarn__checkpoint_file_open(&file, path));
  for (size_t i = 0; i < file.tensors.count; i++) found += strstr(file.tensors.tensors[i].name, "backskip.") != NULL;
  assert_null(strstr(file.model_text, "backskip"));
  assert_non_null(strstr(file.config_text, "backskip"));
  tarn__checkpoint_file_close(&file);
  return found;
}

// The state holds predictors, a model does not.
static void checkpoints_hold_what_they_should(void **state) {
  (void)state;
  const char *overrides[] = {layers, "kinds.R.backskip={method: predictor, refresh: 3}"};
  must(tiny_train("tiny.yaml", "held", overrides, 2, NULL, NULL, NULL));
  assert_int_equal(count_helpers("held/" TARN__CHECKPOINT_LAST), 2 * 6 * 3);
  assert_int_equal(count_helpers("held/" TARN__CHECKPOINT_BEST), 0);
  assert_int_equal(count_helpers("held/" TARN__CHECKPOINT_AVERAGE), 0);
  must(tarn_checkpoint_export("exported", "held/" TARN__CHECKPOINT_LAST));
  assert_int_equal(count_helpers("exported"), 0);
  const char *paths[] = {"held/" TARN__CHECKPOINT_LAST, "held/checkpoint_10.safetensors"};
  must(tarn_checkpoint_average("mean", paths, 2));
  assert_int_equal(count_helpers("mean"), 0);
  tarn_checkpoint_info *info;
  must(tarn_checkpoint_info_open(&info, "held/" TARN__CHECKPOINT_LAST));
  for (size_t i = 0; i < info->param_count; i++) assert_null(strstr(info->params[i].name, "backskip"));
  tarn_checkpoint_info_close(&info);
}

// Steps must do with the memory that they have; the log after a refresh may take some.
static void forbid_memory(void *user, const tarn_train_event *event) {
  (void)user;
  if (event->kind == TARN_TRAIN_EVENT_UPDATE)
    tarn__memory_fail_after(event->update < 11 && event->update % 4 != 1 ? 1 : 0);
}

static size_t round_up(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

// What is planned is taken, refreshes included, and steps take no more.
static void the_plan_holds(void **state) {
  (void)state;
  static const char *const methods[] = {
      "kinds.R.backskip={method: identity, refresh: 0}", "kinds.R.backskip={method: identity, refresh: 4}",
      "kinds.R.backskip={method: feedback, refresh: 4}", "kinds.R.backskip={method: predictor, refresh: 4}"};
  for (int i = 0; i < 4; i++) {
    const char *overrides[] = {layers, methods[i], "train.log_every=100", "train.save_every=100", "valid.every=100"};
    char run[32];
    snprintf(run, sizeof run, "plan%d", i);
    tarn_train_options options;
    tarn_train_default(&options);
    options.config = "tiny.yaml";
    options.run = run;
    options.overrides = overrides;
    options.override_count = 5;
    options.on_event = forbid_memory;
    tarn_train *train;
    tarn_train_result result;
    must(tarn_train_open(&train, &options));
    const tarn_plan *plan = &train->plan;
    assert_true(plan->activation_bytes + plan->workspace_bytes >= train->stepper.workspace_bytes);
    assert_int_equal(tarn__memory_now(TARN__MEMORY_TRAINED), round_up(plan->trained_bytes));
    assert_int_equal(tarn__memory_now(TARN__MEMORY_FROZEN), round_up(plan->frozen_bytes));
    assert_int_equal(tarn__memory_now(TARN__MEMORY_GRADIENT), round_up(plan->gradient_bytes));
    assert_int_equal(tarn__memory_now(TARN__MEMORY_OPTIMISER), round_up(plan->optimiser_bytes));
    tarn_status status = tarn_train_run(train, &result);
    tarn__memory_fail_after(0);
    must(status);
    tarn_train_close(&train);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pieces_give_the_bits_of_the_whole), cmocka_unit_test(logs_cosines_of_refreshes),
      cmocka_unit_test(refreshing_always_is_not_skipping), cmocka_unit_test(checkpoints_hold_what_they_should),
      cmocka_unit_test(the_plan_holds)};
  return cmocka_run_group_tests(tests, tiny_open, sandbox_close);
}
