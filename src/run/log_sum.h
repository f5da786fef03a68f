// The length and the hash of a run's log, and the comparison of a log with them (store/log_check.h).
#ifndef TARN_RUN_LOG_SUM_H
#define TARN_RUN_LOG_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// The length of a log and the hash of its bytes: XXH3 of each line with its end in turn, seeded with the hash so far.
// Zero: the empty log, with which every log begins.
typedef struct tarn__log_sum {
  int64_t bytes;
  uint64_t hash;
} tarn__log_sum;

// Adds whole lines. An incomplete last line of `text` is ignored.
void tarn__log_sum_add(tarn__log_sum *sum, const char *text, size_t size);

// As a JSON object {"bytes", "hash"}: NULL if memory runs out; and back. Reading fails with DATA, naming `file`; a NULL
// object is that of an empty log.
struct json_t *tarn__log_sum_write(const tarn__log_sum *sum);
tarn_status tarn__log_sum_read(tarn__log_sum *sum, const struct json_t *object, const char *file) TARN_CHECKED;

enum { TARN__LOG_WHY = 256 };

// Whether the log `path` begins with the bytes of `sum`, or consists of them (`whole`). `why` is "" if so, else the
// reason in words: "it ends at byte 812, and ended at byte 2304 at update 400". Fails with IO or MEMORY.
tarn_status tarn__log_compare(char why[TARN__LOG_WHY], const char *path, const tarn__log_sum *sum, bool whole,
                              int64_t update) TARN_CHECKED;
// The same for a log in memory.
void tarn__log_compare_text(char why[TARN__LOG_WHY], const char *text, int64_t size, const tarn__log_sum *sum,
                            bool whole, int64_t update);
// Reads a log; a missing one is empty. Free *text with tarn__free().
tarn_status tarn__log_text(char **text, size_t *size, const char *path) TARN_CHECKED;

#endif
