#include <string.h>

#include "base/log.h"
#include "foreign/llama_format.h"
#include "parts/table/part_table.h"

const tarn__llama_names tarn__llama_hf_names = {.embedding = "embed_tokens",
                                                .norm = "norm",
                                                .output = "lm_head",
                                                .layer = "layers.",
                                                .parts = {[TARN__LLAMA_ATTENTION_NORM] = "input_layernorm",
                                                          [TARN__LLAMA_Q] = "self_attn.q_proj",
                                                          [TARN__LLAMA_K] = "self_attn.k_proj",
                                                          [TARN__LLAMA_V] = "self_attn.v_proj",
                                                          [TARN__LLAMA_O] = "self_attn.o_proj",
                                                          [TARN__LLAMA_FFN_NORM] = "post_attention_layernorm",
                                                          [TARN__LLAMA_UP] = "mlp.up_proj",
                                                          [TARN__LLAMA_GATE] = "mlp.gate_proj",
                                                          [TARN__LLAMA_DOWN] = "mlp.down_proj"}};

// Those without a number of their own for keys and values, and the same with one.
static const tarn__llama_row ROWS[] = {
    {"self_attn.norm", {TARN__LLAMA_ATTENTION_NORM}, 1, true},
    {"self_attn.qkv", {TARN__LLAMA_Q, TARN__LLAMA_K, TARN__LLAMA_V}, 3, false},
    {"self_attn.out", {TARN__LLAMA_O}, 1, false},
    {"ffn.norm", {TARN__LLAMA_FFN_NORM}, 1, true},
    {"ffn.in", {TARN__LLAMA_UP, TARN__LLAMA_GATE}, 2, false},
    {"ffn.out", {TARN__LLAMA_DOWN}, 1, false},
};
static const tarn__llama_row GROUPED_ROWS[] = {
    {"self_attn.norm", {TARN__LLAMA_ATTENTION_NORM}, 1, true},
    {"self_attn.q", {TARN__LLAMA_Q}, 1, false},
    {"self_attn.kv", {TARN__LLAMA_K, TARN__LLAMA_V}, 2, false},
    {"self_attn.out", {TARN__LLAMA_O}, 1, false},
    {"ffn.norm", {TARN__LLAMA_FFN_NORM}, 1, true},
    {"ffn.in", {TARN__LLAMA_UP, TARN__LLAMA_GATE}, 2, false},
    {"ffn.out", {TARN__LLAMA_DOWN}, 1, false},
};

const tarn__llama_row *tarn__llama_rows(bool grouped, int *count) {
  *count = grouped ? sizeof GROUPED_ROWS / sizeof *GROUPED_ROWS : sizeof ROWS / sizeof *ROWS;
  return grouped ? GROUPED_ROWS : ROWS;
}

bool tarn__llama_has_bias(const tarn__llama_config *config, tarn__llama_part part) {
  if (part == TARN__LLAMA_ATTENTION_NORM || part == TARN__LLAMA_FFN_NORM) return false;
  if (part == TARN__LLAMA_O) return config->out_bias;
  return part < TARN__LLAMA_O ? config->qkv_bias : config->ffn_bias;
}

static const struct {
  const char *word, *architecture;
} FORMATS[] = {[TARN_LLAMA_FORMAT_LLAMA] = {"llama", "LlamaForCausalLM"},
               [TARN_LLAMA_FORMAT_MISTRAL] = {"mistral", "MistralForCausalLM"},
               [TARN_LLAMA_FORMAT_QWEN2] = {"qwen2", "Qwen2ForCausalLM"}};
enum { FORMAT_COUNT = sizeof FORMATS / sizeof *FORMATS };

const char *tarn__llama_word(tarn_llama_format format) { return FORMATS[format].word; }

// FFNs with a gate, and the activation of the gate.
static const struct {
  const tarn__part *activation, *channel;
} CHANNELS[] = {{&tarn__activation_swish.part, &tarn__channel_swiglu.part},
                {&tarn__activation_gelu.part, &tarn__channel_geglu.part},
                {&tarn__activation_relu.part, &tarn__channel_reglu.part}};
enum { CHANNEL_COUNT = sizeof CHANNELS / sizeof *CHANNELS };

// Keys of such a config.json that are irrelevant here, or read below.
static const char *const KNOWN[] = {"hidden_size",
                                    "intermediate_size",
                                    "num_hidden_layers",
                                    "num_attention_heads",
                                    "num_key_value_heads",
                                    "head_dim",
                                    "hidden_act",
                                    "max_position_embeddings",
                                    "vocab_size",
                                    "rms_norm_eps",
                                    "rope_theta",
                                    "rope_scaling",
                                    "rope_parameters",
                                    "partial_rotary_factor",
                                    "attention_bias",
                                    "attention_dropout",
                                    "mlp_bias",
                                    "sliding_window",
                                    "use_sliding_window",
                                    "max_window_layers",
                                    "layer_types",
                                    "tie_word_embeddings",
                                    "initializer_range",
                                    "pretraining_tp",
                                    "bos_token_id",
                                    "eos_token_id",
                                    "pad_token_id",
                                    "model_type",
                                    "architectures",
                                    "is_decoder",
                                    "is_encoder_decoder",
                                    "add_cross_attention",
                                    "use_cache",
                                    "return_dict",
                                    "output_attentions",
                                    "output_hidden_states",
                                    "id2label",
                                    "label2id",
                                    "num_labels",
                                    "rope_interleaved",
                                    "is_llama_config",
                                    "chunk_size_feed_forward",
                                    "problem_type",
                                    "torch_dtype",
                                    "dtype",
                                    "transformers_version",
                                    "transformers.js_config",
                                    "_name_or_path",
                                    "_attn_implementation_autoset"};
enum { KNOWN_KEYS = sizeof KNOWN / sizeof *KNOWN };

static tarn_status read_format(const tarn__hf_config *file, tarn_llama_format *format) {
  const char *word;
  TARN_TRY(tarn__hf_word(file, &word, "model_type", NULL));
  for (int i = 0; i < FORMAT_COUNT; i++) {
    if (strcmp(word, FORMATS[i].word) != 0) continue;
    *format = (tarn_llama_format)i;
    return TARN_STATUS_OK;
  }
  return tarn__fail(TARN_STATUS_DATA, "%s: \"model_type\" is %.40s; here it is llama, mistral or qwen2", file->path,
                    word);
}

static tarn_status read_sizes(const tarn__hf_config *file, tarn__llama_config *c) {
  TARN_TRY(tarn__hf_size(file, &c->d_model, "hidden_size", 0));
  TARN_TRY(tarn__hf_size(file, &c->ffn, "intermediate_size", 0));
  TARN_TRY(tarn__hf_size(file, &c->layers, "num_hidden_layers", 0));
  TARN_TRY(tarn__hf_size(file, &c->heads, "num_attention_heads", 0));
  const bool llama = c->format == TARN_LLAMA_FORMAT_LLAMA;
  TARN_TRY(tarn__hf_size(file, &c->kv_heads, "num_key_value_heads", llama ? c->heads : 0));
  if (!tarn__hf_value(file, "head_dim"))
    TARN_TRY(tarn__hf_check_divides(file, "num_attention_heads", c->heads, "hidden_size", c->d_model));
  TARN_TRY(tarn__hf_size(file, &c->head_width, "head_dim", c->d_model / c->heads > 0 ? c->d_model / c->heads : 1));
  TARN_TRY(tarn__hf_size(file, &c->positions, "max_position_embeddings", 0));
  TARN_TRY(tarn__hf_size(file, &c->vocab, "vocab_size", 0));
  TARN_TRY(tarn__hf_check_layers(file, "num_hidden_layers", c->layers));
  TARN_TRY(tarn__hf_check_divides(file, "num_key_value_heads", c->kv_heads, "num_attention_heads", c->heads));
  return TARN_STATUS_OK;
}

// The scaling of rotary positions: `part` has the keys, `key` is its name in the file.
static tarn_status read_scaling(const tarn__hf_config *file, tarn__llama_config *c, json_t *object, const char *key) {
  tarn__hf_config part = *file;
  const char *type;
  part.object = object;
  TARN_REQUIRE(json_is_object(object), DATA, "%s: \"%s\" is no object", file->path, key);
  TARN_TRY(tarn__hf_word(&part, &type, "type", "default"));
  TARN_TRY(tarn__hf_word(&part, &type, "rope_type", type));
  TARN_TRY(tarn__hf_real(&part, &c->base, "rope_theta", c->base));
  TARN_TRY(tarn__hf_real(&part, &c->share, "partial_rotary_factor", c->share));
  const bool linear = strcmp(type, "linear") == 0, llama3 = strcmp(type, "llama3") == 0;
  TARN_REQUIRE(linear || llama3 || strcmp(type, "default") == 0, DATA,
               "%s: \"%s\" is of type \"%.40s\"; tarn has default, linear and llama3", file->path, key, type);
  if (!linear && !llama3) return TARN_STATUS_OK;
  TARN_REQUIRE(tarn__hf_value(&part, "factor"), DATA, "%s: \"%s\" has no \"factor\"", file->path, key);
  TARN_TRY(tarn__hf_real(&part, &c->factor, "factor", 1.0));
  if (linear) return TARN_STATUS_OK;
  TARN_TRY(tarn__hf_real(&part, &c->low_freq_factor, "low_freq_factor", c->low_freq_factor));
  TARN_TRY(tarn__hf_real(&part, &c->high_freq_factor, "high_freq_factor", c->high_freq_factor));
  return tarn__hf_size(&part, &c->original_length, "original_max_position_embeddings", 0);
}

static tarn_status read_rotary(const tarn__hf_config *file, tarn__llama_config *c) {
  static const char *const keys[] = {"rope_scaling", "rope_parameters"};  // before and since version 5 of the package
  c->factor = c->low_freq_factor = 1.0;
  c->high_freq_factor = 4.0;
  c->original_length = 0;
  TARN_TRY(tarn__hf_real(file, &c->base, "rope_theta", 10000.0));
  TARN_TRY(tarn__hf_real(file, &c->share, "partial_rotary_factor", 1.0));
  TARN_TRY(tarn__hf_demand(file, "rope_interleaved", false));
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    json_t *object = tarn__hf_value(file, keys[i]);
    if (object) TARN_TRY(read_scaling(file, c, object, keys[i]));
  }
  return TARN_STATUS_OK;
}

// Attention to a window of tokens is attention to all in texts that are no longer than it, so it limits their length.
static tarn_status read_window(const tarn__hf_config *file, tarn__llama_config *c) {
  const bool mistral = c->format == TARN_LLAMA_FORMAT_MISTRAL;
  bool used = mistral;
  int64_t window = 0;
  if (c->format == TARN_LLAMA_FORMAT_QWEN2) TARN_TRY(tarn__hf_flag(file, &used, "use_sliding_window", false));
  const bool none = json_is_null(json_object_get(file->object, "sliding_window"));
  if (!used || none) return TARN_STATUS_OK;
  TARN_TRY(tarn__hf_size(file, &window, "sliding_window", 4096));
  if (window >= c->positions) return TARN_STATUS_OK;
  tarn__log(TARN_LOG_WARNING,
            "%s: attention sees \"sliding_window\" %lld tokens, which tarn does not have: model.max_length is that, so "
            "that it sees all of every text",
            file->path, (long long)window);
  c->positions = window;
  return TARN_STATUS_OK;
}

static tarn_status read_biases(const tarn__hf_config *file, tarn__llama_config *c) {
  c->qkv_bias = c->format == TARN_LLAMA_FORMAT_QWEN2;
  c->out_bias = c->ffn_bias = false;
  if (c->format != TARN_LLAMA_FORMAT_LLAMA) return TARN_STATUS_OK;
  TARN_TRY(tarn__hf_flag(file, &c->qkv_bias, "attention_bias", false));
  c->out_bias = c->qkv_bias;
  return tarn__hf_flag(file, &c->ffn_bias, "mlp_bias", false);
}

// A token whose key is missing has the number of the package's class; null: there is none.
static tarn_status read_token(const tarn__hf_config *file, int64_t *id, const char *key, int64_t other) {
  *id = -1;
  return json_is_null(json_object_get(file->object, key)) ? TARN_STATUS_OK : tarn__hf_token(file, id, key, other);
}

static tarn_status read_activation(const tarn__hf_config *file, tarn__llama_config *c) {
  const tarn__part *activation;
  TARN_TRY(tarn__hf_activation(file, &activation, "hidden_act", "silu"));
  c->channel = NULL;
  for (int i = 0; i < CHANNEL_COUNT; i++)
    if (CHANNELS[i].activation == activation) c->channel = CHANNELS[i].channel;
  TARN_REQUIRE(c->channel, DATA, "%s: \"hidden_act\" is of the kind of %s; tarn's gates have silu, gelu and relu",
               file->path, activation->word);
  return TARN_STATUS_OK;
}

static tarn_status read_all(const tarn__hf_config *file, tarn__llama_config *c) {
  TARN_TRY(read_format(file, &c->format));
  TARN_TRY(read_sizes(file, c));
  TARN_TRY(read_activation(file, c));
  TARN_TRY(tarn__hf_real(file, &c->epsilon, "rms_norm_eps", 1e-6));
  TARN_TRY(tarn__hf_real(file, &c->attention_dropout, "attention_dropout", 0.0));
  TARN_TRY(tarn__hf_flag(file, &c->tied, "tie_word_embeddings", false));
  TARN_TRY(read_rotary(file, c));
  TARN_TRY(read_window(file, c));
  TARN_TRY(read_biases(file, c));
  const bool named = c->format != TARN_LLAMA_FORMAT_QWEN2;
  TARN_TRY(read_token(file, &c->bos, "bos_token_id", named ? 1 : -1));
  TARN_TRY(read_token(file, &c->eos, "eos_token_id", named ? 2 : -1));
  TARN_REQUIRE(c->bos < c->vocab && c->eos < c->vocab, DATA,
               "%s: \"bos_token_id\" or \"eos_token_id\" is no token of %lld (\"vocab_size\")", file->path,
               (long long)c->vocab);
  tarn__hf_tell_unknown(file);
  return TARN_STATUS_OK;
}

tarn_status tarn__llama_config_read(tarn__llama_config *config, const char *path) {
  tarn__hf_config file = {.model = "LLaMA", .known = KNOWN, .known_count = KNOWN_KEYS};
  TARN_TRY(tarn__hf_config_open(&file, path));
  tarn_status status = read_all(&file, config);
  tarn__hf_config_close(&file);
  return status;
}

static const char *activation_word(const tarn__llama_config *c) {
  for (int i = 0; i < CHANNEL_COUNT; i++)
    if (CHANNELS[i].channel == c->channel)
      return CHANNELS[i].activation == &tarn__activation_swish.part ? "silu"
                                                                    : tarn__hf_activation_word(CHANNELS[i].activation);
  return NULL;
}

// In both forms, so that every version of the package reads it.
static json_t *rotary(const tarn__llama_config *c, bool whole) {
  const bool llama3 = c->original_length > 0, scaled = c->factor > 1.0;
  json_t *object = json_pack("{s:s}", "rope_type", !scaled ? "default" : llama3 ? "llama3" : "linear");
  int failed = 0;
  if (whole) failed |= json_object_set_new(object, "rope_theta", json_real(c->base));
  if (scaled) failed |= json_object_set_new(object, "factor", json_real(c->factor));
  if (scaled && llama3) {
    failed |= json_object_set_new(object, "low_freq_factor", json_real(c->low_freq_factor));
    failed |= json_object_set_new(object, "high_freq_factor", json_real(c->high_freq_factor));
    failed |= json_object_set_new(object, "original_max_position_embeddings", json_integer(c->original_length));
  }
  if (!failed) return object;
  json_decref(object);
  return NULL;
}

tarn_status tarn__llama_config_write(const tarn__llama_config *c, const char *path) {
  json_t *object = json_pack(
      "{s:[s], s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:b, s:b, s:I, s:s, s:o, s:o}",
      "architectures", FORMATS[c->format].architecture, "model_type", FORMATS[c->format].word, "hidden_act",
      activation_word(c), "hidden_size", (json_int_t)c->d_model, "intermediate_size", (json_int_t)c->ffn,
      "num_hidden_layers", (json_int_t)c->layers, "num_attention_heads", (json_int_t)c->heads, "num_key_value_heads",
      (json_int_t)c->kv_heads, "head_dim", (json_int_t)c->head_width, "max_position_embeddings",
      (json_int_t)c->positions, "vocab_size", (json_int_t)c->vocab, "rms_norm_eps", c->epsilon, "rope_theta", c->base,
      "attention_dropout", c->attention_dropout, "initializer_range", 0.02, "tie_word_embeddings", (int)c->tied,
      "use_cache", 1, "eos_token_id", (json_int_t)c->eos, "torch_dtype", "float32", "rope_parameters", rotary(c, true),
      "rope_scaling", c->factor > 1.0 ? rotary(c, false) : json_null());
  int failed = object ? 0 : 1;
  failed |= json_object_set_new(object, "bos_token_id", c->bos >= 0 ? json_integer(c->bos) : json_null());
  if (c->format == TARN_LLAMA_FORMAT_LLAMA) {
    failed |= json_object_set_new(object, "attention_bias", json_boolean(c->qkv_bias));
    failed |= json_object_set_new(object, "mlp_bias", json_boolean(c->ffn_bias));
  } else {
    failed |= json_object_set_new(object, "sliding_window", json_null());
  }
  if (failed) {
    json_decref(object);
    object = NULL;
  }
  return tarn__hf_config_write(object, path);
}
