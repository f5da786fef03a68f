// Spectral radii of matrices whose eigenvalues are known, ARPACK against LAPACK, and what cannot be scaled.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka needs the headers above.
#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "init/spectral_radius.h"

static void must(tarn_status status) {
  if (status != TARN_STATUS_OK) fail_msg("%s", tarn_error_message());
}

static double *take(int64_t count) {
  void *memory;
  must(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)count, sizeof(double)));
  return memory;
}

static void expect(const double *matrix, int64_t n, double radius, double tolerance) {
  double found = NAN;
  must(tarn__spectral_radius_dense(&found, matrix, n));
  if (!(fabs(found - radius) <= tolerance * radius)) fail_msg("n %d: %.15g, expected %.15g", (int)n, found, radius);
}

static double *random_matrix(int64_t n, double density, uint64_t seed) {
  tarn__random random;
  tarn__random_init(&random, seed, 0);
  double *a = take(n * n);
  for (int64_t i = 0; i < n * n; i++) {
    double value = tarn__random_normal(&random);
    if (tarn__random_uniform(&random) < density) a[i] = value;
  }
  return a;
}

static void small_ones(void **state) {
  (void)state;
  expect((double[]){-3}, 1, 3, 1e-15);
  // Rotations and shears: the pair r e^(+-i phi).
  for (double phi = 0.1; phi < 3; phi += 0.4)
    expect((double[]){0.9 * cos(phi), -0.9 * sin(phi), 0.9 * sin(phi), 0.9 * cos(phi)}, 2, 0.9, 1e-14);
  expect((double[]){1, 100, -0.01, 1}, 2, sqrt(2), 1e-12);
  // Companion matrix of (x - 2)(x + 3)(x^2 + 16) = x^4 + x^3 + 10 x^2 + 16 x - 96: the pair +-4i leads.
  expect((double[]){-1, -10, -16, 96, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}, 4, 4, 1e-12);
  // Two blocks that are joined one way: the larger one counts.
  expect((double[]){0, 1, 5, 5, -1, 0, 5, 5, 0, 0, 2, 3, 0, 0, 3, 2}, 4, 5, 1e-13);
}

static void rings(void **state) {
  (void)state;
  for (int64_t n = 2; n <= 2000; n = n * 4 + 1) {
    double *a = take(n * n), sum = 0;
    for (int64_t i = 0; i < n; i++) {
      a[i * n + (i + 1) % n] = i % 2 ? -0.5 : 3;
      sum += log(fabs(a[i * n + (i + 1) % n]));
    }
    expect(a, n, exp(sum / (double)n), 1e-12);
    tarn__free(a);
  }
  // All eigenvalues of 1.1 times a ring both ways, 2.2 cos(2 pi k / n), are real and crowd at both ends.
  int64_t n = 300;
  double *a = take(n * n);
  for (int64_t i = 0; i < n; i++) a[i * n + (i + 1) % n] = a[i * n + (i + n - 1) % n] = 1.1;
  expect(a, n, 2.2, 1e-10);
  tarn__free(a);
}

// A = Q D Q with a Householder reflection Q = I - 2 v v' and D block diagonal: rotations of modulus 0.5 + k / n.
static void large_with_a_complex_pair(void **state) {
  (void)state;
  int64_t n = 400;
  double *a = take(n * n), *d = take(n * n), *v = take(n), norm = 0;
  tarn__random random;
  tarn__random_init(&random, 3, 0);
  for (int64_t i = 0; i < n; i++) {
    v[i] = tarn__random_normal(&random);
    norm += v[i] * v[i];
  }
  for (int64_t i = 0; i < n; i++) v[i] /= sqrt(norm);
  for (int64_t k = 0; k < n; k += 2) {
    double r = 0.5 + (double)k / (double)n, phi = 0.1 + 0.01 * (double)k;
    d[k * n + k] = d[(k + 1) * n + k + 1] = r * cos(phi);
    d[k * n + k + 1] = -(d[(k + 1) * n + k] = r * sin(phi));
  }
  for (int64_t i = 0; i < n; i++) {  // d Q
    double dot = 0;
    for (int64_t j = 0; j < n; j++) dot += d[i * n + j] * v[j];
    for (int64_t j = 0; j < n; j++) a[i * n + j] = d[i * n + j] - 2 * dot * v[j];
  }
  for (int64_t j = 0; j < n; j++) {  // Q (d Q)
    double dot = 0;
    for (int64_t i = 0; i < n; i++) dot += a[i * n + j] * v[i];
    for (int64_t i = 0; i < n; i++) a[i * n + j] -= 2 * dot * v[i];
  }
  expect(a, n, 0.5 + (double)(n - 2) / (double)n, 1e-10);
  tarn__free(a);
  tarn__free(d);
  tarn__free(v);
}

// The Kronecker product of a block that LAPACK does and a matrix of known radius is one component that ARPACK does.
static void arpack_is_lapack(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 6; seed++) {
    int64_t n = 150, k = 3;
    double *a = random_matrix(n, seed % 2 ? 0.1 : 1, seed), *big = take(n * k * n * k), small = NAN;
    const double factor[] = {1, 2, 0.5, 0.25, 1, 1, 2, 0.5, 1}, *f = factor;  // all positive: one component
    double radius = NAN;
    must(tarn__spectral_radius_dense(&small, a, n));
    must(tarn__spectral_radius_dense(&radius, f, k));
    for (int64_t i = 0; i < n * k; i++)
      for (int64_t j = 0; j < n * k; j++) big[i * n * k + j] = f[i / n * k + j / n] * a[i % n * n + j % n];
    expect(big, n * k, small * radius, 1e-9);
    tarn__free(a);
    tarn__free(big);
  }
}

static void scaling(void **state) {
  (void)state;
  for (int64_t n = 20; n <= 500; n *= 5) {
    double *a = random_matrix(n, 0.2, 9), factor, now;
    tarn__sparse sparse;
    must(tarn__sparse_from_dense(&sparse, a, n));
    must(tarn__spectral_factor(&factor, &sparse, 0.993));
    must(tarn__spectral_radius(&now, &sparse));
    assert_true(factor > 0 && fabs(now * factor - 0.993) < 2e-6);
    tarn__sparse_close(&sparse);
    tarn__free(a);
  }
}

static void refuse(const double *matrix, int64_t n, double radius, tarn_status expected, const char *text) {
  tarn__sparse sparse;
  double factor;
  must(tarn__sparse_from_dense(&sparse, matrix, n));
  assert_int_equal(tarn__spectral_factor(&factor, &sparse, radius), expected);
  if (!strstr(tarn_error_message(), text)) fail_msg("\"%s\" does not say \"%s\"", tarn_error_message(), text);
  tarn__sparse_close(&sparse);
}

static void refusals(void **state) {
  (void)state;
  const double one[] = {0.5, 1, 1, 0.5};
  refuse(one, 2, -1, TARN_STATUS_USAGE, "spectral radius of -1");
  refuse(one, 2, NAN, TARN_STATUS_USAGE, "nan");
  refuse((double[]){0, 0, 0, 0}, 2, 1, TARN_STATUS_DATA, "without edges");
  refuse((double[]){1, INFINITY, 1, 1}, 2, 1, TARN_STATUS_DATA, "not finite");
  refuse((double[]){1, -1, 1, -1}, 2, 1, TARN_STATUS_DATA, "nilpotent");
  // No cycle, in an order that is not the one of the rows.
  int64_t n = 300;
  double *a = take(n * n), *full = random_matrix(n, 1, 4);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++)
      if (i * 7 % n > j * 7 % n) a[i * n + j] = full[i * n + j];
  refuse(a, n, 1, TARN_STATUS_DATA, "nilpotent");
  expect(a, n, 0, 0);
  tarn__free(a);
  tarn__free(full);
}

// No recurrence: every matrix has the factor 0, also one that no other factor scales.
static void none(void **state) {
  (void)state;
  const double matrices[][4] = {{0.5, 1, 1, 0.5}, {0, 0, 0, 0}, {1, -1, 1, -1}};
  for (size_t i = 0; i < 3; i++) {
    tarn__sparse sparse;
    double factor = NAN;
    must(tarn__sparse_from_dense(&sparse, matrices[i], 2));
    must(tarn__spectral_factor(&factor, &sparse, 0));
    assert_true(factor == 0);
    tarn__sparse_close(&sparse);
  }
}

static void memory_fails_cleanly(void **state) {
  (void)state;
  double *a = random_matrix(200, 0.1, 5), radius;
  for (uint64_t n = 1;; n++) {
    tarn__memory_fail_after(n);
    tarn_status status = tarn__spectral_radius_dense(&radius, a, 200);
    tarn__memory_fail_after(0);
    if (status == TARN_STATUS_OK) break;
    assert_int_equal(status, TARN_STATUS_MEMORY);
  }
  tarn__free(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(small_ones),
      cmocka_unit_test(rings),
      cmocka_unit_test(large_with_a_complex_pair),
      cmocka_unit_test(arpack_is_lapack),
      cmocka_unit_test(scaling),
      cmocka_unit_test(refusals),
      cmocka_unit_test(none),
      cmocka_unit_test(memory_fails_cleanly),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
