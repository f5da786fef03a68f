#include "device/cpu/gelu_kernels.h"
#include "device/cpu/gelu_vec.h"

TARN__VEC_INLINE void run(void *y, const void *x, tarn__dtype dtype, tarn__activation form, int64_t first,
                          int64_t last) {
#define STEP(i, n) tarn__vec_write_first(y, dtype, i, tarn__gelu_vec(tarn__vec_read_first(x, dtype, i, n), form), n)
  TARN__VEC_EACH(first, last, STEP);
#undef STEP
}

static void forward(void *y, const void *x, tarn__dtype dtype, tarn__activation form, int64_t first, int64_t last) {
  if (dtype == TARN__BF16)
    form == TARN__GELU ? run(y, x, TARN__BF16, TARN__GELU, first, last)
                       : run(y, x, TARN__BF16, TARN__GELU_TANH, first, last);
  else
    form == TARN__GELU ? run(y, x, TARN__F32, TARN__GELU, first, last)
                       : run(y, x, TARN__F32, TARN__GELU_TANH, first, last);
}

const tarn__gelu_kernels TARN__FAST(tarn__gelu_kernels) = {.forward = forward};
