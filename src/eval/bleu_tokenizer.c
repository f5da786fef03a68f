#include "eval/bleu_tokenizer.h"

#include <string.h>
#include <unicode/uchar.h>

// sacreBLEU's tokenizers are short lists of regular expressions, applied one after the other. Each of them looks at one
// character or at two neighbours, so each is a single pass here; a pass at most triples the text.

typedef bool (*character_class)(int32_t c);

static bool is_digit(int32_t c) { return c >= '0' && c <= '9'; }
static bool is_not_digit(int32_t c) { return !is_digit(c); }
static bool is_point(int32_t c) { return c == '.' || c == ','; }
static bool is_dash(int32_t c) { return c == '-'; }
// [\{-\~\[-\` -\&\(-\+\:-\@\/]
static bool is_13a_punctuation(int32_t c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') ||
         (c >= ':' && c <= '@') || c == '/';
}
static bool is_not_number(int32_t c) { return !(U_GET_GC_MASK(c) & U_GC_N_MASK); }
static bool is_punctuation(int32_t c) { return (U_GET_GC_MASK(c) & U_GC_P_MASK) != 0; }
static bool is_symbol(int32_t c) { return (U_GET_GC_MASK(c) & U_GC_S_MASK) != 0; }
static bool is_any(int32_t c) {
  (void)c;
  return true;
}

static void swap(tarn__codepoints *a, tarn__codepoints *b) {
  tarn__codepoints c = *a;
  *a = *b;
  *b = c;
}

static tarn_status prepare(tarn__codepoints *spare, const tarn__codepoints *text) {
  spare->count = 0;
  return tarn__codepoints_reserve(spare, 3 * text->count + 2);
}

static void put(tarn__codepoints *text, int32_t c) { text->data[text->count++] = c; }

// s/([class])/ $1 /
static tarn_status split_single(tarn__codepoints *text, tarn__codepoints *spare, character_class single) {
  TARN_TRY(prepare(spare, text));
  for (size_t i = 0; i < text->count; i++) {
    int32_t c = text->data[i];
    bool split = single(c);
    if (split) put(spare, ' ');
    put(spare, c);
    if (split) put(spare, ' ');
  }
  swap(text, spare);
  return TARN_STATUS_OK;
}

// s/([first])([second])/$1 $2 / or, with the space in front, s/([first])([second])/ $1 $2/. As in a regular expression,
// matches do not overlap.
static tarn_status split_pair(tarn__codepoints *text, tarn__codepoints *spare, character_class first,
                              character_class second, bool in_front) {
  TARN_TRY(prepare(spare, text));
  size_t i = 0;
  while (i < text->count) {
    int32_t c = text->data[i++];
    if (i == text->count || !first(c) || !second(text->data[i])) {
      put(spare, c);
      continue;
    }
    if (in_front) put(spare, ' ');
    put(spare, c);
    put(spare, ' ');
    put(spare, text->data[i++]);
    if (!in_front) put(spare, ' ');
  }
  swap(text, spare);
  return TARN_STATUS_OK;
}

// Replaces every occurrence of an ASCII word by one character, or by nothing when `by` is 0.
static void replace(tarn__codepoints *text, const char *word, int32_t by) {
  size_t length = strlen(word);
  size_t written = 0;
  for (size_t i = 0; i < text->count;) {
    size_t same = 0;
    while (same < length && i + same < text->count && text->data[i + same] == word[same]) same++;
    if (same < length) {
      text->data[written++] = text->data[i++];
      continue;
    }
    if (by) text->data[written++] = by;
    i += length;
  }
  text->count = written;
}

static tarn_status pad(tarn__codepoints *text, tarn__codepoints *spare) {
  TARN_TRY(prepare(spare, text));
  put(spare, ' ');
  memcpy(spare->data + spare->count, text->data, text->count * sizeof *text->data);
  spare->count += text->count;
  put(spare, ' ');
  swap(text, spare);
  return TARN_STATUS_OK;
}

static tarn_status tokenize_13a(tarn__codepoints *text, tarn__codepoints *spare) {
  replace(text, "<skipped>", 0);
  replace(text, "-\n", 0);
  replace(text, "\n", ' ');
  replace(text, "&quot;", '"');
  replace(text, "&amp;", '&');
  replace(text, "&lt;", '<');
  replace(text, "&gt;", '>');
  TARN_TRY(pad(text, spare));
  TARN_TRY(split_single(text, spare, is_13a_punctuation));
  // Period and comma, unless a digit is before them; then, unless a digit follows; then a dash after a digit.
  TARN_TRY(split_pair(text, spare, is_not_digit, is_point, false));
  TARN_TRY(split_pair(text, spare, is_point, is_not_digit, true));
  TARN_TRY(split_pair(text, spare, is_digit, is_dash, false));
  return TARN_STATUS_OK;
}

static tarn_status tokenize_intl(tarn__codepoints *text, tarn__codepoints *spare) {
  TARN_TRY(split_pair(text, spare, is_not_number, is_punctuation, false));
  TARN_TRY(split_pair(text, spare, is_punctuation, is_not_number, true));
  TARN_TRY(split_single(text, spare, is_symbol));
  return TARN_STATUS_OK;
}

tarn_status tarn__bleu_tokenize(tarn__codepoints *text, tarn__codepoints *spare, tarn_bleu_tokenizer tokenizer) {
  switch (tokenizer) {
    case TARN_BLEU_TOKENIZER_13A:
      return tokenize_13a(text, spare);
    case TARN_BLEU_TOKENIZER_INTL:
      return tokenize_intl(text, spare);
    case TARN_BLEU_TOKENIZER_CHAR:
      return split_single(text, spare, is_any);
    case TARN_BLEU_TOKENIZER_NONE:
      return TARN_STATUS_OK;
    case TARN_BLEU_TOKENIZER_COUNT:
      break;
  }
  return tarn__fail(TARN_STATUS_USAGE, "unknown BLEU tokenizer number %d", (int)tokenizer);
}
