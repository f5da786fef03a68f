#include "dynamics/settling.h"

#include <math.h>

#include "dynamics/sums.h"

static const double *state_at(const tarn__tail *tail, int64_t iteration) {
  return tail->ring + iteration % tail->slots * tail->stride;
}

// Relative; 0 for states that have always been zero, NAN if one is NaN.
static double distance(const tarn__tail *tail, const double *a, const double *b) {
  const double apart = sqrt(tarn__sum_difference(a, b, tail->n));
  return apart == 0.0 ? 0.0 : apart / tail->scale;
}

// The first iteration after which states return after `period`.
static int64_t settled_since(const tarn_dynamics_sentence *s, const tarn__tail *tail, const double *signatures,
                             int64_t period) {
  int64_t t = s->iterations - period;
  for (; t > 0; t--) {
    const int64_t before = t - 1;
    const double apart = period == 1
                             ? s->step[t] * tail->scale
                             : sqrt(tarn__sum_difference(signatures + (before + period) * TARN__SIGNATURE,
                                                         signatures + before * TARN__SIGNATURE, TARN__SIGNATURE));
    if (!(apart <= tail->tolerance * tail->scale)) break;
  }
  return t;
}

void tarn__settling_judge(tarn_dynamics_sentence *s, const tarn__tail *tail, const double *signatures) {
  s->settling = TARN_DYNAMICS_SETTLING_NONE;
  s->residual = NAN;
  for (int64_t period = 1; period < tail->slots && period <= s->iterations; period++) {
    const double apart = distance(tail, state_at(tail, tail->last), state_at(tail, tail->last - period));
    if (!(s->residual <= apart)) s->residual = apart;
    if (s->settling != TARN_DYNAMICS_SETTLING_NONE || !(apart <= tail->tolerance)) continue;
    const int64_t since = settled_since(s, tail, signatures, period);
    if (since > s->iterations - 2 * period) continue;  // too late to confirm a return
    s->settling = period == 1 ? TARN_DYNAMICS_SETTLING_FIXED_POINT : TARN_DYNAMICS_SETTLING_CYCLE;
    s->period = period;
    s->settled = since;
  }
}

void tarn__synchrony_judge(tarn_dynamics_synchrony *synchrony, const double *distances, int64_t iterations,
                           int64_t window, double tolerance) {
  *synchrony = (tarn_dynamics_synchrony){
      .there = !isnan(distances[0]), .iteration = -1, .offset = NAN, .wander = NAN, .lag = -1};
  if (!synchrony->there) return;
  if (!isfinite(distances[iterations])) return;  // the second start has diverged
  synchrony->offset = distances[iterations];
  int64_t t = iterations + 1;
  while (t > 0 && distances[t - 1] <= tolerance) t--;
  synchrony->synchronised = t <= iterations;
  if (synchrony->synchronised) synchrony->iteration = t;
  double least = synchrony->offset, most = synchrony->offset;
  for (int64_t i = 0; i < window && i <= iterations; i++) {
    least = fmin(least, distances[iterations - i]);
    most = fmax(most, distances[iterations - i]);
  }
  synchrony->wander = most - least;
}

int64_t tarn__lag_of(const tarn__tail *tail, const double *other) {
  for (int64_t lag = 0; lag < tail->slots - 1 && lag <= tail->last; lag++)
    if (distance(tail, other, state_at(tail, tail->last - lag)) <= tail->tolerance) return lag;
  return -1;
}
