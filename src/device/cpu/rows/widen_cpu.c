// Fast kernels.
#include "ops/widen.h"

#include <string.h>

#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/node_tables.h"

// n elements: to = a + b; a may be `to`.
TARN__VEC_INLINE void add_row(void *data, int64_t to, const void *a, int64_t at, const void *b, int64_t other,
                              int64_t n, tarn__dtype dtype) {
#define STEP(i, m)                                                                                                    \
  tarn__vec_write_first(data, dtype, to + (i),                                                                        \
                        tarn__vec_read_first(a, dtype, at + (i), m) + tarn__vec_read_first(b, dtype, other + (i), m), \
                        m)
  TARN__VEC_EACH(0, n, STEP);
#undef STEP
}

static void add(void *data, int64_t to, const void *a, int64_t at, const void *b, int64_t other, int64_t n,
                tarn__dtype dtype) {
  if (dtype == TARN__BF16)
    add_row(data, to, a, at, b, other, n, TARN__BF16);
  else
    add_row(data, to, a, at, b, other, n, TARN__F32);
}

// n elements of the same type.
static void copy(void *data, int64_t to, const void *from, int64_t at, int64_t n, tarn__dtype dtype) {
  const size_t size = tarn__dtype_size(dtype);
  memcpy((char *)data + (size_t)to * size, (const char *)from + (size_t)at * size, (size_t)n * size);
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__WIDEN_X], *base = node->in[TARN__WIDEN_BASE], *y = node->out[0];
  const size_t size = tarn__dtype_size(y->dtype);
  const int64_t n = x->cols, rest = y->cols - n;
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t r = 0; r < y->rows; r++) {
    const int64_t to = r * y->cols;
    if (base)
      add(y->data, to, base->data, to, x->data, r * n, n, y->dtype);
    else
      copy(y->data, to, x->data, r * n, n, y->dtype);
    if (base && base->data != y->data) copy(y->data, to + n, base->data, to + n, rest, y->dtype);
    if (!base) memset((char *)y->data + (size_t)(to + n) * size, 0, (size_t)rest * size);
  }
  return TARN_STATUS_OK;
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__WIDEN_DY], *dx = node->out[0];
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t r = 0; r < dx->rows; r++) {
    if (node->in[TARN__WIDEN_PREVIOUS])
      add(dx->data, r * dx->cols, dx->data, r * dx->cols, dy->data, r * dy->cols, dx->cols, dx->dtype);
    else
      copy(dx->data, r * dx->cols, dy->data, r * dy->cols, dx->cols, dx->dtype);
  }
  return TARN_STATUS_OK;
}

const tarn__widen_kernels TARN__FAST(tarn__widen_kernels) = {.forward = forward, .backward = backward};
