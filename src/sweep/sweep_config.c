// The description of a run of a sweep: the base, the changes of its variant, and what the sweep sets itself.
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "config/config_read.h"
#include "config/config_seed.h"
#include "description/description.h"
#include "sweep/spec.h"

static tarn_status add_edits(tarn__sweep_edits *all, const tarn__sweep_edits *edits) {
  TARN_TRY(tarn__grow(&all->items, &all->capacity, all->count + edits->count + 1, sizeof *all->items));
  if (edits->count) memcpy(all->items + all->count, edits->items, edits->count * sizeof *edits->items);
  all->count += edits->count;
  return TARN_STATUS_OK;
}

static tarn_status parse_all(tarn_config **config, const struct tarn__sweep_memory *m, const tarn__sweep_edits *all) {
  return tarn__config_parse_edited(config, m->base_path, m->base_text, m->base_size, all->items, all->count);
}

// With the seed in train.init_from, if that has a place for it.
static tarn_status parse(tarn_config **config, const struct tarn__sweep_memory *m, tarn__sweep_edits *all,
                         int64_t seed) {
  TARN_TRY(parse_all(config, m, all));
  if (!tarn__config_has_seed((*config)->train.init_from)) return TARN_STATUS_OK;
  tarn__buffer path = {0}, edit = {0};
  tarn__config_place_seed(&path, (*config)->train.init_from, seed);
  tarn_config_close(config);
  if (path.status == TARN_STATUS_OK) tarn__config_init_from(&edit, path.data);
  tarn_status status = path.status == TARN_STATUS_OK ? edit.status : path.status;
  if (status == TARN_STATUS_OK) status = tarn__sweep_add_text(all, edit.data);
  if (status == TARN_STATUS_OK) status = parse_all(config, m, all);
  tarn__buffer_close(&edit);
  tarn__buffer_close(&path);
  return status;
}

tarn_status tarn__sweep_body(tarn_sweep *sweep, const char **path, const tarn__sweep_edits *edits) {
  struct tarn__sweep_memory *m = sweep->memory;
  tarn__sweep_edits all = {0};
  tarn_config *config = NULL;
  *path = NULL;
  tarn_status status = add_edits(&all, &m->set);
  if (status == TARN_STATUS_OK) status = add_edits(&all, edits);
  if (status == TARN_STATUS_OK) status = parse_all(&config, m, &all);
  if (status == TARN_STATUS_OK && tarn__config_has_seed(config->train.init_from))
    status = tarn__sweep_text(sweep, path, "%s", config->train.init_from);
  tarn_config_close(&config);
  tarn__free(all.items);
  return status;
}

tarn_status tarn__sweep_config(const tarn_sweep *sweep, tarn_config **config, const tarn__sweep_edits *edits,
                               int64_t seed) {
  const struct tarn__sweep_memory *m = sweep->memory;
  tarn__sweep_edits all = {0};
  char own[3][64];
  snprintf(own[0], sizeof own[0], "train.seed=%lld", (long long)seed);
  snprintf(own[1], sizeof own[1], "train.threads=%lld", (long long)sweep->threads);
  snprintf(own[2], sizeof own[2], "train.max_minutes=%.12g", sweep->budget_seconds / 60.0);
  *config = NULL;
  tarn_status status = add_edits(&all, &m->set);
  if (status == TARN_STATUS_OK && edits) status = add_edits(&all, edits);
  if (status == TARN_STATUS_OK) status = tarn__sweep_add_text(&all, "train.seeds=");
  for (int i = 0; i < (sweep->budget_seconds > 0 ? 3 : 2) && status == TARN_STATUS_OK; i++)
    status = tarn__sweep_add_text(&all, own[i]);
  if (status == TARN_STATUS_OK) status = parse(config, m, &all, seed);
  tarn__free(all.items);
  if (status == TARN_STATUS_OK) status = tarn_config_check_training(*config);
  if (status != TARN_STATUS_OK) tarn_config_close(config);
  return status;
}
