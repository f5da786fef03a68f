// The files in which other programs keep their vocabularies.
#ifndef TARN_TEXT_VOCAB_FILES_H
#define TARN_TEXT_VOCAB_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

bool tarn__vocab_is_folder(const char *path);

// What follows the last slash.
const char *tarn__vocab_base_name(const char *path);

// The path of the file `name` in the folder `path`, or beside the file `path`.
tarn_status tarn__vocab_sibling(char out[PATH_MAX], const char *path, const char *name) TARN_CHECKED;

// Reads a regular file of at most 64 MB, as tarn__file_read(); `whose` vocabulary it is stands in the message.
tarn_status tarn__vocab_file_read(const char *path, char **data, size_t *size, const char *whose) TARN_CHECKED;

#endif
