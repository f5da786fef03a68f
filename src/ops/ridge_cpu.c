#include "ops/ridge_kernels.h"

#if defined(__AVX512F__)
enum { LANES = 8, VECTORS = 2 };
#elif defined(__AVX2__)
enum { LANES = 4, VECTORS = 1 };
#else
enum { LANES = 2, VECTORS = 1 };
#endif
enum { WIDE = LANES * VECTORS };  // columns of a tile, whose sums stay in registers

typedef double vec __attribute__((vector_size(8 * LANES)));
typedef double vec_any __attribute__((vector_size(8 * LANES), aligned(8), may_alias));

static inline __attribute__((always_inline)) vec load(const double *from) { return *(const vec_any *)from; }
static inline __attribute__((always_inline)) void store(double *to, vec v) { *(vec_any *)to = v; }

static inline __attribute__((always_inline)) void tile(double *sums, int64_t width, const double *left,
                                                       const double *right, int64_t stride, int64_t samples,
                                                       double sign) {
  vec total[TARN__RIDGE_ROWS][VECTORS] = {0};
  for (int64_t t = 0; t < samples; t++, left += stride, right += stride) {
    vec x[VECTORS];
    for (int c = 0; c < VECTORS; c++) x[c] = load(right + c * LANES);
    for (int r = 0; r < TARN__RIDGE_ROWS; r++)
      for (int c = 0; c < VECTORS; c++) total[r][c] += left[r] * x[c];
  }
  for (int r = 0; r < TARN__RIDGE_ROWS; r++)
    for (int c = 0; c < VECTORS; c++) {
      double *to = sums + r * width + c * LANES;
      store(to, load(to) + sign * total[r][c]);
    }
}

static void add_products(double *sums, int64_t width, const double *z, int64_t stride, int64_t samples, int64_t first,
                         int64_t rows, int64_t end, double sign) {
  int64_t j = first;
  if (rows == TARN__RIDGE_ROWS)
    for (; j + WIDE <= end; j += WIDE) tile(sums + j, width, z + first, z + j, stride, samples, sign);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t k = j > first + r ? j : first + r; k < end; k++) {
      double total = 0;
      for (int64_t t = 0; t < samples; t++) total += z[t * stride + first + r] * z[t * stride + k];
      sums[r * width + k] += sign * total;
    }
}

const tarn__ridge_kernels TARN__FAST(tarn__ridge_kernels) = {.add_products = add_products};
