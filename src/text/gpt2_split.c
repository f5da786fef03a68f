#include "text/gpt2_split.h"

#include <stdbool.h>
#include <string.h>
#include <unicode/uchar.h>

#include "text/utf8.h"

typedef tarn__text_category category;
#define OTHER TARN__TEXT_OTHER
#define LETTER TARN__TEXT_LETTER
#define NUMBER TARN__TEXT_NUMBER
#define SPACE TARN__TEXT_SPACE

enum { UNICODE = 16 };  // the version that tiktoken 0.14 and Hugging Face tokenizers 0.23 have

// Letters and numbers that Unicode 15 to 16 added to Unicode 14, for releases of ICU that do not know them.
static const struct {
  int32_t first, last;
  category category;
} ADDED[] = {
    {0x1C89, 0x1C8A, LETTER},   {0xA7CB, 0xA7CD, LETTER},   {0xA7DA, 0xA7DC, LETTER},   {0x105C0, 0x105F3, LETTER},
    {0x10D40, 0x10D49, NUMBER}, {0x10D4A, 0x10D65, LETTER}, {0x10D6F, 0x10D85, LETTER}, {0x10EC2, 0x10EC4, LETTER},
    {0x1123F, 0x11240, LETTER}, {0x11380, 0x11389, LETTER}, {0x1138B, 0x1138B, LETTER}, {0x1138E, 0x1138E, LETTER},
    {0x11390, 0x113B5, LETTER}, {0x113B7, 0x113B7, LETTER}, {0x113D1, 0x113D1, LETTER}, {0x113D3, 0x113D3, LETTER},
    {0x116D0, 0x116E3, NUMBER}, {0x11BC0, 0x11BE0, LETTER}, {0x11BF0, 0x11BF9, NUMBER}, {0x11F02, 0x11F02, LETTER},
    {0x11F04, 0x11F10, LETTER}, {0x11F12, 0x11F33, LETTER}, {0x11F50, 0x11F59, NUMBER}, {0x1342F, 0x1342F, LETTER},
    {0x13441, 0x13446, LETTER}, {0x13460, 0x143FA, LETTER}, {0x16100, 0x1611D, LETTER}, {0x16130, 0x16139, NUMBER},
    {0x16D40, 0x16D6C, LETTER}, {0x16D70, 0x16D79, NUMBER}, {0x18CFF, 0x18CFF, LETTER}, {0x1B132, 0x1B132, LETTER},
    {0x1B155, 0x1B155, LETTER}, {0x1CCF0, 0x1CCF9, NUMBER}, {0x1D2C0, 0x1D2D3, NUMBER}, {0x1DF25, 0x1DF2A, LETTER},
    {0x1E030, 0x1E06D, LETTER}, {0x1E4D0, 0x1E4EB, LETTER}, {0x1E4F0, 0x1E4F9, NUMBER}, {0x1E5D0, 0x1E5ED, LETTER},
    {0x1E5F0, 0x1E5F0, LETTER}, {0x1E5F1, 0x1E5FA, NUMBER}, {0x2B739, 0x2B739, LETTER}, {0x2EBF0, 0x2EE5D, LETTER},
    {0x31350, 0x323AF, LETTER}};
enum { ADDED_COUNT = sizeof ADDED / sizeof *ADDED };

static category added(int32_t code) {
  size_t low = 0;
  size_t high = ADDED_COUNT;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (code > ADDED[middle].last)
      low = middle + 1;
    else
      high = middle;
  }
  return low < ADDED_COUNT && code >= ADDED[low].first ? ADDED[low].category : OTHER;
}

// Whether the character was assigned by a newer Unicode than ours.
static bool is_newer(int32_t code) {
  UVersionInfo version;
  u_getUnicodeVersion(version);
  if (version[0] <= UNICODE) return false;
  u_charAge(code, version);
  return version[0] > UNICODE;
}

static category wide_category(int32_t code) {
  uint32_t mask = U_MASK(u_charType(code));
  if (mask & (U_GC_L_MASK | U_GC_N_MASK)) return is_newer(code) ? OTHER : mask & U_GC_L_MASK ? LETTER : NUMBER;
  if (mask & U_GC_CN_MASK) return added(code);
  return u_isUWhiteSpace(code) ? SPACE : OTHER;
}

static category ascii_category(unsigned char c) {
  if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') return LETTER;
  if (c >= '0' && c <= '9') return NUMBER;
  return c == ' ' || (c >= '\t' && c <= '\r') ? SPACE : OTHER;
}

tarn__text_category tarn__text_next_category(const char *at, const char *end, size_t *size) {
  int32_t code;
  *size = 1;
  if ((unsigned char)*at < 0x80) return ascii_category((unsigned char)*at);
  *size = tarn__utf8_decode(&code, at, (size_t)(end - at));
  return code < 0 ? OTHER : wide_category(code);
}

// The bytes of a contraction after its apostrophe, or 0.
static size_t contraction(const char *at, const char *end) {
  size_t left = (size_t)(end - at);
  if (left >= 1 && (*at == 's' || *at == 't' || *at == 'm' || *at == 'd')) return 1;
  if (left < 2) return 0;
  return memcmp(at, "re", 2) == 0 || memcmp(at, "ve", 2) == 0 || memcmp(at, "ll", 2) == 0 ? 2 : 0;
}

const char *tarn__text_skip(const char *at, const char *end, tarn__text_category kind) {
  size_t size;
  while (at < end && tarn__text_next_category(at, end, &size) == kind) at += size;
  return at;
}

const char *tarn__text_split_space(const char *at, const char *end) {
  const char *last = at;
  const char *next = at;
  size_t size;
  while (next < end && tarn__text_next_category(next, end, &size) == SPACE) {
    last = next;
    next += size;
  }
  return next == end || last == at ? next : last;
}

const char *tarn__gpt2_split(const char *at, const char *end) {
  size_t size;
  if (*at == '\'') {
    size = contraction(at + 1, end);
    if (size) return at + 1 + size;
  }
  const char *start = *at == ' ' && at + 1 < end ? at + 1 : at;
  category kind = tarn__text_next_category(start, end, &size);
  if (kind == SPACE) return tarn__text_split_space(at, end);
  return tarn__text_skip(start + size, end, kind);
}
