// Imports a language model of LLaMA's kind: the model and its tensors, of whatever format, and the folder of the
// package transformers.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "foreign/llama_format.h"
#include "parts/table/part_table.h"
#include "run/file_kind.h"
#include "text/vocab_formats.h"

enum { NAME = 128 };

static tarn_status describe(tarn__llama_source *s, const tarn__hf_key *keys) {
  char text[1600], start[48] = "";
  const tarn__llama_config *c = &s->config;
  if (c->bos >= 0 && c->bos != tarn_vocab_eos(s->import.vocab))
    snprintf(start, sizeof start, ", decoder_start: %lld", (long long)c->bos);
  snprintf(text, sizeof text,
           "model: { d_model: %lld, norm: pre, norm_type: { type: %s, epsilon: %.9g }, max_length: %lld, dropout: 0,\n"
           "         positions: { type: %s, base: %.17g, share: %.17g, factor: %.17g, original_length: %lld,\n"
           "                      low_freq_factor: %.17g, high_freq_factor: %.17g },\n"
           "         embeddings: %s, embedding_scale: no%s }\n"
           "decoder: { layers: L*%lld }\n"
           "kinds:\n"
           "  L: { mixer: %s, heads: %lld, kv_heads: %lld, head_width: %lld, attention_dropout: %.9g,\n"
           "       ffn: { type: %s, width: %lld } }\n",
           (long long)c->d_model, tarn__norm_rms.part.word, c->epsilon, (long long)c->positions,
           tarn__position_rotary.part.word, c->base, c->share, c->factor, (long long)c->original_length,
           c->low_freq_factor, c->high_freq_factor, c->tied ? "decoder" : "none", start, (long long)c->layers,
           tarn__mixer_attention.part.word, (long long)c->heads, (long long)(c->kv_heads == c->heads ? 0 : c->kv_heads),
           (long long)(c->heads * c->head_width == c->d_model ? 0 : c->head_width), c->attention_dropout,
           c->channel->word, (long long)c->ffn);
  return tarn__hf_import_describe(&s->import, text, strlen(text), keys);
}

void tarn__llama_interleave(float *out, const float *values, int64_t heads, int64_t width, int64_t cols, bool back) {
  const int64_t half = width / 2;
  for (int64_t h = 0; h < heads; h++)
    for (int64_t i = 0; i < width; i++) {
      // Row i of a head here is row `other` where neighbours are turned together.
      const int64_t other = i < half ? 2 * i : 2 * (i - half) + 1;
      const int64_t from = h * width + (back ? other : i), to = h * width + (back ? i : other);
      memcpy(out + to * cols, values + from * cols, (size_t)cols * sizeof *out);
    }
}

// The rows of queries and keys of a format with neighbours, in our order.
static tarn_status arrange(const void *user, const char *name, float *values, int64_t rows, int64_t cols) {
  (void)name;
  const tarn__llama_config *c = user;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)(rows * cols), sizeof *values));
  memcpy(memory, values, (size_t)(rows * cols) * sizeof *values);
  tarn__llama_interleave(values, memory, rows / c->head_width, c->head_width, cols, true);
  tarn__free(memory);
  return TARN_STATUS_OK;
}

// A parameter of a layer: its tensors NAME.weight or NAME.bias, or zeros for a bias that the file does not have.
static tarn_status take_row(tarn__llama_source *s, const char *prefix, const char *set, const tarn__llama_row *row,
                            bool bias, bool taken) {
  char theirs[TARN__HF_PARTS][NAME], ours[NAME];
  const char *names[TARN__HF_PARTS] = {NULL};
  const tarn__stored *tensors[TARN__HF_PARTS] = {NULL};
  const char *word = bias ? "bias" : "weight";
  tarn__param *param;
  snprintf(ours, sizeof ours, "%s.%s.%s", set, row->ours, row->norm ? "gain" : word);
  TARN_TRY(tarn__hf_import_param(&param, &s->import, ours));
  if (bias && !tarn__llama_has_bias(&s->config, row->parts[0]))
    return taken ? tarn__hf_import_zeros(param) : TARN_STATUS_OK;
  for (int i = 0; i < row->count; i++) {
    snprintf(theirs[i], sizeof theirs[i], "%s%s.%s", prefix, s->names->parts[row->parts[i]], word);
    names[i] = theirs[i];
    tensors[i] = tarn__hf_tensors_find(&s->import.tensors, theirs[i]);
  }
  // The first parts are queries and keys; of keys and values the first.
  const int turned = row->parts[0] == TARN__LLAMA_Q ? (row->count > 1 ? 2 : 1) : row->parts[0] == TARN__LLAMA_K;
  s->import.arranged = s->names->interleaved ? turned : 0;
  return tarn__hf_import_parts(&s->import, ours, tensors, names, 0, taken);
}

static tarn_status take_one(tarn__llama_source *s, const char *theirs, const char *ours, bool set) {
  char name[NAME];
  snprintf(name, sizeof name, "%s.weight", theirs);
  const char *const names[TARN__HF_PARTS] = {name};
  const tarn__stored *const tensors[TARN__HF_PARTS] = {tarn__hf_tensors_find(&s->import.tensors, name)};
  s->import.arranged = 0;
  return tarn__hf_import_parts(&s->import, ours, tensors, names, 0, set);
}

static tarn_status take_all(void *user, bool set) {
  tarn__llama_source *s = user;
  const bool tied = s->config.tied;
  int rows;
  const tarn__llama_row *row = tarn__llama_rows(s->config.kv_heads != s->config.heads, &rows);
  TARN_TRY(take_one(s, s->names->embedding, tied ? "embeddings.weight" : "embeddings.input.weight", set));
  TARN_TRY(take_one(s, s->names->norm, "decoder.norm.gain", set));
  if (!tied) TARN_TRY(take_one(s, s->names->output, "embeddings.output.weight", set));
  for (int64_t l = 0; l < s->config.layers; l++) {
    char prefix[NAME / 2], ours[NAME / 2];
    snprintf(prefix, sizeof prefix, "%s%lld.", s->names->layer, (long long)l);
    snprintf(ours, sizeof ours, "decoder.layer%lld", (long long)l + 1);
    for (int i = 0; i < rows; i++) {
      TARN_TRY(take_row(s, prefix, ours, &row[i], false, set));
      if (!row[i].norm) TARN_TRY(take_row(s, prefix, ours, &row[i], true, set));
    }
  }
  return TARN_STATUS_OK;
}

// Old files hold the frequencies of rotary positions, which the settings give.
static bool is_frequencies(const char *name) {
  static const char end[] = "rotary_emb.inv_freq";
  const size_t length = strlen(name);
  return length >= sizeof end - 1 && strcmp(name + length - (sizeof end - 1), end) == 0;
}

// A tied model's file may repeat the shared matrix.
static tarn_status check_rest(const void *user) {
  const tarn__llama_source *s = user;
  char output[NAME], embedding[NAME];
  snprintf(output, sizeof output, "%s.weight", s->names->output);
  snprintf(embedding, sizeof embedding, "%s.weight", s->names->embedding);
  for (size_t i = 0; i < s->import.tensors.count; i++) {
    const tarn__stored *tensor = &s->import.tensors.tensors[i];
    if (s->import.tensors.used[i] || is_frequencies(tensor->name)) continue;
    TARN_REQUIRE(s->config.tied && strcmp(tensor->name, output) == 0, DATA,
                 "%s: tensor \"%s\" is none of a model of this kind with %lld layers",
                 tarn__hf_tensors_path(&s->import.tensors, tensor), tensor->name, (long long)s->config.layers);
    TARN_TRY(tarn__hf_import_same(&s->import, tensor, tarn__hf_tensors_find(&s->import.tensors, embedding)));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__llama_import(tarn__llama_source *source, const char *output, const tarn__hf_key *keys) {
  TARN_TRY(describe(source, keys));
  source->import.arrange = arrange;
  source->import.arranger = &source->config;
  return tarn__hf_import_write(&source->import, output, source->config.vocab,
                               &(tarn__hf_import_steps){.take = take_all, .check_rest = check_rest, .user = source});
}

static tarn_status open_files(tarn__llama_source *s) {
  char path[PATH_MAX];
  TARN_TRY(tarn__path_join(path, s->import.folder, TARN__HF_CONFIG));
  const tarn_status status = tarn__llama_config_read(&s->config, path);
  TARN_TRY(tarn__file_kind_explain(status, s->import.folder, TARN__FILE_KIND_HF_FOLDER));
  return tarn__hf_import_tensors(&s->import, TARN__LLAMA_PREFIX);
}

static tarn_status open_vocab(tarn__llama_source *s, const char *given) {
  char path[PATH_MAX];
  const tarn__llama_config *c = &s->config;
  TARN_TRY(tarn__path_join(path, s->import.folder, "tokenizer.json"));
  if (!given && tarn__file_exists(path))
    return tarn__vocab_open_tokenizer(&s->import.vocab, path, c->vocab, c->bos, c->eos);
  TARN_TRY(tarn__path_join(path, s->import.folder, "tokenizer.model"));
  TARN_REQUIRE(given || tarn__file_exists(path), DATA,
               "%s: it has no vocabulary (tokenizer.json or tokenizer.model); name one", s->import.folder);
  TARN_TRY(tarn__hf_import_vocab_file(&s->import, given ? given : path, s->config.vocab));
  const int32_t eos = tarn_vocab_eos(s->import.vocab);
  TARN_REQUIRE(s->config.eos < 0 || s->config.eos == eos, DATA,
               "%s: the end of sentence is token %d, but %s/" TARN__HF_CONFIG " says %lld (\"eos_token_id\")",
               given ? given : path, eos, s->import.folder, (long long)s->config.eos);
  return TARN_STATUS_OK;
}

static tarn_status import(tarn__llama_source *s, const char *output, const char *vocab) {
  static const tarn__hf_key keys[] = {{"model.d_model: ", "hidden_size"},
                                      {"model.max_length: ", "max_position_embeddings"},
                                      {"model.norm_type.epsilon: ", "rms_norm_eps"},
                                      {"model.positions.base: ", "rope_theta"},
                                      {"model.positions.share: ", "partial_rotary_factor"},
                                      {"model.positions.factor: ", "factor"},
                                      {"model.positions.original_length: ", "original_max_position_embeddings"},
                                      {"model.positions.low_freq_factor: ", "low_freq_factor"},
                                      {"model.positions.high_freq_factor: ", "high_freq_factor"},
                                      {"decoder.layers: ", "num_hidden_layers"},
                                      {"kinds.L.heads: ", "num_attention_heads"},
                                      {"kinds.L.kv_heads: ", "num_key_value_heads"},
                                      {"kinds.L.head_width: ", "head_dim"},
                                      {"kinds.L.attention_dropout: ", "attention_dropout"},
                                      {"kinds.L.ffn.width: ", "intermediate_size"},
                                      {NULL, NULL}};
  TARN_TRY(open_files(s));
  TARN_TRY(open_vocab(s, vocab));
  return tarn__llama_import(s, output, keys);
}

tarn_status tarn_checkpoint_import_llama(const char *output, const char *folder, const char *vocab) {
  tarn__llama_source s = {.import.folder = folder, .names = &tarn__llama_hf_names};
  tarn_status status = tarn__hf_tensors_judge(&s.import.tensors, import(&s, output, vocab));
  tarn__hf_import_close(&s.import);
  return status;
}
