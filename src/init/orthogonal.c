// Householder QR in double on columns stored one after the other. Compiled without contraction of a*b+c (see
// CMakeLists.txt); a sum of products has eight interleaved partial sums in explicit order, so compilers can vectorise
// it and every machine gets the same bits.
#include "init/orthogonal.h"

#include <math.h>

#include "base/memory.h"

enum { LANES = 8, PANEL = 4 };

static double add_lanes(const double *lane) {
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

// Sum of x[i] * y[i].
static double dot(const double *x, const double *y, int64_t n) {
  double lane[LANES] = {0};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int l = 0; l < LANES; l++) lane[l] += x[i + l] * y[i + l];
  for (int l = 0; i < n; i++, l++) lane[l] += x[i] * y[i];
  return add_lanes(lane);
}

// column -= 2 (v . column) v for a unit vector v: one reflection.
static void reflect(double *column, const double *v, int64_t n) {
  double scale = 2.0 * dot(v, column, n);
  for (int64_t i = 0; i < n; i++) column[i] -= scale * v[i];
}

// Replaces the part of a column from its diagonal on by a unit Householder vector and returns the sign of the diagonal
// of R.
static double make_reflector(double *x, int64_t n) {
  double norm = sqrt(dot(x, x, n));
  double sign = x[0] < 0.0 ? 1.0 : -1.0;  // R's diagonal is sign * norm
  x[0] -= sign * norm;
  double length = sqrt(dot(x, x, n));
  if (length == 0.0) return sign;
  for (int64_t i = 0; i < n; i++) x[i] /= length;
  return sign;
}

// a: n columns of m >= n elements; afterwards column k holds the reflector k from its diagonal on. Columns are
// processed in small panels, which stay in the L1 cache while the reflectors are applied.
static void factor(double *a, double *sign, int64_t m, int64_t n) {
  for (int64_t first = 0; first < n; first += PANEL) {
    int64_t last = first + PANEL < n ? first + PANEL : n;
    for (int64_t k = 0; k < first; k++)
      for (int64_t j = first; j < last; j++) reflect(a + j * m + k, a + k * m + k, m - k);
    for (int64_t j = first; j < last; j++) {
      for (int64_t k = first; k < j; k++) reflect(a + j * m + k, a + k * m + k, m - k);
      sign[j] = make_reflector(a + j * m + j, m - j);
    }
  }
}

// q: column j becomes sign[j] * H_0 H_1 ... H_(n-1) e_j; reflectors after j leave e_j unchanged.
static void form(double *q, const double *a, const double *sign, int64_t m, int64_t n) {
  for (int64_t first = 0; first < n; first += PANEL) {
    int64_t last = first + PANEL < n ? first + PANEL : n;
    for (int64_t j = first; j < last; j++) q[j * m + j] = sign[j];
    for (int64_t k = last - 1; k >= 0; k--)
      for (int64_t j = first; j < last; j++)
        if (k <= j) reflect(q + j * m + k, a + k * m + k, m - k);
  }
}

tarn_status tarn__orthogonal(float *values, int64_t rows, int64_t cols, double gain, tarn__random *random) {
  int64_t m = rows > cols ? rows : cols;
  int64_t n = rows > cols ? cols : rows;
  void *memory;
  size_t count;
  TARN_TRY(tarn__mul_size(&count, (size_t)m, (size_t)n));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 2 * count + (size_t)n, sizeof(double)));
  double *a = memory;
  double *q = a + count;
  double *sign = q + count;
  for (size_t i = 0; i < count; i++) a[i] = tarn__random_normal(random);
  factor(a, sign, m, n);
  form(q, a, sign, m, n);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < m; i++) {
      float value = (float)(gain * q[j * m + i]);
      if (rows > cols)
        values[i * cols + j] = value;
      else
        values[j * cols + i] = value;
    }
  tarn__free(memory);
  return TARN_STATUS_OK;
}

tarn_status tarn__orthogonal_features(float *values, int64_t rows, int64_t cols, tarn__random *random) {
  void *memory;
  size_t count;
  TARN_TRY(tarn__mul_size(&count, (size_t)cols, (size_t)cols));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof(float)));
  const float *block = memory;
  tarn_status status = TARN_STATUS_OK;
  for (int64_t r = 0; r < rows && status == TARN_STATUS_OK; r++) {
    if (r % cols == 0) status = tarn__orthogonal(memory, cols, cols, 1.0, random);
    double square = 0.0;
    for (int64_t c = 0; c < cols; c++) {
      const double x = tarn__random_normal(random);
      square += x * x;
    }
    const double length = sqrt(square);
    for (int64_t c = 0; c < cols; c++) values[r * cols + c] = (float)(length * (double)block[r % cols * cols + c]);
  }
  tarn__free(memory);
  return status;
}
