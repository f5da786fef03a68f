#include "device/reference/reference_kernels.h"

typedef TARN_REAL real;

tarn_status TARN__REF(tarn__add_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const real *a = node->in[0]->data, *b = node->in[1]->data;
  real *sum = node->out[0]->data;
  int64_t n = node->out[0]->rows * node->out[0]->cols;
  for (int64_t i = 0; i < n; i++) sum[i] = a[i] + b[i];
  return TARN_STATUS_OK;
}
