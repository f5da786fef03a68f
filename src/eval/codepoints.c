#include "eval/codepoints.h"

#include <string.h>
#include <unicode/uchar.h>
#include <unicode/ustring.h>

#include "base/memory.h"
#include "text/utf8.h"

void tarn__codepoints_close(tarn__codepoints *text) {
  tarn__free(text->data);
  *text = (tarn__codepoints){0};
}

tarn_status tarn__codepoints_reserve(tarn__codepoints *text, size_t count) {
  return tarn__grow(&text->data, &text->capacity, count, sizeof *text->data);
}

tarn_status tarn__codepoints_decode(tarn__codepoints *text, const char *utf8, int64_t *invalid) {
  size_t bytes = strlen(utf8);
  TARN_TRY(tarn__codepoints_reserve(text, bytes + 1));  // never a NULL array, not even for an empty line
  text->count = 0;
  for (size_t i = 0; i < bytes;) {
    int32_t c;
    i += tarn__utf8_decode(&c, utf8 + i, bytes - i);
    if (c < 0) {
      c = 0xFFFD;
      ++*invalid;
    }
    text->data[text->count++] = c;
  }
  return TARN_STATUS_OK;
}

static bool lower_ascii(tarn__codepoints *text) {
  for (size_t i = 0; i < text->count; i++)
    if (text->data[i] >= 0x80) return false;
  for (size_t i = 0; i < text->count; i++)
    if (text->data[i] >= 'A' && text->data[i] <= 'Z') text->data[i] += 'a' - 'A';
  return true;
}

// ICU maps UTF-16. A lower-case text has at most three times the units of its original (SpecialCasing.txt).
static tarn_status lower_units(tarn__codepoints *text, UChar *units, UChar *lower, int32_t limit) {
  UErrorCode error = U_ZERO_ERROR;
  int32_t length = 0;
  u_strFromUTF32(units, limit, &length, text->data, (int32_t)text->count, &error);
  length = u_strToLower(lower, limit, units, length, "", &error);
  TARN_REQUIRE(U_SUCCESS(error), INTERNAL, "lower-casing failed: %s", u_errorName(error));
  TARN_TRY(tarn__codepoints_reserve(text, (size_t)length));
  int32_t count = 0;
  u_strToUTF32(text->data, (int32_t)text->capacity, &count, lower, length, &error);
  TARN_REQUIRE(U_SUCCESS(error), INTERNAL, "lower-casing failed: %s", u_errorName(error));
  text->count = (size_t)count;
  return TARN_STATUS_OK;
}

tarn_status tarn__codepoints_lower(tarn__codepoints *text) {
  if (lower_ascii(text)) return TARN_STATUS_OK;
  TARN_REQUIRE(text->count < INT32_MAX / 16, DATA, "a line of %zu characters is too long to lower-case", text->count);
  size_t limit = 6 * text->count + 8;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 2 * limit, sizeof(UChar)));
  UChar *units = memory;
  tarn_status status = lower_units(text, units, units + limit, (int32_t)limit);
  tarn__free(memory);
  return status;
}

// Python's set: bidirectional classes WS, B and S, and category Zs. It contains the separators U+001C to U+001F, unlike
// Unicode's White_Space; U+200B is in neither.
bool tarn__is_space(int32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

size_t tarn__rstrip(const char *text, size_t length) {
  while (length > 0) {
    // Back to the lead byte, then forwards: ICU's backward iteration needs 32-bit offsets.
    size_t before = length - 1;
    while (before > 0 && length - before < 4 && U8_IS_TRAIL(text[before])) before--;
    int32_t c;
    const size_t size = tarn__utf8_decode(&c, text + before, length - before);
    if (c < 0 || before + size != length || !tarn__is_space(c)) break;
    length = before;
  }
  return length;
}

void tarn__codepoints_rstrip(tarn__codepoints *text) {
  while (text->count && tarn__is_space(text->data[text->count - 1])) text->count--;
}

bool tarn__codepoints_word(const tarn__codepoints *text, size_t *position, size_t *begin, size_t *length) {
  size_t i = *position;
  while (i < text->count && tarn__is_space(text->data[i])) i++;
  *begin = i;
  while (i < text->count && !tarn__is_space(text->data[i])) i++;
  *length = i - *begin;
  *position = i;
  return *length > 0;
}

void tarn__codepoints_join(tarn__codepoints *text) {
  size_t position = 0;
  size_t begin;
  size_t length;
  size_t written = 0;
  while (tarn__codepoints_word(text, &position, &begin, &length)) {
    if (written) text->data[written++] = ' ';
    for (size_t i = 0; i < length; i++) text->data[written++] = text->data[begin + i];
  }
  text->count = written;
}
