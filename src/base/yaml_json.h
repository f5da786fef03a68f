// A YAML text as the JSON value that it means: for YAML of other programs, which may have very many entries.
#ifndef TARN_BASE_YAML_JSON_H
#define TARN_BASE_YAML_JSON_H

#include <jansson.h>

#include "base/status.h"

// Reads one document of `size` bytes; an empty one is null. Words without quotes are null, true, false or numbers where
// JSON has such, else texts, as are all keys. `origin` is for messages. Fails with MEMORY, or DATA: no YAML, anchors,
// aliases, tags, several documents, a key that is given twice, deep nesting, or more than TARN__JSON_VALUES values.
tarn_status tarn__yaml_json(json_t **out, const char *origin, const char *text, size_t size) TARN_CHECKED;

#endif
