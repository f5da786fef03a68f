#include "text/bpe.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "text/compose.h"
#include "text/gpt2_split.h"
#include "text/llama3_split.h"
#include "text/piece_trie.h"
#include "text/utf8.h"

#define BLANK "\xE2\x96\x81"
enum { BLANK_LENGTH = 3, DIGITS = 3 };

typedef struct bpe {
  tarn__byte_tokens all;
  tarn__bpe_rules rules;
  int32_t of_byte[256];
  tarn__piece_trie added;
  bool has_added;
} bpe;

static void close_bpe(void *self) {
  bpe *b = self;
  tarn__byte_tokens_close(&b->all);
  tarn__piece_trie_close(&b->added);
  tarn__free(b);
}

static bool detect(const void *bytes, size_t size) {
  return size >= strlen(TARN__BPE_MAGIC) && memcmp(bytes, TARN__BPE_MAGIC, strlen(TARN__BPE_MAGIC)) == 0;
}

// The lines of the rules.
static const struct {
  const char *word;
  size_t offset;
  int64_t most;
} RULES[] = {{"pieces ", offsetof(tarn__bpe_rules, pieces), 1},
             {"split ", offsetof(tarn__bpe_rules, split), TARN__SPLITS - 1},
             {"prefix ", offsetof(tarn__bpe_rules, prefix), TARN__PREFIXES - 1},
             {"nfc ", offsetof(tarn__bpe_rules, nfc), 1},
             {"direct ", offsetof(tarn__bpe_rules, direct), 1},
             {"strip ", offsetof(tarn__bpe_rules, strip), 1},
             {"unk ", offsetof(tarn__bpe_rules, unk), TARN__BYTE_TOKENS_MOST},
             {"bos ", offsetof(tarn__bpe_rules, bos), TARN__BYTE_TOKENS_MOST},
             {"eos ", offsetof(tarn__bpe_rules, eos), TARN__BYTE_TOKENS_MOST},
             {"pad ", offsetof(tarn__bpe_rules, pad), TARN__BYTE_TOKENS_MOST}};
enum { RULE_COUNT = sizeof RULES / sizeof *RULES };

tarn_status tarn__bpe_write_rules(tarn_vocab_text *out, const tarn__bpe_rules *rules) {
  char line[64];
  TARN_TRY(tarn__vocab_append(out, TARN__BPE_MAGIC "1\n", strlen(TARN__BPE_MAGIC "1\n")));
  for (int i = 0; i < RULE_COUNT; i++) {
    int64_t value;
    memcpy(&value, (const char *)rules + RULES[i].offset, sizeof value);
    snprintf(line, sizeof line, "%s%lld\n", RULES[i].word, (long long)value);
    TARN_TRY(tarn__vocab_append(out, line, strlen(line)));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__bpe_read_rules(tarn__bpe_rules *rules, tarn__vocab_reader *reader) {
  int64_t version;
  TARN_TRY(tarn__vocab_head(reader, &version, TARN__BPE_MAGIC, 1));
  for (int i = 0; i < RULE_COUNT; i++) {
    int64_t value;
    TARN_TRY(tarn__vocab_number(reader, &value, RULES[i].word, RULES[i].most));
    memcpy((char *)rules + RULES[i].offset, &value, sizeof value);
  }
  const bool words = rules->split == TARN__SPLIT_WORDS;
  TARN_REQUIRE(rules->pieces ? words || rules->split == TARN__SPLIT_NONE : !words && rules->prefix == TARN__PREFIX_NONE,
               DATA, "damaged vocabulary: rules of pieces and of bytes do not go together");
  return TARN_STATUS_OK;
}

// The token of each byte: its own, or "<0x0A>" in the form of SentencePiece.
static tarn_status find_bytes(bpe *b) {
  for (int i = 0; i < 256; i++) {
    char name[8] = {(char)i};
    const int length = b->rules.pieces ? snprintf(name, sizeof name, "<0x%02X>", (unsigned)i) : 1;
    b->of_byte[i] = tarn__byte_tokens_find(&b->all, name, (size_t)length);
    TARN_REQUIRE(b->of_byte[i] >= 0, DATA, "damaged vocabulary: byte 0x%02X has no token", (unsigned)i);
  }
  return TARN_STATUS_OK;
}

static tarn_status check_named(const bpe *b) {
  const int64_t ids[] = {b->rules.unk, b->rules.bos, b->rules.eos, b->rules.pad};
  for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
    TARN_REQUIRE(ids[i] <= b->all.count, DATA, "damaged vocabulary: token %lld is not of its %d", (long long)ids[i] - 1,
                 b->all.count);
  TARN_REQUIRE(b->rules.eos > 0, DATA, "the vocabulary has no token that ends a sentence");
  return TARN_STATUS_OK;
}

static tarn_status open_added(bpe *b) {
  void *memory;
  size_t count = 0;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)b->all.count + 1, sizeof(tarn__piece)));
  tarn__piece *pieces = memory;
  for (int32_t i = 0; i < b->all.count; i++) {
    const tarn__byte_token *t = &b->all.tokens[i];
    if (t->sort == TARN__TOKEN_ADDED) pieces[count++] = (tarn__piece){b->all.bytes + t->at, t->length, i};
  }
  b->has_added = count > 0;
  const tarn_status status = count > 0 ? tarn__piece_trie_open(&b->added, pieces, count) : TARN_STATUS_OK;
  tarn__free(pieces);
  return status;
}

static tarn_status parse(bpe *b, const char *bytes, size_t size) {
  tarn__vocab_reader reader = {bytes, bytes + size};
  int64_t merge;
  TARN_TRY(tarn__bpe_read_rules(&b->rules, &reader));
  TARN_TRY(tarn__byte_tokens_read(&b->all, &reader, true));
  TARN_TRY(check_named(b));
  TARN_TRY(find_bytes(b));
  TARN_TRY(tarn__byte_tokens_read_merges(&b->all, &reader, NULL, 0, &merge));
  TARN_TRY(open_added(b));
  return tarn__vocab_finish(&reader);
}

tarn_status tarn__bpe_check(const char *bytes, size_t size) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(bpe)));
  tarn_status status = parse(memory, bytes, size);
  close_bpe(memory);
  return status;
}

static tarn_status make_room(tarn_vocab_ids *ids, size_t more) {
  return tarn__grow(&ids->data, &ids->capacity, ids->count + more, sizeof *ids->data);
}

// What a piece is merged from; ids have room for its bytes.
static size_t first_tokens(const bpe *b, int32_t *out, const char *piece, size_t length) {
  size_t count = 0;
  for (size_t at = 0; at < length;) {
    int32_t code = -1;
    const size_t size = b->rules.pieces ? tarn__utf8_decode(&code, piece + at, length - at) : 1;
    const int32_t id = code >= 0 ? tarn__byte_tokens_find(&b->all, piece + at, size) : -1;
    if (id >= 0) out[count++] = id;
    for (size_t i = 0; i < size && id < 0; i++) out[count++] = b->of_byte[(unsigned char)piece[at + i]];
    at += size;
  }
  return count;
}

// Appends the tokens of one piece of text.
static tarn_status encode_piece(const bpe *b, tarn_vocab_ids *ids, const char *piece, size_t length) {
  const int32_t id = tarn__byte_tokens_find(&b->all, piece, length);
  TARN_TRY(make_room(ids, length));
  if (id >= 0 && b->all.tokens[id].whole) {
    ids->data[ids->count++] = id;
    return TARN_STATUS_OK;
  }
  int32_t *out = ids->data + ids->count;
  size_t count = first_tokens(b, out, piece, length);
  TARN_TRY(tarn__pair_table_apply(&b->all.merges, out, &count));
  ids->count += count;
  return TARN_STATUS_OK;
}

// The texts of tokens as people read them: bytes of plain ones stay in the characters for bytes.
static tarn_status show_texts(bpe *b) {
  for (int32_t i = 0; i < b->all.count; i++) {
    tarn__byte_token *t = &b->all.tokens[i];
    void *text;
    if (t->sort == TARN__TOKEN_UNUSED || (t->sort == TARN__TOKEN_PLAIN && !b->rules.pieces)) continue;
    TARN_TRY(tarn__arena_alloc(&b->all.arena, &text, (size_t)t->length + 1, 1));
    memcpy(text, b->all.bytes + t->at, t->length);
    t->text = text;
  }
  return TARN_STATUS_OK;
}

static tarn_status find_whole_tokens(bpe *b) {
  tarn_vocab_ids ids = {0};
  tarn_status status = TARN_STATUS_OK;
  for (int32_t i = 0; i < b->all.count && status == TARN_STATUS_OK; i++) {
    tarn__byte_token *t = &b->all.tokens[i];
    if (t->sort != TARN__TOKEN_PLAIN) continue;
    ids.count = 0;
    status = encode_piece(b, &ids, b->all.bytes + t->at, t->length);
    t->whole = status == TARN_STATUS_OK && (b->rules.direct || (ids.count == 1 && ids.data[0] == i));
  }
  tarn_vocab_ids_close(&ids);
  return status;
}

static tarn_status open_bpe(void **self, tarn__vocab_facts *facts, const void *bytes, size_t size) {
  TARN_TRY(tarn__alloc(self, TARN__MEMORY_OTHER, 1, sizeof(bpe)));
  bpe *b = *self;
  tarn_status status = parse(b, bytes, size);
  if (status == TARN_STATUS_OK) status = show_texts(b);
  if (status == TARN_STATUS_OK) status = find_whole_tokens(b);
  *facts = (tarn__vocab_facts){.size = b->all.count,
                               .unk = (int32_t)b->rules.unk - 1,
                               .bos = (int32_t)b->rules.bos - 1,
                               .eos = (int32_t)b->rules.eos - 1,
                               .pad = (int32_t)b->rules.pad - 1,
                               .special = TARN__VOCAB_NO_SPECIAL};
  if (b->rules.nfc) snprintf(facts->normalization, sizeof facts->normalization, "NFC");
  if (status != TARN_STATUS_OK) close_bpe(b);
  return status;
}

static const char *piece(const void *self, int32_t id) { return ((const bpe *)self)->all.tokens[id].text; }

static const char *next_word(const char *at, const char *end) {
  const char *next =
      (size_t)(end - at) > BLANK_LENGTH ? memmem(at + 1, (size_t)(end - at) - 1, BLANK, BLANK_LENGTH) : NULL;
  return next ? next : end;
}

// The end of a stretch that holds no number, or of one number.
static const char *next_digits(const char *at, const char *end) {
  size_t size;
  if (tarn__text_next_category(at, end, &size) == TARN__TEXT_NUMBER) return at + size;
  for (; at < end && tarn__text_next_category(at, end, &size) != TARN__TEXT_NUMBER; at += size) continue;
  return at;
}

static const char *next_piece(const bpe *b, const char *at, const char *end) {
  switch ((tarn__bpe_split)b->rules.split) {
    case TARN__SPLIT_GPT2:
      return tarn__gpt2_split(at, end);
    case TARN__SPLIT_LLAMA3:
      return tarn__llama3_split(at, end, DIGITS);
    case TARN__SPLIT_QWEN2:
      return tarn__llama3_split(at, end, 1);
    case TARN__SPLIT_WORDS:
      return next_word(at, end);
    default:
      return end;
  }
}

static tarn_status encode_pieces(const bpe *b, tarn_vocab_ids *ids, const char *at, const char *end) {
  if (b->rules.split != TARN__SPLIT_DIGITS) {
    for (const char *next; at < end; at = next) {
      next = next_piece(b, at, end);
      TARN_TRY(encode_piece(b, ids, at, (size_t)(next - at)));
    }
    return TARN_STATUS_OK;
  }
  for (const char *stretch; at < end;) {
    stretch = next_digits(at, end);
    for (const char *next; at < stretch; at = next) {
      next = tarn__gpt2_split(at, stretch);
      TARN_TRY(encode_piece(b, ids, at, (size_t)(next - at)));
    }
  }
  return TARN_STATUS_OK;
}

// Blanks of the form of SentencePiece, and what stands before the text.
static tarn_status mark_blanks(const bpe *b, tarn_vocab_text *out, const char *text, size_t length, bool first) {
  const bool begins = *text == ' ' || (length >= BLANK_LENGTH && memcmp(text, BLANK, BLANK_LENGTH) == 0);
  const bool missing = b->rules.prefix == TARN__PREFIX_MISSING || (b->rules.prefix == TARN__PREFIX_FIRST && first);
  out->length = 0;
  if (b->rules.prefix == TARN__PREFIX_ALWAYS || (missing && !begins))
    TARN_TRY(tarn__vocab_append(out, BLANK, BLANK_LENGTH));
  for (const char *at = text, *end = text + length; at < end;) {
    const char *blank = memchr(at, ' ', (size_t)(end - at));
    TARN_TRY(tarn__vocab_append(out, at, (size_t)((blank ? blank : end) - at)));
    if (blank) TARN_TRY(tarn__vocab_append(out, BLANK, BLANK_LENGTH));
    at = blank ? blank + 1 : end;
  }
  return TARN_STATUS_OK;
}

// A stretch of text without added tokens.
static tarn_status encode_stretch(const bpe *b, tarn_vocab_ids *ids, const char *text, size_t length, bool first) {
  tarn_vocab_text composed = {0}, marked = {0};
  tarn_status status = TARN_STATUS_OK;
  if (b->rules.nfc) status = tarn__compose(&composed, &text, &length);
  if (status == TARN_STATUS_OK && b->rules.pieces) {
    status = mark_blanks(b, &marked, text, length, first);
    text = marked.data;
    length = marked.length;
  }
  if (status == TARN_STATUS_OK) status = encode_pieces(b, ids, text, text + length);
  tarn_vocab_text_close(&composed);
  tarn_vocab_text_close(&marked);
  return status;
}

static tarn_status encode(const void *self, tarn_vocab_ids *ids, const char *text, size_t length) {
  const bpe *b = self;
  const char *end = text + length;
  ids->count = 0;
  TARN_TRY(make_room(ids, length));
  for (const char *at = text, *start = text; start < end;) {
    size_t size = 0;
    int32_t id = -1;
    if (!b->has_added) at = end;
    for (; at < end; at++) {
      id = tarn__piece_trie_longest(&b->added, &size, at, (size_t)(end - at));
      if (id >= 0) break;
    }
    if (at > start) TARN_TRY(encode_stretch(b, ids, start, (size_t)(at - start), start == text));
    if (id >= 0) {
      TARN_TRY(make_room(ids, 1));
      ids->data[ids->count++] = id;
    }
    start = at = at + size;
  }
  return TARN_STATUS_OK;
}

// The byte of a token of SentencePiece's form such as "<0x0A>", or -1.
static int byte_of(const bpe *b, int32_t id) {
  const tarn__byte_token *t = &b->all.tokens[id];
  unsigned byte;
  if (!b->rules.pieces || t->length != 6 || sscanf(t->text, "<0x%2X>", &byte) != 1 || b->of_byte[byte] != id) return -1;
  return (int)byte;
}

static tarn_status append_piece(tarn_vocab_text *text, const char *bytes, size_t length) {
  for (const char *at = bytes, *end = bytes + length; at < end;) {
    const char *blank = memmem(at, (size_t)(end - at), BLANK, BLANK_LENGTH);
    TARN_TRY(tarn__vocab_append(text, at, (size_t)((blank ? blank : end) - at)));
    if (blank) TARN_TRY(tarn__vocab_append(text, " ", 1));
    at = blank ? blank + BLANK_LENGTH : end;
  }
  return TARN_STATUS_OK;
}

static tarn_status decode(const void *self, tarn_vocab_text *text, const int32_t *ids, size_t count) {
  const bpe *b = self;
  text->length = 0;
  TARN_TRY(tarn__vocab_append(text, "", 0));
  for (size_t i = 0; i < count; i++) {
    const tarn__byte_token *t = &b->all.tokens[ids[i]];
    const int byte = byte_of(b, ids[i]);
    const char single = (char)byte;
    if (t->sort == TARN__TOKEN_SPECIAL || t->sort == TARN__TOKEN_UNUSED) continue;
    if (byte >= 0)
      TARN_TRY(tarn__vocab_append(text, &single, 1));
    else if (b->rules.pieces)
      TARN_TRY(append_piece(text, b->all.bytes + t->at, t->length));
    else
      TARN_TRY(tarn__vocab_append(text, b->all.bytes + t->at, t->length));
  }
  if (b->rules.strip && text->length > 0 && *text->data == ' ') memmove(text->data, text->data + 1, text->length--);
  return TARN_STATUS_OK;
}

static bool begins_word(const void *self, int32_t id) {
  const bpe *b = self;
  const tarn__byte_token *t = &b->all.tokens[id];
  const char *bytes = b->all.bytes + t->at;
  if (t->sort != TARN__TOKEN_PLAIN) return true;
  if (b->rules.pieces) return t->length >= BLANK_LENGTH && memcmp(bytes, BLANK, BLANK_LENGTH) == 0;
  return tarn__utf8_is_space(*bytes);
}

const tarn__vocab_kind tarn__bpe_kind = {detect, open_bpe, close_bpe, piece, encode, decode, begins_word, "BPE"};
