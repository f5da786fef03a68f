#include "series/ridge.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"

tarn_status tarn__ridge_open(tarn__ridge *ridge, int64_t inputs, int64_t outputs) {
  int64_t width = inputs + outputs;
  *ridge = (tarn__ridge){.inputs = inputs, .outputs = outputs, .width = width};
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)((inputs + 1 + TARN__RIDGE_PIECE) * width),
                       sizeof *ridge->products));
  ridge->products = memory;
  ridge->totals = ridge->products + inputs * width;
  ridge->waiting = ridge->totals + width;
  return TARN_STATUS_OK;
}

void tarn__ridge_close(tarn__ridge *ridge) {
  tarn__free(ridge->products);
  *ridge = (tarn__ridge){0};
}

// sums[j] += sign times the sum over t of z[t][i] z[t][j], for j from i on, in the order of t in groups of four.
static void add_row(double *restrict sums, const double *restrict z, double sign, int64_t samples, int64_t width,
                    int64_t i) {
  int64_t t = 0;
  for (; t + 4 <= samples; t += 4) {
    const double *z0 = z + t * width, *z1 = z0 + width, *z2 = z1 + width, *z3 = z2 + width;
    double a0 = sign * z0[i], a1 = sign * z1[i], a2 = sign * z2[i], a3 = sign * z3[i];
    for (int64_t j = i; j < width; j++) sums[j] += (a0 * z0[j] + a1 * z1[j]) + (a2 * z2[j] + a3 * z3[j]);
  }
  for (; t < samples; t++)
    for (int64_t j = i; j < width; j++) sums[j] += sign * z[t * width + i] * z[t * width + j];
}

static void flush(tarn__ridge *ridge) {
  int64_t width = ridge->width, samples = ridge->waiting_count;
  double *products = ridge->products;
  const double *z = ridge->waiting;
#pragma omp parallel for schedule(static, 1) if (ridge->inputs >= 128)
  for (int64_t i = 0; i < ridge->inputs; i++) add_row(products + i * width, z, 1, samples, width, i);
  for (int64_t t = 0; t < samples; t++)
    for (int64_t j = 0; j < width; j++) ridge->totals[j] += z[t * width + j];
  ridge->count += samples;
  ridge->waiting_count = 0;
}

void tarn__ridge_add(tarn__ridge *ridge, const double *x, const double *y) {
  double *z = ridge->waiting + ridge->waiting_count++ * ridge->width;
  memcpy(z, x, (size_t)ridge->inputs * sizeof *z);
  memcpy(z + ridge->inputs, y, (size_t)ridge->outputs * sizeof *z);
  if (ridge->waiting_count == TARN__RIDGE_PIECE) flush(ridge);
}

void tarn__ridge_merge(tarn__ridge *ridge, tarn__ridge *other) {
  flush(ridge);
  flush(other);
  for (int64_t i = 0; i < (ridge->inputs + 1) * ridge->width; i++) ridge->products[i] += other->products[i];
  ridge->count += other->count;
}

// The centred sums of x on and right of the diagonal.
static void fill_matrix(double *a, const tarn__ridge *ridge, double penalty) {
  int64_t n = ridge->inputs;
  for (int64_t i = 0; i < n; i++) {
    double mean = ridge->totals[i] / (double)ridge->count;
    for (int64_t j = i; j < n; j++) a[i * n + j] = ridge->products[i * ridge->width + j] - mean * ridge->totals[j];
    a[i * n + i] += penalty;
  }
}

static void fill_targets(double *b, const tarn__ridge *ridge) {
  int64_t n = ridge->inputs;
  for (int64_t i = 0; i < n; i++) {
    double mean = ridge->totals[i] / (double)ridge->count;
    for (int64_t o = 0; o < ridge->outputs; o++)
      b[o * n + i] = ridge->products[i * ridge->width + n + o] - mean * ridge->totals[n + o];
  }
}

// U in place of the upper triangle of A = U'U; false where a pivot is not above `least`. LAPACK's would be as good, but
// its bits depend on the number of threads.
static bool cholesky(double *a, int64_t n, double least) {
  for (int64_t begin = 0; begin < n; begin += TARN__RIDGE_PIECE) {
    int64_t end = begin + TARN__RIDGE_PIECE < n ? begin + TARN__RIDGE_PIECE : n;
    for (int64_t k = begin; k < end; k++) {
      double *row = a + k * n;
      if (!(row[k] > least)) return false;
      double root = sqrt(row[k]);
      for (int64_t j = k; j < n; j++) row[j] /= root;
      for (int64_t i = k + 1; i < end; i++) add_row(a + i * n, row, -1, 1, n, i);
    }
#pragma omp parallel for schedule(static, 1) if (n - end >= 128)
    for (int64_t i = end; i < n; i++) add_row(a + i * n, a + begin * n, -1, end - begin, n, i);
  }
  return true;
}

// b becomes the solution of U'U x = b.
static void substitute(double *b, const double *u, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    b[k] /= u[k * n + k];
    for (int64_t i = k + 1; i < n; i++) b[i] -= u[k * n + i] * b[k];
  }
  for (int64_t k = n - 1; k >= 0; k--) {
    for (int64_t j = k + 1; j < n; j++) b[k] -= u[k * n + j] * b[j];
    b[k] /= u[k * n + k];
  }
}

static tarn_status factor(double *a, double *used, const tarn__ridge *ridge) {
  int64_t n = ridge->inputs;
  for (int attempt = 0; attempt < 40; attempt++) {
    double trace = 0, largest = 0;
    fill_matrix(a, ridge, *used);
    for (int64_t i = 0; i < n; i++) {
      trace += a[i * n + i];
      largest = fmax(largest, a[i * n + i]);
    }
    TARN_REQUIRE(isfinite(trace), NUMERIC, "the sums of the regression are not finite");
    if (cholesky(a, n, 8 * DBL_EPSILON * largest)) return TARN_STATUS_OK;
    *used = fmax(10 * *used, fmax(DBL_EPSILON * trace / (double)n, DBL_MIN / DBL_EPSILON));
  }
  return tarn__fail(TARN_STATUS_NUMERIC, "the regression fails even with the ridge %g", *used);
}

tarn_status tarn__ridge_solve(double *weights, double *bias, double *used, tarn__ridge *ridge, double penalty) {
  flush(ridge);
  TARN_REQUIRE(ridge->count > 0, DATA, "a regression needs at least one sample");
  int64_t n = ridge->inputs, outputs = ridge->outputs;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)(n * (n + outputs)), sizeof(double)));
  double *a = memory, *b = a + n * n;
  *used = penalty;
  tarn_status status = factor(a, used, ridge);
  if (status == TARN_STATUS_OK) {
    fill_targets(b, ridge);
    for (int64_t o = 0; o < outputs; o++) {
      substitute(b + o * n, a, n);
      bias[o] = ridge->totals[n + o] / (double)ridge->count;
      for (int64_t i = 0; i < n; i++) {
        weights[i * outputs + o] = b[o * n + i];
        bias[o] -= ridge->totals[i] / (double)ridge->count * b[o * n + i];
      }
    }
  }
  tarn__free(memory);
  return status;
}
