#include "text/fairseq.h"

#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "text/pair_table.h"
#include "text/utf8.h"
#include "text/vocab_kind.h"

const char *const tarn__fairseq_specials[TARN__FAIRSEQ_SPECIALS] = {"<s>", "<pad>", "</s>", "<unk>"};

static const char JOIN[] = "@@", END[] = "</w>", VERSION[] = "#version:";
enum { JOIN_LENGTH = sizeof JOIN - 1, END_LENGTH = sizeof END - 1, VERSION_LENGTH = sizeof VERSION - 1 };

// Different texts, each with a zero byte, by number.
typedef struct texts {
  const char **items;
  size_t capacity;
  tarn__index index;
} texts;

typedef struct fairseq {
  texts words, symbols;   // of the tokens; of the codes, where one that ends a word has END
  int32_t *pieces, *ids;  // [size]: the word of a token, and the last token of a word, which overwrites earlier ones
  int32_t size;
  tarn__pair_table merges;
  tarn__arena arena;
  bool cuts;  // there are codes
} fairseq;

static bool detect(const void *bytes, size_t size) {
  const size_t length = strlen(TARN__FAIRSEQ_MAGIC);
  return size >= length && memcmp(bytes, TARN__FAIRSEQ_MAGIC, length) == 0;
}

static void close_texts(texts *t) {
  tarn__free(t->items);
  tarn__index_close(&t->index);
}

static void close_fairseq(void *self) {
  fairseq *f = self;
  close_texts(&f->words);
  tarn__free(f->pieces);
  tarn__free(f->ids);
  close_texts(&f->symbols);
  tarn__pair_table_close(&f->merges);
  tarn__arena_close(&f->arena);
  tarn__free(f);
}

// The number of a text, or -1.
static int32_t find(const texts *t, const char *text, size_t length) {
  const uint64_t hash = tarn__hash64(text, length, 0);
  size_t step = 0;
  int64_t number;
  while ((number = tarn__index_next(&t->index, hash, &step)) >= 0)
    if (strlen(t->items[number]) == length && memcmp(t->items[number], text, length) == 0) break;
  return (int32_t)number;
}

static tarn_status add(fairseq *f, texts *t, const char *text, size_t length) {
  void *copy;
  TARN_TRY(tarn__grow(&t->items, &t->capacity, t->index.count + 1, sizeof *t->items));
  TARN_TRY(tarn__arena_alloc(&f->arena, &copy, length + 1, 1));
  memcpy(copy, text, length);
  ((char *)copy)[length] = '\0';
  t->items[t->index.count] = copy;
  return tarn__index_add(&t->index, tarn__hash64(text, length, 0));
}

// The number of a text, which is added if it is new.
static tarn_status take(fairseq *f, texts *t, int32_t *number, const char *text, size_t length) {
  *number = find(t, text, length);
  if (*number >= 0) return TARN_STATUS_OK;
  *number = (int32_t)t->index.count;
  return add(f, t, text, length);
}

static tarn_status read_tokens(fairseq *f, tarn__vocab_reader *reader) {
  int64_t count;
  const char *line;
  size_t length;
  void *memory;
  TARN_TRY(tarn__vocab_number(reader, &count, TARN__FAIRSEQ_SIZE, TARN__FAIRSEQ_MOST));
  TARN_REQUIRE(count >= TARN__FAIRSEQ_SPECIALS, DATA, "damaged vocabulary: %lld tokens", (long long)count);
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)count, sizeof *f->pieces));
  f->pieces = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)count, sizeof *f->ids));
  f->ids = memory;
  for (int64_t i = 0; i < count; i++) {
    TARN_REQUIRE(tarn__vocab_line(reader, &line, &length), DATA, "damaged vocabulary: token %lld is missing",
                 (long long)i);
    TARN_REQUIRE(length > 0 && tarn__utf8_valid(line, length) == length && !memchr(line, '\0', length), DATA,
                 "damaged vocabulary: token %lld is empty, or not UTF-8, or holds a zero byte", (long long)i);
    TARN_TRY(take(f, &f->words, &f->pieces[i], line, length));
    f->ids[f->pieces[i]] = f->size++;
  }
  for (int i = 0; i < TARN__FAIRSEQ_SPECIALS; i++)
    TARN_REQUIRE(strcmp(f->words.items[f->pieces[i]], tarn__fairseq_specials[i]) == 0, DATA,
                 "damaged vocabulary: token %d must be %s", i, tarn__fairseq_specials[i]);
  return TARN_STATUS_OK;
}

// A line "LEFT RIGHT", or with fastBPE "LEFT RIGHT COUNT". Of equal pairs the first one counts.
static tarn_status take_code(fairseq *f, const char *line, size_t length, int64_t number, bool counts) {
  const char *end = line + length, *blank = memchr(line, ' ', length), *right = blank ? blank + 1 : NULL;
  const char *second = right ? memchr(right, ' ', (size_t)(end - right)) : NULL, *stop = second ? second : end;
  const bool fits = right && blank > line && stop > right && (second != NULL) == counts &&
                    (!counts || tarn__fairseq_is_count(second + 1, (size_t)(end - second - 1)));
  TARN_REQUIRE(fits && tarn__utf8_valid(line, length) == length && !memchr(line, '\0', length), DATA,
               "codes, line %lld: it is not two symbols%s", (long long)number, counts ? " and a count" : "");
  tarn__merge merge;
  bool fresh;
  char *product = NULL;
  const size_t left_length = (size_t)(blank - line), right_length = (size_t)(stop - right);
  TARN_TRY(take(f, &f->symbols, &merge.left, line, left_length));
  TARN_TRY(take(f, &f->symbols, &merge.right, right, right_length));
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, left_length + right_length + 1, 1));
  product = memory;
  memcpy(product, line, left_length);
  memcpy(product + left_length, right, right_length);
  tarn_status status = take(f, &f->symbols, &merge.product, product, left_length + right_length);
  if (status == TARN_STATUS_OK) status = tarn__pair_table_add(&f->merges, &fresh, &merge);
  tarn__free(memory);
  return status;
}

static bool is_version(const char *text, size_t length) {
  while (length > 0 && *text == ' ') text++, length--;
  while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\r')) length--;
  return length == 3 && memcmp(text, "0.2", 3) == 0;
}

// The header says how the end of a word is told; fastBPE has none, but counts.
static tarn_status check_version(const char *line, size_t length, bool *counts) {
  const bool header = length >= VERSION_LENGTH && memcmp(line, VERSION, VERSION_LENGTH) == 0;
  const char *blank = memchr(line, ' ', length);
  *counts = !header && blank && memchr(blank + 1, ' ', (size_t)(line + length - blank - 1));
  TARN_REQUIRE(*counts || (header && is_version(line + VERSION_LENGTH, length - VERSION_LENGTH)), DATA,
               "codes, line 1: they are neither of subword-nmt's version 0.2 (\"#version: 0.2\") nor of fastBPE");
  return TARN_STATUS_OK;
}

static tarn_status read_codes(fairseq *f, tarn__vocab_reader *reader) {
  int64_t bytes, number = 0;
  TARN_TRY(tarn__vocab_number(reader, &bytes, TARN__FAIRSEQ_CODES, 999999999));
  TARN_REQUIRE(bytes == reader->end - reader->at, DATA, "damaged vocabulary: its codes have %lld bytes, not %lld",
               (long long)(reader->end - reader->at), (long long)bytes);
  bool counts = false;
  f->cuts = bytes > 0;
  while (reader->at < reader->end) {
    const char *line = reader->at, *newline = memchr(line, '\n', (size_t)(reader->end - line));
    size_t length = (size_t)((newline ? newline : reader->end) - line);
    reader->at = newline ? newline + 1 : reader->end;
    while (length > 0 && (line[length - 1] == '\r' || line[length - 1] == ' ')) length--;
    if (++number == 1) TARN_TRY(check_version(line, length, &counts));
    if ((number == 1 && !counts) || length == 0) continue;
    TARN_TRY(take_code(f, line, length, number, counts));
  }
  return TARN_STATUS_OK;
}

static tarn_status parse(fairseq *f, const void *bytes, size_t size) {
  tarn__vocab_reader reader = {bytes, (const char *)bytes + size};
  int64_t version;
  TARN_TRY(tarn__vocab_head(&reader, &version, TARN__FAIRSEQ_MAGIC, 1));
  TARN_TRY(read_tokens(f, &reader));
  return read_codes(f, &reader);
}

static tarn_status open_fairseq(void **self, tarn__vocab_facts *facts, const void *bytes, size_t size) {
  TARN_TRY(tarn__alloc(self, TARN__MEMORY_OTHER, 1, sizeof(fairseq)));
  fairseq *f = *self;
  tarn_status status = parse(f, bytes, size);
  *facts = (tarn__vocab_facts){.size = f->size,
                               .unk = TARN__FAIRSEQ_UNK,
                               .bos = TARN__FAIRSEQ_BOS,
                               .eos = TARN__FAIRSEQ_EOS,
                               .pad = TARN__FAIRSEQ_PAD,
                               .special = TARN__VOCAB_NO_SPECIAL};
  if (status != TARN_STATUS_OK) close_fairseq(f);
  return status;
}

static const char *piece(const void *self, int32_t id) {
  const fairseq *f = self;
  return f->words.items[f->pieces[id]];
}

// Text that looks like a special token is ordinary text.
static tarn_status take_token(const fairseq *f, tarn_vocab_ids *ids, const char *text, size_t length) {
  const int32_t word = find(&f->words, text, length);
  TARN_TRY(tarn__grow(&ids->data, &ids->capacity, ids->count + 1, sizeof *ids->data));
  ids->data[ids->count++] = word < TARN__FAIRSEQ_SPECIALS ? TARN__FAIRSEQ_UNK : f->ids[word];
  return TARN_STATUS_OK;
}

// The first blank of a text, as fairseq's regular expression has it, and its bytes; `end` and 0: there is none.
static const char *find_blank(const char *at, const char *end, size_t *size) {
  for (int32_t code; at < end; at += *size) {
    *size = tarn__utf8_decode(&code, at, (size_t)(end - at));
    if (tarn__utf8_is_blank(code)) return at;
  }
  *size = 0;
  return end;
}

// The tokens of a text, with blanks between them.
static tarn_status take_tokens(const fairseq *f, tarn_vocab_ids *ids, const char *text, size_t length) {
  size_t size;
  for (const char *end = text + length, *stop; text < end; text = stop + size) {
    stop = find_blank(text, end, &size);
    if (stop > text) TARN_TRY(take_token(f, ids, text, (size_t)(stop - text)));
  }
  return TARN_STATUS_OK;
}

// The characters of a word as symbols, of which the last one ends the word; `other` is one that no code has.
static size_t first_symbols(const fairseq *f, int32_t *out, const char *word, size_t length, int32_t other) {
  size_t count = 0;
  for (size_t at = 0, size; at < length; at += size) {
    int32_t code;
    char ending[4 + END_LENGTH];
    size = tarn__utf8_decode(&code, word + at, length - at);
    const bool last = at + size == length;
    memcpy(ending, word + at, size);
    memcpy(ending + size, END, END_LENGTH);
    const int32_t found = find(&f->symbols, ending, size + (last ? END_LENGTH : 0));
    out[count++] = found < 0 ? other : found;
  }
  return count;
}

// The bytes of a symbol that a word has at `at`.
static size_t symbol_length(const fairseq *f, int32_t symbol, int32_t other, const char *at, size_t left) {
  int32_t code;
  if (symbol == other) return tarn__utf8_decode(&code, at, left);
  const size_t length = strlen(f->symbols.items[symbol]);
  return length < left ? length : left;  // the last one has END behind it
}

static tarn_status cut_word(const fairseq *f, tarn_vocab_ids *ids, const char *word, size_t length) {
  void *memory;
  const int32_t other = (int32_t)f->symbols.index.count;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, length * (sizeof(int32_t) + 1) + JOIN_LENGTH, 1));
  int32_t *symbols = memory;
  char *text = (char *)(symbols + length);
  size_t count = first_symbols(f, symbols, word, length, other), at = 0;
  tarn_status status = tarn__pair_table_apply(&f->merges, symbols, &count);
  for (size_t i = 0; i < count && status == TARN_STATUS_OK; i++) {
    const bool last = i + 1 == count;
    const size_t size = symbol_length(f, symbols[i], other, word + at, length - at);
    memcpy(text, word + at, size);
    memcpy(text + size, JOIN, JOIN_LENGTH);
    status = take_tokens(f, ids, text, size + (last ? 0 : JOIN_LENGTH));
    at += size;
  }
  tarn__free(memory);
  return status;
}

// What cuts words takes a line apart at the character blank alone; fairseq then splits what that gives at all blanks.
static tarn_status encode(const void *self, tarn_vocab_ids *ids, const char *text, size_t length) {
  const fairseq *f = self;
  const char *at = text, *end = text + length;
  ids->count = 0;
  if (!f->cuts) return take_tokens(f, ids, text, length);
  while (at < end && strchr("\r\n ", *at) && *at) at++;
  while (at < end && strchr("\r\n ", end[-1]) && end[-1]) end--;
  while (at < end) {
    const char *blank = memchr(at, ' ', (size_t)(end - at)), *stop = blank ? blank : end;
    if (stop > at) TARN_TRY(cut_word(f, ids, at, (size_t)(stop - at)));
    at = blank ? blank + 1 : end;
  }
  return TARN_STATUS_OK;
}

static bool joins(const char *token, size_t length) {
  return length >= JOIN_LENGTH && memcmp(token + length - JOIN_LENGTH, JOIN, JOIN_LENGTH) == 0;
}

static tarn_status decode(const void *self, tarn_vocab_text *text, const int32_t *ids, size_t count) {
  const fairseq *f = self;
  bool within = true;
  text->length = 0;
  TARN_TRY(tarn__vocab_append(text, "", 0));
  for (size_t i = 0; i < count; i++) {
    if (ids[i] < TARN__FAIRSEQ_UNK) continue;
    const char *token = piece(f, ids[i]);
    const size_t length = strlen(token);
    if (!within) TARN_TRY(tarn__vocab_append(text, " ", 1));
    within = joins(token, length);
    TARN_TRY(tarn__vocab_append(text, token, within ? length - JOIN_LENGTH : length));
  }
  return TARN_STATUS_OK;
}

// Whether a token begins a word depends on the token before it; one without "@@" at its end is taken to begin one.
static bool begins_word(const void *self, int32_t id) {
  const char *token = piece(self, id);
  return !joins(token, strlen(token));
}

const tarn__vocab_kind tarn__fairseq_kind = {detect, open_fairseq, close_fairseq, piece,
                                             encode, decode,       begins_word,   "fairseq"};
