// The memory of jansson in this program. Many of its steps may find none, and it does not pass on every such failure:
// while it reads (2.14), it goes on without the characters that it had no memory for, asks for it anew at each of them,
// and reads and writes beyond those that it has.
#ifndef TARN_TOOLS_JSON_MEMORY_H
#define TARN_TOOLS_JSON_MEMORY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// To be called once, before anything else uses jansson.
void json_memory_start(void);

// As malloc(); given back with free().
void *json_memory_take(size_t size);

// Whether memory has ended since the start.
bool json_memory_ended(void);

// Reads a text. NULL where it is no JSON, as `error` says, or where memory ended: then *ended, and jansson was left at
// once.
json_t *json_memory_read(const char *text, size_t size, size_t flags, json_error_t *error, bool *ended);
// The same of a file.
json_t *json_memory_read_file(FILE *file, size_t flags, json_error_t *error, bool *ended);

#endif
