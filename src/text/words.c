#include "text/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unicode/uchar.h>

#include "base/hash.h"
#include "base/memory.h"
#include "text/utf8.h"

enum { SPECIALS = 3, UNK = 0 };
static const char *const SPECIAL[SPECIALS] = {"<unk>", "<s>", "</s>"};
static const char MAGIC[] = "tarn-vocab whitespace ";

typedef struct word {
  const char *text;  // zero-terminated
  size_t length;
  int64_t count;
} word;

// Words in the order they came, and an open-addressing index over them.
typedef struct table {
  word *items;
  size_t count, capacity;
  uint32_t *slots;  // 1 + number of the word; 0: free
  size_t slot_count;
} table;

struct tarn__words {
  table words;
  tarn__arena arena;
  bool lowercase;
};

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The slot of a word: its own, or the free one where it belongs.
static size_t find_slot(const table *t, const char *text, size_t length) {
  size_t mask = t->slot_count - 1;
  size_t slot = (size_t)tarn__hash64(text, length, 0) & mask;
  while (t->slots[slot]) {
    const word *w = &t->items[t->slots[slot] - 1];
    if (w->length == length && memcmp(w->text, text, length) == 0) break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

static tarn_status grow_slots(table *t) {
  if (2 * (t->count + 1) <= t->slot_count) return TARN_STATUS_OK;
  size_t larger = t->slot_count ? 2 * t->slot_count : 1024;
  void *slots;
  TARN_TRY(tarn__alloc(&slots, TARN__MEMORY_OTHER, larger, sizeof *t->slots));
  tarn__free(t->slots);
  t->slots = slots;
  t->slot_count = larger;
  for (size_t i = 0; i < t->count; i++)
    t->slots[find_slot(t, t->items[i].text, t->items[i].length)] = (uint32_t)(i + 1);
  return TARN_STATUS_OK;
}

// Finds or adds a word; *fresh says which.
static tarn_status add_word(table *t, tarn__arena *arena, word **out, bool *fresh, const char *text, size_t length) {
  TARN_TRY(grow_slots(t));
  size_t slot = find_slot(t, text, length);
  *fresh = t->slots[slot] == 0;
  if (*fresh) {
    TARN_REQUIRE(t->count < INT32_MAX / 2, DATA, "too many distinct words");
    TARN_TRY(tarn__grow(&t->items, &t->capacity, t->count + 1, sizeof *t->items));
    void *copy;
    TARN_TRY(tarn__arena_alloc(arena, &copy, length + 1, 1));
    memcpy(copy, text, length);
    t->items[t->count] = (word){.text = copy, .length = length};
    t->slots[slot] = (uint32_t)++t->count;
  }
  *out = &t->items[t->slots[slot] - 1];
  return TARN_STATUS_OK;
}

static void table_close(table *t) {
  tarn__free(t->items);
  tarn__free(t->slots);
  *t = (table){0};
}

// Gives the next word of a text, in lower case if asked: *length is 0 at the end. `room` holds lowered text.
static tarn_status next_word(const char **at, const char *end, const char **text, size_t *length, bool lowercase,
                             tarn_vocab_text *room) {
  while (*at < end && is_space(**at)) ++*at;
  const char *start = *at;
  while (*at < end && !is_space(**at)) ++*at;
  *text = start;
  *length = (size_t)(*at - start);
  if (!lowercase || *length == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__grow(&room->data, &room->capacity, 4 * *length + 4, 1));  // a letter may grow in lower case
  room->length = 0;
  for (const char *p = start; p < *at;) {
    int32_t code;
    size_t size = tarn__utf8_decode(&code, p, (size_t)(*at - p));
    room->length += tarn__utf8_encode(room->data + room->length, code < 0 ? 0xFFFD : u_tolower(code));
    p += size;
  }
  *text = room->data;
  *length = room->length;
  return TARN_STATUS_OK;
}

bool tarn__words_detect(const void *bytes, size_t size) {
  return size >= sizeof MAGIC - 1 && memcmp(bytes, MAGIC, sizeof MAGIC - 1) == 0;
}

// Takes a line; false if there is none that ends in a newline.
static bool take_line(const char **at, const char *end, const char **line, size_t *length) {
  const char *newline = *at < end ? memchr(*at, '\n', (size_t)(end - *at)) : NULL;
  if (!newline) return false;
  *line = *at;
  *length = (size_t)(newline - *at);
  *at = newline + 1;
  return true;
}

// Takes a line "KEY NUMBER" with a number of at most nine digits.
static tarn_status take_number(const char **at, const char *end, const char *key, int64_t *number) {
  const char *line;
  size_t length;
  size_t prefix = strlen(key);
  TARN_REQUIRE(
      take_line(at, end, &line, &length) && length > prefix && length <= prefix + 9 && memcmp(line, key, prefix) == 0,
      DATA, "damaged vocabulary: the line \"%sNUMBER\" is missing", key);
  *number = 0;
  for (size_t i = prefix; i < length; i++) {
    TARN_REQUIRE(line[i] >= '0' && line[i] <= '9', DATA, "damaged vocabulary: \"%s\" needs a number", key);
    *number = *number * 10 + (line[i] - '0');
  }
  return TARN_STATUS_OK;
}

static tarn_status parse(tarn__words *words, const char *at, const char *end) {
  int64_t version;
  int64_t lowercase;
  int64_t size;
  TARN_TRY(take_number(&at, end, MAGIC, &version));
  TARN_REQUIRE(version == 1, DATA, "vocabulary of version %lld; this program reads version 1", (long long)version);
  TARN_TRY(take_number(&at, end, "lowercase ", &lowercase));
  TARN_REQUIRE(lowercase <= 1, DATA, "damaged vocabulary: \"lowercase\" is 0 or 1, not %lld", (long long)lowercase);
  TARN_TRY(take_number(&at, end, "size ", &size));
  words->lowercase = lowercase;
  for (int64_t i = 0; i < size; i++) {
    const char *line;
    size_t length;
    TARN_REQUIRE(take_line(&at, end, &line, &length), DATA, "damaged vocabulary: it ends after %lld of %lld tokens",
                 (long long)i, (long long)size);
    TARN_REQUIRE(length > 0 && !memchr(line, '\0', length) && tarn__utf8_valid(line, length) == length, DATA,
                 "damaged vocabulary: token %lld is empty or not UTF-8", (long long)i);
    for (size_t k = 0; k < length; k++)
      TARN_REQUIRE(!is_space(line[k]), DATA, "damaged vocabulary: token %lld holds white space", (long long)i);
    TARN_REQUIRE(i >= SPECIALS || (length == strlen(SPECIAL[i]) && memcmp(line, SPECIAL[i], length) == 0), DATA,
                 "damaged vocabulary: token %lld must be %s", (long long)i, SPECIAL[i]);
    word *w;
    bool fresh;
    TARN_TRY(add_word(&words->words, &words->arena, &w, &fresh, line, length));
    TARN_REQUIRE(fresh, DATA, "damaged vocabulary: token %lld is there twice", (long long)i);
  }
  TARN_REQUIRE(size >= SPECIALS, DATA, "damaged vocabulary: it needs the tokens <unk>, <s> and </s>");
  TARN_REQUIRE(at == end, DATA, "damaged vocabulary: there is more after its %lld tokens", (long long)size);
  return TARN_STATUS_OK;
}

tarn_status tarn__words_open(tarn__words **words, const void *bytes, size_t size) {
  void *memory;
  *words = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **words));
  *words = memory;
  tarn_status status = parse(*words, bytes, (const char *)bytes + size);
  if (status != TARN_STATUS_OK) tarn__words_close(words);
  return status;
}

void tarn__words_close(tarn__words **words) {
  if (!*words) return;
  table_close(&(*words)->words);
  tarn__arena_close(&(*words)->arena);
  tarn__free(*words);
  *words = NULL;
}

int32_t tarn__words_size(const tarn__words *words) { return (int32_t)words->words.count; }
const char *tarn__words_piece(const tarn__words *words, int32_t id) { return words->words.items[id].text; }

tarn_status tarn__words_encode(const tarn__words *words, tarn_vocab_ids *ids, const char *text, size_t length) {
  tarn_vocab_text room = {0};
  const char *at = text;
  tarn_status status;
  ids->count = 0;
  for (;;) {
    const char *item;
    size_t size;
    status = next_word(&at, text + length, &item, &size, words->lowercase, &room);
    if (status != TARN_STATUS_OK || size == 0) break;
    status = tarn__grow(&ids->data, &ids->capacity, ids->count + 1, sizeof *ids->data);
    if (status != TARN_STATUS_OK) break;
    uint32_t found = words->words.slots[find_slot(&words->words, item, size)];
    ids->data[ids->count++] = found > SPECIALS ? (int32_t)found - 1 : UNK;  // "</s>" in a text is no end of sentence
  }
  tarn_vocab_text_close(&room);
  return status;
}

tarn_status tarn__words_decode(const tarn__words *words, tarn_vocab_text *text, const int32_t *ids, size_t count) {
  text->length = 0;
  for (size_t i = 0; i < count; i++) {
    if (ids[i] != UNK && ids[i] < SPECIALS) continue;
    const word *w = &words->words.items[ids[i]];
    TARN_TRY(tarn__grow(&text->data, &text->capacity, text->length + w->length + 2, 1));
    if (text->length) text->data[text->length++] = ' ';
    memcpy(text->data + text->length, w->text, w->length);
    text->length += w->length;
  }
  TARN_TRY(tarn__grow(&text->data, &text->capacity, text->length + 1, 1));
  text->data[text->length] = '\0';
  return TARN_STATUS_OK;
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

static bool is_special(const char *text) {
  for (int i = 0; i < SPECIALS; i++)
    if (strcmp(text, SPECIAL[i]) == 0) return true;
  return false;
}

static tarn_status append(tarn_vocab_text *out, const char *text) {
  size_t length = strlen(text);
  TARN_TRY(tarn__grow(&out->data, &out->capacity, out->length + length + 1, 1));
  memcpy(out->data + out->length, text, length + 1);
  out->length += length;
  return TARN_STATUS_OK;
}

static tarn_status write_file(tarn_vocab_text *out, table *t, const tarn_vocab_options *options) {
  int64_t kept = 0;
  if (t->count) qsort(t->items, t->count, sizeof *t->items, by_frequency);
  for (size_t i = 0; i < t->count && kept < options->size - SPECIALS; i++) {
    if (t->items[i].count < options->minimum_count) break;
    if (!is_special(t->items[i].text)) t->items[kept++] = t->items[i];
  }
  TARN_REQUIRE(kept > 0, DATA, "the text has no word that occurs at least %lld times",
               (long long)options->minimum_count);
  char head[128];
  snprintf(head, sizeof head, "%s1\nlowercase %d\nsize %lld\n", MAGIC, options->lowercase, (long long)kept + SPECIALS);
  TARN_TRY(append(out, head));
  for (int64_t i = -SPECIALS; i < kept; i++) {
    TARN_TRY(append(out, i < 0 ? SPECIAL[i + SPECIALS] : t->items[i].text));
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
