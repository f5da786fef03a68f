#include "text/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unicode/uchar.h>

#include "base/hash.h"
#include "base/index.h"
#include "base/memory.h"
#include "text/utf8.h"
#include "text/vocab_kind.h"

static const char MAGIC[] = TARN__WORDS_MAGIC;

typedef struct word {
  const char *text;  // zero-terminated
  size_t length;
  int64_t count;
} word;

// Words in the order of their first occurrence.
typedef struct table {
  word *items;
  size_t capacity;
  tarn__index index;  // by text
} table;

typedef struct words {
  table words;
  tarn__arena arena;
  bool lowercase;
  int specials;  // how many special tokens are first; 0: of a list, whose special tokens have names and stand anywhere
  tarn__vocab_facts facts;
} words;

// The number of a word, or -1.
static int64_t find_word(const table *t, const char *text, size_t length, uint64_t hash) {
  size_t step = 0;
  int64_t number;
  while ((number = tarn__index_next(&t->index, hash, &step)) >= 0) {
    const word *w = &t->items[number];
    if (w->length == length && memcmp(w->text, text, length) == 0) break;
  }
  return number;
}

static tarn_status append_word(table *t, tarn__arena *arena, const char *text, size_t length, uint64_t hash) {
  void *copy;
  TARN_TRY(tarn__grow(&t->items, &t->capacity, t->index.count + 1, sizeof *t->items));
  TARN_TRY(tarn__arena_alloc(arena, &copy, length + 1, 1));
  memcpy(copy, text, length);
  t->items[t->index.count] = (word){.text = copy, .length = length};
  return tarn__index_add(&t->index, hash);
}

// Finds or adds a word; *fresh says which.
static tarn_status add_word(table *t, tarn__arena *arena, word **out, bool *fresh, const char *text, size_t length) {
  const uint64_t hash = tarn__hash64(text, length, 0);
  int64_t number = find_word(t, text, length, hash);
  *fresh = number < 0;
  if (*fresh) {
    number = (int64_t)t->index.count;
    TARN_TRY(append_word(t, arena, text, length, hash));
  }
  *out = &t->items[number];
  return TARN_STATUS_OK;
}

static void table_close(table *t) {
  tarn__free(t->items);
  tarn__index_close(&t->index);
  *t = (table){0};
}

// Returns the next word of a text, in lower case if requested and with U+FFFD for invalid bytes: *length is 0 at the
// end. `room` holds a word that differs from the text.
static tarn_status next_word(const char **at, const char *end, const char **text, size_t *length, bool lowercase,
                             tarn_vocab_text *room) {
  while (*at < end && tarn__utf8_is_space(**at)) ++*at;
  const char *start = *at;
  while (*at < end && !tarn__utf8_is_space(**at)) ++*at;
  *text = start;
  *length = (size_t)(*at - start);
  if (*length == 0 || (!lowercase && tarn__utf8_valid(start, *length) == *length)) return TARN_STATUS_OK;
  TARN_TRY(tarn__grow(&room->data, &room->capacity, 4 * *length + 4, 1));  // a letter may become longer in lower case
  room->length = 0;
  for (const char *p = start; p < *at;) {
    int32_t code;
    size_t size = tarn__utf8_decode(&code, p, (size_t)(*at - p));
    room->length += tarn__utf8_encode(room->data + room->length, code < 0    ? 0xFFFD
                                                                 : lowercase ? u_tolower(code)
                                                                             : code);
    p += size;
  }
  *text = room->data;
  *length = room->length;
  return TARN_STATUS_OK;
}

static bool detect(const void *bytes, size_t size) {
  return size >= sizeof MAGIC - 1 && memcmp(bytes, MAGIC, sizeof MAGIC - 1) == 0;
}

static int32_t find_token(const void *self, const char *token) {
  return (int32_t)find_word(&((const words *)self)->words, token, strlen(token), tarn__hash64(token, strlen(token), 0));
}

// A token of a list; an empty one stands for one of white space, which no text has and which is left out of texts.
static tarn_status take_listed(words *self, const char *line, size_t length, int64_t number) {
  word *w;
  bool fresh = true;
  if (length == 0) return append_word(&self->words, &self->arena, line, 0, tarn__hash64(line, 0, 0));
  TARN_TRY(add_word(&self->words, &self->arena, &w, &fresh, line, length));
  TARN_REQUIRE(fresh, DATA, "damaged vocabulary: token %lld is there twice", (long long)number);
  return TARN_STATUS_OK;
}

static tarn_status parse(words *self, const char *bytes, size_t length_of_all) {
  tarn__vocab_reader reader = {bytes, bytes + length_of_all};
  int64_t lowercase;
  int64_t size;
  int64_t version;
  TARN_TRY(tarn__vocab_head(&reader, &version, MAGIC, 3));
  self->specials = version == 3 ? 0 : version == 2 ? TARN__VOCAB_ALL_SPECIALS : TARN__VOCAB_SPECIALS;
  TARN_TRY(tarn__vocab_number(&reader, &lowercase, "lowercase ", 1));
  TARN_TRY(tarn__vocab_number(&reader, &size, "size ", 999999999));
  self->lowercase = lowercase;
  for (int64_t i = 0; i < size; i++) {
    const char *line;
    size_t length;
    TARN_REQUIRE(tarn__vocab_line(&reader, &line, &length), DATA,
                 "damaged vocabulary: it ends after %lld of %lld tokens", (long long)i, (long long)size);
    TARN_REQUIRE(
        (length > 0 || version == 3) && !memchr(line, '\0', length) && tarn__utf8_valid(line, length) == length, DATA,
        "damaged vocabulary: token %lld is empty or not UTF-8", (long long)i);
    for (size_t k = 0; k < length; k++)
      TARN_REQUIRE(!tarn__utf8_is_space(line[k]), DATA, "damaged vocabulary: token %lld holds white space",
                   (long long)i);
    TARN_REQUIRE(i >= self->specials ||
                     (length == strlen(tarn__vocab_specials[i]) && memcmp(line, tarn__vocab_specials[i], length) == 0),
                 DATA, "damaged vocabulary: token %lld must be %s", (long long)i, tarn__vocab_specials[i]);
    TARN_TRY(take_listed(self, line, length, i));
  }
  TARN_REQUIRE(size >= self->specials, DATA, "damaged vocabulary: it needs the tokens <unk>, <s> and </s>%s",
               version == 2 ? ", <cls>, <sep> and <mask>" : "");
  self->facts = tarn__vocab_own_facts((int32_t)size, self->specials);
  if (version == 3) TARN_TRY(tarn__vocab_named_facts(&self->facts, self, find_token));
  if (lowercase) snprintf(self->facts.normalization, sizeof self->facts.normalization, "lower case");
  return tarn__vocab_finish(&reader);
}

static void close_words(void *self) {
  words *w = self;
  table_close(&w->words);
  tarn__arena_close(&w->arena);
  tarn__free(w);
}

static tarn_status open_words(void **self, tarn__vocab_facts *facts, const void *bytes, size_t size) {
  TARN_TRY(tarn__alloc(self, TARN__MEMORY_OTHER, 1, sizeof(words)));
  words *w = *self;
  tarn_status status = parse(w, bytes, size);
  *facts = w->facts;
  if (status != TARN_STATUS_OK) close_words(w);
  return status;
}

static const char *piece(const void *self, int32_t id) { return ((const words *)self)->words.items[id].text; }

// "</s>" in a text is not the end of sentence.
static bool is_special_id(const words *w, int64_t id) {
  const tarn__vocab_facts *f = &w->facts;
  return id < w->specials || id == f->unk || id == f->bos || id == f->eos || id == f->pad;
}

static tarn_status encode(const void *self, tarn_vocab_ids *ids, const char *text, size_t length) {
  const words *vocab = self;
  tarn_vocab_text room = {0};
  const char *at = text;
  tarn_status status;
  ids->count = 0;
  for (;;) {
    const char *item;
    size_t size;
    status = next_word(&at, text + length, &item, &size, vocab->lowercase, &room);
    if (status != TARN_STATUS_OK || size == 0) break;
    status = tarn__grow(&ids->data, &ids->capacity, ids->count + 1, sizeof *ids->data);
    if (status != TARN_STATUS_OK) break;
    const int64_t found = find_word(&vocab->words, item, size, tarn__hash64(item, size, 0));
    ids->data[ids->count++] = found < 0 || is_special_id(vocab, found) ? vocab->facts.unk : (int32_t)found;
  }
  tarn_vocab_text_close(&room);
  return status;
}

static tarn_status decode(const void *self, tarn_vocab_text *text, const int32_t *ids, size_t count) {
  const words *vocab = self;
  text->length = 0;
  for (size_t i = 0; i < count; i++) {
    const word *w = &vocab->words.items[ids[i]];
    if ((ids[i] != vocab->facts.unk && is_special_id(vocab, ids[i])) || w->length == 0) continue;
    TARN_TRY(tarn__grow(&text->data, &text->capacity, text->length + w->length + 2, 1));
    if (text->length) text->data[text->length++] = ' ';
    memcpy(text->data + text->length, w->text, w->length);
    text->length += w->length;
  }
  TARN_TRY(tarn__grow(&text->data, &text->capacity, text->length + 1, 1));
  text->data[text->length] = '\0';
  return TARN_STATUS_OK;
}

static bool begins_word(const void *self, int32_t id) {
  (void)self;
  (void)id;
  return true;
}

static tarn_status count_words(table *t, tarn__arena *arena, tarn_vocab_text *room, tarn__text_next next, void *user,
                               bool lowercase) {
  for (;;) {
    const char *line;
    size_t length;
    TARN_TRY(next(user, &line, &length));
    if (!line) return TARN_STATUS_OK;
    for (const char *at = line;;) {
      const char *item;
      size_t size;
      TARN_TRY(next_word(&at, line + length, &item, &size, lowercase, room));
      if (size == 0) break;
      if (memchr(item, '\0', size)) continue;  // cannot be written as a line of the file
      word *w;
      bool fresh;
      TARN_TRY(add_word(t, arena, &w, &fresh, item, size));
      w->count++;
    }
  }
}

static int by_frequency(const void *a, const void *b) {
  const word *x = a;
  const word *y = b;
  if (x->count != y->count) return x->count > y->count ? -1 : 1;
  return strcmp(x->text, y->text);
}

static bool is_special(const char *text, int specials) {
  for (int i = 0; i < specials; i++)
    if (strcmp(text, tarn__vocab_specials[i]) == 0) return true;
  return false;
}

static tarn_status append(tarn_vocab_text *out, const char *text) {
  return tarn__vocab_append(out, text, strlen(text));
}

static tarn_status write_file(tarn_vocab_text *out, table *t, const tarn_vocab_options *options) {
  int64_t kept = 0;
  const int specials = tarn__vocab_count_specials(options);
  if (t->index.count) qsort(t->items, t->index.count, sizeof *t->items, by_frequency);
  for (size_t i = 0; i < t->index.count && kept < options->size - specials; i++) {
    if (t->items[i].count < options->minimum_count) break;
    if (!is_special(t->items[i].text, specials)) t->items[kept++] = t->items[i];
  }
  TARN_REQUIRE(kept > 0, DATA, "the text has no word that occurs at least %lld times",
               (long long)options->minimum_count);
  char head[128];
  snprintf(head, sizeof head, "%s%d\nlowercase %d\nsize %lld\n", MAGIC, options->mask_symbols ? 2 : 1,
           options->lowercase, (long long)kept + specials);
  TARN_TRY(append(out, head));
  for (int64_t i = -specials; i < kept; i++) {
    TARN_TRY(append(out, i < 0 ? tarn__vocab_specials[i + specials] : t->items[i].text));
    TARN_TRY(append(out, "\n"));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__words_train(char **bytes, size_t *size, tarn__text_next next, void *user,
                              const tarn_vocab_options *options) {
  table t = {0};
  tarn__arena arena = {0};
  tarn_vocab_text room = {0};
  tarn_vocab_text out = {0};
  tarn_status status = count_words(&t, &arena, &room, next, user, options->lowercase);
  if (status == TARN_STATUS_OK) status = write_file(&out, &t, options);
  table_close(&t);
  tarn__arena_close(&arena);
  tarn_vocab_text_close(&room);
  if (status != TARN_STATUS_OK) tarn_vocab_text_close(&out);
  *bytes = out.data;
  *size = out.length;
  return status;
}

const tarn__vocab_kind tarn__words_kind = {detect, open_words, close_words, piece,
                                           encode, decode,     begins_word, "words"};
