#include "device/cpu/gemm/linear_kernels.h"
#include "ops/linear.h"

#include "device/cpu/rows/activation_vec.h"

enum { LANES = TARN__VEC_LANES };

// The first n lanes from element `at` on; sums are those of their columns. Memory-bound; prefetching makes it slower.
TARN__VEC_INLINE void dz_step(void *dy, const void *saved, float *sums, tarn__dtype dtype, tarn__activation activation,
                              int64_t at, int64_t n) {
  tarn__vec d = tarn__vec_read_first(dy, dtype, at, n);
  if (activation != TARN__IDENTITY) {
    const tarn__vec s = tarn__vec_read_first(saved, dtype, at, n);
    d = activation == TARN__RELU ? tarn__vec_select(s > 0.0f, d, (tarn__vec){0})
                                 : d * tarn__activation_slope_vec(s, activation);
    tarn__vec_write_first(dy, dtype, at, d, n);
  }
  if (sums != NULL) tarn__vec_store(sums, tarn__vec_load(sums) + d);
}

TARN__VEC_INLINE void dz_rows(void *dy, const void *saved, float *sums, tarn__dtype dtype, tarn__activation activation,
                              int64_t cols, int64_t first, int64_t last) {
  for (int64_t at = first * cols; at < last * cols; at += cols) {
    int64_t j = 0;
    for (; j + LANES <= cols; j += LANES)
      dz_step(dy, saved, sums != NULL ? sums + j : NULL, dtype, activation, at + j, LANES);
    if (j < cols) dz_step(dy, saved, sums != NULL ? sums + j : NULL, dtype, activation, at + j, cols - j);
  }
}

TARN__VEC_INLINE void dz_typed(void *dy, const void *saved, float *sums, tarn__dtype dtype, tarn__activation activation,
                               int64_t cols, int64_t first, int64_t last) {
  switch (activation) {
    case TARN__IDENTITY:
      dz_rows(dy, NULL, sums, dtype, TARN__IDENTITY, cols, first, last);
      break;
    case TARN__RELU:
      dz_rows(dy, saved, sums, dtype, TARN__RELU, cols, first, last);
      break;
#define CASE(form, ...)                                       \
  case form:                                                  \
    dz_rows(dy, saved, sums, dtype, form, cols, first, last); \
    break;
      TARN__KEPT_ACTIVATIONS(CASE)
#undef CASE
    case TARN__ACTIVATIONS_END:
      break;
  }
}

static void dz(void *dy, const void *saved, float *sums, tarn__dtype dtype, tarn__activation activation, int64_t cols,
               int64_t first, int64_t last) {
  dtype == TARN__BF16 ? dz_typed(dy, saved, sums, TARN__BF16, activation, cols, first, last)
                      : dz_typed(dy, saved, sums, TARN__F32, activation, cols, first, last);
}

const tarn__linear_kernels TARN__FAST(tarn__linear_kernels) = {.dz = dz};
