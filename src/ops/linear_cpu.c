#include "ops/linear.h"
#include "ops/vec_cpu.h"

enum { LANES = TARN__VEC_LANES };

// The first n lanes from element `at` on; sums are those of their columns. Bound by memory; fetching ahead makes it
// slower.
TARN__VEC_INLINE void dz_step(void *dy, const void *y, float *sums, tarn__dtype dtype, int64_t at, int64_t n) {
  tarn__vec d = tarn__vec_read_first(dy, dtype, at, n);
  if (y != NULL) {
    d = tarn__vec_select(tarn__vec_read_first(y, dtype, at, n) > 0.0f, d, (tarn__vec){0});
    tarn__vec_write_first(dy, dtype, at, d, n);
  }
  if (sums != NULL) tarn__vec_store(sums, tarn__vec_load(sums) + d);
}

TARN__VEC_INLINE void dz_rows(void *dy, const void *y, float *sums, tarn__dtype dtype, int64_t cols, int64_t first,
                              int64_t last) {
  for (int64_t at = first * cols; at < last * cols; at += cols) {
    int64_t j = 0;
    for (; j + LANES <= cols; j += LANES) dz_step(dy, y, sums != NULL ? sums + j : NULL, dtype, at + j, LANES);
    if (j < cols) dz_step(dy, y, sums != NULL ? sums + j : NULL, dtype, at + j, cols - j);
  }
}

static void dz(void *dy, const void *y, float *sums, tarn__dtype dtype, int64_t cols, int64_t first, int64_t last) {
  if (dtype == TARN__BF16)
    y != NULL ? dz_rows(dy, y, sums, TARN__BF16, cols, first, last)
              : dz_rows(dy, NULL, sums, TARN__BF16, cols, first, last);
  else
    y != NULL ? dz_rows(dy, y, sums, TARN__F32, cols, first, last)
              : dz_rows(dy, NULL, sums, TARN__F32, cols, first, last);
}

const tarn__linear_kernels TARN__FAST(tarn__linear_kernels) = {.dz = dz};
