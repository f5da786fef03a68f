#include "text/marian.h"

#include <string.h>

#include "base/hash.h"
#include "base/index.h"
#include "base/memory.h"
#include "text/cut.h"
#include "text/spm.h"
#include "text/utf8.h"
#include "text/vocab_kind.h"

static const char BLANK[] = "\xE2\x96\x81";  // U+2581, the first character of pieces that begin a word
enum { BLANK_LENGTH = sizeof BLANK - 1 };

typedef struct marian {
  tarn__spm *spm;
  char *text;           // of all tokens, each followed by a zero byte
  const char **tokens;  // [facts.size], in it
  tarn__index index;
  tarn__vocab_facts facts;
} marian;

static bool detect(const void *bytes, size_t size) {
  const size_t length = strlen(TARN__MARIAN_MAGIC);
  return size >= length && memcmp(bytes, TARN__MARIAN_MAGIC, length) == 0;
}

static void close_marian(void *self) {
  marian *m = self;
  tarn__spm_close(&m->spm);
  tarn__free(m->text);
  tarn__free(m->tokens);
  tarn__index_close(&m->index);
  tarn__free(m);
}

// The id of a token, or -1.
static int32_t find(const marian *m, const char *token, size_t length) {
  const uint64_t hash = tarn__hash64(token, length, 0);
  size_t step = 0;
  for (int64_t id; (id = tarn__index_next(&m->index, hash, &step)) >= 0;)
    if (strlen(m->tokens[id]) == length && memcmp(m->tokens[id], token, length) == 0) return (int32_t)id;
  return -1;
}

static int32_t find_token(const void *self, const char *token) { return find(self, token, strlen(token)); }

static tarn_status read_tokens(marian *m, tarn__vocab_reader *reader, bool named) {
  int64_t count;
  void *memory;
  const char *line;
  size_t length;
  TARN_TRY(tarn__vocab_number(reader, &count, TARN__MARIAN_SIZE, TARN__MARIAN_MOST));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)count + 1, sizeof *m->tokens));
  m->tokens = memory;
  // With a zero byte for each newline the tokens need no more space than the rest of the file.
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)(reader->end - reader->at) + 1, 1));
  char *at = m->text = memory;
  for (int64_t i = 0; i < count; i++) {
    TARN_REQUIRE(tarn__vocab_line(reader, &line, &length), DATA, "damaged vocabulary: token %lld is missing",
                 (long long)i);
    TARN_REQUIRE(tarn__utf8_valid(line, length) == length && !memchr(line, '\0', length), DATA,
                 "damaged vocabulary: token %lld is not UTF-8, or holds a zero byte", (long long)i);
    TARN_REQUIRE(find(m, line, length) < 0, DATA, "damaged vocabulary: token %lld is there twice", (long long)i);
    memcpy(at, line, length);
    at[length] = '\0';
    m->tokens[i] = at;
    at += length + 1;
    TARN_TRY(tarn__index_add(&m->index, tarn__hash64(line, length, 0)));
  }
  m->facts = (tarn__vocab_facts){.size = (int32_t)count,
                                 .unk = find(m, "<unk>", 5),
                                 .eos = find(m, "</s>", 4),
                                 .pad = find(m, "<pad>", 5),
                                 .bos = -1,
                                 .special = TARN__VOCAB_NO_SPECIAL};
  if (named) return tarn__vocab_named_facts(&m->facts, m, find_token);
  TARN_REQUIRE(m->facts.unk >= 0 && m->facts.eos >= 0, DATA, "the vocabulary needs the tokens <unk> and </s>");
  return TARN_STATUS_OK;
}

static tarn_status parse(marian *m, const void *bytes, size_t size) {
  tarn__vocab_reader reader = {bytes, (const char *)bytes + size};
  int64_t version, model;
  TARN_TRY(tarn__vocab_head(&reader, &version, TARN__MARIAN_MAGIC, TARN__MARIAN_NEWEST));
  TARN_TRY(read_tokens(m, &reader, version > 1));
  TARN_TRY(tarn__vocab_number(&reader, &model, TARN__MARIAN_MODEL, 999999999));
  TARN_REQUIRE(model == reader.end - reader.at, DATA,
               "damaged vocabulary: its SentencePiece model has %lld bytes, not %lld",
               (long long)(reader.end - reader.at), (long long)model);
  TARN_TRY(tarn__spm_check(reader.at, (size_t)model));
  tarn__vocab_describe_spm(&m->facts, reader.at, (size_t)model);
  m->facts.type = NULL;
  return tarn__spm_open(&m->spm, reader.at, (size_t)model);
}

static tarn_status open_marian(void **self, tarn__vocab_facts *facts, const void *bytes, size_t size) {
  TARN_TRY(tarn__alloc(self, TARN__MEMORY_OTHER, 1, sizeof(marian)));
  marian *m = *self;
  tarn_status status = parse(m, bytes, size);
  *facts = m->facts;
  if (status != TARN_STATUS_OK) close_marian(m);
  return status;
}

static const char *piece(const void *self, int32_t id) { return ((const marian *)self)->tokens[id]; }

typedef struct encoding {
  const marian *vocab;
  tarn_vocab_ids *ids;
} encoding;

// Text that looks like a special token is ordinary text.
static tarn_status take_piece(void *user, const char *text, size_t length) {
  const encoding *e = user;
  const tarn__vocab_facts *f = &e->vocab->facts;
  tarn_vocab_ids *ids = e->ids;
  const int32_t id = find(e->vocab, text, length);
  TARN_TRY(tarn__grow(&ids->data, &ids->capacity, ids->count + 1, sizeof *ids->data));
  ids->data[ids->count++] = id < 0 || id == f->bos || id == f->eos || id == f->pad ? f->unk : id;
  return TARN_STATUS_OK;
}

// Bytes of a code such as ">>deu<<" at the beginning; 0: there is none.
static size_t code_length(const char *text, size_t length) {
  const char *end = length > 2 && memcmp(text, ">>", 2) == 0 ? memmem(text, length, "<<", 2) : NULL;
  return end ? (size_t)(end - text) + 2 : 0;
}

static tarn_status encode(const void *self, tarn_vocab_ids *ids, const char *text, size_t length) {
  encoding e = {self, ids};
  ids->count = ids->parts = 0;
  const size_t code = code_length(text, length);
  if (code) TARN_TRY(take_piece(&e, text, code));
  text += code;
  length -= code;
  for (size_t next; ids->parts == 0 || length > 0; text += next, length -= next, ids->parts++) {
    bool within;
    const size_t part = tarn__cut(&next, &within, text, length, TARN__CUT_LONGEST);
    TARN_TRY(tarn__spm_encode_pieces(e.vocab->spm, take_piece, &e, text, part));
    ids->broken += within;
  }
  return TARN_STATUS_OK;
}

// Replaces the mark of a blank by a blank, and strips white space at both ends.
static void tidy(tarn_vocab_text *text) {
  size_t to = 0, kept = 0;
  for (size_t at = 0; at < text->length;) {
    int32_t code;
    const size_t length = tarn__utf8_decode(&code, text->data + at, text->length - at);
    const bool mark = length == BLANK_LENGTH && memcmp(text->data + at, BLANK, BLANK_LENGTH) == 0;
    const bool blank = mark || tarn__utf8_is_blank(code);
    if (mark) text->data[to] = ' ';
    if (!mark) memmove(text->data + to, text->data + at, length);
    if (!blank || kept > 0) to += mark ? 1 : length;
    if (!blank) kept = to;
    at += length;
  }
  text->length = kept;
  text->data[kept] = '\0';
}

static tarn_status decode(const void *self, tarn_vocab_text *text, const int32_t *ids, size_t count) {
  const marian *m = self;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count + 1, sizeof(const char *)));
  const char **pieces = memory;
  size_t kept = 0;
  for (size_t i = 0; i < count; i++)
    if (ids[i] != m->facts.unk && ids[i] != m->facts.bos && ids[i] != m->facts.eos && ids[i] != m->facts.pad)
      pieces[kept++] = m->tokens[ids[i]];
  tarn_status status = tarn__spm_decode_pieces(m->spm, text, pieces, kept);
  tarn__free(memory);
  if (status == TARN_STATUS_OK) tidy(text);
  return status;
}

static bool begins_word(const void *self, int32_t id) {
  return strncmp(((const marian *)self)->tokens[id], BLANK, BLANK_LENGTH) == 0;
}

const tarn__vocab_kind tarn__marian_kind = {detect, open_marian, close_marian, piece,
                                            encode, decode,      begins_word,  "Marian"};
