// Fast kernels of tangents, element-wise: through the hyperbolic tangent and through the gate of token_linear.
// Memory-bound.
#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/rows/tangent_kernels.h"
#include "ops/tanh.h"
#include "ops/token_linear.h"

// Elements [at, at + d) of a tangent, which correspond to elements [saved, saved + d) of the forward pass.
TARN__VEC_INLINE void tanh_row(const tarn__node *node, int64_t at, int64_t saved, int64_t d) {
  const float *y = (const float *)node->in[TARN__TANH_Y]->data + saved;
  const float *dx = (const float *)node->in[TARN__TANH_DX]->data + at;
  float *dy = (float *)node->out[0]->data + at;
#define STEP(i, n)                                                                                                  \
  do {                                                                                                              \
    const tarn__vec value = tarn__vec_read_first(y, TARN__F32, i, n);                                               \
    tarn__vec_write_first(dy, TARN__F32, i, tarn__vec_read_first(dx, TARN__F32, i, n) * (1.0f - value * value), n); \
  } while (0)
  TARN__VEC_EACH(0, d, STEP);
#undef STEP
}

static const float *data_of(const tarn__tensor *tensor, int64_t at) {
  return tensor ? (const float *)tensor->data + at : NULL;
}

TARN__VEC_INLINE void gate_row(const tarn__node *node, int64_t at, int64_t saved, int64_t d) {
  const float *dz = data_of(node->in[TARN__TOKENS_TANGENT_DZ], at);
  const float *dadded = data_of(node->in[TARN__TOKENS_TANGENT_DADDED], at);
  const float *gate = data_of(node->in[TARN__TOKENS_TANGENT_GATE], saved);
  const float *dgate = data_of(node->in[TARN__TOKENS_TANGENT_DGATE], at);
  const float *z = data_of(node->in[TARN__TOKENS_TANGENT_Z], saved);
  float *dy = (float *)node->out[0]->data + at;
#define STEP(i, n)                                                                                             \
  do {                                                                                                         \
    tarn__vec sum = {0};                                                                                       \
    if (dz) sum += tarn__vec_read_first(dz, TARN__F32, i, n);                                                  \
    if (dadded) sum += tarn__vec_read_first(dadded, TARN__F32, i, n);                                          \
    sum *= tarn__vec_read_first(gate, TARN__F32, i, n);                                                        \
    if (dgate) sum += tarn__vec_read_first(dgate, TARN__F32, i, n) * tarn__vec_read_first(z, TARN__F32, i, n); \
    tarn__vec_write_first(dy, TARN__F32, i, sum, n);                                                           \
  } while (0)
  TARN__VEC_EACH(0, d, STEP);
#undef STEP
}

static tarn_status run_tanh(const tarn__exec *exec, const tarn__node *node) {
  const int64_t rows = node->in[TARN__TANH_Y]->rows, d = node->out[0]->cols;
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t r = 0; r < node->out[0]->rows; r++) tanh_row(node, r * d, r % rows * d, d);
  return TARN_STATUS_OK;
}

static tarn_status run_gate(const tarn__exec *exec, const tarn__node *node) {
  const int64_t rows = node->in[TARN__TOKENS_TANGENT_GATE]->rows, d = node->out[0]->cols;
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t r = 0; r < node->out[0]->rows; r++) gate_row(node, r * d, r % rows * d, d);
  return TARN_STATUS_OK;
}

const tarn__gate_tangent_kernels TARN__FAST(tarn__gate_tangent_kernels) = {run_tanh, run_gate};
