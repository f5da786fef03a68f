#include "device/reference/reference_kernels.h"
#include "ops/sentence_mean.h"

typedef TARN_REAL real;

tarn_status TARN__REF(tarn__sentence_mean_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *y = node->out[0];
  const int32_t *offsets = node->in[TARN__SENTENCE_MEAN_OFFSETS]->data;
  const real *x = node->in[TARN__SENTENCE_MEAN_X]->data;
  for (int64_t s = 0; s < y->rows; s++)
    for (int64_t c = 0; c < y->cols; c++) {
      real sum = 0;
      for (int64_t r = offsets[s]; r < offsets[s + 1]; r++) sum += x[r * y->cols + c];
      ((real *)y->data)[s * y->cols + c] = offsets[s] < offsets[s + 1] ? sum / (real)(offsets[s + 1] - offsets[s]) : 0;
    }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__sentence_mean_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dy = node->in[TARN__SENTENCE_MEAN_DY];
  const int32_t *offsets = node->in[TARN__SENTENCE_MEAN_OFFSETS]->data;
  real *dx = node->out[0]->data;
  for (int64_t s = 0; s < dy->rows; s++)
    for (int64_t r = offsets[s]; r < offsets[s + 1]; r++)
      for (int64_t c = 0; c < dy->cols; c++) {
        const real g = ((const real *)dy->data)[s * dy->cols + c] / (real)(offsets[s + 1] - offsets[s]);
        dx[r * dy->cols + c] = (node->in[TARN__SENTENCE_MEAN_PREVIOUS] ? dx[r * dy->cols + c] : 0) + g;
      }
  return TARN_STATUS_OK;
}
