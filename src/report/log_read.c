#include "report/log_read.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_io.h"
#include "base/log.h"
#include "run/record.h"
#include "tarn/measure.h"

enum { SERIES_MOST = 4096 };

// A series that grows.
typedef struct growing {
  char name[TARN__SCORE_NAME];
  tarn_results_point *points;
  size_t count, capacity;
} growing;

typedef struct reader {
  const char *path;
  long line;
  growing *series;
  size_t count, capacity;
  size_t expected;  // index where the next score is searched first: lines of one kind have the same scores
  tarn_results_freeze *freezes;
  size_t freeze_count, freeze_capacity;
  tarn_results_point at;  // of the line
  const char *signature;
  bool back;  // the clock went back; reported
  tarn__arena *arena;
} reader;

static tarn_status find(reader *r, growing **out, const char *name) {
  for (size_t i = 0; i < r->count; i++) {
    size_t index = (r->expected + i) % r->count;
    if (strcmp(r->series[index].name, name) != 0) continue;
    r->expected = index + 1;
    *out = &r->series[index];
    return TARN_STATUS_OK;
  }
  TARN_REQUIRE(r->count < SERIES_MOST, DATA, "there are more than %d scores", SERIES_MOST);
  TARN_TRY(tarn__grow(&r->series, &r->capacity, r->count + 1, sizeof *r->series));
  growing *added = &r->series[r->count++];
  *added = (growing){0};
  strncpy(added->name, name, sizeof added->name - 1);
  *out = added;
  return TARN_STATUS_OK;
}

static tarn_status receive(void *user, const char *name, double value) {
  reader *r = user;
  growing *curve = NULL;
  TARN_REQUIRE(isfinite(value), DATA, "\"%s\" is not a finite number", name);
  TARN_TRY(find(r, &curve, name));
  TARN_TRY(tarn__grow(&curve->points, &curve->capacity, curve->count + 1, sizeof *curve->points));
  curve->points[curve->count] = r->at;
  curve->points[curve->count++].value = value;
  return TARN_STATUS_OK;
}

static tarn_status read_freeze(reader *r, const json_t *record) {
  const json_t *layers = json_object_get(record, "layers");
  TARN_REQUIRE(json_is_array(layers), DATA, "a record of the kind \"freeze\" needs a list \"layers\"");
  for (size_t i = 0; i < json_array_size(layers); i++) {
    const char *name = json_string_value(json_array_get(layers, i));
    char *copy;
    TARN_REQUIRE(name, DATA, "\"layers\" must be names");
    TARN_TRY(tarn__arena_strdup(r->arena, &copy, name));
    TARN_TRY(tarn__grow(&r->freezes, &r->freeze_capacity, r->freeze_count + 1, sizeof *r->freezes));
    r->freezes[r->freeze_count++] = (tarn_results_freeze){.seconds = r->at.seconds, .step = r->at.step, .layer = copy};
  }
  return TARN_STATUS_OK;
}

// If the machine's clock went back, time stands still until the log has passed it.
static void take_time(reader *r, double seconds) {
  if (seconds >= r->at.seconds) {
    r->at.seconds = seconds;
    return;
  }
  if (!r->back)
    tarn__log(TARN_LOG_WARNING,
              "%s:%ld: the clock of the machine went back (time %.9g after %.9g), so times are not known until it is "
              "past that again",
              r->path, r->line, seconds, r->at.seconds);
  r->back = true;
}

static tarn_status read_record(reader *r, const json_t *record) {
  const json_t *step = json_object_get(record, "step");
  const json_t *time = json_object_get(record, "time");
  const json_t *epoch = json_object_get(record, "epoch");
  TARN_REQUIRE(json_is_integer(step) && json_integer_value(step) >= 0 && json_is_number(time) &&
                   (!epoch || (json_is_number(epoch) && json_number_value(epoch) >= 0)),
               DATA, "a record needs a \"step\" from 0 on and a \"time\"");
  TARN_REQUIRE(json_integer_value(step) >= r->at.step, DATA, "steps must not fall: step %lld after %lld",
               (long long)json_integer_value(step), (long long)r->at.step);
  r->at.step = json_integer_value(step);
  take_time(r, json_number_value(time));
  r->at.epoch = epoch ? json_number_value(epoch) : NAN;
  const char *kind = json_string_value(json_object_get(record, "kind"));
  if (kind && strcmp(kind, "freeze") == 0) return read_freeze(r, record);
  const char *signature = json_string_value(json_object_get(record, "signature"));
  if (signature && (!r->signature || strcmp(r->signature, signature) != 0)) {
    char *copy;
    TARN_TRY(tarn__arena_strdup(r->arena, &copy, signature));
    r->signature = copy;
  }
  return tarn__record_scores(record, receive, r);
}

static tarn_status read_lines(reader *r, tarn_results_run *run, const char *text, size_t size) {
  for (size_t begin = 0; begin < size;) {
    const char *newline = memchr(text + begin, '\n', size - begin), *zero = memchr(text + begin, '\0', size - begin);
    if (zero && (!newline || zero < newline)) {
      r->line++;
      return tarn__fail(TARN_STATUS_DATA, "%s:%ld: it is damaged at byte %zu: a zero byte", r->path, r->line,
                        (size_t)(zero - text));
    }
    if (!newline) break;  // an incomplete line, being written or cut off by a kill
    size_t length = (size_t)(newline - (text + begin));
    json_error_t error;
    r->line++;
    json_t *record;
    tarn_status status = tarn__json_parse(&record, text + begin, length, JSON_REJECT_DUPLICATES, &error);
    if (status == TARN_STATUS_OK && !record)
      status =
          tarn__fail(TARN_STATUS_DATA, "it is damaged at byte %zu: %s", begin + (size_t)error.position, error.text);
    if (status == TARN_STATUS_OK) status = read_record(r, record);
    json_decref(record);
    if (status == TARN_STATUS_DATA) return tarn__fail_prefix(status, "%s:%ld: ", r->path, r->line);
    TARN_TRY(status);
    run->seconds = r->at.seconds;
    run->step = r->at.step;
    if (!isnan(r->at.epoch)) run->epoch = r->at.epoch;
    begin += length + 1;
  }
  return TARN_STATUS_OK;
}

static bool less_is_better(const char *name) {
  const tarn_measure *measure = tarn_measure_find(name);
  return measure && measure->less;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const growing *)a)->name, ((const growing *)b)->name);
}

// Moves the complete series into the arena.
static tarn_status store(tarn_results_run *run, const reader *r) {
  void *memory;
  if (r->count) qsort(r->series, r->count, sizeof *r->series, by_name);
  TARN_TRY(tarn__arena_alloc(r->arena, &memory, r->count, sizeof *run->series));
  tarn_results_series *series = memory;
  for (size_t i = 0; i < r->count; i++) {
    const growing *from = &r->series[i];
    char *name;
    TARN_TRY(tarn__arena_strdup(r->arena, &name, from->name));
    TARN_TRY(tarn__arena_alloc(r->arena, &memory, from->count, sizeof *from->points));
    memcpy(memory, from->points, from->count * sizeof *from->points);
    series[i] = (tarn_results_series){name, less_is_better(name), memory, from->count};
  }
  run->series = series;
  run->series_count = r->count;
  TARN_TRY(tarn__arena_alloc(r->arena, &memory, r->freeze_count, sizeof *r->freezes));
  if (r->freeze_count) memcpy(memory, r->freezes, r->freeze_count * sizeof *r->freezes);
  run->freezes = memory;
  run->freeze_count = r->freeze_count;
  run->signature = r->signature;
  return TARN_STATUS_OK;
}

tarn_status tarn__log_read(tarn_results_run *run, const char *path, tarn__arena *arena) {
  reader r = {.path = path, .arena = arena};
  char *text;
  size_t size;
  TARN_TRY(tarn__file_read(path, &text, &size));
  tarn_status status = read_lines(&r, run, text, size);
  if (status == TARN_STATUS_OK) status = store(run, &r);
  for (size_t i = 0; i < r.count; i++) tarn__free(r.series[i].points);
  tarn__free(r.series);
  tarn__free(r.freezes);
  tarn__free(text);
  return status;
}
