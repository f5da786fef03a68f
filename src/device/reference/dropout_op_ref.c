#include "device/reference/reference_kernels.h"
#include "ops/dropout.h"

typedef TARN_REAL real;

tarn_status TARN__REF(tarn__dropout_ref)(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *x = node->in[0], *y = node->out[0];
  const tarn__dropout dropout = *(const tarn__dropout *)node->attr;
  const real scale = (real)tarn__dropout_scale(dropout);
  const int64_t masks = node->in[1] ? node->in[1]->rows : x->rows;
  for (int64_t r = 0; r < x->rows; r++)
    for (int64_t c = 0; c < x->cols; c++)
      ((real *)y->data)[r * x->cols + c] =
          tarn__dropout_keeps(dropout, exec, r % masks, c) ? scale * ((const real *)x->data)[r * x->cols + c] : 0;
  return TARN_STATUS_OK;
}
