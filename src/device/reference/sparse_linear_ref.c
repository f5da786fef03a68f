// Plain C reference: row by row, entry by entry.
#include "ops/sparse_linear.h"

#include "device/reference/reference_kernels.h"
#include "graph/entries.h"

typedef TARN_REAL real;

tarn_status TARN__REF(tarn__sparse_linear_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[TARN__SPARSE_LINEAR_X], *weight = node->in[TARN__SPARSE_LINEAR_WEIGHT];
  const tarn__entries w = tarn__entries_at(weight->param, weight->data);
  const bool transpose = ((const tarn__sparse_linear_attr *)node->attr)->transpose;
  const int64_t cols = node->out[0]->cols;
  for (int64_t r = 0; r < x->rows; r++) {
    const real *from = (const real *)x->data + r * x->cols;
    real *to = (real *)node->out[0]->data + r * cols;
    for (int64_t i = 0; !node->in[TARN__SPARSE_LINEAR_PREVIOUS] && i < cols; i++) to[i] = 0;
    for (int64_t i = 0; i < weight->rows; i++)
      for (int32_t e = w.starts[i]; e < w.starts[i + 1]; e++) {
        const int64_t j = w.columns[e];
        to[transpose ? j : i] += ((const real *)w.values)[e] * from[transpose ? i : j];
      }
  }
  return TARN_STATUS_OK;
}
