#include "dynamics/plane.h"

#include <math.h>
#include <stddef.h>

#include "base/memory.h"
#include "base/threads.h"
#include "dynamics/sums.h"

enum { ROWS = 4096 };  // used for a covariance

// LAPACK, called as gfortran compiles it: the lengths of strings come last.
extern void dsyevr_(const char *jobz, const char *range, const char *uplo, const int *n, double *a, const int *lda,
                    const double *vl, const double *vu, const int *il, const int *iu, const double *abstol, int *m,
                    double *w, double *z, const int *ldz, int *isuppz, double *work, const int *lwork, int *iwork,
                    const int *liwork, int *info, size_t jobz_length, size_t range_length, size_t uplo_length);

// The sampled rows, centred, as columns [width, rows], so sums run along memory.
static void gather(const tarn__plane *plane, double *columns, const float *x, int64_t rows, int64_t every,
                   int64_t width) {
  for (int64_t c = 0; c < width; c++) {
    double sum = 0.0;
    for (int64_t r = 0; r < rows; r++) sum += (double)x[r * every * width + c];
    plane->mean[c] = sum / (double)rows;
    for (int64_t r = 0; r < rows; r++) columns[c * rows + r] = (double)x[r * every * width + c] - plane->mean[c];
  }
}

static double covary(double *covariance, const double *columns, int64_t rows, int64_t width) {
  double trace = 0.0;
#pragma omp parallel for schedule(dynamic, 8) num_threads(tarn__threads())
  for (int64_t i = 0; i < width; i++)
    for (int64_t j = 0; j <= i; j++)
      covariance[i * width + j] = tarn__sum_product(columns + i * rows, columns + j * rows, rows) / (double)rows;
  for (int64_t i = 0; i < width; i++) trace += covariance[i * width + i];
  return trace;
}

static void set_axis(double *axis, const double *vector, int64_t width) {
  int64_t most = 0;
  for (int64_t c = 1; c < width; c++)
    if (fabs(vector[c]) > fabs(vector[most])) most = c;
  for (int64_t c = 0; c < width; c++) axis[c] = vector[most] < 0.0 ? -vector[c] : vector[c];
}

// The eigenvectors of the two largest eigenvalues, or of the only one.
static tarn_status solve(tarn__plane *plane, double *covariance, double trace, int64_t width) {
  const int n = (int)width, first = n > 1 ? n - 1 : 1, count = n - first + 1;
  const int length = 26 * n, integers = 10 * n;
  const double none = 0.0;
  int found = 0, info = 0, support[4];
  void *memory, *more;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)(3 * n + length), sizeof(double)));
  const tarn_status status = tarn__alloc(&more, TARN__MEMORY_OTHER, (size_t)integers, sizeof(int));
  if (status != TARN_STATUS_OK) {
    tarn__free(memory);
    return status;
  }
  double *values = memory, *vectors = values + n, *work = vectors + 2 * n;
  dsyevr_("V", "I", "U", &n, covariance, &n, &none, &none, &first, &n, &none, &found, values, vectors, &n, support,
          work, &length, more, &integers, &info, 1, 1, 1);
  for (int i = 0; i < count && info == 0; i++) {
    set_axis(plane->axes + i * width, vectors + (count - 1 - i) * width, width);
    plane->share[i] = trace > 0.0 ? fmax(values[count - 1 - i], 0.0) / trace : 0.0;
  }
  tarn__free(memory);
  tarn__free(more);
  TARN_REQUIRE(info == 0, NUMERIC, "LAPACK found no principal components of %d columns (dsyevr: %d)", n, info);
  return TARN_STATUS_OK;
}

size_t tarn__plane_bytes(int64_t count, int64_t width) {
  const size_t rows = (size_t)(count < ROWS ? count : ROWS), n = (size_t)width;
  return n * (n + rows + 3 + 3 + 26) * sizeof(double) + 10 * n * sizeof(int);
}

tarn_status tarn__plane_open(tarn__plane *plane, const float *x, int64_t count, int64_t width) {
  const int64_t every = (count + ROWS - 1) / ROWS, rows = (count + every - 1) / every;
  void *memory;
  *plane = (tarn__plane){0};
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 3 * (size_t)width, sizeof(double)));
  plane->mean = memory;
  plane->axes = plane->mean + width;
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)width * (size_t)(width + rows), sizeof(double));
  if (status == TARN_STATUS_OK) {
    double *covariance = memory, *columns = covariance + width * width;
    gather(plane, columns, x, rows, every, width);
    const double trace = covary(covariance, columns, rows, width);
    status = solve(plane, covariance, trace, width);
    tarn__free(memory);
  }
  if (status != TARN_STATUS_OK) tarn__plane_close(plane);
  return status;
}

void tarn__plane_close(tarn__plane *plane) {
  tarn__free(plane->mean);
  *plane = (tarn__plane){0};
}

void tarn__plane_place(const tarn__plane *plane, double place[2], const float *row, int64_t width) {
  place[0] = place[1] = 0.0;
  for (int64_t c = 0; c < width; c++) {
    const double from = (double)row[c] - plane->mean[c];
    place[0] += from * plane->axes[c];
    place[1] += from * plane->axes[width + c];
  }
}
