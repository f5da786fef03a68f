// Imports a masked language model or a classifier from a folder of the package transformers with BERT or RoBERTa.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "foreign/bert_format.h"
#include "foreign/hf_import.h"
#include "parts/table/part_table.h"
#include "run/file_kind.h"
#include "tarn/checkpoint.h"
#include "tarn/lab/foreign.h"
#include "text/vocab_kind.h"

enum { SEED = 1 };  // for an output that the file lacks

typedef struct source {
  tarn__hf_import import;
  tarn__bert_config config;
  bool head;      // the file has the output of a masked language model
  bool labelled;  // or that of a classifier
} source;

static tarn_status open_files(source *s) {
  char path[PATH_MAX];
  TARN_TRY(tarn__path_join(path, s->import.folder, TARN__HF_CONFIG));
  const tarn_status status = tarn__bert_config_read(&s->config, path);
  TARN_TRY(tarn__file_kind_explain(status, s->import.folder, TARN__FILE_KIND_HF_FOLDER));
  TARN_TRY(tarn__hf_import_tensors(&s->import, s->config.family->prefix));
  const int family = tarn__bert_family_index(&s->config);
  const tarn__hf_name *names = tarn__bert_label_names[family];
  s->head = tarn__hf_tensors_find(&s->import.tensors, tarn__bert_head_names[family][0].theirs[0]) != NULL;
  s->labelled = !s->head && s->config.labelled && tarn__hf_tensors_find(&s->import.tensors, names[0].theirs[0]) &&
                tarn__hf_tensors_find(&s->import.tensors, names[TARN__BERT_CLASSES].theirs[0]);
  // The output of BERT's masked models has the activation of its layers, tarn's always gelu, like RoBERTa's. Files
  // without that output, including classifiers, have only the activation of their layers.
  TARN_REQUIRE(!s->head || s->config.family->shifted || s->config.activation == &tarn__activation_gelu.part, DATA,
               "%s: \"hidden_act\" is not gelu, which tarn's output of masked models has", path);
  return TARN_STATUS_OK;
}

static tarn_status open_vocab(source *s, const char *given) {
  static const char *const files[] = {"vocab.txt", "vocab.json"};
  const char *from;
  TARN_TRY(tarn__hf_import_vocab(&s->import, &from, given, files, s->config.family->vocabulary, s->config.vocab));
  const tarn_vocab *vocab = s->import.vocab;
  TARN_REQUIRE(tarn_vocab_special(vocab, TARN_SPECIAL_CLS) >= 0 && tarn_vocab_special(vocab, TARN_SPECIAL_MASK) >= 0,
               DATA, "%s: the vocabulary has no token that begins a row, or no mask token, as %s's has", from,
               s->config.family->name);
  return TARN_STATUS_OK;
}

// The description's lines of a classifier, with class names as YAML in double quotes.
static tarn_status describe_head(const source *s, tarn_vocab_text *out) {
  char line[128];
  if (!s->labelled) return TARN_STATUS_OK;
  snprintf(line, sizeof line, "head: { pool: cls, hidden: %lld, dropout: %.9g", (long long)s->config.d_model,
           s->config.label_dropout);
  TARN_TRY(tarn__vocab_append(out, line, strlen(line)));
  if (s->config.labels) TARN_TRY(tarn__vocab_append(out, ", labels: \"", 11));
  for (const char *c = s->config.labels; c && *c; c++) {
    if (*c == '"' || *c == '\\') TARN_TRY(tarn__vocab_append(out, "\\", 1));
    TARN_TRY(tarn__vocab_append(out, c, 1));
  }
  return tarn__vocab_append(out, s->config.labels ? "\" }\n" : " }\n", s->config.labels ? 4 : 3);
}

static tarn_status describe(source *s) {
  static const tarn__hf_key keys[] = {
      {"model.d_model: ", "hidden_size"},         {"model.max_length: ", "max_position_embeddings"},
      {"model.dropout: ", "hidden_dropout_prob"}, {"model.norm_type.epsilon: ", "layer_norm_eps"},
      {"model.segments: ", "type_vocab_size"},    {"encoder.layers: ", "num_hidden_layers"},
      {"kinds.L.heads: ", "num_attention_heads"}, {"kinds.L.attention_dropout: ", "attention_probs_dropout_prob"},
      {"kinds.L.ffn: ", "intermediate_size"},     {"head.labels: ", "id2label"},
      {"head.dropout: ", "classifier_dropout"},   {NULL, NULL}};
  char text[1024];
  const tarn__bert_config *c = &s->config;
  snprintf(text, sizeof text,
           "model: { d_model: %lld, norm: post, norm_type: { epsilon: %.9g }, positions: %s, max_length: %lld,\n"
           "         segments: %lld, embedding_norm: yes, dropout: %.9g, embeddings: %s, embedding_scale: no,\n"
           "         activation: %s, task: %s }\n"
           "encoder: { layers: L*%lld }\n"
           "kinds:\n"
           "  L: { mixer: %s, heads: %lld, attention_dropout: %.9g, ffn: %lld }\n",
           (long long)c->d_model, c->epsilon, tarn__position_learned.part.word,
           (long long)(c->positions - tarn__bert_first_position(c)), (long long)c->segments, c->dropout,
           c->tied ? "encoder_output" : "none", c->activation->word,
           !s->labelled    ? "masked-language-model"
           : c->regression ? "regression"
                           : "classification",
           (long long)c->layers, tarn__mixer_attention.part.word, (long long)c->heads, c->attention_dropout,
           (long long)c->ffn);
  tarn_vocab_text all = {0};
  tarn_status status = tarn__vocab_append(&all, text, strlen(text));
  if (status == TARN_STATUS_OK) status = describe_head(s, &all);
  if (status == TARN_STATUS_OK) status = tarn__hf_import_describe(&s->import, all.data, all.length, keys);
  tarn_vocab_text_close(&all);
  return status;
}

// The tensor of a name, or of its name in old files, or the output's bias stored with its matrix.
static const tarn__stored *find_tensor(const source *s, const char *name) {
  static const char *const old[][2] = {{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}};
  const tarn__stored *tensor = NULL;
  char other[128];
  if (strcmp(name, s->config.family->bias) == 0)
    tensor = tarn__hf_tensors_find(&s->import.tensors, tarn__bert_decoders[tarn__bert_family_index(&s->config)][1]);
  if (!tensor) tensor = tarn__hf_tensors_find(&s->import.tensors, name);
  for (size_t i = 0; i < sizeof old / sizeof *old && !tensor; i++) {
    const char *at = strstr(name, old[i][0]);
    if (!at) continue;
    snprintf(other, sizeof other, "%.*s%s", (int)(at - name), name, old[i][1]);
    tensor = tarn__hf_tensors_find(&s->import.tensors, other);
  }
  return tensor;
}

// Checks the tensors of a parameter, whose first `skipped` rows are meaningless, or takes their values.
static tarn_status take(source *s, const char *const names[TARN__HF_PARTS], const char *ours, int64_t skipped,
                        bool set) {
  const tarn__stored *tensors[TARN__HF_PARTS] = {NULL};
  for (int i = 0; i < TARN__HF_PARTS && names[i]; i++) tensors[i] = find_tensor(s, names[i]);
  return tarn__hf_import_parts(&s->import, ours, tensors, names, skipped, set);
}

static tarn_status take_layer(source *s, int64_t layer, const tarn__hf_name *name, bool set) {
  char theirs[TARN__HF_PARTS][96], ours[96];
  const char *names[TARN__HF_PARTS] = {NULL};
  for (int i = 0; i < TARN__HF_PARTS && name->theirs[i]; i++) {
    snprintf(theirs[i], sizeof theirs[i], "encoder.layer.%lld.%s", (long long)layer, name->theirs[i]);
    names[i] = theirs[i];
  }
  snprintf(ours, sizeof ours, "encoder.layer%lld.%s", (long long)layer + 1, name->ours);
  return take(s, names, ours, 0, set);
}

static tarn_status take_all(void *user, bool set) {
  source *s = user;
  const int family = tarn__bert_family_index(&s->config);
  for (int i = 0; i < TARN__BERT_MODEL_NAMES; i++) {
    const bool untied = i == TARN__BERT_WORDS && !s->config.tied;
    TARN_TRY(take(s, tarn__bert_model_names[i].theirs,
                  untied ? "embeddings.input.weight" : tarn__bert_model_names[i].ours,
                  i == TARN__BERT_POSITIONS ? tarn__bert_first_position(&s->config) : 0, set));
  }
  for (int64_t l = 0; l < s->config.layers; l++)
    for (int i = 0; i < TARN__BERT_LAYER_NAMES; i++) TARN_TRY(take_layer(s, l, &tarn__bert_layer_names[i], set));
  for (int i = 0; i < TARN__BERT_LABEL_NAMES && s->labelled; i++)
    TARN_TRY(take(s, tarn__bert_label_names[family][i].theirs, tarn__bert_label_names[family][i].ours, 0, set));
  for (int i = 0; i < TARN__BERT_HEAD_NAMES && s->head; i++)
    TARN_TRY(take(s, tarn__bert_head_names[family][i].theirs, tarn__bert_head_names[family][i].ours, 0, set));
  const char *const matrix[TARN__HF_PARTS] = {tarn__bert_decoders[family][0]};
  return s->head && !s->config.tied ? take(s, matrix, "embeddings.output.weight", 0, set) : TARN_STATUS_OK;
}

// The name without an optional prefix.
static const char *bare(const source *s, const char *name) {
  const size_t length = strlen(s->config.family->prefix);
  return strncmp(name, s->config.family->prefix, length) == 0 ? name + length : name;
}

// Position numbers, which older files hold.
static bool is_buffer(const char *name) {
  return strcmp(name, "embeddings.position_ids") == 0 || strcmp(name, "embeddings.token_type_ids") == 0;
}

// Outputs of other tasks, which are dropped.
static bool is_other_output(const char *name) {
  static const char *const beginnings[] = {"pooler.dense.", "cls.seq_relationship.", "classifier.", "qa_outputs."};
  for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
    if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0) return true;
  return false;
}

// A file may repeat shared tensors. A bias that is not stored with the output's matrix is ignored if that matrix is
// separate.
static tarn_status check_copy(const source *s, const tarn__stored *tensor, bool *copy) {
  const tarn__stored *first = NULL;
  if (strcmp(tensor->name, tarn__bert_decoders[tarn__bert_family_index(&s->config)][0]) == 0)
    first = find_tensor(s, tarn__bert_model_names[TARN__BERT_WORDS].theirs[0]);
  if (strcmp(tensor->name, s->config.family->bias) == 0) first = find_tensor(s, tensor->name);
  *copy = first != NULL;
  return first && s->config.tied ? tarn__hf_import_same(&s->import, tensor, first) : TARN_STATUS_OK;
}

static tarn_status check_rest(const void *user) {
  const source *s = user;
  const char *path = s->import.tensors.path, *other = NULL;
  int64_t left_out = 0;
  for (size_t i = 0; i < s->import.tensors.count; i++) {
    const tarn__stored *tensor = &s->import.tensors.tensors[i];
    const char *name = bare(s, tensor->name);
    bool copy = false;
    if (s->import.tensors.used[i] || is_buffer(name)) continue;
    if (is_other_output(name)) {
      if (left_out++ == 0) other = tensor->name;
      continue;
    }
    TARN_TRY(check_copy(s, tensor, &copy));
    TARN_REQUIRE(copy, DATA, "%s: tensor \"%s\" is none of a %s model of %lld layers", path, tensor->name,
                 s->config.family->name, (long long)s->config.layers);
  }
  if (left_out)
    tarn__log(TARN_LOG_WARNING, "%s: \"%s\"%s left out, being of the output of another task", path, other,
              left_out > 1 ? " and others are" : " is");
  if (!s->head && !s->labelled)
    tarn__log(TARN_LOG_WARNING,
              "%s: it has no output of a masked language model; that of the checkpoint is drawn anew, and is to be "
              "trained",
              path);
  return TARN_STATUS_OK;
}

static tarn_status import(source *s, const char *output, const char *vocab) {
  TARN_TRY(open_files(s));
  TARN_TRY(open_vocab(s, vocab));
  TARN_TRY(describe(s));
  const tarn__hf_import_steps steps = {
      .take = take_all, .check_rest = check_rest, .user = s, .seed = !s->head && !s->labelled ? SEED : 0};
  return tarn__hf_import_write(&s->import, output, s->config.vocab, &steps);
}

tarn_status tarn_checkpoint_import_bert(const char *output, const char *folder, const char *vocab) {
  source s = {.import.folder = folder};
  tarn_status status = tarn__hf_tensors_judge(&s.import.tensors, import(&s, output, vocab));
  tarn__hf_import_close(&s.import);
  tarn__free(s.config.labels);
  return status;
}
