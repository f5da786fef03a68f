// Vocabulary files of other programs.
#ifndef TARN_TEXT_VOCAB_FILES_H
#define TARN_TEXT_VOCAB_FILES_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "tarn/vocab.h"

bool tarn__vocab_is_folder(const char *path);

// The part after the last slash.
const char *tarn__vocab_base_name(const char *path);

// The path of the file `name` in the folder `path`, or in the folder of the file `path`.
tarn_status tarn__vocab_sibling(char out[PATH_MAX], const char *path, const char *name) TARN_CHECKED;

// Reads a regular file of at most 64 MB, like tarn__file_read(); messages name `whose` vocabulary it is.
tarn_status tarn__vocab_file_read(const char *path, char **data, size_t *size, const char *whose) TARN_CHECKED;

// Reads such a file as JSON; the caller frees the object with json_decref().
tarn_status tarn__vocab_json_read(json_t **object, const char *path, const char *whose) TARN_CHECKED;

// Sorts the names of an object from tokens to ids, which must be 0 to its size - 1 without gaps, into tokens [size],
// zeroed. No token may have a character of `forbidden`. The names live as long as the object.
tarn_status tarn__vocab_json_order(const char **tokens, json_t *object, const char *forbidden,
                                   const char *path) TARN_CHECKED;

// Writes a JSON object with jansson's `flags`, and frees it; NULL: memory had run out.
tarn_status tarn__vocab_json_save(const char *folder, const char *name, json_t *object, size_t flags) TARN_CHECKED;

// Writes the tokens of a vocabulary with their ids as such an object.
tarn_status tarn__vocab_json_write(const char *folder, const char *name, const tarn_vocab *vocab) TARN_CHECKED;

#endif
