#include "ops/linear.h"
#include "ops/row_cpu.h"

static void dz(void *dy, const void *y, float *sums, tarn__dtype dtype, int64_t cols, int64_t first, int64_t last,
               float *row) {
  float *y_row = row + tarn__row_floats(cols);
  for (int64_t r = first; r < last; r++) {
    float *d = tarn__row_target(dy, dtype, r * cols, row);
    if (dtype != TARN__F32) tarn__row_copy(d, dy, dtype, r * cols, cols);
    if (y != NULL) {
      const float *sign = tarn__row_read(y, dtype, r * cols, cols, y_row);
#pragma omp simd
      for (int64_t j = 0; j < cols; j++) d[j] = sign[j] > 0.0f ? d[j] : 0.0f;
      tarn__row_write(dy, dtype, r * cols, cols, d);
    }
    if (sums != NULL) tarn__row_add(sums, d, cols);
  }
}

const tarn__linear_kernels TARN__FAST(tarn__linear_kernels) = {.dz = dz};
