// JSON output of the commands.
#ifndef TARN_TOOLS_JSON_OUTPUT_H
#define TARN_TOOLS_JSON_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "cli.h"

// A number; null if it is not finite, as JSON has no notation for it (and json_real() returns NULL).
json_t *json_output_real(double value);

// A text; bytes that are not UTF-8 (in paths, and in messages that contain them) become U+FFFD; null for NULL.
json_t *json_output_text(const char *text);

// Writes an object, as one line unless `flags` indent it. False: an allocation failed, now or when it was created.
// Write errors of the file are in ferror().
bool json_output_dump(FILE *file, const json_t *object, size_t flags);

// Writes an object and a newline, and frees it. NULL is an object that could not be allocated: then, and if its text
// cannot be allocated, the error is printed. CLI_OK does not imply that it was written: write errors are reported when
// the output is closed, by main() for standard output and text_output_close() for a file.
int json_output_print(const cli_command *command, FILE *file, json_t *object, size_t flags);

// Prints the result of a command that has no other output: {"output": ..., what: from}, the latter unless `what` is
// NULL.
int json_output_made(const cli_command *command, const char *output, const char *what, const char *from);

#endif
