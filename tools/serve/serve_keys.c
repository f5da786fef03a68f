#include "serve/serve_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tarn/text.h"

static bool read_strings(serve_request *request, const serve_key *k, const json_t *value, int64_t bytes) {
  const serve_strings *to = k->value;
  if (k->high > 0 && (double)bytes > k->high) bytes = (int64_t)k->high;
  const size_t count = json_is_array(value) ? json_array_size(value) : 1;
  if (count > SERVE_KEY_STRINGS_MOST) {
    serve_request_refuse_key(request, 400, k->name, "\"%s\" may have at most %d strings", k->name,
                             SERVE_KEY_STRINGS_MOST);
    return false;
  }
  const char **items = *to->memory = malloc((count + 1) * sizeof *items);
  if (!items) {
    serve_request_answer(request, NULL);
    return false;
  }
  for (size_t i = 0; i < count; i++) {
    const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
    items[i] = json_string_value(item);
    if (items[i] && (int64_t)json_string_length(item) > bytes) {
      serve_request_refuse_key(request, 413, k->name, "a string of \"%s\" has %zu bytes, but may have at most %lld",
                               k->name, json_string_length(item), (long long)bytes);
      return false;
    }
    if (items[i] && *items[i] && strlen(items[i]) == json_string_length(item)) continue;
    serve_request_refuse_key(request, 400, k->name, "\"%s\" must be a string that is not empty, or an array of such",
                             k->name);
    return false;
  }
  *to->items = items;
  *to->count = count;
  return true;
}

static bool read_word(serve_request *request, const serve_key *k, const json_t *value) {
  char all[256] = "";
  for (size_t i = 0, used = 0; k->words[i] && used < sizeof all; i++) {
    if (json_is_string(value) && strcmp(json_string_value(value), k->words[i]) == 0) {
      *(int *)k->value = (int)i;
      return true;
    }
    used += (size_t)snprintf(all + used, sizeof all - used, "%s\"%s\"",
                             i == 0            ? ""
                             : k->words[i + 1] ? ", "
                                               : " or ",
                             k->words[i]);
  }
  serve_request_refuse_key(request, 400, k->name, "\"%s\" must be %s", k->name, all);
  return false;
}

// Checks a value and stores it.
static bool read_key(serve_request *request, const serve_key *k, const json_t *value, int64_t string_bytes) {
  const double number = json_number_value(value);
  switch (k->type) {
    case SERVE_KEY_OWN:
      return true;
    case SERVE_KEY_FLAG:
      *(bool *)k->value = json_is_true(value);
      if (json_is_boolean(value)) return true;
      serve_request_refuse_key(request, 400, k->name, "\"%s\" must be true or false", k->name);
      return false;
    case SERVE_KEY_WHOLE:
      *(int64_t *)k->value = (int64_t)json_integer_value(value);
      if (json_is_integer(value) && number >= k->low && number <= k->high) return true;
      serve_request_refuse_key(request, 400, k->name, "\"%s\" must be a whole number from %.0f to %.0f", k->name,
                               k->low, k->high);
      return false;
    case SERVE_KEY_REAL:
      *(double *)k->value = number;
      if (json_is_number(value) && number >= k->low && number <= k->high) return true;
      serve_request_refuse_key(request, 400, k->name, "\"%s\" must be a number from %g to %g", k->name, k->low,
                               k->high);
      return false;
    case SERVE_KEY_WORD:
      return read_word(request, k, value);
    case SERVE_KEY_STRINGS:
      return read_strings(request, k, value, string_bytes);
  }
  return false;
}

// Names the nearest key that the request does not have yet, and all valid keys.
static void refuse_key(serve_request *request, const char *path, const char *name, const char *const names[],
                       size_t count) {
  const char *missing[SERVE_KEYS];
  size_t missing_count = 0;
  for (size_t i = 0; i < count; i++)
    if (!json_object_get(request->body, names[i])) missing[missing_count++] = names[i];
  const char *nearest = tarn_text_nearest(name, missing, missing_count);
  char all[1024] = "";
  for (size_t i = 0, used = 0; i < count && used < sizeof all; i++)
    used += (size_t)snprintf(all + used, sizeof all - used, "%s\"%s\"", i ? ", " : "", names[i]);
  serve_request_refuse_key(request, 400, name, "%s knows no \"%.60s\"%s%s%s keys are %s", path, name,
                           nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"? Its" : "; its",
                           all);
}

bool serve_keys_read(serve_request *request, const char *path, const serve_key *keys, size_t count, bool nulls,
                     int64_t string_bytes) {
  const char *name;
  json_t *value;
  json_object_foreach(request->body, name, value) {
    const char *names[SERVE_KEYS];
    size_t number = 0, at = count;
    for (size_t i = 0; i < count; i++) {
      if (!(keys[i].uses & 1u << request->use)) continue;
      names[number++] = keys[i].name;
      if (strcmp(keys[i].name, name) == 0) at = i;
    }
    if (at == count) {
      refuse_key(request, path, name, names, number);
      return false;
    }
    if (nulls && json_is_null(value)) continue;
    if (!read_key(request, &keys[at], value, string_bytes)) return false;
  }
  return true;
}

bool serve_keys_given(const serve_request *request, const char *name) {
  const json_t *value = json_object_get(request->body, name);
  return value && !json_is_null(value);
}
