#include "dynamics/exponents.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

double tarn__kaplan_yorke(const double *exponents, int64_t k, int64_t dimensions, bool *least) {
  double sum = 0.0;
  *least = false;
  if (k == 0 || isnan(exponents[0])) return NAN;
  for (int64_t j = 0; j < k; j++) {
    const double more = sum + exponents[j];
    if (more < 0.0) return (double)j + (isinf(exponents[j]) ? 0.0 : sum / fabs(exponents[j]));
    sum = more;
  }
  *least = k < dimensions;
  return (double)k;
}

static int falling(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

// The number of iterations with local exponents.
static int64_t known_of(const tarn_dynamics_sentence *s, int64_t k) {
  int64_t t = 0;
  while (k > 0 && t < s->iterations && !isnan(s->local[t * k])) t++;
  return t;
}

static void judge_growth(tarn_dynamics_sentence *s, int64_t k, int64_t known) {
  double sum = 0.0;
  s->growth = 0.0;
  s->expansion_end = 0;
  for (int64_t t = 0; t < known; t++) {
    sum += s->local[t * k];
    if (sum <= s->growth) continue;
    s->growth = sum;
    s->expansion_end = t + 1;
  }
}

// NAN for a zero state, with which a recurrence begins.
static double state_growth(const tarn_dynamics_sentence *s, int64_t known, int64_t discard) {
  if (s->counted == 0 || !(s->norm[discard] > 0.0) || !(s->norm[known] > 0.0)) return NAN;
  return log(s->norm[known] / s->norm[discard]) / (double)s->counted;
}

// Layers of a pre-norm stack add to a stream that grows without bound, and their norms see only its direction. So
// perturbations grow with the state, and the exponent is above 0 for every finite time without chaos.
static bool drifts(const tarn_dynamics_sentence *s) {
  const double counted = (double)s->counted, state = s->state_growth * counted;
  return state > log(1.5) && s->exponents[0] * counted - state < 1.0;
}

static tarn_dynamics_verdict verdict_of(const tarn_dynamics_sentence *s) {
  if (s->diverged >= 0) return TARN_DYNAMICS_VERDICT_DIVERGED;
  if (s->counted == 0) return TARN_DYNAMICS_VERDICT_UNKNOWN;
  if (s->exponents[0] > 0.0) return drifts(s) ? TARN_DYNAMICS_VERDICT_DRIFTING : TARN_DYNAMICS_VERDICT_EXPANDING;
  return s->growth < 1.0 ? TARN_DYNAMICS_VERDICT_CONTRACTING : TARN_DYNAMICS_VERDICT_TRANSIENT;
}

void tarn__exponents_judge(tarn_dynamics_sentence *s, int64_t k, int64_t discard) {
  const int64_t known = known_of(s, k);
  s->counted = known > discard ? known - discard : 0;
  for (int64_t j = 0; j < k; j++) {
    double all = 0.0, late = 0.0;
    for (int64_t t = 0; t < s->iterations; t++) {
      const double local = s->local[t * k + j];
      all += local;
      if (t >= discard && t < known) late += local;
      s->finite_time[t * k + j] = all / (double)(t + 1);
    }
    s->exponents[j] = s->counted > 0 ? late / (double)s->counted : NAN;
  }
  // The frame orders them, except those that a finite time does not separate.
  if (s->counted > 0) qsort(s->exponents, (size_t)k, sizeof *s->exponents, falling);
  s->kaplan_yorke = tarn__kaplan_yorke(s->exponents, k, s->dimensions, &s->kaplan_yorke_least);
  s->state_growth = state_growth(s, known, discard);
  judge_growth(s, k, known);
  s->verdict = verdict_of(s);
}
