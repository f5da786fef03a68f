// A form in the given configuration: the patterns of its stacks in terms of the given layers, checked by reading the
// changed configuration and planning it.
#include <stdio.h>
#include <string.h>

#include "advice/advice_kinds.h"
#include "config/config_part.h"
#include "config/config_word.h"
#include "config/config_write.h"
#include "config/pattern.h"
#include "run/run_file.h"

enum { MOST_OVERRIDES = TARN__ADVICE_KINDS + 3 };

typedef struct applying {
  struct tarn__advice_memory *m;
  const tarn__advice_pair *pair;
  tarn_advice_form *form;
  const char *obstacle;  // set as soon as there is one
  tarn__advice_kinds kinds;
  const char *stacks[2];            // "encoder.layers=...", or NULL: unchanged
  const char *own[MOST_OVERRIDES];  // (count)
  size_t count;
} applying;

static const tarn_stack *stack_of(const tarn_config *config, int index) {
  return index == 0 ? &config->encoder : &config->decoder;
}

static const char *const stack_names[] = {"encoder", "decoder"};

// The only trained kind of a stack; NULL: there are several, or none.
static const tarn_kind *trained_kind(const tarn_config *config, const tarn_stack *stack) {
  const tarn_kind *found = NULL;
  for (int32_t i = 0; i < stack->count; i++) {
    const tarn_kind *kind = &config->kinds[stack->layers[i].kind];
    if (kind->frozen != TARN_FROZEN_NO) continue;
    if (found && found != kind) return NULL;
    found = kind;
  }
  return found;
}

static bool has_frozen(const tarn_config *config, const tarn_stack *stack) {
  for (int32_t i = 0; i < stack->count; i++)
    if (config->kinds[stack->layers[i].kind].frozen != TARN_FROZEN_NO) return true;
  return false;
}

// Whether a stack is as many layers of one trained kind, each with its own weights.
static bool is_plain(const tarn_config *config, const tarn_stack *stack) {
  for (int32_t i = 0; i < stack->count; i++)
    if (stack->layers[i].kind != stack->layers[0].kind || !tarn__pattern_is_bare(stack->layers[i].set)) return false;
  return stack->depth == stack->count && stack->pool_count == 0 && !stack->step_embeddings &&
         config->kinds[stack->layers[0].kind].frozen == TARN_FROZEN_NO;
}

// Layers of the record's stack that repeat until its end, at least twice; 0: none.
static int32_t period(const tarn_stack *stack) {
  for (int32_t p = 1; p <= stack->count / 2; p++) {
    bool repeats = stack->count % p == 0;
    for (int32_t i = p; i < stack->count && repeats; i++) {
      const tarn_layer *a = &stack->layers[i], *b = &stack->layers[i - p];
      const bool bare = tarn__pattern_is_bare(a->set);
      repeats = a->kind == b->kind && bare == tarn__pattern_is_bare(b->set) && (bare || strcmp(a->set, b->set) == 0);
    }
    if (repeats) return p;
  }
  return 0;
}

// The layers that the form has in the given stack: *count of them, layer i like layer i % *every of the record.
static tarn_status choose_depth(int32_t *count, int32_t *every, applying *a, int index) {
  const tarn_stack *given = stack_of(a->m->config, index), *stack = stack_of(a->pair->config, index),
                   *base = stack_of(a->pair->base, index);
  const bool frozen = has_frozen(a->pair->config, stack);
  *count = stack->count;
  *every = stack->count;
  if (given->count == base->count) return TARN_STATUS_OK;
  if (frozen && stack->count == base->count && period(stack) > 0 && given->count % period(stack) == 0) {
    *count = given->count;
    *every = period(stack);
    return TARN_STATUS_OK;
  }
  if (!frozen && given->count * stack->count % base->count == 0) {
    *count = given->count * stack->count / base->count;
    *every = 1;
    return TARN_STATUS_OK;
  }
  return tarn__arena_print(&a->obstacle, &a->m->arena, "it is of %d %s layers, and its pattern has no form for your %d",
                           base->count, stack_names[index], given->count);
}

static tarn_status write_pattern(applying *a, int index, int32_t count, int32_t every, const tarn_kind *trained) {
  const tarn_config *given = a->m->config, *record = a->pair->config;
  const tarn_stack *stack = stack_of(record, index);
  const tarn_kind *own = &given->kinds[stack_of(given, index)->layers[0].kind];
  tarn__buffer out = {0};
  tarn_status status = TARN_STATUS_OK;
  tarn__buffer_format(&out, "%s.layers=", stack_names[index]);
  for (int32_t i = 0; i < count && status == TARN_STATUS_OK; i++) {
    const tarn_layer *layer = &stack->layers[i % every];
    const tarn_kind *kind = &record->kinds[layer->kind];
    const tarn__advice_kind wanted = {.frozen = kind, .trained = trained, .given = own};
    const tarn__advice_kind *frozen = NULL;
    if (kind->frozen != TARN_FROZEN_NO) status = tarn__advice_kind_find(&frozen, &a->kinds, given, &wanted);
    // Of a named set its number remains.
    const char *number = tarn__pattern_is_bare(layer->set) ? "" : layer->set + strlen(kind->name);
    tarn__buffer_format(&out, "%s%s%s", i ? " " : "", frozen ? frozen->name : own->name, number);
  }
  const tarn_status kept = tarn__advice_keep(&a->stacks[index], a->m, &out);
  return status == TARN_STATUS_OK ? kept : status;
}

static tarn_status apply_stack(applying *a, int index) {
  const tarn_config *given = a->m->config, *record = a->pair->config, *base = a->pair->base;
  const tarn_stack *stack = stack_of(record, index), *own = stack_of(given, index);
  tarn__arena *arena = &a->m->arena;
  int32_t count, every;
  bool same;
  char *pattern;
  TARN_TRY(tarn__advice_same_stack(&same, record, stack, base, stack_of(base, index)));
  same = same && has_frozen(record, stack) == has_frozen(base, stack_of(base, index));
  if (same || a->obstacle) return TARN_STATUS_OK;
  if (own->count == 0) return tarn__arena_print(&a->obstacle, arena, "your model has no %s", stack_names[index]);
  if (!is_plain(given, own)) {
    TARN_TRY(tarn__config_pattern(given, own, &pattern));
    const tarn_status status =
        tarn__arena_print(&a->obstacle, arena, "your %s %s is not one kind of trained layer, each with its own weights",
                          stack_names[index], pattern);
    tarn_config_text_close(&pattern);
    return status;
  }
  const tarn_kind *trained = trained_kind(record, stack);
  if (!trained)
    return tarn__arena_print(&a->obstacle, arena, "its %s has not one kind of trained layer", stack_names[index]);
  const char *mixer = tarn__part_word(&trained->mixer);
  const char *own_mixer = tarn__part_word(&given->kinds[own->layers[0].kind].mixer);
  if (strcmp(mixer, own_mixer) != 0)
    return tarn__arena_print(&a->obstacle, arena, "its trained %s layers have the mixer %s, and yours %s",
                             stack_names[index], mixer, own_mixer);
  TARN_TRY(choose_depth(&count, &every, a, index));
  return a->obstacle ? TARN_STATUS_OK : write_pattern(a, index, count, every, trained);
}

// Why a form has no meaning for another model, whatever its layers are.
static void find_obstacle(applying *a) {
  const tarn_config *record = a->pair->config, *base = a->pair->base;
  const tarn_advice_form *form = a->form;
  int32_t partly = 0;
  for (int s = 0; s < 2; s++) partly += tarn__advice_partly(stack_of(record, s), record);
  if (tarn__advice_freezes(base))
    a->obstacle = "its baseline freezes layers itself";
  else if (form->also)
    a->obstacle = "it changes more than what is frozen or left out";
  else if (form->equalized)
    a->obstacle = "its sizes were changed to be equal to the baseline's";
  else if (record->train.freeze_count > 0 || record->train.autofreeze > 0)
    a->obstacle = "it freezes during the training";
  else if (partly > 0)
    a->obstacle = "its layers are frozen in part";
}

static tarn_status read_changed(tarn_config **config, const applying *a, const char *const *own, size_t count) {
  const tarn_advice_options *o = &a->m->options;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, o->override_count + count, sizeof(char *)));
  const char **all = memory;
  for (size_t i = 0; i < o->override_count; i++) all[i] = o->overrides[i];
  for (size_t i = 0; i < count; i++) all[o->override_count + i] = own[i];
  const tarn_status status = tarn_config_read(config, o->config, all, o->override_count + count);
  tarn__free(memory);
  return status;
}

// A failure of the changed configuration, unless it is for want of memory, is an obstacle of the form.
static tarn_status take_obstacle(applying *a, tarn_status status) {
  char *copy;
  if (status == TARN_STATUS_OK || status == TARN_STATUS_MEMORY) return status;
  TARN_TRY(tarn__arena_strdup(&a->m->arena, &copy, tarn_error_message()));
  a->obstacle = copy;
  return TARN_STATUS_OK;
}

// Leaves out each key of a new kind without which the description is the same, with override `at` for this kind.
static tarn_status shorten(applying *a, tarn__advice_map *map, const char *name, size_t at, const char *whole) {
  for (size_t k = 0; k < map->count; k++) {
    const char *before = a->own[at];
    tarn_config *config = NULL;
    char *text = NULL;
    map->left[k] = true;
    TARN_TRY(tarn__advice_kind_text(&a->own[at], a->m, map, name));
    tarn_status status = read_changed(&config, a, a->own, a->count);
    if (status == TARN_STATUS_OK) status = tarn_config_write(config, &text);
    tarn_config_close(&config);
    if (status == TARN_STATUS_MEMORY) return status;
    if (status != TARN_STATUS_OK || strcmp(text, whole) != 0) {
      map->left[k] = false;
      a->own[at] = before;
    }
    tarn_config_text_close(&text);
  }
  return TARN_STATUS_OK;
}

static tarn_status write_kinds(applying *a, tarn__advice_map maps[TARN__ADVICE_KINDS]) {
  for (size_t k = 0; k < a->kinds.count && !a->obstacle; k++) {
    TARN_TRY(tarn__advice_kind_map(&maps[k], &a->obstacle, a->m, a->pair, &a->kinds.items[k]));
    TARN_TRY(tarn__advice_kind_text(&a->own[a->count++], a->m, &maps[k], a->kinds.items[k].name));
  }
  return TARN_STATUS_OK;
}

static tarn_status write_rest(applying *a) {
  const int frozen = (int)a->pair->config->model.frozen_embeddings;
  for (int s = 0; s < 2; s++)
    if (a->stacks[s]) a->own[a->count++] = a->stacks[s];
  if (frozen == TARN_FROZEN_EMBEDDINGS_NONE) return TARN_STATUS_OK;
  return tarn__arena_print(&a->own[a->count++], &a->m->arena, "model.frozen_embeddings=%s",
                           tarn__config_word("model.frozen_embeddings", frozen));
}

// The patterns as the configuration writes them: "(R L)*3" of "R L R L R L".
static tarn_status shorten_patterns(applying *a, const tarn_config *config) {
  for (size_t i = a->kinds.count; i < a->count; i++)
    for (int s = 0; s < 2; s++) {
      char *pattern;
      if (a->own[i] != a->stacks[s]) continue;
      TARN_TRY(tarn__config_pattern(config, stack_of(config, s), &pattern));
      const tarn_status status = tarn__arena_print(&a->own[i], &a->m->arena, "%s.layers=%s", stack_names[s], pattern);
      tarn_config_text_close(&pattern);
      TARN_TRY(status);
    }
  return TARN_STATUS_OK;
}

// Plans the changed configuration. What it is for must be so: more is frozen, or less is trained.
static tarn_status plan(applying *a, const tarn_config *config) {
  tarn_plan plan;
  const tarn_status status = tarn_plan_make(&plan, config, &a->m->options.plan);
  if (status != TARN_STATUS_OK) return take_obstacle(a, status);
  const tarn_advice_plan *given = &a->m->public.planned;
  a->form->planned = (tarn_advice_plan){.trained_parameters = plan.trained_parameters,
                                        .frozen_parameters = plan.frozen_parameters,
                                        .optimiser_bytes = plan.optimiser_bytes,
                                        .total_bytes = plan.total_bytes};
  tarn_plan_close(&plan);
  if (a->form->planned.trained_parameters >= given->trained_parameters ||
      (a->form->freezes && a->form->planned.frozen_parameters <= given->frozen_parameters))
    a->obstacle =
        a->form->freezes ? "it would freeze nothing of your model" : "it would leave nothing of your model out";
  return TARN_STATUS_OK;
}

static tarn_status check(applying *a, tarn__advice_map maps[TARN__ADVICE_KINDS]) {
  tarn_config *config = NULL;
  char *text = NULL;
  TARN_TRY(take_obstacle(a, read_changed(&config, a, a->own, a->count)));
  if (a->obstacle) return TARN_STATUS_OK;
  tarn_status status = tarn_config_write(config, &text);
  for (size_t k = 0; k < a->kinds.count && status == TARN_STATUS_OK; k++)
    status = shorten(a, &maps[k], a->kinds.items[k].name, k, text);
  tarn_config_text_close(&text);
  if (status == TARN_STATUS_OK) status = shorten_patterns(a, config);
  if (status == TARN_STATUS_OK) status = plan(a, config);
  tarn_config_close(&config);
  return status;
}

static tarn_status apply(applying *a, tarn__advice_map maps[TARN__ADVICE_KINDS]) {
  for (int s = 0; s < 2; s++) TARN_TRY(apply_stack(a, s));
  if (a->obstacle) return TARN_STATUS_OK;
  TARN_TRY(write_kinds(a, maps));
  if (a->obstacle) return TARN_STATUS_OK;
  TARN_TRY(write_rest(a));
  if (a->count > 0) return check(a, maps);
  a->obstacle = "it would change nothing of your model";
  return TARN_STATUS_OK;
}

tarn_status tarn__advice_apply(tarn_advice_form *form, struct tarn__advice_memory *m, const tarn__advice_pair *pair) {
  void *memory;
  applying a = {.m = m, .pair = pair, .form = form};
  find_obstacle(&a);
  if (!a.obstacle) {
    TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, TARN__ADVICE_KINDS, sizeof(tarn__advice_map)));
    const tarn_status status = apply(&a, memory);
    tarn__free(memory);
    TARN_TRY(status);
  }
  form->obstacle = a.obstacle;
  if (a.obstacle) {
    form->planned = (tarn_advice_plan){0};
    return TARN_STATUS_OK;
  }
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, a.count, sizeof(char *)));
  memcpy(memory, a.own, a.count * sizeof *a.own);
  form->overrides = memory;
  form->override_count = a.count;
  return TARN_STATUS_OK;
}
