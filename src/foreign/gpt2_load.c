// Imports GPT-2 from a folder of the package transformers.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "foreign/gpt2_format.h"
#include "foreign/hf_import.h"
#include "parts/table/part_table.h"
#include "run/file_kind.h"
#include "tarn/checkpoint.h"
#include "tarn/lab/foreign.h"

typedef tarn__gpt2_source source;

static tarn_status open_files(source *s) {
  char path[PATH_MAX];
  TARN_TRY(tarn__path_join(path, s->import.folder, TARN__HF_CONFIG));
  const tarn_status status = tarn__gpt2_config_read(&s->config, path);
  TARN_TRY(tarn__file_kind_explain(status, s->import.folder, TARN__FILE_KIND_HF_FOLDER));
  return tarn__hf_import_tensors(&s->import, TARN__GPT2_PREFIX);
}

static tarn_status open_vocab(source *s, const char *given) {
  static const char *const files[] = {"vocab.json", "encoder.json"};
  const char *from;
  TARN_TRY(tarn__hf_import_vocab(&s->import, &from, given, files, "vocab.json and merges.txt", s->config.vocab));
  const int32_t eos = tarn_vocab_eos(s->import.vocab);
  TARN_REQUIRE(s->config.eos < 0 || s->config.eos == eos, DATA,
               "%s: the end of sentence is token %d, but %s/" TARN__HF_CONFIG " says %lld (\"eos_token_id\")", from,
               eos, s->import.folder, (long long)s->config.eos);
  return TARN_STATUS_OK;
}

static tarn_status describe(source *s, const tarn__hf_key *keys) {
  char text[1024];
  const tarn__gpt2_config *c = &s->config;
  snprintf(text, sizeof text,
           "model: { d_model: %lld, norm: pre, norm_type: { epsilon: %.9g }, positions: %s, max_length: %lld, dropout: "
           "%.9g,\n"
           "         embedding_dropout: %.9g, embeddings: %s, embedding_scale: no, activation: %s }\n"
           "decoder: { layers: L*%lld }\n"
           "kinds:\n"
           "  L: { mixer: %s, heads: %lld, attention_dropout: %.9g, ffn: %lld }\n",
           (long long)c->d_model, c->epsilon, tarn__position_learned.part.word, (long long)c->positions, c->dropout,
           c->embedding_dropout, c->tied ? "decoder" : "none", c->activation->word, (long long)c->layers,
           tarn__mixer_attention.part.word, (long long)c->heads, c->attention_dropout, (long long)c->ffn);
  return tarn__hf_import_describe(&s->import, text, strlen(text), keys);
}

// Checks the tensor of a parameter, and with `set` takes its values.
static tarn_status take(source *s, const char *theirs, const char *ours, bool transposed, bool set) {
  const char *const names[TARN__HF_PARTS] = {theirs};
  const tarn__stored *const tensors[TARN__HF_PARTS] = {tarn__hf_tensors_find(&s->import.tensors, theirs)};
  s->import.transposed = transposed;
  return tarn__hf_import_parts(&s->import, ours, tensors, names, 0, set);
}

static tarn_status take_all(void *user, bool set) {
  source *s = user;
  for (int i = 0; i < TARN__GPT2_MODEL_NAMES; i++) {
    if (i == TARN__GPT2_OUTPUT && s->config.tied) continue;
    const char *ours =
        i == TARN__GPT2_EMBEDDING && !s->config.tied ? "embeddings.input.weight" : tarn__gpt2_model_ours[i];
    TARN_TRY(take(s, s->names->model[i], ours, false, set));
  }
  for (int64_t l = 0; l < s->config.layers; l++)
    for (int i = 0; i < TARN__GPT2_LAYER_NAMES; i++) {
      char theirs[96], ours[96];
      snprintf(theirs, sizeof theirs, "%s%lld.%s", s->names->at, (long long)l, s->names->layer[i]);
      snprintf(ours, sizeof ours, "decoder.layer%lld.%s", (long long)l + 1, tarn__gpt2_layer_ours[i]);
      TARN_TRY(take(s, theirs, ours, tarn__gpt2_is_transposed(s->names, i), set));
    }
  return TARN_STATUS_OK;
}

// The masks of a layer's attention, which older files of transformers hold.
static bool is_buffer(const source *s, const char *name) {
  static const char *const ends[] = {"attn.bias", "attn.masked_bias"};
  char buffer[64];
  if (strncmp(name, TARN__GPT2_PREFIX, strlen(TARN__GPT2_PREFIX)) == 0) name += strlen(TARN__GPT2_PREFIX);
  for (int64_t l = 0; l < s->config.layers && s->names == &tarn__gpt2_hf_names; l++)
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
      snprintf(buffer, sizeof buffer, "h.%lld.%s", (long long)l, ends[i]);
      if (strcmp(name, buffer) == 0) return true;
    }
  return false;
}

// A tied model's file may repeat the shared matrix.
static tarn_status check_rest(const void *user) {
  const source *s = user;
  const char *const *names = s->names->model;
  const tarn__stored *embedding = tarn__hf_tensors_find(&s->import.tensors, names[TARN__GPT2_EMBEDDING]);
  for (size_t i = 0; i < s->import.tensors.count; i++) {
    const tarn__stored *tensor = &s->import.tensors.tensors[i];
    if (s->import.tensors.used[i] || is_buffer(s, tensor->name)) continue;
    bool output = strcmp(tensor->name, names[TARN__GPT2_OUTPUT]) == 0;
    TARN_REQUIRE(output, DATA, "%s: tensor \"%s\" is none of a GPT-2 model of %lld layers", s->import.tensors.path,
                 tensor->name, (long long)s->config.layers);
    TARN_TRY(tarn__hf_import_same(&s->import, tensor, embedding));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__gpt2_model_import(tarn__gpt2_source *s, const char *output, const tarn__hf_key *keys) {
  TARN_TRY(describe(s, keys));
  return tarn__hf_import_write(&s->import, output, s->config.vocab,
                               &(tarn__hf_import_steps){.take = take_all, .check_rest = check_rest, .user = s});
}

static tarn_status import(source *s, const char *output, const char *vocab) {
  static const tarn__hf_key keys[] = {{"model.d_model: ", "n_embd"},
                                      {"model.max_length: ", "n_positions"},
                                      {"model.dropout: ", "resid_pdrop"},
                                      {"model.norm_type.epsilon: ", "layer_norm_epsilon"},
                                      {"model.embedding_dropout: ", "embd_pdrop"},
                                      {"decoder.layers: ", "n_layer"},
                                      {"kinds.L.heads: ", "n_head"},
                                      {"kinds.L.attention_dropout: ", "attn_pdrop"},
                                      {"kinds.L.ffn: ", "n_inner"},
                                      {NULL, NULL}};
  TARN_TRY(open_files(s));
  TARN_TRY(open_vocab(s, vocab));
  return tarn__gpt2_model_import(s, output, keys);
}

tarn_status tarn_checkpoint_import_gpt2(const char *output, const char *folder, const char *vocab) {
  source s = {.import.folder = folder, .names = &tarn__gpt2_hf_names};
  tarn_status status = tarn__hf_tensors_judge(&s.import.tensors, import(&s, output, vocab));
  tarn__hf_import_close(&s.import);
  return status;
}
