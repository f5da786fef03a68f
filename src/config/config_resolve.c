// Defaults that depend on other keys, and checks that concern several keys.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "config/architecture.h"
#include "config/config_adaptive.h"
#include "config/config_carry.h"
#include "config/config_dynamics.h"
#include "config/config_freeze.h"
#include "config/config_funnel.h"
#include "config/config_part.h"
#include "config/config_read.h"
#include "config/config_ridge.h"
#include "config/config_share.h"
#include "config/config_steps.h"
#include "config/config_transparent.h"
#include "tarn/text.h"
#include "task/images.h"
#include "task/labelled.h"
#include "task/task.h"

// Fails if a key is in the file.
static tarn_status refuse_key(const tarn__yaml_node *root, const char *key, const char *text) {
  return tarn__yaml_is_empty(tarn__yaml_find(root, key)) ? TARN_STATUS_OK : tarn__yaml_fail_key(root, key, text);
}

static bool attends_to_nothing(const tarn__part *part, const void *user) {
  const tarn__mixer_entry *mixer = (const tarn__mixer_entry *)(const void *)part;
  (void)user;
  return mixer->causal && !mixer->attends;
}

static tarn_status check_backskip(const tarn_config *config, const tarn_kind *kind, const tarn__yaml_node *root) {
  char key[96];
  char text[256];
  const tarn_backskip *backskip = &kind->backskip;
  if (backskip->method == TARN_BACKSKIP_NONE) return TARN_STATUS_OK;
  snprintf(key, sizeof key, "kinds.%s.backskip.method", kind->name);
  if (kind->frozen != TARN_FROZEN_YES) {
    snprintf(text, sizeof text, "%s need the true gradient; set kinds.%s.frozen to yes",
             kind->frozen == TARN_FROZEN_NO ? "the layer is trained, and its weights"
                                            : "its norms and biases are trained and",
             kind->name);
    return tarn__yaml_fail_key(root, key, text);
  }
  // Its cross-attention has a second input, which would receive no gradient.
  if (tarn__config_crosses(config, kind)) {
    char words[TARN__PART_LIST];
    snprintf(
        text, sizeof text,
        "in the decoder kind %s attends to the encoder, whose gradient has no stand-in; give the decoder a kind of "
        "its own without backskip, or one with mixer %s",
        kind->name, tarn__part_list(words, TARN__TABLE_MIXER, attends_to_nothing, NULL));
    return tarn__yaml_fail_key(root, key, text);
  }
  if (backskip->method == TARN_BACKSKIP_PREDICTOR && backskip->refresh == 0) {
    snprintf(key, sizeof key, "kinds.%s.backskip.refresh", kind->name);
    return tarn__yaml_fail_key(root, key, "the predictor learns from true gradients; set it to 1 or more");
  }
  return TARN_STATUS_OK;
}

// A layer without a residual is its token mixer alone; one without an FFN needs a token mixer.
static tarn_status resolve_residual(tarn_kind *kind, const tarn__yaml_node *root) {
  char key[96];
  char text[160];
  if (!kind->residual) {
    snprintf(key, sizeof key, "kinds.%s.norm", kind->name);
    if (kind->norm != TARN_NORM_NONE)
      TARN_TRY(refuse_key(root, key, "a layer without residual has no norm; leave it out or set it to none"));
    kind->norm = TARN_NORM_NONE;
    snprintf(key, sizeof key, "kinds.%s.ffn", kind->name);
    if (kind->channel.part)
      TARN_TRY(refuse_key(root, key, "a layer without residual has no FFN; leave it out or set it to 0"));
    kind->channel = (tarn_part_use){NULL, NULL};
  }
  if (!tarn__mixer_of(kind)->empty || kind->channel.part) return TARN_STATUS_OK;
  snprintf(key, sizeof key, "kinds.%s.%s", kind->name, kind->residual ? "ffn" : "residual");
  snprintf(text, sizeof text, "a layer with mixer %s is its FFN, which %s", kind->mixer.part->word,
           kind->residual ? "cannot have width 0" : "has a residual");
  return tarn__yaml_fail_key(root, key, text);
}

// Rejects keys without effect.
static tarn_status refuse_idle(const tarn_kind *kind, const tarn__yaml_node *root) {
  char key[128];
  snprintf(key, sizeof key, "kinds.%s.norm_type", kind->name);
  if (!tarn__order_has_norm(kind->norm))
    TARN_TRY(refuse_key(root, key,
                        !kind->residual                ? "a layer without residual has no norm; leave it out"
                        : kind->norm == TARN_NORM_NONE ? "a layer with norm none has none to choose; leave it out"
                                                       : "a layer with norm fixup has none to choose; leave it out"));
  if (kind->gate == TARN_GATE_NONE && kind->gate_init != 0.0) {
    snprintf(key, sizeof key, "kinds.%s.gate_init", kind->name);
    TARN_TRY(refuse_key(root, key, "the layer has no gate; leave it out, or set gate to scalar"));
  }
  if (kind->channel.part) return TARN_STATUS_OK;
  snprintf(key, sizeof key, "kinds.%s.ffn", kind->name);
  const tarn__yaml_node *ffn = tarn__yaml_find(root, key);
  for (const tarn__yaml_node *entry = ffn && ffn->type == TARN__YAML_MAP ? ffn->first : NULL; entry;
       entry = entry->next) {
    if (strcmp(entry->key, "type") == 0 || strcmp(entry->key, tarn__kind_width_name()) == 0) continue;
    snprintf(key, sizeof key, "kinds.%s.ffn.%s", kind->name, entry->key);
    TARN_TRY(refuse_key(root, key, "an FFN of width 0 is none; leave it out, or give a width"));
  }
  return TARN_STATUS_OK;
}

// The requirements of norm order and gate on the rest of the kind.
static tarn_status check_branches(const tarn_kind *kind, const tarn__yaml_node *root) {
  char key[96];
  snprintf(key, sizeof key, "kinds.%s.gate", kind->name);
  if (kind->gate != TARN_GATE_NONE && !kind->residual)
    return tarn__yaml_fail_key(root, key, "a layer without residual has no branch; leave it out");
  if (kind->gate != TARN_GATE_NONE && kind->norm == TARN_NORM_FIXUP)
    return tarn__yaml_fail_key(root, key, "norm fixup has a factor of its own on each branch; leave it out");
  if (kind->gate != TARN_GATE_NONE && kind->frozen == TARN_FROZEN_YES && kind->gate_init == 0.0) {
    snprintf(key, sizeof key, "kinds.%s.gate_init", kind->name);
    return tarn__yaml_fail_key(root, key,
                               "is 0 and the layer is frozen with its gates, so its branches would stay shut; set "
                               "frozen to matrices, or another first value");
  }
  snprintf(key, sizeof key, "kinds.%s.norm", kind->name);
  if (kind->norm == TARN_NORM_B2T && (tarn__mixer_of(kind)->empty || !kind->channel.part))
    return tarn__yaml_fail_key(root, key,
                               "b2t leads past the norms inside a layer, so it needs a token mixer and an FFN");
  const bool by_depth = kind->norm == TARN_NORM_DEEPNORM || kind->norm == TARN_NORM_FIXUP;
  if (by_depth && kind->init == TARN_INIT_HADAMARD && kind->frozen != TARN_FROZEN_NO) {
    snprintf(key, sizeof key, "kinds.%s.init", kind->name);
    return tarn__yaml_fail_key(root, key,
                               "the signs of frozen structured matrices have one size, and this norm sets the first "
                               "values of queries, keys and values apart; set it to orthogonal");
  }
  return TARN_STATUS_OK;
}

static tarn_status resolve_kind(const tarn_config *config, tarn_kind *kind, const tarn__yaml_node *root) {
  if (kind->init == TARN_INIT_COUNT)
    kind->init = kind->frozen == TARN_FROZEN_NO ? TARN_INIT_XAVIER : TARN_INIT_ORTHOGONAL;
  if (kind->norm == TARN_NORM_COUNT) kind->norm = tarn__mixer_of(kind)->empty ? TARN_NORM_PRE : config->model.norm;
  if (isnan(kind->dropout)) kind->dropout = config->model.dropout;
  const int64_t *width = tarn__kind_width(kind);
  if (width && *width == 0) kind->channel = (tarn_part_use){NULL, NULL};
  TARN_TRY(resolve_residual(kind, root));
  TARN_TRY(refuse_idle(kind, root));
  TARN_TRY(check_branches(kind, root));
  return tarn__parts_resolve_kind(config, kind, root);
}

// A frozen input shares its matrix with the output layer; `apart`: the values of model.embeddings with which it does
// not.
static tarn_status fail_shared(const tarn_config *config, const tarn__yaml_node *root, const char *side,
                               unsigned apart) {
  char words[TARN__TASK_TEXT], text[TARN__TASK_TEXT + 192];
  tarn__task_embeddings(words, tarn__config_task(config), apart);
  snprintf(text, sizeof text,
           "with this model.embeddings the %s shares its matrix with the output layer, which is trained; set "
           "model.embeddings to %s",
           side, words);
  return tarn__yaml_fail_key(root, "model.frozen_embeddings", text);
}

// Two inputs or outputs that share a matrix must agree on whether it is frozen.
static tarn_status check_frozen_embeddings(const tarn_config *config, const tarn__yaml_node *root) {
  const tarn_config_model *model = &config->model;
  tarn_frozen_embeddings frozen = model->frozen_embeddings;
  tarn_embeddings share = model->embeddings;
  bool encoder = frozen == TARN_FROZEN_EMBEDDINGS_ENCODER || frozen == TARN_FROZEN_EMBEDDINGS_BOTH;
  bool decoder = frozen == TARN_FROZEN_EMBEDDINGS_DECODER || frozen == TARN_FROZEN_EMBEDDINGS_BOTH;
  bool all = share == TARN_EMBEDDINGS_ALL;
  const unsigned none = 1u << TARN_EMBEDDINGS_NONE;
  if (encoder && (all || share == TARN_EMBEDDINGS_ENCODER_OUTPUT))
    return fail_shared(config, root, "encoder", none | 1u << TARN_EMBEDDINGS_DECODER);
  if (decoder && (all || share == TARN_EMBEDDINGS_DECODER))
    return fail_shared(config, root, "decoder",
                       none | 1u << TARN_EMBEDDINGS_ENCODER_DECODER | 1u << TARN_EMBEDDINGS_ENCODER_OUTPUT);
  if (encoder != decoder && share == TARN_EMBEDDINGS_ENCODER_DECODER) {
    return tarn__yaml_fail_key(
        root, "model.frozen_embeddings",
        "with model.embeddings: encoder_decoder one matrix serves both inputs; set both or none");
  }
  return TARN_STATUS_OK;
}

// An output layer with two matrices.
static tarn_status check_output_rank(const tarn_config *config, const tarn__yaml_node *root) {
  const tarn_config_model *model = &config->model;
  char text[TARN__TASK_TEXT + 192];
  if (model->output_rank == 0) return TARN_STATUS_OK;
  if (model->embeddings != TARN_EMBEDDINGS_NONE && model->embeddings != TARN_EMBEDDINGS_ENCODER_DECODER) {
    char words[TARN__TASK_TEXT];
    tarn__task_embeddings(words, tarn__config_task(config),
                          1u << TARN_EMBEDDINGS_NONE | 1u << TARN_EMBEDDINGS_ENCODER_DECODER);
    snprintf(text, sizeof text,
             "with this model.embeddings the output layer shares its matrix with an input; set model.embeddings to %s",
             words);
    return tarn__yaml_fail_key(root, "model.output_rank", text);
  }
  if (model->output_rank > 1 && model->output_rank <= model->d_model) return TARN_STATUS_OK;
  snprintf(text, sizeof text, "must be 2 to model.d_model (%lld), or 0 for one matrix, not %lld",
           (long long)model->d_model, (long long)model->output_rank);
  return tarn__yaml_fail_key(root, "model.output_rank", text);
}

static int64_t embedding_width(const tarn_config_model *model) {
  return model->embedding_size > 0 ? model->embedding_size : model->d_model;
}

// Factorised embeddings: sinusoids need pairs of columns.
static tarn_status check_embedding_size(const tarn_config *config, const tarn__yaml_node *root) {
  const int64_t size = config->model.embedding_size, d_model = config->model.d_model;
  char text[160];
  if (size == 0 || (size % 2 == 0 && size < d_model)) return TARN_STATUS_OK;
  snprintf(text, sizeof text, "must be even and below model.d_model (%lld), or 0 for embeddings of d_model, not %lld",
           (long long)d_model, (long long)size);
  return tarn__yaml_fail_key(root, "model.embedding_size", text);
}

static tarn_status check_mixtures(const tarn_config *config, const tarn__yaml_node *root) {
  static const char key[] = "model.output_mixtures";
  const tarn__task *task = tarn__config_task(config);
  char text[TARN__TASK_TEXT];
  if (config->model.output_mixtures == 0) return TARN_STATUS_OK;
  if (config->model.output_mixtures == 1)
    return tarn__yaml_fail_key(root, key, "a mixture has 2 softmaxes or more; 0 is one softmax");
  if (!task->head && !task->labelled) return TARN_STATUS_OK;
  snprintf(text, sizeof text, "%s has a head of its own; set it to 0", task->model);
  return tarn__yaml_fail_key(root, key, text);
}

static tarn_status check_model(const tarn_config *config, const tarn__yaml_node *root) {
  const tarn_config_model *model = &config->model;
  TARN_TRY(tarn__parts_resolve_model(config, root));
  bool across = model->embeddings == TARN_EMBEDDINGS_ALL || model->embeddings == TARN_EMBEDDINGS_ENCODER_DECODER ||
                model->embeddings == TARN_EMBEDDINGS_ENCODER_OUTPUT;
  const tarn_config_data *data = &config->data;
  // Marian's vocabularies of both sides are two files with one list of tokens, which training compares.
  if (across && model->decoder_start < 0 && data->vocab && data->target_vocab &&
      !tarn__file_same(data->vocab, data->target_vocab)) {
    return tarn__yaml_fail_key(root, "model.embeddings",
                               "both sides share a matrix, so data.target_vocab must be the same file as data.vocab");
  }
  TARN_TRY(check_embedding_size(config, root));
  TARN_TRY(check_output_rank(config, root));
  TARN_TRY(check_mixtures(config, root));
  return check_frozen_embeddings(config, root);
}

// The outputs of the bottom must be a function of the sentence alone.
static tarn_status check_cache(const tarn_config *config, const tarn__yaml_node *root) {
  static const char key[] = "train.cache_frozen";
  char text[224];
  const tarn__task_stack *bottom = tarn__task_bottom(tarn__config_task(config));
  if (!bottom) {
    snprintf(text, sizeof text, "what %s reads is not the same in every epoch", tarn__config_task(config)->model);
    return tarn__yaml_fail_key(root, key, text);
  }
  tarn_frozen_embeddings frozen = config->model.frozen_embeddings;
  if (frozen != TARN_FROZEN_EMBEDDINGS_ENCODER && frozen != TARN_FROZEN_EMBEDDINGS_BOTH) {
    return tarn__yaml_fail_key(root, key,
                               "the encoder's embedding is trained; set model.frozen_embeddings to encoder or both");
  }
  if (config->model.embedding_norm)
    return tarn__yaml_fail_key(root, key,
                               "the frozen layers read model.embedding_norm, which is trained; set it to no");
  const tarn__stack_id id = bottom->id;
  const tarn_stack *stack = tarn__config_stack(config, id);
  const tarn_kind *lowest = &config->kinds[stack->layers[0].kind];
  if (lowest->frozen != TARN_FROZEN_YES) {
    snprintf(text, sizeof text, "the lowest layer of the %s (kind %s) is trained, so there is nothing to keep",
             tarn__stack_name(id), lowest->name);
    return tarn__yaml_fail_key(root, key, text);
  }
  if (config->model.embedding_dropout > 0) {
    snprintf(text, sizeof text,
             "model.embedding_dropout is %g, so the outputs of the frozen layers differ from step to step; set it to 0",
             config->model.embedding_dropout);
    return tarn__yaml_fail_key(root, key, text);
  }
  int64_t heads;
  bool trained;
  double shift;
  char shifts[TARN__KIND_KEY];
  if (tarn__positions_random(shifts, config, &shift)) {
    snprintf(text, sizeof text,
             "model.positions.%s is %g, so the outputs of the frozen layers differ from step to step; use other "
             "positions",
             shifts, shift);
    return tarn__yaml_fail_key(root, key, text);
  }
  if (tarn__config_biases(config, id, &heads, &trained) && trained) {
    snprintf(text, sizeof text,
             "the frozen layers read the biases of model.positions %s, which are trained, so their outputs differ from "
             "step to step; use other positions",
             config->model.positions.part->word);
    return tarn__yaml_fail_key(root, key, text);
  }
  if (stack->layerdrop > 0) {
    snprintf(text, sizeof text,
             "%s.layerdrop is %g, so the outputs of the frozen layers differ from step to step; set it to 0",
             tarn__stack_name(id), stack->layerdrop);
    return tarn__yaml_fail_key(root, key, text);
  }
  for (int32_t i = 0; i < stack->count; i++) {
    const tarn_kind *kind = &config->kinds[stack->layers[i].kind];
    if (kind->frozen != TARN_FROZEN_YES) break;
    double p;
    char random[TARN__KIND_KEY];
    if (!tarn__kind_random(random, kind, &p)) continue;
    snprintf(text, sizeof text,
             "kinds.%s.%s is %g, so the outputs of the frozen layers differ from step to step; set it to 0", kind->name,
             random, p);
    return tarn__yaml_fail_key(root, key, text);
  }
  return TARN_STATUS_OK;
}

static bool in_pattern(const tarn_config *config, const tarn_stack *stack, const char *kind) {
  for (int32_t i = 0; i < stack->depth; i++)
    if (strcmp(config->kinds[stack->pattern[i].kind].name, kind) == 0) return true;
  return false;
}

// An override on the command line for a kind that the file does not have, such as "l" instead of "L", would have no
// effect. Settings of a sweep for all its variants may apply to only some of them.
static tarn_status check_new_kinds(const tarn_config *config, const tarn__yaml_node *root) {
  const tarn__yaml_node *kinds = tarn__yaml_get(root, "kinds");
  for (const tarn__yaml_node *kind = kinds ? kinds->first : NULL; kind; kind = kind->next) {
    const char *names[TARN_CONFIG_KINDS];
    size_t count = 0;
    if (kind->line != 0 || strcmp(kind->origin, kinds->origin) == 0) continue;
    if (in_pattern(config, &config->encoder, kind->key) || in_pattern(config, &config->decoder, kind->key)) continue;
    for (const tarn__yaml_node *other = kinds->first; other; other = other->next)
      if (other != kind) names[count++] = other->key;
    const char *near = tarn_text_nearest(kind->key, names, count);
    return tarn__yaml_fail(kind, "kinds.%s: no layer is of this kind, and the file has no such kind%s%s%s", kind->key,
                           near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
  }
  return TARN_STATUS_OK;
}

static tarn_status check_train(const tarn_config *config, const tarn__yaml_node *root) {
  const tarn_config_train *train = &config->train;
  if (train->average > train->keep_last) {
    return tarn__yaml_fail_key(root, "train.average", "more checkpoints than train.keep_last keeps");
  }
  if (train->fp32 != TARN_FP32_EXACT && train->precision != TARN_PRECISION_FP32)
    return tarn__yaml_fail_key(root, "train.fp32", "train.precision is bf16, so there are no products of fp32 numbers");
  if (train->min_lr > train->lr) return tarn__yaml_fail_key(root, "train.min_lr", "larger than train.lr");
  return TARN_STATUS_OK;
}

static tarn_status fail_task_key(const void *root, const char *key, const char *text) {
  return tarn__yaml_fail_key(root, key, text);
}

static bool is_given(const void *root, const char *key) { return !tarn__yaml_is_empty(tarn__yaml_find(root, key)); }

// A key of a section that the task does not have would have no effect.
static tarn_status check_sections(const tarn_config *config, const tarn__yaml_node *root) {
  static const tarn__section_id own[TARN__TASK_SECTIONS] = {[TARN__TASK_MASKING] = TARN__SECTION_MASKING,
                                                            [TARN__TASK_HEAD] = TARN__SECTION_HEAD,
                                                            [TARN__TASK_IMAGE] = TARN__SECTION_IMAGE,
                                                            [TARN__TASK_LEVENSHTEIN] = TARN__SECTION_LEVENSHTEIN};
  const tarn__task *task = tarn__config_task(config);
  for (int s = 0; s < TARN__TASK_SECTIONS; s++) {
    const tarn__section *section = tarn__config_section(own[s]);
    for (int i = 0; !(task->sections >> s & 1u) && i < section->count; i++) {
      char key[64], text[TARN__TASK_TEXT];
      const tarn__option *option = &section->options[i];
      const char *field = (const char *)config + section->offset + option->offset;
      snprintf(key, sizeof key, "%s.%s", section->path, option->name);
      if (option->value ? tarn__option_is_default(option, field, &config->model) : !is_given(root, key)) continue;
      snprintf(text, sizeof text, "%s has no %s; leave the section out", task->model, section->path);
      return tarn__yaml_fail_key(root, key, text);
    }
  }
  return TARN_STATUS_OK;
}

// The same for keys about another kind of decoding, also at their defaults.
static tarn_status check_decoding(const tarn_config *config, const tarn__yaml_node *root) {
  static const tarn__section_id sections[] = {TARN__SECTION_TRANSLATE, TARN__SECTION_VALID};
  const tarn__task *task = tarn__config_task(config);
  for (size_t s = 0; s < sizeof sections / sizeof *sections && (task->uses >> TARN__USE_TRANSLATE & 1u); s++) {
    const tarn__section *section = tarn__config_section(sections[s]);
    for (int i = 0; i < section->count; i++) {
      char key[64], text[2 * TARN__TASK_TEXT];
      const tarn__option *option = &section->options[i];
      snprintf(key, sizeof key, "%s.%s", section->path, option->name);
      if (tarn__decoding_has(text, task, option->name) || !is_given(root, key)) continue;
      return tarn__yaml_fail_key(root, key, text);
    }
  }
  return TARN_STATUS_OK;
}

// The names of the classes are part of the description, so that a model knows them without its data.
static tarn_status find_labels(tarn_config *config) {
  char *labels = NULL, *copy = NULL;
  if (!(tarn__config_task(config)->keeps & (1u << TARN__KEPT_CLASSES | 1u << TARN__KEPT_WORD_CLASSES)) ||
      config->head.labels || !config->data.train)
    return TARN_STATUS_OK;
  tarn_status status = tarn__labels_of_shard(&labels, config->data.train);
  if (status == TARN_STATUS_OK) status = tarn__arena_strdup(&config->memory->arena, &copy, labels);
  tarn__free(labels);
  config->head.labels = copy;
  return status == TARN_STATUS_OK ? status : tarn__fail_prefix(status, "%s: head.labels: ", config->name);
}

// The size of the images is one of the model, which has a position for each patch.
static tarn_status find_image(tarn_config *config) {
  const tarn_config_image *image = &config->image;
  if (!(tarn__config_task(config)->sections >> TARN__TASK_IMAGE & 1u) || !config->data.train ||
      (image->height > 0 && image->width > 0 && image->channels > 0))
    return TARN_STATUS_OK;
  const tarn_status status = tarn__image_of_shard(&config->image, config->data.train);
  return status == TARN_STATUS_OK ? status : tarn__fail_prefix(status, "%s: image: ", config->name);
}

// Defaults and checks that depend on the task.
static tarn_status resolve_task(tarn_config *config, const tarn__yaml_node *root) {
  const tarn__task_keys keys = {root, fail_task_key, is_given};
  TARN_TRY(check_sections(config, root));
  TARN_TRY(check_decoding(config, root));
  TARN_TRY(find_image(config));
  TARN_TRY(tarn__task_resolve(config, &keys));
  return find_labels(config);
}

tarn_status tarn__config_resolve(tarn_config *config, const tarn__yaml_node *root) {
  tarn_config_data *data = &config->data;
  TARN_TRY(resolve_task(config, root));
  if (!data->target_vocab) data->target_vocab = data->vocab;
  if (isnan(config->model.embedding_std))
    config->model.embedding_std = 1.0 / sqrt((double)embedding_width(&config->model));
  if (isnan(config->model.embedding_dropout)) config->model.embedding_dropout = config->model.dropout;
  TARN_TRY(check_model(config, root));
  TARN_TRY(tarn__config_resolve_adaptive(config, root));
  for (int32_t i = 0; i < config->kind_count; i++) {
    TARN_TRY(resolve_kind(config, &config->kinds[i], root));
    TARN_TRY(check_backskip(config, &config->kinds[i], root));
  }
  TARN_TRY(check_new_kinds(config, root));
  TARN_TRY(tarn__parts_check_places(config, root));
  TARN_TRY(tarn__config_check_share(config, root));
  TARN_TRY(tarn__config_check_steps(config, root));
  TARN_TRY(tarn__config_check_transparent(config, root));
  TARN_TRY(tarn__config_check_funnel(config, root));
  if (config->train.cache_frozen) TARN_TRY(check_cache(config, root));
  TARN_TRY(tarn__freeze_check(config, root));
  TARN_TRY(tarn__config_check_ridge(config, root));
  if (config->train.carry_state) TARN_TRY(tarn__config_check_carry(config, root));
  TARN_TRY(tarn__config_check_average(config, root));
  TARN_TRY(tarn__config_resolve_dynamics(config, root));
  return check_train(config, root);
}

tarn_status tarn_config_check_training(const tarn_config *config) {
  const tarn_config_train *train = &config->train;
  const char *name = config->name;
  TARN_REQUIRE(config->data.vocab, USAGE, "%s: data.vocab is missing", name);
  TARN_REQUIRE(config->data.train, USAGE, "%s: data.train is missing", name);
  bool ends = train->optimiser == TARN_OPTIMISER_RIDGE || train->max_updates > 0 || train->max_epochs > 0 ||
              train->max_minutes > 0 || train->patience > 0;
  TARN_REQUIRE(ends, USAGE, "%s: nothing ends the training; set train.max_updates, max_epochs, max_minutes or patience",
               name);
  TARN_REQUIRE(train->patience == 0 || config->data.valid, USAGE, "%s: train.patience needs data.valid", name);
  const bool ends_low = train->schedule == TARN_SCHEDULE_COSINE || train->schedule == TARN_SCHEDULE_LINEAR;
  TARN_REQUIRE(!ends_low || train->max_updates > train->warmup, USAGE,
               "%s: train.schedule %s needs train.max_updates above train.warmup", name,
               train->schedule == TARN_SCHEDULE_LINEAR ? "linear" : "cosine");
  return tarn__freeze_check_training(config);
}
