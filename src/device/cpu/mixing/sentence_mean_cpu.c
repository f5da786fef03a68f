// Fast kernels: a thread processes whole sentences, whose rows are summed in registers, in order, so that the bits of a
// mean depend on its sentence alone. Memory-bound.
#include "device/cpu/isa/vec_cpu.h"
#include "device/cpu/node_tables.h"
#include "ops/sentence_mean.h"

TARN__VEC_INLINE void mean(void *y, const void *x, tarn__dtype dtype, int64_t d, int64_t s, int64_t first,
                           int64_t last) {
  const float share = last > first ? 1.0f / (float)(last - first) : 0.0f;
#define STEP(i, n)                                                                                \
  do {                                                                                            \
    tarn__vec sum = {0};                                                                          \
    for (int64_t r = first; r < last; r++) sum += tarn__vec_read_first(x, dtype, r * d + (i), n); \
    tarn__vec_write_first(y, dtype, s *d + (i), sum * tarn__vec_all(share), n);                   \
  } while (0)
  TARN__VEC_EACH(0, d, STEP);
#undef STEP
}

TARN__VEC_INLINE void spread(void *dx, const void *dy, tarn__dtype dtype, int64_t d, int64_t s, int64_t first,
                             int64_t last, bool add) {
  const float share = last > first ? 1.0f / (float)(last - first) : 0.0f;
#define STEP(i, n)                                                                                                    \
  do {                                                                                                                \
    const tarn__vec g = tarn__vec_read_first(dy, dtype, s * d + (i), n) * tarn__vec_all(share);                       \
    for (int64_t r = first; r < last; r++)                                                                            \
      tarn__vec_write_first(dx, dtype, r *d + (i), add ? tarn__vec_read_first(dx, dtype, r * d + (i), n) + g : g, n); \
  } while (0)
  TARN__VEC_EACH(0, d, STEP);
#undef STEP
}

static tarn_status forward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__SENTENCE_MEAN_X], *y = node->out[0];
  const int32_t *offsets = node->in[TARN__SENTENCE_MEAN_OFFSETS]->data;
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t s = 0; s < y->rows; s++)
    if (x->dtype == TARN__BF16)
      mean(y->data, x->data, TARN__BF16, x->cols, s, offsets[s], offsets[s + 1]);
    else
      mean(y->data, x->data, TARN__F32, x->cols, s, offsets[s], offsets[s + 1]);
  return TARN_STATUS_OK;
}

static tarn_status backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__SENTENCE_MEAN_DY], *dx = node->out[0];
  const int32_t *offsets = node->in[TARN__SENTENCE_MEAN_OFFSETS]->data;
  const bool add = node->in[TARN__SENTENCE_MEAN_PREVIOUS] != NULL;
#pragma omp parallel for num_threads(exec->threads) schedule(static)
  for (int64_t s = 0; s < dy->rows; s++)
    if (dx->dtype == TARN__BF16)
      spread(dx->data, dy->data, TARN__BF16, dx->cols, s, offsets[s], offsets[s + 1], add);
    else
      spread(dx->data, dy->data, TARN__F32, dx->cols, s, offsets[s], offsets[s + 1], add);
  return TARN_STATUS_OK;
}

const tarn__sentence_mean_kernels TARN__FAST(tarn__sentence_mean_kernels) = {forward, backward};
