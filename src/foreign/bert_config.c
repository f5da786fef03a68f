#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "foreign/bert_format.h"
#include "parts/table/part_table.h"
#include "task/labelled.h"
#include "text/utf8.h"

const tarn__bert_family tarn__bert_families[TARN__BERT_FAMILIES] = {
    {.type = "bert",
     .name = "BERT",
     .prefix = "bert.",
     .masked = "BertForMaskedLM",
     .labelled = "BertForSequenceClassification",
     .vocabulary = "vocab.txt",
     .epsilon = 1e-12,
     .segments = 2,
     .bias = "cls.predictions.bias"},
    {.type = "roberta",
     .name = "RoBERTa",
     .prefix = "roberta.",
     .masked = "RobertaForMaskedLM",
     .labelled = "RobertaForSequenceClassification",
     .vocabulary = "vocab.json and merges.txt",
     .epsilon = 1e-12,
     .segments = 2,
     .padding = 1,
     .shifted = true,
     .bias = "lm_head.bias"},
};

const tarn__hf_name tarn__bert_layer_names[TARN__BERT_LAYER_NAMES] = {
    {{"attention.self.query.weight", "attention.self.key.weight", "attention.self.value.weight"},
     "self_attn.qkv.weight"},
    {{"attention.self.query.bias", "attention.self.key.bias", "attention.self.value.bias"}, "self_attn.qkv.bias"},
    {{"attention.output.dense.weight"}, "self_attn.out.weight"},
    {{"attention.output.dense.bias"}, "self_attn.out.bias"},
    {{"attention.output.LayerNorm.weight"}, "self_attn.norm.gain"},
    {{"attention.output.LayerNorm.bias"}, "self_attn.norm.bias"},
    {{"intermediate.dense.weight"}, "ffn.in.weight"},
    {{"intermediate.dense.bias"}, "ffn.in.bias"},
    {{"output.dense.weight"}, "ffn.out.weight"},
    {{"output.dense.bias"}, "ffn.out.bias"},
    {{"output.LayerNorm.weight"}, "ffn.norm.gain"},
    {{"output.LayerNorm.bias"}, "ffn.norm.bias"},
};

const tarn__hf_name tarn__bert_model_names[TARN__BERT_MODEL_NAMES] = {
    {{"embeddings.word_embeddings.weight"}, "embeddings.weight"},
    {{"embeddings.position_embeddings.weight"}, "embeddings.positions.weight"},
    {{"embeddings.token_type_embeddings.weight"}, "embeddings.segments.weight"},
    {{"embeddings.LayerNorm.weight"}, "embeddings.norm.gain"},
    {{"embeddings.LayerNorm.bias"}, "embeddings.norm.bias"},
};

const tarn__hf_name tarn__bert_head_names[TARN__BERT_FAMILIES][TARN__BERT_HEAD_NAMES] = {
    {{{"cls.predictions.transform.dense.weight"}, "output.dense.weight"},
     {{"cls.predictions.transform.dense.bias"}, "output.dense.bias"},
     {{"cls.predictions.transform.LayerNorm.weight"}, "output.norm.gain"},
     {{"cls.predictions.transform.LayerNorm.bias"}, "output.norm.bias"},
     {{"cls.predictions.bias"}, "output.bias"}},
    {{{"lm_head.dense.weight"}, "output.dense.weight"},
     {{"lm_head.dense.bias"}, "output.dense.bias"},
     {{"lm_head.layer_norm.weight"}, "output.norm.gain"},
     {{"lm_head.layer_norm.bias"}, "output.norm.bias"},
     {{"lm_head.bias"}, "output.bias"}},
};

const tarn__hf_name tarn__bert_label_names[TARN__BERT_FAMILIES][TARN__BERT_LABEL_NAMES] = {
    {{{"pooler.dense.weight"}, "output.dense.weight"},
     {{"pooler.dense.bias"}, "output.dense.bias"},
     {{"classifier.weight"}, "output.weight"},
     {{"classifier.bias"}, "output.bias"}},
    {{{"classifier.dense.weight"}, "output.dense.weight"},
     {{"classifier.dense.bias"}, "output.dense.bias"},
     {{"classifier.out_proj.weight"}, "output.weight"},
     {{"classifier.out_proj.bias"}, "output.bias"}},
};

const char *const tarn__bert_decoders[TARN__BERT_FAMILIES][2] = {
    {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"},
    {"lm_head.decoder.weight", "lm_head.decoder.bias"},
};

// Keys of their config.json that are irrelevant here, or read below.
static const char *const KNOWN[] = {"hidden_size",
                                    "num_hidden_layers",
                                    "num_attention_heads",
                                    "intermediate_size",
                                    "hidden_act",
                                    "hidden_dropout_prob",
                                    "attention_probs_dropout_prob",
                                    "max_position_embeddings",
                                    "type_vocab_size",
                                    "vocab_size",
                                    "layer_norm_eps",
                                    "pad_token_id",
                                    "bos_token_id",
                                    "eos_token_id",
                                    "position_embedding_type",
                                    "tie_word_embeddings",
                                    "is_decoder",
                                    "add_cross_attention",
                                    "initializer_range",
                                    "classifier_dropout",
                                    "chunk_size_feed_forward",
                                    "use_cache",
                                    "model_type",
                                    "architectures",
                                    "gradient_checkpointing",
                                    "id2label",
                                    "label2id",
                                    "num_labels",
                                    "problem_type",
                                    "return_dict",
                                    "output_attentions",
                                    "output_hidden_states",
                                    "output_past",
                                    "finetuning_task",
                                    "is_encoder_decoder",
                                    "torch_dtype",
                                    "dtype",
                                    "transformers_version",
                                    "pooler_fc_size",
                                    "pooler_num_attention_heads",
                                    "pooler_num_fc_layers",
                                    "pooler_size_per_head",
                                    "pooler_type",
                                    "directionality",
                                    "_name_or_path",
                                    "_attn_implementation_autoset"};
enum { KNOWN_KEYS = sizeof KNOWN / sizeof *KNOWN, MOST_CLASSES = 10000, LONGEST_NAME = 255 };

static tarn_status read_family(tarn__hf_config *file, const tarn__bert_family **family) {
  const char *type;
  TARN_TRY(tarn__hf_word(file, &type, "model_type", NULL));
  for (int i = 0; i < TARN__BERT_FAMILIES; i++) {
    if (strcmp(type, tarn__bert_families[i].type) != 0) continue;
    *family = &tarn__bert_families[i];
    file->model = (*family)->name;
    return TARN_STATUS_OK;
  }
  return tarn__fail(TARN_STATUS_DATA, "%s: \"model_type\" is %.40s; tarn reads bert and roberta, and import-gpt2 gpt2",
                    file->path, type);
}

// Refuses settings whose arithmetic tarn does not support.
static tarn_status check_rest(const tarn__hf_config *file, const tarn__bert_config *c) {
  const char *word;
  TARN_TRY(tarn__hf_demand(file, "is_decoder", false));
  TARN_TRY(tarn__hf_demand(file, "add_cross_attention", false));
  TARN_TRY(tarn__hf_word(file, &word, "position_embedding_type", "absolute"));
  TARN_REQUIRE(strcmp(word, "absolute") == 0, DATA,
               "%s: \"position_embedding_type\" is \"%.40s\", which tarn does not have; it has absolute", file->path,
               word);
  TARN_TRY(tarn__hf_check_layers(file, "num_hidden_layers", c->layers));
  TARN_TRY(tarn__hf_check_divides(file, "num_attention_heads", c->heads, "hidden_size", c->d_model));
  TARN_REQUIRE(c->padding >= 0 && c->padding < c->vocab, DATA, "%s: \"pad_token_id\" is %lld, which is no token",
               file->path, (long long)c->padding);
  TARN_REQUIRE(c->positions > tarn__bert_first_position(c), DATA,
               "%s: \"max_position_embeddings\" is %lld, of which the first %lld are not used", file->path,
               (long long)c->positions, (long long)tarn__bert_first_position(c));
  return TARN_STATUS_OK;
}

static bool is_plain(const char *name) {
  int32_t code;
  return *name && tarn__utf8_line(&code, name, strlen(name)) == strlen(name);
}

// The names of classes, 0 .. count - 1.
static tarn_status read_names(const tarn__hf_config *file, const char **names, int64_t count) {
  json_t *object = tarn__hf_value(file, "id2label");
  for (int64_t i = 0; i < count; i++) {
    char key[24];
    snprintf(key, sizeof key, "%lld", (long long)i);
    names[i] = json_string_value(json_object_get(object, key));
    TARN_REQUIRE(names[i] && is_plain(names[i]), DATA,
                 "%s: \"id2label\" has no name for class %s that is a line of text", file->path, key);
    TARN_REQUIRE(strlen(names[i]) <= LONGEST_NAME, DATA,
                 "%s: \"id2label\" has a name of %zu bytes for class %s; the longest has %d", file->path,
                 strlen(names[i]), key, LONGEST_NAME);
    TARN_REQUIRE(names[i][0] != '|', DATA,
                 "%s: \"id2label\" has \"%s\" for class %s, but a bar at the beginning divides the names of classes",
                 file->path, names[i], key);
  }
  return TARN_STATUS_OK;
}

// The names in the form of head.labels. Equal ones could not be distinguished.
static tarn_status join_names(const tarn__hf_config *file, tarn__bert_config *c, const char *const *names,
                              int32_t *places, int32_t count) {
  TARN_TRY(tarn__label_names_join(&c->labels, names, count));
  TARN_TRY(tarn__label_places(places, c->labels, names, count));
  for (int32_t i = 0; i < count; i++)
    TARN_REQUIRE(places[i] == i, DATA, "%s: \"id2label\" has \"%s\" for class %d and for class %d", file->path,
                 names[i], places[i], i);
  return TARN_STATUS_OK;
}

static tarn_status read_classes(const tarn__hf_config *file, tarn__bert_config *c, size_t count) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof(const char *) + sizeof(int32_t)));
  const char **names = memory;
  tarn_status status = read_names(file, names, (int64_t)count);
  if (status == TARN_STATUS_OK) status = join_names(file, c, names, (int32_t *)(void *)(names + count), (int32_t)count);
  tarn__free(memory);
  return status;
}

// With one label the package does regression.
static tarn_status read_labels(const tarn__hf_config *file, tarn__bert_config *c) {
  static const char *const usual[] = {"LABEL_0", "LABEL_1"};
  const char *word, *architecture = json_string_value(json_array_get(tarn__hf_value(file, "architectures"), 0));
  json_t *object = tarn__hf_value(file, "id2label");
  c->labelled = !architecture || strcmp(architecture, c->family->labelled) == 0;
  if (!c->labelled) return TARN_STATUS_OK;
  TARN_TRY(tarn__hf_word(file, &word, "problem_type", "single_label_classification"));
  c->regression = strcmp(word, "regression") == 0 || (json_is_object(object) && json_object_size(object) == 1);
  TARN_REQUIRE(c->regression || strcmp(word, "single_label_classification") == 0, DATA,
               "%s: \"problem_type\" is \"%.40s\"; tarn has single_label_classification and regression", file->path,
               word);
  if (c->regression) return TARN_STATUS_OK;
  if (!object) return tarn__label_names_join(&c->labels, usual, 2);
  TARN_REQUIRE(json_is_object(object) && json_object_size(object) >= 2 && json_object_size(object) <= MOST_CLASSES,
               DATA, "%s: \"id2label\" does not name two to %d classes", file->path, MOST_CLASSES);
  return read_classes(file, c, json_object_size(object));
}

static tarn_status read_all(tarn__hf_config *file, tarn__bert_config *c) {
  TARN_TRY(read_family(file, &c->family));
  TARN_TRY(tarn__hf_size(file, &c->d_model, "hidden_size", 0));
  TARN_TRY(tarn__hf_size(file, &c->layers, "num_hidden_layers", 0));
  TARN_TRY(tarn__hf_size(file, &c->heads, "num_attention_heads", 0));
  TARN_TRY(tarn__hf_size(file, &c->ffn, "intermediate_size", 0));
  TARN_TRY(tarn__hf_size(file, &c->positions, "max_position_embeddings", 0));
  TARN_TRY(tarn__hf_size(file, &c->vocab, "vocab_size", 0));
  TARN_TRY(tarn__hf_size(file, &c->segments, "type_vocab_size", c->family->segments));
  TARN_TRY(tarn__hf_activation(file, &c->activation, "hidden_act", "gelu"));
  TARN_TRY(tarn__hf_real(file, &c->epsilon, "layer_norm_eps", c->family->epsilon));
  TARN_TRY(tarn__hf_real(file, &c->dropout, "hidden_dropout_prob", 0.1));
  TARN_TRY(tarn__hf_real(file, &c->attention_dropout, "attention_probs_dropout_prob", 0.1));
  TARN_TRY(tarn__hf_real(file, &c->label_dropout, "classifier_dropout", c->dropout));
  TARN_TRY(tarn__hf_flag(file, &c->tied, "tie_word_embeddings", true));
  TARN_TRY(tarn__hf_token(file, &c->padding, "pad_token_id", c->family->padding));
  TARN_TRY(check_rest(file, c));
  TARN_TRY(read_labels(file, c));
  tarn__hf_tell_unknown(file);
  return TARN_STATUS_OK;
}

tarn_status tarn__bert_config_read(tarn__bert_config *config, const char *path) {
  tarn__hf_config file = {.model = "BERT", .known = KNOWN, .known_count = KNOWN_KEYS};
  TARN_TRY(tarn__hf_config_open(&file, path));
  tarn_status status = read_all(&file, config);
  tarn__hf_config_close(&file);
  return status;
}

// Adds id2label, label2id and problem_type.
static tarn_status add_labels(json_t *object, const tarn__bert_config *c) {
  tarn__label_names names;
  TARN_TRY(tarn__label_names_open(&names, c->labels));
  json_t *by_id = json_object(), *by_name = json_object();
  bool sound = json_object_set_new(object, "problem_type",
                                   json_string(c->regression ? "regression" : "single_label_classification")) == 0;
  sound &= json_object_set_new(object, "classifier_dropout", json_real(c->label_dropout)) == 0;
  for (int32_t i = 0; i < names.count || (c->regression && i == 0); i++) {
    const char *name = c->regression ? "LABEL_0" : names.names[i];
    char key[16];
    snprintf(key, sizeof key, "%d", (int)i);
    sound &= json_object_set_new(by_id, key, json_string(name)) == 0;
    sound &= json_object_set_new(by_name, name, json_integer(i)) == 0;
  }
  tarn__label_names_close(&names);
  sound &= json_object_set_new(object, "id2label", by_id) == 0;
  sound &= json_object_set_new(object, "label2id", by_name) == 0;
  TARN_REQUIRE(sound, MEMORY, "no memory for the names of classes");
  return TARN_STATUS_OK;
}

tarn_status tarn__bert_config_write(const tarn__bert_config *c, int32_t cls, int32_t sep, const char *path) {
  json_t *object = json_pack(
      "{s:[s], s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:b, s:I, s:I, s:I, s:s}",
      "architectures", c->labelled ? c->family->labelled : c->family->masked, "model_type", c->family->type,
      "hidden_act", tarn__hf_activation_word(c->activation), "position_embedding_type", "absolute", "hidden_size",
      (json_int_t)c->d_model, "num_hidden_layers", (json_int_t)c->layers, "num_attention_heads", (json_int_t)c->heads,
      "intermediate_size", (json_int_t)c->ffn, "max_position_embeddings", (json_int_t)c->positions, "type_vocab_size",
      (json_int_t)c->segments, "vocab_size", (json_int_t)c->vocab, "layer_norm_eps", c->epsilon, "initializer_range",
      0.02, "hidden_dropout_prob", c->dropout, "attention_probs_dropout_prob", c->attention_dropout,
      "tie_word_embeddings", (int)c->tied, "pad_token_id", (json_int_t)c->padding, "bos_token_id", (json_int_t)cls,
      "eos_token_id", (json_int_t)sep, "torch_dtype", "float32");
  tarn_status status = c->labelled ? add_labels(object, c) : TARN_STATUS_OK;
  if (status == TARN_STATUS_OK) return tarn__hf_config_write(object, path);
  json_decref(object);
  return status;
}
