// The description of a run of a sweep: the base, the changes of its variant, and what the sweep sets itself.
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "config/config_read.h"
#include "sweep/spec.h"

static tarn_status add_edits(tarn__sweep_edits *all, const tarn__sweep_edits *edits) {
  TARN_TRY(tarn__grow(&all->items, &all->capacity, all->count + edits->count + 1, sizeof *all->items));
  if (edits->count) memcpy(all->items + all->count, edits->items, edits->count * sizeof *edits->items);
  all->count += edits->count;
  return TARN_STATUS_OK;
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
  if (status == TARN_STATUS_OK)
    status = tarn__config_parse_edited(config, m->base_path, m->base_text, m->base_size, all.items, all.count);
  tarn__free(all.items);
  if (status == TARN_STATUS_OK) status = tarn_config_check_training(*config);
  if (status != TARN_STATUS_OK) tarn_config_close(config);
  return status;
}
