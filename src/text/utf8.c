#include "text/utf8.h"

#include <unicode/uchar.h>

#include <string.h>

#include "tarn/text.h"

size_t tarn__utf8_encode(char text[4], int32_t code) {
  size_t length = 0;
  U8_APPEND_UNSAFE(text, length, code);
  return length;
}

size_t tarn__utf8_valid(const char *text, size_t size) {
  size_t i = 0;
  while (i < size) {
    int32_t code;
    size_t length = tarn__utf8_decode(&code, text + i, size - i);
    if (code < 0) break;
    i += length;
  }
  return i;
}

size_t tarn__utf8_line(int32_t *code, const char *text, size_t size) {
  for (size_t i = 0; i < size;) {
    const size_t length = tarn__utf8_decode(code, text + i, size - i);
    const int32_t c = *code;
    const bool control = c < ' ' || (c >= 0x7F && c <= 0x9F), line_end = c == 0x2028 || c == 0x2029;
    if (control || line_end || c == 0xFEFF || c == 0xFFFE || c == 0xFFFF) return i;
    i += length;
  }
  return size;
}

void tarn_text_repair(char *out, const char *text) { out[tarn__utf8_repair(out, text, strlen(text))] = '\0'; }

size_t tarn__utf8_repair(char *out, const char *text, size_t size) {
  size_t used = 0;
  for (size_t i = 0; i < size;) {
    int32_t code;
    size_t length = tarn__utf8_decode(&code, text + i, size - i);
    if (code < 0) {
      memcpy(out + used, "\xEF\xBF\xBD", 3);
      used += 3;
    } else {
      memcpy(out + used, text + i, length);
      used += length;
    }
    i += length;
  }
  return used;
}

bool tarn__utf8_is_blank(int32_t code) {
  return code >= 0 && (u_isUWhiteSpace(code) || (code >= 0x1C && code <= 0x1F));
}
