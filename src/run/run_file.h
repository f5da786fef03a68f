// Small JSON files of runs and sweeps, with every value checked. Texts are copied into an arena.
#ifndef TARN_RUN_RUN_FILE_H
#define TARN_RUN_RUN_FILE_H

#include <jansson.h>
#include <stdint.h>

#include "base/memory.h"

// An open file, also for messages.
typedef struct tarn__run_file {
  json_t *root;  // an object
  const char *path;
} tarn__run_file;

// Reads FOLDER/NAME. *exists is false, and everything else unchanged, if there is no such file.
tarn_status tarn__run_file_open(tarn__run_file *file, bool *exists, const char *folder, const char *name,
                                tarn__arena *arena) TARN_CHECKED;
void tarn__run_file_close(tarn__run_file *file);

// The value of a key of `object`, a part of the file. A missing or null key leaves *out unchanged; a value of another
// type, and a negative whole number, fail with DATA.
tarn_status tarn__run_file_text(const tarn__run_file *file, const json_t *object, const char *key, const char **out,
                                tarn__arena *arena) TARN_CHECKED;
tarn_status tarn__run_file_real(const tarn__run_file *file, const json_t *object, const char *key,
                                double *out) TARN_CHECKED;
tarn_status tarn__run_file_whole(const tarn__run_file *file, const json_t *object, const char *key,
                                 int64_t *out) TARN_CHECKED;
// An object as "key=value key=value" (numbers and words as in JSON, without quotes); NULL for none or an empty one.
tarn_status tarn__run_file_pairs(const tarn__run_file *file, const json_t *object, const char *key, const char **out,
                                 tarn__arena *arena) TARN_CHECKED;

// Whether two values of the key "sequential" of a sweep.json are the same design, with any number of seeds run at first
// (the key "first"). Having none (NULL, null) is a design too.
bool tarn__run_same_design(const json_t *a, const json_t *b);

// "A/B", in the arena.
tarn_status tarn__join(const char **path, tarn__arena *arena, const char *folder, const char *name) TARN_CHECKED;
// A formatted text in the arena.
tarn_status tarn__arena_print(const char **text, tarn__arena *arena, const char *format, ...)
    __attribute__((format(printf, 3, 4))) TARN_CHECKED;

#endif
