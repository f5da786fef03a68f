// The option --profile of the commands that compute.
#ifndef TARN_TOOLS_PROFILE_OUTPUT_H
#define TARN_TOOLS_PROFILE_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "cli.h"
#include "tarn/plan.h"

#define PROFILE_HELP                                                                                                \
  "measure every op: print a table at the end (time, operations, bytes, and what both would take at the machine's " \
  "peaks), write a trace for chrome://tracing to FILE"

// Prints the table (json: one object on one line; stream NULL: nothing) and writes the trace. Returns the exit code.
// Nothing is printed or written of what did not begin.
int profile_output(const cli_command *command, tarn_profile *profile, const char *path, FILE *stream, bool json);

#endif
