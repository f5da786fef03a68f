// Memory management of jansson in this program. Its allocations may fail, and it does not report every failure: when it
// reads (2.14), it continues without the characters it had no memory for, tries to allocate again for each of them, and
// reads and writes out of bounds.
#ifndef TARN_TOOLS_JSON_MEMORY_H
#define TARN_TOOLS_JSON_MEMORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// To be called once, before any other use of jansson.
void json_memory_start(void);

// Like malloc(); free with free().
void *json_memory_take(size_t size);

// Whether an allocation has failed since the start.
bool json_memory_ended(void);

// Reads a text. Returns NULL if it is not JSON, as described by `error`, or if memory ran out: then *ended is set, and
// jansson was left immediately.
json_t *json_memory_read(const char *text, size_t size, size_t flags, json_error_t *error, bool *ended);
// The same for a file.
json_t *json_memory_read_file(FILE *file, size_t flags, json_error_t *error, bool *ended);

#endif
