// Reads the log of a run into curves.
#ifndef TARN_REPORT_LOG_READ_H
#define TARN_REPORT_LOG_READ_H

#include "base/memory.h"
#include "tarn/lab/results.h"

// Fills series, freezes and signature, and advances seconds, step and epoch to the last line; the arena owns all
// memory. An incomplete last line is ignored. Fails with DATA ("path:line: ...") on anything else that is not a log.
tarn_status tarn__log_read(tarn_results_run *run, const char *path, tarn__arena *arena) TARN_CHECKED;

#endif
