#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_io.h"
#include "base/log.h"
#include "base/memory.h"
#include "parts/table/part_table.h"
#include "store/gpt2_format.h"
#include "tarn/text.h"

const tarn__gpt2_name tarn__gpt2_layer_names[TARN__GPT2_LAYER_NAMES] = {
    {"ln_1.weight", "self_attn.norm.gain", false},
    {"ln_1.bias", "self_attn.norm.bias", false},
    {"attn.c_attn.weight", "self_attn.qkv.weight", true},
    {"attn.c_attn.bias", "self_attn.qkv.bias", false},
    {"attn.c_proj.weight", "self_attn.out.weight", true},
    {"attn.c_proj.bias", "self_attn.out.bias", false},
    {"ln_2.weight", "ffn.norm.gain", false},
    {"ln_2.bias", "ffn.norm.bias", false},
    {"mlp.c_fc.weight", "ffn.in.weight", true},
    {"mlp.c_fc.bias", "ffn.in.bias", false},
    {"mlp.c_proj.weight", "ffn.out.weight", true},
    {"mlp.c_proj.bias", "ffn.out.bias", false},
};

const tarn__gpt2_name tarn__gpt2_model_names[TARN__GPT2_MODEL_NAMES] = {
    {"wte.weight", "embeddings.weight", false},
    {"wpe.weight", "embeddings.positions.weight", false},
    {"ln_f.weight", "decoder.norm.gain", false},
    {"ln_f.bias", "decoder.norm.bias", false},
    {"lm_head.weight", "embeddings.output.weight", false},
};

static const double EPSILON = 1e-5;  // of layer norms, where a file does not say
enum { LARGEST = 1 << 20 };          // bytes of a config.json

// Words of activation_function that stand for ours; the first one of an activation is written.
static const struct {
  const char *word;
  const tarn__part *activation;
} ACTIVATIONS[] = {
    {"gelu_new", &tarn__activation_gelu_tanh.part},  {"gelu_pytorch_tanh", &tarn__activation_gelu_tanh.part},
    {"gelu_fast", &tarn__activation_gelu_tanh.part}, {"gelu", &tarn__activation_gelu.part},
    {"relu", &tarn__activation_relu.part},
};
enum { ACTIVATION_WORDS = sizeof ACTIVATIONS / sizeof *ACTIVATIONS };

// Keys of a GPT-2 model's config.json that change nothing here, or are read below.
static const char *const KNOWN[] = {"n_embd",
                                    "n_layer",
                                    "n_head",
                                    "n_inner",
                                    "n_positions",
                                    "n_ctx",
                                    "vocab_size",
                                    "activation_function",
                                    "resid_pdrop",
                                    "embd_pdrop",
                                    "attn_pdrop",
                                    "layer_norm_epsilon",
                                    "initializer_range",
                                    "tie_word_embeddings",
                                    "model_type",
                                    "architectures",
                                    "scale_attn_weights",
                                    "scale_attn_by_inverse_layer_idx",
                                    "reorder_and_upcast_attn",
                                    "add_cross_attention",
                                    "bos_token_id",
                                    "eos_token_id",
                                    "pad_token_id",
                                    "summary_type",
                                    "summary_use_proj",
                                    "summary_activation",
                                    "summary_proj_to_labels",
                                    "summary_first_dropout",
                                    "task_specific_params",
                                    "use_cache",
                                    "return_dict",
                                    "output_attentions",
                                    "output_hidden_states",
                                    "output_past",
                                    "gradient_checkpointing",
                                    "predict_special_tokens",
                                    "id2label",
                                    "label2id",
                                    "num_labels",
                                    "is_decoder",
                                    "is_encoder_decoder",
                                    "torch_dtype",
                                    "dtype",
                                    "transformers_version",
                                    "_name_or_path",
                                    "_attn_implementation_autoset"};
enum { KNOWN_KEYS = sizeof KNOWN / sizeof *KNOWN, MOST_TOLD = 10 };

typedef struct reader {
  json_t *object;
  const char *path;
} reader;

// The value of a key; NULL where it is missing or null.
static json_t *value_of(const reader *r, const char *key) {
  json_t *value = json_object_get(r->object, key);
  return json_is_null(value) ? NULL : value;
}

static bool is_known(const char *key) {
  for (size_t i = 0; i < KNOWN_KEYS; i++)
    if (strcmp(KNOWN[i], key) == 0) return true;
  return false;
}

// One line for all keys that are not known.
static void tell_unknown(const reader *r) {
  char list[600] = "";
  size_t count = 0, used = 0;
  const char *key;
  json_t *value;
  json_object_foreach(r->object, key, value) {
    if (is_known(key) || ++count > MOST_TOLD) continue;
    const char *near = tarn_text_nearest(key, KNOWN, KNOWN_KEYS);
    const int length = snprintf(list + used, sizeof list - used, "%s\"%.40s\"%s%s%s", used ? ", " : "", key,
                                near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
    used += length > 0 && (size_t)length < sizeof list - used ? (size_t)length : 0;
  }
  if (count)
    tarn__log(TARN_LOG_WARNING, "%s: keys that no GPT-2 model is known by are left alone: %s%s", r->path, list,
              count > MOST_TOLD ? " and others" : "");
}

// Fails for a key that is missing, and names one that may stand for it.
static tarn_status fail_missing(const reader *r, const char *wanted) {
  const char *key;
  json_t *value;
  json_object_foreach(r->object, key, value) {
    if (!is_known(key) && tarn_text_nearest(key, &wanted, 1))
      return tarn__fail(TARN_STATUS_DATA, "%s: it has no \"%s\", but \"%.40s\"", r->path, wanted, key);
  }
  return tarn__fail(TARN_STATUS_DATA, "%s: it has no \"%s\"", r->path, wanted);
}

// A whole number of 1 or more; `other` (0: none) where the key is missing.
static tarn_status read_size(const reader *r, int64_t *number, const char *key, int64_t other) {
  json_t *value = value_of(r, key);
  *number = other;
  if (!value && other > 0) return TARN_STATUS_OK;
  if (!value) return fail_missing(r, key);
  TARN_REQUIRE(json_is_integer(value) && json_integer_value(value) >= 1 && json_integer_value(value) <= 1 << 24, DATA,
               "%s: \"%s\" is not a whole number from 1 to %d", r->path, key, 1 << 24);
  *number = json_integer_value(value);
  return TARN_STATUS_OK;
}

static tarn_status read_real(const reader *r, double *number, const char *key, double other) {
  json_t *value = value_of(r, key);
  *number = other;
  if (!value) return TARN_STATUS_OK;
  TARN_REQUIRE(json_is_number(value), DATA, "%s: \"%s\" is not a number", r->path, key);
  *number = json_number_value(value);
  return TARN_STATUS_OK;
}

static tarn_status read_flag(const reader *r, bool *flag, const char *key, bool other) {
  json_t *value = value_of(r, key);
  *flag = other;
  if (!value) return TARN_STATUS_OK;
  TARN_REQUIRE(json_is_boolean(value), DATA, "%s: \"%s\" is neither true nor false", r->path, key);
  *flag = json_is_true(value);
  return TARN_STATUS_OK;
}

static tarn_status read_activation(const reader *r, const tarn__part **activation) {
  json_t *value = value_of(r, "activation_function");
  const char *word = value ? json_string_value(value) : "gelu_new";
  TARN_REQUIRE(word, DATA, "%s: \"activation_function\" is not a text", r->path);
  for (size_t i = 0; i < ACTIVATION_WORDS; i++) {
    if (strcmp(word, ACTIVATIONS[i].word) != 0) continue;
    *activation = ACTIVATIONS[i].activation;
    return TARN_STATUS_OK;
  }
  return tarn__fail(TARN_STATUS_DATA,
                    "%s: \"activation_function\" is \"%.40s\"; tarn has gelu_new (also as gelu_pytorch_tanh and "
                    "gelu_fast), gelu and relu",
                    r->path, word);
}

// What changes the arithmetic in a way that tarn does not have.
static tarn_status check_rest(const reader *r) {
  static const struct {
    const char *key;
    bool needed;
  } flags[] = {
      {"scale_attn_weights", true}, {"scale_attn_by_inverse_layer_idx", false}, {"add_cross_attention", false}};
  json_t *type = value_of(r, "model_type");
  const char *word = type ? json_string_value(type) : "gpt2";
  TARN_REQUIRE(word && strcmp(word, "gpt2") == 0, DATA, "%s: \"model_type\" is %s%.40s, not gpt2", r->path,
               word ? "" : "no text", word ? word : "");
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    bool flag;
    TARN_TRY(read_flag(r, &flag, flags[i].key, flags[i].needed));
    TARN_REQUIRE(flag == flags[i].needed, DATA, "%s: \"%s\" is %s, which tarn does not have", r->path, flags[i].key,
                 flag ? "true" : "false");
  }
  return TARN_STATUS_OK;
}

static tarn_status read_all(const reader *r, tarn__gpt2_config *c) {
  TARN_REQUIRE(json_is_object(r->object), DATA, "%s: not a JSON object", r->path);
  TARN_TRY(check_rest(r));
  TARN_TRY(read_size(r, &c->d_model, "n_embd", 0));
  TARN_TRY(read_size(r, &c->layers, "n_layer", 0));
  TARN_TRY(read_size(r, &c->heads, "n_head", 0));
  TARN_TRY(read_size(r, &c->ffn, "n_inner", 4 * c->d_model));
  TARN_TRY(read_size(r, &c->positions, "n_positions", 0));
  TARN_TRY(read_size(r, &c->vocab, "vocab_size", 0));
  TARN_REQUIRE(c->layers <= TARN_CONFIG_LAYERS, DATA, "%s: \"n_layer\" is %lld, but a stack has at most %d layers",
               r->path, (long long)c->layers, TARN_CONFIG_LAYERS);
  TARN_REQUIRE(c->d_model % c->heads == 0, DATA, "%s: \"n_head\" is %lld, which does not divide \"n_embd\" (%lld)",
               r->path, (long long)c->heads, (long long)c->d_model);
  TARN_TRY(read_activation(r, &c->activation));
  TARN_TRY(read_real(r, &c->epsilon, "layer_norm_epsilon", EPSILON));
  TARN_TRY(read_real(r, &c->dropout, "resid_pdrop", 0.1));
  TARN_TRY(read_real(r, &c->embedding_dropout, "embd_pdrop", 0.1));
  TARN_TRY(read_real(r, &c->attention_dropout, "attn_pdrop", 0.1));
  TARN_TRY(read_flag(r, &c->tied, "tie_word_embeddings", true));
  json_t *eos = value_of(r, "eos_token_id");
  c->eos = json_is_integer(eos) ? json_integer_value(eos) : -1;
  tell_unknown(r);
  return TARN_STATUS_OK;
}

tarn_status tarn__gpt2_config_read(tarn__gpt2_config *config, const char *path) {
  char *data = NULL;
  size_t size;
  json_error_t error;
  TARN_TRY(tarn__file_read(path, &data, &size));
  reader r = {NULL, path};
  tarn_status status = size <= LARGEST ? tarn__json_parse(&r.object, data, size, JSON_REJECT_DUPLICATES, &error)
                                       : tarn__fail(TARN_STATUS_DATA, "%s: more than %d bytes", path, LARGEST);
  tarn__free(data);
  TARN_TRY(status);
  TARN_REQUIRE(r.object, DATA, "%s:%d: %s", path, error.line, error.text);
  status = read_all(&r, config);
  json_decref(r.object);
  return status;
}

static const char *activation_word(const tarn__part *activation) {
  const char *word = NULL;
  for (size_t i = 0; i < ACTIVATION_WORDS && !word; i++)
    if (ACTIVATIONS[i].activation == activation) word = ACTIVATIONS[i].word;
  return word;
}

tarn_status tarn__gpt2_config_write(const tarn__gpt2_config *c, const char *path) {
  json_t *object = json_pack(
      "{s:[s], s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:b, s:b, s:b, s:I, s:I, s:s}",
      "architectures", "GPT2LMHeadModel", "model_type", "gpt2", "activation_function", activation_word(c->activation),
      "n_embd", (json_int_t)c->d_model, "n_layer", (json_int_t)c->layers, "n_head", (json_int_t)c->heads, "n_inner",
      (json_int_t)c->ffn, "n_positions", (json_int_t)c->positions, "n_ctx", (json_int_t)c->positions, "vocab_size",
      (json_int_t)c->vocab, "layer_norm_epsilon", c->epsilon, "initializer_range", 0.02, "resid_pdrop", c->dropout,
      "embd_pdrop", c->embedding_dropout, "attn_pdrop", c->attention_dropout, "tie_word_embeddings", (int)c->tied,
      "scale_attn_weights", 1, "use_cache", 1, "bos_token_id", (json_int_t)c->eos, "eos_token_id", (json_int_t)c->eos,
      "torch_dtype", "float32");
  char *text = tarn__json_dump(object, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
  json_decref(object);
  TARN_REQUIRE(text, MEMORY, "%s: no memory to write it", path);
  tarn_status status = tarn__file_write(path, text, strlen(text));
  free(text);
  return status;
}
