#include "train/features/autofreeze.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/transfer.h"
#include "train/feature.h"
#include "train/features/freeze.h"
#include "train/trainer.h"

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

size_t tarn__autofreeze_rule(const double *changes, size_t count, double percentile) {
  double sorted[TARN_CONFIG_LAYERS];
  if (count == 0 || count > TARN_CONFIG_LAYERS) return 0;
  memcpy(sorted, changes, count * sizeof *sorted);
  qsort(sorted, count, sizeof *sorted, compare);
  double place = percentile / 100.0 * (double)(count - 1);
  size_t low = (size_t)place;
  size_t high = low + 1 < count ? low + 1 : low;
  double limit = sorted[low] + (place - (double)low) * (sorted[high] - sorted[low]);
  for (size_t i = 0; i < count; i++)
    if (changes[i] >= limit) return i;
  return count - 1;  // by rounding, the limit exceeded the largest change
}

// The norm of a set's sum, which is then cleared. *learns: whether the set is still trained.
static tarn_status take_norm(const tarn__model *model, tarn__optim_share *share, const char *set, double *norm,
                             bool *learns) {
  *norm = 0.0;
  *learns = false;
  for (size_t i = 0; i < model->param_count; i++) {
    const tarn__param *param = model->params[i];
    if (!tarn__model_sums(model, param) || !tarn__freeze_covers(set, param->name)) continue;
    *learns |= tarn__param_learns(param);
    if (param->training.part) {
      TARN_TRY(tarn__optim_share_absolute(share, i, norm));
      continue;
    }
    float *sum = param->training.grad_sum;
    const size_t n = (size_t)(param->rows * param->cols);
    TARN_TRY(tarn__device_absolute_sum(model->device, norm, sum, n));
    TARN_TRY(tarn__device_fill(model->device, sum, 0, n * sizeof *sum));
  }
  return TARN_STATUS_OK;
}

// A set without gradients in the last interval (skipped by LayerDrop) counts as infinitely changed.
static double change(double before, double now) {
  if (before > 0) return fabs(before - now) / before;
  return now > 0 ? DBL_MAX : 0.0;
}

tarn_status tarn__autofreeze_test(const tarn__model *model, tarn__optim_share *share, tarn__progress *progress) {
  int64_t every = model->config->train.autofreeze;
  if (every == 0 || progress->update % every != 0) return TARN_STATUS_OK;
  double changes[TARN_CONFIG_LAYERS];
  int64_t sets[TARN_CONFIG_LAYERS];
  size_t count = 0;
  int64_t set = 0;
  int at = 0;
  tarn__freeze_part part;
  for (; tarn__freeze_next_set(model, &at, &part); set++) {
    bool learns;
    double norm;
    TARN_TRY(take_norm(model, share, part.name, &norm, &learns));
    if (learns && set < progress->norm_count) {
      changes[count] = change(progress->norms[set], norm);
      sets[count++] = set;
    }
    progress->norms[set] = norm;
  }
  progress->norm_count = set;
  size_t frozen = tarn__autofreeze_rule(changes, count, model->config->train.autofreeze_percentile);
  if (frozen > 0) progress->frozen_sets = sets[frozen];
  return TARN_STATUS_OK;
}

// --- the feature

static bool wanted(const tarn_config *config) { return config->train.autofreeze > 0; }

static tarn_status optimised(tarn_train *t, void *state) {
  (void)state;
  const tarn__device *device = t->model->device;
  tarn__param_table *table = t->optim.shares ? &t->optim.table : &t->params;
  TARN_TRY(tarn__param_table_refresh(device, table));
  return device->type->grad_sum_add(device, table, t->threads);
}

// The feature "freeze", which comes later, freezes the sets.
static tarn_status after_update(tarn_train *t, void *state) {
  (void)state;
  return tarn__autofreeze_test(t->model, &t->optim, &t->progress);
}

extern const tarn__feature tarn__feature_autofreeze;
const tarn__feature tarn__feature_autofreeze = {.name = "autofreeze",
                                                .wanted = wanted,
                                                .needs_gradients = true,
                                                .optimised = optimised,
                                                .after_update = after_update};
