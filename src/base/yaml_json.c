#include "base/yaml_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/json_io.h"
#include "base/yaml_events.h"
#include "tarn/text.h"

typedef struct reader {
  tarn__yaml_events events;
  int values;
} reader;

static tarn_status no_memory(const reader *r) {
  return tarn__fail(TARN_STATUS_MEMORY, "%s: not enough memory", r->events.origin);
}

// Of a word without quotes.
static json_t *meaning(const char *text) {
  int64_t whole;
  double real;
  if (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0) return json_null();
  if (strcmp(text, "true") == 0) return json_true();
  if (strcmp(text, "false") == 0) return json_false();
  if (tarn_text_integer(&whole, text)) return json_integer(whole);
  if (tarn__decimal_read(&real, text, '.') && isfinite(real)) return json_real(real);
  return json_string(text);
}

static tarn_status read_value(reader *r, json_t **out, const yaml_event_t *event, int depth);

// Reads an event and the value that it begins; NULL if the event ends the enclosing list.
static tarn_status read_next(reader *r, json_t **out, int depth) {
  yaml_event_t event;
  *out = NULL;
  TARN_TRY(tarn__yaml_events_next(&r->events, &event));
  tarn_status status = TARN_STATUS_OK;
  if (event.type != YAML_SEQUENCE_END_EVENT) status = read_value(r, out, &event, depth);
  yaml_event_delete(&event);
  return status;
}

static tarn_status read_list(reader *r, json_t *list, int depth) {
  for (;;) {
    json_t *item;
    TARN_TRY(read_next(r, &item, depth + 1));
    if (!item) return TARN_STATUS_OK;
    if (json_array_append_new(list, item) != 0) return no_memory(r);
  }
}

static tarn_status read_entry(reader *r, json_t *map, const yaml_event_t *key, int depth) {
  const int line = tarn__yaml_events_line(&r->events, key);
  const char *origin = r->events.origin;
  json_t *value;
  TARN_TRY(tarn__yaml_events_check(&r->events, key, depth));
  if (key->type != YAML_SCALAR_EVENT)
    return tarn__yaml_events_fail(TARN_STATUS_DATA, origin, line, "a key must be one word");
  const char *name = (const char *)key->data.scalar.value;
  TARN_REQUIRE(!json_object_get(map, name), DATA, "%s:%d: key \"%.80s\" is given twice", origin, line, name);
  TARN_TRY(read_next(r, &value, depth));
  // A value follows every key, if only an empty one.
  return json_object_set_new(map, name, value) == 0 ? TARN_STATUS_OK : no_memory(r);
}

static tarn_status read_map(reader *r, json_t *map, int depth) {
  for (;;) {
    yaml_event_t key;
    TARN_TRY(tarn__yaml_events_next(&r->events, &key));
    const bool end = key.type == YAML_MAPPING_END_EVENT;
    const tarn_status status = end ? TARN_STATUS_OK : read_entry(r, map, &key, depth + 1);
    yaml_event_delete(&key);
    if (end || status != TARN_STATUS_OK) return status;
  }
}

static tarn_status read_value(reader *r, json_t **out, const yaml_event_t *event, int depth) {
  const int line = tarn__yaml_events_line(&r->events, event);
  TARN_TRY(tarn__yaml_events_check(&r->events, event, depth));
  if (++r->values > TARN__JSON_VALUES)
    return tarn__yaml_events_fail(TARN_STATUS_DATA, r->events.origin, line, "more values than tarn reads");
  if (event->type == YAML_SCALAR_EVENT) {
    const char *text = (const char *)event->data.scalar.value;
    *out = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? meaning(text) : json_string(text);
    return *out ? TARN_STATUS_OK : no_memory(r);
  }
  const bool list = event->type == YAML_SEQUENCE_START_EVENT;
  json_t *made = list ? json_array() : json_object();
  if (!made) return no_memory(r);
  const tarn_status status = list ? read_list(r, made, depth) : read_map(r, made, depth);
  if (status == TARN_STATUS_OK)
    *out = made;
  else
    json_decref(made);
  return status;
}

// The value, and behind it the end of the document and of the text.
static tarn_status read_document(reader *r, json_t **out) {
  yaml_event_t event;
  bool none;
  TARN_TRY(tarn__yaml_events_begin(&r->events, &event, &none));
  if (none) {
    *out = json_null();
    return TARN_STATUS_OK;
  }
  tarn_status status = read_value(r, out, &event, 0);
  yaml_event_delete(&event);
  TARN_TRY(status);
  return tarn__yaml_events_end(&r->events);
}

tarn_status tarn__yaml_json(json_t **out, const char *origin, const char *text, size_t size) {
  reader r = {.events = {.origin = origin, .lines = true, .mistaken = TARN_STATUS_DATA}};
  json_t *made = NULL;
  *out = NULL;
  TARN_TRY(tarn__yaml_events_open(&r.events, text, size));
  const tarn_status status = read_document(&r, &made);
  tarn__yaml_events_close(&r.events);
  if (status == TARN_STATUS_OK)
    *out = made;
  else
    json_decref(made);
  return status;
}
