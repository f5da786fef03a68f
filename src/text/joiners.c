#include "text/joiners.h"

#include <inttypes.h>
#include <string.h>
#include <unicode/uchar.h>

#include "base/log.h"
#include "text/utf8.h"

static const char BEGINNING[] = "\xE2\x80";  // of U+200C and U+200D, and of much else
enum { BEGINNING_BYTES = sizeof BEGINNING - 1, JOINER_BYTES = 3 };

static bool joins(int32_t code) {
  if (code < 0x600 || !(U_MASK(u_charType(code)) & (U_GC_L_MASK | U_GC_M_MASK))) return false;
  const int32_t type = u_getIntPropertyValue(code, UCHAR_JOINING_TYPE);
  return type == U_JT_DUAL_JOINING || type == U_JT_RIGHT_JOINING || type == U_JT_LEFT_JOINING ||
         u_getIntPropertyValue(code, UCHAR_INDIC_SYLLABIC_CATEGORY) != U_INSC_OTHER;
}

// Whether the letter that ends at `at` joins; marks above and below it, such as Arabic vowels, are skipped.
static bool joins_before(const char *text, size_t at) {
  while (at > 0) {
    size_t first = at - 1;
    while (first > 0 && at - first < 4 && ((unsigned char)text[first] & 0xC0) == 0x80) first--;
    int32_t code;
    if (tarn__utf8_decode(&code, text + first, at - first) != at - first || code < 0) return false;
    if (joins(code)) return true;
    if (u_charType(code) != U_NON_SPACING_MARK) return false;
    at = first;
  }
  return false;
}

static bool joins_behind(const char *text, size_t length) {
  int32_t code = -1;
  if (length > 0) tarn__utf8_decode(&code, text, length);
  return joins(code);
}

bool tarn__joiners_spell(const char *text, size_t length) {
  const char *end = text + length;
  for (const char *at = text; (at = memmem(at, (size_t)(end - at), BEGINNING, BEGINNING_BYTES));
       at += BEGINNING_BYTES) {
    if (end - at < JOINER_BYTES || (at[2] != '\x8C' && at[2] != '\x8D')) continue;
    const char *behind = at + JOINER_BYTES;
    if (joins_behind(behind, (size_t)(end - behind)) && joins_before(text, (size_t)(at - text))) return true;
  }
  return false;
}

bool tarn__joiners_matter(int64_t lines, int64_t all) {
  enum { STRAY = 10000 };
  return lines > 0 && lines >= all / STRAY;
}

int64_t tarn__joiners_lost(const tarn_vocab *vocab, const char *text, size_t length) {
  return !tarn_vocab_keeps_joiners(vocab) && tarn__joiners_spell(text, length);
}

void tarn__joiners_warn(const char *path, const tarn_vocab *vocab, const char *name, int64_t lost, int64_t all) {
  if (!tarn__joiners_matter(lost, all)) return;
  tarn__log(TARN_LOG_WARNING,
            "%s: %" PRId64 " of %" PRId64
            " lines spell words with U+200C or U+200D, which %s loses (normalization %s); tarn vocab can "
            "make one that keeps them",
            path, lost, all, name, tarn_vocab_normalization_of(vocab));
}
