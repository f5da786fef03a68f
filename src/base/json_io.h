// Reading and writing of JSON where memory may end: jansson itself then takes a text for damaged, goes on without the
// characters that it had no memory for, or writes beyond them.
#ifndef TARN_BASE_JSON_IO_H
#define TARN_BASE_JSON_IO_H

#include <jansson.h>

#include "base/status.h"

// Most values of a text, keys of objects counted too. A value takes some 100 bytes in memory, and two or three in a
// text, so what no file of ours needs is refused before any of it is parsed. The largest is the header of a checkpoint
// with Adam's moments: of two stacks of TARN_CONFIG_LAYERS layers it has 2.2 million values, with Shaw's positions 2.5.
enum { TARN__JSON_VALUES = 1 << 23 };

// Parses `size` bytes. Where they are no JSON, or have more than TARN__JSON_VALUES values, the status is OK, *out is
// NULL and `error` (which may be NULL) says why: it is for the caller to judge. Fails with MEMORY. *out is the caller's
// to give back with json_decref(), which accepts NULL.
tarn_status tarn__json_parse(json_t **out, const char *text, size_t size, size_t flags,
                             json_error_t *error) TARN_CHECKED;

// The same for a file; fails with IO where it cannot be read.
tarn_status tarn__json_file(json_t **out, const char *path, size_t flags, json_error_t *error) TARN_CHECKED;

// The text of an object, to be given back with free(); NULL where memory ended, or had ended before the object was
// made.
char *tarn__json_dump(const json_t *object, size_t flags);

#endif
