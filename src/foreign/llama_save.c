// Exports a language model of LLaMA's kind: its settings and tensors, for whatever format, and a folder for the package
// transformers.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "config/config_part.h"
#include "foreign/llama_format.h"
#include "parts/table/part_table.h"
#include "task/task.h"

#define FORMAT "LLaMA"

static const tarn_kind *kind_of(const tarn__checkpoint *c, int32_t layer) {
  return &c->config->kinds[c->config->decoder.layers[layer].kind];
}

static bool is_gated(const tarn__part *channel) {
  return channel == &tarn__channel_swiglu.part || channel == &tarn__channel_geglu.part ||
         channel == &tarn__channel_reglu.part;
}

// The format has these settings once, for all layers.
static tarn_status check_same(const tarn__checkpoint *c, const tarn_kind *kind, const tarn_kind *first) {
  static const char *const numbers[] = {"heads", "kv_heads", "head_width"};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    TARN_REQUIRE(tarn__hf_number(kind, numbers[i]) == tarn__hf_number(first, numbers[i]), USAGE,
                 "%s: kinds %s and %s have different %s, and " FORMAT "'s format has one number for all layers",
                 c->path, first->name, kind->name, numbers[i]);
  TARN_REQUIRE(tarn__part_same(&kind->channel, &first->channel), USAGE,
               "%s: kinds %s and %s have different FFNs, and " FORMAT "'s format has one for all layers", c->path,
               first->name, kind->name);
  TARN_REQUIRE(tarn__part_same(&kind->norm_type, &first->norm_type), USAGE,
               "%s: norms of kinds %s and %s have different epsilons, and " FORMAT "'s format has one for all", c->path,
               first->name, kind->name);
  return TARN_STATUS_OK;
}

static tarn_status check_layer(const tarn__checkpoint *c, int32_t layer) {
  const tarn_kind *kind = kind_of(c, layer);
  const tarn__part *mixer = &tarn__mixer_attention.part, *norm = &tarn__norm_rms.part;
  const int depth = (int)layer + 1;
  TARN_REQUIRE(kind->mixer.part == mixer, USAGE, "%s: layer %d (kind %s) is none of %s, as " FORMAT "'s are", c->path,
               depth, kind->name, mixer->word);
  TARN_REQUIRE(kind->residual && kind->norm == TARN_NORM_PRE, USAGE,
               "%s: layer %d (kind %s) is not pre-norm, as " FORMAT "'s are", c->path, depth, kind->name);
  TARN_REQUIRE(kind->gate == TARN_GATE_NONE, USAGE,
               "%s: kind %s has gates on its branches, which " FORMAT "'s format does not have", c->path, kind->name);
  TARN_REQUIRE(kind->norm_type.part == norm, USAGE,
               "%s: layer %d (kind %s) has norms of type %s, and " FORMAT "'s are %s", c->path, depth, kind->name,
               kind->norm_type.part->word, norm->word);
  TARN_REQUIRE(is_gated(kind->channel.part), USAGE,
               "%s: layer %d (kind %s) has %s as its FFN, and " FORMAT "'s have swiglu, geglu or reglu", c->path, depth,
               kind->name, tarn__kind_channel_word(kind));
  TARN_REQUIRE(kind->channel.part != &tarn__channel_swiglu.part ||
                   (tarn__hf_number(kind, "ffn.beta") == 1.0 && tarn__hf_number(kind, "ffn.learned") == 0.0),
               USAGE, "%s: the FFN of kind %s has a beta, which " FORMAT "'s format does not have", c->path,
               kind->name);
  return check_same(c, kind, kind_of(c, 0));
}

static tarn_status check_model(const tarn__checkpoint *c) {
  const tarn_config_model *m = &c->config->model;
  TARN_REQUIRE(tarn__config_task(c->config)->uses >> TARN__USE_CONTINUE_TEXT & 1u, USAGE,
               "%s: %s; " FORMAT " is a language model", c->path, tarn__config_task(c->config)->model);
  TARN_REQUIRE(m->positions.part == &tarn__position_rotary.part, USAGE,
               "%s: model.positions is not %s, as " FORMAT "'s are", c->path, tarn__position_rotary.part.word);
  TARN_REQUIRE(!m->embedding_scale, USAGE, "%s: model.embedding_scale is yes, and " FORMAT "'s format has none",
               c->path);
  TARN_REQUIRE(!m->output_bias, USAGE, "%s: model.output_bias is yes, and " FORMAT "'s format has none", c->path);
  TARN_TRY(tarn__hf_check_tables(c->path, m, FORMAT));
  TARN_TRY(tarn__hf_check_embedding_norm(c->path, m, FORMAT));
  TARN_TRY(tarn__hf_check_stacks(c->path, c->config, FORMAT));
  for (int32_t i = 0; i < c->config->decoder.count; i++) TARN_TRY(check_layer(c, i));
  const tarn_part_use *top = &c->model->decoder.norm.use;
  TARN_REQUIRE(top->part && tarn__part_same(top, &kind_of(c, 0)->norm_type), USAGE,
               "%s: the norm behind the last layer is not that of the layers, as " FORMAT "'s is", c->path);
  return TARN_STATUS_OK;
}

// Whether a bias of this name is other than zeros in any layer.
static tarn_status has_bias(bool *found, tarn__hf_writer *writer, const char *ours) {
  const tarn_stack *stack = &writer->model->config->decoder;
  for (int32_t l = 0; l < stack->count && !*found; l++) {
    char name[160];
    const float *values;
    int64_t rows, cols;
    snprintf(name, sizeof name, "decoder.%s.%s.bias", stack->layers[l].set, ours);
    TARN_TRY(tarn__hf_values(writer, name, &values, &rows, &cols));
    for (int64_t i = 0; i < cols && !*found; i++) *found = values[i] != 0.0f;
  }
  return TARN_STATUS_OK;
}

// Which biases the file needs, and the inner width.
static tarn_status describe_weights(tarn__llama_config *config, tarn__hf_writer *writer) {
  char name[160];
  const float *values;
  int64_t rows, cols;
  int count;
  const tarn__llama_row *row = tarn__llama_rows(config->kv_heads != config->heads, &count);
  for (int i = 0; i < count; i++) {
    const tarn__llama_part part = row[i].parts[0];
    bool *found = part < TARN__LLAMA_O    ? &config->qkv_bias
                  : part == TARN__LLAMA_O ? &config->out_bias
                                          : &config->ffn_bias;
    if (!row[i].norm) TARN_TRY(has_bias(found, writer, row[i].ours));
  }
  snprintf(name, sizeof name, "decoder.%s.ffn.out.weight", writer->model->config->decoder.layers[0].set);
  TARN_TRY(tarn__hf_values(writer, name, &values, &rows, &cols));
  config->ffn = cols;
  return TARN_STATUS_OK;
}

static double position_number(const tarn_config_model *model, const char *key) {
  double value;
  tarn__part_number(&model->positions, key, &value);
  return value;
}

tarn_status tarn__llama_describe(tarn__llama_config *config, const tarn__checkpoint *c, tarn__hf_writer *writer) {
  TARN_TRY(check_model(c));
  const tarn_config_model *m = &c->config->model;
  const tarn_kind *kind = kind_of(c, 0);
  const double kv_heads = tarn__hf_number(kind, "kv_heads"), width = tarn__hf_number(kind, "head_width");
  const int64_t heads = (int64_t)tarn__hf_number(kind, "heads");
  *config = (tarn__llama_config){.d_model = m->d_model,
                                 .layers = c->config->decoder.count,
                                 .heads = heads,
                                 .kv_heads = kv_heads > 0 ? (int64_t)kv_heads : heads,
                                 .head_width = width > 0 ? (int64_t)width : m->d_model / heads,
                                 .positions = m->max_length,
                                 .vocab = tarn_vocab_size(c->target),
                                 .channel = kind->channel.part,
                                 .epsilon = tarn__hf_number(kind, "norm_type.epsilon"),
                                 .attention_dropout = tarn__hf_number(kind, "attention_dropout"),
                                 .base = position_number(m, "base"),
                                 .share = position_number(m, "share"),
                                 .factor = position_number(m, "factor"),
                                 .low_freq_factor = position_number(m, "low_freq_factor"),
                                 .high_freq_factor = position_number(m, "high_freq_factor"),
                                 .original_length = (int64_t)position_number(m, "original_length"),
                                 .tied = m->embeddings == TARN_EMBEDDINGS_DECODER,
                                 .bos = m->decoder_start >= 0 ? m->decoder_start : tarn_vocab_eos(c->target),
                                 .eos = tarn_vocab_eos(c->target)};
  return describe_weights(config, writer);
}

// A part, whose values are copied only if the format has its rows in another order.
static tarn_status add_part(tarn__hf_writer *writer, const tarn__llama_config *config, const char *name,
                            const float *values, int64_t rows, int64_t cols, bool vector, bool turned) {
  if (!turned) return tarn__hf_add(writer, name, values, rows, cols, vector);
  void *memory;
  TARN_TRY(tarn__arena_alloc(&writer->arena, &memory, (size_t)(rows * cols), sizeof(float)));
  const int64_t all = vector ? cols : rows;
  tarn__llama_interleave(memory, values, all / config->head_width, config->head_width, vector ? 1 : cols, false);
  return tarn__hf_add(writer, name, memory, rows, cols, vector);
}

static tarn_status add_row(tarn__hf_writer *writer, const tarn__llama_config *config, const tarn__llama_names *names,
                           const char *prefix, const char *set, const tarn__llama_row *row, bool bias) {
  char theirs[160], ours[160];
  const char *word = bias ? "bias" : "weight";
  const float *values = NULL;
  int64_t rows = 0, cols = 0;
  if (bias && !tarn__llama_has_bias(config, row->parts[0])) return TARN_STATUS_OK;
  snprintf(ours, sizeof ours, "decoder.%s.%s.%s", set, row->ours, row->norm ? "gain" : word);
  TARN_TRY(tarn__hf_values(writer, ours, &values, &rows, &cols));
  const bool vector = bias || row->norm;
  int64_t *whole = vector ? &cols : &rows;
  *whole /= row->count;
  for (int i = 0; i < row->count; i++) {
    const tarn__llama_part part = row->parts[i];
    const bool turned = names->interleaved && (part == TARN__LLAMA_Q || part == TARN__LLAMA_K);
    snprintf(theirs, sizeof theirs, "%s%s.%s", prefix, names->parts[part], word);
    TARN_TRY(add_part(writer, config, theirs, values + i * rows * cols, rows, cols, vector, turned));
  }
  return TARN_STATUS_OK;
}

static tarn_status add_one(tarn__hf_writer *writer, const char *prefix, const char *theirs, const char *ours) {
  char name[160];
  const float *values = NULL;
  int64_t rows = 0, cols = 0;
  snprintf(name, sizeof name, "%s%s.weight", prefix, theirs);
  TARN_TRY(tarn__hf_values(writer, ours, &values, &rows, &cols));
  return tarn__hf_add(writer, name, values, rows, cols, strstr(ours, ".gain") != NULL);
}

tarn_status tarn__llama_add(tarn__hf_writer *writer, const tarn__llama_config *config, const tarn__llama_names *names,
                            const char *prefix) {
  const tarn_stack *stack = &writer->model->config->decoder;
  int count;
  const tarn__llama_row *row = tarn__llama_rows(config->kv_heads != config->heads, &count);
  TARN_TRY(add_one(writer, prefix, names->embedding, config->tied ? "embeddings.weight" : "embeddings.input.weight"));
  TARN_TRY(add_one(writer, prefix, names->norm, "decoder.norm.gain"));
  if (!config->tied) TARN_TRY(add_one(writer, "", names->output, "embeddings.output.weight"));
  for (int32_t l = 0; l < stack->count; l++) {
    char layer[96];
    snprintf(layer, sizeof layer, "%s%s%d.", prefix, names->layer, (int)l);
    for (int i = 0; i < count; i++) {
      TARN_TRY(add_row(writer, config, names, layer, stack->layers[l].set, &row[i], false));
      if (!row[i].norm) TARN_TRY(add_row(writer, config, names, layer, stack->layers[l].set, &row[i], true));
    }
  }
  return TARN_STATUS_OK;
}

// The biases that a format of the package has, which may be more than the model needs.
static tarn_status choose_biases(tarn__llama_config *config, tarn_llama_format format, const char *path) {
  const char *word = tarn__llama_word(format);
  config->format = format;
  if (format == TARN_LLAMA_FORMAT_LLAMA) config->qkv_bias = config->out_bias = config->qkv_bias || config->out_bias;
  if (format == TARN_LLAMA_FORMAT_LLAMA) return TARN_STATUS_OK;
  const bool qwen2 = format == TARN_LLAMA_FORMAT_QWEN2;
  TARN_REQUIRE(qwen2 || !config->qkv_bias, USAGE,
               "%s: attention has biases other than 0, which the format %s does not have; llama and qwen2 have them",
               path, word);
  TARN_REQUIRE(
      !config->out_bias && !config->ffn_bias, USAGE,
      "%s: layers have biases other than 0 besides those of queries, keys and values, which the format %s does "
      "not have; llama has them",
      path, word);
  TARN_REQUIRE(!qwen2 || config->heads * config->head_width == config->d_model, USAGE,
               "%s: head_width is %lld, and in the format %s it is d_model divided by the heads", path,
               (long long)config->head_width, word);
  TARN_REQUIRE(config->share == 1.0, USAGE, "%s: model.positions.share is %.6g, which the format %s does not have",
               path, config->share, word);
  config->qkv_bias = qwen2;
  return TARN_STATUS_OK;
}

// Settings that only training reads, and that the format lacks, are lost; the model computes the same.
static void warn_lost(const tarn__checkpoint *c) {
  const tarn_config *config = c->config;
  const tarn_stack *stack = &config->decoder;
  bool dropout = config->model.embedding_dropout > 0;
  for (int32_t i = 0; i < stack->count; i++) dropout = dropout || config->kinds[stack->layers[i].kind].dropout > 0;
  if (dropout || stack->layerdrop > 0)
    tarn__log(TARN_LOG_WARNING,
              "%s: " FORMAT "'s format has no place for %s%s%s; a training that starts from the export is without",
              c->path, dropout ? "dropout other than attention's" : "", dropout && stack->layerdrop > 0 ? " and " : "",
              stack->layerdrop > 0 ? "layerdrop" : "");
}

static tarn_status write_files(const tarn__checkpoint *c, tarn__hf_writer *writer, const tarn__llama_config *config,
                               const char *folder) {
  char path[PATH_MAX];
  TARN_TRY(tarn__mkdir(folder));
  TARN_TRY(tarn__path_join(path, folder, TARN__HF_WEIGHTS));
  TARN_TRY(tarn__hf_write(writer, path));
  TARN_TRY(tarn__path_join(path, folder, TARN__HF_CONFIG));
  TARN_TRY(tarn__llama_config_write(config, path));
  return tarn__hf_write_vocab(folder, c->target);
}

tarn_status tarn_checkpoint_export_llama(const char *folder, const char *path, tarn_llama_format format) {
  tarn__checkpoint *c;
  tarn__llama_config config;
  TARN_REQUIRE((int)format >= 0 && format <= TARN_LLAMA_FORMAT_QWEN2, USAGE, "there is no format %d", (int)format);
  TARN_TRY(tarn__checkpoint_open(&c, path, TARN__F32));
  tarn__hf_writer writer = {.model = c->model};
  tarn_status status = tarn__llama_describe(&config, c, &writer);
  if (status == TARN_STATUS_OK) status = choose_biases(&config, format, c->path);
  if (status == TARN_STATUS_OK) {
    warn_lost(c);
    status = tarn__llama_add(&writer, &config, &tarn__llama_hf_names, TARN__LLAMA_PREFIX);
  }
  if (status == TARN_STATUS_OK) status = write_files(c, &writer, &config, folder);
  tarn__hf_writer_close(&writer);
  tarn__checkpoint_close(&c);
  return status;
}
