// Checks whether a file is text.
#ifndef TARN_TEXT_TEXT_CHECK_H
#define TARN_TEXT_TEXT_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Refuses with DATA, naming file and line, a line with a zero byte, which no text in UTF-8 has, and a first line
// (number 1) of UTF-16, UTF-32, a compressed file or a binary file of ours. `length` bytes belong to the line or, with
// at_hand 0, to a later part of it; `at_hand` bytes, no fewer, can be inspected. Invalid UTF-8 is not checked here.
tarn_status tarn__text_check(const char *path, int64_t number, const char *line, size_t length,
                             size_t at_hand) TARN_CHECKED;

#endif
