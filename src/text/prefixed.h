// A vocabulary that puts a token in front of each text that is not empty, as models want whose source begins with
// <bos>: all else is that of another vocabulary, whose bytes it holds.
//
// The file: a line "tarn-vocab prefixed 1", a line "first N" with the id of that token, and the other vocabulary's
// file.
#ifndef TARN_TEXT_PREFIXED_H
#define TARN_TEXT_PREFIXED_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Makes the bytes of such a file. The caller frees them with tarn__free(). Fails with MEMORY.
tarn_status tarn__prefixed_bytes(char **bytes, size_t *size, const void *other, size_t other_size,
                                 int32_t first) TARN_CHECKED;

#endif
