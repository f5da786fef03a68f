#include "text/compose.h"

#include <stdbool.h>
#include <unicode/unorm2.h>
#include <unicode/ustring.h>

#include "base/memory.h"
#include "text/utf8.h"

static bool is_ascii(const char *text, size_t length) {
  unsigned char all = 0;
  for (size_t i = 0; i < length; i++) all |= (unsigned char)text[i];
  return all < 0x80;
}

// Composes `count` units, which have room for three times as many, and writes them as UTF-8.
static tarn_status compose_units(tarn_vocab_text *room, UChar *units, int32_t count, int32_t most) {
  UErrorCode error = U_ZERO_ERROR;
  UChar *composed = units + most;
  const UNormalizer2 *nfc = unorm2_getNFCInstance(&error);
  const int32_t made = unorm2_normalize(nfc, units, count, composed, 3 * most, &error);
  TARN_REQUIRE(U_SUCCESS(error), INTERNAL, "a text cannot be composed: %s", u_errorName(error));
  TARN_TRY(tarn__grow(&room->data, &room->capacity, 3 * (size_t)made + 1, 1));
  room->length = 0;
  for (int32_t at = 0; at < made;) {
    int32_t code;
    U16_NEXT(composed, at, made, code);
    room->length += tarn__utf8_encode(room->data + room->length, code);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__compose(tarn_vocab_text *room, const char **text, size_t *length) {
  if (is_ascii(*text, *length)) return TARN_STATUS_OK;
  TARN_REQUIRE(*length <= 1 << 28, DATA, "a text of %zu bytes is too long to be composed", *length);
  void *memory;
  const int32_t most = (int32_t)*length + 1;
  int32_t count = 0;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 4 * (size_t)most, sizeof(UChar)));
  UChar *units = memory;
  for (size_t at = 0; at < *length;) {
    int32_t code;
    at += tarn__utf8_decode(&code, *text + at, *length - at);
    U16_APPEND_UNSAFE(units, count, code < 0 ? 0xFFFD : code);
  }
  const tarn_status status = compose_units(room, units, count, most);
  tarn__free(memory);
  *text = room->data;
  *length = room->length;
  return status;
}
