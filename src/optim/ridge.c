#include "optim/ridge.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "device/cpu/isa.h"
#include "device/cpu/ridge_kernels.h"

// An odd number of cache lines, so that a column of many samples does not fall into a few sets of the cache.
static int64_t pitch_of(int64_t wide) { return ((wide + 7) / 8 | 1) * 8; }

static tarn_status open_sums(tarn__ridge *ridge, int64_t inputs, int64_t outputs, bool classes) {
  int64_t width = inputs + outputs;
  int64_t wide = classes ? inputs : width;
  *ridge = (tarn__ridge){
      .inputs = inputs, .outputs = outputs, .width = width, .classes = classes, .wide = wide, .pitch = pitch_of(wide)};
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)((inputs + 1) * width + TARN__RIDGE_PIECE * ridge->pitch),
                       sizeof *ridge->products));
  ridge->products = memory;
  ridge->totals = ridge->products + inputs * width;
  ridge->waiting = ridge->totals + width;
  return TARN_STATUS_OK;
}

tarn_status tarn__ridge_open(tarn__ridge *ridge, int64_t inputs, int64_t outputs) {
  return open_sums(ridge, inputs, outputs, false);
}

tarn_status tarn__ridge_open_classes(tarn__ridge *ridge, int64_t inputs, int64_t outputs) {
  return open_sums(ridge, inputs, outputs, true);
}

size_t tarn__ridge_bytes(int64_t inputs, int64_t outputs) {
  size_t n = (size_t)inputs, m = (size_t)outputs;
  size_t sums = (n + 1) * (n + m) + TARN__RIDGE_PIECE * (size_t)pitch_of(inputs), solving = n * (n + m);
  return (sums + solving) * sizeof(double);
}

void tarn__ridge_close(tarn__ridge *ridge) {
  tarn__free(ridge->products);
  *ridge = (tarn__ridge){0};
}

// Rows of a block begin a multiple of this apart, and the last block has the rest.
static int64_t rows_from(int64_t i, int64_t end) { return end - i < TARN__RIDGE_ROWS ? end - i : TARN__RIDGE_ROWS; }

// The part of X'Y that lies in the rows from i on.
static void add_classes(double *sums, const tarn__ridge *ridge, int64_t i, int64_t rows) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t t = 0; t < ridge->waiting_count; t++)
      sums[r * ridge->width + ridge->inputs + ridge->waiting_classes[t]] += ridge->waiting[t * ridge->pitch + i + r];
}

static void flush(tarn__ridge *ridge) {
  int64_t width = ridge->width, wide = ridge->wide, pitch = ridge->pitch, samples = ridge->waiting_count;
  const double *z = ridge->waiting;
  const tarn__ridge_kernels *kernels = TARN__TABLE_NOW(tarn__ridge_kernels);
#pragma omp parallel for schedule(static, 1) if (ridge->inputs >= 128)
  for (int64_t i = 0; i < ridge->inputs; i += TARN__RIDGE_ROWS) {
    double *sums = ridge->products + i * width;
    const int64_t rows = rows_from(i, ridge->inputs);
    kernels->add_products(sums, width, z, pitch, samples, i, rows, wide, 1);
    if (ridge->classes) add_classes(sums, ridge, i, rows);
  }
  for (int64_t t = 0; t < samples; t++) {
    for (int64_t j = 0; j < wide; j++) ridge->totals[j] += z[t * pitch + j];
    if (ridge->classes) ridge->totals[ridge->inputs + ridge->waiting_classes[t]]++;
  }
  ridge->count += samples;
  ridge->waiting_count = 0;
}

void tarn__ridge_add(tarn__ridge *ridge, const double *x, const double *y) {
  double *z = ridge->waiting + ridge->waiting_count++ * ridge->pitch;
  memcpy(z, x, (size_t)ridge->inputs * sizeof *z);
  memcpy(z + ridge->inputs, y, (size_t)ridge->outputs * sizeof *z);
  if (ridge->waiting_count == TARN__RIDGE_PIECE) flush(ridge);
}

void tarn__ridge_add_class(tarn__ridge *ridge, const float *x, int32_t target) {
  double *z = ridge->waiting + ridge->waiting_count * ridge->pitch;
  for (int64_t i = 0; i < ridge->inputs; i++) z[i] = (double)x[i];
  ridge->waiting_classes[ridge->waiting_count++] = target;
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
  const tarn__ridge_kernels *kernels = TARN__TABLE_NOW(tarn__ridge_kernels);
  for (int64_t begin = 0; begin < n; begin += TARN__RIDGE_PIECE) {
    int64_t end = begin + TARN__RIDGE_PIECE < n ? begin + TARN__RIDGE_PIECE : n;
    for (int64_t k = begin; k < end; k++) {
      double *row = a + k * n;
      if (!(row[k] > least)) return false;
      double root = sqrt(row[k]);
      for (int64_t j = k; j < n; j++) row[j] /= root;
      for (int64_t i = k + 1; i < end; i++) kernels->add_products(a + i * n, n, row, n, 1, i, 1, n, -1);
    }
#pragma omp parallel for schedule(static, 1) if (n - end >= 128)
    for (int64_t i = end; i < n; i += TARN__RIDGE_ROWS)
      kernels->add_products(a + i * n, n, a + begin * n, n, end - begin, i, rows_from(i, n), n, -1);
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
#pragma omp parallel for schedule(static) if (n >= 128 && outputs > 1)
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
