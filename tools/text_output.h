// Where a command writes its lines: a file, which is replaced when all is written, or standard output.
#ifndef TARN_TOOLS_TEXT_OUTPUT_H
#define TARN_TOOLS_TEXT_OUTPUT_H

#include <stdio.h>

#include "cli.h"
#include "tarn/text.h"

typedef struct text_output {
  FILE *file;
  tarn_output_file *replaces;  // NULL: standard output
} text_output;

// path NULL: standard output. CLI_OK, or the code of a failure whose line is printed; then there is nothing to close.
// SIGHUP, SIGINT and SIGTERM remove what is written of a file before they end the program.
int text_output_open(const cli_command *command, text_output *output, const char *path);

// Writes out what is left and puts a file in its place; with keep false, and where writing failed, what was there
// before stays. Call it right after the last writing, so that errno tells why that failed.
int text_output_close(const cli_command *command, text_output *output, bool keep);

// Writes a text as a part of one line: with blanks in place of line ends.
void text_output_line(text_output *output, const char *text, size_t length);

// The end of a command that printed a line to standard output for each line of `input` (-: standard input). Whether all
// went well; else *code, that of a line that could not be made to begin with, is the exit code, and what failed is
// printed. `none`: there was no line.
bool text_output_lines_end(const cli_command *command, int *code, tarn_status status, bool none, const char *input);

// Whether what is read may be waiting for answers, so that each of them is to be written at once: `input` (NULL or "-":
// standard input) is no regular file. Where it is a terminal, says to whoever types how to go on.
bool text_output_answers(const cli_command *command, const char *input);

#endif
