// Cost limits of models from files (tarn/process.h), for all commands that load one.
#ifndef TARN_TOOLS_LIMIT_OPTIONS_H
#define TARN_TOOLS_LIMIT_OPTIONS_H

#include <stdint.h>

#include "cli.h"

typedef struct limit_options {
  const char *memory, *operations;
} limit_options;

// Two entries of a table of options; `limits` is a limit_options initialised to {0}.
#define LIMIT_OPTIONS(limits)                                                                               \
  {"max-memory",                                                                                            \
   CLI_TEXT,                                                                                                \
   &(limits).memory,                                                                                        \
   "BYTES",                                                                                                 \
   "memory that frozen weights computed from a line of the file may take, as 8G; 0: no limit (default 4G)", \
   0,                                                                                                       \
   0},                                                                                                      \
  {                                                                                                         \
    "max-operations", CLI_TEXT, &(limits).operations, "N",                                                  \
        "operations that computing them may take; 0: no limit "                                             \
        "(default 1e12)",                                                                                   \
        0, 0                                                                                                \
  }

// Parses the value of option --`name`, at least 0, optionally followed by k, M, G or T (powers of 1000). -1, or the
// exit code of a usage error.
int limit_options_amount(const cli_command *command, double *out, const char *name, const char *text);

// The same for bytes with a minimum.
int bytes_option_read(const cli_command *command, int64_t *out, const char *name, const char *text, int64_t least);

// Sets the limits, and a progress line on standard error for long computations. -1, or the exit code of a usage error.
int limit_options_set(const cli_command *command, const limit_options *options);

#endif
