#include "device/cpu/rows/activation_kernels.h"
#include "device/cpu/rows/activation_vec.h"

TARN__VEC_INLINE void run(void *y, const void *x, tarn__dtype dtype, tarn__activation form, int64_t first,
                          int64_t last) {
#define STEP(i, n) \
  tarn__vec_write_first(y, dtype, i, tarn__activation_vec(tarn__vec_read_first(x, dtype, i, n), form), n)
  TARN__VEC_EACH(first, last, STEP);
#undef STEP
}

TARN__VEC_INLINE void typed(void *y, const void *x, tarn__dtype dtype, tarn__activation form, int64_t first,
                            int64_t last) {
  switch (form) {
#define CASE(each, ...)                  \
  case each:                             \
    run(y, x, dtype, each, first, last); \
    break;
    TARN__KEPT_ACTIVATIONS(CASE)
#undef CASE
    case TARN__IDENTITY:
    case TARN__RELU:
    case TARN__ACTIVATIONS_END:
      break;
  }
}

static void forward(void *y, const void *x, tarn__dtype dtype, tarn__activation form, int64_t first, int64_t last) {
  dtype == TARN__BF16 ? typed(y, x, TARN__BF16, form, first, last) : typed(y, x, TARN__F32, form, first, last);
}

const tarn__activation_kernels TARN__FAST(tarn__activation_kernels) = {.forward = forward};
