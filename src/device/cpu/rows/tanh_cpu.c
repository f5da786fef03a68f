// Fast kernels: one pass in registers. Each row is processed by one thread.
#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/node_tables.h"
#include "ops/tanh.h"

TARN__VEC_INLINE void forward_row(const tarn__node *node, tarn__dtype dtype, int64_t first, int64_t last) {
  const void *x = node->in[0]->data;
  void *y = node->out[0]->data;
#define STEP(i, n) tarn__vec_write_first(y, dtype, i, tarn__vec_tanh(tarn__vec_read_first(x, dtype, i, n)), n)
  TARN__VEC_EACH(first, last, STEP);
#undef STEP
}

TARN__VEC_INLINE void backward_row(const tarn__node *node, tarn__dtype dtype, int64_t first, int64_t last) {
  const void *y = node->in[TARN__TANH_Y]->data, *dy = node->in[TARN__TANH_DY]->data;
  void *dx = node->out[0]->data;
  const bool add = node->in[TARN__TANH_PREVIOUS] != NULL;
#define STEP(i, n)                                                                               \
  do {                                                                                           \
    const tarn__vec value = tarn__vec_read_first(y, dtype, i, n);                                \
    const tarn__vec g = tarn__vec_read_first(dy, dtype, i, n) * (1.0f - value * value);          \
    tarn__vec_write_first(dx, dtype, i, add ? tarn__vec_read_first(dx, dtype, i, n) + g : g, n); \
  } while (0)
  TARN__VEC_EACH(first, last, STEP);
#undef STEP
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *y = node->out[0];
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t r = 0; r < y->rows; r++)
    if (y->dtype == TARN__BF16)
      forward_row(node, TARN__BF16, r * y->cols, (r + 1) * y->cols);
    else
      forward_row(node, TARN__F32, r * y->cols, (r + 1) * y->cols);
  return TARN_STATUS_OK;
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dx = node->out[0];
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t r = 0; r < dx->rows; r++)
    if (dx->dtype == TARN__BF16)
      backward_row(node, TARN__BF16, r * dx->cols, (r + 1) * dx->cols);
    else
      backward_row(node, TARN__F32, r * dx->cols, (r + 1) * dx->cols);
  return TARN_STATUS_OK;
}

const tarn__tanh_kernels TARN__FAST(tarn__tanh_kernels) = {forward, backward};
