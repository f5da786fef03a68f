#include "decode/forced_text.h"

#include <string.h>

#include "decode/steering.h"

enum { SHOWN = 40 };  // bytes of a text in a message

// A list of phrases with room for more.
typedef struct list {
  tarn__phrase *phrases;
  const char **texts;
  int64_t count, tokens;
} list;

static tarn_status make_list(list *l, tarn__arena *memory, int64_t room) {
  void *phrases, *texts;
  TARN_TRY(tarn__arena_alloc(memory, &phrases, (size_t)room, sizeof *l->phrases));
  TARN_TRY(tarn__arena_alloc(memory, &texts, (size_t)room, sizeof *l->texts));
  *l = (list){.phrases = phrases, .texts = texts};
  return TARN_STATUS_OK;
}

static bool has(const list *l, const tarn__phrase *phrase) {
  for (int64_t i = 0; i < l->count; i++)
    if (l->phrases[i].length == phrase->length &&
        memcmp(l->phrases[i].ids, phrase->ids, (size_t)phrase->length * sizeof *phrase->ids) == 0)
      return true;
  return false;
}

// Adds a phrase, unless the list has it. `text` lives as long as it.
static tarn_status add(list *l, const tarn__phrase *phrase, const char *text, int64_t longest) {
  if (has(l, phrase)) return TARN_STATUS_OK;
  TARN_REQUIRE(
      phrase->length <= longest - l->tokens, USAGE,
      "with the forced text \"%.*s\" the forced texts have more than %lld tokens, the most that a translation of "
      "this model has",
      SHOWN, text, (long long)longest);
  l->phrases[l->count] = *phrase;
  l->texts[l->count++] = text;
  l->tokens += phrase->length;
  return TARN_STATUS_OK;
}

static tarn__forced forced_of(const list *l) {
  return (tarn__forced){.phrases = l->phrases, .texts = l->texts, .count = l->count, .tokens = l->tokens};
}

tarn_status tarn__forced_text_open(tarn__forced_text *f, const char *const *words, size_t count,
                                   const tarn_vocab *vocab, int64_t longest) {
  *f = (tarn__forced_text){.vocab = vocab, .longest = longest, .count = count};
  list l;
  void *memory;
  if (count == 0) return TARN_STATUS_OK;
  TARN_TRY(make_list(&l, &f->memory, (int64_t)count));
  TARN_TRY(tarn__arena_alloc(&f->memory, &memory, count, sizeof *words));
  const char **copies = memory;
  f->words = copies;
  for (size_t i = 0; i < count; i++) {
    tarn__phrase phrase;
    char *copy;
    TARN_TRY(tarn__arena_strdup(&f->memory, &copy, words[i]));
    copies[i] = copy;
    TARN_TRY(tarn__steering_phrase(&f->memory, &phrase, "forced", copy, strlen(copy), vocab, &f->ids));
    TARN_TRY(add(&l, &phrase, copy, longest));
  }
  f->all = forced_of(&l);
  return TARN_STATUS_OK;
}

void tarn__forced_text_close(tarn__forced_text *f) {
  tarn__arena_close(&f->memory);
  tarn__arena_close(&f->line_memory);
  tarn_vocab_ids_close(&f->ids);
  tarn__free(f->repaired.data);
  tarn__free(f->lines);
  *f = (tarn__forced_text){0};
}

tarn_status tarn__forced_text_begin(tarn__forced_text *f, size_t sentences) {
  tarn__arena_reset(&f->line_memory);
  return tarn__grow(&f->lines, &f->lines_room, sentences, sizeof *f->lines);
}

// Adds the text of a column.
static tarn_status add_column(tarn__forced_text *f, list *l, const char *text, size_t length, bool strict,
                              bool *replaced) {
  char *copy;
  size_t size;
  tarn__phrase phrase;
  bool changed;
  TARN_TRY(tarn__repair(&f->repaired, &text, &length, strict, &changed));
  *replaced |= changed;
  TARN_TRY(tarn__repair_copy(&f->line_memory, &copy, &size, text, length));
  TARN_TRY(tarn__steering_phrase(&f->line_memory, &phrase, "forced", copy, size, f->vocab, &f->ids));
  return add(l, &phrase, copy, f->longest);
}

static tarn_status add_columns(tarn__forced_text *f, list *l, const char *columns, size_t length, bool strict,
                               bool *replaced) {
  const char *const end = columns + length;
  for (const char *at = columns; at < end;) {
    const char *tab = memchr(at, '\t', (size_t)(end - at)), *stop = tab ? tab : end;
    if (stop > at) TARN_TRY(add_column(f, l, at, (size_t)(stop - at), strict, replaced));
    at = stop + 1;
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__forced_text_add(tarn__forced_text *f, size_t sentence, const char *columns, size_t length,
                                  bool strict, bool *replaced) {
  list l;
  f->lines[sentence] = f->all;
  if (!columns || length == 0) return TARN_STATUS_OK;
  int64_t room = f->all.count + 1;
  for (size_t i = 0; i < length; i++) room += columns[i] == '\t';
  // More different ones than the longest translation has tokens do not fit.
  if (room > f->longest) room = f->longest;
  TARN_TRY(make_list(&l, &f->line_memory, room));
  for (int64_t i = 0; i < f->all.count; i++) TARN_TRY(add(&l, &f->all.phrases[i], f->all.texts[i], f->longest));
  TARN_TRY(add_columns(f, &l, columns, length, strict, replaced));
  f->lines[sentence] = forced_of(&l);
  return TARN_STATUS_OK;
}
