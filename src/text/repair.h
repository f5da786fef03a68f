// Makes external text valid UTF-8.
#ifndef TARN_TEXT_REPAIR_H
#define TARN_TEXT_REPAIR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory.h"
#include "base/status.h"

// Memory for a repaired line. Start it as {0}; free `data` with tarn__free().
typedef struct tarn__repaired {
  char *data;
  size_t capacity;
} tarn__repaired;

// If a line has invalid bytes, points it to a copy in `room` with U+FFFD in their place, valid until the next call, or
// refuses it (`strict`) with DATA. *changed, if not NULL, says whether it had any.
tarn_status tarn__repair(tarn__repaired *room, const char **line, size_t *length, bool strict,
                         bool *changed) TARN_CHECKED;

// A copy in the arena, with U+FFFD in place of invalid bytes and a final zero byte.
tarn_status tarn__repair_copy(tarn__arena *arena, char **out, size_t *out_length, const char *text,
                              size_t length) TARN_CHECKED;

#endif
