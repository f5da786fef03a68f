// The description of a run of a sweep: the base, the changes of its variant, and what the sweep sets itself.
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "config/config_read.h"
#include "description/description.h"
#include "sweep/spec.h"

static tarn_status add_edits(tarn__sweep_edits *all, const tarn__sweep_edits *edits) {
  TARN_TRY(tarn__grow(&all->items, &all->capacity, all->count + edits->count + 1, sizeof *all->items));
  if (edits->count) memcpy(all->items + all->count, edits->items, edits->count * sizeof *edits->items);
  all->count += edits->count;
  return TARN_STATUS_OK;
}

// The change that puts the seed into train.init_from, so that each run can start from the body of its own seed.
static void place_seed(tarn__buffer *edit, const char *path, int64_t seed) {
  tarn__buffer_add(edit, "train.init_from='");
  for (; *path; path++) {
    if (strncmp(path, "{seed}", 6) == 0) {
      tarn__buffer_format(edit, "%lld", (long long)seed);
      path += 5;
    } else {
      tarn__buffer_put(edit, *path == '\'' ? "''" : path, *path == '\'' ? 2 : 1);
    }
  }
  tarn__buffer_add(edit, "'");
}

static tarn_status parse(tarn_config **config, const struct tarn__sweep_memory *m, tarn__sweep_edits *all,
                         int64_t seed) {
  TARN_TRY(tarn__config_parse_edited(config, m->base_path, m->base_text, m->base_size, all->items, all->count));
  const char *path = (*config)->train.init_from;
  if (!path || !strstr(path, "{seed}")) return TARN_STATUS_OK;
  tarn__buffer edit = {0};
  place_seed(&edit, path, seed);
  tarn_config_close(config);
  tarn_status status = edit.status;
  if (status == TARN_STATUS_OK) status = tarn__sweep_add_text(all, edit.data);
  if (status == TARN_STATUS_OK)
    status = tarn__config_parse_edited(config, m->base_path, m->base_text, m->base_size, all->items, all->count);
  tarn__buffer_close(&edit);
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
