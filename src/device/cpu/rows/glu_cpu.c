// Fast kernels: one pass over the rows in registers. Memory-bound.
#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/node_tables.h"
#include "device/cpu/rows/activation_vec.h"
#include "ops/glu.h"

enum { LANES = TARN__VEC_LANES };

// The gate's activation, and the factor of its derivative, g value.
TARN__VEC_INLINE tarn__vec gate_gradient(tarn__vec x, tarn__vec gate, tarn__vec dgate, tarn__activation form) {
  // The sigmoid's derivative from the sigmoid, so that the exponential is computed once.
  return form == TARN__SIGMOID ? dgate * gate * (1.0f - gate) : dgate * tarn__activation_slope_vec(x, form);
}

// The first n lanes from column c on.
TARN__VEC_INLINE void forward_step(const tarn__node *node, tarn__dtype dtype, tarn__activation form, int64_t d,
                                   int64_t r, int64_t c, int64_t n) {
  const void *x = node->in[TARN__GLU_X]->data;
  const tarn__vec value = tarn__vec_read_first(x, dtype, 2 * r * d + c, n);
  const tarn__vec gate = tarn__activation_vec(tarn__vec_read_first(x, dtype, 2 * r * d + d + c, n), form);
  tarn__vec_write_first(node->out[0]->data, dtype, r * d + c, value * gate, n);
}

TARN__VEC_INLINE void backward_step(const tarn__node *node, tarn__dtype dtype, tarn__activation form, int64_t d,
                                    int64_t r, int64_t c, int64_t n) {
  const void *x = node->in[TARN__GLU_X]->data;
  void *dx = node->out[0]->data;
  const int64_t at = 2 * r * d + c;
  const tarn__vec value = tarn__vec_read_first(x, dtype, at, n), z = tarn__vec_read_first(x, dtype, at + d, n);
  const tarn__vec gate = tarn__activation_vec(z, form);
  const tarn__vec g = tarn__vec_read_first(node->in[TARN__GLU_DY]->data, dtype, r * d + c, n);
  tarn__vec dvalue = g * gate, dgate = gate_gradient(z, gate, g * value, form);
  if (node->in[TARN__GLU_PREVIOUS] != NULL) {
    dvalue += tarn__vec_read_first(dx, dtype, at, n);
    dgate += tarn__vec_read_first(dx, dtype, at + d, n);
  }
  tarn__vec_write_first(dx, dtype, at, dvalue, n);
  tarn__vec_write_first(dx, dtype, at + d, dgate, n);
}

#define FORWARD(c, n) forward_step(node, dtype, form, d, r, c, n)
#define BACKWARD(c, n) backward_step(node, dtype, form, d, r, c, n)

TARN__VEC_INLINE void forward_row(const tarn__node *node, tarn__dtype dtype, tarn__activation form, int64_t d,
                                  int64_t r) {
  TARN__VEC_EACH(0, d, FORWARD);
}

TARN__VEC_INLINE void backward_row(const tarn__node *node, tarn__dtype dtype, tarn__activation form, int64_t d,
                                   int64_t r) {
  TARN__VEC_EACH(0, d, BACKWARD);
}

// Row r, compiled once for each activation and type.
#define EACH_FORM(function)                        \
  switch (*(const tarn__activation *)node->attr) { \
    TARN__EACH_ACTIVATION(function)                \
    case TARN__ACTIVATIONS_END:                    \
      break;                                       \
  }
#define FORWARD_CASE(form, ...)                                                                  \
  case form:                                                                                     \
    half ? forward_row(node, TARN__BF16, form, d, r) : forward_row(node, TARN__F32, form, d, r); \
    break;
#define BACKWARD_CASE(form, ...)                                                                   \
  case form:                                                                                       \
    half ? backward_row(node, TARN__BF16, form, d, r) : backward_row(node, TARN__F32, form, d, r); \
    break;

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const int64_t rows = node->out[0]->rows, d = node->out[0]->cols;
  const bool half = node->out[0]->dtype == TARN__BF16;
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t r = 0; r < rows; r++) EACH_FORM(FORWARD_CASE)
  return TARN_STATUS_OK;
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const int64_t rows = node->out[0]->rows, d = node->out[0]->cols / 2;
  const bool half = node->out[0]->dtype == TARN__BF16;
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t r = 0; r < rows; r++) EACH_FORM(BACKWARD_CASE)
  return TARN_STATUS_OK;
}

const tarn__glu_kernels TARN__FAST(tarn__glu_kernels) = {forward, backward};
