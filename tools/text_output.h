// Line output of a command: a file, which is replaced when everything is written, or standard output.
#ifndef TARN_TOOLS_TEXT_OUTPUT_H
#define TARN_TOOLS_TEXT_OUTPUT_H

#include <stdio.h>

#include "cli.h"
#include "tarn/text.h"

typedef struct text_output {
  FILE *file;
  tarn_output_file *replaces;  // NULL: standard output
} text_output;

// path NULL or "-": standard output. Returns CLI_OK, or the code of a failure that has been printed; then nothing needs
// to be closed. SIGHUP, SIGINT and SIGTERM remove the unfinished file before they end the program.
int text_output_open(const cli_command *command, text_output *output, const char *path);

// Flushes the output and moves the file into place; with keep false, and if writing failed, the old file is kept. Call
// it right after the last write, so that errno still has the cause of a failure.
int text_output_close(const cli_command *command, text_output *output, bool keep);

// Writes a text as part of one line: line ends become spaces.
void text_output_line(text_output *output, const char *text, size_t length);

// Ends a command that printed one line to standard output for each line of `input` (-: standard input). Returns whether
// everything succeeded; otherwise *code, initially that of a line that could not be created, is the exit code, and the
// error has been printed. `none`: there was no line.
bool text_output_lines_end(const cli_command *command, int *code, tarn_status status, bool none, const char *input);

// Whether the writer of the input may be waiting for answers, so each has to be flushed at once: `input` (NULL or "-":
// standard input) is not a regular file. If it is a terminal, prints instructions for the user.
bool text_output_answers(const cli_command *command, const char *input);

#endif
