#include "text/wordpiece.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "text/bert_split.h"
#include "text/piece_trie.h"
#include "text/utf8.h"
#include "text/vocab_kind.h"

static const char WITHIN[] = "##";
enum { WITHIN_LENGTH = sizeof WITHIN - 1 };

typedef struct token {
  const char *text;  // zero-terminated
  size_t length;
} token;

typedef struct wordpiece {
  token *tokens;
  int32_t count;
  tarn__bert_rules rules;
  tarn__piece_trie first, within;  // tokens that begin words, and the others without their "##"
  tarn__vocab_facts facts;
  tarn__arena arena;
} wordpiece;

static void close_wordpiece(void *self) {
  wordpiece *w = self;
  tarn__piece_trie_close(&w->first);
  tarn__piece_trie_close(&w->within);
  tarn__arena_close(&w->arena);
  tarn__free(w);
}

static bool detect(const void *bytes, size_t size) {
  return size >= sizeof TARN__WORDPIECE_MAGIC - 1 &&
         memcmp(bytes, TARN__WORDPIECE_MAGIC, sizeof TARN__WORDPIECE_MAGIC - 1) == 0;
}

static bool is_within(const token *t) {
  return t->length >= WITHIN_LENGTH && memcmp(t->text, WITHIN, WITHIN_LENGTH) == 0;
}

static tarn_status read_tokens(wordpiece *w, tarn__vocab_reader *reader) {
  int64_t size;
  void *memory;
  TARN_TRY(tarn__vocab_number(reader, &size, "size ", TARN__WORDPIECE_MOST));
  TARN_REQUIRE(reader->end - reader->at >= size, DATA, "damaged vocabulary: %lld tokens do not fit into it",
               (long long)size);
  TARN_TRY(tarn__arena_alloc(&w->arena, &memory, (size_t)size + 1, sizeof *w->tokens));
  w->tokens = memory;
  for (; w->count < size; w->count++) {
    const char *line;
    size_t length;
    TARN_REQUIRE(tarn__vocab_line(reader, &line, &length), DATA, "damaged vocabulary: it ends after %d of %lld tokens",
                 w->count, (long long)size);
    TARN_REQUIRE(!memchr(line, '\0', length) && tarn__utf8_valid(line, length) == length, DATA,
                 "damaged vocabulary: token %d is not UTF-8", w->count);
    TARN_TRY(tarn__arena_alloc(&w->arena, &memory, length + 1, 1));
    memcpy(memory, line, length);
    w->tokens[w->count] = (token){memory, length};
  }
  return tarn__vocab_finish(reader);
}

// Builds the trie of the tokens within words, or of the others.
static tarn_status make_trie(const wordpiece *w, tarn__piece_trie *trie, bool within) {
  void *memory;
  size_t count = 0;
  const size_t skipped = within ? WITHIN_LENGTH : 0;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)w->count + 1, sizeof(tarn__piece)));
  tarn__piece *pieces = memory;
  for (int32_t i = 0; i < w->count; i++) {
    const token *t = &w->tokens[i];
    if (t->length > skipped && (!within || is_within(t)))
      pieces[count++] = (tarn__piece){t->text + skipped, t->length - skipped, i};
  }
  tarn_status status = tarn__piece_trie_open(trie, pieces, count);
  tarn__free(memory);
  return status;
}

static int32_t find(const wordpiece *w, const char *text) {
  size_t length;
  const int32_t id = tarn__piece_trie_longest(&w->first, &length, text, strlen(text));
  return length == strlen(text) ? id : -1;
}

static tarn_status read_flag(tarn__vocab_reader *reader, bool *flag, const char *key) {
  int64_t number = 0;
  TARN_TRY(tarn__vocab_number(reader, &number, key, 1));
  *flag = number;
  return TARN_STATUS_OK;
}

static tarn_status parse(wordpiece *w, const char *bytes, size_t size) {
  static const char *const SPECIALS[TARN_SPECIAL_COUNT] = {"[CLS]", "[SEP]", "[MASK]"};
  tarn__vocab_reader reader = {bytes, bytes + size};
  int64_t version;
  TARN_TRY(tarn__vocab_head(&reader, &version, TARN__WORDPIECE_MAGIC, 1));
  TARN_TRY(read_flag(&reader, &w->rules.lowercase, "lowercase "));
  TARN_TRY(read_flag(&reader, &w->rules.strip_accents, "strip_accents "));
  TARN_TRY(read_flag(&reader, &w->rules.chinese, "chinese "));
  TARN_TRY(read_tokens(w, &reader));
  TARN_TRY(make_trie(w, &w->first, false));
  TARN_TRY(make_trie(w, &w->within, true));
  w->facts = (tarn__vocab_facts){.size = w->count, .unk = find(w, "[UNK]"), .pad = find(w, "[PAD]")};
  for (int i = 0; i < TARN_SPECIAL_COUNT; i++) w->facts.special[i] = find(w, SPECIALS[i]);
  w->facts.bos = w->facts.special[TARN_SPECIAL_CLS];
  w->facts.eos = w->facts.special[TARN_SPECIAL_SEP];
  // Format characters, including the joiners, are removed.
  w->facts.loses_joiners = true;
  snprintf(w->facts.normalization, sizeof w->facts.normalization, "BERT%s%s", w->rules.lowercase ? ", lower case" : "",
           w->rules.strip_accents ? ", no accents" : "");
  TARN_REQUIRE(w->facts.unk >= 0 && w->facts.bos >= 0 && w->facts.eos >= 0, DATA,
               "damaged vocabulary: it needs the tokens [UNK], [CLS] and [SEP]");
  return TARN_STATUS_OK;
}

static tarn_status open_wordpiece(void **self, tarn__vocab_facts *facts, const void *bytes, size_t size) {
  TARN_TRY(tarn__alloc(self, TARN__MEMORY_OTHER, 1, sizeof(wordpiece)));
  wordpiece *w = *self;
  tarn_status status = parse(w, bytes, size);
  *facts = w->facts;
  if (status != TARN_STATUS_OK) close_wordpiece(w);
  return status;
}

static const char *piece(const void *self, int32_t id) { return ((const wordpiece *)self)->tokens[id].text; }

typedef struct encoding {
  const wordpiece *vocab;
  tarn_vocab_ids *ids;
} encoding;

static tarn_status encode_word(void *user, const char *word, size_t length) {
  const encoding *e = user;
  const wordpiece *w = e->vocab;
  tarn_vocab_ids *ids = e->ids;
  const size_t before = ids->count;
  const tarn__piece_trie *trie = &w->first;
  TARN_TRY(tarn__grow(&ids->data, &ids->capacity, before + length + 1, sizeof *ids->data));
  size_t at = length == TARN__BERT_TOO_LONG ? length : 0;
  bool known = at == 0;
  while (at < length) {
    size_t taken;
    const int32_t id = tarn__piece_trie_longest(trie, &taken, word + at, length - at);
    known = id >= 0;
    if (!known) break;
    ids->data[ids->count++] = id;
    at += taken;
    trie = &w->within;
  }
  if (known) return TARN_STATUS_OK;
  ids->count = before;
  ids->data[ids->count++] = w->facts.unk;
  return TARN_STATUS_OK;
}

static tarn_status encode(const void *self, tarn_vocab_ids *ids, const char *text, size_t length) {
  const wordpiece *w = self;
  encoding e = {w, ids};
  ids->count = 0;
  TARN_TRY(tarn__grow(&ids->data, &ids->capacity, length / 4 + 1, sizeof *ids->data));
  return tarn__bert_split(&w->rules, text, length, encode_word, &e);
}

// Whether the decoder of the package tokenizers writes a token without a blank before it.
static bool is_close(const token *t) {
  static const char *const BEGINNINGS[] = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"};
  for (size_t i = 0; i < sizeof BEGINNINGS / sizeof *BEGINNINGS; i++)
    if (strncmp(t->text, BEGINNINGS[i], strlen(BEGINNINGS[i])) == 0) return true;
  return false;
}

static bool is_silent(const tarn__vocab_facts *f, int32_t id) {
  return id == f->bos || id == f->eos || id == f->pad || id == f->special[TARN_SPECIAL_MASK];
}

static tarn_status decode(const void *self, tarn_vocab_text *text, const int32_t *ids, size_t count) {
  const wordpiece *w = self;
  bool first = true;
  text->length = 0;
  TARN_TRY(tarn__vocab_append(text, "", 0));
  for (size_t i = 0; i < count; i++) {
    const token *t = &w->tokens[ids[i]];
    if (is_silent(&w->facts, ids[i])) continue;
    const size_t skipped = !first && is_within(t) ? WITHIN_LENGTH : 0;
    if (!first && !skipped && !is_close(t)) TARN_TRY(tarn__vocab_append(text, " ", 1));
    TARN_TRY(tarn__vocab_append(text, t->text + skipped, t->length - skipped));
    first = false;
  }
  return TARN_STATUS_OK;
}

static bool begins_word(const void *self, int32_t id) { return !is_within(&((const wordpiece *)self)->tokens[id]); }

tarn_status tarn__wordpiece_head(tarn_vocab_text *out, const tarn__bert_rules *rules, size_t count) {
  char head[160];
  snprintf(head, sizeof head, TARN__WORDPIECE_MAGIC "1\nlowercase %d\nstrip_accents %d\nchinese %d\nsize %zu\n",
           rules->lowercase, rules->strip_accents, rules->chinese, count);
  return tarn__vocab_append(out, head, strlen(head));
}

const tarn__vocab_kind tarn__wordpiece_kind = {detect, open_wordpiece, close_wordpiece, piece,
                                               encode, decode,         begins_word,     "WordPiece"};
