// Fast kernels: one pass over the rows in registers. Bound by memory.
#include "device/cpu/node_tables.h"
#include "device/cpu/vec_cpu.h"
#include "ops/glu.h"

enum { LANES = TARN__VEC_LANES };

// The first n lanes from column c on.
TARN__VEC_INLINE void forward_step(const tarn__node *node, tarn__dtype dtype, int64_t d, int64_t r, int64_t c,
                                   int64_t n) {
  const void *x = node->in[TARN__GLU_X]->data;
  const tarn__vec value = tarn__vec_read_first(x, dtype, 2 * r * d + c, n);
  const tarn__vec gate = tarn__vec_sigmoid(tarn__vec_read_first(x, dtype, 2 * r * d + d + c, n));
  tarn__vec_write_first(node->out[0]->data, dtype, r * d + c, value * gate, n);
}

TARN__VEC_INLINE void backward_step(const tarn__node *node, tarn__dtype dtype, int64_t d, int64_t r, int64_t c,
                                    int64_t n) {
  const void *x = node->in[TARN__GLU_X]->data;
  void *dx = node->out[0]->data;
  const int64_t at = 2 * r * d + c;
  const tarn__vec value = tarn__vec_read_first(x, dtype, at, n);
  const tarn__vec gate = tarn__vec_sigmoid(tarn__vec_read_first(x, dtype, at + d, n));
  const tarn__vec g = tarn__vec_read_first(node->in[TARN__GLU_DY]->data, dtype, r * d + c, n);
  tarn__vec dvalue = g * gate, dgate = g * value * gate * (1.0f - gate);
  if (node->in[TARN__GLU_PREVIOUS] != NULL) {
    dvalue += tarn__vec_read_first(dx, dtype, at, n);
    dgate += tarn__vec_read_first(dx, dtype, at + d, n);
  }
  tarn__vec_write_first(dx, dtype, at, dvalue, n);
  tarn__vec_write_first(dx, dtype, at + d, dgate, n);
}

// All steps of row r.
#define FORWARD_F32(c, n) forward_step(node, TARN__F32, d, r, c, n)
#define FORWARD_BF16(c, n) forward_step(node, TARN__BF16, d, r, c, n)
#define BACKWARD_F32(c, n) backward_step(node, TARN__F32, d, r, c, n)
#define BACKWARD_BF16(c, n) backward_step(node, TARN__BF16, d, r, c, n)

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const int64_t rows = node->out[0]->rows, d = node->out[0]->cols;
  const bool half = node->out[0]->dtype == TARN__BF16;
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t r = 0; r < rows; r++)
    if (half)
      TARN__VEC_EACH(0, d, FORWARD_BF16);
    else
      TARN__VEC_EACH(0, d, FORWARD_F32);
  return TARN_STATUS_OK;
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const int64_t rows = node->out[0]->rows, d = node->out[0]->cols / 2;
  const bool half = node->out[0]->dtype == TARN__BF16;
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t r = 0; r < rows; r++)
    if (half)
      TARN__VEC_EACH(0, d, BACKWARD_BF16);
    else
      TARN__VEC_EACH(0, d, BACKWARD_F32);
  return TARN_STATUS_OK;
}

const tarn__glu_kernels TARN__FAST(tarn__glu_kernels) = {forward, backward};
