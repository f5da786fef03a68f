#include "text/bert_split.h"

#include <string.h>
#include <unicode/uchar.h>
#include <unicode/unorm2.h>

#include "text/utf8.h"

// The Unicode versions of the package tokenizers 0.23, for general categories, canonical decomposition and lower case.
// ICU knows the age of each character, so newer ones are left unchanged; our own lists hold characters that old
// releases of ICU do not know, and categories that have changed since.
enum { OF_CATEGORIES = 8, OF_DECOMPOSITION = 9, OF_CASE = 17 };
enum { MOST_LETTERS = 8 };  // results of one character

// The state of a text: the growing word, and the marks that wait to be ordered.
typedef struct split {
  const tarn__bert_rules *rules;
  const UNormalizer2 *nfd;  // NULL until needed
  tarn__bert_sink sink;
  void *user;
  char word[TARN__BERT_TOO_LONG];
  size_t length;
  int characters;  // of the word, at most one more than allowed
  // Characters that follow a base and have a combining class, in the order of their classes; those beyond the longest
  // word are dropped, because that word is too long already.
  struct {
    int32_t code;
    uint8_t class;
  } run[TARN__BERT_LONGEST + 1];
  int run_count;
} split;

static bool is_newer(int32_t code, int version) {
  UVersionInfo age;
  u_charAge(code, age);
  return age[0] > version;
}

// The general category in Unicode 8, as a mask; 0 if unassigned there.
static uint32_t category(int32_t code) {
  switch (code) {
    case 0x166D:
    case 0x111C9:
      return U_GC_PO_MASK;
    case 0x1734:
      return U_GC_MN_MASK;
    case 0x1885:
    case 0x1886:
      return U_GC_LO_MASK;
    case 0xA9BD:
      return U_GC_MC_MASK;
    default:
      return is_newer(code, OF_CATEGORIES) ? 0 : U_MASK(u_charType(code));
  }
}

static bool is_ascii_letter(int32_t code) {
  return (code >= '0' && code <= '9') || ((code | 0x20) >= 'a' && (code | 0x20) <= 'z');
}

static bool is_punctuation(int32_t code) {
  if (code < 0x80) return code > ' ' && code < 0x7F && !is_ascii_letter(code);
  return (category(code) & U_GC_P_MASK) != 0;
}

static bool is_left_out(int32_t code) {
  if (code < 0x80) return code < ' ' || code == 0x7F;
  if (code == 0xFFFD) return true;
  return (category(code) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) != 0;
}

// The blocks that BERT treats as Chinese; the package omits U+2B820 to U+2B91F.
static bool is_chinese(int32_t code) {
  return (code >= 0x4E00 && code <= 0x9FFF) || (code >= 0x3400 && code <= 0x4DBF) ||
         (code >= 0x20000 && code <= 0x2A6DF) || (code >= 0x2A700 && code <= 0x2B81F) ||
         (code >= 0x2B920 && code <= 0x2CEAF) || (code >= 0xF900 && code <= 0xFAFF) ||
         (code >= 0x2F800 && code <= 0x2FA1F);
}

// Lower-case letters added by Unicode 16 and 17.
static const struct {
  int32_t first, last, distance;
} ADDED[] = {{0x1C89, 0x1C89, 0x1C8A - 0x1C89},
             {0xA7CB, 0xA7CB, 0x264 - 0xA7CB},
             {0xA7CC, 0xA7CC, 1},
             {0xA7CE, 0xA7CE, 1},
             {0xA7D2, 0xA7D2, 1},
             {0xA7D4, 0xA7D4, 1},
             {0xA7DA, 0xA7DA, 1},
             {0xA7DC, 0xA7DC, 0x19B - 0xA7DC},
             {0x10D50, 0x10D65, 0x20},
             {0x16EA0, 0x16EB8, 0x1B}};
enum { ADDED_COUNT = sizeof ADDED / sizeof *ADDED };

static int32_t to_lower(int32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z' ? code | 0x20 : code;
  for (int i = 0; i < ADDED_COUNT; i++)
    if (code >= ADDED[i].first && code <= ADDED[i].last) return code + ADDED[i].distance;
  const int32_t small = u_tolower(code);
  return small != code && is_newer(code, OF_CASE) ? code : small;
}

static tarn_status end_word(split *s) {
  const size_t length = s->characters > TARN__BERT_LONGEST ? TARN__BERT_TOO_LONG : s->length;
  s->length = 0;
  s->characters = 0;
  return length ? s->sink(s->user, s->word, length) : TARN_STATUS_OK;
}

static void put_letter(split *s, int32_t code) {
  if (s->characters > TARN__BERT_LONGEST) return;
  if (++s->characters <= TARN__BERT_LONGEST) s->length += tarn__utf8_encode(s->word + s->length, code);
}

static tarn_status put_small(split *s, int32_t code) {
  if (u_isUWhiteSpace(code)) return end_word(s);
  const bool alone = is_punctuation(code);
  if (alone) TARN_TRY(end_word(s));
  put_letter(s, code);
  return alone ? end_word(s) : TARN_STATUS_OK;
}

// Takes a character after ordering.
static tarn_status put_ordered(split *s, int32_t code) {
  if (!s->rules->lowercase) return put_small(s, code);
  TARN_TRY(put_small(s, to_lower(code)));
  return code == 0x130 ? put_small(s, 0x307) : TARN_STATUS_OK;  // the only letter that becomes two
}

static tarn_status end_run(split *s) {
  const int count = s->run_count;
  s->run_count = 0;
  for (int i = 0; i < count; i++) TARN_TRY(put_ordered(s, s->run[i].code));
  return TARN_STATUS_OK;
}

// Takes a fully decomposed character. Dropped marks without a combining class still end the ordering.
static tarn_status put_decomposed(split *s, int32_t code) {
  const uint8_t class = is_newer(code, OF_DECOMPOSITION) ? 0 : u_getCombiningClass(code);
  const bool kept = !(category(code) & U_GC_MN_MASK);
  if (!class) {
    TARN_TRY(end_run(s));
    return kept ? put_ordered(s, code) : TARN_STATUS_OK;
  }
  if (!kept || s->run_count > TARN__BERT_LONGEST) return TARN_STATUS_OK;
  int at = s->run_count++;
  for (; at > 0 && s->run[at - 1].class > class; at--) s->run[at] = s->run[at - 1];
  s->run[at].code = code;
  s->run[at].class = class;
  return TARN_STATUS_OK;
}

static tarn_status put(split *s, int32_t code) {
  if (!s->rules->strip_accents) return put_ordered(s, code);
  if (code < 0x80) {
    TARN_TRY(end_run(s));
    return put_ordered(s, code);
  }
  UErrorCode error = U_ZERO_ERROR;
  if (!s->nfd) s->nfd = unorm2_getNFDInstance(&error);
  TARN_REQUIRE(U_SUCCESS(error), INTERNAL, "ICU has no canonical decomposition: %s", u_errorName(error));
  UChar units[MOST_LETTERS];
  const int32_t count =
      is_newer(code, OF_DECOMPOSITION) ? -1 : unorm2_getDecomposition(s->nfd, code, units, MOST_LETTERS, &error);
  if (count < 0 || U_FAILURE(error)) return put_decomposed(s, code);
  for (int32_t i = 0; i < count;) {
    int32_t part;
    U16_NEXT(units, i, count, part);
    TARN_TRY(put_decomposed(s, part));
  }
  return TARN_STATUS_OK;
}

static tarn_status take(split *s, int32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') return put(s, ' ');
  if (code < 0 || is_left_out(code)) return TARN_STATUS_OK;
  const bool alone = s->rules->chinese && is_chinese(code);
  if (alone) TARN_TRY(put(s, ' '));
  TARN_TRY(put(s, code));
  return alone ? put(s, ' ') : TARN_STATUS_OK;
}

// Takes ASCII letters and digits, which only change case, and returns the number of bytes.
static size_t take_plain(split *s, const char *text, size_t length) {
  const int offset = s->rules->lowercase ? 0x20 : 0;
  size_t i = 0;
  for (; i < length; i++) {
    const char c = text[i];
    if (!is_ascii_letter(c)) break;
    if (s->characters <= TARN__BERT_LONGEST && ++s->characters <= TARN__BERT_LONGEST)
      s->word[s->length++] = (char)(c >= 'A' && c <= 'Z' ? c + offset : c);
  }
  return i;
}

tarn_status tarn__bert_split(const tarn__bert_rules *rules, const char *text, size_t length, tarn__bert_sink sink,
                             void *user) {
  split s;
  s.rules = rules;
  s.nfd = NULL;
  s.sink = sink;
  s.user = user;
  s.length = 0;
  s.characters = s.run_count = 0;
  for (size_t at = 0; at < length;) {
    if (s.run_count == 0) {
      at += take_plain(&s, text + at, length - at);
      if (at == length) break;
      if (text[at] == ' ') {
        TARN_TRY(end_word(&s));
        at++;
        continue;
      }
    }
    int32_t code;
    at += tarn__utf8_decode(&code, text + at, length - at);
    TARN_TRY(take(&s, code));
  }
  TARN_TRY(end_run(&s));
  return end_word(&s);
}
