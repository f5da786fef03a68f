// The public functions without a model: words, defaults, spreads.
#include <math.h>
#include <stdlib.h>

#include "description/description.h"
#include "dynamics/dynamics.h"
#include "tarn/lab/dynamics.h"

// The words of a description, and in their order.
#define WORD(value, word, text) word,
_Static_assert((int)TARN_ITERATED_COUNT == (int)TARN_DYNAMICS_MAP_COUNT &&
                   (int)TARN_ITERATED_AUTO == (int)TARN_DYNAMICS_MAP_AUTO &&
                   (int)TARN_ITERATED_PERIOD == (int)TARN_DYNAMICS_MAP_PERIOD &&
                   (int)TARN_ITERATED_LAYERS == (int)TARN_DYNAMICS_MAP_LAYERS &&
                   (int)TARN_ITERATED_RECURRENCE == (int)TARN_DYNAMICS_MAP_RECURRENCE,
               "a map has the same value in a description and here");

const char *tarn_dynamics_precision_name(tarn_dynamics_precision precision) {
  static const char *const words[TARN_DYNAMICS_PRECISION_COUNT] = {"double", "fp32"};
  return precision >= 0 && precision < TARN_DYNAMICS_PRECISION_COUNT ? words[precision] : NULL;
}

const char *tarn_dynamics_map_name(tarn_dynamics_map map) {
  static const char *const words[TARN_DYNAMICS_MAP_COUNT] = {TARN_ITERATED_MAP(WORD)};
  return map >= 0 && map < TARN_DYNAMICS_MAP_COUNT ? words[map] : NULL;
}

const char *tarn_dynamics_drive_name(tarn_dynamics_drive drive) {
  static const char *const words[TARN_DYNAMICS_DRIVE_COUNT] = {"text", "free", "noise"};
  return drive >= 0 && drive < TARN_DYNAMICS_DRIVE_COUNT ? words[drive] : NULL;
}

const char *tarn_dynamics_settling_name(tarn_dynamics_settling settling) {
  static const char *const words[TARN_DYNAMICS_SETTLING_COUNT] = {"fixed point", "cycle", "none", "diverged",
                                                                  "unknown"};
  return settling >= 0 && settling < TARN_DYNAMICS_SETTLING_COUNT ? words[settling] : NULL;
}

const char *tarn_dynamics_verdict_name(tarn_dynamics_verdict verdict) {
  static const char *const words[TARN_DYNAMICS_VERDICT_COUNT] = {"contracting", "transient", "expanding",
                                                                 "drifting",    "diverged",  "unknown"};
  return verdict >= 0 && verdict < TARN_DYNAMICS_VERDICT_COUNT ? words[verdict] : NULL;
}

void tarn_dynamics_default(tarn_dynamics_options *options) {
  *options = (tarn_dynamics_options){.precision = TARN_DYNAMICS_PRECISION_DOUBLE,
                                     .map = TARN_DYNAMICS_MAP_AUTO,
                                     .drive = TARN_DYNAMICS_DRIVE_TEXT,
                                     .starts = 8,
                                     .exponents = 8,
                                     .every = 1,
                                     .discard = -1,
                                     .longest_period = 32,
                                     .apart = 0.1,
                                     .kept = 64,
                                     .seed = 1,
                                     .max_memory = 1000000000};
}

static int rising(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  if (isnan(x) || isnan(y)) return isnan(x) - isnan(y);
  return (x > y) - (x < y);
}

// Interpolates between two sorted numbers, without multiplying infinities by 0.
static double quantile(const double *values, int64_t count, double share) {
  const double place = share * (double)(count - 1);
  const int64_t low = (int64_t)place;
  const double rest = place - (double)low;
  return rest > 0.0 ? values[low] * (1.0 - rest) + values[low + 1] * rest : values[low];
}

void tarn__dynamics_spread_of(tarn_dynamics_spread *spread, double *values, int64_t count) {
  if (count > 0) qsort(values, (size_t)count, sizeof *values, rising);
  while (count > 0 && isnan(values[count - 1])) count--;
  *spread = (tarn_dynamics_spread){count, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
  if (count == 0) return;
  double sum = 0.0, squares = 0.0;
  for (int64_t i = 0; i < count; i++) sum += values[i];
  spread->mean = sum / (double)count;
  for (int64_t i = 0; i < count; i++) squares += (values[i] - spread->mean) * (values[i] - spread->mean);
  spread->deviation = count > 1 ? sqrt(squares / (double)(count - 1)) : 0.0;
  spread->least = values[0];
  spread->lower = quantile(values, count, 0.25);
  spread->median = quantile(values, count, 0.5);
  spread->upper = quantile(values, count, 0.75);
  spread->most = values[count - 1];
}
