// The settings of a fairseq model: config.json for what tensors do not tell, such as the number of heads.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "foreign/fairseq_format.h"
#include "parts/table/part_table.h"

enum { POSITIONS = 1024, BEAM = 5, LONGEST = 200 };  // fairseq's defaults

static const tarn__stored *find(const tarn__marian_source *s, const char *side, const char *name) {
  char full[96];
  snprintf(full, sizeof full, "%s.%s", side, name);
  return tarn__hf_tensors_find(&s->import.tensors, full);
}

// A matrix by its name, whose shape gives sizes.
static tarn_status matrix(const tarn__marian_source *s, const tarn__stored **tensor, const char *name) {
  *tensor = tarn__hf_tensors_find(&s->import.tensors, name);
  TARN_REQUIRE(*tensor, DATA, "%s: tensor \"%s\" is missing, which fairseq's translation models have",
               s->import.tensors.path, name);
  return tarn__hf_tensors_sizes(&s->import.tensors, *tensor);
}

// Tied matrices are one in fairseq, and equal copies in the file; that of the output may be left out.
static tarn_status read_words(const tarn__hf_config *file, tarn__marian_source *s) {
  tarn__marian_config *c = &s->config;
  const tarn__stored *source, *target, *output = tarn__hf_tensors_find(&s->import.tensors, TARN__FAIRSEQ_OUTPUT);
  bool all, tied;
  TARN_TRY(matrix(s, &source, TARN__FAIRSEQ_ENCODER_WORDS));
  TARN_TRY(matrix(s, &target, TARN__FAIRSEQ_DECODER_WORDS));
  c->vocab = source->shape[0];
  c->target_vocab = target->shape[0];
  c->d_model = source->shape[1];
  tarn__marian_find_shared(c, source, target, output);
  TARN_TRY(tarn__hf_flag(file, &all, "share_all_embeddings", c->shared && c->tied));
  TARN_TRY(tarn__hf_flag(file, &tied, "share_decoder_input_output_embed", c->tied));
  TARN_REQUIRE(!all || (c->shared && c->tied), DATA,
               "%s: \"share_all_embeddings\" is true, but the embeddings in %s differ", file->path,
               s->import.tensors.path);
  TARN_REQUIRE(output || all || tied, DATA,
               "%s: tensor \"" TARN__FAIRSEQ_OUTPUT "\" is missing, and by %s the output shares no other matrix",
               s->import.tensors.path, file->path);
  TARN_REQUIRE(!tied || c->tied, DATA,
               "%s: \"share_decoder_input_output_embed\" is true, but tensors \"" TARN__FAIRSEQ_DECODER_WORDS
               "\" and \"" TARN__FAIRSEQ_OUTPUT "\" differ",
               file->path);
  return TARN_STATUS_OK;
}

static tarn_status read_stack(const tarn__hf_config *file, const tarn__marian_source *s, tarn__marian_stack *stack,
                              const char *side) {
  char key[64], name[64];
  const char *path = s->import.tensors.path;
  const tarn__stored *ffn;
  snprintf(name, sizeof name, "%s.layers.0.fc1.weight", side);
  TARN_TRY(matrix(s, &ffn, name));
  stack->ffn = ffn->shape[0];
  for (stack->layers = 0; ffn; stack->layers++) {
    snprintf(name, sizeof name, "layers.%lld.fc1.weight", (long long)stack->layers + 1);
    ffn = find(s, side, name);
  }
  snprintf(key, sizeof key, "%s_layers", side);
  TARN_TRY(tarn__hf_check_layers(file, key, stack->layers));
  TARN_TRY(tarn__hf_demand_size(file, key, stack->layers, path));
  snprintf(key, sizeof key, "%s_ffn_embed_dim", side);
  TARN_TRY(tarn__hf_demand_size(file, key, stack->ffn, path));
  snprintf(key, sizeof key, "%s_embed_dim", side);
  TARN_TRY(tarn__hf_demand_size(file, key, s->config.d_model, path));
  snprintf(key, sizeof key, "%s_layerdrop", side);
  TARN_TRY(tarn__hf_real(file, &stack->layerdrop, key, 0.0));
  snprintf(key, sizeof key, "%s_attention_heads", side);
  TARN_TRY(tarn__hf_size(file, &stack->heads, key, 0));
  return tarn__hf_check_divides(file, key, stack->heads, TARN__FAIRSEQ_ENCODER_WORDS, s->config.d_model);
}

// Norms before sublayers come with one behind the stack.
static tarn_status read_norms(const tarn__hf_config *file, tarn__marian_source *s) {
  static const char *const sides[2] = {"encoder", "decoder"};
  s->config.pre = find(s, "encoder", "layer_norm.weight") != NULL;
  for (int i = 0; i < 2; i++) {
    char key[48];
    bool before;
    const bool top = find(s, sides[i], "layer_norm.weight") != NULL;
    snprintf(key, sizeof key, "%s_normalize_before", sides[i]);
    TARN_TRY(tarn__hf_flag(file, &before, key, top));
    TARN_REQUIRE(before == top, DATA, "%s: \"%s\" is %s, but %s has %s tensor \"%s.layer_norm.weight\"", file->path,
                 key, before ? "true" : "false", s->import.tensors.path, top ? "a" : "no", sides[i]);
    TARN_REQUIRE(top == s->config.pre, DATA,
                 "%s: only one of \"encoder_normalize_before\" and \"decoder_normalize_before\" is true; tarn has one "
                 "order of norms",
                 file->path);
  }
  s->config.encoder.top = s->config.decoder.top = s->config.pre;
  const bool found = find(s, "encoder", "layernorm_embedding.weight") != NULL;
  TARN_TRY(tarn__hf_flag(file, &s->config.embedding_norm, "layernorm_embedding", found));
  TARN_REQUIRE(s->config.embedding_norm == found, DATA,
               "%s: \"layernorm_embedding\" is %s, but %s has %s tensor \"encoder.layernorm_embedding.weight\"",
               file->path, found ? "false" : "true", s->import.tensors.path, found ? "a" : "no");
  return TARN_STATUS_OK;
}

// Sinusoids have no tensors; learned tables have unused rows before the first position.
static tarn_status read_positions(const tarn__hf_config *file, tarn__marian_source *s) {
  const tarn__stored *learned = find(s, "encoder", "embed_positions.weight");
  int64_t source, target;
  TARN_TRY(tarn__hf_size(file, &source, "max_source_positions", POSITIONS));
  TARN_TRY(tarn__hf_size(file, &target, "max_target_positions", POSITIONS));
  s->config.positions = source > target ? source : target;
  s->config.sinusoids = learned ? &tarn__position_learned.part : &tarn__position_sinusoidal.part;
  s->config.first = learned ? 0 : TARN__FAIRSEQ_FIRST;
  TARN_TRY(tarn__hf_demand(file, "encoder_learned_pos", learned != NULL));
  TARN_TRY(tarn__hf_demand(file, "decoder_learned_pos", learned != NULL));
  if (!learned) return TARN_STATUS_OK;
  TARN_TRY(matrix(s, &learned, "encoder.embed_positions.weight"));
  s->config.positions = learned->shape[0] - TARN__FAIRSEQ_FIRST;
  TARN_REQUIRE(s->config.positions >= 1, DATA, "%s: tensor \"%s\" has no row of a position", s->import.tensors.path,
               learned->name);
  return TARN_STATUS_OK;
}

static tarn_status read_language(const tarn__hf_config *file, char language[TARN__FAIRSEQ_LANGUAGE], const char *key) {
  const char *word;
  TARN_TRY(tarn__hf_word(file, &word, key, NULL));
  TARN_REQUIRE(*word && strlen(word) < TARN__FAIRSEQ_LANGUAGE && !strchr(word, '/'), DATA,
               "%s: \"%s\" is not the language of a dict.LANGUAGE.txt", file->path, key);
  snprintf(language, TARN__FAIRSEQ_LANGUAGE, "%s", word);
  return TARN_STATUS_OK;
}

static tarn_status read_all(const tarn__hf_config *file, tarn__marian_source *s, tarn__fairseq_languages *languages) {
  static const char *const off[] = {"adaptive_input",       "no_token_positional_embeddings", "no_cross_attention",
                                    "cross_self_attention", "no_decoder_final_norm",          "char_inputs",
                                    "tie_adaptive_weights"};
  tarn__marian_config *c = &s->config;
  bool plain;
  for (size_t i = 0; i < sizeof off / sizeof *off; i++) TARN_TRY(tarn__hf_demand(file, off[i], false));
  TARN_REQUIRE(!tarn__hf_value(file, "adaptive_softmax_cutoff"), DATA,
               "%s: the output is an adaptive softmax (\"adaptive_softmax_cutoff\"), which tarn does not import",
               file->path);
  TARN_TRY(read_language(file, languages->source, "source_lang"));
  TARN_TRY(read_language(file, languages->target, "target_lang"));
  TARN_TRY(read_words(file, s));
  TARN_TRY(read_stack(file, s, &c->encoder, "encoder"));
  TARN_TRY(read_stack(file, s, &c->decoder, "decoder"));
  TARN_TRY(read_norms(file, s));
  TARN_TRY(read_positions(file, s));
  TARN_TRY(tarn__hf_activation(file, &c->activation, "activation_fn", "relu"));
  TARN_TRY(tarn__hf_flag(file, &plain, "no_scale_embedding", false));
  TARN_TRY(tarn__hf_real(file, &c->dropout, "dropout", 0.1));
  TARN_TRY(tarn__hf_real(file, &c->attention_dropout, "attention_dropout", 0.0));
  c->scaled = !plain;
  return TARN_STATUS_OK;
}

tarn_status tarn__fairseq_config(tarn__marian_source *source, tarn__fairseq_languages *languages) {
  char path[PATH_MAX];
  tarn__hf_config file = {.model = "fairseq"};
  // The lengths of a translation here count the decoder's first token and the end of sentence.
  source->config = (tarn__marian_config){.eos = -1,
                                         .epsilon = TARN__MARIAN_EPSILON,
                                         .unbiased = true,
                                         .beam = BEAM,
                                         .longest = LONGEST + 2,
                                         .shortest = 2,
                                         .length_penalty = 1.0,
                                         .early_stopping = true,
                                         .allow_unk = true,
                                         .unk = -1};
  TARN_TRY(tarn__path_join(path, source->import.folder, TARN__HF_CONFIG));
  TARN_TRY(tarn__hf_config_open(&file, path));
  const tarn_status status = read_all(&file, source, languages);
  tarn__hf_config_close(&file);
  return status;
}
