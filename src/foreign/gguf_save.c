// Exports a language model of LLaMA's kind as a GGUF file for llama.cpp.
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "foreign/gguf_format.h"
#include "foreign/gguf_write.h"
#include "parts/table/part_table.h"
#include "text/tokenizer_json.h"
#include "text/vocab_formats.h"

// The export.
typedef struct target {
  const tarn__checkpoint *from;
  tarn__llama_config config;
  tarn__hf_writer writer;
  tarn__gguf_keys keys;
  const char *architecture;  // llama, or qwen2 for a model with biases of queries, keys and values alone
  const tarn__llama_names *names;
} target;

static tarn_status check_config(const target *t) {
  const tarn__llama_config *c = &t->config;
  const char *path = t->from->path;
  TARN_REQUIRE(c->channel == &tarn__channel_swiglu.part, USAGE, "%s: its FFN is %s, and GGUF's llama has swiglu", path,
               c->channel->word);
  TARN_REQUIRE(c->share == 1.0, USAGE, "%s: model.positions.share is %.6g, which GGUF's llama does not have", path,
               c->share);
  TARN_REQUIRE(c->original_length == 0 || (c->low_freq_factor == 1.0 && c->high_freq_factor == 4.0), USAGE,
               "%s: model.positions.low_freq_factor and high_freq_factor are not 1 and 4, as in Llama 3.1", path);
  return TARN_STATUS_OK;
}

static void choose_architecture(target *t) {
  const tarn__llama_config *c = &t->config;
  const bool qwen2 = c->qkv_bias && !c->out_bias && !c->ffn_bias && c->heads * c->head_width == c->d_model;
  t->architecture = qwen2 ? "qwen2" : "llama";
  t->names = qwen2 ? &tarn__llama_gguf_half_names : &tarn__llama_gguf_names;
}

// A key of the architecture.
static const char *key(const target *t, char name[96], const char *rest) {
  snprintf(name, 96, "%s.%s", t->architecture, rest);
  return name;
}

static tarn_status put_config(target *t) {
  const tarn__llama_config *c = &t->config;
  char name[96];
  const struct {
    const char *key;
    int64_t value;
  } sizes[] = {{"context_length", c->positions},
               {"embedding_length", c->d_model},
               {"block_count", c->layers},
               {"feed_forward_length", c->ffn},
               {"attention.head_count", c->heads},
               {"attention.head_count_kv", c->kv_heads},
               {"attention.key_length", c->head_width},
               {"attention.value_length", c->head_width},
               {"rope.dimension_count", c->head_width},
               {"vocab_size", c->vocab}};
  TARN_TRY(tarn__gguf_put_text(&t->keys, "general.architecture", t->architecture));
  TARN_TRY(tarn__gguf_put_text(&t->keys, "general.name", "tarn"));
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    TARN_TRY(tarn__gguf_put_size(&t->keys, key(t, name, sizes[i].key), sizes[i].value));
  TARN_TRY(tarn__gguf_put_real(&t->keys, key(t, name, "attention.layer_norm_rms_epsilon"), c->epsilon));
  TARN_TRY(tarn__gguf_put_real(&t->keys, key(t, name, "rope.freq_base"), c->base));
  if (c->factor <= 1.0) return TARN_STATUS_OK;
  if (c->original_length > 0)
    return tarn__gguf_put_size(&t->keys, key(t, name, "rope.scaling.original_context_length"), c->original_length);
  TARN_TRY(tarn__gguf_put_text(&t->keys, key(t, name, "rope.scaling.type"), "linear"));
  return tarn__gguf_put_real(&t->keys, key(t, name, "rope.scaling.factor"), c->factor);
}

static tarn_status add_factors(target *t) {
  void *memory;
  const int64_t half = t->config.head_width / 2;
  if (t->config.original_length == 0 || t->config.factor <= 1.0) return TARN_STATUS_OK;
  TARN_TRY(tarn__arena_alloc(&t->writer.arena, &memory, (size_t)half, sizeof(float)));
  tarn__gguf_factors(memory, &t->config);
  return tarn__hf_add(&t->writer, TARN__GGUF_FACTORS, memory, 1, half, true);
}

static tarn_status put_named(target *t, const tarn__bpe_rules *rules) {
  const struct {
    const char *key;
    int64_t token;
  } named[] = {{"tokenizer.ggml.bos_token_id", t->config.bos + 1},
               {"tokenizer.ggml.eos_token_id", t->config.eos + 1},
               {"tokenizer.ggml.unknown_token_id", rules->unk},
               {"tokenizer.ggml.padding_token_id", rules->pad}};
  for (size_t i = 0; i < sizeof named / sizeof *named; i++)
    if (named[i].token > 0) TARN_TRY(tarn__gguf_put_size(&t->keys, named[i].key, named[i].token - 1));
  return TARN_STATUS_OK;
}

static tarn_status put_tokens(target *t, const tarn__byte_tokens *all) {
  static const int32_t types[] = {
      [TARN__TOKEN_PLAIN] = 1, [TARN__TOKEN_ADDED] = 4, [TARN__TOKEN_SPECIAL] = 3, [TARN__TOKEN_UNUSED] = 5};
  TARN_TRY(tarn__gguf_put_array(&t->keys, "tokenizer.ggml.tokens", TARN__GGUF_STRING, (uint64_t)all->count));
  for (int32_t i = 0; i < all->count; i++) {
    const tarn__byte_token *token = &all->tokens[i];
    const bool spelt = token->sort == TARN__TOKEN_PLAIN || token->sort == TARN__TOKEN_UNUSED;
    TARN_TRY(spelt ? tarn__gguf_append_text(&t->keys, token->text, strlen(token->text))
                   : tarn__gguf_append_text(&t->keys, all->bytes + token->at, token->length));
  }
  TARN_TRY(tarn__gguf_put_array(&t->keys, "tokenizer.ggml.token_type", TARN__GGUF_INT32, (uint64_t)all->count));
  for (int32_t i = 0; i < all->count; i++)
    TARN_TRY(tarn__vocab_append(&t->keys.bytes, (const char *)&types[all->tokens[i].sort], sizeof *types));
  return TARN_STATUS_OK;
}

static tarn_status put_merges(target *t, const tarn__byte_tokens *all) {
  tarn_vocab_text line = {0};
  tarn_status status =
      tarn__gguf_put_array(&t->keys, "tokenizer.ggml.merges", TARN__GGUF_STRING, (uint64_t)all->merges.index.count);
  for (size_t i = 0; i < all->merges.index.count && status == TARN_STATUS_OK; i++) {
    const tarn__merge *m = &all->merges.merges[i];
    const char *left = all->tokens[m->left].text, *right = all->tokens[m->right].text;
    line.length = 0;
    status = tarn__vocab_append(&line, left, strlen(left));
    if (status == TARN_STATUS_OK) status = tarn__vocab_append(&line, " ", 1);
    if (status == TARN_STATUS_OK) status = tarn__vocab_append(&line, right, strlen(right));
    if (status == TARN_STATUS_OK) status = tarn__gguf_append_text(&t->keys, line.data, line.length);
  }
  tarn_vocab_text_close(&line);
  return status;
}

// The rule of a vocabulary of bytes; NULL: GGUF has none. *rules and *all are read from its file.
static tarn_status read_vocab(const tarn_vocab *vocab, const tarn__gguf_pre **pre, tarn__bpe_rules *rules,
                              tarn__byte_tokens *all) {
  size_t size;
  int64_t merge;
  *pre = NULL;
  if (!tarn__vocab_is_bpe(vocab)) return TARN_STATUS_OK;
  const char *bytes = tarn_vocab_bytes(vocab, &size);
  tarn__vocab_reader reader = {bytes, bytes + size};
  TARN_TRY(tarn__bpe_read_rules(rules, &reader));
  for (const tarn__gguf_pre *at = tarn__gguf_pres; at->word && !*pre; at++)
    if (!rules->pieces && at->split == rules->split && at->direct == (rules->direct != 0) &&
        rules->nfc == (at->split == TARN__SPLIT_QWEN2))
      *pre = at;
  TARN_TRY(tarn__byte_tokens_read(all, &reader, true));
  return tarn__byte_tokens_read_merges(all, &reader, NULL, 0, &merge);
}

static tarn_status put_vocab(target *t, const char *path) {
  const tarn__gguf_pre *pre;
  tarn__bpe_rules rules = {0};
  tarn__byte_tokens all = {0};
  tarn_status status = read_vocab(t->from->target, &pre, &rules, &all);
  if (status == TARN_STATUS_OK && pre) {
    status = tarn__gguf_put_text(&t->keys, "tokenizer.ggml.model", "gpt2");
    if (status == TARN_STATUS_OK) status = tarn__gguf_put_text(&t->keys, "tokenizer.ggml.pre", pre->word);
    if (status == TARN_STATUS_OK) status = put_tokens(t, &all);
    if (status == TARN_STATUS_OK) status = put_merges(t, &all);
  } else if (status == TARN_STATUS_OK) {
    tarn__log(TARN_LOG_WARNING, "%s: no vocabulary was written, as GGUF has no form for one of this kind", path);
  }
  if (status == TARN_STATUS_OK) status = put_named(t, &rules);
  tarn__byte_tokens_close(&all);
  return status;
}

static tarn_status export(target *t, const char *path, tarn_gguf_type type) {
  TARN_TRY(tarn__llama_describe(&t->config, t->from, &t->writer));
  TARN_TRY(check_config(t));
  choose_architecture(t);
  TARN_TRY(put_config(t));
  TARN_TRY(put_vocab(t, path));
  TARN_TRY(tarn__llama_add(&t->writer, &t->config, t->names, ""));
  TARN_TRY(add_factors(t));
  TARN_TRY(tarn__gguf_put_flag(&t->keys, "tokenizer.ggml.add_bos_token", true));
  return tarn__gguf_write(path, &t->keys, &t->writer, type);
}

tarn_status tarn_checkpoint_export_gguf(const char *output, const char *path, tarn_gguf_type type) {
  tarn__checkpoint *c;
  TARN_REQUIRE((int)type >= 0 && type <= TARN_GGUF_TYPE_Q8_0, USAGE, "there is no type %d", (int)type);
  TARN_TRY(tarn__checkpoint_open(&c, path, TARN__F32));
  target t = {.from = c, .writer = {.model = c->model}};
  const tarn_status status = export(&t, output, type);
  tarn__gguf_keys_close(&t.keys);
  tarn__hf_writer_close(&t.writer);
  tarn__checkpoint_close(&c);
  return status;
}
