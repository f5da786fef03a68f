// JSON as the commands print it.
#ifndef TARN_TOOLS_JSON_OUTPUT_H
#define TARN_TOOLS_JSON_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "cli.h"

// A number; null where it is infinite or none, for which JSON has no word (and json_real() nothing).
json_t *json_output_real(double value);

// A text, in which bytes that are no UTF-8 (of paths, and of messages that name them) are U+FFFD; null for NULL.
json_t *json_output_text(const char *text);

// Writes an object. False: memory ended, now or while it was made. Whether the file took it is
// said by ferror().
bool json_output_dump(FILE *file, const json_t *object, size_t flags);

// Writes an object and a line end, and frees it. NULL stands for one that there was no memory for: then, and where the
// text of it finds none, the line of the failure is printed. CLI_OK does not say that it was written: whoever ends the
// output says so if not, main() of standard output and text_output_close() of a file.
int json_output_print(const cli_command *command, FILE *file, json_t *object, size_t flags);

// Prints what was made, for a command that has nothing else to tell: {"output": ..., what: from}, the latter unless
// `what` is NULL.
int json_output_made(const cli_command *command, const char *output, const char *what, const char *from);

#endif
