#include "significance/spending.h"

#include <math.h>
#include <stdbool.h>

#include "base/memory.h"
#include "significance/student.h"

#define PI 3.14159265358979323846
#define LEAST_P 1e-10
#define INTEGRATED 8.0  // standard deviations: what is beyond them is less than 1e-14

enum { SIZES = 4, MOST_NODES = 256 };  // 32, 64, 128 and 256 nodes

// Nodes and weights of Gauss's and Legendre's quadrature on [-1, 1].
typedef struct rule {
  double at[MOST_NODES], weight[MOST_NODES];
  int count;
} rule;

// The density, on [low, high], of the sum of increments of those that reached no critical value so far.
typedef struct density {
  double low, high;
  const rule *rule;
  double value[MOST_NODES];
} density;

typedef struct work {
  rule rules[SIZES];
  density now, next;
} work;

double tarn__normal_z(double p, int sides) {
  if (sides == 2) return tarn__student_quantile(p, INFINITY);
  return p <= 0.5 ? tarn__student_quantile(2 * p, INFINITY) : -tarn__student_quantile(2 * (1 - p), INFINITY);
}

static double above(double z) { return erfc(z / sqrt(2)) / 2; }

double tarn__spent(tarn_sequential_spending spending, double alpha, double time) {
  if (time <= 0) return 0;
  if (time >= 1) return alpha;
  if (spending == TARN_SEQUENTIAL_POCOCK) return alpha * log(1 + (exp(1) - 1) * time);
  return 2 * above(tarn__normal_z(alpha, 2) / sqrt(time));
}

// The roots of Legendre's polynomial by Newton's method.
static void fill_rule(rule *r, int count) {
  r->count = count;
  for (int i = 0; i < count; i++) {
    double x = cos(PI * (i + 0.75) / (count + 0.5)), slope = 1;
    for (int step = 0; step < 50; step++) {
      double before = 1, value = x;
      for (int n = 2; n <= count; n++) {
        const double next = ((2 * n - 1) * x * value - (n - 1) * before) / n;
        before = value;
        value = next;
      }
      slope = count * (x * value - before) / (x * x - 1);
      const double change = value / slope;
      x -= change;
      if (fabs(change) < 1e-15) break;
    }
    r->at[i] = x;
    r->weight[i] = 2 / ((1 - x * x) * slope * slope);
  }
}

static double place(const density *d, int i) { return (d->low + d->high + (d->high - d->low) * d->rule->at[i]) / 2; }

// The probability of an increment with this deviation that leads to `limit` or beyond it: above, or (sides 2) below
// -limit.
static double crossing(const density *d, double limit, double deviation, int sides) {
  double sum = 0;
  for (int i = 0; i < d->rule->count; i++) {
    const double x = place(d, i);
    double beyond = above((limit - x) / deviation);
    if (sides == 2) beyond += above((limit + x) / deviation);
    sum += d->rule->weight[i] * d->value[i] * beyond;
  }
  return sum * (d->high - d->low) / 2;
}

// The limit of a sum that is crossed with this probability; `scale` is its standard deviation.
static double limit_of(const density *d, double probability, double deviation, double scale, int sides) {
  double low = sides == 2 ? 0 : -INTEGRATED * scale, high = INTEGRATED * scale;
  if (crossing(d, low, deviation, sides) <= probability) return low;
  while (crossing(d, high, deviation, sides) > probability) high += 4 * scale;
  for (int i = 0; i < 48; i++) {
    const double middle = (low + high) / 2;
    if (crossing(d, middle, deviation, sides) > probability)
      low = middle;
    else
      high = middle;
  }
  return (low + high) / 2;
}

// The range of those that go on, with as many nodes as the narrowest feature of its density needs.
static void range(density *d, const work *w, double limit, double scale, double deviation, int sides) {
  const double bound = fmin(limit, INTEGRATED * scale);
  d->low = sides == 2 ? -bound : -INTEGRATED * scale;
  d->high = bound;
  int size = 0;
  while (size < SIZES - 1 && PI / 2 * (d->high - d->low) / w->rules[size].count > 0.8 * deviation) size++;
  d->rule = &w->rules[size];
}

static double normal_density(double x, double deviation) {
  return exp(-x * x / (2 * deviation * deviation)) / (deviation * sqrt(2 * PI));
}

static void critical_values(double *critical, work *w, const tarn__looks *looks, double alpha) {
  const double side = alpha / looks->sides;
  double spent = 0, information = 0;
  for (size_t k = 0; k < looks->count; k++) {
    const double all = looks->sides * tarn__spent(looks->spending, side, looks->spent_times[k]);
    const double added = looks->information[k] - information, scale = sqrt(looks->information[k]);
    critical[k] = INFINITY;
    if (!(added > 1e-9 * looks->information[k])) continue;
    const double deviation = sqrt(added);
    // The width of the next step decides how fine the density must be known.
    double coming = k + 1 < looks->count ? looks->information[k + 1] - looks->information[k] : 0;
    coming = coming > 1e-9 * looks->information[k] ? fmin(deviation, sqrt(coming)) : deviation;
    double limit = INFINITY;
    if (all - spent > 1e-290)
      limit = information == 0 ? tarn__normal_z(all, looks->sides) * scale
                               : limit_of(&w->now, all - spent, deviation, scale, looks->sides);
    critical[k] = limit / scale;
    range(&w->next, w, limit, scale, coming, looks->sides);
    for (int i = 0; i < w->next.rule->count; i++) {
      const double x = place(&w->next, i);
      double sum = 0;
      for (int j = 0; information > 0 && j < w->now.rule->count; j++)
        sum += w->now.rule->weight[j] * w->now.value[j] * normal_density(x - place(&w->now, j), deviation);
      w->next.value[i] = information > 0 ? sum * (w->now.high - w->now.low) / 2 : normal_density(x, deviation);
    }
    w->now = w->next;
    information = looks->information[k];
    spent = all;
  }
}

static tarn_status work_open(work **w) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **w));
  *w = memory;
  for (int i = 0; i < SIZES; i++) fill_rule(&(*w)->rules[i], 32 << i);
  return TARN_STATUS_OK;
}

tarn_status tarn__critical_values(double *critical, const tarn__looks *looks, double alpha) {
  work *w;
  TARN_TRY(work_open(&w));
  critical_values(critical, w, looks, alpha);
  tarn__free(w);
  return TARN_STATUS_OK;
}

// The first look, from 1, whose z reaches its critical value; 0: none.
static size_t reached(work *w, const tarn__looks *looks, const double *z, double alpha) {
  double critical[TARN_SEQUENTIAL_SEEDS];
  critical_values(critical, w, looks, alpha);
  for (size_t k = 0; k < looks->count; k++)
    if ((looks->sides == 2 ? fabs(z[k]) : z[k]) >= critical[k]) return k + 1;
  return 0;
}

tarn_status tarn__sequential_p(double *p, size_t *look, const tarn__looks *looks, const double *z) {
  work *w;
  double low = log(LEAST_P), high = 0;
  TARN_TRY(work_open(&w));
  *look = reached(w, looks, z, LEAST_P);
  if (*look > 0) high = low;
  // Most comparisons are not near a verdict, and which p above 0.3 they have says nothing.
  for (int i = 0; i < 22 && high > low; i++) {
    const double middle = (low + high) / 2;
    const size_t found = reached(w, looks, z, exp(middle));
    *(found > 0 ? &high : &low) = middle;
    if (found > 0) *look = found;
  }
  *p = exp(high);
  tarn__free(w);
  return TARN_STATUS_OK;
}
