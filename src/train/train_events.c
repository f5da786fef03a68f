// Events for the receiver of training events.
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/lock.h"
#include "train/trainer.h"

double tarn__train_epoch(const tarn_train *t) {
  return (double)t->progress.epoch + (double)t->progress.index / (double)t->epoch_batches;
}

double tarn__train_clock(const tarn_train *t) {
  return t->config->train.clock == TARN_CLOCK_CPU ? tarn__cpu_seconds() / t->threads : tarn__seconds();
}

static double smaller_known(double a, double b) { return a < 0 || (b >= 0 && b < a) ? b : a; }

// Seconds on the training clock until the nearest limit, at the average speed so far; 0 past a limit, negative if
// unknown.
static double clock_left(const tarn_train *t) {
  const tarn_config_train *limits = &t->config->train;
  const tarn__progress *p = &t->progress;
  if (p->update == 0) return -1.0;
  double left = tarn__features_update(t->config) ? 0.0 : -1.0;
  double epoch = tarn__train_epoch(t);
  if (limits->max_updates > 0)
    left = smaller_known(left, fmax((double)(limits->max_updates - p->update), 0) * p->seconds / (double)p->update);
  if (limits->max_epochs > 0 && epoch > 0)
    left = smaller_known(left, fmax((double)limits->max_epochs - epoch, 0) * p->seconds / epoch);
  if (limits->max_minutes > 0) left = smaller_known(left, fmax(limits->max_minutes * 60.0 - p->seconds, 0));
  return left;
}

// The number of scorings in the next `updates` updates, including the one at the end. done: scoring has already taken
// place after the last update.
static double scores_left(const tarn_train *t, int64_t every, bool done, double updates) {
  const tarn__progress *p = &t->progress;
  const double small = 1e-6;  // fraction of the interval between two scorings
  const double at = every > 0 ? (double)p->update / (double)every : tarn__train_epoch(t);
  const double end = at + updates * at / (double)p->update;
  double count = ceil(end - small) - floor(at + small);
  // The scoring after an update comes later than the event of that update.
  if (fabs(at - round(at)) < small && !done) count += 1.0;
  return count;
}

// Including the validation of the average.
static double validations_left(const tarn_train *t, double updates) {
  const tarn_config *config = t->config;
  if (!t->validator) return 0.0;
  const double count = scores_left(t, config->valid.every, t->progress.validated == t->progress.update, updates);
  return count + (config->train.average > 0 && config->train.keep_last > 0 ? 1.0 : 0.0);
}

// Wall-clock seconds for all sets, at their last durations; *known becomes false if one has not been scored yet.
static double set_seconds_left(const tarn_train *t, double updates, bool *known) {
  double seconds = 0;
  for (int32_t i = 0; i < t->config->set_count; i++) {
    const double took = t->session.set_seconds[i];
    const bool done = t->progress.scored[i] == t->progress.update + 1;
    const double count = scores_left(t, t->config->sets[i].every, done, updates);
    *known = *known && (took > 0 || count <= 0);
    seconds += count * took;
  }
  return seconds;
}

// The same for exponents.
static double dynamics_seconds_left(const tarn_train *t, double updates, bool *known) {
  const double took = t->session.dynamics_seconds;
  if (!t->config->dynamics.input) return 0.0;
  const bool done = t->progress.measured == t->progress.update + 1;
  const double count = scores_left(t, t->config->dynamics.every, done, updates);
  *known = *known && (took > 0 || count <= 0);
  return count * took;
}

// Wall-clock seconds: steps at their speed in this session, validations at the duration of the last one.
static double seconds_left(const tarn_train *t, bool *at_least) {
  const tarn__progress *p = &t->progress;
  const double left = clock_left(t);
  *at_least = false;
  if (left < 0 || p->seconds <= 0) return left;
  const double wall = t->session.step_clock > 0 ? t->session.step_wall / t->session.step_clock : 1.0;
  const double updates = left * (double)p->update / p->seconds;
  const double validations = validations_left(t, updates);
  bool known = validations <= 0 || t->session.validation_seconds > 0;
  const double sets = set_seconds_left(t, updates, &known) + dynamics_seconds_left(t, updates, &known);
  *at_least = !known;
  return left * wall + validations * t->session.validation_seconds + sets;
}

void tarn__train_tell(const tarn_train *t, tarn_train_event *event) {
  if (!t->on_event) return;
  event->update = t->progress.update;
  event->epoch = tarn__train_epoch(t);
  event->seconds = t->progress.seconds;
  event->joules = tarn__cost_joules(&t->progress);
  event->seconds_left = seconds_left(t, &event->left_at_least);
  t->on_event(t->user, event);
}

tarn_status tarn__train_note(tarn_train *t, json_t *record, bool whole, tarn_train_event *event) {
  char *line;
  if (!whole) {
    json_decref(record);
    record = NULL;
  }
  tarn_status held = tarn__lock_check(t->dir.lock);
  if (held != TARN_STATUS_OK) json_decref(record);
  TARN_TRY(held);
  TARN_TRY(tarn__run_log_add(&t->session.log, record, &line));
  if (event) {
    event->line = line;
    tarn__train_tell(t, event);
  }
  free(line);
  return TARN_STATUS_OK;
}
