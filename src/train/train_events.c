// What the receiver of a training's events is told.
#include "base/clock.h"
#include "train/trainer.h"

double tarn__train_epoch(const tarn_train *t) {
  return (double)t->progress.epoch + (double)t->progress.index / (double)t->epoch_batches;
}

double tarn__train_clock(const tarn_train *t) {
  return t->config->train.clock == TARN_CLOCK_CPU ? tarn__cpu_seconds() / t->threads : tarn__seconds();
}

static double smaller_known(double a, double b) { return a < 0 || (b >= 0 && b < a) ? b : a; }

// Seconds of training until the nearest limit, at the mean speed so far; negative if that cannot be said.
static double seconds_left(const tarn_train *t) {
  const tarn_config_train *limits = &t->config->train;
  const tarn__progress *p = &t->progress;
  if (p->update == 0) return -1.0;
  double left = -1.0;
  double epoch = tarn__train_epoch(t);
  if (limits->max_updates > 0)
    left = smaller_known(left, (double)(limits->max_updates - p->update) * p->seconds / (double)p->update);
  if (limits->max_epochs > 0 && epoch > 0)
    left = smaller_known(left, ((double)limits->max_epochs - epoch) * p->seconds / epoch);
  if (limits->max_minutes > 0) left = smaller_known(left, limits->max_minutes * 60.0 - p->seconds);
  return left;
}

void tarn__train_tell(const tarn_train *t, tarn_train_event *event) {
  if (!t->on_event) return;
  event->update = t->progress.update;
  event->epoch = tarn__train_epoch(t);
  event->seconds = t->progress.seconds;
  event->seconds_left = seconds_left(t);
  if (event->kind != TARN_TRAIN_EVENT_VALID) event->valid_bleu = -1.0;
  t->on_event(t->user, event);
}
