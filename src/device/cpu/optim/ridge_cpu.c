#include "device/cpu/optim/ridge_kernels.h"

#include "device/cpu/isa/vec_double_cpu.h"

#if defined(__AVX512F__) || defined(TARN_NEON) || defined(TARN_SVE)
enum { VECTORS = 2 };
#else
enum { VECTORS = 1 };
#endif
enum { LANES = TARN__VEC_DOUBLES, WIDE = LANES * VECTORS };  // columns of a tile, whose sums stay in registers

typedef tarn__vec_double vec;

TARN__VEC_INLINE void tile(double *sums, int64_t width, const double *left, const double *right, int64_t stride,
                           int64_t samples, double sign) {
  vec total[TARN__RIDGE_ROWS][VECTORS] = {0};
  for (int64_t t = 0; t < samples; t++, left += stride, right += stride) {
    vec x[VECTORS];
    for (int c = 0; c < VECTORS; c++) x[c] = tarn__vec_double_load(right + c * LANES);
    for (int r = 0; r < TARN__RIDGE_ROWS; r++)
      for (int c = 0; c < VECTORS; c++)
        total[r][c] = tarn__vec_double_fma(tarn__vec_double_all(left[r]), x[c], total[r][c]);
  }
  for (int r = 0; r < TARN__RIDGE_ROWS; r++)
    for (int c = 0; c < VECTORS; c++) {
      double *to = sums + r * width + c * LANES;
      tarn__vec_double_store(to,
                             tarn__vec_double_fma(tarn__vec_double_all(sign), total[r][c], tarn__vec_double_load(to)));
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
      for (int64_t t = 0; t < samples; t++)
        total = tarn__fma_double(z[t * stride + first + r], z[t * stride + k], total);
      sums[r * width + k] = tarn__fma_double(sign, total, sums[r * width + k]);
    }
}

const tarn__ridge_kernels TARN__FAST(tarn__ridge_kernels) = {.add_products = add_products};
