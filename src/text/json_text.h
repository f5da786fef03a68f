// Texts of arbitrary bytes, such as paths and messages with them, in JSON.
#ifndef TARN_TEXT_JSON_TEXT_H
#define TARN_TEXT_JSON_TEXT_H

#include <jansson.h>

// A JSON string of the text, with U+FFFD for invalid UTF-8: JSON allows nothing else, and jansson would return NULL, as
// if out of memory. NULL only if memory runs out.
json_t *tarn__json_text(const char *text);

#endif
