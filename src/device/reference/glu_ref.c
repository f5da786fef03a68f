// Plain C reference. The gradient may overwrite x.
#include "device/reference/reference_kernels.h"
#include "ops/glu.h"

typedef TARN_REAL real;

tarn_status TARN__REF(tarn__glu_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[TARN__GLU_X], *y = node->out[0];
  const int64_t d = y->cols;
  const tarn__activation form = *(const tarn__activation *)node->attr;
  for (int64_t r = 0; r < x->rows; r++)
    for (int64_t c = 0; c < d; c++) {
      const real *row = (const real *)x->data + 2 * r * d;
      ((real *)y->data)[r * d + c] = row[c] * TARN__REF(tarn__activation_value)(row[d + c], form);
    }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__glu_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[TARN__GLU_X], *dy = node->in[TARN__GLU_DY], *dx = node->out[0];
  const int64_t d = dy->cols;
  const tarn__activation form = *(const tarn__activation *)node->attr;
  const bool add = node->in[TARN__GLU_PREVIOUS] != NULL;
  for (int64_t r = 0; r < x->rows; r++)
    for (int64_t c = 0; c < d; c++) {
      const real *row = (const real *)x->data + 2 * r * d;
      real *to = (real *)dx->data + 2 * r * d;
      const real value = row[c], g = ((const real *)dy->data)[r * d + c];
      const real gate = TARN__REF(tarn__activation_value)(row[d + c], form);
      const real slope = TARN__REF(tarn__activation_slope)(row[d + c], form);
      to[c] = (add ? to[c] : 0) + g * gate;
      to[d + c] = (add ? to[d + c] : 0) + g * value * slope;
    }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__glu_tangent_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[TARN__GLU_X], *dx = node->in[TARN__GLU_DX], *dy = node->out[0];
  const int64_t d = dy->cols;
  const tarn__activation form = *(const tarn__activation *)node->attr;
  for (int64_t r = 0; r < dx->rows; r++)
    for (int64_t c = 0; c < d; c++) {
      const real *row = (const real *)x->data + 2 * (r % x->rows) * d, *by = (const real *)dx->data + 2 * r * d;
      ((real *)dy->data)[r * d + c] = by[c] * TARN__REF(tarn__activation_value)(row[d + c], form) +
                                      row[c] * by[d + c] * TARN__REF(tarn__activation_slope)(row[d + c], form);
    }
  return TARN_STATUS_OK;
}
