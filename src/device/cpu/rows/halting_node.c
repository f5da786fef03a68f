// A number a row is so little that these kernels have a single version for all instruction sets.
#include "ops/halting.h"

#include "device/cpu/cpu_kernels.h"

static double number(const tarn__tensor *tensor, int64_t i) {
  if (!tensor) return 0.0;
  if (tensor->dtype == TARN__BF16) return (double)tarn__bf16_to_f32(((const uint16_t *)tensor->data)[i]);
  return (double)((const float *)tensor->data)[i];
}

static void set(tarn__tensor *tensor, int64_t i, double value) {
  if (!tensor) return;
  if (tensor->dtype == TARN__BF16)
    ((uint16_t *)tensor->data)[i] = tarn__bf16_from_f32((float)value);
  else
    ((float *)tensor->data)[i] = (float)value;
}

tarn_status tarn__cpu_halting(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *z = node->in[TARN__HALTING_Z], *before = node->in[TARN__HALTING_BEFORE];
#pragma omp parallel for num_threads(exec->threads) schedule(static) if (z->rows > 256)
  for (int64_t r = 0; r < z->rows; r++) {
    const tarn__halting_row row = tarn__halting_step(node->attr, number(z, r), number(before, r));
    set(node->out[TARN__HALTING_WEIGHT], r, row.weight);
    set(node->out[TARN__HALTING_SUM], r, row.sum);
    set(node->out[TARN__HALTING_RUNS], r, row.runs);
    set(node->out[TARN__HALTING_RESTS], r, 1.0 - row.runs);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__cpu_halting_backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *z = node->in[TARN__HALTING_Z], *before = node->in[TARN__HALTING_BEFORE];
#pragma omp parallel for num_threads(exec->threads) schedule(static) if (z->rows > 256)
  for (int64_t r = 0; r < z->rows; r++) {
    const tarn__halting_change d =
        tarn__halting_gradient(node->attr, number(z, r), number(before, r), number(node->in[TARN__HALTING_AFTER], r),
                               number(node->in[TARN__HALTING_DWEIGHT], r), number(node->in[TARN__HALTING_DSUM], r));
    set(node->out[TARN__HALTING_DZ], r, d.first);
    set(node->out[TARN__HALTING_DBEFORE], r, d.second);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__cpu_halting_tangent(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *z = node->in[TARN__HALTING_Z], *before = node->in[TARN__HALTING_BEFORE];
  const int64_t count = node->out[TARN__HALTING_WEIGHT]->rows;
#pragma omp parallel for num_threads(exec->threads) schedule(static) if (count > 256)
  for (int64_t i = 0; i < count; i++) {
    const int64_t r = i % z->rows;
    const tarn__halting_change d = tarn__halting_push(
        number(z, r), number(before, r), number(node->in[TARN__HALTING_AFTER], r),
        number(node->in[TARN__HALTING_TANGENT_Z], i), number(node->in[TARN__HALTING_TANGENT_BEFORE], i));
    set(node->out[TARN__HALTING_WEIGHT], i, d.first);
    set(node->out[TARN__HALTING_SUM], i, d.second);
  }
  return TARN_STATUS_OK;
}
