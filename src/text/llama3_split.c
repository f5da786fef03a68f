#include "text/llama3_split.h"

#include <stdbool.h>
#include <stddef.h>

#include "text/gpt2_split.h"

static bool is_newline(char c) { return c == '\r' || c == '\n'; }

static bool is_either(char c, char small) { return c == small || c == (char)(small - 'a' + 'A'); }

// The bytes of a contraction after its apostrophe, of any case, or 0. U+017F is a small s of another shape.
static size_t contraction(const char *at, const char *end) {
  static const char pairs[][2] = {{'r', 'e'}, {'v', 'e'}, {'l', 'l'}};
  static const char singles[] = {'s', 't', 'm', 'd'};
  const size_t left = (size_t)(end - at);
  for (size_t i = 0; left >= 1 && i < sizeof singles; i++)
    if (is_either(*at, singles[i])) return 1;
  if (left < 2) return 0;
  if (at[0] == '\xC5' && at[1] == '\xBF') return 2;
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    if (is_either(at[0], pairs[i][0]) && is_either(at[1], pairs[i][1])) return 2;
  return 0;
}

static const char *skip_digits(const char *at, const char *end, int digits) {
  size_t size;
  for (; digits > 0 && at < end && tarn__text_next_category(at, end, &size) == TARN__TEXT_NUMBER; digits--) at += size;
  return at;
}

// White space up to its last line end, if it has one; else as in GPT-2's rule.
static const char *split_space(const char *at, const char *end) {
  const char *after = NULL;
  size_t size;
  for (const char *c = at; c < end && tarn__text_next_category(c, end, &size) == TARN__TEXT_SPACE; c += size)
    if (is_newline(*c)) after = c + 1;
  return after ? after : tarn__text_split_space(at, end);
}

const char *tarn__llama3_split(const char *at, const char *end, int digits) {
  size_t size, second;
  if (*at == '\'' && contraction(at + 1, end)) return at + 1 + contraction(at + 1, end);
  const tarn__text_category first = tarn__text_next_category(at, end, &size);
  if (first == TARN__TEXT_LETTER) return tarn__text_skip(at + size, end, TARN__TEXT_LETTER);
  if (first == TARN__TEXT_NUMBER) return skip_digits(at, end, digits);
  const char *next = at + size;
  const bool more = next < end;
  // One character before letters may be any but a line end.
  if (!is_newline(*at) && more && tarn__text_next_category(next, end, &second) == TARN__TEXT_LETTER)
    return tarn__text_skip(next + second, end, TARN__TEXT_LETTER);
  const bool blank = *at == ' ' && more && tarn__text_next_category(next, end, &second) == TARN__TEXT_OTHER;
  if (first == TARN__TEXT_SPACE && !blank) return split_space(at, end);
  next = tarn__text_skip(blank ? next : at, end, TARN__TEXT_OTHER);
  while (next < end && is_newline(*next)) next++;
  return next;
}
