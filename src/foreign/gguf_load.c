// Imports a language model from a GGUF file of llama.cpp: architectures llama (also Mistral's), qwen2 and gpt2.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "foreign/gguf_format.h"
#include "foreign/gpt2_format.h"
#include "foreign/half_floats.h"
#include "ops/rotary.h"
#include "parts/table/part_table.h"
#include "run/file_kind.h"

#define PARTS                                                                                           \
  {                                                                                                     \
    [TARN__LLAMA_ATTENTION_NORM] = "attn_norm", [TARN__LLAMA_Q] = "attn_q", [TARN__LLAMA_K] = "attn_k", \
    [TARN__LLAMA_V] = "attn_v", [TARN__LLAMA_O] = "attn_output", [TARN__LLAMA_FFN_NORM] = "ffn_norm",   \
    [TARN__LLAMA_UP] = "ffn_up", [TARN__LLAMA_GATE] = "ffn_gate", [TARN__LLAMA_DOWN] = "ffn_down"       \
  }
const tarn__llama_names tarn__llama_gguf_names = {.embedding = "token_embd",
                                                  .norm = "output_norm",
                                                  .output = "output",
                                                  .layer = "blk.",
                                                  .parts = PARTS,
                                                  .interleaved = true};
const tarn__llama_names tarn__llama_gguf_half_names = {
    .embedding = "token_embd", .norm = "output_norm", .output = "output", .layer = "blk.", .parts = PARTS};

// A file whose keys begin with its architecture.
typedef struct settings {
  const tarn__gguf_file *file;
  const char *architecture;
} settings;

static const tarn__gguf_key *find(const settings *s, char name[96], const char *key) {
  snprintf(name, 96, "%s.%s", s->architecture, key);
  return tarn__gguf_find(s->file, name);
}

static tarn_status take_real(const settings *s, double *value, const char *key, double other) {
  char name[96];
  const tarn__gguf_key *found = find(s, name, key);
  *value = other;
  if (!found) return TARN_STATUS_OK;
  TARN_REQUIRE(found->type != TARN__GGUF_ARRAY && found->type != TARN__GGUF_STRING, DATA, "%s: \"%s\" is not a number",
               s->file->path, name);
  *value = tarn__gguf_number(found, 0);
  TARN_REQUIRE(isfinite(*value), DATA, "%s: \"%s\" is not a finite number", s->file->path, name);
  return TARN_STATUS_OK;
}

// A whole number from 1; other 0: the key must be there.
static tarn_status take_size(const settings *s, int64_t *value, const char *key, int64_t other) {
  char name[96];
  double real;
  TARN_REQUIRE(find(s, name, key) || other > 0, DATA, "%s: it has no \"%s\"", s->file->path, name);
  TARN_TRY(take_real(s, &real, key, (double)other));
  TARN_REQUIRE(real >= 1 && real <= 1 << 24 && real == floor(real), DATA,
               "%s: \"%s\" is not a whole number from 1 to %d", s->file->path, name, 1 << 24);
  *value = (int64_t)real;
  return TARN_STATUS_OK;
}

static bool is_word(const tarn__gguf_key *key, const char *word) {
  size_t length;
  const uint8_t *at = key->data;
  if (key->type != TARN__GGUF_STRING) return false;
  const char *text = tarn__gguf_next_text(&at, &length);
  return length == strlen(word) && memcmp(text, word, length) == 0;
}

void tarn__gguf_factors(float *factors, const tarn__llama_config *c) {
  const tarn__rotary_scaling scaling = {c->factor, c->low_freq_factor, c->high_freq_factor, (double)c->original_length};
  for (int64_t i = 0; i < c->head_width / 2; i++) {
    const double turns = pow(c->base, -2.0 * (double)i / (double)c->head_width) / 6.28318530717958647692;
    factors[i] = (float)(1.0 / tarn__rotary_slowing(&scaling, turns));
  }
}

// The file gives what Llama 3.1's scaling makes of every frequency; its settings are found again, with the factors 1
// and 4 of all its models.
static tarn_status take_factors(tarn__llama_source *s, const settings *from) {
  const tarn__stored *tensor = tarn__hf_tensors_find(&s->import.tensors, TARN__GGUF_FACTORS);
  tarn__llama_config *c = &s->config;
  float stored[4096], made[4096];
  const int64_t half = c->head_width / 2;
  double original;
  if (!tensor) return TARN_STATUS_OK;
  TARN_REQUIRE(half <= 4096, DATA, "%s: heads are too wide for tensor \"%s\"", from->file->path, TARN__GGUF_FACTORS);
  TARN_TRY(tarn__hf_tensors_check(&s->import.tensors, tensor, TARN__GGUF_FACTORS, 1, half));
  TARN_TRY(tarn__hf_tensors_read(&s->import.tensors, stored, tensor, 0, (size_t)half));
  TARN_TRY(take_real(from, &original, "rope.scaling.original_context_length", 8192));
  for (int64_t i = 0; i < half; i++) c->factor = fmax(c->factor, (double)stored[i]);
  c->original_length = original >= 1 && original < 1 << 24 ? (int64_t)original : 8192;
  if (c->factor > 1.0) tarn__gguf_factors(made, c);
  bool same = c->factor <= 1e6;
  for (int64_t i = 0; i < half && same; i++)
    same = c->factor > 1.0 ? fabsf(made[i] - stored[i]) <= 1e-3f * stored[i] : stored[i] == 1.0f;
  if (c->factor <= 1.0) c->original_length = 0;
  TARN_REQUIRE(same, DATA, "%s: tensor \"%s\" does not scale rotary positions as Llama 3.1 does, which tarn has",
               from->file->path, TARN__GGUF_FACTORS);
  return TARN_STATUS_OK;
}

static tarn_status take_scaling(const settings *s, tarn__llama_config *c) {
  char name[96];
  const tarn__gguf_key *type = find(s, name, "rope.scaling.type");
  const bool linear = type && is_word(type, "linear");
  TARN_REQUIRE(!type || linear || is_word(type, "none"), DATA, "%s: \"%s\" is neither none nor linear, which tarn has",
               s->file->path, name);
  if (linear) TARN_TRY(take_real(s, &c->factor, "rope.scaling.factor", 1.0));
  return TARN_STATUS_OK;
}

static tarn_status check_zero(const settings *s, const char *key) {
  double value;
  char name[96];
  TARN_TRY(take_real(s, &value, key, 0.0));
  (void)find(s, name, key);
  TARN_REQUIRE(value == 0.0, DATA, "%s: \"%s\" is %g, which tarn does not have", s->file->path, name, value);
  return TARN_STATUS_OK;
}

static bool has(const tarn__llama_source *s, const char *tensor) {
  return tarn__hf_tensors_find(&s->import.tensors, tensor) != NULL;
}

static tarn_status read_llama(tarn__llama_source *s, const settings *from) {
  tarn__llama_config *c = &s->config;
  double window;
  int64_t rotated, values;
  *c = (tarn__llama_config){.channel = &tarn__channel_swiglu.part,
                            .share = 1.0,
                            .factor = 1.0,
                            .low_freq_factor = 1.0,
                            .high_freq_factor = 4.0,
                            .bos = -1,
                            .eos = -1};
  TARN_TRY(take_size(from, &c->d_model, "embedding_length", 0));
  TARN_TRY(take_size(from, &c->layers, "block_count", 0));
  TARN_TRY(take_size(from, &c->ffn, "feed_forward_length", 0));
  TARN_TRY(take_size(from, &c->heads, "attention.head_count", 0));
  TARN_TRY(take_size(from, &c->kv_heads, "attention.head_count_kv", c->heads));
  TARN_TRY(take_size(from, &c->positions, "context_length", 0));
  TARN_REQUIRE(c->layers <= TARN_CONFIG_LAYERS, DATA, "%s: it has %lld layers, and a stack at most %d",
               from->file->path, (long long)c->layers, TARN_CONFIG_LAYERS);
  TARN_REQUIRE(c->heads % c->kv_heads == 0, DATA, "%s: %lld heads of keys and values do not divide %lld heads",
               from->file->path, (long long)c->kv_heads, (long long)c->heads);
  const int64_t width = c->d_model / c->heads > 0 ? c->d_model / c->heads : 1;
  TARN_TRY(take_size(from, &c->head_width, "attention.key_length", width));
  TARN_TRY(take_size(from, &values, "attention.value_length", c->head_width));
  TARN_TRY(take_size(from, &rotated, "rope.dimension_count", c->head_width));
  TARN_REQUIRE(values == c->head_width && rotated == c->head_width, DATA,
               "%s: heads have keys of %lld numbers, values of %lld, and turn %lld; in tarn they are the same",
               from->file->path, (long long)c->head_width, (long long)values, (long long)rotated);
  TARN_TRY(take_real(from, &c->epsilon, "attention.layer_norm_rms_epsilon", 1e-5));
  TARN_TRY(take_real(from, &c->base, "rope.freq_base", 10000.0));
  TARN_TRY(check_zero(from, "expert_count"));
  TARN_TRY(take_scaling(from, c));
  TARN_TRY(take_factors(s, from));
  TARN_TRY(take_real(from, &window, "attention.sliding_window", 0.0));
  if (window >= 2 && window < (double)c->positions) c->positions = (int64_t)window;
  c->tied = !has(s, "output.weight");
  c->qkv_bias = has(s, "blk.0.attn_q.bias");
  c->out_bias = has(s, "blk.0.attn_output.bias");
  c->ffn_bias = has(s, "blk.0.ffn_up.bias");
  return TARN_STATUS_OK;
}

// The vocabulary, and what a text is read behind.
static tarn_status take_vocab(tarn__hf_import *import, const tarn__gguf_file *file, const char *given, int64_t *bos) {
  const tarn__gguf_key *add = tarn__gguf_find(file, "tokenizer.ggml.add_bos_token");
  const tarn__gguf_key *id = tarn__gguf_find(file, "tokenizer.ggml.bos_token_id");
  TARN_TRY(given ? tarn_vocab_open(&import->vocab, given) : tarn__gguf_vocab(&import->vocab, file));
  const tarn__stored *words = tarn__hf_tensors_find(&import->tensors, "token_embd.weight");
  const long long rows = words && words->dims == 2 ? (long long)words->shape[0] : 0;
  TARN_REQUIRE(rows == tarn_vocab_size(import->vocab), DATA,
               "%s: the vocabulary has %d tokens, and tensor \"token_embd.weight\" of %s %lld rows",
               given ? given : file->path, tarn_vocab_size(import->vocab), file->path, rows);
  const bool added = id && (!add || tarn__gguf_number(add, 0) != 0.0);
  const double number = added ? tarn__gguf_number(id, 0) : -1;
  *bos = number >= 0 && number < (double)rows ? (int64_t)number : -1;
  return TARN_STATUS_OK;
}

static tarn_status import_llama(const char *output, tarn__hf_import *import, const settings *from, const char *vocab) {
  const bool interleaved = strcmp(from->architecture, "llama") == 0;
  tarn__llama_source s = {.import = *import,
                          .names = interleaved ? &tarn__llama_gguf_names : &tarn__llama_gguf_half_names};
  tarn_status status = read_llama(&s, from);
  if (status == TARN_STATUS_OK) status = take_vocab(&s.import, from->file, vocab, &s.config.bos);
  if (status == TARN_STATUS_OK) {
    s.config.vocab = tarn_vocab_size(s.import.vocab);
    status = tarn__llama_import(&s, output, (const tarn__hf_key[]){{NULL, NULL}});
  }
  *import = s.import;
  return status;
}

// llama.cpp computes GPT-2's FFN with the approximation of GELU by tanh, as OpenAI's models have it.
static tarn_status read_gpt2(tarn__gpt2_source *s, const settings *from) {
  tarn__gpt2_config *c = &s->config;
  *c = (tarn__gpt2_config){.activation = &tarn__activation_gelu_tanh.part, .eos = -1};
  TARN_TRY(take_size(from, &c->d_model, "embedding_length", 0));
  TARN_TRY(take_size(from, &c->layers, "block_count", 0));
  TARN_TRY(take_size(from, &c->heads, "attention.head_count", 0));
  TARN_TRY(take_size(from, &c->ffn, "feed_forward_length", 4 * c->d_model));
  TARN_TRY(take_size(from, &c->positions, "context_length", 0));
  TARN_TRY(take_real(from, &c->epsilon, "attention.layer_norm_epsilon", 1e-5));
  TARN_REQUIRE(c->layers <= TARN_CONFIG_LAYERS, DATA, "%s: it has %lld layers, and a stack at most %d",
               from->file->path, (long long)c->layers, TARN_CONFIG_LAYERS);
  TARN_REQUIRE(c->d_model % c->heads == 0, DATA, "%s: %lld heads do not divide \"gpt2.embedding_length\" (%lld)",
               from->file->path, (long long)c->heads, (long long)c->d_model);
  const tarn__stored *words = tarn__hf_tensors_find(&s->import.tensors, "token_embd.weight");
  const tarn__stored *output = tarn__hf_tensors_find(&s->import.tensors, "output.weight");
  c->tied = !output || (words && words->bytes == output->bytes && strcmp(words->dtype, output->dtype) == 0 &&
                        memcmp(words->data, output->data, words->bytes) == 0);
  return TARN_STATUS_OK;
}

// A text is read behind the end of another one, which is what GPT-2 was trained on.
static tarn_status take_gpt2_vocab(tarn__gpt2_source *s, const settings *from, const char *given) {
  const tarn__gguf_key *add = tarn__gguf_find(from->file, "tokenizer.ggml.add_bos_token");
  int64_t bos;
  TARN_TRY(take_vocab(&s->import, from->file, given, &bos));
  const bool added = add && tarn__gguf_number(add, 0) != 0.0;
  TARN_REQUIRE(
      !added || bos < 0 || bos == tarn_vocab_eos(s->import.vocab), DATA,
      "%s: a text begins with token %lld (\"tokenizer.ggml.add_bos_token\"), and not with the end of sentence, "
      "%d, as GPT-2's",
      from->file->path, (long long)bos, tarn_vocab_eos(s->import.vocab));
  s->config.vocab = tarn_vocab_size(s->import.vocab);
  return TARN_STATUS_OK;
}

static tarn_status import_gpt2(const char *output, tarn__hf_import *import, const settings *from, const char *vocab) {
  tarn__gpt2_source s = {.import = *import, .names = &tarn__gpt2_gguf_names};
  tarn_status status = read_gpt2(&s, from);
  if (status == TARN_STATUS_OK) status = take_gpt2_vocab(&s, from, vocab);
  if (status == TARN_STATUS_OK) status = tarn__gpt2_model_import(&s, output, (const tarn__hf_key[]){{NULL, NULL}});
  *import = s.import;
  return status;
}

// The architectures that are read.
static const struct {
  const char *word;
  tarn_status (*import)(const char *output, tarn__hf_import *import, const settings *from, const char *vocab);
} ARCHITECTURES[] = {{"llama", import_llama}, {"qwen2", import_llama}, {"gpt2", import_gpt2}};

static tarn_status import_file(const char *output, tarn__gguf_file *file, tarn__hf_import *import, const char *path,
                               const char *vocab) {
  TARN_TRY(tarn__gguf_open(file, &import->tensors, path));
  const tarn__gguf_key *architecture = tarn__gguf_find(file, "general.architecture");
  TARN_REQUIRE(architecture && architecture->type == TARN__GGUF_STRING, DATA, "%s: it has no \"general.architecture\"",
               path);
  for (size_t i = 0; i < sizeof ARCHITECTURES / sizeof *ARCHITECTURES; i++)
    if (is_word(architecture, ARCHITECTURES[i].word))
      return ARCHITECTURES[i].import(output, import, &(settings){file, ARCHITECTURES[i].word}, vocab);
  size_t length;
  const uint8_t *at = architecture->data;
  const char *word = tarn__gguf_next_text(&at, &length);
  return tarn__fail(TARN_STATUS_DATA,
                    "%s: \"general.architecture\" is \"%.*s\"; tarn imports llama, qwen2 and gpt2 from GGUF", path,
                    length > 60 ? 60 : (int)length, word);
}

tarn_status tarn_checkpoint_import_gguf(const char *output, const char *path, const char *vocab) {
  tarn__gguf_file file = {0};
  tarn__hf_import import = {.folder = path};
  tarn_status status = tarn__hf_tensors_judge(&import.tensors, import_file(output, &file, &import, path, vocab));
  tarn__hf_import_close(&import);
  tarn__gguf_close(&file);
  return status;
}
