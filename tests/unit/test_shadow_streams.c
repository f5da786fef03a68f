// Requirements of an asynchronous device on host code: it relies only on the order that streams and events guarantee, a
// step waits for nothing, and failures are still reported.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "same_run.h"
#include "shadow_device.h"
#include "train/trainer.h"

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static void *take(size_t bytes) {
  void *memory;
  must(tarn__device_allocate(&shadow_device, &memory, TARN__MEMORY_OTHER, bytes, 1));
  return memory;
}

// One stream writes, another reads, with `awaits` after an event. Returns the value read.
static unsigned char read_across(unsigned char *x, unsigned char *y, bool awaits) {
  tarn__device_stream *writes, *reads;
  tarn__device_event *written;
  unsigned char found;
  must(tarn__device_stream_open(&shadow_device, &writes));
  must(tarn__device_stream_open(&shadow_device, &reads));
  must(tarn__device_event_open(&shadow_device, &written));
  must(shadow_type.fill(&shadow_device, writes, x, 0, 1));
  must(shadow_type.fill(&shadow_device, writes, x, 7, 1));
  must(tarn__device_event_record(&shadow_device, written, writes));
  if (awaits) must(tarn__device_stream_await(&shadow_device, reads, written));
  must(shadow_type.copy(&shadow_device, reads, y, x, 1));
  must(shadow_type.copy_out(&shadow_device, reads, &found, y, 1));
  tarn__device_event_close(&shadow_device, written);
  tarn__device_stream_close(&shadow_device, writes);
  tarn__device_stream_close(&shadow_device, reads);
  return found;
}

// Shows that a missing event is detected, and that an event suffices.
static void order_is_what_events_say(void **state) {
  (void)state;
  unsigned char *x = take(1), *y = take(1);
  int early = 0;
  for (int i = 0; i < 40; i++) {
    assert_int_equal(read_across(x, y, true), 7);
    early += read_across(x, y, false) != 7;
  }
  assert_in_range(early, 1, 39);
  tarn__device_free(&shadow_device, x);
  tarn__device_free(&shadow_device, y);
}

// Memory passed to send is read later: writing to it too early changes the data sent, unless staging buffers alternate.
static void staging_comes_in_turns(void **state) {
  (void)state;
  enum { PIECES = 40 };
  unsigned char *there = take(PIECES), back[PIECES], *one;
  void *staged;
  must(shadow_type.staging_allocate(&shadow_device, &staged, 1));
  one = staged;
  for (int i = 0; i < PIECES; i++) {
    *one = (unsigned char)(i + 1);
    must(shadow_type.send(&shadow_device, NULL, there + i, one, 1));
  }
  must(tarn__device_get(&shadow_device, back, there, PIECES));
  int wrong = 0;
  for (int i = 0; i < PIECES; i++) wrong += back[i] != i + 1;
  assert_true(wrong > 0);
  shadow_type.staging_free(&shadow_device, staged);
  tarn__staging staging = {0};
  for (int i = 0; i < PIECES; i++) {
    void *memory;
    must(tarn__staging_take(&staging, &shadow_device, &memory, 1));
    *(unsigned char *)memory = (unsigned char)(i + 1);
    must(tarn__staging_send(&staging, NULL, there + i, 1));
  }
  must(tarn__device_get(&shadow_device, back, there, PIECES));
  for (int i = 0; i < PIECES; i++) assert_int_equal(back[i], i + 1);
  tarn__staging_close(&staging);
  tarn__device_free(&shadow_device, there);
}

// The results are bit-identical to the processor's in any order of execution.
static void every_order_gives_the_same_bits(void **state) {
  (void)state;
  const char *const keys[] = {"train.accumulate=2", "valid.bleu=yes"};
  run_through("in-order", keys, 2);
  tarn__device_use(&shadow_device);
  for (uint64_t seed = 1; seed <= 6; seed++) {
    char run[32];
    snprintf(run, sizeof run, "order-%d", (int)seed);
    shadow_queues.random = seed * 1000003;
    shadow_queues.ahead = shadow_queues.commands = 0;
    run_through(run, keys, 2);
    assert_true(shadow_queues.ahead > 0 && shadow_queues.ahead < shadow_queues.commands);
    assert_same_run("in-order", run);
  }
  tarn__device_use(NULL);
}

typedef struct watcher {
  int64_t reads[32];
  double loss[32];
  int updates;
} watcher;

static void watch(void *user, const tarn_train_event *event) {
  watcher *w = user;
  if (event->kind != TARN_TRAIN_EVENT_UPDATE || w->updates == 32) return;
  w->loss[w->updates] = event->loss;
  w->reads[w->updates++] = shadow.reads;
}

// Between two lines of the log the host reads nothing, whether updates run after the backward pass or within it.
static void a_step_waits_for_nothing(void **state) {
  const char *clip = *state;
  const char *const keys[] = {"train.log_every=6", "train.save_every=100", "valid.every=100", "train.average=0", clip};
  watcher w = {0};
  tarn__device_use(&shadow_device);
  must(tiny_train("tiny.yaml", clip, keys, 5, watch, &w, NULL));
  tarn__device_use(NULL);
  assert_int_equal(w.updates, 12);
  for (int u = 0; u < 12; u++) {
    assert_int_equal(w.reads[u] - (u > 0 ? w.reads[u - 1] : w.reads[0]), u == 5 || u == 11);
    assert_int_equal(isnan(w.loss[u]), u != 5 && u != 11);
  }
}

// Makes a weight NaN before the given update.
typedef struct poison {
  tarn_train *train;
  int64_t update;
} poison;

static void put_poison(void *user, const tarn_train_event *event) {
  const poison *p = user;
  if (event->kind != TARN_TRAIN_EVENT_UPDATE || event->update != p->update) return;
  const tarn__param *param = p->train->model->params[0];
  const float bad = NAN;
  must(tarn__device_put(param->device, param->training.master, &bad, sizeof bad));
}

static tarn_status run_poisoned(const char *run, char line[512]) {
  tarn_train_options options;
  tarn_train_result result;
  const char *const keys[] = {"train.log_every=6", "train.save_every=100", "valid.every=100", "train.average=0"};
  poison p = {.update = 7};
  tarn_train_default(&options);
  options.config = "tiny.yaml";
  options.run = run;
  options.overrides = keys;
  options.override_count = 4;
  options.on_event = put_poison;
  options.user = &p;
  must(tarn_train_open(&p.train, &options));
  const tarn_status status = tarn_train_run(p.train, &result);
  snprintf(line, 512, "%s", tarn_error_message());
  tarn_train_close(&p.train);
  return status;
}

// The failed update is named, though the host learns of it five updates later, and nothing is saved after it.
static void a_late_failure_names_its_update(void **state) {
  (void)state;
  char cpu[512], apart[512];
  assert_int_equal(run_poisoned("bad", cpu), TARN_STATUS_NUMERIC);
  assert_int_equal(rename("bad", "bad-cpu"), 0);
  tarn__device_use(&shadow_device);
  assert_int_equal(run_poisoned("bad", apart), TARN_STATUS_NUMERIC);
  tarn__device_use(NULL);
  assert_non_null(strstr(cpu, "at update 8"));
  assert_string_equal(cpu, apart);
  tarn__checkpoint_file file;
  must(tarn__checkpoint_file_open(&file, "bad/checkpoint_last.safetensors"));
  assert_int_equal(file.update, 0);
  tarn__checkpoint_file_close(&file);
  assert_int_equal(shadow.now, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(order_is_what_events_say),
      cmocka_unit_test(staging_comes_in_turns),
      cmocka_unit_test(every_order_gives_the_same_bits),
      {"a_step_waits_for_nothing", a_step_waits_for_nothing, NULL, NULL, (void *)(uintptr_t) "train.clip_norm=1"},
      {"a_step_at_once_waits_for_nothing", a_step_waits_for_nothing, NULL, NULL,
       (void *)(uintptr_t) "train.clip_norm=0"},
      cmocka_unit_test(a_late_failure_names_its_update),
  };
  return cmocka_run_group_tests(tests, tiny_open, sandbox_close);
}
