// Imports a translation model from a folder of Marian's own files (marian-nmt.github.io), such as those of OPUS-MT. Its
// arithmetic differs from what the package transformers makes of the same weights: the frequencies of the sinusoids are
// 10000^(-i/(d/2 - 1)), and the epsilon of norms is 1e-6.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "foreign/marian_format.h"
#include "foreign/npz_file.h"
#include "tarn/lab/foreign.h"
#include "text/marian_own.h"
#include "text/vocab_formats.h"

#define SETTINGS "special:model.yml"  // the array of the weights that holds settings, as text
#define ALL_WORDS "Wemb"
#define OUTPUT "decoder_ff_logit_out"

// Opens the weights that decoder.yml names, and reads the settings of both.
static tarn_status read_settings(tarn__marian_source *s, tarn__npz_file *file, json_t *decoder, char *weights,
                                 char *origin, size_t room) {
  tarn__hf_tensors *tensors = &s->import.tensors;
  TARN_TRY(tarn__marian_file(weights, s->import.folder, decoder, TARN__MARIAN_MODELS, 1, false, TARN__MARIAN_WEIGHTS));
  TARN_TRY(tarn__npz_open(file, tensors, weights));
  const tarn__stored *settings = tarn__hf_tensors_find(tensors, SETTINGS);
  TARN_REQUIRE(settings && settings->dims == 1 && strcmp(settings->dtype, "I8") == 0, DATA,
               "%s: it has no array of bytes \"" SETTINGS "\", as Marian's models have", weights);
  tensors->used[settings - tensors->tensors] = true;
  snprintf(origin, room, "%.900s, " SETTINGS, weights);
  s->import.settings = origin;
  return tarn__marian_own_config(&s->config, origin, decoder, s->import.folder, settings->data,
                                 strnlen(settings->data, settings->bytes));
}

// A vocabulary that is given is one that was imported from such a folder: its last token stands for the zeros too.
static tarn_status open_side(const tarn__marian_source *s, tarn_vocab **vocab, const char *given, bool target) {
  TARN_TRY(given ? tarn_vocab_open(vocab, given) : tarn__vocab_open_marian(vocab, s->import.folder, target));
  const int64_t rows = target ? s->config.target_vocab : s->config.vocab;
  TARN_REQUIRE(tarn_vocab_size(*vocab) == rows + 1, DATA,
               "the vocabulary of the %s has %d tokens, of which one is what the decoder reads first, but %s says %lld "
               "(\"dim-vocabs\")",
               target ? "target" : "source", tarn_vocab_size(*vocab), s->import.settings, (long long)rows);
  TARN_REQUIRE(tarn__marian_is_start(tarn_vocab_piece(*vocab, (int32_t)rows)), DATA,
               "the last token of the vocabulary of the %s is \"%.40s\", and not the one that the decoder reads first: "
               "give one that tarn made of this model's files, or none",
               target ? "target" : "source", tarn_vocab_piece(*vocab, (int32_t)rows));
  return TARN_STATUS_OK;
}

// The last token is what the decoder reads first.
static tarn_status open_vocabs(tarn__marian_source *s, const char *given, const char *target) {
  TARN_TRY(open_side(s, &s->import.vocab, given, false));
  TARN_TRY(open_side(s, &s->import.target_vocab, target ? target : given, true));
  s->config.start = s->config.padding = s->config.target_vocab;
  return TARN_STATUS_OK;
}

static tarn_status describe(tarn__marian_source *s) {
  static const tarn__hf_key keys[] = {{"model.d_model: ", "dim-emb"},
                                      {"model.max_length: ", "max-length"},
                                      {"model.dropout: ", "transformer-dropout"},
                                      {"encoder.layers: ", "enc-depth"},
                                      {"decoder.layers: ", "dec-depth"},
                                      {"kinds.E.heads: ", "transformer-heads"},
                                      {"kinds.D.heads: ", "transformer-heads"},
                                      {"kinds.E.attention_dropout: ", "transformer-dropout-attention"},
                                      {"kinds.E.ffn: ", "transformer-dim-ffn"},
                                      {"kinds.D.ffn: ", "transformer-decoder-dim-ffn"},
                                      {"translate.beam: ", "beam-size"},
                                      {"translate.length_penalty: ", "normalize"},
                                      {"translate.max_len_a: ", "max-length-factor"},
                                      {NULL, NULL}};
  return tarn__marian_describe(s, keys);
}

// A parameter with a row, or of a vector with a number, more than the tensor: that of the token that the decoder reads
// first, whose numbers are `last`. With `turned` the tensor is [d_model, words].
static tarn_status take_words(tarn__marian_source *s, const char *theirs, const char *ours, float last, bool turned,
                              bool set) {
  tarn__hf_tensors *tensors = &s->import.tensors;
  const tarn__stored *tensor = tarn__hf_tensors_find(tensors, theirs);
  tarn__param *param;
  void *memory;
  TARN_TRY(tarn__hf_import_param(&param, &s->import, ours));
  const bool vector = param->rows == 1;
  const int64_t words = (vector ? param->cols : param->rows) - 1, width = vector ? 1 : param->cols;
  if (!set)
    return tarn__hf_tensors_check(tensors, tensor, theirs,
                                  vector   ? 1
                                  : turned ? width
                                           : words,
                                  vector || turned ? words : width);
  TARN_TRY(
      tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)((turned ? 2 * words + 1 : words + 1) * width), sizeof(float)));
  float *values = memory, *stored = turned ? values + (words + 1) * width : values;
  tarn_status status = tarn__hf_tensors_read(tensors, stored, tensor, 0, (size_t)(words * width));
  for (int64_t w = 0; turned && w < words; w++)
    for (int64_t i = 0; i < width; i++) values[w * width + i] = stored[i * words + w];
  for (int64_t i = 0; i < width; i++) values[words * width + i] = last;
  if (status == TARN_STATUS_OK) status = tarn__param_set(param, values);
  tarn__free(memory);
  return status;
}

static tarn_status take_tables(tarn__marian_source *s, bool set) {
  const tarn__marian_config *c = &s->config;
  if (c->tied && c->shared) return take_words(s, ALL_WORDS, "embeddings.weight", 0.0f, false, set);
  if (c->shared) TARN_TRY(take_words(s, ALL_WORDS, "embeddings.source.weight", 0.0f, false, set));
  if (!c->shared) TARN_TRY(take_words(s, "encoder_Wemb", "embeddings.source.weight", 0.0f, false, set));
  if (!c->shared) TARN_TRY(take_words(s, "decoder_Wemb", "embeddings.target.weight", 0.0f, false, set));
  if (c->tied) return TARN_STATUS_OK;
  // Older models have the output's matrix the other way around.
  const bool turned = tarn__hf_tensors_find(&s->import.tensors, OUTPUT "_W") != NULL;
  return take_words(s, turned ? OUTPUT "_W" : OUTPUT "_Wt", "embeddings.output.weight", 0.0f, turned, set);
}

// Marian's probabilities are among the words, without what the decoder reads first. A model may lack the bias.
static tarn_status take_bias(tarn__marian_source *s, bool set) {
  tarn__param *param;
  if (tarn__hf_tensors_find(&s->import.tensors, OUTPUT "_b"))
    return take_words(s, OUTPUT "_b", "output.bias", TARN__MARIAN_NEVER, false, set);
  TARN_TRY(tarn__hf_import_param(&param, &s->import, "output.bias"));
  if (!set) return TARN_STATUS_OK;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)param->cols, sizeof(float)));
  ((float *)memory)[param->cols - 1] = TARN__MARIAN_NEVER;
  const tarn_status status = tarn__param_set(param, memory);
  tarn__free(memory);
  return status;
}

static tarn_status take_all(void *user, bool set) {
  static const char *const top[2] = {"%s_top_ln_scale", "%s_top_ln_bias"};
  tarn__marian_source *s = user;
  const tarn__marian_names names = {tarn__marian_own_names, "%s_l%lld_", NULL, 1, s->config.pre ? "_pre" : ""};
  TARN_TRY(take_tables(s, set));
  TARN_TRY(take_bias(s, set));
  TARN_TRY(tarn__marian_take_stack(s, &names, &s->config.encoder, "encoder", TARN__MARIAN_ENCODER_NAMES, set));
  TARN_TRY(tarn__marian_take_stack(s, &names, &s->config.decoder, "decoder", TARN__MARIAN_LAYER_NAMES, set));
  TARN_TRY(tarn__marian_take_top(s, "encoder", "encoder", top, set));
  return tarn__marian_take_top(s, "decoder", "decoder", top, set);
}

static tarn_status check_rest(const void *user) {
  const tarn__marian_source *s = user;
  for (size_t i = 0; i < s->import.tensors.count; i++)
    TARN_REQUIRE(s->import.tensors.used[i], DATA, "%s: array \"%s\" is none of a Transformer of %lld and %lld layers",
                 s->import.tensors.path, s->import.tensors.tensors[i].name, (long long)s->config.encoder.layers,
                 (long long)s->config.decoder.layers);
  return TARN_STATUS_OK;
}

static tarn_status import(tarn__marian_source *s, tarn__npz_file *file, json_t *decoder, const char *output,
                          const char *vocab, const char *target_vocab) {
  char weights[PATH_MAX], origin[1024];
  TARN_TRY(read_settings(s, file, decoder, weights, origin, sizeof origin));
  TARN_TRY(open_vocabs(s, vocab, target_vocab));
  TARN_TRY(describe(s));
  s->import.transposed = true;
  return tarn__hf_import_write(&s->import, output, tarn_vocab_size(s->import.vocab),
                               &(tarn__hf_import_steps){.take = take_all, .check_rest = check_rest, .user = s});
}

tarn_status tarn__marian_own_import(const char *output, const char *folder, const char *vocab,
                                    const char *target_vocab) {
  tarn__marian_source s = {.import.folder = folder};
  tarn__npz_file file = {0};
  json_t *decoder;
  TARN_TRY(tarn__marian_decoder_read(&decoder, folder));
  const tarn_status status =
      tarn__hf_tensors_judge(&s.import.tensors, import(&s, &file, decoder, output, vocab, target_vocab));
  json_decref(decoder);
  tarn__hf_import_close(&s.import);
  tarn__npz_close(&file);
  return status;
}
