// Exports a translation model as a folder for the package transformers, as Marian.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "config/config_part.h"
#include "foreign/hf_write.h"
#include "foreign/marian_format.h"
#include "parts/table/part_table.h"
#include "store/checkpoint.h"
#include "tarn/lab/foreign.h"
#include "task/task.h"
#include "text/vocab_formats.h"

// The export.
typedef struct target {
  const tarn__checkpoint *from;
  tarn__marian_config config;
  tarn__hf_writer writer;
} target;

static const tarn_kind *kind_of(const tarn_config *config, const tarn_stack *stack, int32_t layer) {
  return &config->kinds[stack->layers[layer].kind];
}

// The format has heads and widths once per stack, and the other settings once for all layers.
static tarn_status check_layer(const tarn__checkpoint *c, const tarn_stack *stack, int32_t layer) {
  static const char *const numbers[] = {"heads", "ffn.width"};
  const tarn_kind *kind = kind_of(c->config, stack, layer), *first = kind_of(c->config, stack, 0);
  const tarn_kind *lowest = kind_of(c->config, &c->config->encoder, 0);
  const tarn__part *mixer = &tarn__mixer_attention.part, *ffn = &tarn__channel_ffn.part;
  const char *side = stack == &c->config->encoder ? "encoder" : "decoder";
  const int depth = (int)layer + 1;
  TARN_REQUIRE(kind->mixer.part == mixer, USAGE, "%s: layer %d of the %s (kind %s) is none of %s, as Marian's are",
               c->path, depth, side, kind->name, mixer->word);
  TARN_TRY(tarn__hf_check_heads(c->path, kind, "Marian"));
  TARN_REQUIRE(kind->norm == TARN_NORM_POST, USAGE,
               "%s: layer %d of the %s (kind %s) is not post-norm, as Marian's are", c->path, depth, side, kind->name);
  TARN_REQUIRE(kind->gate == TARN_GATE_NONE, USAGE,
               "%s: kind %s has gates on its branches, which Marian's format does not have", c->path, kind->name);
  TARN_REQUIRE(kind->norm_type.part == &tarn__norm_layer.part &&
                   tarn__hf_number(kind, "norm_type.epsilon") == TARN__MARIAN_EPSILON,
               USAGE, "%s: norms of kind %s are not of type %s with epsilon %g, as Marian's are", c->path, kind->name,
               tarn__norm_layer.part.word, TARN__MARIAN_EPSILON);
  TARN_REQUIRE(kind->channel.part == ffn, USAGE,
               "%s: layer %d of the %s (kind %s) has %s as its FFN, and Marian's have %s", c->path, depth, side,
               kind->name, tarn__kind_channel_word(kind), ffn->word);
  TARN_REQUIRE(tarn__hf_ffn_activation(kind) == tarn__hf_ffn_activation(lowest), USAGE,
               "%s: kinds %s and %s have different activations, and Marian's format has one for all layers", c->path,
               lowest->name, kind->name);
  TARN_REQUIRE(tarn__hf_activation_word(tarn__hf_ffn_activation(kind)), USAGE,
               "%s: the activation of kind %s is %s, which Marian's format does not have", c->path, kind->name,
               tarn__hf_ffn_activation(kind)->word);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    TARN_REQUIRE(tarn__hf_number(kind, numbers[i]) == tarn__hf_number(first, numbers[i]), USAGE,
                 "%s: kinds %s and %s have different %s, and Marian's format has one number for all layers of a stack",
                 c->path, first->name, kind->name, numbers[i]);
  return TARN_STATUS_OK;
}

static tarn_status check_stack(const tarn__checkpoint *c, const tarn_stack *stack) {
  const tarn__model_stack *built = stack == &c->config->encoder ? &c->model->encoder : &c->model->decoder;
  for (int32_t i = 0; i < stack->count; i++) TARN_TRY(check_layer(c, stack, i));
  TARN_REQUIRE(!built->norm.use.part, USAGE,
               "%s: there is a norm behind the last layer of a stack, and Marian's have none", c->path);
  return TARN_STATUS_OK;
}

static tarn_status check_model(const tarn__checkpoint *c) {
  const tarn_config_model *m = &c->config->model;
  const tarn__task *task = tarn__config_task(c->config);
  TARN_REQUIRE((task->uses >> TARN__USE_TRANSLATE & 1u) && task->decoding == TARN__DECODING_TOKENS, USAGE,
               "%s: %s; Marian translates token by token", c->path, task->model);
  TARN_REQUIRE(m->positions.part == &tarn__position_sinusoidal_paper.part, USAGE,
               "%s: model.positions is not %s, as Marian's are", c->path, tarn__position_sinusoidal_paper.part.word);
  TARN_REQUIRE(m->embeddings != TARN_EMBEDDINGS_ENCODER_OUTPUT, USAGE,
               "%s: model.embeddings is encoder_output, which Marian's format does not have", c->path);
  TARN_TRY(tarn__hf_check_tables(c->path, m, "Marian"));
  TARN_TRY(tarn__hf_check_embedding_norm(c->path, m, "Marian"));
  TARN_TRY(tarn__hf_check_stacks(c->path, c->config, "Marian"));
  TARN_TRY(check_stack(c, &c->config->encoder));
  return check_stack(c, &c->config->decoder);
}

static tarn__marian_stack describe_stack(const tarn_config *config, const tarn_stack *stack) {
  const tarn_kind *kind = kind_of(config, stack, 0);
  return (tarn__marian_stack){.layers = stack->count,
                              .heads = (int64_t)tarn__hf_number(kind, "heads"),
                              .ffn = (int64_t)tarn__hf_number(kind, "ffn.width"),
                              .layerdrop = stack->layerdrop};
}

static void describe(target *t) {
  const tarn__checkpoint *c = t->from;
  const tarn_config *config = c->config;
  const tarn_config_model *m = &config->model;
  const tarn_config_translate *use = &config->translate;
  const tarn_kind *kind = kind_of(config, &config->encoder, 0);
  const int32_t pad = tarn_vocab_pad(c->target), eos = tarn_vocab_eos(c->target);
  // If the length depends on the source's, the format gets the maximum.
  const int64_t longest = use->max_len_a > 0 || use->max_len_b > m->max_length - 1 ? m->max_length - 1 : use->max_len_b;
  t->config = (tarn__marian_config){
      .encoder = describe_stack(config, &config->encoder),
      .decoder = describe_stack(config, &config->decoder),
      .d_model = m->d_model,
      .positions = m->max_length,
      .vocab = tarn_vocab_size(c->source),
      .target_vocab = tarn_vocab_size(c->target),
      .padding = pad >= 0 ? pad : eos,
      .start = m->decoder_start >= 0 ? m->decoder_start : eos,
      .activation = tarn__hf_ffn_activation(kind),
      .dropout = kind->dropout,
      .attention_dropout = tarn__hf_number(kind, "attention_dropout"),
      .scaled = m->embedding_scale,
      .shared = m->embeddings == TARN_EMBEDDINGS_ALL || m->embeddings == TARN_EMBEDDINGS_ENCODER_DECODER,
      .tied = m->embeddings == TARN_EMBEDDINGS_ALL || m->embeddings == TARN_EMBEDDINGS_DECODER,
      .eos = eos,
      .beam = use->beam,
      .longest = longest + 2,
      .shortest = use->min_length > 0 ? use->min_length + 1 : 0,
      .length_penalty = use->length_penalty,
      .early_stopping = use->early_stopping,
      .allow_unk = use->allow_unk,
      .unk = tarn_vocab_unk(c->target)};
}

static tarn_status check_vocabs(const target *t) {
  const tarn_vocab *source = t->from->source, *other = t->from->target;
  TARN_REQUIRE(tarn_vocab_eos(source) == tarn_vocab_eos(other), USAGE,
               "%s: the ends of sentence of its vocabularies have the numbers %d and %d, and Marian's format has one",
               t->from->path, tarn_vocab_eos(source), tarn_vocab_eos(other));
  return TARN_STATUS_OK;
}

// Settings that only training reads, and that the format lacks, are lost; the model computes the same.
static void warn_lost(const target *t) {
  const tarn_config *config = t->from->config;
  const tarn_stack *const stacks[] = {&config->encoder, &config->decoder};
  bool differ = config->model.embedding_dropout != t->config.dropout;
  for (int s = 0; s < 2; s++)
    for (int32_t i = 0; i < stacks[s]->count; i++) {
      const tarn_kind *kind = kind_of(config, stacks[s], i);
      differ = differ || kind->dropout != t->config.dropout ||
               tarn__hf_number(kind, "attention_dropout") != t->config.attention_dropout;
    }
  if (differ)
    tarn__log(
        TARN_LOG_WARNING,
        "%s: Marian's format has no place for dropouts that differ among layers and embeddings (those of the first "
        "layer are written); a training that starts from the export is without",
        t->from->path);
}

static tarn_status add_stack(target *t, const tarn_stack *stack, const char *side, int count) {
  char prefix[96], ours[160];
  for (int32_t l = 0; l < stack->count; l++)
    for (int i = 0; i < count; i++) {
      const tarn__hf_name name = tarn__marian_name(tarn__marian_package_names, i);
      snprintf(prefix, sizeof prefix, TARN__MARIAN_PREFIX "%s.layers.%d.", side, (int)l);
      snprintf(ours, sizeof ours, "%s.%s.%s", side, stack->layers[l].set, name.ours);
      TARN_TRY(tarn__hf_add_parts(&t->writer, prefix, &name, ours));
    }
  return TARN_STATUS_OK;
}

static tarn_status add_words(target *t, const char *prefix, const char *theirs, const char *ours) {
  const tarn__hf_name name = {{theirs}, ours};
  return tarn__hf_add_parts(&t->writer, prefix, &name, ours);
}

static tarn_status add_tables(target *t) {
  const tarn_embeddings share = t->from->config->model.embeddings;
  const char *source = "embeddings.source.weight", *other = "embeddings.target.weight";
  if (share == TARN_EMBEDDINGS_ALL) return add_words(t, TARN__MARIAN_PREFIX, TARN__MARIAN_SHARED, "embeddings.weight");
  if (share == TARN_EMBEDDINGS_ENCODER_DECODER) {
    other = source;
    TARN_TRY(add_words(t, TARN__MARIAN_PREFIX, TARN__MARIAN_SHARED, source));
  }
  TARN_TRY(add_words(t, TARN__MARIAN_PREFIX, TARN__MARIAN_ENCODER_WORDS, source));
  TARN_TRY(add_words(t, TARN__MARIAN_PREFIX, TARN__MARIAN_DECODER_WORDS, other));
  return t->config.tied ? TARN_STATUS_OK : add_words(t, "", TARN__MARIAN_OUTPUT, "embeddings.output.weight");
}

// A matrix of one row, zeros if the model has no bias.
static tarn_status add_bias(target *t) {
  const float *values;
  int64_t rows = 1, cols = t->config.target_vocab;
  void *memory;
  if (t->from->config->model.output_bias) {
    TARN_TRY(tarn__hf_values(&t->writer, "output.bias", &values, &rows, &cols));
    return tarn__hf_add(&t->writer, TARN__MARIAN_BIAS, values, rows, cols, false);
  }
  TARN_TRY(tarn__arena_alloc(&t->writer.arena, &memory, (size_t)cols, sizeof(float)));
  memset(memory, 0, (size_t)cols * sizeof(float));
  return tarn__hf_add(&t->writer, TARN__MARIAN_BIAS, memory, rows, cols, false);
}

static tarn_status add_all(target *t) {
  TARN_TRY(add_bias(t));
  TARN_TRY(add_tables(t));
  TARN_TRY(add_stack(t, &t->from->config->encoder, "encoder", TARN__MARIAN_ENCODER_NAMES));
  return add_stack(t, &t->from->config->decoder, "decoder", TARN__MARIAN_LAYER_NAMES);
}

static tarn_status write_files(target *t, const char *folder) {
  char path[PATH_MAX];
  TARN_TRY(tarn__mkdir(folder));
  TARN_TRY(tarn__path_join(path, folder, TARN__HF_WEIGHTS));
  TARN_TRY(tarn__hf_write(&t->writer, path));
  TARN_TRY(tarn__marian_config_write(&t->config, folder));
  if (tarn__vocab_has_marian_form(t->from->source, t->from->target))
    return tarn__vocab_export_marian(folder, t->from->source, t->from->target);
  tarn__log(TARN_LOG_WARNING, "%s: no vocabulary was written, as MarianTokenizer has no form for one of this kind",
            folder);
  return TARN_STATUS_OK;
}

tarn_status tarn_checkpoint_export_marian(const char *folder, const char *path) {
  tarn__checkpoint *c;
  TARN_TRY(tarn__checkpoint_open(&c, path, TARN__F32));
  target t = {.from = c, .writer = {.model = c->model}};
  tarn_status status = check_model(c);
  if (status == TARN_STATUS_OK) {
    describe(&t);
    status = check_vocabs(&t);
  }
  if (status == TARN_STATUS_OK) {
    warn_lost(&t);
    status = add_all(&t);
  }
  if (status == TARN_STATUS_OK) status = write_files(&t, folder);
  tarn__hf_writer_close(&t.writer);
  tarn__checkpoint_close(&c);
  return status;
}
