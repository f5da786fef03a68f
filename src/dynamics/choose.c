// Chooses what is iterated.
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "config/pattern.h"
#include "dynamics/dynamics.h"
#include "model/layers.h"
#include "ops/recurrence.h"

static const tarn__model_stack *stack_of(const tarn_dynamics *d) {
  return tarn__model_stack_at(d->checkpoint->model, tarn__model_first_stack(d->checkpoint->model)->id);
}
static const char *stack_name(const tarn_dynamics *d) {
  return tarn__stack_name(tarn__model_first_stack(d->checkpoint->model)->id);
}
static const tarn_stack *layers_of(const tarn_dynamics *d) {
  return tarn__config_stack(d->checkpoint->config, tarn__model_first_stack(d->checkpoint->model)->id);
}

// The smallest number of layers after which the weights of a stack repeat, to its end; 0: none.
static int period_of(const tarn__model_stack *stack) {
  for (int period = 1; period < stack->count; period++) {
    int i = period;
    while (i < stack->count && stack->layers[i].weights == stack->layers[i - period].weights) i++;
    if (i == stack->count) return period;
  }
  return 0;
}

// The recurrence of the lowest recurrent layer of [first, last): its weights, and the layer; -1: none.
static tarn_status find_recurrence(tarn_dynamics *d, int first, int last, int *layer) {
  static const int32_t ids[1] = {0}, offsets[2] = {0, 1};
  const tarn__model *model = d->checkpoint->model;
  const tarn__model_stack *stack = stack_of(d);
  const tarn__packed one = {
      .sentences = 1, .rows = 1, .longest = 1, .ids = ids, .positions = ids, .offsets = offsets, .segments = ids};
  tarn__graph graph = {0};
  *layer = -1;
  tarn__graph_begin(&graph, model->device, model->dtype, false, 1);
  tarn__model_build_layers(model, &graph, &one, NULL, 0, last);
  tarn_status status = graph.status;
  for (size_t i = 0; i < graph.node_count && status == TARN_STATUS_OK && *layer < 0; i++) {
    const tarn__node *node = graph.nodes[i];
    if (node->op->id != TARN__OP_RECURRENCE) continue;
    for (int l = first; l < last && *layer < 0; l++)
      if (node->label == stack->layers[l].label) *layer = l;
    if (*layer < 0) continue;
    if (d->planned)
      tarn__cell_describe(&d->cell, node);
    else
      status = tarn__cell_open(&d->cell, node);
  }
  tarn__graph_close(&graph);
  return status;
}

static tarn_status check_layers(const tarn_dynamics *d) {
  const tarn_dynamics_options *o = &d->options;
  const int count = stack_of(d)->count;
  const int last = o->last_layer ? o->last_layer : o->first_layer;
  TARN_REQUIRE(o->first_layer >= 0 && o->last_layer >= 0 && last <= count && o->first_layer <= last &&
                   (o->first_layer > 0) == (last > 0),
               USAGE, "%s: layers %d to %d cannot be iterated: the %s \"%s\" has layers 1 to %d", d->info.path,
               o->first_layer, last, stack_name(d), d->info.pattern, count);
  return TARN_STATUS_OK;
}

static tarn_status choose_period(tarn_dynamics *d, int period) {
  const tarn_dynamics_options *o = &d->options;
  TARN_REQUIRE(
      period > 0 || o->first_layer > 0, USAGE,
      "%s: the %s \"%s\" repeats no layers, so there is no period to iterate: read it as map layers, once from "
      "the bottom to the top, or choose among layers 1 to %d those to be iterated",
      d->info.path, stack_name(d), d->info.pattern, stack_of(d)->count);
  d->info.map = TARN_DYNAMICS_MAP_PERIOD;
  d->info.first_layer = o->first_layer ? o->first_layer : 1;
  d->info.last_layer = o->last_layer ? o->last_layer : o->first_layer ? o->first_layer : period;
  return TARN_STATUS_OK;
}

static tarn_status choose_recurrence(tarn_dynamics *d, bool *there) {
  const int count = stack_of(d)->count, only = d->options.first_layer;
  const bool wanted = d->options.map == TARN_DYNAMICS_MAP_RECURRENCE;
  int layer;
  TARN_TRY(find_recurrence(d, only ? only - 1 : 0, only ? only : count, &layer));
  *there = layer >= 0;
  TARN_REQUIRE(*there || !wanted, USAGE,
               "%s: %s of the %s \"%s\" reads its text token by token (esn, gru, lstm), so that there is no recurrence",
               d->info.path, only ? "that layer" : "no layer", stack_name(d), d->info.pattern);
  if (!*there) return TARN_STATUS_OK;
  d->info.map = TARN_DYNAMICS_MAP_RECURRENCE;
  d->info.first_layer = d->info.last_layer = layer + 1;
  return TARN_STATUS_OK;
}

static tarn_status choose_map(tarn_dynamics *d) {
  const tarn_dynamics_map map = d->options.map;
  const int period = period_of(stack_of(d));
  bool recurs = false;
  TARN_TRY(check_layers(d));
  TARN_REQUIRE(map != TARN_DYNAMICS_MAP_LAYERS || d->options.first_layer == 0, USAGE,
               "map layers goes through all layers; those from %d on are chosen for map period",
               d->options.first_layer);
  const bool chosen = map == TARN_DYNAMICS_MAP_AUTO && d->options.first_layer > 0;
  if (map == TARN_DYNAMICS_MAP_PERIOD || chosen || (map == TARN_DYNAMICS_MAP_AUTO && period > 0))
    return choose_period(d, period);
  if (map != TARN_DYNAMICS_MAP_LAYERS) TARN_TRY(choose_recurrence(d, &recurs));
  if (recurs) return TARN_STATUS_OK;
  d->info.map = TARN_DYNAMICS_MAP_LAYERS;
  d->info.first_layer = 1;
  d->info.last_layer = stack_of(d)->count;
  return TARN_STATUS_OK;
}

// The names of some layers, as a pattern.
static tarn_status name_layers(const tarn_dynamics *d, char text[TARN__PATTERN_TEXT]) {
  const tarn_layer *layers = layers_of(d)->layers + d->info.first_layer - 1;
  return tarn__pattern_write(text, layers, d->info.last_layer - d->info.first_layer + 1, d->checkpoint->config->kinds);
}

static tarn_status say(tarn_dynamics *d) {
  tarn_dynamics_info *info = &d->info;
  char layers[TARN__PATTERN_TEXT], text[2 * TARN__PATTERN_TEXT + 256], *kept;
  const char *name = stack_name(d);
  const bool one = info->first_layer == info->last_layer;
  TARN_TRY(name_layers(d, layers));
  if (info->map == TARN_DYNAMICS_MAP_LAYERS)
    snprintf(text, sizeof text, "%s \"%s\": an iteration is a layer, %d in all", name, info->pattern, info->layers);
  else if (info->map == TARN_DYNAMICS_MAP_RECURRENCE)
    snprintf(text, sizeof text, "%s \"%s\": an iteration is a token of layer %d, \"%s\", %s", name, info->pattern,
             info->first_layer, layers,
             info->drive == TARN_DYNAMICS_DRIVE_TEXT ? "driven by the text" : "with an input of zeros");
  else if (one)
    snprintf(text, sizeof text, "%s \"%s\": an iteration is layer %d, \"%s\"", name, info->pattern, info->first_layer,
             layers);
  else
    snprintf(text, sizeof text, "%s \"%s\": an iteration is layers %d to %d, \"%s\"", name, info->pattern,
             info->first_layer, info->last_layer, layers);
  TARN_TRY(tarn__arena_strdup(&d->texts, &kept, text));
  info->text = kept;
  return TARN_STATUS_OK;
}

tarn_status tarn__dynamics_choose(tarn_dynamics *d) {
  tarn_dynamics_info *info = &d->info;
  const tarn__model *model = d->checkpoint->model;
  char pattern[TARN__PATTERN_TEXT], *kept;
  const tarn_stack *layers = layers_of(d);
  TARN_TRY(tarn__pattern_write(pattern, layers->layers, layers->count, d->checkpoint->config->kinds));
  TARN_TRY(tarn__arena_strdup(&d->texts, &kept, pattern));
  info->pattern = kept;
  info->layers = stack_of(d)->count;
  info->device = model->device->name;
  info->width = model->config->model.d_model;
  TARN_TRY(choose_map(d));
  info->drive = d->options.drive;
  TARN_REQUIRE(info->map != TARN_DYNAMICS_MAP_RECURRENCE || info->drive != TARN_DYNAMICS_DRIVE_NOISE, USAGE,
               "%s: a layer of a model is driven by text, or free; noise drives a reservoir without a model",
               info->path);
  TARN_REQUIRE(info->map == TARN_DYNAMICS_MAP_RECURRENCE || info->drive == TARN_DYNAMICS_DRIVE_TEXT, USAGE,
               "%s: only a recurrence may be free; map %s starts from a text", info->path,
               tarn_dynamics_map_name(info->map));
  if (info->map == TARN_DYNAMICS_MAP_RECURRENCE)
    info->width = tarn__cell_width(&d->cell);
  else
    info->depth = info->map == TARN_DYNAMICS_MAP_LAYERS ? info->layers
                                                        : (info->layers + info->last_layer - info->first_layer) /
                                                              (info->last_layer - info->first_layer + 1);
  return say(d);
}

tarn_status tarn__dynamics_iterations(const tarn_dynamics *d, int64_t *iterations) {
  const tarn_dynamics_options *o = &d->options;
  *iterations = o->iterations ? o->iterations : 1000;
  if (d->info.map != TARN_DYNAMICS_MAP_LAYERS) return TARN_STATUS_OK;
  TARN_REQUIRE(
      o->iterations <= d->info.layers, USAGE,
      "%s: the %s \"%s\" shares no period, so that %lld iterations are beyond its %d layers, an iteration each; "
      "layers of 1 to %d may be chosen to be iterated as a period",
      d->info.path, stack_name(d), d->info.pattern, (long long)o->iterations, d->info.layers, d->info.layers);
  if (!o->iterations) *iterations = d->info.layers;
  return TARN_STATUS_OK;
}
