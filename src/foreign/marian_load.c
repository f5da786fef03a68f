// Imports a translation model from a folder of the package transformers with a Marian model.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "foreign/hf_import.h"
#include "foreign/marian_format.h"
#include "run/file_kind.h"
#include "tarn/checkpoint.h"
#include "tarn/lab/foreign.h"
#include "text/marian_own.h"
#include "text/vocab_formats.h"

typedef tarn__marian_source source;

static tarn_status open_files(source *s) {
  const tarn_status status = tarn__marian_config_read(&s->config, s->import.folder);
  TARN_TRY(tarn__file_kind_explain(status, s->import.folder, TARN__FILE_KIND_HF_FOLDER));
  return tarn__hf_import_tensors(&s->import, TARN__MARIAN_PREFIX);
}

static tarn_status check_vocab(const source *s, const tarn_vocab *vocab, const char *side, int64_t size,
                               const char *key) {
  const char *folder = s->import.folder;
  TARN_REQUIRE(tarn_vocab_size(vocab) == size, DATA,
               "the vocabulary of the %s has %d tokens, but %s/" TARN__HF_CONFIG " says %lld (\"%s\")", side,
               tarn_vocab_size(vocab), folder, (long long)size, key);
  TARN_REQUIRE(s->config.eos < 0 || s->config.eos == tarn_vocab_eos(vocab), DATA,
               "the vocabulary of the %s has the end of sentence %d, but %s/" TARN__HF_CONFIG
               " says %lld (\"eos_token_id\")",
               side, tarn_vocab_eos(vocab), folder, (long long)s->config.eos);
  return TARN_STATUS_OK;
}

static tarn_status open_side(const source *s, tarn_vocab **vocab, const char *given, bool target) {
  return given ? tarn_vocab_open(vocab, given) : tarn__vocab_open_marian(vocab, s->import.folder, target);
}

static tarn_status open_vocabs(source *s, const char *given, const char *target) {
  tarn__hf_import *import = &s->import;
  TARN_TRY(open_side(s, &import->vocab, given, false));
  if (!given || target) TARN_TRY(open_side(s, &import->target_vocab, target, true));
  TARN_TRY(check_vocab(s, import->vocab, "source", s->config.vocab, "vocab_size"));
  const tarn_vocab *other = import->target_vocab ? import->target_vocab : import->vocab;
  TARN_TRY(check_vocab(s, other, "target", s->config.target_vocab, "decoder_vocab_size"));
  TARN_REQUIRE(tarn_vocab_pad(other) < 0 || tarn_vocab_pad(other) == s->config.padding, DATA,
               "the vocabulary of the target has the padding %d, but %s/" TARN__HF_CONFIG
               " says %lld "
               "(\"pad_token_id\")",
               tarn_vocab_pad(other), import->folder, (long long)s->config.padding);
  TARN_REQUIRE(
      s->config.allow_unk || tarn_vocab_unk(other) == s->config.unk, DATA,
      "%s: \"bad_words_ids\" names other tokens than the padding and <unk>, such as %lld, which tarn does not have",
      import->folder, (long long)s->config.unk);
  return TARN_STATUS_OK;
}

static tarn_status describe(source *s) {
  static const tarn__hf_key keys[] = {{"model.d_model: ", "d_model"},
                                      {"model.max_length: ", "max_position_embeddings"},
                                      {"model.dropout: ", "dropout"},
                                      {"encoder.layers: ", "encoder_layers"},
                                      {"decoder.layers: ", "decoder_layers"},
                                      {"encoder.layerdrop: ", "encoder_layerdrop"},
                                      {"decoder.layerdrop: ", "decoder_layerdrop"},
                                      {"kinds.E.heads: ", "encoder_attention_heads"},
                                      {"kinds.D.heads: ", "decoder_attention_heads"},
                                      {"kinds.E.attention_dropout: ", "attention_dropout"},
                                      {"kinds.E.ffn: ", "encoder_ffn_dim"},
                                      {"kinds.D.ffn: ", "decoder_ffn_dim"},
                                      {"translate.beam: ", "num_beams"},
                                      {"translate.length_penalty: ", "length_penalty"},
                                      {"translate.max_len_b: ", "max_length"},
                                      {NULL, NULL}};
  return tarn__marian_describe(s, keys);
}

// The first existing tensor of several names, ended by NULL; *name is its name, or the first one.
static const tarn__stored *find_first(const source *s, const char *const *names, const char **name) {
  *name = *names;
  for (const char *const *at = names; *at; at++) {
    const tarn__stored *tensor = tarn__hf_tensors_find(&s->import.tensors, *at);
    if (!tensor) continue;
    *name = *at;
    return tensor;
  }
  return NULL;
}

// A matrix of embeddings under all its names, which must agree if tied.
static tarn_status take_words(source *s, const char *const *names, const char *ours, bool set) {
  const char *name[TARN__HF_PARTS] = {NULL};
  const tarn__stored *const tensors[TARN__HF_PARTS] = {find_first(s, names, &name[0])};
  return tarn__hf_import_parts(&s->import, ours, tensors, name, 0, set);
}

static const char *const ALL_WORDS[] = {TARN__MARIAN_SHARED, TARN__MARIAN_DECODER_WORDS, TARN__MARIAN_ENCODER_WORDS,
                                        TARN__MARIAN_OUTPUT, NULL};
static const char *const ENCODER_WORDS[] = {TARN__MARIAN_ENCODER_WORDS, TARN__MARIAN_SHARED, NULL};
static const char *const DECODER_WORDS[] = {TARN__MARIAN_DECODER_WORDS, TARN__MARIAN_SHARED, NULL};
static const char *const TIED_WORDS[] = {TARN__MARIAN_DECODER_WORDS, TARN__MARIAN_OUTPUT, NULL};
static const char *const OUTPUT_WORDS[] = {TARN__MARIAN_OUTPUT, NULL};

static tarn_status take_tables(source *s, bool set) {
  const tarn__marian_config *c = &s->config;
  if (c->tied && c->shared) return take_words(s, ALL_WORDS, "embeddings.weight", set);
  TARN_TRY(take_words(s, ENCODER_WORDS, "embeddings.source.weight", set));
  TARN_TRY(take_words(s, c->tied ? TIED_WORDS : DECODER_WORDS, "embeddings.target.weight", set));
  return c->tied ? TARN_STATUS_OK : take_words(s, OUTPUT_WORDS, "embeddings.output.weight", set);
}

static tarn_status take_bias(source *s, bool set) {
  const tarn__stored *tensor = tarn__hf_tensors_find(&s->import.tensors, TARN__MARIAN_BIAS);
  const size_t words = (size_t)s->config.target_vocab;
  void *memory;
  tarn__param *param;
  if (!set) return tarn__hf_tensors_check(&s->import.tensors, tensor, TARN__MARIAN_BIAS, 1, s->config.target_vocab);
  TARN_TRY(tarn__hf_import_param(&param, &s->import, "output.bias"));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, words, sizeof(float)));
  float *values = memory;
  tarn_status status = tarn__hf_tensors_read(&s->import.tensors, values, tensor, 0, words);
  // Probabilities are among all other tokens.
  if (s->config.renormalised) values[s->config.padding] = TARN__MARIAN_NEVER;
  if (status == TARN_STATUS_OK) status = tarn__param_set(param, values);
  tarn__free(memory);
  return status;
}

// Older files hold the positions, which must match the formula.
static tarn_status check_positions(source *s, const char *name, bool values) {
  const tarn__stored *tensor = tarn__hf_tensors_find(&s->import.tensors, name);
  const int64_t d = s->config.d_model, half = d / 2;
  if (!tensor) return TARN_STATUS_OK;
  if (!values) return tarn__hf_tensors_check(&s->import.tensors, tensor, name, s->config.positions, d);
  bool same = true;
  for (int64_t p = 0; p < s->config.positions && same; p++)
    for (int64_t i = 0; i < d; i++) {
      const double angle = (double)p / pow(10000.0, (double)(i % half) / (double)half);
      float value;
      TARN_TRY(tarn__hf_tensors_read(&s->import.tensors, &value, tensor, (size_t)(p * d + i), 1));
      same = same && fabs((double)value - (i < half ? sin(angle) : cos(angle))) < 0.01;
    }
  TARN_REQUIRE(same, DATA, "%s: tensor \"%s\" does not hold the sinusoids of Marian's models", s->import.tensors.path,
               tensor->name);
  return TARN_STATUS_OK;
}

static tarn_status take_all(void *user, bool set) {
  static const tarn__marian_names names = {tarn__marian_package_names, "%s.layers.%lld.", NULL, 0, ""};
  source *s = user;
  TARN_TRY(take_tables(s, set));
  TARN_TRY(take_bias(s, set));
  TARN_TRY(tarn__marian_take_stack(s, &names, &s->config.encoder, "encoder", TARN__MARIAN_ENCODER_NAMES, set));
  TARN_TRY(tarn__marian_take_stack(s, &names, &s->config.decoder, "decoder", TARN__MARIAN_LAYER_NAMES, set));
  TARN_TRY(check_positions(s, "encoder.embed_positions.weight", set));
  return check_positions(s, "decoder.embed_positions.weight", set);
}

// A file may repeat shared tensors, and hold an unused matrix.
static tarn_status check_rest(const void *user) {
  const source *s = user;
  const bool all = s->config.tied && s->config.shared;
  const char *name;
  const tarn__stored *first = find_first(s, all ? ALL_WORDS : TIED_WORDS, &name);
  for (size_t i = 0; i < s->import.tensors.count; i++) {
    const tarn__stored *tensor = &s->import.tensors.tensors[i];
    if (s->import.tensors.used[i]) continue;
    bool copy = false;
    for (const char *const *at = ALL_WORDS; *at; at++)
      copy = copy || tarn__hf_tensors_find(&s->import.tensors, *at) == tensor;
    TARN_REQUIRE(copy, DATA, "%s: tensor \"%s\" is none of a Marian model of %lld and %lld layers",
                 s->import.tensors.path, tensor->name, (long long)s->config.encoder.layers,
                 (long long)s->config.decoder.layers);
    const bool tied =
        all || (s->config.tied && tensor == tarn__hf_tensors_find(&s->import.tensors, TARN__MARIAN_OUTPUT));
    if (tied) TARN_TRY(tarn__hf_import_same(&s->import, tensor, first));
  }
  return TARN_STATUS_OK;
}

static tarn_status import(source *s, const char *output, const char *vocab, const char *target_vocab) {
  TARN_TRY(open_files(s));
  TARN_TRY(open_vocabs(s, vocab, target_vocab));
  TARN_TRY(describe(s));
  const tarn__hf_import_steps steps = {.take = take_all, .check_rest = check_rest, .user = s};
  return tarn__hf_import_write(&s->import, output, s->config.vocab, &steps);
}

tarn_status tarn_checkpoint_import_marian(const char *output, const char *folder, const char *vocab,
                                          const char *target_vocab) {
  source s = {.import.folder = folder};
  if (tarn__marian_is_own(folder)) return tarn__marian_own_import(output, folder, vocab, target_vocab);
  tarn_status status = tarn__hf_tensors_judge(&s.import.tensors, import(&s, output, vocab, target_vocab));
  tarn__hf_import_close(&s.import);
  return status;
}
