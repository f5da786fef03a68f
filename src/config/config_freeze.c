#include "config/config_freeze.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "config/config_part.h"
#include "config/config_read.h"
#include "parts/block.h"
#include "tarn/text.h"
#include "task/task.h"

enum { TABLES = TARN__TASK_PARTS };

static bool table_at(const tarn_config *config, int index, tarn__freeze_part *part) {
  tarn__task_part beside;
  const bool own = tarn__task_part_at(config, index, &beside);
  *part = (tarn__freeze_part){.trained = beside.trained, .layer = -1};
  snprintf(part->name, sizeof part->name, "%s", beside.name);
  return own;
}

// The sets of a stack by depth, then its final norm, then the biases that its layers share. Layers removed by
// layers_to_keep are included, so that a description stays valid when its model is pruned.
static bool stack_part_at(const tarn_config *config, tarn__stack_id id, int index, tarn__freeze_part *part) {
  const tarn_stack *stack = tarn__config_stack(config, id);
  const char *name = tarn__stack_name(id);
  if (index == stack->depth) {
    *part = (tarn__freeze_part){.trained = true, .layer = -1};
    snprintf(part->name, sizeof part->name, "%s.norm", name);
    return tarn__config_final_norm(config, id);
  }
  if (index > stack->depth) {
    int64_t heads;
    *part = (tarn__freeze_part){.layer = -1};
    snprintf(part->name, sizeof part->name, "%s.biases", name);
    return tarn__config_biases(config, id, &heads, &part->trained);
  }
  const tarn_layer *layer = &stack->pattern[index];
  *part = (tarn__freeze_part){.trained = config->kinds[layer->kind].frozen != TARN_FROZEN_YES, .layer = index};
  snprintf(part->name, sizeof part->name, "%s.%s", name, layer->set);
  return layer->first == index;
}

bool tarn__freeze_next(const tarn_config *config, int *at, tarn__freeze_part *part) {
  int first = TABLES;  // of the current stack
  while (*at < TABLES)
    if (table_at(config, (*at)++, part)) return true;
  for (int id = 0; id < TARN__STACKS; id++) {
    const tarn_stack *stack = tarn__config_stack(config, (tarn__stack_id)id);
    while (*at <= first + stack->depth + 1)
      if (stack_part_at(config, (tarn__stack_id)id, (*at)++ - first, part)) return true;
    first += stack->depth + 2;
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

// Another entry that freezes the part, or NULL.
static const tarn_freeze *other_entry(const tarn_config_train *train, const tarn_freeze *entry, const char *part) {
  for (int64_t i = 0; i < train->freeze_count; i++)
    if (&train->freeze[i] != entry && tarn__freeze_covers(train->freeze[i].layers, part)) return &train->freeze[i];
  return NULL;
}

// Whether the name is possible for the entry: a part of it is trained, and no other entry freezes it.
static bool could_freeze(const tarn_config *config, const tarn_freeze *entry, const char *name) {
  tarn__freeze_part part;
  int at = 0;
  bool learns = false;
  while (tarn__freeze_next(config, &at, &part)) {
    if (!part.trained || !tarn__freeze_covers(name, part.name)) continue;
    if (other_entry(&config->train, entry, part.name)) return false;
    learns = true;
  }
  return learns;
}

static tarn_status unknown(const tarn_config *config, const tarn__yaml_node *root, const tarn_freeze *entry) {
  // A stack has its sets, a norm and biases.
  enum { MOST = 1 + TARN__STACKS + TABLES + TARN__STACKS * (TARN_CONFIG_LAYERS + 2), TEXT = 40 };
  const char *names[MOST];
  const char *set = NULL;
  const tarn__task *task = tarn__config_task(config);
  char whole[TEXT] = "";
  size_t count = 0;
  for (int s = task->stack_count; s-- > 0;) {
    names[count++] = tarn__stack_name(task->stacks[s].id);
    snprintf(whole + strlen(whole), sizeof whole - strlen(whole), "%s, ", names[count - 1]);
    if (count > 1) continue;
    names[count++] = "embeddings";
    snprintf(whole + strlen(whole), sizeof whole - strlen(whole), "%s, ", names[count - 1]);
  }
  int at = 0;
  tarn__freeze_part part;
  while (tarn__freeze_next(config, &at, &part)) {
    char *copy;
    if (!part.trained) continue;
    TARN_REQUIRE(count < MOST, INTERNAL, "a model of more than %d parts", (int)MOST);
    TARN_TRY(tarn__arena_strdup(&config->memory->arena, &copy, part.name));
    names[count++] = copy;
    if (part.layer >= 0) set = copy;
  }
  char text[160];
  const char *last = names[count - 1];
  for (size_t i = 0; i < count; i++)
    if (!could_freeze(config, entry, names[i])) names[i--] = names[--count];
  const char *near = tarn_text_nearest(entry->layers, names, count);
  if (near)
    snprintf(text, sizeof text, "is not a part of the model; did you mean \"%s\"?", near);
  else
    snprintf(text, sizeof text, "is not a part of the model; there are %sand %s such as \"%s\"", whole,
             set ? "sets" : "parts", set ? set : last);
  return fail_entry(root, entry, text);
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

// AutoFreeze requires trained sets in the encoder.
static tarn_status check_autofreeze(const tarn_config *config, const tarn__yaml_node *root) {
  int at = 0;
  tarn__freeze_part part;
  while (tarn__freeze_next(config, &at, &part))
    if (part.trained && part.layer >= 0 && tarn__freeze_covers("encoder", part.name)) return TARN_STATUS_OK;
  return tarn__yaml_fail(tarn__yaml_nearest(root, "train.autofreeze"),
                         "train.autofreeze: the encoder has no trained layer that could be frozen");
}

tarn_status tarn__freeze_check(const tarn_config *config, const tarn__yaml_node *root) {
  const tarn_config_train *train = &config->train;
  if (train->autofreeze > 0) TARN_TRY(check_autofreeze(config, root));
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

// Whether layers_to_keep leaves a layer that uses the part; parts other than sets are always present.
static bool is_there(const tarn_config *config, const tarn__freeze_part *part) {
  if (part->layer < 0) return true;
  const bool encoder = tarn__freeze_covers("encoder", part->name);
  const tarn_stack *stack = encoder ? &config->encoder : &config->decoder;
  for (int32_t i = 0; i < stack->count; i++)
    if (strcmp(stack->layers[i].set, stack->pattern[part->layer].set) == 0) return true;
  return false;
}

tarn_status tarn__freeze_check_training(const tarn_config *config) {
  const tarn_config_train *train = &config->train;
  bool learns = train->freeze_count == 0, freezes = train->autofreeze == 0;
  tarn__freeze_part part;
  int at = 0;
  while (tarn__freeze_next(config, &at, &part)) {
    if (!part.trained || !is_there(config, &part)) continue;
    learns |= !other_entry(train, NULL, part.name);
    freezes |= part.layer >= 0 && tarn__freeze_covers("encoder", part.name);
  }
  TARN_REQUIRE(learns, USAGE,
               "%s: train.freeze: in the end everything would be frozen that layers_to_keep leaves; end the training "
               "with train.max_updates",
               config->name);
  TARN_REQUIRE(freezes, USAGE,
               "%s: train.autofreeze: encoder.layers_to_keep leaves no trained layer that could be frozen",
               config->name);
  return TARN_STATUS_OK;
}

static void warn_stack(const tarn_config *config, const tarn_stack *stack, const char *name) {
  for (int32_t i = 0; stack->reservoir && i < stack->depth; i++) {
    const tarn_kind *kind = &config->kinds[stack->pattern[i].kind];
    const bool meant =
        strcmp(kind->name, stack->reservoir) == 0 || strcmp(stack->pattern[i].set, stack->reservoir) == 0;
    if (!meant || kind->frozen != TARN_FROZEN_NO) continue;
    tarn__log(TARN_LOG_WARNING,
              "%s: %s.place: the reservoirs %s are trained, because kinds.%s.frozen is no; set it to yes or matrices",
              config->name, name, stack->reservoir, kind->name);
    return;
  }
}

void tarn__warn_trained_reservoirs(const tarn_config *config) {
  warn_stack(config, &config->encoder, "encoder");
  warn_stack(config, &config->decoder, "decoder");
}
