#include "train/features/freeze.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

static bool in_model(const tarn__model *model, const char *part) {
  for (size_t i = 0; i < model->param_count; i++)
    if (tarn__freeze_covers(part, model->params[i]->name)) return true;
  return false;
}

static bool is_set(const tarn__model *model, const tarn__freeze_part *part) {
  return part->trained && part->layer >= 0 && tarn__freeze_covers("encoder", part->name) && in_model(model, part->name);
}

bool tarn__freeze_next_set(const tarn__model *model, int *at, tarn__freeze_part *part) {
  while (tarn__freeze_next(model->config, at, part))
    if (is_set(model, part)) return true;
  return false;
}

static bool is_scheduled(const tarn_config_train *train, const char *part, int64_t update) {
  for (int64_t i = 0; i < train->freeze_count; i++)
    if (train->freeze[i].at <= update && tarn__freeze_covers(train->freeze[i].layers, part)) return true;
  return false;
}

// Stops the parameters of a part; returns whether any of them was still trained.
static bool stop(const tarn__model *model, const char *part) {
  bool stopped = false;
  for (size_t i = 0; i < model->param_count; i++) {
    tarn__param *param = model->params[i];
    if (!tarn__param_learns(param) || !tarn__freeze_covers(part, param->name)) continue;
    param->stopped = true;
    stopped = true;
  }
  return stopped;
}

typedef struct list {
  char *text;
  size_t used, capacity;
} list;

static tarn_status add_name(list *names, const char *name) {
  size_t length = strlen(name);
  TARN_TRY(tarn__grow(&names->text, &names->capacity, names->used + length + 2, 1));
  if (names->used) names->text[names->used++] = ' ';
  memcpy(names->text + names->used, name, length + 1);
  names->used += length;
  return TARN_STATUS_OK;
}

// The embedding and the learned positions (or NULL) of the encoder's input.
static void below_encoder(const tarn__model *model, const tarn__param **table, const tarn__param **positions) {
  const tarn__task_stack *encoder = tarn__task_stack_of(tarn__config_task(model->config), TARN__STACK_ENCODER);
  const bool source = !encoder || encoder->side == TARN__SIDE_SOURCE;
  *table = source ? model->weights.source_table : model->weights.target_table;
  *positions = source ? model->source_positions : model->target_positions;
}

// Whether a layer of this kind in the stack is still trained.
static bool kind_learns(const tarn__model *model, tarn__stack_id id, int32_t kind) {
  const tarn_stack *stack = tarn__config_stack(model->config, id);
  for (int32_t i = 0; i < stack->depth; i++) {
    char set[TARN_CONFIG_SET_NAME + 16];
    if (stack->pattern[i].kind != kind) continue;
    snprintf(set, sizeof set, "%s.%s", tarn__stack_name(id), stack->pattern[i].set);
    for (size_t p = 0; p < model->param_count; p++)
      if (tarn__param_learns(model->params[p]) && tarn__freeze_covers(set, model->params[p]->name)) return true;
  }
  return false;
}

// Parameters shared by the layers of a kind in a stack belong to no single set; they stop with the last of them.
static tarn_status stop_shared(const tarn__model *model, list *names) {
  for (int id = 0; id < TARN__STACKS; id++)
    for (int32_t kind = 0; kind < model->config->kind_count; kind++) {
      char part[256];
      snprintf(part, sizeof part, "%s.shared.%s", tarn__stack_name((tarn__stack_id)id),
               model->config->kinds[kind].name);
      if (!in_model(model, part) || kind_learns(model, (tarn__stack_id)id, kind) || !stop(model, part)) continue;
      if (names) TARN_TRY(add_name(names, part));
    }
  return TARN_STATUS_OK;
}

tarn_status tarn__freeze_apply(const tarn__model *model, int64_t update, int64_t sets, char **names) {
  list stopped = {0};
  int at = 0;
  int64_t set = 0;
  tarn__freeze_part part;
  tarn_status status = TARN_STATUS_OK;
  const tarn__param *table, *positions;
  below_encoder(model, &table, &positions);
  const bool below = sets > 0 && table && table->uses == 1;
  while (tarn__freeze_next(model->config, &at, &part)) {
    bool frozen = is_scheduled(&model->config->train, part.name, update);
    if (is_set(model, &part)) frozen |= set++ < sets;
    frozen |= below && (tarn__freeze_covers(part.name, table->name) ||
                        (positions && tarn__freeze_covers(part.name, positions->name)));
    if (!part.trained || !frozen || !stop(model, part.name)) continue;
    if (names && status == TARN_STATUS_OK) status = add_name(&stopped, part.name);
  }
  if (status == TARN_STATUS_OK) status = stop_shared(model, names ? &stopped : NULL);
  if (status != TARN_STATUS_OK) {
    tarn__free(stopped.text);
    stopped.text = NULL;
  }
  if (names) *names = stopped.text;
  return status;
}
