// tarn sweep --watch: the states of all runs of a sweep, whoever works on them, until all are over.
#ifndef TARN_TOOLS_SWEEP_WATCH_H
#define TARN_TOOLS_SWEEP_WATCH_H

#include <stdbool.h>

#include "cli.h"
#include "tarn/lab/sweep.h"

// Looks every `seconds` and writes to standard output: on a terminal a table in place of the one before; elsewhere all
// runs once, and then each whose state changes; with `json` an object a look. Returns CLI_OK when all are over, or the
// exit code of a failure, which it has told.
int sweep_watch(const cli_command *command, tarn_sweep *sweep, double seconds, bool json);

#endif
