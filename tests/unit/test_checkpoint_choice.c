// Which checkpoint of a run directory is taken: the one that validated best, the average among them, or the one that is
// asked for.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
// cmocka needs the headers above.
#include <cmocka.h>
#include <jansson.h>

#include "base/memory.h"
#include "same_run.h"
#include "store/checkpoint.h"
#include "tiny_run.h"

// Two runs of 12 updates, validated every 4: "loss" by the loss, "bleu" by BLEU.
static int open_all(void **state) {
  static const char *const bleu[] = {"valid.metric=bleu", "valid.bleu=yes", "valid.max_sentences=3"};
  static const char *const loss[] = {"valid.metric=loss"};
  if (tiny_open(state) != 0) return -1;
  run_through("loss", loss, 1);
  run_through("bleu", bleu, 3);
  return 0;
}

// Writes the log anew: the average's validation gets `metric` in `key` (below 0: it goes), the best's gets `best`.
static void set_log(const char *run, const char *key, double metric, double best) {
  char path[256];
  char *text, *out = NULL;
  size_t size, length = 0;
  json_t *last_best = NULL;
  join(path, run, "log.jsonl");
  assert_int_equal(tarn__file_read(path, &text, &size), TARN_STATUS_OK);
  json_t *log = json_array(), *record;
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
    json_array_append_new(log, json_loads(line, 0, NULL));
  tarn__free(text);
  size_t i;
  json_array_foreach(log, i, record) if (json_is_true(json_object_get(record, "best"))) last_best = record;
  assert_non_null(last_best);
  json_object_set_new(last_best, key, json_real(best));
  out = malloc(2 * size);
  assert_non_null(out);
  json_array_foreach(log, i, record) {
    const bool average = json_object_get(record, "checkpoint") != NULL;
    if (average && metric < 0) continue;
    if (average) json_object_set_new(record, key, json_real(metric));
    char *line = json_dumps(record, JSON_COMPACT);
    length += (size_t)sprintf(out + length, "%s\n", line);
    free(line);
  }
  sandbox_write(path, out, length);
  free(out);
  json_decref(log);
}

static void assert_takes(const char *run, const char *name, const char *reason) {
  tarn_checkpoint_found found;
  assert_int_equal(tarn_checkpoint_find(&found, run, TARN_CHECKPOINT_CHOICE_AUTO), TARN_STATUS_OK);
  assert_true(found.in_run);
  if (!strstr(found.path, name)) fail_msg("%s is taken, not %s", found.path, name);
  if (!strstr(found.reason, reason)) fail_msg("\"%s\" does not say \"%s\"", found.reason, reason);
  char *file;
  assert_int_equal(tarn__checkpoint_find(&file, run), TARN_STATUS_OK);
  assert_string_equal(file, found.path);
  tarn__free(file);
  tarn_checkpoint_found_close(&found);
}

static void the_better_one_by_validation_is_taken(void **state) {
  (void)state;
  set_log("bleu", "valid_bleu", 2.99, 4.35);
  assert_takes("bleu", TARN__CHECKPOINT_BEST, "BLEU 4.35 in validation, the average 2.99");
  set_log("bleu", "valid_bleu", 4.36, 4.35);
  assert_takes("bleu", TARN__CHECKPOINT_AVERAGE, "BLEU 4.36 in validation, the best 4.35");
  set_log("bleu", "valid_bleu", 4.35, 4.35);
  assert_takes("bleu", TARN__CHECKPOINT_BEST, "");
  set_log("loss", "valid_loss", 2.99, 4.35);
  assert_takes("loss", TARN__CHECKPOINT_AVERAGE, "loss 2.9900 in validation, the best 4.3500");
  set_log("loss", "valid_loss", 4.36, 4.35);
  assert_takes("loss", TARN__CHECKPOINT_BEST, "loss 4.3500");
}

static void an_average_without_validation_does_not_win(void **state) {
  (void)state;
  set_log("bleu", "valid_bleu", 50, 4.35);
  assert_takes("bleu", TARN__CHECKPOINT_AVERAGE, "");
  set_log("bleu", "valid_bleu", -1, 4.35);
  assert_takes("bleu", TARN__CHECKPOINT_BEST, "no validation of the average");
  run_through("nolog", NULL, 0);
  assert_int_equal(unlink("nolog/log.jsonl"), 0);
  assert_takes("nolog", TARN__CHECKPOINT_BEST, "no validation of the best");
  assert_int_equal(unlink("nolog/config.yaml"), 0);
  assert_takes("nolog", TARN__CHECKPOINT_BEST, "not compared");
}

static void without_validation_the_average_or_the_last_is_taken(void **state) {
  (void)state;
  const char *const overrides[] = {"data.valid="};
  run_through("unseen", overrides, 1);
  assert_takes("unseen", TARN__CHECKPOINT_AVERAGE, "no best checkpoint");
  assert_int_equal(unlink("unseen/" TARN__CHECKPOINT_AVERAGE), 0);
  assert_takes("unseen", TARN__CHECKPOINT_LAST, "no best checkpoint");
}

static void refuse(const char *path, tarn_checkpoint_choice choice, tarn_status expected, const char *words) {
  tarn_checkpoint_found found;
  assert_int_equal(tarn_checkpoint_find(&found, path, choice), expected);
  assert_null(found.path);
  if (!strstr(tarn_error_message(), words)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), words);
}

static void what_is_asked_for_is_taken_or_refused(void **state) {
  (void)state;
  static const char *const names[] = {NULL, TARN__CHECKPOINT_BEST, TARN__CHECKPOINT_LAST, TARN__CHECKPOINT_AVERAGE};
  tarn_checkpoint_found found;
  for (int i = 1; i < TARN_CHECKPOINT_CHOICE_COUNT; i++) {
    assert_int_equal(tarn_checkpoint_find(&found, "bleu", (tarn_checkpoint_choice)i), TARN_STATUS_OK);
    assert_non_null(strstr(found.path, names[i]));
    assert_string_equal(found.reason, "");
    tarn_checkpoint_found_close(&found);
  }
  const char *const overrides[] = {"train.average=0"};
  run_through("plain", overrides, 1);
  refuse("plain", TARN_CHECKPOINT_CHOICE_AVERAGE, TARN_STATUS_DATA,
         "plain: there is no checkpoint_average.safetensors in this run; there is: best, last");
  assert_int_equal(mkdir("empty", 0777), 0);
  refuse("empty", TARN_CHECKPOINT_CHOICE_BEST, TARN_STATUS_DATA, "this is a folder without a run");
  refuse("empty", TARN_CHECKPOINT_CHOICE_AUTO, TARN_STATUS_DATA, "this is a folder without a run");
  refuse("bleu/" TARN__CHECKPOINT_LAST, TARN_CHECKPOINT_CHOICE_BEST, TARN_STATUS_USAGE, "is no run directory");
  refuse("nowhere", TARN_CHECKPOINT_CHOICE_BEST, TARN_STATUS_IO, "nowhere: cannot read: No such file or directory");
  assert_int_equal(tarn_checkpoint_find(&found, "bleu/" TARN__CHECKPOINT_LAST, TARN_CHECKPOINT_CHOICE_AUTO),
                   TARN_STATUS_OK);
  assert_false(found.in_run);
  assert_string_equal(found.path, "bleu/" TARN__CHECKPOINT_LAST);
  tarn_checkpoint_found_close(&found);
}

// result.json and the result of a training name the file that the commands take.
static void a_training_names_the_same_file(void **state) {
  (void)state;
  tarn_train_options options;
  tarn_train_default(&options);
  options.config = "tiny.yaml";
  options.run = "named";
  tarn_train *train;
  tarn_train_result result;
  assert_int_equal(tarn_train_open(&train, &options), TARN_STATUS_OK);
  assert_int_equal(tarn_train_run(train, &result), TARN_STATUS_OK);
  assert_takes("named", result.checkpoint, result.checkpoint_reason);
  json_t *file = json_load_file("named/result.json", 0, NULL);
  assert_string_equal(json_string_value(json_object_get(file, "checkpoint")), strrchr(result.checkpoint, '/') + 1);
  json_decref(file);
  tarn_train_close(&train);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_better_one_by_validation_is_taken),
                                     cmocka_unit_test(an_average_without_validation_does_not_win),
                                     cmocka_unit_test(without_validation_the_average_or_the_last_is_taken),
                                     cmocka_unit_test(what_is_asked_for_is_taken_or_refused),
                                     cmocka_unit_test(a_training_names_the_same_file)};
  return cmocka_run_group_tests(tests, open_all, sandbox_close);
}
