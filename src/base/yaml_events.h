// The events of a YAML text, by libyaml, for readers that make something of them: what none of them takes is refused
// here, and messages name the origin and the line.
#ifndef TARN_BASE_YAML_EVENTS_H
#define TARN_BASE_YAML_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

#include "base/status.h"

// Values within values; more is a mistake or an attack.
enum { TARN__YAML_DEEPEST = 16 };

typedef struct tarn__yaml_events {
  yaml_parser_t parser;
  const char *origin;    // of the text, for messages
  bool lines;            // whether messages name lines
  tarn_status mistaken;  // the status of a text that is refused
} tarn__yaml_events;

// Begins with `size` bytes, which outlive it, after the other fields were set. Fails with MEMORY; then there is nothing
// to close.
tarn_status tarn__yaml_events_open(tarn__yaml_events *events, const char *text, size_t size) TARN_CHECKED;
void tarn__yaml_events_close(tarn__yaml_events *events);

// The caller frees each event with yaml_event_delete(). Fails with MEMORY, or where the text is no YAML.
tarn_status tarn__yaml_events_next(tarn__yaml_events *events, yaml_event_t *event) TARN_CHECKED;
// Reads on to the document's value, whose first event is *event; *none: there is none. Behind the value, `end` fails if
// there is another document.
tarn_status tarn__yaml_events_begin(tarn__yaml_events *events, yaml_event_t *event, bool *none) TARN_CHECKED;
tarn_status tarn__yaml_events_end(tarn__yaml_events *events) TARN_CHECKED;

// Fails for a value with an anchor, an alias, a tag or a zero byte, or one that stands too deep.
tarn_status tarn__yaml_events_check(const tarn__yaml_events *events, const yaml_event_t *event, int depth) TARN_CHECKED;

// The line of an event, from 1; 0 without lines.
int tarn__yaml_events_line(const tarn__yaml_events *events, const yaml_event_t *event);

// Fails with `status` and the line "origin:line: text", without the line if it is 0.
tarn_status tarn__yaml_events_fail(tarn_status status, const char *origin, int line, const char *text) TARN_CHECKED;

#endif
