// Exports a language model of LLaMA's kind, or GPT-2's, as a GGUF file for llama.cpp.
#include <stdio.h>
#include <string.h>

#include "foreign/gguf_format.h"
#include "foreign/gguf_write.h"
#include "foreign/gpt2_format.h"
#include "parts/table/part_table.h"

// The export.
typedef struct target {
  const tarn__checkpoint *from;
  tarn__llama_config config;
  tarn__hf_writer writer;
  tarn__gguf_keys keys;
  const char *architecture;  // llama, qwen2 for a model with biases of queries, keys and values alone, or gpt2
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

// A size of the model, by its key.
typedef struct size_pair {
  const char *key;
  int64_t value;
} size_pair;

static tarn_status put_sizes(target *t, const size_pair *sizes, size_t count) {
  char name[96];
  TARN_TRY(tarn__gguf_put_text(&t->keys, "general.architecture", t->architecture));
  TARN_TRY(tarn__gguf_put_text(&t->keys, "general.name", "tarn"));
  for (size_t i = 0; i < count; i++)
    TARN_TRY(tarn__gguf_put_size(&t->keys, key(t, name, sizes[i].key), sizes[i].value));
  return TARN_STATUS_OK;
}

static tarn_status put_config(target *t) {
  const tarn__llama_config *c = &t->config;
  char name[96];
  const size_pair sizes[] = {{"context_length", c->positions},
                             {"embedding_length", c->d_model},
                             {"block_count", c->layers},
                             {"feed_forward_length", c->ffn},
                             {"attention.head_count", c->heads},
                             {"attention.head_count_kv", c->kv_heads},
                             {"attention.key_length", c->head_width},
                             {"attention.value_length", c->head_width},
                             {"rope.dimension_count", c->head_width},
                             {"vocab_size", c->vocab}};
  TARN_TRY(put_sizes(t, sizes, sizeof sizes / sizeof *sizes));
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

static tarn_status export_llama(target *t, const char *path) {
  const tarn__llama_config *c = &t->config;
  TARN_TRY(tarn__llama_describe(&t->config, t->from, &t->writer));
  TARN_TRY(check_config(t));
  choose_architecture(t);
  TARN_TRY(put_config(t));
  TARN_TRY(tarn__gguf_put_vocab(&t->keys, t->from->target, c->bos, c->eos, path));
  TARN_TRY(tarn__llama_add(&t->writer, c, t->names, ""));
  TARN_TRY(add_factors(t));
  return tarn__gguf_put_flag(&t->keys, "tokenizer.ggml.add_bos_token", true);
}

// Texts of GPT-2 have no beginning of their own: they stand behind the end of another one.
static tarn_status export_gpt2(target *t, const char *path) {
  tarn__gpt2_config c;
  char name[96];
  TARN_TRY(tarn__gpt2_describe(&c, t->from));
  TARN_REQUIRE(c.activation == &tarn__activation_gelu_tanh.part, USAGE,
               "%s: the activation of its FFNs is %s, and GGUF's gpt2 has %s", t->from->path, c.activation->word,
               tarn__activation_gelu_tanh.part.word);
  t->architecture = "gpt2";
  const size_pair sizes[] = {{"context_length", c.positions},   {"embedding_length", c.d_model},
                             {"block_count", c.layers},         {"feed_forward_length", c.ffn},
                             {"attention.head_count", c.heads}, {"vocab_size", c.vocab}};
  TARN_TRY(put_sizes(t, sizes, sizeof sizes / sizeof *sizes));
  TARN_TRY(tarn__gguf_put_real(&t->keys, key(t, name, "attention.layer_norm_epsilon"), c.epsilon));
  TARN_TRY(tarn__gguf_put_vocab(&t->keys, t->from->target, c.eos, c.eos, path));
  TARN_TRY(tarn__gguf_put_flag(&t->keys, "tokenizer.ggml.add_bos_token", false));
  return tarn__gpt2_add(&t->writer, &c, t->from, &tarn__gpt2_gguf_names, "");
}

tarn_status tarn_checkpoint_export_gguf(const char *output, const char *path, tarn_gguf_type type) {
  tarn__checkpoint *c;
  TARN_REQUIRE((int)type >= 0 && type <= TARN_GGUF_TYPE_Q8_0, USAGE, "there is no type %d", (int)type);
  TARN_TRY(tarn__checkpoint_open(&c, path, TARN__F32));
  target t = {.from = c, .writer = {.model = c->model}};
  const bool learned = c->config->model.positions.part == &tarn__position_learned.part;
  tarn_status status = learned ? export_gpt2(&t, output) : export_llama(&t, output);
  if (status == TARN_STATUS_OK) status = tarn__gguf_write(output, &t.keys, &t.writer, type);
  tarn__gguf_keys_close(&t.keys);
  tarn__hf_writer_close(&t.writer);
  tarn__checkpoint_close(&c);
  return status;
}
