// A checkpoint from a folder of the package transformers.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/file_kind.h"
#include "base/memory.h"
#include "parts/table/part_table.h"
#include "store/checkpoint.h"
#include "store/gpt2_format.h"
#include "store/hf_tensors.h"

typedef struct source {
  const char *folder;
  tarn__gpt2_config config;
  tarn__hf_tensors tensors;
  tarn_vocab *vocab;
  tarn_config *description;
  tarn__model *model;
} source;

static void close_source(source *s) {
  tarn__model_close(&s->model);
  tarn_config_close(&s->description);
  tarn_vocab_close(&s->vocab);
  tarn__hf_tensors_close(&s->tensors);
}

static tarn_status open_files(source *s) {
  char path[PATH_MAX];
  TARN_TRY(tarn__path_join(path, s->folder, TARN__HF_CONFIG));
  const tarn_status status = tarn__gpt2_config_read(&s->config, path);
  TARN_TRY(tarn__file_kind_explain(status, s->folder, TARN__FILE_KIND_HF_FOLDER));
  TARN_TRY(tarn__path_join(path, s->folder, TARN__HF_WEIGHTS));
  return tarn__hf_tensors_open(&s->tensors, path, TARN__GPT2_PREFIX);
}

static tarn_status open_vocab(source *s, const char *given) {
  static const char *const names[] = {"vocab.json", "encoder.json"};
  bool found = given != NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++) {
    char path[PATH_MAX];
    TARN_TRY(tarn__path_join(path, s->folder, names[i]));
    found = tarn__file_exists(path);
  }
  TARN_REQUIRE(found, DATA, "%s: it has no vocabulary (vocab.json and merges.txt); name one", s->folder);
  const char *from = given ? given : s->folder;
  TARN_TRY(tarn_vocab_open(&s->vocab, from));
  TARN_REQUIRE(tarn_vocab_size(s->vocab) == s->config.vocab, DATA,
               "%s: the vocabulary has %d tokens, but %s/" TARN__HF_CONFIG " says %lld (\"vocab_size\")", from,
               tarn_vocab_size(s->vocab), s->folder, (long long)s->config.vocab);
  TARN_REQUIRE(s->config.eos < 0 || s->config.eos == tarn_vocab_eos(s->vocab), DATA,
               "%s: the end of sentence is token %d, but %s/" TARN__HF_CONFIG " says %lld (\"eos_token_id\")", from,
               tarn_vocab_eos(s->vocab), s->folder, (long long)s->config.eos);
  return TARN_STATUS_OK;
}

static tarn_status describe(source *s) {
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
  char text[1024];
  char name[256];
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
  snprintf(name, sizeof name, "%.200s/" TARN__HF_CONFIG " as a description of tarn", s->folder);
  return tarn__hf_name_key(tarn_config_parse(&s->description, name, text, strlen(text), NULL, 0), keys, s->folder);
}

static tarn_status set_param(const source *s, tarn__param *param, const tarn__stored *tensor, bool transposed) {
  const int64_t rows = param->rows, cols = param->cols;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)((transposed ? 2 : 1) * rows * cols), sizeof(float)));
  float *values = memory, *stored = transposed ? values + rows * cols : values;
  tarn_status status = tarn__hf_tensors_read(&s->tensors, stored, tensor, 0, (size_t)(rows * cols));
  for (int64_t r = 0; r < rows && transposed && status == TARN_STATUS_OK; r++)
    for (int64_t c = 0; c < cols; c++) values[r * cols + c] = stored[c * rows + r];
  if (status == TARN_STATUS_OK) status = tarn__param_set(param, values);
  tarn__free(values);
  return status;
}

// Checks the tensor of a parameter, and with `set` takes its values.
static tarn_status take(source *s, const char *theirs, const char *ours, bool transposed, bool set) {
  tarn__param *param = NULL;
  for (size_t i = 0; i < s->model->param_count && !param; i++)
    if (strcmp(s->model->params[i]->name, ours) == 0) param = s->model->params[i];
  TARN_REQUIRE(param, INTERNAL, "the model has no parameter %s", ours);
  const tarn__stored *tensor = tarn__hf_tensors_find(&s->tensors, theirs);
  if (set) return set_param(s, param, tensor, transposed);
  return tarn__hf_tensors_check(&s->tensors, tensor, theirs, transposed ? param->cols : param->rows,
                                transposed ? param->rows : param->cols);
}

static tarn_status take_all(source *s, bool set) {
  for (int i = 0; i < TARN__GPT2_MODEL_NAMES; i++) {
    const tarn__gpt2_name *name = &tarn__gpt2_model_names[i];
    if (i == TARN__GPT2_OUTPUT && s->config.tied) continue;
    const char *ours = i == TARN__GPT2_EMBEDDING && !s->config.tied ? "embeddings.input.weight" : name->ours;
    TARN_TRY(take(s, name->theirs, ours, name->transposed, set));
  }
  for (int64_t l = 0; l < s->config.layers; l++)
    for (int i = 0; i < TARN__GPT2_LAYER_NAMES; i++) {
      const tarn__gpt2_name *name = &tarn__gpt2_layer_names[i];
      char theirs[96], ours[96];
      snprintf(theirs, sizeof theirs, "h.%lld.%s", (long long)l, name->theirs);
      snprintf(ours, sizeof ours, "decoder.layer%lld.%s", (long long)l + 1, name->ours);
      TARN_TRY(take(s, theirs, ours, name->transposed, set));
    }
  return TARN_STATUS_OK;
}

// The masks of a layer's attention, which older files hold.
static bool is_buffer(const source *s, const char *name) {
  static const char *const ends[] = {"attn.bias", "attn.masked_bias"};
  char buffer[64];
  if (strncmp(name, TARN__GPT2_PREFIX, strlen(TARN__GPT2_PREFIX)) == 0) name += strlen(TARN__GPT2_PREFIX);
  for (int64_t l = 0; l < s->config.layers; l++)
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
      snprintf(buffer, sizeof buffer, "h.%lld.%s", (long long)l, ends[i]);
      if (strcmp(name, buffer) == 0) return true;
    }
  return false;
}

// A tied model's file may hold the shared matrix a second time.
static tarn_status check_rest(const source *s) {
  const tarn__stored *embedding =
      tarn__hf_tensors_find(&s->tensors, tarn__gpt2_model_names[TARN__GPT2_EMBEDDING].theirs);
  for (size_t i = 0; i < s->tensors.file.count; i++) {
    const tarn__stored *tensor = &s->tensors.file.tensors[i];
    if (s->tensors.used[i] || is_buffer(s, tensor->name)) continue;
    bool output = strcmp(tensor->name, tarn__gpt2_model_names[TARN__GPT2_OUTPUT].theirs) == 0;
    TARN_REQUIRE(output, DATA, "%s: tensor \"%s\" is none of a GPT-2 model of %lld layers", s->tensors.file.path,
                 tensor->name, (long long)s->config.layers);
    bool same = tensor->bytes == embedding->bytes && memcmp(tensor->data, embedding->data, tensor->bytes) == 0;
    TARN_REQUIRE(same, DATA,
                 "%s: tensors \"%s\" and \"%s\" differ, though \"tie_word_embeddings\" of " TARN__HF_CONFIG " is true",
                 s->tensors.file.path, tensor->name, embedding->name);
  }
  return TARN_STATUS_OK;
}

static tarn_status import(source *s, const char *output, const char *vocab) {
  TARN_TRY(open_files(s));
  TARN_TRY(open_vocab(s, vocab));
  TARN_TRY(describe(s));
  TARN_TRY(tarn__model_open(&s->model, s->description, s->config.vocab, s->config.vocab, TARN__F32, false));
  TARN_TRY(take_all(s, false));
  TARN_TRY(check_rest(s));
  TARN_TRY(tarn__model_allocate(s->model));
  TARN_TRY(take_all(s, true));
  TARN_TRY(tarn__map_check(&s->tensors.file.map));
  tarn__checkpoint_extra extra = {.source = s->vocab, .target = s->vocab};
  return tarn__checkpoint_save(output, s->model, &extra);
}

tarn_status tarn_checkpoint_import_gpt2(const char *output, const char *folder, const char *vocab) {
  source s = {.folder = folder};
  tarn_status status = tarn__map_judge(&s.tensors.file.map, import(&s, output, vocab));
  close_source(&s);
  return status;
}
