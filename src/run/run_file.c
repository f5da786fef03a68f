#include "run/run_file.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_io.h"

tarn_status tarn__arena_print(const char **text, tarn__arena *arena, const char *format, ...) {
  void *memory;
  va_list args;
  va_start(args, format);
  int length = vsnprintf(NULL, 0, format, args);
  va_end(args);
  TARN_REQUIRE(length >= 0, INTERNAL, "a text cannot be made of \"%s\"", format);
  TARN_TRY(tarn__arena_alloc(arena, &memory, (size_t)length + 1, 1));
  va_start(args, format);
  vsnprintf(memory, (size_t)length + 1, format, args);
  va_end(args);
  *text = memory;
  return TARN_STATUS_OK;
}

// 0 and 0.0 are the same number, as programs that read and write the file may have it.
static bool same_values(const json_t *a, const json_t *b) {
  if (!json_is_number(a) || !json_is_number(b)) return a == b || (a && b && json_equal(a, b));
  return json_number_value(a) == json_number_value(b);
}

bool tarn__run_same_design(const json_t *a, const json_t *b) {
  static const char *const keys[] = {"max_seeds", "looks", "measure", "alpha", "spending", "equivalence", "futility"};
  if (!json_is_object(a) || !json_is_object(b)) return !json_is_object(a) && !json_is_object(b);
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (!same_values(json_object_get(a, keys[i]), json_object_get(b, keys[i]))) return false;
  return true;
}

tarn_status tarn__join(const char **path, tarn__arena *arena, const char *folder, const char *name) {
  char text[PATH_MAX];
  TARN_TRY(tarn__path_join(text, folder, name));
  char *copy;
  TARN_TRY(tarn__arena_strdup(arena, &copy, text));
  *path = copy;
  return TARN_STATUS_OK;
}

tarn_status tarn__run_file_open(tarn__run_file *file, bool *exists, const char *folder, const char *name,
                                tarn__arena *arena) {
  json_t *root;
  json_error_t error;
  TARN_TRY(tarn__join(&file->path, arena, folder, name));
  *exists = tarn__file_exists(file->path) != 0;
  if (!*exists) return TARN_STATUS_OK;
  TARN_TRY(tarn__json_file(&root, file->path, JSON_REJECT_DUPLICATES, &error));
  TARN_REQUIRE(root, DATA, "%s:%d: it is damaged: %s", file->path, error.line, error.text);
  if (!json_is_object(root)) {
    json_decref(root);
    return tarn__fail(TARN_STATUS_DATA, "%s: it must hold one JSON object", file->path);
  }
  file->root = root;
  return TARN_STATUS_OK;
}

void tarn__run_file_close(tarn__run_file *file) {
  json_decref(file->root);
  file->root = NULL;
}

tarn_status tarn__run_file_text(const tarn__run_file *file, const json_t *object, const char *key, const char **out,
                                tarn__arena *arena) {
  const json_t *value = json_object_get(object, key);
  if (!value || json_is_null(value)) return TARN_STATUS_OK;
  TARN_REQUIRE(json_is_string(value), DATA, "%s: \"%s\" must be a text", file->path, key);
  char *copy;
  TARN_TRY(tarn__arena_strdup(arena, &copy, json_string_value(value)));
  *out = copy;
  return TARN_STATUS_OK;
}

tarn_status tarn__run_file_real(const tarn__run_file *file, const json_t *object, const char *key, double *out) {
  const json_t *value = json_object_get(object, key);
  if (!value || json_is_null(value)) return TARN_STATUS_OK;
  TARN_REQUIRE(json_is_number(value), DATA, "%s: \"%s\" must be a number", file->path, key);
  *out = json_number_value(value);
  return TARN_STATUS_OK;
}

tarn_status tarn__run_file_whole(const tarn__run_file *file, const json_t *object, const char *key, int64_t *out) {
  const json_t *value = json_object_get(object, key);
  if (!value || json_is_null(value)) return TARN_STATUS_OK;
  TARN_REQUIRE(json_is_integer(value) && json_integer_value(value) >= 0, DATA,
               "%s: \"%s\" must be a whole number from 0 on", file->path, key);
  *out = json_integer_value(value);
  return TARN_STATUS_OK;
}

tarn_status tarn__run_file_pairs(const tarn__run_file *file, const json_t *object, const char *key, const char **out,
                                 tarn__arena *arena) {
  const json_t *pairs = json_object_get(object, key);
  if (!pairs || json_is_null(pairs)) return TARN_STATUS_OK;
  TARN_REQUIRE(json_is_object(pairs), DATA, "%s: \"%s\" must be an object", file->path, key);
  char text[2048] = "";
  size_t length = 0;
  for (void *next = json_object_iter((json_t *)(uintptr_t)pairs); next && length < sizeof text;
       next = json_object_iter_next((json_t *)(uintptr_t)pairs, next)) {
    const json_t *value = json_object_iter_value(next);
    char *word = json_is_string(value) ? NULL : tarn__json_dump(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
    length += (size_t)snprintf(text + length, sizeof text - length, "%s%s=%s", length ? " " : "",
                               json_object_iter_key(next), word ? word : json_string_value(value));
    free(word);
  }
  if (!*text) return TARN_STATUS_OK;
  char *copy;
  TARN_TRY(tarn__arena_strdup(arena, &copy, text));
  *out = copy;
  return TARN_STATUS_OK;
}
