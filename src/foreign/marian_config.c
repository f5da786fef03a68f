#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "foreign/marian_format.h"
#include "parts/table/part_table.h"

const char *const tarn__marian_package_names[TARN__MARIAN_LAYER_NAMES][TARN__HF_PARTS] = {
    {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"},
    {"self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"},
    {"self_attn.out_proj.weight"},
    {"self_attn.out_proj.bias"},
    {"self_attn_layer_norm.weight"},
    {"self_attn_layer_norm.bias"},
    {"fc1.weight"},
    {"fc1.bias"},
    {"fc2.weight"},
    {"fc2.bias"},
    {"final_layer_norm.weight"},
    {"final_layer_norm.bias"},
    {"encoder_attn.q_proj.weight"},
    {"encoder_attn.q_proj.bias"},
    {"encoder_attn.k_proj.weight", "encoder_attn.v_proj.weight"},
    {"encoder_attn.k_proj.bias", "encoder_attn.v_proj.bias"},
    {"encoder_attn.out_proj.weight"},
    {"encoder_attn.out_proj.bias"},
    {"encoder_attn_layer_norm.weight"},
    {"encoder_attn_layer_norm.bias"},
};

// Keys of both files that are irrelevant here, or read below.
static const char *const KNOWN[] = {"d_model",
                                    "encoder_layers",
                                    "decoder_layers",
                                    "encoder_attention_heads",
                                    "decoder_attention_heads",
                                    "encoder_ffn_dim",
                                    "decoder_ffn_dim",
                                    "encoder_layerdrop",
                                    "decoder_layerdrop",
                                    "activation_function",
                                    "dropout",
                                    "attention_dropout",
                                    "activation_dropout",
                                    "classif_dropout",
                                    "classifier_dropout",
                                    "max_position_embeddings",
                                    "vocab_size",
                                    "decoder_vocab_size",
                                    "scale_embedding",
                                    "share_encoder_decoder_embeddings",
                                    "tie_word_embeddings",
                                    "pad_token_id",
                                    "bos_token_id",
                                    "eos_token_id",
                                    "decoder_start_token_id",
                                    "forced_eos_token_id",
                                    "static_position_embeddings",
                                    "extra_pos_embeddings",
                                    "normalize_before",
                                    "normalize_embedding",
                                    "add_final_layer_norm",
                                    "add_bias_logits",
                                    "force_bos_token_to_be_generated",
                                    "bad_words_ids",
                                    "num_beams",
                                    "max_length",
                                    "min_length",
                                    "length_penalty",
                                    "early_stopping",
                                    "renormalize_logits",
                                    "do_sample",
                                    "init_std",
                                    "num_hidden_layers",
                                    "model_type",
                                    "architectures",
                                    "is_encoder_decoder",
                                    "is_decoder",
                                    "gradient_checkpointing",
                                    "use_cache",
                                    "return_dict",
                                    "output_attentions",
                                    "output_hidden_states",
                                    "output_past",
                                    "output_scores",
                                    "id2label",
                                    "label2id",
                                    "num_labels",
                                    "task_specific_params",
                                    "tokenizer_class",
                                    "prefix",
                                    "torch_dtype",
                                    "dtype",
                                    "transformers_version",
                                    "_name_or_path",
                                    "_num_labels",
                                    "_from_model_config",
                                    "_attn_implementation_autoset"};
enum { KNOWN_KEYS = sizeof KNOWN / sizeof *KNOWN };

// Refuses settings whose arithmetic tarn does not support. Models are post-norm regardless of the file: the package has
// had no other form since it was separated from BART.
static tarn_status check_form(const tarn__hf_config *file) {
  const char *word;
  TARN_TRY(tarn__hf_word(file, &word, "model_type", NULL));
  TARN_REQUIRE(strcmp(word, "marian") == 0, DATA,
               "%s: \"model_type\" is %.40s, not marian; there are import-gpt2 and import-bert", file->path, word);
  TARN_TRY(tarn__hf_demand(file, "normalize_before", false));
  TARN_TRY(tarn__hf_demand(file, "normalize_embedding", false));
  TARN_TRY(tarn__hf_demand(file, "add_final_layer_norm", false));
  TARN_TRY(tarn__hf_demand(file, "static_position_embeddings", true));
  TARN_TRY(tarn__hf_demand(file, "force_bos_token_to_be_generated", false));
  return tarn__hf_demand(file, "is_decoder", false);
}

static tarn_status read_stack(const tarn__hf_config *file, tarn__marian_stack *stack, const char *const keys[4],
                              int64_t d_model) {
  TARN_TRY(tarn__hf_size(file, &stack->layers, keys[0], 0));
  TARN_TRY(tarn__hf_size(file, &stack->heads, keys[1], 0));
  TARN_TRY(tarn__hf_size(file, &stack->ffn, keys[2], 0));
  TARN_TRY(tarn__hf_real(file, &stack->layerdrop, keys[3], 0.0));
  TARN_TRY(tarn__hf_check_layers(file, keys[0], stack->layers));
  TARN_TRY(tarn__hf_check_divides(file, keys[1], stack->heads, "d_model", d_model));
  return TARN_STATUS_OK;
}

// The package may have a list; only one token is accepted, because our sentences end with one.
static tarn_status read_end(const tarn__hf_config *file, int64_t *id, const char *key, int64_t other) {
  const json_t *list = tarn__hf_value(file, key), *first = json_array_get(list, 0);
  if (!json_is_array(list)) return tarn__hf_token(file, id, key, other);
  TARN_REQUIRE(json_array_size(list) == 1 && json_is_integer(first), DATA,
               "%s: \"%s\" is a list, and not of one token; here one token ends a sentence", file->path, key);
  *id = json_integer_value(first);
  return TARN_STATUS_OK;
}

static tarn_status read_tokens(const tarn__hf_config *file, tarn__marian_config *c) {
  TARN_TRY(tarn__hf_size(file, &c->vocab, "vocab_size", 0));
  TARN_TRY(tarn__hf_size(file, &c->target_vocab, "decoder_vocab_size", c->vocab));
  TARN_TRY(read_end(file, &c->eos, "eos_token_id", 0));
  TARN_TRY(tarn__hf_token(file, &c->padding, "pad_token_id", 58100));
  TARN_TRY(tarn__hf_token(file, &c->start, "decoder_start_token_id", c->padding));
  TARN_REQUIRE(c->padding >= 0 && c->padding < c->target_vocab, DATA, "%s: \"pad_token_id\" is %lld, which is no token",
               file->path, (long long)c->padding);
  TARN_REQUIRE(c->start >= 0 && c->start < c->target_vocab, DATA,
               "%s: \"decoder_start_token_id\" is %lld, which is no token", file->path, (long long)c->start);
  TARN_REQUIRE(!c->shared || c->vocab == c->target_vocab, DATA,
               "%s: \"share_encoder_decoder_embeddings\" is true, but \"decoder_vocab_size\" is not \"vocab_size\"",
               file->path);
  return TARN_STATUS_OK;
}

static tarn_status read_model(const tarn__hf_config *file, tarn__marian_config *c) {
  static const char *const encoder[] = {"encoder_layers", "encoder_attention_heads", "encoder_ffn_dim",
                                        "encoder_layerdrop"};
  static const char *const decoder[] = {"decoder_layers", "decoder_attention_heads", "decoder_ffn_dim",
                                        "decoder_layerdrop"};
  double activation_dropout;
  TARN_TRY(check_form(file));
  TARN_TRY(tarn__hf_size(file, &c->d_model, "d_model", 0));
  TARN_TRY(read_stack(file, &c->encoder, encoder, c->d_model));
  TARN_TRY(read_stack(file, &c->decoder, decoder, c->d_model));
  TARN_TRY(tarn__hf_size(file, &c->positions, "max_position_embeddings", 0));
  TARN_TRY(tarn__hf_activation(file, &c->activation, "activation_function", "gelu"));
  TARN_TRY(tarn__hf_real(file, &c->dropout, "dropout", 0.1));
  TARN_TRY(tarn__hf_real(file, &c->attention_dropout, "attention_dropout", 0.0));
  TARN_TRY(tarn__hf_real(file, &activation_dropout, "activation_dropout", 0.0));
  if (activation_dropout > 0.0)
    tarn__log(TARN_LOG_WARNING, "%s: \"activation_dropout\" is left out; a training that goes on is without",
              file->path);
  TARN_TRY(tarn__hf_flag(file, &c->scaled, "scale_embedding", false));
  TARN_TRY(tarn__hf_flag(file, &c->shared, "share_encoder_decoder_embeddings", true));
  TARN_TRY(tarn__hf_flag(file, &c->tied, "tie_word_embeddings", true));
  c->embeddings = !c->tied ? "none" : c->shared ? "all" : "decoder";
  c->sinusoids = &tarn__position_sinusoidal_paper.part;
  c->epsilon = TARN__MARIAN_EPSILON;
  c->pre = false;
  return read_tokens(file, c);
}

// The padding token is never chosen; of others one can be forbidden, which has to be the unknown one.
static tarn_status read_bad_words(const tarn__hf_config *file, tarn__marian_config *c) {
  const json_t *list = tarn__hf_value(file, "bad_words_ids"), *words;
  size_t i;
  bool known = !list || json_array_size(list) > 0;
  json_array_foreach(list, i, words) {
    const json_t *word = json_array_get(words, 0);
    const json_int_t id = json_integer_value(word);
    known = known && json_array_size(words) == 1 && json_is_integer(word) && id >= 0;
    if (!known || id == c->padding) continue;
    known = c->unk < 0 || c->unk == id;
    c->unk = id;
    c->allow_unk = false;
  }
  TARN_REQUIRE(known, DATA,
               "%s: \"bad_words_ids\" names other tokens than the padding and <unk>, which tarn does not have",
               file->path);
  return TARN_STATUS_OK;
}

// The generation settings repeat tokens of the model, which must agree.
static tarn_status check_tokens(const tarn__hf_config *file, const tarn__marian_config *c) {
  const struct {
    const char *key;
    int64_t wanted;
  } tokens[] = {{"decoder_start_token_id", c->start},
                {"pad_token_id", c->padding},
                {"eos_token_id", c->eos},
                {"forced_eos_token_id", c->eos}};
  for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
    int64_t id;
    TARN_TRY(read_end(file, &id, tokens[i].key, tokens[i].wanted));
    TARN_REQUIRE(id < 0 || tokens[i].wanted < 0 || id == tokens[i].wanted, DATA,
                 "%s: \"%s\" is %lld, but " TARN__HF_CONFIG " reads its model with %lld", file->path, tokens[i].key,
                 (long long)id, (long long)tokens[i].wanted);
  }
  return TARN_STATUS_OK;
}

static tarn_status read_generation(const tarn__hf_config *file, tarn__marian_config *c) {
  double shortest;
  TARN_TRY(check_tokens(file, c));
  TARN_TRY(tarn__hf_demand(file, "do_sample", false));
  TARN_TRY(tarn__hf_size(file, &c->beam, "num_beams", c->beam));
  TARN_TRY(tarn__hf_size(file, &c->longest, "max_length", c->longest));
  TARN_TRY(tarn__hf_real(file, &shortest, "min_length", (double)c->shortest));
  TARN_REQUIRE(shortest >= 0 && shortest <= (double)c->positions, DATA, "%s: \"min_length\" is out of range",
               file->path);
  c->shortest = (int64_t)shortest;
  TARN_TRY(tarn__hf_real(file, &c->length_penalty, "length_penalty", c->length_penalty));
  TARN_REQUIRE(!json_is_string(tarn__hf_value(file, "early_stopping")), DATA,
               "%s: \"early_stopping\" is a word; tarn has true and false", file->path);
  TARN_TRY(tarn__hf_flag(file, &c->early_stopping, "early_stopping", c->early_stopping));
  TARN_TRY(tarn__hf_flag(file, &c->renormalised, "renormalize_logits", c->renormalised));
  return read_bad_words(file, c);
}

// Reads a folder's two files, or only the first of old folders.
tarn_status tarn__marian_config_read(tarn__marian_config *c, const char *folder) {
  char path[PATH_MAX];
  tarn__hf_config file = {.model = "Marian", .known = KNOWN, .known_count = KNOWN_KEYS};
  TARN_TRY(tarn__path_join(path, folder, TARN__HF_CONFIG));
  TARN_TRY(tarn__hf_config_open(&file, path));
  tarn_status status = read_model(&file, c);
  c->beam = 1;
  c->longest_share = 0.0;
  c->longest = c->positions;
  c->length_penalty = 1.0;
  c->allow_unk = true;
  c->unk = -1;
  if (status == TARN_STATUS_OK) status = read_generation(&file, c);
  if (status == TARN_STATUS_OK) tarn__hf_tell_unknown(&file);
  tarn__hf_config_close(&file);
  TARN_TRY(status);
  TARN_TRY(tarn__path_join(path, folder, TARN__MARIAN_GENERATION));
  if (!tarn__file_exists(path)) return TARN_STATUS_OK;
  TARN_TRY(tarn__hf_config_open(&file, path));
  status = read_generation(&file, c);
  if (status == TARN_STATUS_OK) tarn__hf_tell_unknown(&file);
  tarn__hf_config_close(&file);
  return status;
}

// The second file has the generation settings.
static tarn_status write_generation(const tarn__marian_config *c, const char *folder) {
  char path[PATH_MAX];
  json_t *object = json_pack(
      "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:b}", "decoder_start_token_id", (json_int_t)c->start, "eos_token_id",
      (json_int_t)c->eos, "forced_eos_token_id", (json_int_t)c->eos, "pad_token_id", (json_int_t)c->padding,
      "num_beams", (json_int_t)c->beam, "max_length", (json_int_t)c->longest, "min_length", (json_int_t)c->shortest,
      "length_penalty", c->length_penalty, "early_stopping", (int)c->early_stopping);
  // The end of sentence replaces a padding that the vocabulary lacks.
  const int64_t never[] = {c->padding != c->eos ? c->padding : -1, c->allow_unk ? -1 : c->unk};
  for (int i = 0; i < 2 && object; i++) {
    json_t *list = json_object_get(object, "bad_words_ids");
    if (never[i] < 0) continue;
    const int left_out = list ? json_array_append_new(list, json_pack("[I]", (json_int_t)never[i]))
                              : json_object_set_new(object, "bad_words_ids", json_pack("[[I]]", (json_int_t)never[i]));
    if (left_out == 0) continue;
    json_decref(object);
    object = NULL;
  }
  TARN_TRY(tarn__path_join(path, folder, TARN__MARIAN_GENERATION));
  return tarn__hf_config_write(object, path);
}

tarn_status tarn__marian_config_write(const tarn__marian_config *c, const char *folder) {
  char path[PATH_MAX];
  json_t *object = json_pack(
      "{s:[s], s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:b, s:b, "
      "s:b, "
      "s:I, s:I, s:I, s:I, s:b, s:b, s:s}",
      "architectures", "MarianMTModel", "model_type", "marian", "activation_function",
      tarn__hf_activation_word(c->activation), "d_model", (json_int_t)c->d_model, "encoder_layers",
      (json_int_t)c->encoder.layers, "decoder_layers", (json_int_t)c->decoder.layers, "encoder_attention_heads",
      (json_int_t)c->encoder.heads, "decoder_attention_heads", (json_int_t)c->decoder.heads, "encoder_ffn_dim",
      (json_int_t)c->encoder.ffn, "decoder_ffn_dim", (json_int_t)c->decoder.ffn, "encoder_layerdrop",
      c->encoder.layerdrop, "decoder_layerdrop", c->decoder.layerdrop, "dropout", c->dropout, "attention_dropout",
      c->attention_dropout, "activation_dropout", 0.0, "init_std", 0.02, "max_position_embeddings",
      (json_int_t)c->positions, "vocab_size", (json_int_t)c->vocab, "decoder_vocab_size", (json_int_t)c->target_vocab,
      "scale_embedding", (int)c->scaled, "share_encoder_decoder_embeddings", (int)c->shared, "tie_word_embeddings",
      (int)c->tied, "pad_token_id", (json_int_t)c->padding, "eos_token_id", (json_int_t)c->eos, "forced_eos_token_id",
      (json_int_t)c->eos, "decoder_start_token_id", (json_int_t)c->start, "is_encoder_decoder", 1, "use_cache", 1,
      "torch_dtype", "float32");
  TARN_TRY(tarn__path_join(path, folder, TARN__HF_CONFIG));
  TARN_TRY(tarn__hf_config_write(object, path));
  return write_generation(c, folder);
}
