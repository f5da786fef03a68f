// The vocabulary of a GGUF file, from one of byte-pair encoding: of bytes, with its merges, or of SentencePiece, with
// scores.
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "foreign/gguf_format.h"
#include "foreign/gguf_write.h"
#include "text/bpe_scores.h"
#include "text/gpt2.h"
#include "text/spm_pieces.h"
#include "text/tokenizer_json.h"
#include "text/vocab_formats.h"

#define KEY "tokenizer.ggml."

// A vocabulary as its file has it.
typedef struct reading {
  tarn__bpe_rules rules;
  tarn__byte_tokens all;
  const tarn__gguf_pre *pre;  // how texts are cut; NULL: GGUF has no such rule, or there are pieces
  tarn__spm_list pieces;      // empty: there are none
} reading;

static tarn_status put_named(tarn__gguf_keys *keys, const tarn__bpe_rules *rules, int64_t bos, int64_t eos) {
  const struct {
    const char *key;
    int64_t token;
  } named[] = {{KEY "bos_token_id", bos + 1},
               {KEY "eos_token_id", eos + 1},
               {KEY "unknown_token_id", rules->unk},
               {KEY "padding_token_id", rules->pad}};
  for (size_t i = 0; i < sizeof named / sizeof *named; i++)
    if (named[i].token > 0) TARN_TRY(tarn__gguf_put_size(keys, named[i].key, named[i].token - 1));
  return TARN_STATUS_OK;
}

static tarn_status put_tokens(tarn__gguf_keys *keys, const tarn__byte_tokens *all) {
  static const int32_t types[] = {
      [TARN__TOKEN_PLAIN] = 1, [TARN__TOKEN_ADDED] = 4, [TARN__TOKEN_SPECIAL] = 3, [TARN__TOKEN_UNUSED] = 5};
  TARN_TRY(tarn__gguf_put_array(keys, KEY "tokens", TARN__GGUF_STRING, (uint64_t)all->count));
  for (int32_t i = 0; i < all->count; i++) {
    const tarn__byte_token *token = &all->tokens[i];
    const bool spelt = token->sort == TARN__TOKEN_PLAIN || token->sort == TARN__TOKEN_UNUSED;
    TARN_TRY(spelt ? tarn__gguf_append_text(keys, token->text, strlen(token->text))
                   : tarn__gguf_append_text(keys, all->bytes + token->at, token->length));
  }
  TARN_TRY(tarn__gguf_put_array(keys, KEY "token_type", TARN__GGUF_INT32, (uint64_t)all->count));
  for (int32_t i = 0; i < all->count; i++)
    TARN_TRY(tarn__vocab_append(&keys->bytes, (const char *)&types[all->tokens[i].sort], sizeof *types));
  return TARN_STATUS_OK;
}

static tarn_status put_merges(tarn__gguf_keys *keys, const tarn__byte_tokens *all) {
  tarn_vocab_text line = {0};
  tarn_status status = tarn__gguf_put_array(keys, KEY "merges", TARN__GGUF_STRING, (uint64_t)all->merges.index.count);
  for (size_t i = 0; i < all->merges.index.count && status == TARN_STATUS_OK; i++) {
    const tarn__merge *m = &all->merges.merges[i];
    const char *left = all->tokens[m->left].text, *right = all->tokens[m->right].text;
    line.length = 0;
    status = tarn__vocab_append(&line, left, strlen(left));
    if (status == TARN_STATUS_OK) status = tarn__vocab_append(&line, " ", 1);
    if (status == TARN_STATUS_OK) status = tarn__vocab_append(&line, right, strlen(right));
    if (status == TARN_STATUS_OK) status = tarn__gguf_append_text(keys, line.data, line.length);
  }
  tarn_vocab_text_close(&line);
  return status;
}

static tarn_status read_bpe(reading *r, tarn__vocab_reader *reader) {
  int64_t merge;
  TARN_TRY(tarn__bpe_read_rules(&r->rules, reader));
  for (const tarn__gguf_pre *at = tarn__gguf_pres; at->word && !r->pre; at++)
    if (!r->rules.pieces && at->split == r->rules.split && at->direct == (r->rules.direct != 0) &&
        r->rules.nfc == (at->split == TARN__SPLIT_QWEN2))
      r->pre = at;
  TARN_TRY(tarn__byte_tokens_read(&r->all, reader, true));
  return tarn__byte_tokens_read_merges(&r->all, reader, NULL, 0, &merge);
}

// GPT-2's own vocabulary has one special token, which no merge makes.
static tarn_status read_gpt2(reading *r, tarn__vocab_reader *reader) {
  int64_t merge, version;
  TARN_TRY(tarn__vocab_head(reader, &version, TARN__GPT2_MAGIC, 1));
  TARN_TRY(tarn__byte_tokens_read(&r->all, reader, false));
  const int32_t end = tarn__byte_tokens_find(&r->all, TARN__GPT2_END, strlen(TARN__GPT2_END));
  TARN_REQUIRE(end >= 0, INTERNAL, "a vocabulary of GPT-2's kind without an end");
  TARN_TRY(tarn__byte_tokens_read_merges(&r->all, reader, &end, 1, &merge));
  r->all.tokens[end].sort = TARN__TOKEN_SPECIAL;
  for (const tarn__gguf_pre *at = tarn__gguf_pres; at->word && !r->pre; at++)
    if (at->split == TARN__SPLIT_GPT2 && !at->direct) r->pre = at;
  return TARN_STATUS_OK;
}

static tarn_status put_listed(tarn__gguf_keys *keys, const reading *r) {
  TARN_TRY(tarn__gguf_put_text(keys, KEY "model", "gpt2"));
  TARN_TRY(tarn__gguf_put_text(keys, KEY "pre", r->pre->word));
  TARN_TRY(put_tokens(keys, &r->all));
  return put_merges(keys, &r->all);
}

// The type of a token of ours in the form of SentencePiece.
static tarn__spm_type piece_type(const reading *r, int32_t id, const tarn__spm_entry *entry) {
  static const tarn__spm_type types[] = {[TARN__TOKEN_PLAIN] = TARN__SPM_NORMAL,
                                         [TARN__TOKEN_ADDED] = TARN__SPM_OF_USER,
                                         [TARN__TOKEN_SPECIAL] = TARN__SPM_CONTROL,
                                         [TARN__TOKEN_UNUSED] = TARN__SPM_UNUSED};
  const tarn__token_sort sort = r->all.tokens[id].sort;
  unsigned byte;
  char text[7] = "", name[8];
  if (id + 1 == r->rules.unk) return TARN__SPM_UNKNOWN;
  if (sort != TARN__TOKEN_PLAIN || entry->length != 6) return types[sort];
  memcpy(text, entry->text, 6);
  const bool spelt = sscanf(text, "<0x%2X>", &byte) == 1;
  snprintf(name, sizeof name, "<0x%02X>", spelt ? byte & 0xFF : 0);
  return spelt && strcmp(name, text) == 0 ? TARN__SPM_BYTE : TARN__SPM_NORMAL;
}

// A token's score is the place of the first merge that makes it. That says the same as the merges if they come back
// from the scores; otherwise, or if the scores make more merges than a file may have, the list stays empty.
static tarn_status score_pieces(reading *r, const tarn_vocab *vocab) {
  const tarn__byte_tokens *all = &r->all;
  const size_t count = (size_t)all->count, merges = all->merges.index.count;
  void *memory;
  size_t size, made_size;
  char *made = NULL;
  const char *bytes = tarn_vocab_bytes(vocab, &size);
  TARN_TRY(tarn__grow(&r->pieces.entries, &r->pieces.capacity, count, sizeof *r->pieces.entries));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof(tarn__bpe_token) + sizeof(float)));
  tarn__bpe_token *tokens = memory;
  float *scores = (float *)(void *)(tokens + count);
  for (size_t i = 0; i < count; i++) scores[i] = -(float)(merges + 1);
  for (size_t m = merges; m-- > 0;) scores[all->merges.merges[m].product] = -(float)m;
  for (size_t i = 0; i < count; i++) {
    const tarn__byte_token *token = &all->tokens[i];
    const bool unused = token->sort == TARN__TOKEN_UNUSED;
    tarn__spm_entry *entry = &r->pieces.entries[i];
    *entry = (tarn__spm_entry){.text = unused ? token->text : all->bytes + token->at,
                               .length = unused ? strlen(token->text) : token->length,
                               .score = scores[i]};
    entry->type = piece_type(r, (int32_t)i, entry);
    tokens[i] = (tarn__bpe_token){unused ? NULL : entry->text, entry->length, token->sort, false};
  }
  const tarn_status status = tarn__bpe_make(&made, &made_size, &r->rules, tokens, (int64_t)count, NULL, scores);
  if (status == TARN_STATUS_OK && made_size == size && memcmp(made, bytes, size) == 0) r->pieces.count = count;
  r->pieces.prefixes = r->rules.prefix != TARN__PREFIX_NONE;
  tarn__free(made);
  tarn__free(memory);
  return status == TARN_STATUS_DATA ? TARN_STATUS_OK : status;
}

static tarn_status read_vocab(reading *r, const tarn_vocab *vocab) {
  size_t size;
  const char *bytes = tarn_vocab_bytes(vocab, &size);
  tarn__vocab_reader reader = {bytes, bytes + size};
  if (tarn__vocab_is_gpt2(vocab)) return read_gpt2(r, &reader);
  if (tarn__vocab_is_bpe(vocab)) {
    TARN_TRY(read_bpe(r, &reader));
    return r->rules.pieces ? score_pieces(r, vocab) : TARN_STATUS_OK;
  }
  if (!tarn__vocab_is_sentencepiece(vocab)) return TARN_STATUS_OK;
  TARN_TRY(tarn__spm_list_read(&r->pieces, bytes, size));
  r->rules = (tarn__bpe_rules){.unk = tarn_vocab_unk(vocab) + 1, .pad = tarn_vocab_pad(vocab) + 1};
  if (!r->pieces.bpe) r->pieces.count = 0;
  return TARN_STATUS_OK;
}

static tarn_status put_scored(tarn__gguf_keys *keys, const tarn__spm_list *list) {
  TARN_TRY(tarn__gguf_put_text(keys, KEY "model", "llama"));
  TARN_TRY(tarn__gguf_put_array(keys, KEY "tokens", TARN__GGUF_STRING, list->count));
  for (size_t i = 0; i < list->count; i++)
    TARN_TRY(tarn__gguf_append_text(keys, list->entries[i].text, list->entries[i].length));
  TARN_TRY(tarn__gguf_put_array(keys, KEY "scores", TARN__GGUF_FLOAT32, list->count));
  for (size_t i = 0; i < list->count; i++)
    TARN_TRY(tarn__vocab_append(&keys->bytes, (const char *)&list->entries[i].score, sizeof(float)));
  TARN_TRY(tarn__gguf_put_array(keys, KEY "token_type", TARN__GGUF_INT32, list->count));
  for (size_t i = 0; i < list->count; i++) {
    const int32_t type = (int32_t)list->entries[i].type;
    TARN_TRY(tarn__vocab_append(&keys->bytes, (const char *)&type, sizeof type));
  }
  TARN_TRY(tarn__gguf_put_flag(keys, KEY "add_space_prefix", list->prefixes));
  return tarn__gguf_put_flag(keys, KEY "remove_extra_whitespaces", list->squeezes);
}

tarn_status tarn__gguf_put_vocab(tarn__gguf_keys *keys, const tarn_vocab *vocab, int64_t bos, int64_t eos,
                                 const char *path) {
  reading r = {0};
  tarn_status status = read_vocab(&r, vocab);
  if (status == TARN_STATUS_OK && r.pieces.count && (r.pieces.normalises || r.pieces.squeezes))
    tarn__log(TARN_LOG_WARNING, "%s: llama.cpp does not normalise texts as this vocabulary does (%s%s)", path,
              r.pieces.normalises ? "by a table of characters" : "",
              r.pieces.squeezes ? (r.pieces.normalises ? ", and blanks" : "blanks") : "");
  if (status == TARN_STATUS_OK && r.pre)
    status = put_listed(keys, &r);
  else if (status == TARN_STATUS_OK && r.pieces.count)
    status = put_scored(keys, &r.pieces);
  else if (status == TARN_STATUS_OK)
    tarn__log(TARN_LOG_WARNING, "%s: no vocabulary was written, as GGUF has no form for one of this kind", path);
  if (status == TARN_STATUS_OK) status = put_named(keys, &r.rules, bos, eos);
  tarn__spm_list_close(&r.pieces);
  tarn__byte_tokens_close(&r.all);
  return status;
}
