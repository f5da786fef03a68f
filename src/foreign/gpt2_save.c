// Exports a checkpoint as a folder for the package transformers, as GPT-2.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "config/config_part.h"
#include "foreign/gpt2_format.h"
#include "foreign/hf_write.h"
#include "store/checkpoint.h"
#include "tarn/lab/foreign.h"
#include "task/task.h"

// The format has these settings once, for all layers.
static tarn_status check_layer(const tarn__checkpoint *c, int32_t layer) {
  const tarn_stack *stack = &c->config->decoder;
  const tarn_kind *kind = &c->config->kinds[stack->layers[layer].kind];
  const tarn_kind *first = &c->config->kinds[stack->layers[0].kind];
  const tarn__part *mixer = &tarn__mixer_attention.part, *norm = &tarn__norm_layer.part, *ffn = &tarn__channel_ffn.part;
  TARN_REQUIRE(kind->mixer.part == mixer, USAGE, "%s: layer %d (kind %s) is none of %s, as GPT-2's are", c->path,
               (int)layer + 1, kind->name, mixer->word);
  TARN_TRY(tarn__hf_check_heads(c->path, kind, "GPT-2"));
  TARN_REQUIRE(kind->norm == TARN_NORM_PRE, USAGE, "%s: layer %d (kind %s) is not pre-norm, as GPT-2's are", c->path,
               (int)layer + 1, kind->name);
  TARN_REQUIRE(kind->gate == TARN_GATE_NONE, USAGE,
               "%s: kind %s has gates on its branches, which GPT-2's format does not have", c->path, kind->name);
  TARN_REQUIRE(kind->norm_type.part == norm, USAGE, "%s: layer %d (kind %s) has norms of type %s, and GPT-2's are %s",
               c->path, (int)layer + 1, kind->name, kind->norm_type.part->word, norm->word);
  TARN_REQUIRE(tarn__part_same(&kind->norm_type, &first->norm_type), USAGE,
               "%s: norms of kinds %s and %s have different epsilons, and GPT-2's format has one for all", c->path,
               first->name, kind->name);
  TARN_REQUIRE(kind->channel.part == ffn, USAGE, "%s: layer %d (kind %s) has %s as its FFN, and GPT-2's have %s",
               c->path, (int)layer + 1, kind->name, tarn__kind_channel_word(kind), ffn->word);
  TARN_REQUIRE(tarn__hf_activation_word(tarn__hf_ffn_activation(kind)), USAGE,
               "%s: the activation of kind %s is %s, which GPT-2's format does not have", c->path, kind->name,
               tarn__hf_ffn_activation(kind)->word);
  TARN_REQUIRE(tarn__hf_ffn_activation(kind) == tarn__hf_ffn_activation(first), USAGE,
               "%s: kinds %s and %s have different activations, and GPT-2's format has one for all layers", c->path,
               first->name, kind->name);
  TARN_REQUIRE(tarn__hf_number(kind, "heads") == tarn__hf_number(first, "heads") &&
                   tarn__hf_number(kind, "ffn.width") == tarn__hf_number(first, "ffn.width"),
               USAGE,
               "%s: kinds %s and %s have different heads or ffn, and GPT-2's format has one number for all layers",
               c->path, first->name, kind->name);
  return TARN_STATUS_OK;
}

static tarn_status check_model(const tarn__checkpoint *c) {
  const tarn_config_model *m = &c->config->model;
  TARN_REQUIRE(tarn__config_task(c->config)->uses >> TARN__USE_CONTINUE_TEXT & 1u, USAGE,
               "%s: %s; GPT-2 is a language model", c->path, tarn__config_task(c->config)->model);
  TARN_REQUIRE(m->positions.part == &tarn__position_learned.part, USAGE,
               "%s: model.positions is not %s, as GPT-2's are", c->path, tarn__position_learned.part.word);
  TARN_REQUIRE(!m->embedding_scale, USAGE, "%s: model.embedding_scale is yes, and GPT-2's format has none", c->path);
  TARN_REQUIRE(!m->output_bias, USAGE, "%s: model.output_bias is yes, and GPT-2's format has none", c->path);
  TARN_TRY(tarn__hf_check_tables(c->path, m, "GPT-2"));
  TARN_TRY(tarn__hf_check_embedding_norm(c->path, m, "GPT-2"));
  TARN_TRY(tarn__hf_check_stacks(c->path, c->config, "GPT-2"));
  for (int32_t i = 0; i < c->config->decoder.count; i++) TARN_TRY(check_layer(c, i));
  // It belongs to the pattern's highest layer, which layers_to_keep may exclude.
  const tarn_kind *first = &c->config->kinds[c->config->decoder.layers[0].kind];
  const tarn_part_use *top = &c->model->decoder.norm.use;
  TARN_REQUIRE(top->part, USAGE, "%s: there is no norm behind the last layer, as GPT-2's have one", c->path);
  TARN_REQUIRE(top->part == &tarn__norm_layer.part, USAGE,
               "%s: the norm behind the last layer is of type %s, and GPT-2's is %s", c->path, top->part->word,
               tarn__norm_layer.part.word);
  TARN_REQUIRE(
      tarn__part_same(top, &first->norm_type), USAGE,
      "%s: the norm behind the last layer and those of kind %s have different epsilons, and GPT-2's format has "
      "one for all",
      c->path, first->name);
  return TARN_STATUS_OK;
}

static tarn__gpt2_config settings_of(const tarn__checkpoint *c) {
  const tarn_config_model *m = &c->config->model;
  const tarn_kind *kind = &c->config->kinds[c->config->decoder.layers[0].kind];
  return (tarn__gpt2_config){.d_model = m->d_model,
                             .layers = c->config->decoder.count,
                             .heads = (int64_t)tarn__hf_number(kind, "heads"),
                             .ffn = (int64_t)tarn__hf_number(kind, "ffn.width"),
                             .positions = m->max_length,
                             .vocab = tarn_vocab_size(c->target),
                             .activation = tarn__hf_ffn_activation(kind),
                             .dropout = kind->dropout,
                             .embedding_dropout = m->embedding_dropout,
                             .attention_dropout = tarn__hf_number(kind, "attention_dropout"),
                             .epsilon = tarn__hf_number(kind, "norm_type.epsilon"),
                             .tied = m->embeddings == TARN_EMBEDDINGS_DECODER,
                             .eos = tarn_vocab_eos(c->target)};
}

// Settings that only training reads, and that the format lacks, are lost; the model computes the same.
static void warn_lost(const tarn__checkpoint *c) {
  const tarn_config *config = c->config;
  const tarn_stack *stack = &config->decoder;
  bool differ = false;
  for (int32_t i = 1; i < stack->count; i++) {
    const tarn_kind *first = &config->kinds[stack->layers[0].kind], *kind = &config->kinds[stack->layers[i].kind];
    differ = differ || kind->dropout != first->dropout ||
             tarn__hf_number(kind, "attention_dropout") != tarn__hf_number(first, "attention_dropout");
  }
  if (differ || stack->layerdrop > 0)
    tarn__log(TARN_LOG_WARNING,
              "%s: GPT-2's format has no place for %s%s%s; a training that starts from the export is without", c->path,
              differ ? "dropouts that differ among layers (those of the first layer are written)" : "",
              differ && stack->layerdrop > 0 ? " and " : "", stack->layerdrop > 0 ? "layerdrop" : "");
}

tarn_status tarn__gpt2_describe(tarn__gpt2_config *config, const tarn__checkpoint *checkpoint) {
  TARN_TRY(check_model(checkpoint));
  *config = settings_of(checkpoint);
  warn_lost(checkpoint);
  return TARN_STATUS_OK;
}

static tarn_status add(tarn__hf_writer *writer, const char *theirs, const char *ours, bool transposed) {
  const float *values = NULL;
  int64_t rows = 0, cols = 0;
  TARN_TRY(tarn__hf_values(writer, ours, &values, &rows, &cols));
  const bool vector = rows == 1 && strcmp(strrchr(ours, '.'), ".weight") != 0;
  if (!transposed) return tarn__hf_add(writer, theirs, values, rows, cols, vector);
  void *memory;
  TARN_TRY(tarn__arena_alloc(&writer->arena, &memory, (size_t)(rows * cols), sizeof(float)));
  float *turned = memory;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < cols; c++) turned[c * rows + r] = values[r * cols + c];
  return tarn__hf_add(writer, theirs, turned, cols, rows, vector);
}

tarn_status tarn__gpt2_add(tarn__hf_writer *writer, const tarn__gpt2_config *config, const tarn__checkpoint *checkpoint,
                           const tarn__gpt2_names *names, const char *prefix) {
  const tarn_stack *stack = &checkpoint->config->decoder;
  char theirs[96], ours[160];
  for (int i = 0; i < TARN__GPT2_MODEL_NAMES; i++) {
    if (i == TARN__GPT2_OUTPUT && config->tied) continue;
    snprintf(theirs, sizeof theirs, "%s%s", i == TARN__GPT2_OUTPUT ? "" : prefix, names->model[i]);
    bool untied = i == TARN__GPT2_EMBEDDING && !config->tied;
    TARN_TRY(add(writer, theirs, untied ? "embeddings.input.weight" : tarn__gpt2_model_ours[i], false));
  }
  for (int32_t l = 0; l < stack->count; l++)
    for (int i = 0; i < TARN__GPT2_LAYER_NAMES; i++) {
      snprintf(theirs, sizeof theirs, "%s%s%d.%s", prefix, names->at, (int)l, names->layer[i]);
      snprintf(ours, sizeof ours, "decoder.%s.%s", stack->layers[l].set, tarn__gpt2_layer_ours[i]);
      TARN_TRY(add(writer, theirs, ours, tarn__gpt2_is_transposed(names, i)));
    }
  return TARN_STATUS_OK;
}

static tarn_status write_files(const tarn__checkpoint *c, const tarn__gpt2_config *config, tarn__hf_writer *writer,
                               const char *folder) {
  char path[PATH_MAX];
  TARN_TRY(tarn__mkdir(folder));
  TARN_TRY(tarn__path_join(path, folder, TARN__HF_WEIGHTS));
  TARN_TRY(tarn__hf_write(writer, path));
  TARN_TRY(tarn__path_join(path, folder, TARN__HF_CONFIG));
  TARN_TRY(tarn__gpt2_config_write(config, path));
  return tarn__hf_write_vocab(folder, c->target);
}

tarn_status tarn_checkpoint_export_gpt2(const char *folder, const char *path) {
  tarn__checkpoint *c;
  tarn__gpt2_config config;
  TARN_TRY(tarn__checkpoint_open(&c, path, TARN__F32));
  tarn__hf_writer writer = {.model = c->model};
  tarn_status status = tarn__gpt2_describe(&config, c);
  if (status == TARN_STATUS_OK) status = tarn__gpt2_add(&writer, &config, c, &tarn__gpt2_hf_names, TARN__GPT2_PREFIX);
  if (status == TARN_STATUS_OK) status = write_files(c, &config, &writer, folder);
  tarn__hf_writer_close(&writer);
  tarn__checkpoint_close(&c);
  return status;
}
