#include "ops/halting.h"

#include "device/reference/reference_kernels.h"

typedef TARN_REAL real;

static double number(const tarn__tensor *tensor, int64_t i) {
  return tensor ? (double)((const real *)tensor->data)[i] : 0.0;
}

static void set(tarn__tensor *tensor, int64_t i, double value) {
  if (tensor) ((real *)tensor->data)[i] = (real)value;
}

tarn_status TARN__REF(tarn__halting_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  for (int64_t r = 0; r < node->in[TARN__HALTING_Z]->rows; r++) {
    const tarn__halting_row row =
        tarn__halting_step(node->attr, number(node->in[TARN__HALTING_Z], r), number(node->in[TARN__HALTING_BEFORE], r));
    set(node->out[TARN__HALTING_WEIGHT], r, row.weight);
    set(node->out[TARN__HALTING_SUM], r, row.sum);
    set(node->out[TARN__HALTING_RUNS], r, row.runs);
    set(node->out[TARN__HALTING_RESTS], r, 1.0 - row.runs);
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__halting_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  for (int64_t r = 0; r < node->in[TARN__HALTING_Z]->rows; r++) {
    const tarn__halting_change d =
        tarn__halting_gradient(node->attr, number(node->in[TARN__HALTING_Z], r),
                               number(node->in[TARN__HALTING_BEFORE], r), number(node->in[TARN__HALTING_AFTER], r),
                               number(node->in[TARN__HALTING_DWEIGHT], r), number(node->in[TARN__HALTING_DSUM], r));
    set(node->out[TARN__HALTING_DZ], r, d.first);
    set(node->out[TARN__HALTING_DBEFORE], r, d.second);
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__halting_tangent_ref)(const tarn__exec *exec, const tarn__node *node) {
  const int64_t rows = node->in[TARN__HALTING_Z]->rows;
  (void)exec;
  for (int64_t i = 0; i < node->out[TARN__HALTING_WEIGHT]->rows; i++) {
    const int64_t r = i % rows;
    const tarn__halting_change d =
        tarn__halting_push(number(node->in[TARN__HALTING_Z], r), number(node->in[TARN__HALTING_BEFORE], r),
                           number(node->in[TARN__HALTING_AFTER], r), number(node->in[TARN__HALTING_TANGENT_Z], i),
                           number(node->in[TARN__HALTING_TANGENT_BEFORE], i));
    set(node->out[TARN__HALTING_WEIGHT], i, d.first);
    set(node->out[TARN__HALTING_SUM], i, d.second);
  }
  return TARN_STATUS_OK;
}
