#include "eval/rewrite.h"

#include <string.h>

static bool is_digit(int32_t c) { return c >= '0' && c <= '9'; }
static bool is_not_digit(int32_t c) { return !is_digit(c); }
static bool is_point(int32_t c) { return c == '.' || c == ','; }
static bool is_dash(int32_t c) { return c == '-'; }
// [\{-\~\[-\` -\&\(-\+\:-\@\/]
static bool is_mark(int32_t c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') ||
         (c >= ':' && c <= '@') || c == '/';
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

tarn_status tarn__rewrite_single(tarn__codepoints *text, tarn__codepoints *spare, tarn__character_class single) {
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

tarn_status tarn__rewrite_pair(tarn__codepoints *text, tarn__codepoints *spare, tarn__character_class first,
                               tarn__character_class second, bool in_front) {
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

void tarn__rewrite_replace(tarn__codepoints *text, const char *word, int32_t by) {
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

tarn_status tarn__rewrite_pad(tarn__codepoints *text, tarn__codepoints *spare) {
  TARN_TRY(prepare(spare, text));
  put(spare, ' ');
  memcpy(spare->data + spare->count, text->data, text->count * sizeof *text->data);
  spare->count += text->count;
  put(spare, ' ');
  swap(text, spare);
  return TARN_STATUS_OK;
}

void tarn__rewrite_remove(tarn__codepoints *text, tarn__character_class single) {
  size_t written = 0;
  for (size_t i = 0; i < text->count; i++)
    if (!single(text->data[i])) text->data[written++] = text->data[i];
  text->count = written;
}

void tarn__rewrite_entities(tarn__codepoints *text) {
  tarn__rewrite_replace(text, "&quot;", '"');
  tarn__rewrite_replace(text, "&amp;", '&');
  tarn__rewrite_replace(text, "&lt;", '<');
  tarn__rewrite_replace(text, "&gt;", '>');
}

tarn_status tarn__rewrite_marks(tarn__codepoints *text, tarn__codepoints *spare) {
  return tarn__rewrite_single(text, spare, is_mark);
}

tarn_status tarn__rewrite_points(tarn__codepoints *text, tarn__codepoints *spare) {
  // Period and comma unless after a digit; then unless before a digit; then a dash after a digit.
  TARN_TRY(tarn__rewrite_pair(text, spare, is_not_digit, is_point, false));
  TARN_TRY(tarn__rewrite_pair(text, spare, is_point, is_not_digit, true));
  return tarn__rewrite_pair(text, spare, is_digit, is_dash, false);
}
