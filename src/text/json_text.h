// Texts of any bytes, such as paths and messages that name them, in JSON.
#ifndef TARN_TEXT_JSON_TEXT_H
#define TARN_TEXT_JSON_TEXT_H

#include <jansson.h>

// A JSON string of the text, in which bytes that are no UTF-8 are U+FFFD: JSON has no others, and jansson gives NULL
// for them, which looks like a lack of memory. NULL only if memory lacks.
json_t *tarn__json_text(const char *text);

#endif
