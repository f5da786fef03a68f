#include "model/config_freeze.h"

#include <stdio.h>
#include <string.h>

#include "model/config_read.h"
#include "tarn/text.h"

enum { TABLES = 3 };

// The embedding matrices, named as model.c declares them; false where there is no such matrix of its own.
static bool table_at(const tarn_config_model *model, int index, tarn__freeze_part *part) {
  static const char *const names[TABLES] = {"embeddings.source", "embeddings.target", "embeddings.output"};
  tarn_embeddings share = model->embeddings;
  tarn_frozen_embeddings frozen = model->frozen_embeddings;
  bool both = frozen == TARN_FROZEN_EMBEDDINGS_BOTH;
  bool single = share == TARN_EMBEDDINGS_ALL;
  const bool own[TABLES] = {true, !single && share != TARN_EMBEDDINGS_ENCODER_DECODER,
                            share == TARN_EMBEDDINGS_NONE || share == TARN_EMBEDDINGS_ENCODER_DECODER};
  const bool trained[TABLES] = {!both && frozen != TARN_FROZEN_EMBEDDINGS_ENCODER,
                                !both && frozen != TARN_FROZEN_EMBEDDINGS_DECODER, true};
  *part = (tarn__freeze_part){.trained = trained[index], .layer = -1};
  snprintf(part->name, sizeof part->name, "%s", single ? "embeddings" : names[index]);
  return own[index];
}

// The sets of a stack by depth, then its final norm.
static bool stack_part_at(const tarn_config *config, const tarn_stack *stack, const char *name, int index,
                          tarn__freeze_part *part) {
  if (index == stack->count) {
    *part = (tarn__freeze_part){.trained = true, .layer = -1};
    snprintf(part->name, sizeof part->name, "%s.norm", name);
    return config->kinds[stack->layers[index - 1].kind].norm == TARN_NORM_PRE;
  }
  const tarn_layer *layer = &stack->layers[index];
  *part = (tarn__freeze_part){.trained = !config->kinds[layer->kind].frozen, .layer = index};
  snprintf(part->name, sizeof part->name, "%s.%s", name, layer->set);
  return layer->first == index;
}

bool tarn__freeze_next(const tarn_config *config, int *at, tarn__freeze_part *part) {
  const int encoder = TABLES + config->encoder.count + 1;
  const int all = encoder + config->decoder.count + 1;
  while (*at < all) {
    int i = (*at)++;
    bool there = i < TABLES    ? table_at(&config->model, i, part)
                 : i < encoder ? stack_part_at(config, &config->encoder, "encoder", i - TABLES, part)
                               : stack_part_at(config, &config->decoder, "decoder", i - encoder, part);
    if (there) return true;
  }
  return false;
}

bool tarn__freeze_covers(const char *name, const char *other) {
  size_t length = strlen(name);
  return strncmp(name, other, length) == 0 && (other[length] == 0 || other[length] == '.');
}

static tarn_status fail_entry(const tarn__yaml_node *root, const tarn_freeze *entry, const char *text) {
  char shown[TARN__YAML_SHOWN];
  return tarn__yaml_fail(tarn__yaml_nearest(root, "train.freeze"), "train.freeze: %s %s",
                         tarn__yaml_show(shown, entry->layers), text);
}

static tarn_status unknown(const tarn_config *config, const tarn__yaml_node *root, const tarn_freeze *entry) {
  enum { MOST = 2 * TARN_CONFIG_LAYERS + 8 };
  const char *names[MOST] = {"encoder", "decoder", "embeddings"};
  size_t count = 3;
  int at = 0;
  tarn__freeze_part part;
  while (tarn__freeze_next(config, &at, &part)) {
    char *copy;
    if (!part.trained) continue;
    TARN_TRY(tarn__arena_strdup(&config->memory->arena, &copy, part.name));
    names[count++] = copy;
  }
  char text[160];
  const char *near = tarn_text_nearest(entry->layers, names, count);
  if (near)
    snprintf(text, sizeof text, "is not a part of the model; did you mean \"%s\"?", near);
  else
    snprintf(text, sizeof text,
             "is not a part of the model; there are encoder, decoder, embeddings, and sets such as \"%s\"",
             names[count - 1]);
  return fail_entry(root, entry, text);
}

// What other entry freezes the part, or NULL.
static const tarn_freeze *other_entry(const tarn_config_train *train, const tarn_freeze *entry, const char *part) {
  for (int64_t i = 0; i < train->freeze_count; i++)
    if (&train->freeze[i] != entry && tarn__freeze_covers(train->freeze[i].layers, part)) return &train->freeze[i];
  return NULL;
}

static tarn_status check_entry(const tarn_config *config, const tarn__yaml_node *root, const tarn_freeze *entry) {
  tarn__freeze_part part;
  int at = 0;
  bool known = false;
  bool learns = false;
  char text[160];
  while (tarn__freeze_next(config, &at, &part)) {
    if (!tarn__freeze_covers(entry->layers, part.name)) continue;
    known = true;
    learns = learns || part.trained;
    const tarn_freeze *other = part.trained ? other_entry(&config->train, entry, part.name) : NULL;
    if (!other) continue;
    char shown[TARN__YAML_SHOWN];
    snprintf(text, sizeof text, "and %s both freeze %s; name it once", tarn__yaml_show(shown, other->layers),
             part.name);
    return fail_entry(root, entry, text);
  }
  if (!known) return unknown(config, root, entry);
  if (!learns) return fail_entry(root, entry, "is frozen from the start, so it cannot be frozen later");
  return TARN_STATUS_OK;
}

tarn_status tarn__freeze_check(const tarn_config *config, const tarn__yaml_node *root) {
  const tarn_config_train *train = &config->train;
  if (train->freeze_count == 0) return TARN_STATUS_OK;
  for (int64_t i = 0; i < train->freeze_count; i++) TARN_TRY(check_entry(config, root, &train->freeze[i]));
  tarn__freeze_part part;
  int at = 0;
  while (tarn__freeze_next(config, &at, &part))
    if (part.trained && !other_entry(train, NULL, part.name)) return TARN_STATUS_OK;
  return tarn__yaml_fail(
      tarn__yaml_nearest(root, "train.freeze"),
      "train.freeze: in the end everything would be frozen; end the training with train.max_updates");
}
