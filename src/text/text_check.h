// Whether what was given as a text is one.
#ifndef TARN_TEXT_TEXT_CHECK_H
#define TARN_TEXT_TEXT_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Refuses with DATA, naming file and line, a line with a zero byte, which no text in UTF-8 has, and a first line
// (number 1) of UTF-16, UTF-32, a compressed file or a file of ours that is no text. `length` bytes are of the line or,
// with at_hand 0, of a later part of it; `at_hand` bytes, no fewer, can be looked at. Invalid UTF-8 is no matter of
// this check.
tarn_status tarn__text_check(const char *path, int64_t number, const char *line, size_t length,
                             size_t at_hand) TARN_CHECKED;

#endif
