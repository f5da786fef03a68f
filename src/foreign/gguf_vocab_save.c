// The vocabulary of a GGUF file, from one of byte-pair encoding of bytes.
#include <string.h>

#include "base/log.h"
#include "foreign/gguf_format.h"
#include "foreign/gguf_write.h"
#include "text/gpt2.h"
#include "text/tokenizer_json.h"
#include "text/vocab_formats.h"

#define KEY "tokenizer.ggml."

// A vocabulary as its file has it.
typedef struct reading {
  tarn__bpe_rules rules;
  tarn__byte_tokens all;
  const tarn__gguf_pre *pre;  // how texts are cut; NULL: GGUF has no such rule
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
  tarn_status status =
      tarn__gguf_put_array(keys, KEY "merges", TARN__GGUF_STRING, (uint64_t)all->merges.index.count);
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

static tarn_status read_vocab(reading *r, const tarn_vocab *vocab) {
  size_t size;
  const char *bytes = tarn_vocab_bytes(vocab, &size);
  tarn__vocab_reader reader = {bytes, bytes + size};
  if (tarn__vocab_is_bpe(vocab)) return read_bpe(r, &reader);
  return tarn__vocab_is_gpt2(vocab) ? read_gpt2(r, &reader) : TARN_STATUS_OK;
}

static tarn_status put_listed(tarn__gguf_keys *keys, const reading *r) {
  TARN_TRY(tarn__gguf_put_text(keys, KEY "model", "gpt2"));
  TARN_TRY(tarn__gguf_put_text(keys, KEY "pre", r->pre->word));
  TARN_TRY(put_tokens(keys, &r->all));
  return put_merges(keys, &r->all);
}

tarn_status tarn__gguf_put_vocab(tarn__gguf_keys *keys, const tarn_vocab *vocab, int64_t bos, int64_t eos,
                                 const char *path) {
  reading r = {0};
  tarn_status status = read_vocab(&r, vocab);
  if (status == TARN_STATUS_OK && r.pre)
    status = put_listed(keys, &r);
  else if (status == TARN_STATUS_OK)
    tarn__log(TARN_LOG_WARNING, "%s: no vocabulary was written, as GGUF has no form for one of this kind", path);
  if (status == TARN_STATUS_OK) status = put_named(keys, &r.rules, bos, eos);
  tarn__byte_tokens_close(&r.all);
  return status;
}
