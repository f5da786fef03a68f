// UTF-8: decoding, checking and repairing. All UTF-8 of the library is handled here, by ICU.
#ifndef TARN_TEXT_UTF8_H
#define TARN_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unicode/utf8.h>

// Decodes the first code point of size > 0 bytes and returns its length in bytes, 1 .. 4. For invalid bytes *code is
// -1, and the result is the length of the maximal subpart (Unicode 15, section 3.9), which stands for one U+FFFD.
static inline size_t tarn__utf8_decode(int32_t *code, const char *text, size_t size) {
  size_t length = 0;
  U8_NEXT(text, length, size, *code);  // negative for invalid bytes
  return length;
}

// Writes a code point as 1 .. 4 bytes and returns their number.
size_t tarn__utf8_encode(char text[4], int32_t code);

// Bytes before the first invalid one; `size` if all is valid.
size_t tarn__utf8_valid(const char *text, size_t size);

// Bytes before the first that is invalid, a control character, or a character that ends a line or may not stand in
// YAML, in which names of classes are kept; `size` if there is none. *code: that character, -1 for an invalid byte.
size_t tarn__utf8_line(int32_t *code, const char *text, size_t size);

// White space of ASCII.
static inline bool tarn__utf8_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// White space as Python's str.split() and str.strip() have it; -1, an invalid byte, is none.
bool tarn__utf8_is_blank(int32_t code);

// Copies text with every invalid subpart replaced by U+FFFD and returns the bytes written, at most 3 * size. `out` must
// not overlap `text`.
size_t tarn__utf8_repair(char *out, const char *text, size_t size);

#endif
