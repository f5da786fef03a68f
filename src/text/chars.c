#include "text/chars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unicode/uchar.h>

#include "base/memory.h"
#include "text/utf8.h"
#include "text/vocab_kind.h"

static const char MAGIC[] = "tarn-vocab char ";
enum { UNK = TARN__VOCAB_UNK, CODES = 0x110000, UNKNOWN = 0xFFFD, PAGE = 256, LONGEST_NAME = 12 };

typedef struct chars {
  int32_t *pages[CODES / PAGE];  // ids by code point; 0: unknown. NULL: the whole page is unknown
  int32_t *codes;                // by id; the special ones are -1
  char (*names)[LONGEST_NAME];
  int32_t count;
  int32_t specials;
  bool lowercase;
  tarn__arena arena;
} chars;

static bool detect(const void *bytes, size_t size) {
  return size >= sizeof MAGIC - 1 && memcmp(bytes, MAGIC, sizeof MAGIC - 1) == 0;
}

static void close_chars(void *self) {
  chars *c = self;
  tarn__arena_close(&c->arena);
  tarn__free(c);
}

// Reads "U+00E4": 4 to 6 upper-case hexadecimal digits, no surrogate. -1 otherwise.
static int32_t read_code(const char *line, size_t length) {
  int32_t code = 0;
  if (length < 6 || length > 8 || line[0] != 'U' || line[1] != '+') return -1;
  for (size_t i = 2; i < length; i++) {
    static const char DIGITS[] = "0123456789ABCDEF";
    const char *digit = line[i] ? strchr(DIGITS, line[i]) : NULL;
    if (!digit) return -1;
    code = code * 16 + (int32_t)(digit - DIGITS);
  }
  return code < CODES && (code < 0xD800 || code > 0xDFFF) ? code : -1;
}

static void name_character(char name[LONGEST_NAME], int32_t code) {
  if (u_isgraph(code))
    name[tarn__utf8_encode(name, code)] = '\0';
  else
    snprintf(name, LONGEST_NAME, "<U+%04X>", (unsigned)code);
}

static tarn_status add_code(chars *c, int32_t code) {
  int32_t **page = &c->pages[code / PAGE];
  void *memory = *page;
  if (!memory) TARN_TRY(tarn__arena_alloc(&c->arena, &memory, PAGE, sizeof **page));
  *page = memory;
  TARN_REQUIRE((*page)[code % PAGE] == 0, DATA, "damaged vocabulary: token %d is there twice", c->count);
  (*page)[code % PAGE] = c->count;
  c->codes[c->count] = code;
  name_character(c->names[c->count++], code);
  return TARN_STATUS_OK;
}

static tarn_status parse(chars *c, const char *bytes, size_t length_of_all) {
  tarn__vocab_reader reader = {bytes, bytes + length_of_all};
  int64_t lowercase;
  int64_t size;
  void *memory;
  int64_t version;
  TARN_TRY(tarn__vocab_head(&reader, &version, MAGIC, 2));
  c->specials = version == 2 ? TARN__VOCAB_ALL_SPECIALS : TARN__VOCAB_SPECIALS;
  TARN_TRY(tarn__vocab_number(&reader, &lowercase, "lowercase ", 1));
  TARN_TRY(tarn__vocab_number(&reader, &size, "size ", CODES));
  TARN_REQUIRE(size >= c->specials, DATA, "damaged vocabulary: it needs the tokens <unk>, <s> and </s>%s",
               version == 2 ? ", <cls>, <sep> and <mask>" : "");
  c->lowercase = lowercase;
  TARN_TRY(tarn__arena_alloc(&c->arena, &memory, (size_t)size, sizeof *c->codes));
  c->codes = memory;
  TARN_TRY(tarn__arena_alloc(&c->arena, &memory, (size_t)size, sizeof *c->names));
  c->names = memory;
  for (; c->count < c->specials; c->count++) {
    c->codes[c->count] = -1;
    snprintf(c->names[c->count], LONGEST_NAME, "%s", tarn__vocab_specials[c->count]);
  }
  while (c->count < size) {
    const char *line;
    size_t length;
    TARN_REQUIRE(tarn__vocab_line(&reader, &line, &length), DATA, "damaged vocabulary: it ends after %d of %lld tokens",
                 c->count, (long long)size);
    int32_t code = read_code(line, length);
    TARN_REQUIRE(code >= 0, DATA, "damaged vocabulary: token %d is no code point such as U+00E4", c->count);
    TARN_TRY(add_code(c, code));
  }
  return tarn__vocab_finish(&reader);
}

static tarn_status open_chars(void **self, tarn__vocab_facts *facts, const void *bytes, size_t size) {
  TARN_TRY(tarn__alloc(self, TARN__MEMORY_OTHER, 1, sizeof(chars)));
  chars *c = *self;
  tarn_status status = parse(c, bytes, size);
  *facts = tarn__vocab_own_facts(c->count, c->specials);
  if (c->lowercase) snprintf(facts->normalization, sizeof facts->normalization, "lower case");
  if (status != TARN_STATUS_OK) close_chars(c);
  return status;
}

static const char *piece(const void *self, int32_t id) { return ((const chars *)self)->names[id]; }

// Takes the next character of a text; an invalid subpart is U+FFFD.
static int32_t take(const char **at, const char *end, bool lowercase) {
  int32_t code;
  *at += tarn__utf8_decode(&code, *at, (size_t)(end - *at));
  if (code < 0) code = UNKNOWN;
  return lowercase ? u_tolower(code) : code;
}

static tarn_status encode(const void *self, tarn_vocab_ids *ids, const char *text, size_t length) {
  const chars *c = self;
  TARN_TRY(tarn__grow(&ids->data, &ids->capacity, length, sizeof *ids->data));
  ids->count = 0;
  for (const char *at = text; at < text + length;) {
    int32_t code = take(&at, text + length, c->lowercase);
    const int32_t *page = c->pages[code / PAGE];
    ids->data[ids->count++] = page ? page[code % PAGE] : UNK;
  }
  return TARN_STATUS_OK;
}

static tarn_status decode(const void *self, tarn_vocab_text *text, const int32_t *ids, size_t count) {
  const chars *c = self;
  size_t room;
  TARN_TRY(tarn__mul_size(&room, count, 4));
  TARN_TRY(tarn__grow(&text->data, &text->capacity, room + 1, 1));
  text->length = 0;
  for (size_t i = 0; i < count; i++)
    if (ids[i] == UNK || ids[i] >= c->specials)
      text->length += tarn__utf8_encode(text->data + text->length, ids[i] == UNK ? UNKNOWN : c->codes[ids[i]]);
  text->data[text->length] = '\0';
  return TARN_STATUS_OK;
}

static bool begins_word(const void *self, int32_t id) {
  const chars *c = self;
  return c->codes[id] >= 0 && u_isUWhiteSpace(c->codes[id]);
}

typedef struct tally {
  int64_t count;
  int32_t code;
} tally;

static int by_frequency(const void *a, const void *b) {
  const tally *x = a;
  const tally *y = b;
  if (x->count != y->count) return x->count > y->count ? -1 : 1;
  return x->code < y->code ? -1 : 1;
}

static tarn_status count_characters(tally *tallies, tarn__text_next next, void *user, bool lowercase) {
  for (;;) {
    const char *line;
    size_t length;
    TARN_TRY(next(user, &line, &length));
    if (!line) return TARN_STATUS_OK;
    for (const char *at = line; at < line + length;) tallies[take(&at, line + length, lowercase)].count++;
  }
}

// `tallies` is in order of frequency.
static tarn_status write_file(tarn_vocab_text *out, const tally *tallies, const tarn_vocab_options *options) {
  char line[128];
  int64_t kept = 0;
  const int specials = tarn__vocab_count_specials(options);
  while (kept < CODES && kept < options->size - specials && tallies[kept].count > 0 &&
         tallies[kept].count >= options->minimum_count)
    kept++;
  TARN_REQUIRE(kept > 0, DATA, "the text has no character that occurs at least %lld times",
               (long long)options->minimum_count);
  snprintf(line, sizeof line, "%s%d\nlowercase %d\nsize %lld\n", MAGIC, options->mask_symbols ? 2 : 1,
           options->lowercase, (long long)kept + specials);
  TARN_TRY(tarn__vocab_append(out, line, strlen(line)));
  for (int64_t i = 0; i < kept; i++) {
    snprintf(line, sizeof line, "U+%04X\n", (unsigned)tallies[i].code);
    TARN_TRY(tarn__vocab_append(out, line, strlen(line)));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__chars_train(char **bytes, size_t *size, tarn__text_next next, void *user,
                              const tarn_vocab_options *options) {
  tarn_vocab_text out = {0};
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, CODES, sizeof(tally)));
  tally *tallies = memory;
  for (int32_t i = 0; i < CODES; i++) tallies[i].code = i;
  tarn_status status = count_characters(tallies, next, user, options->lowercase);
  if (status == TARN_STATUS_OK) {
    qsort(tallies, CODES, sizeof *tallies, by_frequency);
    status = write_file(&out, tallies, options);
  }
  tarn__free(memory);
  if (status != TARN_STATUS_OK) tarn_vocab_text_close(&out);
  *bytes = out.data;
  *size = out.length;
  return status;
}

const tarn__vocab_kind tarn__chars_kind = {detect, open_chars, close_chars, piece,
                                           encode, decode,     begins_word, "characters"};
