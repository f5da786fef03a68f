// The settings of a model of nn.Transformer: config.json for what tensors do not tell, such as the number of heads, and
// for names of modules that are not those of PyTorch's tutorial.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "foreign/half_floats.h"
#include "foreign/torch_format.h"
#include "parts/table/part_table.h"
#include "tarn/text.h"

enum { POSITIONS = 5000, LONGER = 6 };  // of the tutorial: rows of positions, and tokens beyond those of the source

static const char *const KNOWN[] = {
    "model_type",       "nhead",      "d_model",          "num_encoder_layers", "num_decoder_layers", "dim_feedforward",
    "dropout",          "activation", "layer_norm_eps",   "norm_first",         "scale_embedding",    "source_bos",
    "encoder",          "decoder",    "source_embedding", "target_embedding",   "generator",          "positions",
    "target_positions", "max_length"};
enum { KNOWN_KEYS = sizeof KNOWN / sizeof *KNOWN };

static const char LAYER[] = "layers.0.self_attn.in_proj_weight", CROSS[] = "layers.0." TARN__TORCH_CROSS_WEIGHT,
                  SINUSOIDS[] = "sinusoidal";
static const char *const SIDES[TARN__TORCH_SIDES] = {"encoder", "decoder"};

static const tarn__stored *find(const tarn__torch_source *s, const char *before, const char *name) {
  char full[2 * TARN__TORCH_NAME];
  snprintf(full, sizeof full, "%s%s", before, name);
  return tarn__hf_tensors_find(&s->base.import.tensors, full);
}

// Fails for a missing tensor, which a key of config.json may name, and suggests a similar one.
static tarn_status fail_missing(const tarn__hf_config *file, const tarn__torch_source *s, const char *name,
                                const char *key) {
  const tarn__hf_tensors *tensors = &s->base.import.tensors;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, tensors->count + 1, sizeof(const char *)));
  const char **names = memory;
  for (size_t i = 0; i < tensors->count; i++) names[i] = tensors->tensors[i].name;
  const char *near = tarn_text_nearest(name, names, tensors->count);
  const tarn_status status = tarn__fail(
      TARN_STATUS_DATA, "%s: there is no tensor \"%s\"%s%s%s; the module is named by \"%s\" of %s", tensors->path, name,
      near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "", key, file->path);
  tarn__free(memory);
  return status;
}

// The name of a module; `other` if there is no such key.
static tarn_status read_name(const tarn__hf_config *file, char name[TARN__TORCH_NAME], const char *key,
                             const char *other) {
  const char *word;
  TARN_TRY(tarn__hf_word(file, &word, key, other));
  TARN_REQUIRE(strlen(word) < TARN__TORCH_NAME - 16, DATA, "%s: \"%s\" is longer than %d bytes", file->path, key,
               TARN__TORCH_NAME - 17);
  snprintf(name, TARN__TORCH_NAME, "%s", word);
  return TARN_STATUS_OK;
}

// The one stack of a side among the tensors, if config.json does not name it.
static tarn_status find_stack(const tarn__hf_config *file, tarn__torch_source *s, int side) {
  const tarn__hf_tensors *tensors = &s->base.import.tensors;
  char *found = s->stacks[side];
  bool any = false;
  for (size_t i = 0; i < tensors->count; i++) {
    const char *name = tensors->tensors[i].name;
    const size_t length = strlen(name);
    char before[TARN__TORCH_NAME];
    if (!tarn__hf_ends(name, LAYER) || length - strlen(LAYER) >= sizeof before) continue;
    snprintf(before, sizeof before, "%.*s", (int)(length - strlen(LAYER)), name);
    if ((find(s, before, CROSS) != NULL) != (side == TARN__SIDE_TARGET)) continue;
    TARN_REQUIRE(!any, DATA,
                 "%s: \"%s"
                 "%s\" and \"%s\" belong to two stacks; choose one with \"%s\" of %s",
                 tensors->path, found, LAYER, name, SIDES[side], file->path);
    memcpy(found, before, sizeof before);
    any = true;
  }
  TARN_REQUIRE(any, DATA, "%s: there is no tensor \"%s.%s\", which nn.Transformer has", tensors->path, SIDES[side],
               side == TARN__SIDE_TARGET ? CROSS : LAYER);
  return TARN_STATUS_OK;
}

static tarn_status read_stack_name(const tarn__hf_config *file, tarn__torch_source *s, int side) {
  char *name = s->stacks[side];
  if (!tarn__hf_value(file, SIDES[side])) return find_stack(file, s, side);
  TARN_TRY(read_name(file, name, SIDES[side], NULL));
  if (*name) strcat(name, ".");
  TARN_REQUIRE(side == TARN__SIDE_TARGET || !find(s, name, CROSS), DATA,
               "%s: \"%s\" names a stack with cross-attention (\"%s%s\"), which an encoder does not have", file->path,
               SIDES[side], name, CROSS);
  if (find(s, name, LAYER)) return TARN_STATUS_OK;
  char full[2 * TARN__TORCH_NAME];
  snprintf(full, sizeof full, "%s%s", name, LAYER);
  return fail_missing(file, s, full, SIDES[side]);
}

// A matrix whose shape gives sizes.
static tarn_status matrix(const tarn__hf_config *file, const tarn__torch_source *s, const tarn__stored **tensor,
                          const char *name, const char *key) {
  *tensor = tarn__hf_tensors_find(&s->base.import.tensors, name);
  if (!*tensor) return fail_missing(file, s, name, key);
  return tarn__hf_tensors_sizes(&s->base.import.tensors, *tensor);
}

static tarn_status read_words(const tarn__hf_config *file, tarn__torch_source *s) {
  static const char *const keys[TARN__MARIAN_TABLES] = {"source_embedding", "target_embedding", "generator"};
  static const char *const others[TARN__MARIAN_TABLES] = {"src_tok_emb.embedding", "tgt_tok_emb.embedding",
                                                          "generator"};
  const tarn__stored *tables[TARN__MARIAN_TABLES];
  tarn__marian_config *c = &s->base.config;
  for (int i = 0; i < TARN__MARIAN_TABLES; i++) {
    char name[TARN__TORCH_NAME];
    TARN_TRY(read_name(file, name, keys[i], others[i]));
    if (i == TARN__MARIAN_OUTPUT_TABLE) snprintf(s->bias, sizeof s->bias, "%.*s.bias", TARN__TORCH_NAME - 16, name);
    snprintf(s->tables[i], sizeof s->tables[i], "%.*s.weight", TARN__TORCH_NAME - 16, name);
    TARN_TRY(matrix(file, s, &tables[i], s->tables[i], keys[i]));
  }
  tarn__marian_find_shared(c, tables[TARN__MARIAN_SOURCE_TABLE], tables[TARN__MARIAN_TARGET_TABLE],
                           tables[TARN__MARIAN_OUTPUT_TABLE]);
  c->vocab = tables[TARN__MARIAN_SOURCE_TABLE]->shape[0];
  c->target_vocab = tables[TARN__MARIAN_TARGET_TABLE]->shape[0];
  c->d_model = tables[TARN__MARIAN_SOURCE_TABLE]->shape[1];
  c->unbiased = find(s, s->bias, "") == NULL;
  return tarn__hf_demand_size(file, "d_model", c->d_model, s->base.import.tensors.path);
}

static tarn_status read_stack(const tarn__hf_config *file, tarn__torch_source *s, int side) {
  static const char *const keys[TARN__TORCH_SIDES] = {"num_encoder_layers", "num_decoder_layers"};
  const char *path = s->base.import.tensors.path;
  tarn__marian_stack *stack = side == TARN__SIDE_SOURCE ? &s->base.config.encoder : &s->base.config.decoder;
  char name[2 * TARN__TORCH_NAME];
  const tarn__stored *ffn;
  TARN_TRY(read_stack_name(file, s, side));
  snprintf(name, sizeof name, "%slayers.0.linear1.weight", s->stacks[side]);
  TARN_TRY(matrix(file, s, &ffn, name, SIDES[side]));
  stack->ffn = ffn->shape[0];
  for (stack->layers = 0; ffn; stack->layers++) {
    snprintf(name, sizeof name, "layers.%lld.linear1.weight", (long long)stack->layers + 1);
    ffn = find(s, s->stacks[side], name);
  }
  stack->top = find(s, s->stacks[side], "norm.weight") != NULL;
  TARN_TRY(tarn__hf_check_layers(file, keys[side], stack->layers));
  TARN_TRY(tarn__hf_demand_size(file, keys[side], stack->layers, path));
  TARN_TRY(tarn__hf_demand_size(file, "dim_feedforward", stack->ffn, path));
  TARN_TRY(tarn__hf_size(file, &stack->heads, "nhead", 0));
  TARN_REQUIRE(s->base.config.d_model % stack->heads == 0, DATA,
               "%s: \"nhead\" is %lld, which does not divide the width of \"%s\" (%lld)", file->path,
               (long long)stack->heads, s->tables[TARN__MARIAN_SOURCE_TABLE], (long long)s->base.config.d_model);
  return TARN_STATUS_OK;
}

int64_t tarn__torch_position_rows(const tarn__stored *tensor, int64_t width) {
  int64_t rows = 1;
  if (tensor->dims < 2 || tensor->shape[tensor->dims - 1] != width) return 0;
  for (int i = 0; i + 1 < tensor->dims; i++) {
    if (tensor->shape[i] != 1 && rows != 1) return 0;
    rows *= tensor->shape[i];
  }
  return rows;
}

// Whether a table has the tutorial's sinusoids, as far as its numbers are exact: those in float are of angles that have
// a relative error.
static tarn_status judge_table(bool *sinusoids, const tarn__torch_source *s, const tarn__stored *tensor, int64_t rows) {
  const int64_t d = s->base.config.d_model;
  const double exact = strcmp(tensor->dtype, "F32") == 0 ? 1e-5 : strcmp(tensor->dtype, "F16") == 0 ? 1e-3 : 1e-2;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)d, sizeof(float)));
  const float *row = memory;
  tarn_status status = TARN_STATUS_OK;
  *sinusoids = d % 2 == 0;
  for (int64_t p = 0; p < rows && *sinusoids && status == TARN_STATUS_OK; p++) {
    status = tarn__hf_tensors_read(&s->base.import.tensors, memory, tensor, (size_t)(p * d), (size_t)d);
    for (int64_t i = 0; i < d && status == TARN_STATUS_OK; i++) {
      const double angle = (double)p * pow(10000.0, -(double)(i - i % 2) / (double)d);
      *sinusoids &= fabs((double)row[i] - (i % 2 ? cos(angle) : sin(angle))) <= exact + 4e-7 * (double)p;
    }
  }
  tarn__free(memory);
  return status;
}

static tarn_status read_table(const tarn__hf_config *file, tarn__torch_source *s, bool *sinusoids, int side,
                              const char *key) {
  const tarn__hf_tensors *tensors = &s->base.import.tensors;
  tarn__marian_config *c = &s->base.config;
  const char *name = s->positions[side];
  const tarn__stored *tensor = tarn__hf_tensors_find(tensors, name);
  if (!tensor) return fail_missing(file, s, name, key);
  const int64_t rows = tarn__torch_position_rows(tensor, c->d_model);
  TARN_REQUIRE(rows > 1 && rows <= 1 << 20 && tarn__floats_known(tensor->dtype), DATA,
               "%s: tensor \"%s\" is no table of positions of %lld numbers in F32, F16 or BF16", tensors->path, name,
               (long long)c->d_model);
  TARN_REQUIRE(c->positions == 0 || rows == c->positions, DATA,
               "%s: tensors \"%s\" and \"%s\" are of %lld and %lld positions; tarn has one number", tensors->path,
               s->positions[TARN__SIDE_SOURCE], name, (long long)c->positions, (long long)rows);
  c->positions = rows;
  return judge_table(sinusoids, s, tensor, rows);
}

// Tables of other numbers than the tutorial's sinusoids are taken as they are.
static tarn_status read_positions(const tarn__hf_config *file, tarn__torch_source *s) {
  tarn__marian_config *c = &s->base.config;
  bool sinusoids[TARN__TORCH_SIDES] = {true, true};
  TARN_TRY(read_name(file, s->positions[TARN__SIDE_SOURCE], "positions", "positional_encoding.pos_embedding"));
  TARN_TRY(read_name(file, s->positions[TARN__SIDE_TARGET], "target_positions", s->positions[TARN__SIDE_SOURCE]));
  for (int i = 0; i < TARN__TORCH_SIDES; i++) {
    const char *key = i == TARN__SIDE_SOURCE ? "positions" : "target_positions";
    if (strcmp(s->positions[i], SINUSOIDS) == 0)
      s->positions[i][0] = '\0';
    else if (i == TARN__SIDE_TARGET && strcmp(s->positions[i], s->positions[TARN__SIDE_SOURCE]) == 0)
      sinusoids[i] = sinusoids[TARN__SIDE_SOURCE];
    else
      TARN_TRY(read_table(file, s, &sinusoids[i], i, tarn__hf_value(file, key) ? key : "positions"));
  }
  if (c->positions > 0)
    TARN_TRY(tarn__hf_demand_size(file, "max_length", c->positions, s->base.import.tensors.path));
  else
    TARN_TRY(tarn__hf_size(file, &c->positions, "max_length", POSITIONS));
  TARN_REQUIRE(sinusoids[TARN__SIDE_SOURCE] == sinusoids[TARN__SIDE_TARGET], DATA,
               "%s: the positions of one side alone are sinusoids, and tarn has one kind for both",
               s->base.import.tensors.path);
  s->interleaved = sinusoids[TARN__SIDE_SOURCE];
  c->sinusoids = s->interleaved ? &tarn__position_sinusoidal_paper.part : &tarn__position_learned.part;
  return TARN_STATUS_OK;
}

static tarn_status read_all(const tarn__hf_config *file, tarn__torch_source *s) {
  tarn__marian_config *c = &s->base.config;
  TARN_TRY(read_words(file, s));
  TARN_TRY(read_stack(file, s, TARN__SIDE_SOURCE));
  TARN_TRY(read_stack(file, s, TARN__SIDE_TARGET));
  TARN_TRY(read_positions(file, s));
  TARN_TRY(tarn__hf_flag(file, &c->pre, "norm_first", false));
  TARN_TRY(tarn__hf_activation(file, &c->activation, "activation", "relu"));
  TARN_TRY(tarn__hf_flag(file, &c->scaled, "scale_embedding", true));
  TARN_TRY(tarn__hf_flag(file, &s->begins, "source_bos", true));
  TARN_TRY(tarn__hf_real(file, &c->epsilon, "layer_norm_eps", 1e-5));
  TARN_TRY(tarn__hf_real(file, &c->dropout, "dropout", 0.1));
  c->attention_dropout = c->dropout;
  return TARN_STATUS_OK;
}

tarn_status tarn__torch_config(tarn__torch_source *source) {
  char path[PATH_MAX];
  tarn__hf_config file = {.model = TARN__TORCH_TYPE, .known = KNOWN, .known_count = KNOWN_KEYS};
  // As the tutorial's greedy search, whose translations may be empty. The lengths count the decoder's first token and
  // the end of sentence.
  source->base.config = (tarn__marian_config){.eos = -1,
                                              .beam = 1,
                                              .longest_share = 1.0,
                                              .longest = LONGER,
                                              .shortest = 1,
                                              .length_penalty = 1.0,
                                              .early_stopping = true,
                                              .allow_unk = true,
                                              .unk = -1};
  TARN_TRY(tarn__path_join(path, source->base.import.folder, TARN__HF_CONFIG));
  TARN_TRY(tarn__hf_config_open(&file, path));
  const tarn_status status = read_all(&file, source);
  if (status == TARN_STATUS_OK) tarn__hf_tell_unknown(&file);
  tarn__hf_config_close(&file);
  return status;
}
