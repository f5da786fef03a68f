// Graphs have inputs of integers, which hold the bytes of pixels by fours.
#ifndef TARN_BASE_PIXEL_WORDS_H
#define TARN_BASE_PIXEL_WORDS_H

#include <stdint.h>

// Integers that hold so many bytes.
static inline int64_t tarn__pixel_words(int64_t bytes) { return (bytes + 3) / 4; }

#endif
