#include <string.h>

#include "foreign/gpt2_format.h"

const tarn__gpt2_names tarn__gpt2_hf_names = {
    .model = {"wte.weight", "wpe.weight", "ln_f.weight", "ln_f.bias", "lm_head.weight"},
    .layer = {"ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight",
              "attn.c_proj.bias", "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight", "mlp.c_fc.bias", "mlp.c_proj.weight",
              "mlp.c_proj.bias"},
    .at = "h.",
    .transposed = true};

const tarn__gpt2_names tarn__gpt2_gguf_names = {
    .model = {"token_embd.weight", "position_embd.weight", "output_norm.weight", "output_norm.bias", "output.weight"},
    .layer = {"attn_norm.weight", "attn_norm.bias", "attn_qkv.weight", "attn_qkv.bias", "attn_output.weight",
              "attn_output.bias", "ffn_norm.weight", "ffn_norm.bias", "ffn_up.weight", "ffn_up.bias", "ffn_down.weight",
              "ffn_down.bias"},
    .at = "blk."};

const char *const tarn__gpt2_model_ours[TARN__GPT2_MODEL_NAMES] = {"embeddings.weight", "embeddings.positions.weight",
                                                                   "decoder.norm.gain", "decoder.norm.bias",
                                                                   "embeddings.output.weight"};
const char *const tarn__gpt2_layer_ours[TARN__GPT2_LAYER_NAMES] = {
    "self_attn.norm.gain",  "self_attn.norm.bias", "self_attn.qkv.weight", "self_attn.qkv.bias",
    "self_attn.out.weight", "self_attn.out.bias",  "ffn.norm.gain",        "ffn.norm.bias",
    "ffn.in.weight",        "ffn.in.bias",         "ffn.out.weight",       "ffn.out.bias"};

bool tarn__gpt2_is_transposed(const tarn__gpt2_names *names, int i) {
  const char *end = strrchr(tarn__gpt2_layer_ours[i], '.');
  return names->transposed && strcmp(end, ".weight") == 0;
}

static const double EPSILON = 1e-5;  // of layer norms, by default

// Keys of a GPT-2 model's config.json that are irrelevant here, or read below.
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
enum { KNOWN_KEYS = sizeof KNOWN / sizeof *KNOWN };

// Refuses settings whose arithmetic tarn does not support.
static tarn_status check_rest(const tarn__hf_config *r) {
  const char *word;
  TARN_TRY(tarn__hf_word(r, &word, "model_type", "gpt2"));
  TARN_REQUIRE(strcmp(word, "gpt2") == 0, DATA, "%s: \"model_type\" is %.40s, not gpt2", r->path, word);
  TARN_TRY(tarn__hf_demand(r, "scale_attn_weights", true));
  TARN_TRY(tarn__hf_demand(r, "scale_attn_by_inverse_layer_idx", false));
  return tarn__hf_demand(r, "add_cross_attention", false);
}

static tarn_status read_all(const tarn__hf_config *r, tarn__gpt2_config *c) {
  TARN_TRY(check_rest(r));
  TARN_TRY(tarn__hf_size(r, &c->d_model, "n_embd", 0));
  TARN_TRY(tarn__hf_size(r, &c->layers, "n_layer", 0));
  TARN_TRY(tarn__hf_size(r, &c->heads, "n_head", 0));
  TARN_TRY(tarn__hf_size(r, &c->ffn, "n_inner", 4 * c->d_model));
  TARN_TRY(tarn__hf_size(r, &c->positions, "n_positions", 0));
  TARN_TRY(tarn__hf_size(r, &c->vocab, "vocab_size", 0));
  TARN_TRY(tarn__hf_check_layers(r, "n_layer", c->layers));
  TARN_TRY(tarn__hf_check_divides(r, "n_head", c->heads, "n_embd", c->d_model));
  TARN_TRY(tarn__hf_activation(r, &c->activation, "activation_function", "gelu_new"));
  TARN_TRY(tarn__hf_real(r, &c->epsilon, "layer_norm_epsilon", EPSILON));
  TARN_TRY(tarn__hf_real(r, &c->dropout, "resid_pdrop", 0.1));
  TARN_TRY(tarn__hf_real(r, &c->embedding_dropout, "embd_pdrop", 0.1));
  TARN_TRY(tarn__hf_real(r, &c->attention_dropout, "attn_pdrop", 0.1));
  TARN_TRY(tarn__hf_flag(r, &c->tied, "tie_word_embeddings", true));
  TARN_TRY(tarn__hf_token(r, &c->eos, "eos_token_id", -1));
  tarn__hf_tell_unknown(r);
  return TARN_STATUS_OK;
}

tarn_status tarn__gpt2_config_read(tarn__gpt2_config *config, const char *path) {
  tarn__hf_config file = {.model = "GPT-2", .known = KNOWN, .known_count = KNOWN_KEYS};
  TARN_TRY(tarn__hf_config_open(&file, path));
  tarn_status status = read_all(&file, config);
  tarn__hf_config_close(&file);
  return status;
}

tarn_status tarn__gpt2_config_write(const tarn__gpt2_config *c, const char *path) {
  json_t *object = json_pack(
      "{s:[s], s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:b, s:b, s:b, s:I, s:I, s:s}",
      "architectures", "GPT2LMHeadModel", "model_type", "gpt2", "activation_function",
      tarn__hf_activation_word(c->activation), "n_embd", (json_int_t)c->d_model, "n_layer", (json_int_t)c->layers,
      "n_head", (json_int_t)c->heads, "n_inner", (json_int_t)c->ffn, "n_positions", (json_int_t)c->positions, "n_ctx",
      (json_int_t)c->positions, "vocab_size", (json_int_t)c->vocab, "layer_norm_epsilon", c->epsilon,
      "initializer_range", 0.02, "resid_pdrop", c->dropout, "embd_pdrop", c->embedding_dropout, "attn_pdrop",
      c->attention_dropout, "tie_word_embeddings", (int)c->tied, "scale_attn_weights", 1, "use_cache", 1,
      "bos_token_id", (json_int_t)c->eos, "eos_token_id", (json_int_t)c->eos, "torch_dtype", "float32");
  return tarn__hf_config_write(object, path);
}
