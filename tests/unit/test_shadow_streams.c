// Requirements of an asynchronous device on host code: it relies only on the order that streams and events guarantee, a
// step waits for nothing, and failures are still reported.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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

// What is sent for a run arrives while the run before computes, which has a kernel's command to come.
static void batches_arrive_beside_kernels(void **state) {
  (void)state;
  unsigned char *results = take(4), found[4];
  tarn__staging staging = {0};
  tarn__inlet inlet = {0};
  must(tarn__inlet_reserve(&inlet, &shadow_device, 1));
  shadow_queues.idle = true;
  for (int run = 0; run < 4; run++) {
    void *memory, *there;
    must(tarn__staging_take(&staging, &shadow_device, &memory, 1));
    *(unsigned char *)memory = (unsigned char)(run + 1);
    must(tarn__inlet_send(&inlet, &staging, NULL, &there, 1));
    if (run == 0) must(tarn__device_synchronise(&shadow_device));  // which has nothing to do yet
    // Of the kernels none has run: two runs are sent for, the third waits for the first.
    shadow_lock();
    while (shadow_ready(inlet.stream)) shadow_do(inlet.stream);
    const bool arrived = !inlet.stream->first, computing = shadow_queues.always.first != NULL;
    shadow_unlock();
    if (run < 2) assert_true(arrived);
    if (run == 1) assert_true(computing);
    if (run == 2) assert_false(arrived);
    must(shadow_type.copy(&shadow_device, NULL, results + run, there, 1));
  }
  shadow_queues.idle = false;
  must(tarn__device_get(&shadow_device, found, results, 4));
  for (int run = 0; run < 4; run++) assert_int_equal(found[run], run + 1);
  tarn__inlet_close(&inlet);
  tarn__staging_close(&staging);
  tarn__device_free(&shadow_device, results);
}

// A hash of the weights of a run.
static uint64_t weights_of(const char *run) {
  char path[64];
  uint64_t hash = 14695981039346656037u;
  tarn__checkpoint_file file;
  snprintf(path, sizeof path, "%s/checkpoint_last.safetensors", run);
  must(tarn__checkpoint_file_open(&file, path));
  for (size_t i = 0; i < file.tensors.count; i++) {
    const tarn__stored *t = &file.tensors.tensors[i];
    for (size_t k = 0; k < t->bytes; k++) hash = (hash ^ ((const unsigned char *)t->data)[k]) * 1099511628211u;
  }
  tarn__checkpoint_file_close(&file);
  return hash;
}

// Trains in a process of its own, which wrong offsets may end. Returns the weights; 0: it failed.
static uint64_t train_apart(const char *run, uint64_t seed) {
  uint64_t hash = 0, *found = mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(found != MAP_FAILED);
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    alarm(120);
    shadow_queues.random = seed;
    // The host waits for nothing between the first update and the last.
    const char *const keys[] = {"train.log_every=12", "train.save_every=100", "valid.every=100", "train.average=0"};
    if (tiny_train("tiny.yaml", run, keys, 4, NULL, NULL, NULL) == TARN_STATUS_OK) *found = weights_of(run);
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  hash = *found;
  munmap(found, sizeof *found);
  return hash;
}

// Shows that a missing event between the copies and the kernels of a training is detected: kernels that do not wait for
// their batch, and copies that do not wait for the kernels that read the one before last. It comes before threads.
static void a_training_needs_its_events(void **state) {
  (void)state;
  tarn__device_use(&shadow_device);
  const uint64_t right = train_apart("awaited", 1);
  assert_true(right != 0);
  bool *const deaf[] = {&shadow_queues.deaf, &shadow_queues.others_deaf};
  for (int i = 0; i < 2; i++) {
    bool noticed = false;
    for (uint64_t seed = 1; seed <= 6 && !noticed; seed++) {
      char run[32];
      snprintf(run, sizeof run, "deaf-%d-%d", i, (int)seed);
      *deaf[i] = true;
      noticed = train_apart(run, seed * 1000003) != right;
      *deaf[i] = false;
    }
    if (!noticed) fail_msg("%s", i ? "a copy need not wait for kernels" : "a kernel need not wait for its batch");
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
      cmocka_unit_test(a_training_needs_its_events),
      cmocka_unit_test(order_is_what_events_say),
      cmocka_unit_test(staging_comes_in_turns),
      cmocka_unit_test(batches_arrive_beside_kernels),
      cmocka_unit_test(every_order_gives_the_same_bits),
      {"a_step_waits_for_nothing", a_step_waits_for_nothing, NULL, NULL, (void *)(uintptr_t) "train.clip_norm=1"},
      {"a_step_at_once_waits_for_nothing", a_step_waits_for_nothing, NULL, NULL,
       (void *)(uintptr_t) "train.clip_norm=0"},
      cmocka_unit_test(a_late_failure_names_its_update),
  };
  return cmocka_run_group_tests(tests, tiny_open, sandbox_close);
}
