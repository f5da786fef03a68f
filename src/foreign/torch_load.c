// Imports a translation model of PyTorch's nn.Transformer.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "foreign/torch_format.h"
#include "text/vocab_formats.h"

typedef tarn__torch_source source;

// Names of a layer's norms differ between encoder and decoder. The products of the decoder's cross-attention have none
// here, as they are parts of one matrix there (take_cross()).
// clang-format off
#define LAYER_NAMES                                                                                     \
  {"self_attn.in_proj_weight"}, {"self_attn.in_proj_bias"}, {"self_attn.out_proj.weight"},              \
      {"self_attn.out_proj.bias"}, {"norm1.weight"}, {"norm1.bias"}, {"linear1.weight"}, {"linear1.bias"}, \
      {"linear2.weight"}, {"linear2.bias"}
static tarn__marian_parts encoder_names[TARN__MARIAN_ENCODER_NAMES] = {LAYER_NAMES, {"norm2.weight"}, {"norm2.bias"}};
static tarn__marian_parts decoder_names[TARN__MARIAN_LAYER_NAMES] = {
    LAYER_NAMES, {"norm3.weight"}, {"norm3.bias"}, {NULL}, {NULL}, {NULL}, {NULL},
    {"multihead_attn.out_proj.weight"}, {"multihead_attn.out_proj.bias"}, {"norm2.weight"}, {"norm2.bias"}};
// clang-format on

static bool ends_with_any(const char *name, const char *const *ends) {
  for (; *ends; ends++)
    if (tarn__hf_ends(name, *ends)) return true;
  return false;
}

// Sines and cosines alternate there, and here all sines come first. A model is the same function with the numbers of
// every vector of width d_model in another order: columns of what reads such vectors, rows of what makes them. Which of
// `rows` and `cols` is d_model is known by the name: the other one may be 1, as that of a vector is.
static tarn_status arrange(const void *user, const char *name, float *values, int64_t rows, int64_t cols) {
  static const char *const readers[] = {".qkv.weight", ".q.weight", ".kv.weight", ".ffn.in.weight", NULL};
  static const char *const writers[] = {".out.weight", ".out.bias", ".gain", ".norm.bias", NULL};
  const int64_t d = ((const source *)user)->base.config.d_model, half = d / 2;
  const bool reads = strncmp(name, "embeddings.", 11) == 0 || ends_with_any(name, readers);
  const bool writes = !reads && ends_with_any(name, writers);
  if (!reads && !writes) return TARN_STATUS_OK;
  // Each of these lines has d places of `width` numbers, which change places.
  const int64_t width = reads ? 1 : rows * cols / d, lines = reads ? rows * cols / d : 1;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)(d * width), sizeof *values));
  float *line = memory;
  for (int64_t l = 0; l < lines; l++) {
    float *own = values + l * d * width;
    memcpy(line, own, (size_t)(d * width) * sizeof *line);
    for (int64_t i = 0; i < d; i++)
      memcpy(own + i * width, line + (i < half ? 2 * i : 2 * (i - half) + 1) * width, (size_t)width * sizeof *line);
  }
  tarn__free(memory);
  return TARN_STATUS_OK;
}

// Sets a parameter to the numbers of a checked tensor from `first` on.
static tarn_status set_from(const source *s, const char *ours, const tarn__stored *tensor, size_t first) {
  tarn__param *param;
  void *memory;
  TARN_TRY(tarn__hf_import_param(&param, &s->base.import, ours));
  const size_t count = (size_t)(param->rows * param->cols);
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof(float)));
  tarn_status status = tarn__hf_tensors_read(&s->base.import.tensors, memory, tensor, first, count);
  if (status == TARN_STATUS_OK && s->interleaved) status = arrange(s, ours, memory, param->rows, param->cols);
  if (status == TARN_STATUS_OK) status = tarn__param_set(param, memory);
  tarn__free(memory);
  return status;
}

// The queries of cross-attention are of the decoder's stream, keys and values of the encoder's output.
static tarn_status take_cross(source *s, int64_t layer, bool weight, bool set) {
  const int64_t d = s->base.config.d_model;
  const char *end = weight ? "weight" : "bias";
  char theirs[2 * TARN__TORCH_NAME], ours[96];
  snprintf(theirs, sizeof theirs, "%slayers.%lld.%s", s->stacks[TARN__SIDE_TARGET], (long long)layer,
           weight ? TARN__TORCH_CROSS_WEIGHT : TARN__TORCH_CROSS_BIAS);
  const tarn__stored *tensor = tarn__hf_tensors_find(&s->base.import.tensors, theirs);
  if (!set)
    return tarn__hf_tensors_check(&s->base.import.tensors, tensor, theirs, weight ? 3 * d : 1, weight ? d : 3 * d);
  snprintf(ours, sizeof ours, "decoder.layer%lld.cross_attn.q.%s", (long long)layer + 1, end);
  TARN_TRY(set_from(s, ours, tensor, 0));
  snprintf(ours, sizeof ours, "decoder.layer%lld.cross_attn.kv.%s", (long long)layer + 1, end);
  return set_from(s, ours, tensor, (size_t)(weight ? d * d : d));
}

static tarn_status take_stacks(source *s, bool set) {
  static const char *const top[2] = {"%snorm.weight", "%snorm.bias"};
  const tarn__marian_names encoder = {encoder_names, "%slayers.%lld.", s->stacks[TARN__SIDE_SOURCE], 0, ""};
  const tarn__marian_names decoder = {decoder_names, "%slayers.%lld.", s->stacks[TARN__SIDE_TARGET], 0, ""};
  tarn__marian_source *base = &s->base;
  TARN_TRY(tarn__marian_take_stack(base, &encoder, &base->config.encoder, "encoder", TARN__MARIAN_ENCODER_NAMES, set));
  TARN_TRY(tarn__marian_take_stack(base, &decoder, &base->config.decoder, "decoder", TARN__MARIAN_LAYER_NAMES, set));
  for (int64_t l = 0; l < base->config.decoder.layers; l++) {
    TARN_TRY(take_cross(s, l, true, set));
    TARN_TRY(take_cross(s, l, false, set));
  }
  TARN_TRY(tarn__marian_take_top(base, "encoder", s->stacks[TARN__SIDE_SOURCE], top, set));
  return tarn__marian_take_top(base, "decoder", s->stacks[TARN__SIDE_TARGET], top, set);
}

// Tables of the sinusoids were compared with them, and are made anew.
static tarn_status take_positions(source *s, bool set) {
  static const char *const ours[] = {"embeddings.source_positions.weight", "embeddings.target_positions.weight"};
  tarn__hf_tensors *tensors = &s->base.import.tensors;
  for (int i = 0; i < TARN__TORCH_SIDES; i++) {
    const tarn__stored *tensor = *s->positions[i] ? tarn__hf_tensors_find(tensors, s->positions[i]) : NULL;
    if (tensor) tensors->used[tensor - tensors->tensors] = true;
    if (set && !s->interleaved) TARN_TRY(set_from(s, ours[i], tensor, 0));
  }
  return TARN_STATUS_OK;
}

static tarn_status take_all(void *user, bool set) {
  source *s = user;
  const char *const tables[TARN__MARIAN_TABLES] = {
      s->tables[TARN__MARIAN_SOURCE_TABLE], s->tables[TARN__MARIAN_TARGET_TABLE], s->tables[TARN__MARIAN_OUTPUT_TABLE]};
  TARN_TRY(tarn__marian_take_tables(&s->base, tables, set));
  if (!s->base.config.unbiased) TARN_TRY(tarn__marian_take_one(&s->base, s->bias, "output.bias", 0, set));
  TARN_TRY(take_positions(s, set));
  return take_stacks(s, set);
}

static tarn_status check_rest(const void *user) {
  const source *s = user;
  const tarn__hf_tensors *tensors = &s->base.import.tensors;
  const char *const tables[TARN__MARIAN_TABLES] = {
      s->tables[TARN__MARIAN_SOURCE_TABLE], s->tables[TARN__MARIAN_TARGET_TABLE], s->tables[TARN__MARIAN_OUTPUT_TABLE]};
  const int64_t layers[] = {s->base.config.encoder.layers, s->base.config.decoder.layers};
  for (size_t i = 0; i < tensors->count; i++) {
    const char *name = tensors->tensors[i].name, *own = name;
    if (strncmp(name, TARN__TORCH_PREFIX, strlen(TARN__TORCH_PREFIX)) == 0) own += strlen(TARN__TORCH_PREFIX);
    const tarn__stored *found = tarn__hf_tensors_find(tensors, own);
    TARN_REQUIRE(!found || found == &tensors->tensors[i], DATA, "%s: there are both \"%s\" and \"%s\"", tensors->path,
                 name, found->name);
    TARN_REQUIRE(tensors->used[i] || tarn__marian_is_copy(&s->base.config, tables, name) ||
                     tarn__marian_is_copy(&s->base.config, tables, own),
                 DATA,
                 "%s: tensor \"%s\" does not belong to an nn.Transformer with %lld encoder layer%s and %lld decoder "
                 "layer%s",
                 tensors->path, name, (long long)layers[TARN__SIDE_SOURCE], layers[TARN__SIDE_SOURCE] == 1 ? "" : "s",
                 (long long)layers[TARN__SIDE_TARGET], layers[TARN__SIDE_TARGET] == 1 ? "" : "s");
  }
  return TARN_STATUS_OK;
}

// The vocabulary of a side: a list of tokens, whose texts SentencePiece may cut, or its model alone.
static tarn_status open_side(const source *s, tarn_vocab **vocab, const char *given, int side, int64_t rows) {
  static const char *const lists[] = {"tokens.source.txt", "tokens.target.txt"};
  static const char *const models[] = {"source.spm", "target.spm"};
  const char *folder = s->base.import.folder;
  char path[PATH_MAX], model[PATH_MAX];
  TARN_TRY(tarn__path_join(path, folder, lists[side]));
  TARN_TRY(tarn__path_join(model, folder, models[side]));
  const bool list = tarn__file_exists(path);
  TARN_REQUIRE(given || list || tarn__file_exists(model), DATA, "%s: there is neither %s nor %s", folder, lists[side],
               models[side]);
  const char *from = given ? given : list ? path : model;
  TARN_TRY(tarn_vocab_open(vocab, from));
  TARN_REQUIRE(tarn_vocab_size(*vocab) == rows, DATA,
               "%s: the vocabulary has %d tokens, but tensor \"%s\" has %lld rows", from, tarn_vocab_size(*vocab),
               s->tables[side], (long long)rows);
  const bool begins = side == TARN__SIDE_TARGET || s->begins, prefixed = tarn__vocab_is_prefixed(*vocab);
  TARN_REQUIRE(begins ? tarn_vocab_bos(*vocab) >= 0 : !prefixed, DATA,
               begins ? "%s: it has no beginning-of-sentence token such as <bos>%s"
                      : "%s: this vocabulary puts a token in front of each text, but \"source_bos\" is false%s",
               from, begins && side == TARN__SIDE_SOURCE ? "; add one, or set \"source_bos\" to false" : "");
  TARN_REQUIRE(side == TARN__SIDE_SOURCE || !prefixed, DATA,
               "%s: this vocabulary puts a token in front of each text, which is for a source; name that of the target "
               "too",
               from);
  return TARN_STATUS_OK;
}

static tarn_status open_vocabs(source *s, const char *vocab, const char *target_vocab) {
  tarn__hf_import *import = &s->base.import;
  tarn__marian_config *c = &s->base.config;
  tarn_vocab *plain;
  TARN_TRY(
      open_side(s, &import->target_vocab, target_vocab ? target_vocab : vocab, TARN__SIDE_TARGET, c->target_vocab));
  c->start = tarn_vocab_bos(import->target_vocab);
  const tarn_status status = open_side(s, &plain, vocab, TARN__SIDE_SOURCE, c->vocab);
  if (status != TARN_STATUS_OK || !s->begins) {
    import->vocab = plain;
    return status;
  }
  const tarn_status made = tarn__vocab_open_prefixed(&import->vocab, plain, tarn_vocab_bos(plain));
  tarn_vocab_close(&plain);
  return made;
}

static tarn_status describe(source *s) {
  const tarn__hf_key keys[] = {{"model.d_model: ", s->tables[TARN__MARIAN_SOURCE_TABLE]},
                               {"model.positions: ", s->tables[TARN__MARIAN_SOURCE_TABLE]},
                               {"model.norm_type: ", "layer_norm_eps"},
                               {"model.norm_type.epsilon: ", "layer_norm_eps"},
                               {"model.max_length: ", "max_length"},
                               {"model.dropout: ", "dropout"},
                               {"encoder.layers: ", "num_encoder_layers"},
                               {"decoder.layers: ", "num_decoder_layers"},
                               {"kinds.E.heads: ", "nhead"},
                               {"kinds.D.heads: ", "nhead"},
                               {"kinds.E.attention_dropout: ", "dropout"},
                               {"kinds.D.attention_dropout: ", "dropout"},
                               {"kinds.E.ffn: ", "dim_feedforward"},
                               {"kinds.D.ffn: ", "dim_feedforward"},
                               {NULL, NULL}};
  s->base.import.arrange = s->interleaved ? arrange : NULL;
  s->base.import.arranger = s;
  s->base.import.arranged = 1;
  return tarn__marian_describe(&s->base, keys);
}

static tarn_status import(source *s, const char *output, const char *vocab, const char *target_vocab) {
  TARN_TRY(tarn__hf_import_tensors(&s->base.import, TARN__TORCH_PREFIX));
  TARN_TRY(tarn__torch_config(s));
  TARN_TRY(open_vocabs(s, vocab, target_vocab));
  TARN_TRY(describe(s));
  const tarn__hf_import_steps steps = {.take = take_all, .check_rest = check_rest, .user = s};
  return tarn__hf_import_write(&s->base.import, output, s->base.config.vocab, &steps);
}

tarn_status tarn__torch_import(const char *output, const char *folder, const char *vocab, const char *target_vocab) {
  source s = {.base.import.folder = folder};
  const tarn_status status = tarn__hf_tensors_judge(&s.base.import.tensors, import(&s, output, vocab, target_vocab));
  tarn__hf_import_close(&s.base.import);
  return status;
}
