#include <math.h>

#include "device/cpu/isa/isa.h"
#include "device/cpu/optim/ridge_kernels.h"

// The number of rows in the block at i: all blocks have the same number, except the last, which has the rest.
static int64_t rows_from(int64_t i, int64_t end) { return end - i < TARN__RIDGE_ROWS ? end - i : TARN__RIDGE_ROWS; }

// The part of X'Y in the rows from i on.
static void add_classes(double *sums, const tarn__ridge *ridge, int64_t i, int64_t rows) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t t = 0; t < ridge->waiting_count; t++)
      sums[r * ridge->width + ridge->inputs + ridge->waiting_classes[t]] += ridge->waiting[t * ridge->pitch + i + r];
}

tarn_status tarn__cpu_ridge_add(const tarn__device *device, const tarn__ridge *ridge) {
  (void)device;
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
  return TARN_STATUS_OK;
}

tarn_status tarn__cpu_ridge_take(const tarn__device *device, const tarn__ridge *ridge, const void *rows,
                                 tarn__dtype dtype, int64_t first, int64_t count) {
  (void)device;
  for (int64_t t = 0; t < count; t++) {
    double *z = ridge->waiting + (ridge->waiting_count + t) * ridge->pitch;
    const int64_t from = (first + t) * ridge->inputs;
    if (dtype == TARN__F32)
      for (int64_t i = 0; i < ridge->inputs; i++) z[i] = (double)((const float *)rows)[from + i];
    else
      for (int64_t i = 0; i < ridge->inputs; i++) z[i] = (double)tarn__bf16_to_f32(((const uint16_t *)rows)[from + i]);
  }
  return TARN_STATUS_OK;
}

// LAPACK's would do, but its bits depend on the number of threads.
static bool factorise(double *a, int64_t n, double least) {
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

tarn_status tarn__cpu_cholesky(const tarn__device *device, bool *done, double *a, int64_t n, double least) {
  (void)device;
  *done = factorise(a, n, least);
  return TARN_STATUS_OK;
}
