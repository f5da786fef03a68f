// tarn sweep --watch: shows the states of all runs of a sweep, whatever process runs them, until all are over.
#ifndef TARN_TOOLS_SWEEP_WATCH_H
#define TARN_TOOLS_SWEEP_WATCH_H

#include <stdbool.h>

#include "cli.h"
#include "tarn/lab/sweep.h"

// Polls every `seconds` and writes to standard output: on a terminal a table that replaces the previous one; elsewhere
// all runs once, and then each whose state changes; with `json` one object per poll. Returns CLI_OK when all are over,
// or the exit code of a failure, which has been printed.
int sweep_watch(const cli_command *command, tarn_sweep *sweep, double seconds, bool json);

#endif
