#include "store/progress.h"

#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/json_io.h"

// More than any training reaches, and far enough below the largest integer that counting on does not overflow.
static const int64_t MOST = (int64_t)1 << 53;

// A duration made negative by a clock that went back is unknown: 0.
typedef enum sort { COUNT, AMOUNT, REAL, DURATION } sort;

// One table for both directions.
static const struct {
  const char *name;
  sort sort;
  size_t offset;
  bool optional;  // 0 if an older checkpoint lacks it
} fields[] = {
#define FIELD(name, sort) \
  { #name, sort, offsetof(tarn__progress, name), false }
    FIELD(update, COUNT),
    FIELD(batches, COUNT),
    FIELD(epoch, COUNT),
    FIELD(index, COUNT),
    FIELD(seconds, DURATION),
    FIELD(best_update, COUNT),
    FIELD(best, REAL),
    FIELD(worse, COUNT),
    FIELD(validated, COUNT),
    FIELD(saved, COUNT),
    FIELD(source_tokens, COUNT),
    FIELD(target_tokens, COUNT),
    FIELD(loss_sum, REAL),
    FIELD(nll_sum, REAL),
    FIELD(norm_sum, REAL),
    FIELD(window_seconds, DURATION),
    FIELD(window_updates, COUNT),
    FIELD(window_source, COUNT),
    FIELD(window_target, COUNT),
    {"at_start", COUNT, offsetof(tarn__progress, at_start), true},
    {"measured", COUNT, offsetof(tarn__progress, measured), true},
    {"frozen_sets", COUNT, offsetof(tarn__progress, frozen_sets), true},
    {"peak_bytes", COUNT, offsetof(tarn__progress, peak_bytes), true},
    {"joules", AMOUNT, offsetof(tarn__progress, joules), true},
    {"best_joules", AMOUNT, offsetof(tarn__progress, best_joules), true},
    {"operations", AMOUNT, offsetof(tarn__progress, operations), true},
    {"best_operations", AMOUNT, offsetof(tarn__progress, best_operations), true},
    {"moved_bytes", AMOUNT, offsetof(tarn__progress, moved_bytes), true},
    {"cost_sources", COUNT, offsetof(tarn__progress, cost_sources), true},
    {"norm_count", COUNT, offsetof(tarn__progress, norm_count), true},
#undef FIELD
};
enum { FIELDS = sizeof fields / sizeof *fields };

// NULL if memory runs out.
static json_t *write_norms(const tarn__progress *progress) {
  json_t *array = json_array();
  for (int64_t i = 0; i < progress->norm_count; i++) {
    if (json_array_append_new(array, json_real(progress->norms[i])) == 0) continue;
    json_decref(array);
    return NULL;
  }
  return array;
}

// The sets up to the last scored one; NULL if memory runs out.
static json_t *write_scored(const tarn__progress *progress, int count) {
  json_t *array = json_array();
  for (int i = 0; i < count; i++) {
    if (json_array_append_new(array, json_integer(progress->scored[i])) == 0) continue;
    json_decref(array);
    return NULL;
  }
  return array;
}

tarn_status tarn__progress_write(char **text, const tarn__progress *progress) {
  *text = NULL;
  json_t *object = json_object();
  bool failed = !object;
  for (size_t i = 0; i < FIELDS && !failed; i++) {
    const char *at = (const char *)progress + fields[i].offset;
    int64_t whole;
    double real;
    memcpy(&whole, at, sizeof whole);
    memcpy(&real, at, sizeof real);
    failed = json_object_set_new(object, fields[i].name,
                                 fields[i].sort == COUNT ? json_integer(whole) : json_real(real)) != 0;
  }
  if (!failed && progress->norm_count > 0) failed = json_object_set_new(object, "norms", write_norms(progress)) != 0;
  int sets = TARN_CONFIG_SETS;
  while (sets > 0 && progress->scored[sets - 1] == 0) sets--;
  if (!failed && sets > 0) failed = json_object_set_new(object, "scored", write_scored(progress, sets)) != 0;
  if (!failed && progress->log.bytes > 0)
    failed = json_object_set_new(object, "log", tarn__log_sum_write(&progress->log)) != 0;
  if (!failed) *text = tarn__json_dump(object, JSON_COMPACT | JSON_REAL_PRECISION(17));
  json_decref(object);
  TARN_REQUIRE(*text, MEMORY, "out of memory: the progress of the training");
  return TARN_STATUS_OK;
}

static tarn_status read_field(tarn__progress *progress, size_t index, const json_t *value, const char *file) {
  const char *name = fields[index].name;
  char *at = (char *)progress + fields[index].offset;
  if (!value && fields[index].optional) return TARN_STATUS_OK;
  const bool count = fields[index].sort == COUNT;
  TARN_REQUIRE(count ? json_is_integer(value) : json_is_number(value), DATA,
               "%s: the number \"%s\" of the training's progress is missing", file, name);
  TARN_REQUIRE(fields[index].sort == REAL || fields[index].sort == DURATION || json_number_value(value) >= 0, DATA,
               "%s: the number \"%s\" of the training's progress is negative", file, name);
  if (count) {
    const int64_t whole = json_integer_value(value);
    TARN_REQUIRE(whole <= MOST, DATA, "%s: the number \"%s\" of the training's progress is larger than 2^53", file,
                 name);
    memcpy(at, &whole, sizeof whole);
  } else {
    double real = json_number_value(value);  // finite: JSON has no other numbers
    if (fields[index].sort == DURATION) real = fmax(real, 0.0);
    memcpy(at, &real, sizeof real);
  }
  return TARN_STATUS_OK;
}

static tarn_status read_norms(tarn__progress *progress, const json_t *array, const char *file) {
  int64_t count = progress->norm_count;
  TARN_REQUIRE(count <= TARN_CONFIG_LAYERS && progress->frozen_sets <= count && json_array_size(array) == (size_t)count,
               DATA, "%s: the norms of the training's progress are not %lld numbers", file, (long long)count);
  for (int64_t i = 0; i < count; i++) {
    const json_t *value = json_array_get(array, (size_t)i);
    TARN_REQUIRE(json_is_number(value), DATA, "%s: a norm of the training's progress is no number", file);
    progress->norms[i] = json_number_value(value);
  }
  return TARN_STATUS_OK;
}

static tarn_status read_scored(tarn__progress *progress, const json_t *array, const char *file) {
  TARN_REQUIRE(!array || json_is_array(array), DATA, "%s: \"scored\" of the training's progress is no list", file);
  TARN_REQUIRE(json_array_size(array) <= TARN_CONFIG_SETS, DATA, "%s: the training's progress has more than %d sets",
               file, (int)TARN_CONFIG_SETS);
  for (size_t i = 0; i < json_array_size(array); i++) {
    const json_t *value = json_array_get(array, i);
    TARN_REQUIRE(json_is_integer(value) && json_integer_value(value) >= 0 && json_integer_value(value) <= MOST, DATA,
                 "%s: what the training's progress says of a set is no update", file);
    progress->scored[i] = json_integer_value(value);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__progress_read(tarn__progress *progress, const char *text, const char *file) {
  json_error_t error;
  *progress = (tarn__progress){0};
  json_t *object;
  TARN_TRY(tarn__json_parse(&object, text, strlen(text), JSON_REJECT_DUPLICATES, &error));
  TARN_REQUIRE(object, DATA, "%s: the training's progress is damaged: %s", file, error.text);
  tarn_status status = TARN_STATUS_OK;
  for (size_t i = 0; i < FIELDS && status == TARN_STATUS_OK; i++)
    status = read_field(progress, i, json_object_get(object, fields[i].name), file);
  if (status == TARN_STATUS_OK) status = read_norms(progress, json_object_get(object, "norms"), file);
  if (status == TARN_STATUS_OK) status = read_scored(progress, json_object_get(object, "scored"), file);
  if (status == TARN_STATUS_OK) status = tarn__log_sum_read(&progress->log, json_object_get(object, "log"), file);
  json_decref(object);
  return status;
}
