#include "train/numbers.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "train/trainer.h"

tarn_status tarn__numbers_open(tarn__numbers *n, const tarn__device *device, int ranks) {
  void *memory;
  *n = (tarn__numbers){.device = device, .late = !tarn__device_is_host(device) && ranks == 1};
  TARN_TRY(tarn__device_allocate(device, &memory, TARN__MEMORY_OTHER, 1, sizeof *n->there));
  n->there = memory;
  return TARN_STATUS_OK;
}

void tarn__numbers_close(tarn__numbers *n) {
  if (n->there) tarn__device_free(n->device, n->there);
  *n = (tarn__numbers){0};
}

// The sums in train->progress are reset when a line of the log is written, which reads the numbers first.
tarn_status tarn__numbers_begin(tarn_train *t) {
  tarn__numbers *n = &t->numbers;
  const tarn__progress *p = &t->progress;
  if (n->unread) return tarn__device_fill(n->device, n->there, 0, offsetof(tarn__step_numbers, loss_sum));
  n->now = (tarn__step_numbers){.loss_sum = p->loss_sum, .watched_sum = p->nll_sum, .norm_sum = p->norm_sum};
  return tarn__device_put(n->device, n->there, &n->now, sizeof n->now);
}

tarn_status tarn__numbers_set_loss(tarn__numbers *n, double loss, double watched) {
  const double values[] = {loss, watched};
  return tarn__device_put(n->device, &n->there->loss, values, sizeof values);
}

tarn_status tarn__numbers_set_norms(tarn__numbers *n, double norm, double helpers) {
  const double values[] = {norm, helpers};
  return tarn__device_put(n->device, &n->there->norm, values, sizeof values);
}

tarn_status tarn__numbers_get(tarn__numbers *n) {
  return tarn__device_get(n->device, &n->now, n->there, sizeof n->now);
}

static tarn_status fail(const tarn_train *t, const tarn__step_numbers *n) {
  static const char *const what[] = {[TARN__STEP_LOSS] = "the loss",
                                     [TARN__STEP_NORM] = "the norm of the gradients",
                                     [TARN__STEP_HELPERS_NORM] = "the norm of the gradients of " TARN__HELPERS};
  char is[96] = "not a finite number";
  if (n->failure != TARN__STEP_LOSS && isfinite(n->bad))
    snprintf(is, sizeof is, "%.3g (expected less than %g, whose square fp32 holds)", n->bad, TARN__LARGEST_GRADIENT);
  return tarn__train_fail(t, n->failed, what[n->failure], is);
}

tarn_status tarn__numbers_take(tarn_train *t, tarn__progress *progress) {
  tarn__numbers *n = &t->numbers;
  if (!n->unread) return TARN_STATUS_OK;
  TARN_TRY(tarn__numbers_get(n));
  if (n->now.failed != 0) return fail(t, &n->now);
  n->unread = false;
  progress->loss_sum = n->now.loss_sum;
  progress->nll_sum = n->now.watched_sum;
  progress->norm_sum = n->now.norm_sum;
  return TARN_STATUS_OK;
}

tarn_status tarn__numbers_read(tarn_train *t) { return tarn__numbers_take(t, &t->progress); }
