// Reads one run directory.
#ifndef TARN_REPORT_RUN_READ_H
#define TARN_REPORT_RUN_READ_H

#include <stdbool.h>

#include "base/memory.h"
#include "tarn/lab/results.h"

// A run known only by its directory, which has the lifetime of the run: pending.
void tarn__run_blank(tarn_results_run *run, const char *path);

// Whether a folder is a run directory: it has config.yaml, and log.jsonl or result.json.
bool tarn__run_is(const char *path);
// Whether it has a result; a sweep's run may have failed without anything else.
bool tarn__run_has_result(const char *path);

// Fills a blank run from its directory; run->group is unchanged. *config is the run's description, to be closed by the
// caller even on failure; the arena owns everything else.
tarn_status tarn__run_read(tarn_results_run *run, tarn_config **config, tarn__arena *arena) TARN_CHECKED;

// Whether it has scores of a test: not where it was never tested, or where the test failed.
bool tarn__run_is_tested(const tarn_results_run *run);

// Fails with DATA if `version`, from a file at `path`, is later than this program's.
tarn_status tarn__run_check_version(const char *version, const char *path) TARN_CHECKED;

#endif
