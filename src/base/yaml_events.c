#include "base/yaml_events.h"

#include <stdio.h>
#include <string.h>

static int line_of(const tarn__yaml_events *e, yaml_mark_t mark) { return e->lines ? (int)mark.line + 1 : 0; }

int tarn__yaml_events_line(const tarn__yaml_events *events, const yaml_event_t *event) {
  return line_of(events, event->start_mark);
}

tarn_status tarn__yaml_events_fail(tarn_status status, const char *origin, int line, const char *text) {
  if (line > 0) return tarn__fail(status, "%s:%d: %s", origin, line, text);
  return tarn__fail(status, "%s: %s", origin, text);
}

tarn_status tarn__yaml_events_open(tarn__yaml_events *events, const char *text, size_t size) {
  TARN_REQUIRE(yaml_parser_initialize(&events->parser), MEMORY, "%s: not enough memory", events->origin);
  yaml_parser_set_input_string(&events->parser, (const unsigned char *)text, size);
  return TARN_STATUS_OK;
}

void tarn__yaml_events_close(tarn__yaml_events *events) { yaml_parser_delete(&events->parser); }

tarn_status tarn__yaml_events_next(tarn__yaml_events *events, yaml_event_t *event) {
  yaml_parser_t *p = &events->parser;
  if (yaml_parser_parse(p, event)) return TARN_STATUS_OK;
  TARN_REQUIRE(p->error != YAML_MEMORY_ERROR, MEMORY, "%s: not enough memory", events->origin);
  char text[256];
  const char *problem = p->problem ? p->problem : "it cannot be read";
  if (p->error == YAML_READER_ERROR) {
    snprintf(text, sizeof text, "not valid YAML: %s at byte %zu", problem, p->problem_offset);
    return tarn__yaml_events_fail(events->mistaken, events->origin, 0, text);
  }
  snprintf(text, sizeof text, "not valid YAML: %s%s%s", p->context ? p->context : "", p->context ? ", " : "", problem);
  return tarn__yaml_events_fail(events->mistaken, events->origin, line_of(events, p->problem_mark), text);
}

tarn_status tarn__yaml_events_begin(tarn__yaml_events *events, yaml_event_t *event, bool *none) {
  for (;;) {
    TARN_TRY(tarn__yaml_events_next(events, event));
    *none = event->type == YAML_STREAM_END_EVENT;
    if (event->type != YAML_STREAM_START_EVENT && event->type != YAML_DOCUMENT_START_EVENT) break;
    yaml_event_delete(event);
  }
  if (*none) yaml_event_delete(event);
  return TARN_STATUS_OK;
}

tarn_status tarn__yaml_events_end(tarn__yaml_events *events) {
  for (bool end = false; !end;) {
    yaml_event_t event;
    TARN_TRY(tarn__yaml_events_next(events, &event));
    const int line = tarn__yaml_events_line(events, &event);
    const bool another = event.type == YAML_DOCUMENT_START_EVENT;
    end = event.type == YAML_STREAM_END_EVENT;
    yaml_event_delete(&event);
    if (another) return tarn__yaml_events_fail(events->mistaken, events->origin, line, "more than one YAML document");
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__yaml_events_check(const tarn__yaml_events *events, const yaml_event_t *event, int depth) {
  const yaml_char_t *anchor = NULL, *tag = NULL;
  const char *wrong = NULL;
  switch (event->type) {
    case YAML_SCALAR_EVENT:
      anchor = event->data.scalar.anchor;
      tag = event->data.scalar.tag;
      if (memchr(event->data.scalar.value, 0, event->data.scalar.length)) wrong = "a zero byte in a value";
      break;
    case YAML_SEQUENCE_START_EVENT:
      anchor = event->data.sequence_start.anchor;
      tag = event->data.sequence_start.tag;
      break;
    case YAML_MAPPING_START_EVENT:
      anchor = event->data.mapping_start.anchor;
      tag = event->data.mapping_start.tag;
      break;
    default:
      break;
  }
  if (tag) wrong = "tags (!) are not supported; put the text in quotes";
  if (anchor || event->type == YAML_ALIAS_EVENT)
    wrong = "anchors and aliases (& and *) are not supported; put a pattern in quotes";
  if (depth > TARN__YAML_DEEPEST) wrong = "nested too deeply";
  if (!wrong) return TARN_STATUS_OK;
  return tarn__yaml_events_fail(events->mistaken, events->origin, tarn__yaml_events_line(events, event), wrong);
}
