#include "text/utf8.h"

#include <string.h>

#include "tarn/text.h"

// Length that a first byte announces, and the range of the second byte that excludes overlong forms, surrogates and
// code points above U+10FFFF (Unicode 15, table 3-7). Length 0: not a first byte.
static size_t lead(unsigned char c, unsigned char *low, unsigned char *high) {
  *low = 0x80;
  *high = 0xBF;
  if (c < 0x80) return 1;
  if (c < 0xC2) return 0;
  if (c < 0xE0) return 2;
  if (c < 0xF0) {
    if (c == 0xE0) *low = 0xA0;
    if (c == 0xED) *high = 0x9F;
    return 3;
  }
  if (c > 0xF4) return 0;
  if (c == 0xF0) *low = 0x90;
  if (c == 0xF4) *high = 0x8F;
  return 4;
}

size_t tarn__utf8_decode(int32_t *code, const char *text, size_t size) {
  static const unsigned char mask[5] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  unsigned char low;
  unsigned char high;
  unsigned char first = (unsigned char)text[0];
  size_t length = lead(first, &low, &high);
  *code = -1;
  if (length == 0) return 1;
  int32_t value = first & mask[length];
  for (size_t i = 1; i < length; i++) {
    if (i >= size) return i;
    unsigned char c = (unsigned char)text[i];
    if (c < low || c > high) return i;
    value = value << 6 | (c & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  *code = value;
  return length;
}

size_t tarn__utf8_encode(char text[4], int32_t code) {
  if (code < 0x80) {
    text[0] = (char)code;
    return 1;
  }
  size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = length - 1; i > 0; i--) {
    text[i] = (char)(0x80 | (code & 0x3F));
    code >>= 6;
  }
  text[0] = (char)((0xF00 >> length & 0xFF) | code);
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
