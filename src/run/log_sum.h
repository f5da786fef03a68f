// The length and the hash of a run's log, and whether a log is still the one that its training wrote
// (store/log_check.h).
#ifndef TARN_RUN_LOG_SUM_H
#define TARN_RUN_LOG_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// The length of a log and the hash of its bytes: XXH3 of each line with its end in turn, under the hash so far. Zero:
// of an empty log, which every log begins with.
typedef struct tarn__log_sum {
  int64_t bytes;
  uint64_t hash;
} tarn__log_sum;

// Adds whole lines. A line without an end at the end of `text` is left out.
void tarn__log_sum_add(tarn__log_sum *sum, const char *text, size_t size);

// As a JSON object {"bytes", "hash"}: NULL where there is no memory; and back. Fails with DATA, naming `file`; an
// object that is NULL is that of an empty log.
struct json_t *tarn__log_sum_write(const tarn__log_sum *sum);
tarn_status tarn__log_sum_read(tarn__log_sum *sum, const struct json_t *object, const char *file) TARN_CHECKED;

enum { TARN__LOG_WHY = 256 };

// Whether the log `path` begins with the bytes of `sum`, or is of these bytes alone (`whole`). `why` is "" if it does,
// else it says in words why not: "it ends at byte 812, and ended at byte 2304 at update 400". Fails with IO or MEMORY.
tarn_status tarn__log_compare(char why[TARN__LOG_WHY], const char *path, const tarn__log_sum *sum, bool whole,
                              int64_t update) TARN_CHECKED;
// The same of a log that was read.
void tarn__log_compare_text(char why[TARN__LOG_WHY], const char *text, int64_t size, const tarn__log_sum *sum,
                            bool whole, int64_t update);
// Reads a log; one that is not there is empty. *text is to be freed with tarn__free().
tarn_status tarn__log_text(char **text, size_t *size, const char *path) TARN_CHECKED;

#endif
