// The log of a run: what its checkpoints know of it, and that a training does not go on silently with another one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <jansson.h>

#include "base/memory.h"
#include "same_run.h"
#include "store/checkpoint.h"
#include "store/checkpoint_keys.h"
#include "store/log_check.h"
#include "tiny_run.h"

static tarn_status resume(const char *run, bool accept, const char *const *overrides, size_t count) {
  tarn_train_options options;
  tarn_train_default(&options);
  options.resume = true;
  options.run = run;
  options.accept_log = accept;
  options.overrides = overrides;
  options.override_count = count;
  return tiny_run(&options);
}

// A run that was stopped after 7 of its 12 updates: its log has updates 2, 4 and 6, and a validation at 4.
static void stopped_run(const char *run) {
  stopper s = {.every = 7};
  assert_int_equal(tiny_train("tiny.yaml", run, NULL, 0, stop_now_and_then, &s, &s.stop), TARN_STATUS_INTERRUPTED);
}

static void log_text(const char *run, char **text, size_t *size) {
  char path[128];
  snprintf(path, sizeof path, "%s/log.jsonl", run);
  assert_int_equal(tarn__file_read(path, text, size), TARN_STATUS_OK);
}

static void write_log(const char *run, const char *text, size_t size) {
  char path[128];
  snprintf(path, sizeof path, "%s/log.jsonl", run);
  sandbox_write(path, text, size);
}

// Takes line `number`, from 0, out of the log.
static void lose_line(const char *run, int number) {
  size_t size;
  char *text;
  log_text(run, &text, &size);
  char *begin = text;
  while (number-- > 0) begin = strchr(begin, '\n') + 1;
  char *end = strchr(begin, '\n') + 1;
  memmove(begin, end, (size_t)(text + size - end));
  write_log(run, text, size - (size_t)(end - begin));
  tarn__free(text);
}

// Another loss, in as many bytes.
static void edit_log(const char *run) {
  size_t size;
  char *text;
  log_text(run, &text, &size);
  char *digit = strstr(text, "\"loss\":") + strlen("\"loss\":");
  *digit = *digit == '9' ? '8' : '9';
  write_log(run, text, size);
  tarn__free(text);
}

static void assert_state(const char *run, tarn__log_state state, const char *why, int64_t accepted) {
  tarn__log_check check;
  assert_int_equal(tarn__log_check_run(&check, run), TARN_STATUS_OK);
  if (!strstr(check.why, why)) fail_msg("\"%s\" does not say \"%s\"", check.why, why);
  assert_int_equal(check.state, state);
  assert_int_equal(check.accepted, accepted);
}

static void assert_refused(const char *run, const char *words) {
  assert_int_equal(resume(run, false, NULL, 0), TARN_STATUS_DATA);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
  if (!strstr(tarn_error_message(), "--accept-log")) fail_msg("no way out: %s", tarn_error_message());
}

static void a_log_that_lost_lines_is_refused(void **state) {
  (void)state;
  stopped_run("lost");
  assert_state("lost", TARN__LOG_WHOLE, "", -1);
  lose_line("lost", 1);
  assert_state("lost", TARN__LOG_CHANGED, "and ended at byte", -1);
  assert_refused("lost", "at update 7");
  assert_state("lost", TARN__LOG_CHANGED, "at update 7", -1);  // nothing was changed by that
  assert_int_equal(unlink("lost/log.jsonl"), 0);
  assert_state("lost", TARN__LOG_CHANGED, "it ends at byte 0, and ended at byte ", -1);
  assert_refused("lost", "it ends at byte 0, and ended at byte ");
}

static void a_log_that_was_edited_is_refused(void **state) {
  (void)state;
  stopped_run("edited");
  edit_log("edited");
  assert_state("edited", TARN__LOG_CHANGED, "are not those of update 7", -1);
  assert_refused("edited", "are not those of update 7");
}

// The mark stands in the log, of which the next checkpoint knows, so that it cannot be taken out unseen either.
static void a_log_that_is_accepted_leaves_a_mark(void **state) {
  (void)state;
  const char *more[] = {"train.max_updates=14"};
  stopped_run("marked");
  lose_line("marked", 1);
  assert_int_equal(resume("marked", true, NULL, 0), TARN_STATUS_OK);
  assert_state("marked", TARN__LOG_WHOLE, "", 7);
  assert_int_equal(resume("marked", false, more, 1), TARN_STATUS_OK);
  assert_state("marked", TARN__LOG_WHOLE, "", 7);
  tarn__log_check check;
  assert_int_equal(tarn__log_check_run(&check, "marked"), TARN_STATUS_OK);
  assert_non_null(strstr(check.accepted_why, "and ended at byte"));
  lose_line("marked", 3);  // behind updates 2, 6 and the validation
  assert_state("marked", TARN__LOG_CHANGED, "", -1);
}

// The score of a set at the very update from which the run goes on stays, as a validation does.
static void a_log_that_is_accepted_keeps_its_scores(void **state) {
  (void)state;
  const char *sets[] = {"sets={held: {data: valid, every: 5, bleu: no}}"};
  const char *more[] = {"train.max_updates=14"};
  static const int64_t steps[] = {5, 10, 12, 14};
  run_through("scores", sets, 1);
  lose_line("scores", 1);
  assert_int_equal(resume("scores", true, more, 1), TARN_STATUS_OK);
  json_t *lines = read_log("scores");
  size_t found = 0;
  for (size_t i = 0; i < json_array_size(lines); i++) {
    const json_t *record = json_array_get(lines, i);
    if (strcmp(json_string_value(json_object_get(record, "kind")), "scored") != 0) continue;
    assert_true(found < sizeof steps / sizeof *steps);
    assert_int_equal(json_integer_value(json_object_get(record, "step")), steps[found++]);
  }
  assert_int_equal(found, sizeof steps / sizeof *steps);
  json_decref(lines);
}

static void a_log_that_fits_is_not_marked(void **state) {
  (void)state;
  stopped_run("fits");
  assert_int_equal(resume("fits", true, NULL, 0), TARN_STATUS_OK);
  assert_state("fits", TARN__LOG_WHOLE, "", -1);
}

// A kill loses updates that the log has already: they are no loss, and go when the run goes on.
static void a_log_may_be_ahead_of_the_checkpoint(void **state) {
  (void)state;
  size_t size;
  run_through("whole", NULL, 0);
  stopped_run("ahead");
  char *text;
  log_text("ahead", &text, &size);
  char *longer = malloc(size + 200);
  assert_non_null(longer);
  memcpy(longer, text, size);
  strcpy(longer + size,
         "{\"kind\":\"train\",\"step\":8,\"epoch\":1.0,\"time\":99,\"loss\":1.5}\n{\"kind\":\"valid\",\"st");
  write_log("ahead", longer, size + strlen(longer + size));
  free(longer);
  tarn__free(text);
  assert_state("ahead", TARN__LOG_WHOLE, "", -1);
  assert_int_equal(resume("ahead", false, NULL, 0), TARN_STATUS_OK);
  assert_same_run("whole", "ahead");
}

// Of a run that is over all of the log is known: also what lies behind the last checkpoint.
static void result_knows_the_whole_log(void **state) {
  (void)state;
  size_t size;
  run_through("over", NULL, 0);
  assert_state("over", TARN__LOG_WHOLE, "", -1);
  char *text;
  log_text("over", &text, &size);
  char *last = text + size - 1;
  while (last[-1] != '\n') last--;
  assert_non_null(strstr(last, "\"checkpoint\":\"average\""));
  write_log("over", text, (size_t)(last - text));
  assert_state("over", TARN__LOG_CHANGED, "and ended at byte", -1);
  tarn__free(text);
  // Who goes on without the result makes that line anew.
  assert_int_equal(resume("over", false, NULL, 0), TARN_STATUS_OK);
  assert_state("over", TARN__LOG_WHOLE, "", -1);
}

// Takes what a checkpoint says of the log out of it, as if an older version had written it.
static void make_old(const char *path) {
  tarn__safetensors file;
  tarn__stored_text texts[64];
  size_t count = 0;
  char *progress = NULL;
  assert_int_equal(tarn__safetensors_open(&file, path), TARN_STATUS_OK);
  assert_true(file.text_count < 64);
  for (size_t i = 0; i < file.text_count; i++) {
    if (strcmp(file.texts[i].key, TARN__KEY_HASH) == 0) continue;
    texts[count] = file.texts[i];
    if (strcmp(file.texts[i].key, TARN__KEY_PROGRESS) == 0) {
      json_t *object = json_loads(file.texts[i].text, 0, NULL);
      assert_int_equal(json_object_del(object, "log"), 0);
      progress = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17));
      json_decref(object);
      texts[count].text = progress;
    }
    count++;
  }
  assert_non_null(progress);
  assert_int_equal(tarn__checkpoint_write(path, file.tensors, file.count, texts, count), TARN_STATUS_OK);
  tarn__safetensors_close(&file);
  free(progress);
}

static void older_checkpoints_do_not_know_their_log(void **state) {
  (void)state;
  run_through("through", NULL, 0);
  stopped_run("old");
  make_old("old/" TARN__CHECKPOINT_LAST);
  assert_state("old", TARN__LOG_UNKNOWN, "", -1);
  assert_int_equal(resume("old", false, NULL, 0), TARN_STATUS_OK);
  assert_same_run("through", "old");
  assert_state("old", TARN__LOG_WHOLE, "", -1);
  assert_state("nowhere", TARN__LOG_UNKNOWN, "", -1);
}

// What is frozen from the start on is told once, however often a run is stopped before its first update is saved.
static void what_is_frozen_first_is_logged_once(void **state) {
  (void)state;
  const char *freeze[] = {"train.freeze={ encoder.L1: 0 }"};
  volatile sig_atomic_t stop = 1;
  assert_int_equal(tiny_train("tiny.yaml", "frozen", freeze, 1, NULL, NULL, &stop), TARN_STATUS_INTERRUPTED);
  assert_int_equal(tiny_train(NULL, "frozen", NULL, 0, NULL, NULL, &stop), TARN_STATUS_INTERRUPTED);
  assert_state("frozen", TARN__LOG_WHOLE, "", -1);
  size_t size;
  char *text;
  log_text("frozen", &text, &size);
  char *first = strstr(text, "\"freeze\"");
  assert_non_null(first);
  assert_null(strstr(first + 1, "\"freeze\""));
  tarn__free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_log_that_lost_lines_is_refused),
                                     cmocka_unit_test(a_log_that_was_edited_is_refused),
                                     cmocka_unit_test(a_log_that_is_accepted_leaves_a_mark),
                                     cmocka_unit_test(a_log_that_fits_is_not_marked),
                                     cmocka_unit_test(a_log_may_be_ahead_of_the_checkpoint),
                                     cmocka_unit_test(result_knows_the_whole_log),
                                     cmocka_unit_test(a_log_that_is_accepted_keeps_its_scores),
                                     cmocka_unit_test(older_checkpoints_do_not_know_their_log),
                                     cmocka_unit_test(what_is_frozen_first_is_logged_once)};
  return cmocka_run_group_tests(tests, tiny_open, sandbox_close);
}
