#include "text/sentences.h"

#include <stdbool.h>
#include <string.h>
#include <unicode/uchar.h>

#include "base/memory.h"
#include "text/utf8.h"

// Classes of characters: the Sentence_Break property of UAX #29, with a few additions.
typedef enum mark {
  OTHER,
  SPACE,
  LOWER,
  UPPER,
  LETTER,  // without case
  DIGIT,
  STOP,  // of any kind, given by the code
  QUOTE,
  OPEN,  // a bracket
  CLOSE,
  CONTINUE,  // comma, colon, semicolon, dash
  EXTEND     // marks on the previous character
} mark;

typedef struct tarn__sentence_character {
  int32_t code;
  mark mark;
  size_t at;  // byte
} character;

enum { ELLIPSIS = 0x2026, BACKTICK = '`', APOSTROPHE = 0x2019, WORD = 64 };

static mark close_mark(int32_t code) {
  int type = u_charType(code);
  if (u_hasBinaryProperty(code, UCHAR_QUOTATION_MARK)) return QUOTE;
  return type == U_START_PUNCTUATION ? OPEN : type == U_END_PUNCTUATION ? CLOSE : QUOTE;
}

static mark mark_of(int32_t code) {
  if (code == ELLIPSIS) return STOP;
  if (code == BACKTICK) return QUOTE;
  if (code == ';') return CONTINUE;
  switch (u_getIntPropertyValue(code, UCHAR_SENTENCE_BREAK)) {
    case U_SB_SEP:
    case U_SB_CR:
    case U_SB_LF:
    case U_SB_SP:
      return SPACE;
    case U_SB_LOWER:
      return LOWER;
    case U_SB_UPPER:
      return UPPER;
    case U_SB_OLETTER:
      return LETTER;
    case U_SB_NUMERIC:
      return DIGIT;
    case U_SB_ATERM:
    case U_SB_STERM:
      return STOP;
    case U_SB_CLOSE:
      return close_mark(code);
    case U_SB_SCONTINUE:
      return CONTINUE;
    case U_SB_EXTEND:
    case U_SB_FORMAT:
      return EXTEND;
    default:
      return OTHER;
  }
}

// A place where a sentence may end: the stops are text[first .. stops-1], with closing marks up to `end`; the next
// sentence would begin at `next`, its first word, after opening marks, at `word`.
typedef struct place {
  size_t start;  // of the sentence
  size_t first, stops, end, next, word;
} place;

typedef struct view {
  const tarn__sentence_language *language;
  const character *text;
  size_t length;
} view;

static bool is(const view *v, size_t at, mark kind) { return at < v->length && v->text[at].mark == kind; }
static bool is_gap(const view *v, size_t at) { return at >= v->length || v->text[at].mark == SPACE; }

static bool is_letter(const view *v, size_t at) {
  return is(v, at, LOWER) || is(v, at, UPPER) || is(v, at, LETTER) || is(v, at, EXTEND);
}

static size_t skip_spaces(const view *v, size_t at) {
  while (is(v, at, SPACE)) at++;
  return at;
}

// The characters from `from` to `to` as UTF-8 with plain apostrophes; 0 if too long for a word of a list.
static size_t copy_word(const view *v, char word[WORD], size_t from, size_t to) {
  size_t used = 0;
  for (size_t i = from; i < to; i++) {
    if (used + 4 > WORD) return 0;
    used += tarn__utf8_encode(word + used, v->text[i].code == APOSTROPHE ? '\'' : v->text[i].code);
  }
  return used;
}

static bool in_list(const view *v, const char *list, size_t from, size_t to) {
  char word[WORD];
  return tarn__sentence_language_has(list, word, copy_word(v, word, from, to));
}

// The end of a word of letters, with apostrophes inside.
static size_t word_end(const view *v, size_t at) {
  while (is_letter(v, at) ||
         (is(v, at, QUOTE) && (v->text[at].code == '\'' || v->text[at].code == APOSTROPHE) && is_letter(v, at + 1)))
    at++;
  return at;
}

static bool is_roman(const view *v, size_t from, size_t to) {
  for (size_t i = from; i < to; i++)
    if (v->text[i].code >= 0x80 || !v->text[i].code || !strchr("IVXLCM", v->text[i].code)) return false;
  return to > from;
}

static bool all(const view *v, size_t from, size_t to, mark kind) {
  for (size_t i = from; i < to; i++)
    if (!is(v, i, kind)) return false;
  return to > from;
}

// Consecutive stops, also with blanks between them, as in ". . .".
static size_t skip_stops(const view *v, size_t at) {
  for (;;) {
    size_t next = skip_spaces(v, at);
    if (!is(v, next, STOP) || (next > at && !is_gap(v, next + 1) && !is(v, next + 1, STOP))) return at;
    at = next + 1;
  }
}

// The end of a reference in brackets, as in "said.[12]", or `at`.
static size_t skip_reference(const view *v, size_t at) {
  size_t end = at + 1;
  if (at >= v->length || v->text[at].code != '[') return at;
  while (is(v, end, DIGIT)) end++;
  return end > at + 1 && is(v, end, CLOSE) ? end + 1 : at;
}

// Closing marks right after the stops, and separate ones, as in tokenized text. A separate straight quotation mark
// closes if it is the second one of a pair; `quotes` of them precede `at`.
static size_t skip_closing(const view *v, size_t at, size_t quotes) {
  while (is(v, at, QUOTE) || is(v, at, CLOSE) || skip_reference(v, at) > at) {
    quotes += v->text[at].code == '"';
    at = is(v, at, QUOTE) || is(v, at, CLOSE) ? at + 1 : skip_reference(v, at);
  }
  for (;;) {
    size_t from = skip_spaces(v, at);
    size_t to = from;
    if (from == at) return at;
    while (is(v, to, CLOSE) || (is(v, to, QUOTE) && v->text[to].code != BACKTICK)) to++;
    if (to == from || !is_gap(v, to)) return at;
    if (v->text[from].code == '"' && to == from + 1 && quotes++ % 2 == 0) return at;
    at = to;
  }
}

static size_t skip_opening(const view *v, size_t at) {
  while (is(v, at, QUOTE) || is(v, at, OPEN)) at = skip_spaces(v, at + 1);
  return at;
}

static bool is_wide(int32_t code) { return code == 0x3002 || code == 0xFF01 || code == 0xFF0E || code == 0xFF1F; }

// The place after a dash with blanks around it, or `at`.
static size_t skip_dash(const view *v, size_t at) {
  bool dash = at < v->length && u_charType(v->text[at].code) == U_DASH_PUNCTUATION && is(v, at + 1, SPACE);
  return dash ? skip_opening(v, skip_spaces(v, at + 1)) : at;
}

// Whether the next word is one that rarely continues a sentence.
static bool is_starter(const view *v, const place *p) {
  size_t end = word_end(v, p->word);
  if (end == p->word + 1 && end < v->length && v->text[end].code == '.') return false;  // an initial
  return in_list(v, v->language->starters, p->word, end);
}

// "Why?" John asked.  "Why?" I asked.  But not: "Why?" He asked.
static bool is_speech(const view *v, const place *p) {
  if (p->end == p->stops || !is(v, p->end - 1, QUOTE) || p->next != p->word) return false;
  size_t end = word_end(v, p->word);
  bool me = end == p->word + 1 && v->text[p->word].code == 'I';
  if (end == p->word || (!me && in_list(v, v->language->starters, p->word, end))) return false;
  for (int i = 0; i < 3; i++) {
    if (end < v->length && v->text[end].code == '.') end++;  // "Mr."
    size_t word = skip_spaces(v, end);
    end = word_end(v, word);
    if (end == word) return false;
    if (in_list(v, v->language->speech, word, end)) return true;
  }
  return false;
}

// An enumeration, "1." or "b." or "IV.", is no sentence.
static bool is_enumeration(const view *v, const place *p) {
  size_t from = p->start;
  if (is(v, from, OPEN)) from++;
  size_t size = p->first - from;
  return (size <= 3 && all(v, from, p->first, DIGIT)) || (size == 1 && is_letter(v, from)) ||
         (size <= 5 && is_roman(v, from, p->first));
}

// "U.S", "Ph.D": letters and stops, each part of one or two letters.
static bool is_dotted(const view *v, size_t from, size_t to) {
  size_t letters = 0;
  bool dotted = false;
  for (size_t i = from; i < to; i++) {
    bool dot = v->text[i].code == '.';
    if ((!dot && !is_letter(v, i)) || (dot && letters == 0)) return false;
    letters = dot ? 0 : letters + 1;
    if (letters > 2) return false;
    dotted = dotted || dot;
  }
  return dotted;
}

// Whether an abbreviation that is otherwise a word ("No", "Fig") is followed by its number.
static bool is_numbered(const view *v, const place *p) {
  size_t end = word_end(v, p->word);
  if (is(v, p->word, DIGIT)) return true;
  if (end == p->word + 1) return v->text[p->word].code != 'I' && v->text[p->word].code != 'A';
  return is_roman(v, p->word, end);
}

// Whether a single full stop ends the sentence; the next word does not begin with a lower-case letter.
static bool ends_at_period(const view *v, const place *p) {
  const tarn__sentence_language *l = v->language;
  size_t from = p->first;
  while (from > p->start && !is(v, from - 1, SPACE) && !is(v, from - 1, QUOTE) && !is(v, from - 1, OPEN) &&
         !is(v, from - 1, CLOSE) && !is(v, from - 1, CONTINUE))
    from--;
  size_t size = p->first - from;
  if (size == 0) return true;
  if (is_enumeration(v, p)) return false;
  bool letter = size == 1 && is_letter(v, from);
  if (in_list(v, l->numbered, from, p->first)) {
    if (is_numbered(v, p)) return false;
    if (!letter) return true;  // "No."; but "P." may be an initial as well
  }
  if (in_list(v, l->never, from, p->first)) return false;
  bool maybe = letter || in_list(v, l->maybe, from, p->first) || is_dotted(v, from, p->first);
  if (maybe && is(v, p->word, DIGIT)) return false;
  if (l->ordinals && size <= 2 && all(v, from, p->first, DIGIT)) maybe = true;
  if (l->ordinals && size > 1 && is_roman(v, from, p->first)) maybe = true;
  if (!maybe || is_starter(v, p)) return true;
  bool chain = letter && from >= p->start + 2 && is(v, from - 1, SPACE) && v->text[from - 2].code == '.';  // "z. B."
  return is(v, p->next, QUOTE) && !chain;
}

static bool ends(const view *v, const place *p) {
  const character *stop = &v->text[p->first];
  bool period = p->stops == p->first + 1 && u_getIntPropertyValue(stop->code, UCHAR_SENTENCE_BREAK) == U_SB_ATERM;
  bool strong = false;
  bool alone = p->first > p->start && is(v, p->first - 1, SPACE);
  for (size_t i = p->first; i < p->stops; i++)
    strong = strong || u_getIntPropertyValue(v->text[i].code, UCHAR_SENTENCE_BREAK) == U_SB_STERM;
  if (is(v, p->word, STOP) || p->word >= v->length) return false;
  // A new line of a dialogue may begin after a dash with a blank.
  if (is(v, p->next, CONTINUE) && !is(v, skip_dash(v, p->next), UPPER)) return false;
  if (p->first > p->start && is(v, p->first - 1, OPEN)) return false;  // "(!)"
  // Lower-case tokenized text has its full stops separated from the words.
  if (is(v, p->word, LOWER)) return period && alone && p->end == p->stops;
  if (period) return ends_at_period(v, p);
  return !strong || !is_speech(v, p);
}

static tarn_status add(tarn__sentences *s, size_t from, size_t to, size_t size) {
  while (from < to && s->text[from].mark == SPACE) from++;
  while (to > from && s->text[to - 1].mark == SPACE) to--;
  if (from == to) return TARN_STATUS_OK;
  TARN_TRY(tarn__grow(&s->items, &s->capacity, s->count + 1, sizeof *s->items));
  s->items[s->count++] = (tarn__sentence){s->text[from].at, to < s->length ? s->text[to].at : size};
  return TARN_STATUS_OK;
}

static tarn_status read_text(tarn__sentences *s, const char *text, size_t length) {
  TARN_TRY(tarn__grow(&s->text, &s->text_capacity, length, sizeof *s->text));
  s->length = 0;
  for (size_t at = 0; at < length;) {
    int32_t code;
    size_t size = tarn__utf8_decode(&code, text + at, length - at);
    s->text[s->length++] = (character){.code = code < 0 ? 0xFFFD : code, .mark = mark_of(code), .at = at};
    at += size;
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__sentences_split(tarn__sentences *sentences, const char *text, size_t length) {
  sentences->count = 0;
  TARN_TRY(read_text(sentences, text, length));
  view v = {sentences->language, sentences->text, sentences->length};
  place p = {.start = skip_spaces(&v, 0)};
  size_t quotes = 0;
  for (size_t i = 0; i < v.length;) {
    quotes += v.text[i].code == '"';
    if (v.text[i].mark != STOP) {
      i++;
      continue;
    }
    p.first = i;
    p.stops = skip_stops(&v, i);
    p.end = skip_closing(&v, p.stops, quotes);
    p.next = skip_spaces(&v, p.end);
    p.word = skip_opening(&v, p.next);
    i = p.stops;
    if ((p.next == p.end && !is_wide(v.text[p.stops - 1].code)) || !ends(&v, &p)) continue;
    TARN_TRY(add(sentences, p.start, p.end, length));
    for (; i < p.end; i++) quotes += v.text[i].code == '"';
    p.start = p.next;
  }
  return add(sentences, p.start, v.length, length);
}

void tarn__sentences_close(tarn__sentences *sentences) {
  tarn__free(sentences->items);
  tarn__free(sentences->text);
  *sentences = (tarn__sentences){0};
}
