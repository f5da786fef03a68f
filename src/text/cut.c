#include "text/cut.h"

#include <stdint.h>
#include <string.h>
#include <unicode/uchar.h>

#include "text/utf8.h"

static bool begins_character(char byte) { return ((unsigned char)byte & 0xC0) != 0x80; }

// Whether the character at a place combines with the previous one.
static bool extends(const char *text, size_t length, size_t at) {
  int32_t code;
  if (at >= length) return false;
  tarn__utf8_decode(&code, text + at, length - at);
  return code >= 0 && u_hasBinaryProperty(code, UCHAR_GRAPHEME_EXTEND);
}

static bool is_white(const char *text, size_t length, size_t at) {
  int32_t code;
  const size_t size = tarn__utf8_decode(&code, text + at, length - at);
  return code >= 0 && u_isUWhiteSpace(code) && !extends(text, length, at + size);
}

static bool is_boundary(const char *text, size_t length, size_t at) {
  return begins_character(text[at]) && !extends(text, length, at);
}

size_t tarn__cut(size_t *next, bool *within, const char *text, size_t length, size_t most) {
  *next = length;
  *within = false;
  if (length <= most) return length;
  for (size_t at = most; at > 0; at--) {
    if (text[at] != ' ' || extends(text, length, at + 1)) continue;
    *next = at + 1;
    return at;
  }
  for (size_t at = most; at > 0; at--)
    if (begins_character(text[at]) && is_white(text, length, at)) return *next = at;
  *within = true;
  for (size_t at = most; at > most / 2; at--)
    if (is_boundary(text, length, at)) return *next = at;
  // Only combining marks, or invalid UTF-8.
  size_t at = most;
  while (at > most - 4 && !begins_character(text[at])) at--;
  return *next = begins_character(text[at]) ? at : most;
}

size_t tarn__cut_words(size_t *next, bool *within, const char *text, size_t length, size_t most) {
  *next = length;
  *within = false;
  for (size_t start = 0; start < length;) {
    const char *blank = memchr(text + start, ' ', length - start);
    const size_t end = blank ? (size_t)(blank - text) : length;
    if (end - start > most) {
      const size_t cut = tarn__cut(next, within, text + start, end - start, most);
      *next += start;
      return start + cut;
    }
    start = end + 1;
  }
  return length;
}
