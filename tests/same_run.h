// Runs of tiny_run.h's description, uninterrupted or stopped and resumed, and the comparison of two: every tensor of
// their checkpoints and every line of their logs, except times.
#ifndef TARN_TESTS_SAME_RUN_H
#define TARN_TESTS_SAME_RUN_H

#include <jansson.h>

#include "base/file.h"
#include "base/memory.h"
#include "store/checkpoint.h"
#include "tiny_run.h"

// Requests a stop after every `every` updates.
typedef struct stopper {
  volatile sig_atomic_t stop;
  int64_t every;
} stopper;

static inline void stop_now_and_then(void *user, const tarn_train_event *event) {
  stopper *s = user;
  if (event->kind == TARN_TRAIN_EVENT_UPDATE && event->update % s->every == 0) s->stop = 1;
}

static inline void run_through(const char *run, const char *const *overrides, size_t count) {
  tarn_status status = tiny_train("tiny.yaml", run, overrides, count, NULL, NULL, NULL);
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static inline void resume_until_done(const char *run, stopper *s, tarn_status status, const char *const *overrides,
                                     size_t count) {
  for (int i = 0; status == TARN_STATUS_INTERRUPTED && i < 20; i++) {
    assert_non_null(strstr(tarn_error_message(), "--resume"));
    s->stop = 0;
    status = tiny_train(NULL, run, overrides, count, stop_now_and_then, s, &s->stop);
  }
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static inline void run_in_pieces(const char *run, int64_t every, const char *const *overrides, size_t count) {
  stopper s = {.every = every};
  tarn_status status = tiny_train("tiny.yaml", run, overrides, count, stop_now_and_then, &s, &s.stop);
  resume_until_done(run, &s, status, NULL, 0);
}

static inline void join(char path[256], const char *run, const char *name) { snprintf(path, 256, "%s/%s", run, name); }

static inline void assert_same_tensors(const char *a, const char *b, const char *name) {
  char path[256];
  tarn__checkpoint_file x;
  tarn__checkpoint_file y;
  join(path, a, name);
  assert_int_equal(tarn__checkpoint_file_open(&x, path), TARN_STATUS_OK);
  join(path, b, name);
  assert_int_equal(tarn__checkpoint_file_open(&y, path), TARN_STATUS_OK);
  assert_int_equal(x.tensors.count, y.tensors.count);
  for (size_t i = 0; i < x.tensors.count; i++) {
    const tarn__stored *s = &x.tensors.tensors[i];
    const tarn__stored *t = &y.tensors.tensors[i];
    assert_string_equal(s->name, t->name);
    assert_int_equal(s->bytes, t->bytes);
    if (memcmp(s->data, t->data, s->bytes) != 0) fail_msg("%s: %s differs between %s and %s", name, s->name, a, b);
  }
  assert_int_equal(x.progress.update, y.progress.update);
  assert_int_equal(x.progress.batches, y.progress.batches);
  assert_true(x.progress.best == y.progress.best);
  tarn__checkpoint_file_close(&x);
  tarn__checkpoint_file_close(&y);
}

// Log records without clock-dependent fields.
static inline json_t *read_log(const char *run) {
  char path[256];
  char *text;
  size_t size;
  join(path, run, "log.jsonl");
  assert_int_equal(tarn__file_read(path, &text, &size), TARN_STATUS_OK);
  json_t *log = json_array();
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    json_t *record = json_loads(line, 0, NULL);
    assert_non_null(record);
    json_object_del(record, "time");
    json_object_del(record, "seconds");
    json_object_del(record, "tokens_per_second");
    json_object_del(record, "ranks");
    json_array_append_new(log, record);
  }
  tarn__free(text);
  return log;
}

static inline void assert_same_log(const char *a, const char *b) {
  json_t *x = read_log(a);
  json_t *y = read_log(b);
  assert_true(json_array_size(x) >= 10);
  assert_true(json_equal(x, y));
  json_decref(x);
  json_decref(y);
}

// `unused_experts` in the log line for updates up to `step`; -1: missing.
static inline int64_t unused_experts(const char *run, int64_t step) {
  json_t *log = read_log(run);
  int64_t unused = -1;
  for (size_t i = 0; i < json_array_size(log); i++) {
    const json_t *record = json_array_get(log, i), *value = json_object_get(record, "unused_experts");
    if (value && json_integer_value(json_object_get(record, "step")) == step) unused = json_integer_value(value);
  }
  json_decref(log);
  return unused;
}

// In a batch of tiny.yaml most of these experts receive no token.
#define MANY_EXPERTS \
  "kinds.L={ mixer: attention, heads: 2, ffn: { type: switch, experts: 64, width: 4 } }", "train.max_tokens=60"

static inline void assert_same_run(const char *a, const char *b) {
  assert_same_tensors(a, b, TARN__CHECKPOINT_LAST);
  assert_same_tensors(a, b, TARN__CHECKPOINT_BEST);
  assert_same_tensors(a, b, TARN__CHECKPOINT_AVERAGE);
  assert_same_tensors(a, b, "checkpoint_10.safetensors");
  assert_same_log(a, b);
}

// A training that is stopped repeatedly ends like an uninterrupted one. The number names the runs.
static inline void check_stops(size_t number, int64_t every, const char *const *overrides, size_t count) {
  char whole[32], pieces[32];
  snprintf(whole, sizeof whole, "whole%zu", number);
  snprintf(pieces, sizeof pieces, "pieces%zu", number);
  run_through(whole, overrides, count);
  run_in_pieces(pieces, every, overrides, count);
  assert_same_run(whole, pieces);
}

#endif
