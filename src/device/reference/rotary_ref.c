// Plain C reference. The result may overwrite x.
#include "device/reference/reference_kernels.h"
#include "ops/rotary.h"

#include <math.h>
#include <string.h>

typedef TARN_REAL real;

tarn_status TARN__REF(tarn__rotary_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__rotary_attr *attr = node->attr;
  const tarn__rotary_spec *spec = &attr->spec;
  const tarn__tensor *x = node->in[TARN__ROTARY_X], *y = node->out[0];
  const int32_t *position = node->in[TARN__ROTARY_POSITIONS]->data;
  const int64_t half = spec->rotated / 2;
  if (y->data != x->data) memcpy(y->data, x->data, (size_t)(x->rows * x->cols) * sizeof(real));
  for (int64_t r = 0; r < y->rows; r++)
    for (int64_t h = 0; h < spec->heads; h++) {
      real *head = (real *)y->data + r * y->cols + spec->column + h * spec->width;
      for (int64_t i = 0; i < half; i++) {
        const double frequency = pow(spec->base, -2.0 * (double)i / (double)spec->rotated);
        const double angle =
            position[r] * (frequency * tarn__rotary_slowing(&spec->scaling, frequency / 6.28318530717958647692));
        const real c = (real)cos(angle), s = (real)(attr->back ? -sin(angle) : sin(angle));
        const real first = head[i], second = head[i + half];
        head[i] = first * c - second * s;
        head[i + half] = second * c + first * s;
      }
    }
  return TARN_STATUS_OK;
}
