// Grids: lists of values for keys, whose product turns one variant into several.
#include <stdio.h>
#include <string.h>

#include "sweep/spec.h"

// Points are compared by their validation, which is only comparable if it is the same.
static tarn_status check_key(const tarn__config_edit *edit) {
  static const char *const same[] = {"valid.metric", "data.valid", "data.valid_reference"};
  for (size_t i = 0; i < sizeof same / sizeof *same; i++)
    if (strcmp(edit->path, same[i]) == 0)
      return tarn__yaml_fail(
          edit->value, "grid: %s: the points of a grid are compared by it, so it must be the same in all", edit->path);
  return TARN_STATUS_OK;
}

tarn_status tarn__sweep_grid_read(tarn_sweep *sweep, tarn__sweep_grid *grid, const tarn__yaml_node *node) {
  if (tarn__yaml_is_empty(node)) return TARN_STATUS_OK;
  if (node->type != TARN__YAML_MAP)
    return tarn__yaml_fail(node, "grid: expected keys and lists of values, such as train.lr: [0.0001, 0.0003]");
  TARN_TRY(tarn__sweep_read_edits(sweep, &grid->edits, node));
  grid->points = 1;
  for (size_t i = 0; i < grid->edits.count; i++) {
    const tarn__yaml_node *list = grid->edits.items[i].value;
    int64_t count = 0;
    TARN_TRY(check_key(&grid->edits.items[i]));
    if (list->type != TARN__YAML_LIST || !list->first)
      return tarn__yaml_fail(list, "grid: %s: expected a list of values, such as [0.0001, 0.0003]",
                             grid->edits.items[i].path);
    for (const tarn__yaml_node *item = list->first; item; item = item->next, count++) {
      if (item->type != TARN__YAML_SCALAR || tarn__yaml_is_empty(item))
        return tarn__yaml_fail(item, "grid: %s: expected one value", grid->edits.items[i].path);
    }
    if (count > TARN__SWEEP_VARIANTS / grid->points)
      return tarn__yaml_fail(list, "grid: more than %d variants", TARN__SWEEP_VARIANTS);
    grid->points *= count;
  }
  return TARN_STATUS_OK;
}

static const char *last_word(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot ? dot + 1 : path;
}

// The last word of a key, or the whole key if another key of the grid ends in the same word.
static const char *short_key(const tarn__sweep_grid *grid, size_t index) {
  const char *path = grid->edits.items[index].path;
  for (size_t i = 0; i < grid->edits.count; i++)
    if (i != index && strcmp(last_word(grid->edits.items[i].path), last_word(path)) == 0) return path;
  return last_word(path);
}

// "full+lr-0.0001+warmup-100"; characters not allowed in a name become "_".
static tarn_status point_name(tarn_sweep *sweep, const char **name, const tarn__yaml_node *entry,
                              const tarn__sweep_grid *grid, const tarn__yaml_node *const *values) {
  char text[1024];
  size_t used = (size_t)snprintf(text, sizeof text, "%s", entry->key);
  for (size_t i = 0; i < grid->edits.count; i++) {
    char one[TARN_SWEEP_NAME];
    snprintf(one, sizeof one, "%s", values[i]->text);
    for (char *c = one; *c; c++) {
      const char single[2] = {*c, '\0'};
      if (!tarn__sweep_is_name(single) && !strchr("-.", *c)) *c = '_';
    }
    used += (size_t)snprintf(text + used, sizeof text - used, "+%s-%s", short_key(grid, i), one);
    if (used >= TARN_SWEEP_NAME)
      return tarn__yaml_fail(entry, "the name of a point of its grid is longer than %d bytes: %.80s...",
                             TARN_SWEEP_NAME - 1, text);
  }
  return tarn__sweep_text(sweep, name, "%s", text);
}

// The values of a point; the last key changes fastest.
static void values_of(const tarn__yaml_node **values, const tarn__sweep_grid *grid, int64_t point) {
  for (size_t i = grid->edits.count; i-- > 0;) {
    int64_t count = 0;
    const tarn__yaml_node *first = grid->edits.items[i].value->first;
    for (const tarn__yaml_node *item = first; item; item = item->next) count++;
    values[i] = first;
    for (int64_t k = point % count; k > 0; k--) values[i] = values[i]->next;
    point /= count;
  }
}

static tarn_status check_name(const tarn_sweep *sweep, const tarn__yaml_node *entry, const char *name) {
  for (size_t i = 0; i < sweep->variant_count; i++) {
    if (strcmp(sweep->variants[i].name, name) == 0)
      return tarn__yaml_fail(
          entry, "two variants would be called \"%s\": give it another name, or its grid other values", name);
  }
  if (sweep->variant_count >= TARN__SWEEP_VARIANTS)
    return tarn__yaml_fail(entry, "variants: more than %d", TARN__SWEEP_VARIANTS);
  return TARN_STATUS_OK;
}

static tarn_status add_variant(tarn_sweep *sweep, const tarn__yaml_node *entry, const tarn__sweep_edits *edits,
                               const tarn__sweep_grid *grid, int64_t point) {
  struct tarn__sweep_memory *m = sweep->memory;
  const size_t keys = grid && grid->points ? grid->edits.count : 0;
  const size_t index = sweep->variant_count;
  const tarn__yaml_node *values[TARN__SWEEP_GRID_KEYS];
  tarn_sweep_variant *variant = &m->variants[index];
  if (keys > TARN__SWEEP_GRID_KEYS) return tarn__yaml_fail(entry, "grid: more than %d keys", TARN__SWEEP_GRID_KEYS);
  const char *name = entry->key;
  if (keys) {
    values_of(values, grid, point);
    TARN_TRY(point_name(sweep, &name, entry, grid, values));
    variant->grid = entry->key;
    variant->point_count = keys;
  }
  TARN_TRY(check_name(sweep, entry, name));
  variant->name = name;
  sweep->variant_count++;  // from now on its edits are freed with the sweep
  tarn__sweep_edits *own = &m->edits[index];
  TARN_TRY(tarn__grow(&own->items, &own->capacity, edits->count + keys + 1, sizeof *own->items));
  for (size_t i = 0; i < edits->count; i++) own->items[own->count++] = edits->items[i];
  for (size_t k = 0; k < keys; k++) {
    const tarn__config_edit *key = &grid->edits.items[k];
    for (size_t i = 0; i < edits->count; i++) {
      if (strcmp(edits->items[i].path, key->path) == 0)
        return tarn__yaml_fail(edits->items[i].value, "%s is in the variant and in its grid", key->path);
    }
    own->items[own->count++] = (tarn__config_edit){.path = key->path, .value = values[k]};
  }
  return tarn__sweep_describe(sweep, variant, own);
}

tarn_status tarn__sweep_add_points(tarn_sweep *sweep, const tarn__yaml_node *entry, const tarn__sweep_edits *edits,
                                   const tarn__sweep_grid *grid, tarn__sweep_equal equalize) {
  const int64_t points = grid && grid->points ? grid->points : 1;
  for (int64_t p = 0; p < points; p++) {
    TARN_TRY(add_variant(sweep, entry, edits, grid, p));
    tarn_sweep_variant *variant = &sweep->memory->variants[sweep->variant_count - 1];
    variant->equalize = equalize.by;
    variant->trade = equalize.trade;
  }
  return TARN_STATUS_OK;
}
