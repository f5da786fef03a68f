// Exponents of maps for which they are known, and what is said of trajectories.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "dynamics/dynamics.h"
#include "dynamics/exponents.h"
#include "dynamics/frames.h"
#include "dynamics/known_maps.h"
#include "dynamics/token_measures.h"
#include "dynamics/trajectory.h"

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static void near(const char *what, double found, double wanted, double tolerance) {
  if (!(fabs(found - wanted) <= tolerance)) fail_msg("%s: %.12g, expected %.12g", what, found, wanted);
}

static const int64_t one_row[] = {0, 1};

// One system of `width` numbers.
static tarn__iterated single(tarn_status (*step)(void *, double *, double *, int64_t, int64_t), void *self,
                             int64_t width) {
  return (tarn__iterated){
      .self = self, .systems = 1, .width = width, .offsets = one_row, .autonomous = true, .step = step};
}

static tarn_dynamics_options options_of(int64_t iterations, int64_t exponents, int64_t discard) {
  tarn_dynamics_options o;
  tarn_dynamics_default(&o);
  o.iterations = iterations;
  o.exponents = exponents;
  o.discard = discard;
  o.kept = 0;
  return o;
}

static tarn_dynamics_result *run(const tarn__iterated *map, const double *start, const tarn_dynamics_options *o) {
  tarn_dynamics_result *result;
  must(tarn__trajectory_run(&result, map, start, o, 0));
  return result;
}

static void test_logistic(void **state) {
  (void)state;
  double r = 4.0, x = 0.3;
  const tarn__iterated map = single(logistic_step, &r, 1);
  const tarn_dynamics_options o = options_of(200000, 1, 100);
  tarn_dynamics_result *result = run(&map, &x, &o);
  const tarn_dynamics_sentence *s = &result->sentences[0];
  near("ln 2", s->exponents[0], log(2.0), 1e-3);
  near("finite-time exponent at the end", s->finite_time[199999], log(2.0), 1e-3);
  near("first local exponent", s->local[0], log(4.0 * fabs(1.0 - 0.6)), 1e-12);
  assert_int_equal(s->verdict, TARN_DYNAMICS_VERDICT_EXPANDING);
  assert_int_equal(s->settling, TARN_DYNAMICS_SETTLING_NONE);
  assert_false(s->starts.synchronised);
  assert_true(isnan(s->token_distance[7]) && !s->between_tokens.there);
  near("dimension", s->kaplan_yorke, 1.0, 0.0);
  assert_false(s->kaplan_yorke_least);
  tarn_dynamics_result_close(&result);
}

static void test_henon(void **state) {
  (void)state;
  double x[2] = {0.1, 0.1};
  const tarn__iterated map = single(henon_step, NULL, 2);
  tarn_dynamics_options o = options_of(100000, 2, 105);
  tarn_dynamics_result *result = run(&map, x, &o);
  near("first", result->sentences[0].exponents[0], 0.419, 5e-3);
  near("second", result->sentences[0].exponents[1], -1.623, 5e-3);
  near("Kaplan-Yorke", result->sentences[0].kaplan_yorke, 1.258, 5e-3);
  const double first = result->sentences[0].exponents[0];
  tarn_dynamics_result_close(&result);
  o.every = 7;  // leaves a rest
  result = run(&map, x, &o);
  near("with QR every 7 iterations", result->sentences[0].exponents[0], first, 1e-9);
  near("the same in a block", result->sentences[0].local[14 * 2], result->sentences[0].local[20 * 2], 0.0);
  tarn_dynamics_result_close(&result);
}

static void test_lorenz(void **state) {
  (void)state;
  double h = 0.01, x[3] = {1.0, 1.0, 1.0};
  const tarn__iterated map = single(lorenz_step, &h, 3);
  tarn_dynamics_options o = options_of(300000, 3, 2000);
  o.longest_period = 2;
  tarn_dynamics_result *result = run(&map, x, &o);
  const double *l = result->sentences[0].exponents;
  near("first", l[0] / h, 0.906, 1e-2);
  near("second", l[1] / h, 0.0, 5e-3);
  near("sum", (l[0] + l[1] + l[2]) / h, -(10.0 + 1.0 + 8.0 / 3.0), 1e-3);
  near("Kaplan-Yorke", result->sentences[0].kaplan_yorke, 2.06, 1e-2);
  tarn_dynamics_result_close(&result);
}

// LAPACK, called as gfortran compiles it: the lengths of strings come last.
extern void dgeev_(const char *jobvl, const char *jobvr, const int *n, double *a, const int *lda, double *wr,
                   double *wi, double *vl, const int *ldvl, double *vr, const int *ldvr, double *work, const int *lwork,
                   int *info, size_t jobvl_length, size_t jobvr_length);

static int falling(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

// Real eigenvalues of distinct moduli, in a basis that is not orthogonal: exponents converge as their ratios' powers.
static void test_linear(void **state) {
  (void)state;
  enum { N = 6 };
  static const double moduli[N] = {1.5, -1.1, 0.8, -0.5, 0.3, 0.1};
  double basis[N][N], inverse[N][N], a[N * N] = {0}, start[N];
  tarn__random random;
  tarn__random_init(&random, 5, 0);
  // A unit lower triangle, whose inverse is found by substitution.
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      basis[i][j] = i == j ? 1.0 : i > j ? tarn__random_normal(&random) : 0.0;
      inverse[i][j] = i == j ? 1.0 : 0.0;
    }
  for (int j = 0; j < N; j++)
    for (int i = j + 1; i < N; i++)
      for (int c = j; c < i; c++) inverse[i][j] -= basis[i][c] * inverse[c][j];
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++)
      for (int c = 0; c < N; c++) a[i * N + j] += basis[i][c] * moduli[c] * inverse[c][j];
  for (int i = 0; i < N; i++) start[i] = 1.0;
  linear_map linear = {N, a};
  const tarn__iterated map = single(linear_step, &linear, N);
  const tarn_dynamics_options o = options_of(400, N, 200);
  tarn_dynamics_result *result = run(&map, start, &o);
  int n = N, one = 1, length = 8 * N, info;
  double copy[N * N], real[N], imaginary[N], work[8 * N], none;
  memcpy(copy, a, sizeof a);
  dgeev_("N", "N", &n, copy, &n, real, imaginary, &none, &one, &none, &one, work, &length, &info, 1, 1);
  assert_int_equal(info, 0);
  for (int i = 0; i < N; i++) real[i] = log(hypot(real[i], imaginary[i]));
  qsort(real, N, sizeof *real, falling);
  for (int i = 0; i < N; i++) near("log of an eigenvalue", result->sentences[0].exponents[i], real[i], 1e-10);
  tarn_dynamics_result_close(&result);
}

// A rotation by an angle with shrinking: both exponents are the logarithm of the modulus in every iteration.
static void test_complex_pair(void **state) {
  (void)state;
  const double a[] = {0.9 * cos(1.0), -0.9 * sin(1.0), 0.9 * sin(1.0), 0.9 * cos(1.0)};
  linear_map linear = {2, a};
  double x[2] = {1.0, 0.0};
  const tarn__iterated map = single(linear_step, &linear, 2);
  const tarn_dynamics_options o = options_of(600, 2, 0);
  tarn_dynamics_result *result = run(&map, x, &o);
  const tarn_dynamics_sentence *s = &result->sentences[0];
  for (int i = 0; i < 2; i++) near("modulus", s->exponents[i], log(0.9), 1e-12);
  assert_int_equal(s->verdict, TARN_DYNAMICS_VERDICT_CONTRACTING);
  assert_int_equal(s->settling, TARN_DYNAMICS_SETTLING_FIXED_POINT);
  near("Kaplan-Yorke", s->kaplan_yorke, 0.0, 0.0);
  // Steps fall by 0.9: the first of at most the tolerance is found to the iteration.
  const double first = 1.0 + (log(1e-9) - log(s->step[1])) / log(0.9);
  near("settled", (double)s->settled, ceil(first) - 1.0, 1.0);
  assert_true(s->starts.synchronised);
  const double together = log(1e-8) / log(0.9);  // a tenth apart
  near("synchronised", (double)s->starts.iteration, ceil(together), 1.0);
  assert_int_equal(s->starts.lag, 0);
  tarn_dynamics_result_close(&result);
}

// The logistic map at 3.83 has a stable cycle of period 3 behind a chaotic transient, at 3.5 one of period 4.
static void test_cycles(void **state) {
  (void)state;
  const struct {
    double r;
    int64_t period;
  } cases[] = {{3.83, 3}, {3.5, 4}, {3.2, 2}, {2.8, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    double r = cases[i].r, x = 0.123;
    const tarn__iterated map = single(logistic_step, &r, 1);
    tarn_dynamics_options o = options_of(2000, 1, -1);
    o.apart = 0.01;
    tarn_dynamics_result *result = run(&map, &x, &o);
    const tarn_dynamics_sentence *s = &result->sentences[0];
    assert_int_equal(s->period, cases[i].period);
    assert_int_equal(s->settling, s->period == 1 ? TARN_DYNAMICS_SETTLING_FIXED_POINT : TARN_DYNAMICS_SETTLING_CYCLE);
    assert_true(s->settled > 0 && s->settled < 1000);
    assert_true(s->exponents[0] < 0.0);
    // Whichever phase the second start has.
    assert_true(s->starts.lag >= 0 && s->starts.lag < s->period);
    assert_int_equal(s->starts.synchronised, s->starts.lag == 0);
    tarn_dynamics_result_close(&result);
  }
}

// Expands at first, then shrinks: x' = 1.2 x for ten iterations, then 0.5 x.
static tarn_status two_stages(void *self, double *x, double *v, int64_t k, int64_t t) {
  const double factor = t < 10 ? 1.2 : 0.5;
  (void)self;
  x[0] *= factor;
  for (int64_t j = 0; j < k; j++) v[j] *= factor;
  return TARN_STATUS_OK;
}

// A state that grows by a step each time, and perturbations that grow with it; the logistic map stays where it is.
static void test_drift(void **state) {
  (void)state;
  double a[] = {1.0, 1.0, 0.0, 1.0}, x[2] = {1.0, 1.0};
  linear_map linear = {2, a};
  const tarn__iterated map = single(linear_step, &linear, 2);
  const tarn_dynamics_options o = options_of(1000, 2, 500);
  tarn_dynamics_result *result = run(&map, x, &o);
  const tarn_dynamics_sentence *s = &result->sentences[0];
  assert_true(s->exponents[0] > 0.0);
  near("growth of the state", s->state_growth * 500.0, log(1001.0 / 501.0), 1e-3);
  assert_int_equal(s->verdict, TARN_DYNAMICS_VERDICT_DRIFTING);
  tarn_dynamics_result_close(&result);
}

static void test_transient(void **state) {
  (void)state;
  double x = 1.0;
  const tarn__iterated map = single(two_stages, NULL, 1);
  const tarn_dynamics_options o = options_of(100, 1, -1);
  tarn_dynamics_result *result = run(&map, &x, &o);
  const tarn_dynamics_sentence *s = &result->sentences[0];
  assert_int_equal(s->expansion_end, 10);
  near("growth", s->growth, 10.0 * log(1.2), 1e-12);
  near("the second half", s->exponents[0], log(0.5), 1e-12);
  assert_int_equal(s->counted, 50);
  assert_int_equal(s->verdict, TARN_DYNAMICS_VERDICT_TRANSIENT);
  tarn_dynamics_result_close(&result);
}

// x' = x^2: from 2 it overflows at iteration 10, 2^1024; from 0.5 it goes to 0.
static tarn_status squares(void *self, double *x, double *v, int64_t k, int64_t t) {
  (void)self, (void)t;
  for (int i = 0; i < 2; i++) {
    for (int64_t j = 0; j < k; j++) v[2 * j + i] *= 2.0 * x[i];
    x[i] *= x[i];
  }
  return TARN_STATUS_OK;
}

static void test_divergence(void **state) {
  (void)state;
  const int64_t offsets[] = {0, 1, 2}, lines[] = {4, 9};
  double x[2] = {2.0, 0.5};
  const tarn__iterated map = {
      .systems = 2, .width = 1, .offsets = offsets, .lines = lines, .autonomous = true, .step = squares};
  tarn_dynamics_options o = options_of(40, 1, 0);
  o.apart = 0.0;
  o.kept = 20;
  tarn_dynamics_result *result = run(&map, x, &o);
  const tarn_dynamics_sentence *s = result->sentences;
  assert_int_equal(result->diverged, 1);
  assert_int_equal(s[0].line, 4);
  // What is not finite is the square of the norm.
  assert_int_equal(s[0].diverged, 9);
  assert_int_equal(s[0].settling, TARN_DYNAMICS_SETTLING_DIVERGED);
  assert_int_equal(s[0].verdict, TARN_DYNAMICS_VERDICT_DIVERGED);
  assert_int_equal(s[0].counted, 8);
  assert_true(isfinite(s[0].exponents[0]) && isnan(s[0].local[8]) && isnan(s[0].norm[9]));
  assert_true(isfinite(s[0].plane[2 * 6]) && isnan(s[0].plane[2 * 9]));
  assert_int_equal(s[1].diverged, -1);
  assert_int_equal(s[1].settling, TARN_DYNAMICS_SETTLING_FIXED_POINT);
  assert_true(isinf(s[1].exponents[0]) && s[1].exponents[0] < 0.0);
  assert_false(s[1].starts.there);
  tarn_dynamics_result_close(&result);
}

// 0 attracts what begins within 1, and all else goes to infinity, which is no number in the first system.
static tarn_status basin(void *self, double *x, double *v, int64_t k, int64_t t) {
  (void)self, (void)v, (void)k, (void)t;
  for (int i = 0; i < 2; i++) x[i] = fabs(x[i]) <= 1.0 ? 0.5 * x[i] : x[i] * x[i] - (i == 0 ? x[i] : 0.0);
  return TARN_STATUS_OK;
}

static void test_other_start_diverges(void **state) {
  (void)state;
  const int64_t offsets[] = {0, 1, 2};
  double x[2] = {0.9, 0.9};
  const tarn__iterated map = {.systems = 2, .width = 1, .offsets = offsets, .autonomous = true, .step = basin};
  tarn_dynamics_options o = options_of(60, 0, 0);
  o.apart = 10.0;
  tarn_dynamics_result *result = run(&map, x, &o);
  for (int i = 0; i < 2; i++) {
    const tarn_dynamics_synchrony *starts = &result->sentences[i].starts;
    assert_int_equal(result->sentences[i].settling, TARN_DYNAMICS_SETTLING_FIXED_POINT);
    assert_true(starts->there && !starts->synchronised);
    assert_true(isnan(starts->offset) && isnan(starts->wander));
    assert_int_equal(starts->lag, -1);
    assert_true(isnan(result->sentences[i].start_distance[60]));
  }
  tarn_dynamics_result_close(&result);
}

static tarn_status never_step(void *self, double *x, double *v, int64_t k, int64_t t) {
  (void)self, (void)x, (void)v, (void)k, (void)t;
  fail_msg("iterated");
  return TARN_STATUS_OK;
}

static void test_refused(void **state) {
  (void)state;
  double r = 4.0, x = 0.3;
  const tarn__iterated map = single(logistic_step, &r, 1);
  tarn_dynamics_result *result;
  tarn_dynamics_options o = options_of(10, 2, 0);
  assert_int_equal(tarn__trajectory_run(&result, &map, &x, &o, 0), TARN_STATUS_USAGE);
  assert_non_null(strstr(tarn_error_message(), "2 exponents"));
  assert_null(result);
  o = options_of(10, 1, 10);
  assert_int_equal(tarn__trajectory_run(&result, &map, &x, &o, 0), TARN_STATUS_USAGE);
  o = options_of(1000000, 1, 10);
  o.max_memory = 1000000;
  assert_int_equal(tarn__trajectory_run(&result, &map, &x, &o, 0), TARN_STATUS_MEMORY);
  // The plane of states that are kept is counted before anything is iterated.
  double wide[1000] = {0};
  const tarn__iterated large = single(never_step, NULL, 1000);
  o = options_of(2, 0, 0);
  o.longest_period = 1;
  o.kept = 1;
  o.max_memory = 4000000;
  assert_int_equal(tarn__trajectory_run(&result, &large, wide, &o, 0), TARN_STATUS_MEMORY);
  assert_non_null(strstr(tarn_error_message(), "principal components"));
}

static tarn_status stop_at_three(void *user, int64_t done, int64_t total) {
  (void)total;
  *(int64_t *)user = done;
  return done == 3 ? TARN_STATUS_INTERRUPTED : TARN_STATUS_OK;
}

static void test_stopped(void **state) {
  (void)state;
  double r = 4.0, x = 0.3;
  int64_t done = 0;
  const tarn__iterated map = single(logistic_step, &r, 1);
  tarn_dynamics_result *result;
  tarn_dynamics_options o = options_of(10, 1, 0);
  o.progress = stop_at_three;
  o.user = &done;
  assert_int_equal(tarn__trajectory_run(&result, &map, &x, &o, 0), TARN_STATUS_INTERRUPTED);
  assert_null(result);
  assert_int_equal(done, 3);
}

// Any allocation may fail, and nothing is left behind, which the address sanitizer sees to.
static void test_memory(void **state) {
  (void)state;
  double x[2] = {0.1, 0.1};
  const tarn__iterated map = single(henon_step, NULL, 2);
  tarn_dynamics_options o = options_of(10, 2, 0);
  tarn_dynamics_result *result = NULL;
  tarn_status status = TARN_STATUS_MEMORY;
  uint64_t failed = 0;
  o.kept = 5;
  while (status == TARN_STATUS_MEMORY && failed < 1000) {
    tarn__memory_fail_after(++failed);
    status = tarn__trajectory_run(&result, &map, x, &o, 0);
    tarn__memory_fail_after(0);
    if (status != TARN_STATUS_OK) assert_null(result);
  }
  must(status);
  assert_true(failed > 5);
  tarn_dynamics_result_close(&result);
}

// Against their definitions, of three tokens.
static void test_token_measures(void **state) {
  (void)state;
  const double x[] = {3.0, 4.0, 3.0, 0.0, 0.0, 4.0};
  double centred[6];
  const tarn__token_measures m = tarn__token_measures_of(x, 3, 2, centred);
  near("distance", m.distance, (4.0 + 3.0 + 5.0) / 3.0, 1e-12);
  near("cosine", m.cosine, (0.6 + 0.8 + 0.0) / 3.0, 1e-12);
  // Covariance of the centred rows (1, 4/3), (1, -8/3), (-2, 4/3).
  const double a = 6.0, b = 96.0 / 9.0, c = 4.0 / 3.0 - 8.0 / 3.0 - 8.0 / 3.0;
  near("participation", m.participation, (a + b) * (a + b) / (a * a + b * b + 2.0 * c * c), 1e-12);
  near("collapse", m.collapse, sqrt((a + b) / 50.0), 1e-12);
  const double alike[] = {1.0, 2.0, 1.0, 2.0};
  const tarn__token_measures none = tarn__token_measures_of(alike, 2, 2, centred);
  near("no distance", none.distance, 0.0, 0.0);
  near("collapsed", none.collapse, 0.0, 0.0);
  assert_true(isnan(none.participation));
  assert_true(isnan(tarn__token_measures_of(alike, 1, 2, centred).distance));
}

static void test_kaplan_yorke(void **state) {
  (void)state;
  bool least;
  const double l[] = {0.5, 0.1, -0.2, -0.9};
  near("between", tarn__kaplan_yorke(l, 4, 4, &least), 3.0 + 0.4 / 0.9, 1e-12);
  assert_false(least);
  near("too few", tarn__kaplan_yorke(l, 3, 4, &least), 3.0, 0.0);
  assert_true(least);
  const double vanishing[] = {0.5, -INFINITY};
  near("a direction that vanishes", tarn__kaplan_yorke(vanishing, 2, 2, &least), 1.0, 0.0);
}

static void test_frames(void **state) {
  (void)state;
  enum { N = 37, K = 5 };
  double v[K * N], r[K];
  tarn__random random;
  tarn__random_init(&random, 3, 0);
  for (int i = 0; i < K * N; i++) v[i] = tarn__random_normal(&random);
  for (int i = 0; i < N; i++) v[2 * N + i] = 2.0 * v[i] - 3.0 * v[N + i];          // in the span of the first two
  for (int i = 0; i < N; i++) v[3 * N + i] = v[i] * 1e200 + v[3 * N + i] * 1e190;  // squares would overflow
  for (int i = 0; i < N; i++) v[4 * N + i] *= 1e-300;                              // and vanish
  tarn__frame_orthonormalise(v, N, N, K, r, &random);
  for (int i = 0; i < K; i++)
    for (int j = 0; j <= i; j++) {
      double product = 0.0;
      for (int c = 0; c < N; c++) product += v[i * N + c] * v[j * N + c];
      near("orthonormal", product, i == j, 1e-12);
    }
  near("dependent", r[2], 0.0, 0.0);
  assert_true(r[0] > 0.0 && r[1] > 0.0 && r[3] > 1e189 && r[4] > 0.0 && r[4] < 1e-298);
}

// Axes and coordinates of points on an ellipse about a centre.
static void test_plane(void **state) {
  (void)state;
  const int64_t offsets[] = {0, 2};
  double x[8] = {1.0, 0.0, 0.0, 5.0, 0.0, 0.5, 0.0, 5.0};
  const double a[] = {0.0, -2.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0};
  linear_map linear = {4, a};
  tarn__iterated map = single(linear_step, &linear, 4);
  map.offsets = offsets;
  // Two tokens, of which this step moves the first alone.
  tarn_dynamics_options o = options_of(40, 0, 0);
  o.apart = 0.0;
  o.kept = 39;
  tarn_dynamics_result *result = run(&map, x, &o);
  assert_int_equal(result->kept, 39);
  near("shares", result->plane_share[0] + result->plane_share[1], 1.0, 1e-6);
  assert_true(result->plane_share[0] > result->plane_share[1]);
  const double *plane = result->sentences[0].plane;
  near("opposite points", plane[0] - plane[2 * 2 * 2], 2.0, 1e-6);
  assert_int_equal(result->sentences[0].verdict, TARN_DYNAMICS_VERDICT_UNKNOWN);
  assert_int_equal(result->sentences[0].period, 4);
  assert_true(result->sentences[0].between_tokens.there && !result->sentences[0].between_tokens.synchronised);
  tarn_dynamics_result_close(&result);
}

static void test_spread(void **state) {
  (void)state;
  double values[] = {4.0, NAN, 1.0, 3.0, 2.0, NAN};
  tarn_dynamics_spread s;
  tarn__dynamics_spread_of(&s, values, 6);
  assert_int_equal(s.count, 4);
  near("mean", s.mean, 2.5, 1e-15);
  near("deviation", s.deviation, sqrt(5.0 / 3.0), 1e-15);
  near("least", s.least, 1.0, 0.0);
  near("lower", s.lower, 1.75, 1e-15);
  near("median", s.median, 2.5, 1e-15);
  near("upper", s.upper, 3.25, 1e-15);
  near("most", s.most, 4.0, 0.0);
  tarn__dynamics_spread_of(&s, values, 0);
  assert_true(s.count == 0 && isnan(s.mean));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_logistic),     cmocka_unit_test(test_henon),
                                     cmocka_unit_test(test_lorenz),       cmocka_unit_test(test_linear),
                                     cmocka_unit_test(test_cycles),       cmocka_unit_test(test_complex_pair),
                                     cmocka_unit_test(test_transient),    cmocka_unit_test(test_drift),
                                     cmocka_unit_test(test_refused),      cmocka_unit_test(test_other_start_diverges),
                                     cmocka_unit_test(test_divergence),   cmocka_unit_test(test_stopped),
                                     cmocka_unit_test(test_frames),       cmocka_unit_test(test_token_measures),
                                     cmocka_unit_test(test_kaplan_yorke), cmocka_unit_test(test_plane),
                                     cmocka_unit_test(test_spread),       cmocka_unit_test(test_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
