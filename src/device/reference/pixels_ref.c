#include "ops/pixels.h"

#include "device/reference/reference_kernels.h"

typedef TARN_REAL real;

tarn_status TARN__REF(tarn__pixels_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const uint8_t *bytes = node->in[TARN__PIXELS_BYTES]->data;
  const int32_t *ids = node->in[TARN__PIXELS_IDS]->data;
  const tarn__tensor *x = node->out[0];
  real *to = x->data;
  // The number is data, rounded to fp32 as on every device.
  for (int64_t i = 0; i < x->rows * x->cols; i++)
    to[i] = ids[i / x->cols] == 0 ? 0 : (real)(float)tarn__pixel_value(bytes[i]);
  return TARN_STATUS_OK;
}
