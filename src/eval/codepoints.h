// Text as an array of Unicode code points, with the operations of Python strings that sacreBLEU uses.
#ifndef TARN_EVAL_CODEPOINTS_H
#define TARN_EVAL_CODEPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Zero-initialise. The array is kept between uses and freed by close.
typedef struct tarn__codepoints {
  int32_t *data;
  size_t count, capacity;
} tarn__codepoints;
void tarn__codepoints_close(tarn__codepoints *text);

// Reserves memory for `count` code points in total.
tarn_status tarn__codepoints_reserve(tarn__codepoints *text, size_t count) TARN_CHECKED;

// Decodes a zero-terminated string. Every maximal malformed part (Unicode, section 3.9) becomes one U+FFFD and adds one
// to *invalid.
tarn_status tarn__codepoints_decode(tarn__codepoints *text, const char *utf8, int64_t *invalid) TARN_CHECKED;

// str.lower(): Unicode's full lower-case mapping without a language, with the rule for the final sigma.
tarn_status tarn__codepoints_lower(tarn__codepoints *text) TARN_CHECKED;

// str.isspace() of one character, as used by str.split() and str.rstrip().
bool tarn__is_space(int32_t c);

// str.rstrip() of UTF-8: the bytes that remain. Malformed ones are no white space.
size_t tarn__rstrip(const char *text, size_t length);

// str.rstrip().
void tarn__codepoints_rstrip(tarn__codepoints *text);

// " ".join(str.split()).
void tarn__codepoints_join(tarn__codepoints *text);

// The next item of str.split() from *position on: sets [*begin, *begin + *length) and moves *position after it; false
// if there is none.
bool tarn__codepoints_word(const tarn__codepoints *text, size_t *position, size_t *begin, size_t *length);

#endif
