// Determines the progress of a run from the files of its directory.
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json_io.h"
#include "run/names.h"
#include "run/record.h"
#include "store/checkpoint.h"
#include "sweep/spec.h"
#include "tarn/checkpoint.h"
#include "tarn/measure.h"
#include "tarn/status.h"
#include "task/task.h"
#include "text/json_text.h"

static const char RESULT[] = TARN__RUN_RESULT;
static const char TEST[] = TARN__RUN_TEST;

// The first line that differs between two texts.
static tarn_status refuse_difference(const char *path, const char *then, const char *now) {
  while (*now && *then) {
    size_t now_length = strcspn(now, "\n");
    size_t then_length = strcspn(then, "\n");
    size_t now_space = strspn(now, " ");
    size_t then_space = strspn(then, " ");
    if (now_length != then_length || strncmp(now, then, now_length) != 0)
      return tarn__fail(TARN_STATUS_USAGE,
                        "%s was begun with \"%.*s\", but the sweep now says \"%.*s\": runs of different settings must "
                        "not be mixed; put it back, or use another folder",
                        path, (int)(then_length - then_space), then + then_space, (int)(now_length - now_space),
                        now + now_space);
    now += now_length + (now[now_length] == '\n');
    then += then_length + (then[then_length] == '\n');
  }
  return tarn__fail(TARN_STATUS_USAGE, "%s was begun with another configuration than the sweep's; use another folder",
                    path);
}

// The configuration of the folder is parsed and written again, so that keys added to the program since then have their
// defaults.
static tarn_status check_config(tarn_sweep *sweep, const tarn_sweep_run *run, const char *path) {
  tarn_config *old = NULL;
  tarn_config *config = NULL;
  char *then = NULL;
  char *now = NULL;
  tarn_status status = tarn_config_read(&old, path, NULL, 0);
  if (status == TARN_STATUS_OK) status = tarn_config_write(old, &then);
  if (status == TARN_STATUS_OK)
    status = tarn__sweep_config(sweep, &config, &sweep->memory->edits[run->variant], run->seed);
  if (status == TARN_STATUS_OK) status = tarn_config_write(config, &now);
  if (status == TARN_STATUS_OK && strcmp(then, now) != 0) status = refuse_difference(path, then, now);
  tarn_config_text_close(&then);
  tarn_config_text_close(&now);
  tarn_config_close(&old);
  tarn_config_close(&config);
  return status;
}

// Reads a JSON object; NULL if the file is missing or damaged: its contents are then recomputed.
static tarn_status load(json_t **object, const tarn_sweep_run *run, const char *name) {
  char path[PATH_MAX];
  *object = NULL;
  TARN_TRY(tarn__path_join(path, run->path, name));
  return tarn__file_exists(path) ? tarn__json_file(object, path, 0, NULL) : TARN_STATUS_OK;
}

static bool has_text(const json_t *object, const char *key, const char *text) {
  const char *value = json_string_value(json_object_get(object, key));
  return value && strcmp(value, text) == 0;
}

static bool hash_fits(const json_t *result, const char *config_path) {
  const char *hash = json_string_value(json_object_get(result, "config_hash"));
  char own[TARN__HASH_TEXT];
  char *text;
  size_t size;
  if (!hash) return true;  // a failure recorded by the sweep
  if (tarn__file_read(config_path, &text, &size) != TARN_STATUS_OK) return false;
  tarn__hash(own, text, size);
  tarn__free(text);
  return tarn__hash_same(hash, own);
}

// Whether it is of the checkpoint that the sweep tests, so that all its runs are tested alike. If the checkpoints are
// gone, a new test is impossible.
static bool has_checkpoint(const tarn_sweep *sweep, const tarn_sweep_run *run, const json_t *test) {
  tarn_checkpoint_found found;
  if (tarn_checkpoint_find(&found, run->path, sweep->test_checkpoint) != TARN_STATUS_OK) return true;
  const bool has = has_text(test, "checkpoint", strrchr(found.path, '/') + 1);
  tarn_checkpoint_found_close(&found);
  return has;
}

// Whether a test was made with that value of an option of translation, if the model has it; else with none.
static bool has_option(const tarn_config *config, const json_t *test, const char *key, int64_t value) {
  char text[2 * TARN__TASK_TEXT];
  const bool has = tarn__decoding_has(text, tarn__config_task(config), key);
  return json_integer_value(json_object_get(test, key)) == (has ? value : 0);
}

// Whether the scores in a test.json are of the sweep's test, and not of another one made in between.
static bool is_own_test(const tarn_sweep *sweep, const tarn_sweep_run *run, const json_t *test) {
  const char *precision = json_string_value(json_object_get(test, "precision"));  // default: fp32
  if (strcmp(precision ? precision : "fp32", tarn_translate_precision_name(sweep->test_precision)) != 0) return false;
  if (!has_checkpoint(sweep, run, test)) return false;
  if (sweep->test_blimp)  // a sweep refuses texts too long for the model
    return has_text(test, "folder", sweep->test_blimp) && json_integer_value(json_object_get(test, "truncated")) == 0;
  if (sweep->test_labelled) return has_text(test, "data", sweep->test_labelled);
  if (sweep->test_text)
    return has_text(test, "text", sweep->test_text) &&
           json_integer_value(json_object_get(test, "window")) == sweep->test_window &&
           json_integer_value(json_object_get(test, "stride")) == sweep->test_stride;
  const tarn_config *config = sweep->variants[run->variant].config;
  return has_text(test, "source", sweep->test_source) && has_text(test, "reference", sweep->test_reference) &&
         has_option(config, test, "beam", sweep->test_beam ? sweep->test_beam : config->translate.beam) &&
         has_option(config, test, "iterations", config->translate.iterations) &&
         has_option(config, test, "length_beam", config->translate.length_beam);
}

// The texts of a sweep live as long as the sweep, which may be followed for days.
tarn_status tarn__sweep_set_text(tarn_sweep *sweep, const char **text, const char *value) {
  if (*text && strncmp(*text, value, 1000) == 0) return TARN_STATUS_OK;
  return tarn__sweep_text(sweep, text, "%.1000s", value);
}

static tarn_status take_failure(tarn_sweep *sweep, tarn_sweep_run *run, const json_t *object) {
  const char *message = json_string_value(json_object_get(object, "message"));
  run->state = TARN_SWEEP_FAILED;
  return tarn__sweep_set_text(sweep, &run->message, message ? message : "it failed");
}

// The measures of a test with labels, each {"value", "low", "high"}, or of a text, each a number. True: there is one.
static bool take_measures(tarn_sweep_run *run, const json_t *test) {
  bool any = false;
  for (int m = 0; m < TARN__METRIC_COUNT; m++) {
    const json_t *measure = json_object_get(test, tarn_measure_of(m)->word);
    const json_t *value = json_is_object(measure) ? json_object_get(measure, "value") : measure;
    if (!json_is_number(value)) continue;
    run->test[m] = json_number_value(value);
    any = true;
  }
  return any;
}

// Reads the results of a run whose training is over.
static tarn_status read_test(tarn_sweep *sweep, tarn_sweep_run *run) {
  const bool measured = sweep->test_labelled || sweep->test_text;
  run->test_bleu = run->test_blimp = NAN;
  for (int m = 0; m < TARN_MEASURES; m++) run->test[m] = NAN;
  if (!sweep->test_source && !sweep->test_blimp && !measured) run->state = TARN_SWEEP_FINISHED;
  if (run->state == TARN_SWEEP_FINISHED) return TARN_STATUS_OK;
  json_t *test;
  tarn_status status = TARN_STATUS_OK;
  TARN_TRY(load(&test, run, TEST));
  const json_t *score = json_object_get(test, sweep->test_blimp ? "blimp" : "bleu");
  if (has_text(test, "status", "failed")) {
    status = take_failure(sweep, run, test);
  } else if (measured) {
    if (test && is_own_test(sweep, run, test) && take_measures(run, test)) run->state = TARN_SWEEP_FINISHED;
  } else if (json_is_number(score) && is_own_test(sweep, run, test)) {
    *(sweep->test_blimp ? &run->test_blimp : &run->test_bleu) = json_number_value(score);
    run->state = TARN_SWEEP_FINISHED;
  }
  json_decref(test);
  return status;
}

static tarn_status read_result(tarn_sweep *sweep, tarn_sweep_run *run, const char *config_path) {
  json_t *result;
  TARN_TRY(load(&result, run, RESULT));
  const char *status = json_string_value(json_object_get(result, "status"));
  tarn_status done = TARN_STATUS_OK;
  if (result && status && hash_fits(result, config_path)) {
    run->state = TARN_SWEEP_TRAINED;
    run->update = json_integer_value(json_object_get(result, "update"));
    run->seconds = json_number_value(json_object_get(result, "seconds"));
    if (strcmp(status, "failed") == 0) done = take_failure(sweep, run, result);
  }
  json_decref(result);
  return done;
}

tarn_status tarn__sweep_look(tarn_sweep *sweep, tarn_sweep_run *run) {
  char path[PATH_MAX];
  int64_t offset = 0;
  TARN_TRY(tarn__path_join(path, run->path, TARN__RUN_CONFIG));
  run->state = TARN_SWEEP_WAITING;
  if (!tarn__file_exists(path)) return TARN_STATUS_OK;
  TARN_TRY(check_config(sweep, run, path));
  return tarn__sweep_look_again(sweep, run, &offset);
}

tarn_status tarn__sweep_look_again(tarn_sweep *sweep, tarn_sweep_run *run, int64_t *offset) {
  char path[PATH_MAX];
  TARN_TRY(tarn__path_join(path, run->path, TARN__RUN_CONFIG));
  run->state = TARN_SWEEP_WAITING;
  if (!tarn__file_exists(path)) return TARN_STATUS_OK;
  tarn__sweep_read_log(sweep, run, offset);
  if (*offset > 0) run->state = TARN_SWEEP_BEGUN;
  tarn_status status = read_result(sweep, run, path);
  if (status == TARN_STATUS_OK && run->state == TARN_SWEEP_TRAINED) status = read_test(sweep, run);
  if (run->state != TARN_SWEEP_FAILED) run->message = NULL;
  return status;
}

tarn_status tarn__sweep_write_failure(const tarn_sweep_run *run, bool testing, const char *message) {
  char path[PATH_MAX];
  TARN_TRY(tarn__path_join(path, run->path, testing ? TEST : RESULT));
  json_t *object = json_pack("{s:s, s:s, s:o, s:I, s:f}", "version", tarn_version(), "status", "failed", "message",
                             tarn__json_text(message), "update", (json_int_t)run->update, "seconds", run->seconds);
  char *text = tarn__json_dump(object, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
  json_decref(object);
  TARN_REQUIRE(text, MEMORY, "out of memory: %s", path);
  tarn_status status = tarn__file_write(path, text, strlen(text));
  free(text);
  return status;
}

tarn_status tarn__sweep_forget_failure(tarn_sweep *sweep, tarn_sweep_run *run) {
  static const char *const names[] = {RESULT, TEST};
  for (size_t i = 0; i < 2; i++) {
    char path[PATH_MAX];
    json_t *object;
    TARN_TRY(load(&object, run, names[i]));
    bool failed = has_text(object, "status", "failed");
    json_decref(object);
    if (!failed) continue;
    TARN_TRY(tarn__path_join(path, run->path, names[i]));
    TARN_REQUIRE(unlink(path) == 0, IO, "%s: cannot remove: %s", path, strerror(errno));
    TARN_TRY(tarn__sweep_forget_jobs(sweep, run));
  }
  return tarn__sweep_look(sweep, run);
}

static void take(const json_t *record, const char *key, double *value) {
  const json_t *number = json_object_get(record, key);
  if (json_is_number(number)) *value = json_number_value(number);
}

// The scores of a validation, also that of an average, by measure.
static tarn_status take_score(void *user, const char *name, double value) {
  double *scores = user;
  const tarn_measure *measure = tarn_measure_find(name);
  if (measure && (strncmp(name, "valid/", 6) == 0 || strncmp(name, "average/", 8) == 0))
    scores[measure->number] = value;
  return TARN_STATUS_OK;
}

// Whether a validation is of the checkpoint that the sweep tests, judged by the log so far (tarn_checkpoint_find()).
static bool counts(const tarn_sweep *sweep, const tarn_sweep_run *run, const json_t *record, const double *scores) {
  const int metric = sweep->variants[run->variant].config->valid.metric;
  const bool best = json_is_true(json_object_get(record, "best"));
  const bool average = json_object_get(record, "checkpoint") != NULL;
  switch (sweep->test_checkpoint) {
    case TARN_CHECKPOINT_CHOICE_LAST:
      return !average;
    case TARN_CHECKPOINT_CHOICE_AVERAGE:
      return best || average;
    case TARN_CHECKPOINT_CHOICE_BEST:
      return best;
    default:
      return best || (average && tarn__metric_better(scores[metric], run->valid[metric], metric));
  }
}

static void take_validation(const tarn_sweep *sweep, tarn_sweep_run *run, const json_t *record) {
  double scores[TARN_MEASURES];
  for (int m = 0; m < TARN_MEASURES; m++) scores[m] = NAN;
  if (tarn__record_scores(record, take_score, scores) != TARN_STATUS_OK) return;  // treated like an incomplete line
  if (!isnan(scores[TARN__METRIC_LOSS]) && counts(sweep, run, record, scores))
    memcpy(run->valid, scores, sizeof scores);
}

static void take_line(const tarn_sweep *sweep, tarn_sweep_run *run, const char *line, size_t length) {
  json_t *record;
  if (tarn__json_parse(&record, line, length, 0, NULL) != TARN_STATUS_OK)
    return;  // the display waits for the next
             // line
  const json_t *step = json_object_get(record, "step");
  if (json_is_integer(step)) run->update = json_integer_value(step);
  take(record, "time", &run->seconds);
  if (has_text(record, "kind", "train")) take(record, "loss", &run->loss);
  take_validation(sweep, run, record);
  json_decref(record);
}

bool tarn__sweep_read_log(const tarn_sweep *sweep, tarn_sweep_run *run, int64_t *offset) {
  enum { PIECE = 1 << 16 };
  char path[PATH_MAX];
  char piece[PIECE];
  bool grown = false;
  if (tarn__path_join(path, run->path, TARN__RUN_LOG) != TARN_STATUS_OK) return false;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat info;
  if (fstat(fd, &info) == 0) run->idle = difftime(time(NULL), info.st_mtime);
  // A resumed run first truncates its log.
  if (lseek(fd, 0, SEEK_END) < *offset) *offset = 0;
  for (int m = 0; *offset == 0 && m < TARN_MEASURES; m++) run->valid[m] = NAN;
  for (;;) {
    ssize_t got = pread(fd, piece, sizeof piece, *offset);
    const char *newline = got > 0 ? memrchr(piece, '\n', (size_t)got) : NULL;
    if (!newline) break;
    for (const char *line = piece; line <= newline;) {
      const char *end = memchr(line, '\n', (size_t)(newline - line) + 1);
      take_line(sweep, run, line, (size_t)(end - line));
      line = end + 1;
    }
    *offset += newline - piece + 1;
    grown = true;
  }
  close(fd);
  return grown;
}
