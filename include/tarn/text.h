// Small helpers for words that a person typed, and for texts of any bytes.
#ifndef TARN_TEXT_H
#define TARN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/export.h"

#ifdef __cplusplus
extern "C" {
#endif

// The word among `count` candidates that is nearest to `word` by edit distance with transpositions (Damerau 1964), or
// NULL when none is near enough (more than a third of the longer word's letters differ, at least one edit being
// allowed). The result is one of the candidates.
TARN_API const char *tarn_text_nearest(const char *word, const char *const *candidates, size_t count);

// Reads a whole number as written in configurations and options: digits with a sign, or with a power of ten whose
// value is whole: 1000, +7, 1e3, 1.5e3, 20e-1. False, and *value untouched, for all else: 1.5e0, 2.0, 0x10, blanks.
// What is too large becomes the largest or smallest number there is.
TARN_API bool tarn_text_integer(int64_t *value, const char *text);

// Copies a text, such as a path, and puts U+FFFD for every piece of it that is not UTF-8, as JSON requires. `out`
// has room for 3 * strlen(text) + 1 bytes and does not overlap `text`.
TARN_API void tarn_text_repair(char *out, const char *text);

// Columns that the characters of a UTF-8 text take on a terminal, as far as they fit into `most`: two for wide
// characters (East Asian width W and F), none for combining marks. *fits, unless NULL, is set to their bytes.
TARN_API size_t tarn_text_columns(const char *text, size_t length, size_t most, size_t *fits);

#ifdef __cplusplus
}
#endif
#endif
