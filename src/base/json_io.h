// Reading and writing JSON when memory may run out: jansson itself then takes a text for damaged, drops characters for
// which it had no memory, or writes beyond them.
#ifndef TARN_BASE_JSON_IO_H
#define TARN_BASE_JSON_IO_H

#include <jansson.h>

#include "base/status.h"

// Most values of a text, keys of objects included. A value takes about 100 bytes in memory and two or three in a text,
// so texts larger than any file of ours are refused before parsing. The largest is the header of a checkpoint with
// Adam's moments: of two stacks of TARN_CONFIG_LAYERS layers it has 2.2 million values, with Shaw's positions 2.5.
enum { TARN__JSON_VALUES = 1 << 23 };

// Parses `size` bytes. If they are no JSON, or have more than TARN__JSON_VALUES values, the status is OK, *out is NULL
// and `error` (which may be NULL) says why: the caller decides. Fails with MEMORY. The caller frees *out with
// json_decref(), which accepts NULL.
tarn_status tarn__json_parse(json_t **out, const char *text, size_t size, size_t flags,
                             json_error_t *error) TARN_CHECKED;

// The same for a file; fails with IO if it cannot be read.
tarn_status tarn__json_file(json_t **out, const char *path, size_t flags, json_error_t *error) TARN_CHECKED;

// The text of an object, to be freed with free(); NULL if memory ran out, or `object` is NULL for that reason.
char *tarn__json_dump(const json_t *object, size_t flags);

#endif
