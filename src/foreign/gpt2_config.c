#include <string.h>

#include "foreign/gpt2_format.h"

const tarn__gpt2_names tarn__gpt2_hf_names = {.model = {{"wte.weight", "embeddings.weight", false},
                                                        {"wpe.weight", "embeddings.positions.weight", false},
                                                        {"ln_f.weight", "decoder.norm.gain", false},
                                                        {"ln_f.bias", "decoder.norm.bias", false},
                                                        {"lm_head.weight", "embeddings.output.weight", false}},
                                              .layer = {{"ln_1.weight", "self_attn.norm.gain", false},
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
                                                        {"mlp.c_proj.bias", "ffn.out.bias", false}},
                                              .at = "h."};

const tarn__gpt2_names tarn__gpt2_gguf_names = {
    .model = {{"token_embd.weight", "embeddings.weight", false},
              {"position_embd.weight", "embeddings.positions.weight", false},
              {"output_norm.weight", "decoder.norm.gain", false},
              {"output_norm.bias", "decoder.norm.bias", false},
              {"output.weight", "embeddings.output.weight", false}},
    .layer = {{"attn_norm.weight", "self_attn.norm.gain", false},
              {"attn_norm.bias", "self_attn.norm.bias", false},
              {"attn_qkv.weight", "self_attn.qkv.weight", false},
              {"attn_qkv.bias", "self_attn.qkv.bias", false},
              {"attn_output.weight", "self_attn.out.weight", false},
              {"attn_output.bias", "self_attn.out.bias", false},
              {"ffn_norm.weight", "ffn.norm.gain", false},
              {"ffn_norm.bias", "ffn.norm.bias", false},
              {"ffn_up.weight", "ffn.in.weight", false},
              {"ffn_up.bias", "ffn.in.bias", false},
              {"ffn_down.weight", "ffn.out.weight", false},
              {"ffn_down.bias", "ffn.out.bias", false}},
    .at = "blk."};

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
  TARN_REQUIRE(c->layers <= TARN_CONFIG_LAYERS, DATA, "%s: \"n_layer\" is %lld, but a stack has at most %d layers",
               r->path, (long long)c->layers, TARN_CONFIG_LAYERS);
  TARN_REQUIRE(c->d_model % c->heads == 0, DATA, "%s: \"n_head\" is %lld, which does not divide \"n_embd\" (%lld)",
               r->path, (long long)c->heads, (long long)c->d_model);
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
