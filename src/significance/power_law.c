#include "significance/power_law.h"

#include <math.h>
#include <string.h>

enum { ITERATIONS = 300 };

// The unknowns of a law in one list: log a_k and b_k of each axis, then log c.
typedef struct unknowns {
  double at[TARN__LAW_UNKNOWNS];
} unknowns;

static size_t count_of(const tarn__law *law) { return 2 * law->axes + 1; }

static unknowns list_of(const tarn__law *law) {
  unknowns u = {{0}};
  for (size_t k = 0; k < law->axes; k++) u.at[2 * k] = law->log_a[k], u.at[2 * k + 1] = law->b[k];
  u.at[2 * law->axes] = law->log_c;
  return u;
}

static void take(tarn__law *law, const unknowns *u) {
  for (size_t k = 0; k < law->axes; k++) law->log_a[k] = u->at[2 * k], law->b[k] = u->at[2 * k + 1];
  law->log_c = u->at[2 * law->axes];
}

// log L, and its derivative by each unknown (NULL: not wanted): the share of each term in the sum.
static double evaluate(const tarn__law *law, const double *log_x, double *slope) {
  double terms[TARN__LAW_AXES + 1], from_middle[TARN__LAW_AXES], sum = 0, most = law->log_c;
  for (size_t k = 0; k < law->axes; k++) {
    from_middle[k] = log_x[k] - law->middle[k];
    terms[k] = law->log_a[k] - law->b[k] * from_middle[k];
    most = fmax(most, terms[k]);
  }
  terms[law->axes] = law->log_c;
  for (size_t k = 0; k <= law->axes; k++) sum += terms[k] = exp(terms[k] - most);
  if (slope) {
    for (size_t k = 0; k < law->axes; k++) {
      slope[2 * k] = terms[k] / sum;
      slope[2 * k + 1] = -from_middle[k] * terms[k] / sum;
    }
    slope[2 * law->axes] = terms[law->axes] / sum;
  }
  return most + log(sum);
}

double tarn__law_at(const tarn__law *law, const double *log_x) { return evaluate(law, log_x, NULL); }

double tarn__law_log_a(const tarn__law *law, size_t axis) {
  return law->log_a[axis] + law->b[axis] * law->middle[axis];
}

double tarn__law_inverse(const tarn__law *law, double log_loss) {
  const double above = exp(log_loss) - exp(law->log_c);
  return above > 0 ? law->middle[0] + (law->log_a[0] - log(above)) / law->b[0] : NAN;
}

bool tarn__law_at_bound(const tarn__law *law) {
  for (size_t k = 0; k < law->axes; k++)
    if (law->b[k] <= TARN__LAW_LEAST_EXPONENT * 1.01 || law->b[k] >= TARN__LAW_MOST_EXPONENT * 0.99) return true;
  return false;
}

static double huber(double difference, double turn) {
  const double size = fabs(difference);
  return size <= turn ? 0.5 * size * size : turn * (size - 0.5 * turn);
}

static double cost_of(const tarn__law *law, const tarn__law_points *p) {
  double sum = 0;
  for (size_t i = 0; i < p->count; i++)
    sum += huber(evaluate(law, p->log_x + i * p->axes, NULL) - p->log_loss[i], p->huber);
  return sum;
}

// The normal equations of the squares that touch the Huber loss at the present differences.
static void equations(double matrix[TARN__LAW_UNKNOWNS][TARN__LAW_UNKNOWNS], double *right, const tarn__law *law,
                      const tarn__law_points *p) {
  const size_t n = count_of(law);
  memset(matrix, 0, sizeof(double[TARN__LAW_UNKNOWNS][TARN__LAW_UNKNOWNS]));
  memset(right, 0, n * sizeof *right);
  for (size_t i = 0; i < p->count; i++) {
    double slope[TARN__LAW_UNKNOWNS];
    const double difference = evaluate(law, p->log_x + i * p->axes, slope) - p->log_loss[i];
    const double weight = fabs(difference) <= p->huber ? 1 : p->huber / fabs(difference);
    for (size_t j = 0; j < n; j++) {
      right[j] -= weight * slope[j] * difference;
      for (size_t k = 0; k <= j; k++) matrix[j][k] += weight * slope[j] * slope[k];
    }
  }
}

// Solves (M + damping diag(M)) x = b by Cholesky's factors; the lower half of M is read. False: not positive definite.
static bool solve(double *x, double m[TARN__LAW_UNKNOWNS][TARN__LAW_UNKNOWNS], const double *b, size_t n,
                  double damping) {
  double l[TARN__LAW_UNKNOWNS][TARN__LAW_UNKNOWNS];
  for (size_t j = 0; j < n; j++)
    for (size_t k = 0; k <= j; k++) {
      double sum = j == k ? m[j][j] * (1 + damping) + 1e-12 * damping : m[j][k];
      for (size_t i = 0; i < k; i++) sum -= l[j][i] * l[k][i];
      if (j == k && !(sum > 0)) return false;
      l[j][k] = j == k ? sqrt(sum) : sum / l[k][k];
    }
  for (size_t j = 0; j < n; j++) {
    x[j] = b[j];
    for (size_t i = 0; i < j; i++) x[j] -= l[j][i] * x[i];
    x[j] /= l[j][j];
  }
  for (size_t j = n; j-- > 0;) {
    for (size_t i = j + 1; i < n; i++) x[j] -= l[i][j] * x[i];
    x[j] /= l[j][j];
  }
  return true;
}

// Exponents stay in their range; a constant below a billionth of the losses counts as none.
static void bound(unknowns *u, size_t axes, double least_constant) {
  for (size_t k = 0; k < axes; k++)
    u->at[2 * k + 1] = fmin(fmax(u->at[2 * k + 1], TARN__LAW_LEAST_EXPONENT), TARN__LAW_MOST_EXPONENT);
  u->at[2 * axes] = fmax(u->at[2 * axes], least_constant);
}

static double least_loss(const tarn__law_points *p) {
  double least = INFINITY;
  for (size_t i = 0; i < p->count; i++) least = fmin(least, p->log_loss[i]);
  return least;
}

// Levenberg's and Marquardt's steps from the law's values to a minimum nearby; returns its cost.
static double descend(tarn__law *law, const tarn__law_points *p) {
  const size_t n = count_of(law);
  const double least_constant = least_loss(p) - 20;
  double damping = 1e-3, cost = cost_of(law, p);
  for (int i = 0; i < ITERATIONS && damping < 1e12; i++) {
    double matrix[TARN__LAW_UNKNOWNS][TARN__LAW_UNKNOWNS], right[TARN__LAW_UNKNOWNS], step[TARN__LAW_UNKNOWNS];
    equations(matrix, right, law, p);
    bool better = false;
    double decrease = 0;
    while (!better && damping < 1e12) {
      tarn__law next = *law;
      unknowns u = list_of(law);
      if (solve(step, matrix, right, n, damping)) {
        for (size_t j = 0; j < n; j++) u.at[j] += step[j];
        bound(&u, law->axes, least_constant);
        take(&next, &u);
        const double found = cost_of(&next, p);
        better = found < cost;
        if (better) decrease = cost - found, cost = found, *law = next;
      }
      damping = better ? fmax(damping / 5, 1e-12) : damping * 4;
    }
    if (better && decrease <= 1e-12 * cost) break;
  }
  return cost;
}

// First values with these exponents and a constant of this share of the smallest loss.
static tarn__law first_values(const tarn__law_points *p, const double *b, double share) {
  tarn__law law = {.axes = p->axes};
  const double least = exp(least_loss(p));
  for (size_t k = 0; k < p->axes; k++) {
    for (size_t i = 0; i < p->count; i++) law.middle[k] += p->log_x[i * p->axes + k] / (double)p->count;
    double mean = 0;
    for (size_t i = 0; i < p->count; i++) mean += exp(p->log_loss[i]) / (double)p->count;
    law.b[k] = b[k];
    law.log_a[k] = log((mean - share * least) / (double)p->axes);
  }
  law.log_c = log(share * least);
  return law;
}

void tarn__law_fit(tarn__law *law, const tarn__law_points *points) {
  static const double exponents[] = {0.03, 0.1, 0.2, 0.35, 0.6, 1, 1.8}, shares[] = {1e-3, 0.5, 0.8, 0.95};
  enum { EXPONENTS = sizeof exponents / sizeof *exponents, SHARES = sizeof shares / sizeof *shares };
  double least = INFINITY;
  for (size_t i = 0; i < EXPONENTS; i++)
    for (size_t j = 0; j < (points->axes > 1 ? EXPONENTS : 1); j++)
      for (size_t s = 0; s < SHARES; s++) {
        tarn__law found = first_values(points, (const double[]){exponents[i], exponents[j]}, shares[s]);
        const double cost = descend(&found, points);
        if (cost < least) least = cost, *law = found;
      }
}

void tarn__law_refit(tarn__law *law, const tarn__law_points *points) {
  static const double factors[] = {1, 0.5, 2};
  const tarn__law before = *law;
  double least = INFINITY;
  for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
    tarn__law found = before;
    unknowns u = list_of(&found);
    for (size_t k = 0; k < found.axes; k++) u.at[2 * k + 1] *= factors[i];
    if (i > 0) u.at[2 * found.axes] = least_loss(points) + log(i == 1 ? 0.3 : 0.9);
    bound(&u, found.axes, least_loss(points) - 20);
    take(&found, &u);
    const double cost = descend(&found, points);
    if (cost < least) least = cost, *law = found;
  }
}
