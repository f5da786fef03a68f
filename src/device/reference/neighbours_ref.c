// Plain C reference.
#include "ops/neighbours.h"

#include <string.h>

#include "device/reference/reference_kernels.h"
#include "ops/offsets.h"

typedef TARN_REAL real;

// The row that is tap k of row r; -1: there is none.
static int64_t tap_of(const tarn__node *node, int64_t r, int64_t k) {
  const tarn__tensor *offsets = node->in[TARN__NEIGHBOURS_OFFSETS];
  const int32_t *offset = (const int32_t *)offsets->data + tarn__offsets_find(offsets, r);
  const int64_t at = r + k - ((const tarn__taps *)node->attr)->before;
  return at >= offset[0] && at < offset[1] ? at : -1;
}

tarn_status TARN__REF(tarn__neighbours_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[TARN__NEIGHBOURS_X], *y = node->out[0];
  const int64_t width = ((const tarn__taps *)node->attr)->width;
  for (int64_t r = 0; r < x->rows; r++)
    for (int64_t k = 0; k < width; k++) {
      const int64_t row = tap_of(node, r, k);
      for (int64_t c = 0; c < x->cols; c++)
        ((real *)y->data)[r * y->cols + k * x->cols + c] = row < 0 ? 0 : ((const real *)x->data)[row * x->cols + c];
    }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__neighbours_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dy = node->in[TARN__NEIGHBOURS_DY], *dx = node->out[0];
  const int64_t width = ((const tarn__taps *)node->attr)->width;
  real *to = dx->data;
  if (!node->in[TARN__NEIGHBOURS_PREVIOUS]) memset(to, 0, (size_t)(dx->rows * dx->cols) * sizeof *to);
  for (int64_t r = 0; r < dx->rows; r++)
    for (int64_t k = 0; k < width; k++) {
      const int64_t row = tap_of(node, r, k);
      const real *from = (const real *)dy->data + r * dy->cols + k * dx->cols;
      for (int64_t c = 0; row >= 0 && c < dx->cols; c++) to[row * dx->cols + c] += from[c];
    }
  return TARN_STATUS_OK;
}
