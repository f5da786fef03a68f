// Reads one run directory.
#ifndef TARN_REPORT_RUN_READ_H
#define TARN_REPORT_RUN_READ_H

#include <stdbool.h>

#include "base/memory.h"
#include "tarn/lab/results.h"

// A run of which nothing is known yet but its directory, which lives as long as the run: pending.
void tarn__run_blank(tarn_results_run *run, const char *path);

// Whether a folder is a run directory: it has config.yaml, and log.jsonl or result.json.
bool tarn__run_is(const char *path);
// Whether it says how it ended; a sweep's run may have failed before it had more.
bool tarn__run_has_result(const char *path);

// Fills a blank run from its directory; run->group stays as it is. *config is the run's description, to be closed by
// the caller also on failure; everything else lives in the arena.
tarn_status tarn__run_read(tarn_results_run *run, tarn_config **config, tarn__arena *arena) TARN_CHECKED;

// Fails with DATA if `version`, of a file at `path`, is later than this program's.
tarn_status tarn__run_check_version(const char *version, const char *path) TARN_CHECKED;

#endif
