// A checkpoint of a translation model in the format of CTranslate2: model.bin (version 6, its TransformerSpec of
// revision 7), config.json, and the vocabularies as lists of their tokens. https://opennmt.net/CTranslate2/
//
// model.bin, little-endian: u32 version, the name of the specification, u32 revision, u32 number of variables, and of
// each its name, u8 rank, u32 extents, u8 type, u32 bytes and the values; then u32 number of aliases, and of each its
// name and that of the variable. A name is u16 length with its zero byte, and the bytes.
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "config/config_part.h"
#include "config/config_word.h"
#include "foreign/hf_config.h"
#include "foreign/hf_write.h"
#include "ops/embedding.h"
#include "parts/table/part_table.h"
#include "store/checkpoint.h"
#include "tarn/lab/foreign.h"
#include "task/task.h"
#include "text/vocab_formats.h"
#include "text/vocab_kind.h"

enum { VERSION = 6, REVISION = 7, MOST_ALIASES = 4 };
static const char SPECIFICATION[] = "TransformerSpec";

// The types of variables by our names.
static const char *const TYPES[] = {"F32", "I8", "I16"};
static const uint8_t TYPE_NUMBERS[] = {0, 1, 2};

// CTranslate2's numbers of activations.
static const struct {
  const tarn__part *part;
  int number;
} ACTIVATIONS[] = {{&tarn__activation_relu.part, 0},
                   {&tarn__activation_gelu_tanh.part, 1},
                   {&tarn__activation_swish.part, 2},
                   {&tarn__activation_gelu.part, 3}};
enum { ACTIVATION_COUNT = sizeof ACTIVATIONS / sizeof *ACTIVATIONS };

// Parameters of a layer; those after the first twelve are only in decoders.
enum { ENCODER_NAMES = 12, LAYER_NAMES = 20 };
static const tarn__hf_name NAMES[LAYER_NAMES] = {
    {{"self_attention/linear_0/weight"}, "self_attn.qkv.weight"},
    {{"self_attention/linear_0/bias"}, "self_attn.qkv.bias"},
    {{"self_attention/linear_1/weight"}, "self_attn.out.weight"},
    {{"self_attention/linear_1/bias"}, "self_attn.out.bias"},
    {{"self_attention/layer_norm/gamma"}, "self_attn.norm.gain"},
    {{"self_attention/layer_norm/beta"}, "self_attn.norm.bias"},
    {{"ffn/linear_0/weight"}, "ffn.in.weight"},
    {{"ffn/linear_0/bias"}, "ffn.in.bias"},
    {{"ffn/linear_1/weight"}, "ffn.out.weight"},
    {{"ffn/linear_1/bias"}, "ffn.out.bias"},
    {{"ffn/layer_norm/gamma"}, "ffn.norm.gain"},
    {{"ffn/layer_norm/beta"}, "ffn.norm.bias"},
    {{"attention/linear_0/weight"}, "cross_attn.q.weight"},
    {{"attention/linear_0/bias"}, "cross_attn.q.bias"},
    {{"attention/linear_1/weight"}, "cross_attn.kv.weight"},
    {{"attention/linear_1/bias"}, "cross_attn.kv.bias"},
    {{"attention/linear_2/weight"}, "cross_attn.out.weight"},
    {{"attention/linear_2/bias"}, "cross_attn.out.bias"},
    {{"attention/layer_norm/gamma"}, "cross_attn.norm.gain"},
    {{"attention/layer_norm/beta"}, "cross_attn.norm.bias"},
};

typedef struct target {
  const tarn__checkpoint *from;
  tarn__hf_writer writer;
  struct {
    const char *alias, *variable;
  } aliases[MOST_ALIASES];
  uint32_t alias_count;
} target;

// A logit that is never chosen.
static const float NEVER = -1e4f;

static const tarn_kind *kind_of(const tarn_config *config, const tarn_stack *stack, int32_t layer) {
  return &config->kinds[stack->layers[layer].kind];
}

static int activation_of(const tarn_kind *kind) {
  const tarn__part *part = tarn__kind_part(kind, "ffn.activation")->part;
  for (int i = 0; i < ACTIVATION_COUNT; i++)
    if (ACTIVATIONS[i].part == part) return ACTIVATIONS[i].number;
  return -1;
}

// The format has these settings once per stack, and the epsilon once per model.
static tarn_status check_layer(const tarn__checkpoint *c, const tarn_stack *stack, int32_t layer) {
  const tarn_kind *kind = kind_of(c->config, stack, layer), *first = kind_of(c->config, stack, 0);
  const tarn_kind *lowest = kind_of(c->config, &c->config->encoder, 0);
  const char *side = stack == &c->config->encoder ? "encoder" : "decoder";
  TARN_REQUIRE(kind->mixer.part == &tarn__mixer_attention.part, USAGE,
               "%s: layer %d of the %s (kind %s) is none of %s, as CTranslate2's are", c->path, (int)layer + 1, side,
               kind->name, tarn__mixer_attention.part.word);
  TARN_TRY(tarn__hf_check_heads(c->path, kind, "CTranslate2"));
  TARN_REQUIRE(kind->channel.part == &tarn__channel_ffn.part, USAGE,
               "%s: layer %d of the %s (kind %s) has %s as its FFN, and CTranslate2's have %s", c->path, (int)layer + 1,
               side, kind->name, tarn__kind_channel_word(kind), tarn__channel_ffn.part.word);
  const bool known = kind->norm == TARN_NORM_PRE || kind->norm == TARN_NORM_POST;
  TARN_REQUIRE(known && kind->norm == first->norm, USAGE,
               "%s: layer %d of the %s (kind %s) has norm %s; CTranslate2's are all pre or all post", c->path,
               (int)layer + 1, side, kind->name,
               known ? "unlike the first one's" : tarn__config_word("kinds.NAME.norm", (int)kind->norm));
  TARN_REQUIRE(kind->gate == TARN_GATE_NONE, USAGE,
               "%s: kind %s has gates on its branches, which CTranslate2's format does not have", c->path, kind->name);
  TARN_REQUIRE(kind->norm_type.part == &tarn__norm_layer.part, USAGE,
               "%s: norms of kind %s are of type %s, and CTranslate2's here are %s", c->path, kind->name,
               kind->norm_type.part->word, tarn__norm_layer.part.word);
  TARN_REQUIRE(tarn__hf_number(kind, "norm_type.epsilon") == tarn__hf_number(lowest, "norm_type.epsilon"), USAGE,
               "%s: norms of kinds %s and %s have different epsilons, and CTranslate2's format has one", c->path,
               lowest->name, kind->name);
  TARN_REQUIRE(activation_of(kind) >= 0 && activation_of(kind) == activation_of(first), USAGE,
               "%s: kinds %s and %s have different activations, or one that CTranslate2 does not have", c->path,
               first->name, kind->name);
  TARN_REQUIRE(tarn__hf_number(kind, "heads") == tarn__hf_number(first, "heads"), USAGE,
               "%s: kinds %s and %s have different heads, and CTranslate2's format has one number for a stack", c->path,
               first->name, kind->name);
  return TARN_STATUS_OK;
}

// The token that the decoder reads first.
static const char *start_of(const tarn__checkpoint *c) {
  const int64_t start = c->config->model.decoder_start;
  return tarn_vocab_piece(c->target, start >= 0 ? (int32_t)start : tarn_vocab_eos(c->target));
}

static tarn_status check_token(const tarn__checkpoint *c, const char *what, const char *here, const char *there) {
  TARN_REQUIRE(strcmp(here, there) == 0, USAGE,
               "%s: the %s is \"%s\" in the source and \"%s\" in the target, and CTranslate2's format has one name",
               c->path, what, here, there);
  return TARN_STATUS_OK;
}

// The format names each special token once, for both sides.
static tarn_status check_tokens(const tarn__checkpoint *c) {
  const int32_t unk[] = {tarn_vocab_unk(c->source), tarn_vocab_unk(c->target)};
  TARN_REQUIRE(unk[0] >= 0 && unk[1] >= 0, USAGE,
               "%s: CTranslate2 needs an unknown token, which its vocabulary does not have", c->path);
  TARN_TRY(check_token(c, "unknown token", tarn_vocab_piece(c->source, unk[0]), tarn_vocab_piece(c->target, unk[1])));
  TARN_TRY(check_token(c, "end of sentence", tarn_vocab_piece(c->source, tarn_vocab_eos(c->source)),
                       tarn_vocab_piece(c->target, tarn_vocab_eos(c->target))));
  if (!tarn__vocab_is_prefixed(c->source)) return TARN_STATUS_OK;
  return check_token(c, "beginning of a sentence", tarn_vocab_piece(c->source, tarn_vocab_bos(c->source)), start_of(c));
}

static tarn_status check_model(const tarn__checkpoint *c) {
  const tarn_config_model *m = &c->config->model;
  const tarn__part *positions = m->positions.part;
  const tarn__task *task = tarn__config_task(c->config);
  TARN_REQUIRE((task->uses >> TARN__USE_TRANSLATE & 1u) && task->decoding == TARN__DECODING_TOKENS, USAGE,
               "%s: %s; what is written for CTranslate2 translates token by token", c->path, task->model);
  TARN_REQUIRE(positions == &tarn__position_sinusoidal.part || positions == &tarn__position_sinusoidal_paper.part ||
                   positions == &tarn__position_learned.part,
               USAGE, "%s: model.positions is %s, and CTranslate2 adds a table of positions to the embeddings", c->path,
               positions->word);
  TARN_TRY(tarn__hf_check_tables(c->path, m, "CTranslate2"));
  TARN_TRY(tarn__hf_check_embedding_norm(c->path, m, "CTranslate2"));
  TARN_TRY(tarn__hf_check_stacks(c->path, c->config, "CTranslate2"));
  TARN_TRY(check_tokens(c));
  for (int32_t i = 0; i < c->config->encoder.count; i++) TARN_TRY(check_layer(c, &c->config->encoder, i));
  for (int32_t i = 0; i < c->config->decoder.count; i++) TARN_TRY(check_layer(c, &c->config->decoder, i));
  return TARN_STATUS_OK;
}

// Adds a scalar of 1, 2 or 4 bytes by its type.
static tarn_status add_scalar(target *t, const char *stack, const char *name, const char *dtype, double value) {
  char full[128];
  void *memory;
  const int8_t byte = (int8_t)value;
  const int16_t word = (int16_t)value;
  const float real = (float)value;
  const bool is_byte = strcmp(dtype, "I8") == 0, is_word = strcmp(dtype, "I16") == 0;
  const size_t bytes = is_byte ? sizeof byte : is_word ? sizeof word : sizeof real;
  TARN_TRY(tarn__arena_alloc(&t->writer.arena, &memory, 1, sizeof real));
  memcpy(memory, is_byte ? (const void *)&byte : is_word ? (const void *)&word : (const void *)&real, bytes);
  snprintf(full, sizeof full, "%s/%s", stack, name);
  TARN_TRY(tarn__hf_add(&t->writer, full, memory, 1, 1, false));
  tarn__stored *tensor = &t->writer.tensors[t->writer.count - 1];
  tensor->dtype = dtype;
  tensor->dims = 0;
  tensor->bytes = bytes;
  return TARN_STATUS_OK;
}

static tarn_status add_layers(target *t, const tarn_stack *stack, const char *side, int count) {
  char prefix[96], ours[160];
  for (int32_t l = 0; l < stack->count; l++)
    for (int i = 0; i < count; i++) {
      snprintf(prefix, sizeof prefix, "%s/layer_%d/", side, (int)l);
      snprintf(ours, sizeof ours, "%s.%s.%s", side, stack->layers[l].set, NAMES[i].ours);
      TARN_TRY(tarn__hf_add_parts(&t->writer, prefix, &NAMES[i], ours));
    }
  return TARN_STATUS_OK;
}

// The norm after a stack of pre-norm layers.
static tarn_status add_last_norm(target *t, const char *side) {
  static const tarn__hf_name names[] = {{{"layer_norm/gamma"}, "norm.gain"}, {{"layer_norm/beta"}, "norm.bias"}};
  char prefix[32], ours[64];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(prefix, sizeof prefix, "%s/", side);
    snprintf(ours, sizeof ours, "%s.%s", side, names[i].ours);
    TARN_TRY(tarn__hf_add_parts(&t->writer, prefix, &names[i], ours));
  }
  return TARN_STATUS_OK;
}

// [max_length, d_model]: learned, or the sinusoids of each position.
static tarn_status add_positions(target *t, const char *side, const tarn__param *learned) {
  const tarn_config_model *m = &t->from->config->model;
  const int64_t d = m->d_model, half = d / 2, rows = m->max_length;
  const bool paper = m->positions.part == &tarn__position_sinusoidal_paper.part;
  const double steps = paper ? (double)half : half > 1 ? (double)(half - 1) : 1.0;
  char full[64];
  double first = 0.0;  // which only these sinusoids have
  void *memory;
  tarn__part_number(&m->positions, "first", &first);
  snprintf(full, sizeof full, "%s/position_encodings/encodings", side);
  if (learned) {
    const tarn__hf_name name = {{full}, learned->name};
    return tarn__hf_add_parts(&t->writer, "", &name, learned->name);
  }
  TARN_TRY(tarn__arena_alloc(&t->writer.arena, &memory, (size_t)(rows * d), sizeof(float)));
  float *values = memory;
  for (int64_t p = 0; p < rows; p++)
    for (int64_t i = 0; i < half; i++) {
      const double angle = ((double)p + first) * tarn__embedding_turns(i, steps) * 6.283185307179586476925;
      values[p * d + i] = (float)sin(angle);
      values[p * d + half + i] = (float)cos(angle);
    }
  return tarn__hf_add(&t->writer, full, values, rows, d, false);
}

static tarn_status add_stack(target *t, const tarn_stack *stack, const char *side, const tarn__param *positions) {
  const tarn_config *config = t->from->config;
  const tarn_kind *kind = kind_of(config, stack, 0);
  const bool decoder = stack == &config->decoder;
  TARN_TRY(add_scalar(t, side, "num_heads", "I16", tarn__hf_number(kind, "heads")));
  TARN_TRY(add_scalar(t, side, "pre_norm", "I8", kind->norm == TARN_NORM_PRE));
  TARN_TRY(add_scalar(t, side, "activation", "I8", activation_of(kind)));
  TARN_TRY(add_scalar(t, side, "scale_embeddings", "F32",
                      config->model.embedding_scale ? sqrt((double)config->model.d_model) : 1.0));
  if (decoder) {
    TARN_TRY(add_scalar(t, side, "start_from_zero_embedding", "I8", 0));
    TARN_TRY(add_scalar(t, side, "alignment_layer", "I16", -1));
    TARN_TRY(add_scalar(t, side, "alignment_heads", "I16", 1));
  } else {
    TARN_TRY(add_scalar(t, side, "embeddings_merge", "I8", 0));
  }
  TARN_TRY(add_positions(t, side, positions));
  TARN_TRY(add_layers(t, stack, side, decoder ? LAYER_NAMES : ENCODER_NAMES));
  return kind->norm == TARN_NORM_PRE ? add_last_norm(t, side) : TARN_STATUS_OK;
}

static void add_alias(target *t, const char *alias, const char *variable) {
  t->aliases[t->alias_count].alias = alias;
  t->aliases[t->alias_count++].variable = variable;
}

// Each matrix once; shared uses are aliases.
static tarn_status add_tables(target *t) {
  static const char source[] = "encoder/embeddings_0/weight", words[] = "decoder/embeddings/weight",
                    output[] = "decoder/projection/weight";
  const tarn_embeddings share = t->from->config->model.embeddings;
  const bool all = share == TARN_EMBEDDINGS_ALL;
  const tarn__hf_name first = {{source}, all ? "embeddings.weight" : "embeddings.source.weight"};
  const tarn__hf_name second = {{words}, "embeddings.target.weight"}, third = {{output}, "embeddings.output.weight"};
  TARN_TRY(tarn__hf_add_parts(&t->writer, "", &first, first.ours));
  if (all || share == TARN_EMBEDDINGS_ENCODER_DECODER)
    add_alias(t, words, source);
  else
    TARN_TRY(tarn__hf_add_parts(&t->writer, "", &second, second.ours));
  if (all || share == TARN_EMBEDDINGS_ENCODER_OUTPUT)
    add_alias(t, output, source);
  else if (share == TARN_EMBEDDINGS_DECODER)
    add_alias(t, output, words);
  else
    TARN_TRY(tarn__hf_add_parts(&t->writer, "", &third, third.ours));
  return TARN_STATUS_OK;
}

// Padding is never chosen: CTranslate2 has no such token, so its bias excludes it.
static tarn_status add_bias(target *t) {
  const int32_t pad = tarn_vocab_pad(t->from->target);
  const bool biased = t->from->config->model.output_bias;
  const float *values = NULL;
  int64_t rows = 1, cols = tarn_vocab_size(t->from->target);
  void *memory;
  if (!biased && pad < 0) return TARN_STATUS_OK;
  if (biased) TARN_TRY(tarn__hf_values(&t->writer, "output.bias", &values, &rows, &cols));
  TARN_TRY(tarn__arena_alloc(&t->writer.arena, &memory, (size_t)cols, sizeof(float)));
  memset(memory, 0, (size_t)cols * sizeof(float));
  if (values) memcpy(memory, values, (size_t)cols * sizeof(float));
  if (pad >= 0 && pad < cols) ((float *)memory)[pad] = NEVER;
  return tarn__hf_add(&t->writer, "decoder/projection/bias", memory, 1, cols, true);
}

static tarn_status add_all(target *t) {
  const tarn__model *model = t->from->model;
  TARN_TRY(add_tables(t));
  TARN_TRY(add_bias(t));
  TARN_TRY(add_stack(t, &t->from->config->encoder, "encoder", model->source_positions));
  return add_stack(t, &t->from->config->decoder, "decoder", model->target_positions);
}

static tarn_status put_number(tarn__writer *writer, uint32_t number, size_t bytes) {
  uint8_t out[4];
  for (size_t i = 0; i < bytes; i++) out[i] = (uint8_t)(number >> 8 * i);
  return tarn__writer_put(writer, out, bytes);
}

static tarn_status put_name(tarn__writer *writer, const char *name) {
  const size_t length = strlen(name) + 1;
  TARN_TRY(put_number(writer, (uint32_t)length, 2));
  return tarn__writer_put(writer, name, length);
}

static tarn_status put_variable(tarn__writer *writer, const tarn__stored *tensor) {
  int type = 0;
  while (strcmp(TYPES[type], tensor->dtype) != 0) type++;
  TARN_REQUIRE(tensor->bytes <= UINT32_MAX, USAGE, "%s has %zu bytes, and CTranslate2's format takes 4 GB of each",
               tensor->name, tensor->bytes);
  TARN_TRY(put_name(writer, tensor->name));
  TARN_TRY(put_number(writer, (uint32_t)tensor->dims, 1));
  for (int i = 0; i < tensor->dims; i++) TARN_TRY(put_number(writer, (uint32_t)tensor->shape[i], 4));
  TARN_TRY(put_number(writer, TYPE_NUMBERS[type], 1));
  TARN_TRY(put_number(writer, (uint32_t)tensor->bytes, 4));
  return tarn__writer_put(writer, tensor->data, tensor->bytes);
}

static tarn_status put_model(const target *t, tarn__writer *writer) {
  TARN_TRY(put_number(writer, VERSION, 4));
  TARN_TRY(put_name(writer, SPECIFICATION));
  TARN_TRY(put_number(writer, REVISION, 4));
  TARN_TRY(put_number(writer, (uint32_t)t->writer.count, 4));
  for (size_t i = 0; i < t->writer.count; i++) TARN_TRY(put_variable(writer, &t->writer.tensors[i]));
  TARN_TRY(put_number(writer, t->alias_count, 4));
  for (uint32_t i = 0; i < t->alias_count; i++) {
    TARN_TRY(put_name(writer, t->aliases[i].alias));
    TARN_TRY(put_name(writer, t->aliases[i].variable));
  }
  return TARN_STATUS_OK;
}

static tarn_status write_model(const target *t, const char *folder) {
  char path[PATH_MAX];
  tarn__writer *writer = NULL;
  TARN_TRY(tarn__path_join(path, folder, "model.bin"));
  TARN_TRY(tarn__writer_open(&writer, path));
  tarn_status status = put_model(t, writer);
  if (status == TARN_STATUS_OK) status = tarn__writer_commit(&writer);
  tarn__writer_abort(&writer);
  return status;
}

static tarn_status write_tokens(const char *folder, const char *name, const tarn_vocab *vocab) {
  char path[PATH_MAX];
  json_t *list = json_array();
  for (int32_t id = 0; id < tarn_vocab_size(vocab) && list; id++) {
    if (json_array_append_new(list, json_string(tarn_vocab_piece(vocab, id))) == 0) continue;
    json_decref(list);
    list = NULL;
  }
  TARN_TRY(tarn__path_join(path, folder, name));
  return tarn__hf_config_write(list, path);
}

static const char SHARED[] = "shared_vocabulary.json";

// Two lists are two files; then a shared list of an earlier export must go, because CTranslate2 looks for it first.
static tarn_status write_vocabs(const target *t, const char *folder) {
  const tarn_vocab *source = t->from->source, *other = t->from->target;
  char path[PATH_MAX];
  if (tarn__vocab_same_tokens(source, other)) return write_tokens(folder, SHARED, source);
  TARN_TRY(tarn__path_join(path, folder, SHARED));
  TARN_REQUIRE(unlink(path) == 0 || errno == ENOENT, IO, "%s: cannot remove: %s", path, strerror(errno));
  TARN_TRY(write_tokens(folder, "source_vocabulary.json", source));
  return write_tokens(folder, "target_vocabulary.json", other);
}

static tarn_status write_config(const target *t, const char *folder) {
  char path[PATH_MAX];
  const tarn_config *config = t->from->config;
  const tarn_vocab *vocab = t->from->target;
  const char *start = start_of(t->from), *eos = tarn_vocab_piece(vocab, tarn_vocab_eos(vocab));
  json_t *object =
      json_pack("{s:b, s:b, s:s, s:s, s:s, s:s, s:f}", "add_source_bos", (int)tarn__vocab_is_prefixed(t->from->source),
                "add_source_eos", 1, "bos_token", start, "decoder_start_token", start, "eos_token", eos, "unk_token",
                tarn_vocab_piece(vocab, tarn_vocab_unk(vocab)), "layer_norm_epsilon",
                tarn__hf_number(kind_of(config, &config->encoder, 0), "norm_type.epsilon"));
  TARN_TRY(tarn__path_join(path, folder, TARN__HF_CONFIG));
  return tarn__hf_config_write(object, path);
}

static tarn_status write_files(const target *t, const char *folder) {
  TARN_TRY(tarn__mkdir(folder));
  TARN_TRY(write_model(t, folder));
  TARN_TRY(write_vocabs(t, folder));
  return write_config(t, folder);
}

tarn_status tarn_checkpoint_export_ctranslate2(const char *folder, const char *path) {
  tarn__checkpoint *c;
  TARN_TRY(tarn__checkpoint_open(&c, path, TARN__F32));
  target t = {.from = c, .writer = {.model = c->model}};
  tarn_status status = check_model(c);
  if (status == TARN_STATUS_OK) status = add_all(&t);
  if (status == TARN_STATUS_OK) status = write_files(&t, folder);
  tarn__hf_writer_close(&t.writer);
  tarn__checkpoint_close(&c);
  return status;
}
