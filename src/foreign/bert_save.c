// Exports a checkpoint as a folder for the package transformers, as BERT or RoBERTa.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "config/config_part.h"
#include "foreign/bert_format.h"
#include "foreign/hf_write.h"
#include "parts/table/part_table.h"
#include "store/checkpoint.h"
#include "tarn/lab/foreign.h"
#include "task/task.h"

// The export.
typedef struct target {
  const tarn__checkpoint *from;
  tarn__bert_config config;
  tarn__hf_writer writer;
} target;

// The format has these settings once, for all layers.
static bool is_labelled(const tarn__checkpoint *c) {
  const tarn__task *task = tarn__config_task(c->config);
  const unsigned labels = 1u << TARN__KEPT_CLASSES | 1u << TARN__KEPT_NUMBERS;
  return task->architecture == TARN_ARCHITECTURE_ENCODER && (task->keeps & labels) != 0;
}

static tarn_status check_layer(const tarn__checkpoint *c, const tarn__bert_family *family, int32_t layer) {
  static const char *const numbers[] = {"heads", "ffn.width", "attention_dropout", "dropout"};
  const tarn_stack *stack = &c->config->encoder;
  const tarn_kind *kind = &c->config->kinds[stack->layers[layer].kind];
  const tarn_kind *first = &c->config->kinds[stack->layers[0].kind];
  const tarn__part *mixer = &tarn__mixer_attention.part, *ffn = &tarn__channel_ffn.part;
  TARN_REQUIRE(kind->mixer.part == mixer, USAGE, "%s: layer %d (kind %s) is none of %s, as %s's are", c->path,
               (int)layer + 1, kind->name, mixer->word, family->name);
  TARN_TRY(tarn__hf_check_heads(c->path, kind, family->name));
  TARN_REQUIRE(kind->norm == TARN_NORM_POST, USAGE, "%s: layer %d (kind %s) is not post-norm, as %s's are", c->path,
               (int)layer + 1, kind->name, family->name);
  TARN_REQUIRE(kind->gate == TARN_GATE_NONE, USAGE,
               "%s: kind %s has gates on its branches, which %s's format does not have", c->path, kind->name,
               family->name);
  TARN_REQUIRE(tarn__part_same(&kind->norm_type, &c->config->model.norm_type), USAGE,
               "%s: norms of kind %s are not as model.norm_type says, and %s's are all alike", c->path, kind->name,
               family->name);
  TARN_REQUIRE(kind->channel.part == ffn, USAGE, "%s: layer %d (kind %s) has %s as its FFN, and %s's have %s", c->path,
               (int)layer + 1, kind->name, tarn__kind_channel_word(kind), family->name, ffn->word);
  TARN_REQUIRE(tarn__hf_ffn_activation(kind) == tarn__hf_ffn_activation(first), USAGE,
               "%s: kinds %s and %s have different activations, and %s's format has one for all layers", c->path,
               first->name, kind->name, family->name);
  TARN_REQUIRE(tarn__hf_activation_word(tarn__hf_ffn_activation(kind)) &&
                   (family->shifted || is_labelled(c) || tarn__hf_ffn_activation(kind) == &tarn__activation_gelu.part),
               USAGE, "%s: the activation of kind %s is %s, which %s's format does not have", c->path, kind->name,
               tarn__hf_ffn_activation(kind)->word, family->name);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    TARN_REQUIRE(tarn__hf_number(kind, numbers[i]) == tarn__hf_number(first, numbers[i]), USAGE,
                 "%s: kinds %s and %s have different %s, and %s's format has one number for all layers", c->path,
                 first->name, kind->name, numbers[i], family->name);
  return TARN_STATUS_OK;
}

static tarn_status check_model(const tarn__checkpoint *c, const tarn__bert_family *family) {
  const tarn_config_model *m = &c->config->model;
  TARN_REQUIRE((tarn__config_task(c->config)->sections >> TARN__TASK_MASKING & 1u) || is_labelled(c), USAGE,
               "%s: %s; what is written as %s is a masked language model, or a classifier with an encoder alone",
               c->path, tarn__config_task(c->config)->model, family->name);
  TARN_REQUIRE(!is_labelled(c) || (c->config->head.pool == TARN_POOL_CLS && c->config->head.hidden == m->d_model),
               USAGE, "%s: %s's classifiers have head.pool: cls, and head.hidden as wide as model.d_model (%lld)",
               c->path, family->name, (long long)m->d_model);
  TARN_REQUIRE(m->positions.part == &tarn__position_learned.part, USAGE, "%s: model.positions is not %s, as %s's are",
               c->path, tarn__position_learned.part.word, family->name);
  TARN_REQUIRE(!m->embedding_scale, USAGE, "%s: model.embedding_scale is yes, and %s's format has none", c->path,
               family->name);
  TARN_REQUIRE(m->embedding_norm, USAGE, "%s: model.embedding_norm is no, and %s's embeddings have a norm", c->path,
               family->name);
  TARN_REQUIRE(m->norm_type.part == &tarn__norm_layer.part, USAGE, "%s: model.norm_type is %s, and %s's is %s", c->path,
               m->norm_type.part->word, family->name, tarn__norm_layer.part.word);
  TARN_TRY(tarn__hf_check_tables(c->path, m, family->name));
  TARN_TRY(tarn__hf_check_stacks(c->path, c->config, family->name));
  for (int32_t i = 0; i < c->config->encoder.count; i++) TARN_TRY(check_layer(c, family, i));
  const tarn_kind *first = &c->config->kinds[c->config->encoder.layers[0].kind];
  TARN_REQUIRE(m->embedding_dropout == first->dropout, USAGE,
               "%s: model.embedding_dropout is %g and kinds.%s.dropout %g, and %s's format has one number for both",
               c->path, m->embedding_dropout, first->name, first->dropout, family->name);
  TARN_REQUIRE(c->config->encoder.layerdrop == 0, USAGE, "%s: encoder.layerdrop is %g, and %s's format has none",
               c->path, c->config->encoder.layerdrop, family->name);
  TARN_REQUIRE(!c->model->encoder.norm.use.part, USAGE, "%s: there is a norm behind the last layer, and %s's has none",
               c->path, family->name);
  return TARN_STATUS_OK;
}

// A model without segments is given one that adds nothing.
static tarn_status describe(target *t, const tarn__bert_family *family) {
  const tarn__checkpoint *c = t->from;
  const tarn_config_model *m = &c->config->model;
  const tarn_kind *kind = &c->config->kinds[c->config->encoder.layers[0].kind];
  const int32_t pad = tarn_vocab_pad(c->target);
  t->config = (tarn__bert_config){.family = family,
                                  .d_model = m->d_model,
                                  .layers = c->config->encoder.count,
                                  .heads = (int64_t)tarn__hf_number(kind, "heads"),
                                  .ffn = (int64_t)tarn__hf_number(kind, "ffn.width"),
                                  .segments = m->segments ? m->segments : 1,
                                  .vocab = tarn_vocab_size(c->target),
                                  .padding = pad >= 0 ? pad : family->padding,
                                  .activation = tarn__hf_ffn_activation(kind),
                                  .dropout = kind->dropout,
                                  .attention_dropout = tarn__hf_number(kind, "attention_dropout"),
                                  .epsilon = tarn__hf_number(kind, "norm_type.epsilon"),
                                  .tied = m->embeddings == TARN_EMBEDDINGS_ENCODER_OUTPUT};
  t->config.positions = m->max_length + tarn__bert_first_position(&t->config);
  t->config.labelled = is_labelled(c);
  t->config.label_dropout = c->config->head.dropout;
  t->config.regression = (tarn__config_task(c->config)->keeps >> TARN__KEPT_NUMBERS & 1u) != 0;
  return t->config.labelled && !t->config.regression ? tarn__strdup(&t->config.labels, c->config->head.labels)
                                                     : TARN_STATUS_OK;
}

// Adds a table with rows of zeros before those of `ours` (NULL: only zeros).
static tarn_status add_below(target *t, const char *theirs, const char *ours, int64_t zeros) {
  const float *values = NULL;
  int64_t rows = 0, cols = t->config.d_model;
  void *memory;
  char full[128];
  if (ours) TARN_TRY(tarn__hf_values(&t->writer, ours, &values, &rows, &cols));
  TARN_TRY(tarn__arena_alloc(&t->writer.arena, &memory, (size_t)((zeros + rows) * cols), sizeof(float)));
  memset(memory, 0, (size_t)(zeros * cols) * sizeof(float));
  if (rows) memcpy((float *)memory + zeros * cols, values, (size_t)(rows * cols) * sizeof(float));
  snprintf(full, sizeof full, "%s%s", t->config.family->prefix, theirs);
  return tarn__hf_add(&t->writer, full, memory, zeros + rows, cols, false);
}

static tarn_status add_embeddings(target *t) {
  const char *prefix = t->config.family->prefix;
  for (int i = 0; i < TARN__BERT_MODEL_NAMES; i++) {
    const tarn__hf_name *name = &tarn__bert_model_names[i];
    const bool untied = i == TARN__BERT_WORDS && !t->config.tied;
    if (i == TARN__BERT_POSITIONS)
      TARN_TRY(add_below(t, name->theirs[0], name->ours, tarn__bert_first_position(&t->config)));
    else if (strcmp(name->ours, "embeddings.segments.weight") == 0 && !t->from->config->model.segments)
      TARN_TRY(add_below(t, name->theirs[0], NULL, 1));
    else
      TARN_TRY(tarn__hf_add_parts(&t->writer, prefix, name, untied ? "embeddings.input.weight" : name->ours));
  }
  return TARN_STATUS_OK;
}

static tarn_status add_all(target *t) {
  const tarn_stack *stack = &t->from->config->encoder;
  const int family = tarn__bert_family_index(&t->config);
  char prefix[96], ours[160];
  TARN_TRY(add_embeddings(t));
  for (int32_t l = 0; l < stack->count; l++)
    for (int i = 0; i < TARN__BERT_LAYER_NAMES; i++) {
      const tarn__hf_name *name = &tarn__bert_layer_names[i];
      snprintf(prefix, sizeof prefix, "%sencoder.layer.%d.", t->config.family->prefix, (int)l);
      snprintf(ours, sizeof ours, "encoder.%s.%s", stack->layers[l].set, name->ours);
      TARN_TRY(tarn__hf_add_parts(&t->writer, prefix, name, ours));
    }
  // The pooler belongs to the body, the classifier does not.
  for (int i = 0; i < TARN__BERT_LABEL_NAMES && t->config.labelled; i++) {
    const tarn__hf_name *name = &tarn__bert_label_names[family][i];
    const bool pooler = strncmp(name->theirs[0], "pooler.", 7) == 0;
    TARN_TRY(tarn__hf_add_parts(&t->writer, pooler ? t->config.family->prefix : "", name, name->ours));
  }
  if (t->config.labelled) return TARN_STATUS_OK;
  for (int i = 0; i < TARN__BERT_HEAD_NAMES; i++)
    TARN_TRY(
        tarn__hf_add_parts(&t->writer, "", &tarn__bert_head_names[family][i], tarn__bert_head_names[family][i].ours));
  if (t->config.tied) return TARN_STATUS_OK;
  const tarn__hf_name matrix = {{tarn__bert_decoders[family][0]}, NULL},
                      bias = {{tarn__bert_decoders[family][1]}, NULL};
  TARN_TRY(tarn__hf_add_parts(&t->writer, "", &matrix, "embeddings.output.weight"));
  return tarn__hf_add_parts(&t->writer, "", &bias, "output.bias");
}

static tarn_status write_files(target *t, const char *folder) {
  const tarn_vocab *vocab = t->from->target;
  char path[PATH_MAX];
  TARN_TRY(tarn__mkdir(folder));
  TARN_TRY(tarn__path_join(path, folder, TARN__HF_WEIGHTS));
  TARN_TRY(tarn__hf_write(&t->writer, path));
  TARN_TRY(tarn__path_join(path, folder, TARN__HF_CONFIG));
  TARN_TRY(tarn__bert_config_write(&t->config, tarn_vocab_special(vocab, TARN_SPECIAL_CLS),
                                   tarn_vocab_special(vocab, TARN_SPECIAL_SEP), path));
  return tarn__hf_write_vocab(folder, vocab);
}

tarn_status tarn_checkpoint_export_bert(const char *folder, const char *path, tarn_bert_format format) {
  tarn__checkpoint *c;
  TARN_REQUIRE(format == TARN_BERT_FORMAT_BERT || format == TARN_BERT_FORMAT_ROBERTA, USAGE,
               "there is no format %d of BERT's models", (int)format);
  const tarn__bert_family *family = &tarn__bert_families[format];
  TARN_TRY(tarn__checkpoint_open(&c, path, TARN__F32));
  target t = {.from = c, .writer = {.model = c->model}};
  tarn_status status = check_model(c, family);
  if (status == TARN_STATUS_OK) {
    status = describe(&t, family);
    if (status == TARN_STATUS_OK) status = add_all(&t);
  }
  if (status == TARN_STATUS_OK) status = write_files(&t, folder);
  tarn__hf_writer_close(&t.writer);
  tarn__free(t.config.labels);
  tarn__checkpoint_close(&c);
  return status;
}
