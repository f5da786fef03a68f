#include "foreign/hf_write.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "config/config_part.h"
#include "device/transfer.h"
#include "ops/hadamard.h"
#include "task/task.h"
#include "text/vocab_formats.h"

void tarn__hf_writer_close(tarn__hf_writer *writer) {
  tarn__free(writer->tensors);
  tarn__arena_close(&writer->arena);
}

tarn_status tarn__hf_check_heads(const char *path, const tarn_kind *kind, const char *format) {
  double heads = 0.0, kv_heads = 0.0, width = 0.0;
  tarn__kind_number(kind, "heads", &heads);
  tarn__kind_number(kind, "kv_heads", &kv_heads);
  TARN_REQUIRE(kv_heads == 0 || kv_heads == heads, USAGE,
               "%s: kind %s has kv_heads %g and heads %g, and in %s's format each head has keys and values of its own",
               path, kind->name, kv_heads, heads, format);
  tarn__kind_number(kind, "head_width", &width);
  TARN_REQUIRE(width == 0, USAGE,
               "%s: kind %s has head_width %g, and in %s's format that is d_model divided by the heads", path,
               kind->name, width, format);
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_check_tables(const char *path, const tarn_config_model *model, const char *format) {
  TARN_REQUIRE(
      model->adaptive_input_cutoffs == 0 && model->adaptive_softmax_cutoffs == 0, USAGE,
      "%s: its vocabulary is in bands (model.adaptive_input_cutoff or adaptive_softmax_cutoff), and %s's is not", path,
      format);
  TARN_REQUIRE(model->embedding_size == 0, USAGE,
               "%s: model.embedding_size is %lld, and %s's embeddings have no projection", path,
               (long long)model->embedding_size, format);
  TARN_REQUIRE(model->output_mixtures == 0, USAGE, "%s: model.output_mixtures is %lld, and %s's output is one softmax",
               path, (long long)model->output_mixtures, format);
  TARN_REQUIRE(model->output_rank == 0, USAGE, "%s: model.output_rank is %lld, and %s's output is one matrix", path,
               (long long)model->output_rank, format);
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_check_embedding_norm(const char *path, const tarn_config_model *model, const char *format) {
  TARN_REQUIRE(!model->embedding_norm, USAGE, "%s: model.embedding_norm is yes, and %s's format has none", path,
               format);
  return TARN_STATUS_OK;
}

static tarn_status check_stack(const char *path, const tarn_config *config, tarn__stack_id id, const char *format) {
  const tarn_stack *stack = tarn__config_stack(config, id);
  const char *name = tarn__stack_name(id);
  const bool pre = stack->depth > 0 && config->kinds[stack->pattern[stack->depth - 1].kind].norm == TARN_NORM_PRE;
  TARN_REQUIRE(tarn__config_final_norm(config, id) == pre, USAGE,
               "%s: %s.final_norm is %s, and in %s's format a norm stands behind pre-norm layers alone", path, name,
               pre ? "no" : "yes", format);
  TARN_REQUIRE(!stack->step_embeddings, USAGE, "%s: %s.step_embeddings is yes, and %s's format has none", path, name,
               format);
  TARN_REQUIRE(stack->pool_count == 0, USAGE, "%s: %s.pool_after pools rows, and %s's format has a row for every token",
               path, name, format);
  TARN_REQUIRE(!stack->transparent_attention, USAGE, "%s: %s.transparent_attention is yes, and %s's format has none",
               path, name, format);
  TARN_REQUIRE(stack->act_threshold == 0, USAGE, "%s: %s.act_threshold is %g, and %s's layers compute for every token",
               path, name, stack->act_threshold, format);
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_check_stacks(const char *path, const tarn_config *config, const char *format) {
  TARN_REQUIRE(!tarn__config_task(config)->stacks[0].prefix, USAGE, "%s: %s, and %s's format has an encoder", path,
               tarn__config_task(config)->model, format);
  TARN_TRY(check_stack(path, config, TARN__STACK_ENCODER, format));
  return check_stack(path, config, TARN__STACK_DECODER, format);
}

double tarn__hf_number(const tarn_kind *kind, const char *key) {
  double value = 0.0;
  tarn__kind_number(kind, key, &value);
  return value;
}

const tarn__part *tarn__hf_ffn_activation(const tarn_kind *kind) {
  return tarn__kind_part(kind, "ffn.activation")->part;
}

static const tarn__param *find_named(const tarn__model *model, const char *name) {
  for (size_t i = 0; i < model->param_count; i++)
    if (strcmp(model->params[i]->name, name) == 0) return model->params[i];
  return NULL;
}

// Parameters missing from a set of the decoder are the encoder's if they share it (model.share_stacks).
static const tarn__param *find_param(const tarn__model *model, const char *name) {
  char shared[256];
  const tarn__param *param = find_named(model, name);
  if (param || !model->config->model.share_stacks || strncmp(name, "decoder.", 8) != 0) return param;
  snprintf(shared, sizeof shared, "encoder.%s", name + 8);
  return find_named(model, shared);
}

// The values of a parameter in the host's memory.
static tarn_status host_values(tarn__hf_writer *writer, const float **values, const tarn__param *param) {
  *values = param->value;
  if (tarn__device_is_host(param->device)) return TARN_STATUS_OK;
  void *memory;
  const size_t count = (size_t)(param->rows * param->cols);
  TARN_TRY(tarn__arena_alloc(&writer->arena, &memory, count, sizeof(float)));
  *values = memory;
  return tarn__device_get(param->device, memory, param->value, count * sizeof(float));
}

tarn_status tarn__hf_values(tarn__hf_writer *writer, const char *name, const float **values, int64_t *rows,
                            int64_t *cols) {
  const tarn__param *param = find_param(writer->model, name);
  char signs[128];
  const char *dot = strrchr(name, '.');
  snprintf(signs, sizeof signs, "%.*s.signs", (int)(dot - name), name);
  if (!param) param = find_param(writer->model, signs);
  TARN_REQUIRE(param, INTERNAL, "the model has no parameter %s", name);
  TARN_TRY(host_values(writer, values, param));
  *rows = param->rows;
  *cols = param->cols;
  if (param->init.kind != TARN__INIT_SIGNS) return TARN_STATUS_OK;
  void *memory;
  tarn__hadamard_shape shape = tarn__hadamard_shape_signs(param);
  *rows = param->out;
  *cols = param->in;
  TARN_TRY(tarn__arena_alloc(&writer->arena, &memory, (size_t)(*rows * *cols), sizeof(float)));
  const float *own = *values;
  *values = memory;
  return tarn__hadamard_dense(memory, own, &shape);
}

tarn_status tarn__hf_add(tarn__hf_writer *writer, const char *name, const float *values, int64_t rows, int64_t cols,
                         bool vector) {
  char *copy;
  TARN_TRY(tarn__grow(&writer->tensors, &writer->capacity, writer->count + 1, sizeof *writer->tensors));
  TARN_TRY(tarn__arena_strdup(&writer->arena, &copy, name));
  tarn__stored tensor = {.name = copy,
                         .dtype = "F32",
                         .data = values,
                         .bytes = (size_t)(rows * cols) * sizeof(float),
                         .dims = vector ? 1 : 2};
  tensor.shape[0] = vector ? cols : rows;
  if (!vector) tensor.shape[1] = cols;
  writer->tensors[writer->count++] = tensor;
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_add_parts(tarn__hf_writer *writer, const char *prefix, const tarn__hf_name *name,
                               const char *ours) {
  const float *values = NULL;
  int64_t rows = 0, cols = 0;
  int parts = 0;
  TARN_TRY(tarn__hf_values(writer, ours, &values, &rows, &cols));
  while (parts < TARN__HF_PARTS && name->theirs[parts]) parts++;
  const bool vector = rows == 1 && strcmp(strrchr(ours, '.'), ".weight") != 0;
  if (vector)
    cols /= parts;
  else
    rows /= parts;
  for (int i = 0; i < parts; i++) {
    char theirs[128];
    snprintf(theirs, sizeof theirs, "%s%s", prefix, name->theirs[i]);
    TARN_TRY(tarn__hf_add(writer, theirs, values + i * rows * cols, rows, cols, vector));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__hf_write(const tarn__hf_writer *writer, const char *path) {
  static const tarn__stored_text format = {"format", "pt"};
  return tarn__safetensors_write(path, writer->tensors, writer->count, &format, 1);
}

tarn_status tarn__hf_write_vocab(const char *folder, const tarn_vocab *vocab) {
  if (tarn__vocab_is_wordpiece(vocab)) return tarn__vocab_export_wordpiece(folder, vocab);
  if (tarn__vocab_is_roberta(vocab) || tarn__vocab_is_gpt2(vocab)) return tarn__vocab_export_gpt2(folder, vocab);
  if (tarn__vocab_is_bpe(vocab)) return tarn__vocab_export_tokenizer(folder, vocab);
  tarn__log(TARN_LOG_WARNING, "%s: no vocabulary was written, as transformers has no form for one of this kind",
            folder);
  return TARN_STATUS_OK;
}
