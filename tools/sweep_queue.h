// tarn sweep --queue: runs what reduces the variance of several sweeps' open comparisons
// most for its cost.
#ifndef TARN_TOOLS_SWEEP_QUEUE_H
#define TARN_TOOLS_SWEEP_QUEUE_H

#include <stdbool.h>

#include "cli.h"
#include "tarn/lab/queue.h"

// Writes a line per event, and the state of all comparisons at the end or, with `dry_run`, now, with the next run. As
// JSON an object per event, and one at the end. Returns the exit code; failures have been printed. Sets on_event and
// user.
int sweep_queue(const cli_command *command, tarn_queue_options *options, bool dry_run, bool json, bool quiet);

#endif
