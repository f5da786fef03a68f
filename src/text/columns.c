// The width of a text on a terminal.
#include <unicode/uchar.h>

#include "tarn/text.h"
#include "text/utf8.h"

// Wide and full-width characters (Unicode Standard Annex 11) fill two columns; combining and invisible characters none.
static size_t columns_of(int32_t code) {
  if (code < 0) return 1;  // shown as U+FFFD
  if (code < 0x20 || code == 0x7F || (code >= 0x1160 && code <= 0x11FF)) return 0;
  if (code < 0x300) return 1;
  const int8_t type = u_charType(code);
  if (type == U_NON_SPACING_MARK || type == U_ENCLOSING_MARK || type == U_FORMAT_CHAR) return 0;
  const int32_t width = u_getIntPropertyValue(code, UCHAR_EAST_ASIAN_WIDTH);
  return width == U_EA_WIDE || width == U_EA_FULLWIDTH ? 2 : 1;
}

size_t tarn_text_columns(const char *text, size_t length, size_t most, size_t *fits) {
  size_t columns = 0, at = 0;
  while (at < length) {
    int32_t code;
    const size_t size = tarn__utf8_decode(&code, text + at, length - at), wide = columns_of(code);
    if (wide > most - columns) break;
    columns += wide;
    at += size;
  }
  if (fits) *fits = at;
  return columns;
}
