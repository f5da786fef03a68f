// What the imports of both formats of Marian's models share.
#include <stdio.h>
#include <string.h>

#include "foreign/marian_format.h"
#include "parts/table/part_table.h"

// Our names of a layer's parameters, in the order of both formats' names of them.
static const char *const ours_of_layer[TARN__MARIAN_LAYER_NAMES] = {
    "self_attn.qkv.weight",  "self_attn.qkv.bias",  "self_attn.out.weight", "self_attn.out.bias",
    "self_attn.norm.gain",   "self_attn.norm.bias", "ffn.in.weight",        "ffn.in.bias",
    "ffn.out.weight",        "ffn.out.bias",        "ffn.norm.gain",        "ffn.norm.bias",
    "cross_attn.q.weight",   "cross_attn.q.bias",   "cross_attn.kv.weight", "cross_attn.kv.bias",
    "cross_attn.out.weight", "cross_attn.out.bias", "cross_attn.norm.gain", "cross_attn.norm.bias",
};

tarn__hf_name tarn__marian_name(tarn__marian_parts *names, int i) {
  tarn__hf_name name = {.ours = ours_of_layer[i]};
  memcpy(name.theirs, names[i], sizeof name.theirs);
  return name;
}

static const char *final_norm(const tarn__marian_config *config, const tarn__marian_stack *stack) {
  return stack->top == config->pre ? "auto" : stack->top ? "yes" : "no";
}

tarn_status tarn__marian_describe(tarn__marian_source *source, const tarn__hf_key *keys) {
  char text[1800], positions[80];
  const tarn__marian_config *c = &source->config;
  const char *mixer = tarn__mixer_attention.part.word;
  // Their lengths count the decoder's first token and the end of sentence, ours neither.
  const int64_t longest = c->longest > 2 ? c->longest - 2 : 0, shortest = c->shortest > 1 ? c->shortest - 1 : 0;
  snprintf(positions, sizeof positions, "%s", c->sinusoids->word);
  if (c->first > 0)
    snprintf(positions, sizeof positions, "{ type: %s, first: %lld }", c->sinusoids->word, (long long)c->first);
  snprintf(text, sizeof text,
           "model: { d_model: %lld, norm: %s, norm_type: { epsilon: %.9g }, positions: %s, max_length: %lld,\n"
           "         dropout: %.9g, embeddings: %s, embedding_scale: %s, output_bias: %s, activation: %s,\n"
           "         decoder_start: %lld, embedding_norm: %s }\n"
           "encoder: { layers: E*%lld, layerdrop: %.9g, final_norm: %s }\n"
           "decoder: { layers: D*%lld, layerdrop: %.9g, final_norm: %s }\n"
           "kinds:\n"
           "  E: { mixer: %s, heads: %lld, attention_dropout: %.9g, ffn: %lld }\n"
           "  D: { mixer: %s, heads: %lld, attention_dropout: %.9g, ffn: %lld }\n"
           "translate: { beam: %lld, length_penalty: %.9g, max_len_a: %.9g, max_len_b: %lld, min_length: %lld,\n"
           "             early_stopping: %s, allow_unk: %s }\n",
           (long long)c->d_model, c->pre ? "pre" : "post", c->epsilon, positions, (long long)c->positions, c->dropout,
           c->embeddings, c->scaled ? "yes" : "no", c->unbiased ? "no" : "yes", c->activation->word,
           (long long)c->start, c->embedding_norm ? "yes" : "no", (long long)c->encoder.layers, c->encoder.layerdrop,
           final_norm(c, &c->encoder), (long long)c->decoder.layers, c->decoder.layerdrop, final_norm(c, &c->decoder),
           mixer, (long long)c->encoder.heads, c->attention_dropout, (long long)c->encoder.ffn, mixer,
           (long long)c->decoder.heads, c->attention_dropout, (long long)c->decoder.ffn, (long long)c->beam,
           c->length_penalty, c->longest_share, (long long)longest, (long long)shortest,
           c->early_stopping ? "yes" : "no", c->allow_unk ? "yes" : "no");
  return tarn__hf_import_describe(&source->import, text, strlen(text), keys);
}

static tarn_status take_param(tarn__marian_source *s, const tarn__marian_names *names, const tarn__hf_name *name,
                              const char *side, int64_t layer, bool set) {
  char theirs[TARN__HF_PARTS][256], ours[96], prefix[192];
  const char *list[TARN__HF_PARTS] = {NULL};
  const tarn__stored *tensors[TARN__HF_PARTS] = {NULL};
  const char *ending = strstr(name->ours, ".norm.") ? names->ending : "";
  snprintf(prefix, sizeof prefix, names->layer, names->side ? names->side : side, (long long)layer + names->first);
  for (int k = 0; k < TARN__HF_PARTS && name->theirs[k]; k++) {
    snprintf(theirs[k], sizeof theirs[k], "%s%s%s", prefix, name->theirs[k], ending);
    list[k] = theirs[k];
    tensors[k] = tarn__hf_tensors_find(&s->import.tensors, theirs[k]);
  }
  snprintf(ours, sizeof ours, "%s.layer%lld.%s", side, (long long)layer + 1, name->ours);
  return tarn__hf_import_parts(&s->import, ours, tensors, list, 0, set);
}

tarn_status tarn__marian_take_stack(tarn__marian_source *source, const tarn__marian_names *names,
                                    const tarn__marian_stack *stack, const char *side, int count, bool set) {
  for (int64_t l = 0; l < stack->layers; l++)
    for (int i = 0; i < count; i++) {
      const tarn__hf_name name = tarn__marian_name(names->names, i);
      if (name.theirs[0]) TARN_TRY(take_param(source, names, &name, side, l, set));
    }
  return TARN_STATUS_OK;
}

tarn_status tarn__marian_take_one(tarn__marian_source *source, const char *theirs, const char *ours, int64_t skipped,
                                  bool set) {
  const char *names[TARN__HF_PARTS] = {theirs};
  const tarn__stored *const tensors[TARN__HF_PARTS] = {tarn__hf_tensors_find(&source->import.tensors, theirs)};
  return tarn__hf_import_parts(&source->import, ours, tensors, names, skipped, set);
}

tarn_status tarn__marian_take_top(tarn__marian_source *source, const char *side, const char *theirs,
                                  const char *const names[2], bool set) {
  static const char *const ours_of[2] = {".norm.gain", ".norm.bias"};
  const tarn__marian_config *c = &source->config;
  for (int i = 0; i < 2 && (strcmp(side, "encoder") == 0 ? &c->encoder : &c->decoder)->top; i++) {
    char name[256], ours[48];
    snprintf(name, sizeof name, names[i], theirs);
    snprintf(ours, sizeof ours, "%s%s", side, ours_of[i]);
    TARN_TRY(tarn__marian_take_one(source, name, ours, 0, set));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__marian_take_tables(tarn__marian_source *source, const char *const names[TARN__MARIAN_TABLES],
                                     bool set) {
  const tarn__marian_config *c = &source->config;
  if (c->tied && c->shared)
    return tarn__marian_take_one(source, names[TARN__MARIAN_TARGET_TABLE], "embeddings.weight", 0, set);
  TARN_TRY(tarn__marian_take_one(source, names[TARN__MARIAN_SOURCE_TABLE], "embeddings.source.weight", 0, set));
  if (!c->shared)
    TARN_TRY(tarn__marian_take_one(source, names[TARN__MARIAN_TARGET_TABLE], "embeddings.target.weight", 0, set));
  return c->tied ? TARN_STATUS_OK
                 : tarn__marian_take_one(source, names[TARN__MARIAN_OUTPUT_TABLE], "embeddings.output.weight", 0, set);
}

static bool same(const tarn__stored *a, const tarn__stored *b) {
  return a->dims == 2 && b->dims == 2 && a->shape[0] == b->shape[0] && a->shape[1] == b->shape[1] &&
         strcmp(a->dtype, b->dtype) == 0 && memcmp(a->data, b->data, a->bytes) == 0;
}

void tarn__marian_find_shared(tarn__marian_config *config, const tarn__stored *source, const tarn__stored *target,
                              const tarn__stored *output) {
  config->tied = !output || same(target, output);
  config->shared = same(source, target);
  config->embeddings = config->tied     ? (config->shared ? "all" : "decoder")
                       : config->shared ? "encoder_decoder"
                                        : "none";
}

bool tarn__marian_is_copy(const tarn__marian_config *config, const char *const names[TARN__MARIAN_TABLES],
                          const char *name) {
  if (config->tied && strcmp(name, names[TARN__MARIAN_OUTPUT_TABLE]) == 0) return true;
  return config->shared &&
         (strcmp(name, names[TARN__MARIAN_SOURCE_TABLE]) == 0 || strcmp(name, names[TARN__MARIAN_TARGET_TABLE]) == 0);
}
