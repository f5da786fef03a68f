#include "train/train_cost.h"

#include <math.h>

#include "train/trainer.h"

// A bit of progress.cost_sources in addition to those for energy: operations and bytes of a part are unknown.
enum { UNCOUNTED = TARN__ENERGY_UNKNOWN << 1 };

tarn_status tarn__cost_open(tarn_train *t) {
  tarn__progress *p = &t->progress;
  // The checkpoint is from a version without cost accounting.
  if (p->cost_sources == 0 && p->seconds > 0) p->cost_sources = TARN__ENERGY_UNKNOWN | UNCOUNTED;
  t->stepper.energy = &t->energy;
  if (t->comm->rank != 0 || t->comm->size > 1) return TARN_STATUS_OK;
  return tarn__energy_open(&t->energy, &(tarn__energy_options){.watts = t->config->train.core_watts,
                                                               .accelerator = t->model->device->type->accelerator});
}

void tarn__cost_begin(tarn_train *t) {
  t->stepper.operations = t->stepper.moved_bytes = 0;
  tarn__energy_begin(&t->energy);
}

void tarn__cost_end(tarn_train *t, tarn__progress *p, bool counted) {
  int sources;
  p->joules += tarn__energy_end(&t->energy, &sources);
  p->operations += t->stepper.operations;
  p->moved_bytes += t->stepper.moved_bytes;
  p->cost_sources |= sources | (counted && t->comm->size == 1 ? 0 : UNCOUNTED);
}

void tarn__cost_best(tarn__progress *p) {
  p->best_joules = p->joules;
  p->best_operations = p->operations;
}

double tarn__cost_joules(const tarn__progress *p) {
  return p->cost_sources == 0 || (p->cost_sources & TARN__ENERGY_UNKNOWN) ? NAN : p->joules;
}

void tarn__cost_fill(const tarn_train *t, tarn_cost *cost, char source[TARN__ENERGY_TEXT]) {
  const tarn__progress *p = &t->progress;
  const double joules = tarn__cost_joules(p), factor = t->config->train.co2_per_kwh, epoch = tarn__train_epoch(t);
  const double operations = p->cost_sources == 0 || (p->cost_sources & UNCOUNTED) ? NAN : p->operations;
  const double tokens = (double)(p->source_tokens + p->target_tokens), kwh = 3.6e6;
  const bool best = p->best_update > 0;
  tarn__energy_words(source, isnan(joules) ? 0 : (int)p->cost_sources);
  *cost = (tarn_cost){.source = *source ? source : NULL,
                      .joules = joules,
                      .epoch_joules = epoch > 0 ? joules / epoch : NAN,
                      .best_joules = best && !isnan(joules) ? p->best_joules : NAN,
                      .co2_grams = factor > 0 ? joules / kwh * factor : NAN,
                      .operations = operations,
                      .token_operations = tokens > 0 ? operations / tokens : NAN,
                      .best_operations = best && !isnan(operations) ? p->best_operations : NAN,
                      .moved_bytes = isnan(operations) ? NAN : p->moved_bytes};
}
