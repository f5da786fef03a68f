#include "model/progress.h"

#include <jansson.h>
#include <stddef.h>
#include <string.h>

// One table for both directions.
static const struct {
  const char *name;
  bool real;
  size_t offset;
  bool optional;  // 0 where an older checkpoint lacks it
} fields[] = {
#define WHOLE(name) \
  { #name, false, offsetof(tarn__progress, name), false }
#define REAL(name) \
  { #name, true, offsetof(tarn__progress, name), false }
    WHOLE(update),
    WHOLE(batches),
    WHOLE(epoch),
    WHOLE(index),
    REAL(seconds),
    WHOLE(best_update),
    REAL(best),
    WHOLE(worse),
    WHOLE(validated),
    WHOLE(saved),
    WHOLE(source_tokens),
    WHOLE(target_tokens),
    REAL(loss_sum),
    REAL(nll_sum),
    REAL(norm_sum),
    REAL(window_seconds),
    WHOLE(window_updates),
    WHOLE(window_source),
    WHOLE(window_target),
    {"at_start", false, offsetof(tarn__progress, at_start), true},
    {"frozen_sets", false, offsetof(tarn__progress, frozen_sets), true},
    {"norm_count", false, offsetof(tarn__progress, norm_count), true},
#undef WHOLE
#undef REAL
};
enum { FIELDS = sizeof fields / sizeof *fields };

// NULL when there is no memory.
static json_t *write_norms(const tarn__progress *progress) {
  json_t *array = json_array();
  for (int64_t i = 0; i < progress->norm_count; i++) {
    if (json_array_append_new(array, json_real(progress->norms[i])) == 0) continue;
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
    failed = json_object_set_new(object, fields[i].name, fields[i].real ? json_real(real) : json_integer(whole)) != 0;
  }
  if (!failed && progress->norm_count > 0) failed = json_object_set_new(object, "norms", write_norms(progress)) != 0;
  if (!failed) *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17));
  json_decref(object);
  TARN_REQUIRE(*text, MEMORY, "out of memory: the progress of the training");
  return TARN_STATUS_OK;
}

static tarn_status read_field(tarn__progress *progress, size_t index, const json_t *value, const char *file) {
  const char *name = fields[index].name;
  char *at = (char *)progress + fields[index].offset;
  if (!value && fields[index].optional) return TARN_STATUS_OK;
  TARN_REQUIRE(fields[index].real ? json_is_number(value) : json_is_integer(value), DATA,
               "%s: the number \"%s\" of the training's progress is missing", file, name);
  if (fields[index].real) {
    double real = json_number_value(value);
    memcpy(at, &real, sizeof real);
  } else {
    int64_t whole = json_integer_value(value);
    TARN_REQUIRE(whole >= 0, DATA, "%s: the number \"%s\" of the training's progress is negative", file, name);
    memcpy(at, &whole, sizeof whole);
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

tarn_status tarn__progress_read(tarn__progress *progress, const char *text, const char *file) {
  json_error_t error;
  *progress = (tarn__progress){0};
  json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, &error);
  TARN_REQUIRE(object, DATA, "%s: the training's progress is damaged: %s", file, error.text);
  tarn_status status = TARN_STATUS_OK;
  for (size_t i = 0; i < FIELDS && status == TARN_STATUS_OK; i++)
    status = read_field(progress, i, json_object_get(object, fields[i].name), file);
  if (status == TARN_STATUS_OK) status = read_norms(progress, json_object_get(object, "norms"), file);
  json_decref(object);
  return status;
}
