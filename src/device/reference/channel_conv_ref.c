// Plain C reference.
#include "ops/channel_conv.h"

#include <string.h>

#include "device/reference/reference_kernels.h"
#include "ops/offsets.h"

typedef TARN_REAL real;

static const tarn__channel_conv_attr *attr_of(const tarn__node *node) { return node->attr; }

// The row of x that is tap k of row r; -1: there is none.
static int64_t tap_of(const tarn__node *node, int64_t r, int64_t k) {
  const tarn__taps *taps = &attr_of(node)->taps;
  const tarn__tensor *offsets = node->in[TARN__CC_OFFSETS];
  if (offsets) {
    const int32_t *offset = (const int32_t *)offsets->data + tarn__offsets_find(offsets, r);
    const int64_t at = r + k - taps->before;
    return at >= offset[0] && at < offset[1] ? at : -1;
  }
  const int32_t *range = (const int32_t *)node->in[TARN__CC_RANGES]->data + 2 * r;
  const int64_t at = range[1] - taps->width + k;
  return at >= range[0] ? ((const int32_t *)node->in[TARN__CC_ROWS]->data)[at] : -1;
}

tarn_status TARN__REF(tarn__channel_conv_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[TARN__CC_X], *y = node->out[0];
  const real *kernel = node->in[TARN__CC_KERNEL]->data, *from = (const real *)x->data + attr_of(node)->column;
  for (int64_t r = 0; r < y->rows; r++)
    for (int64_t c = 0; c < y->cols; c++) {
      real sum = 0;
      for (int64_t k = 0; k < attr_of(node)->taps.width; k++) {
        const int64_t row = tap_of(node, r, k);
        if (row >= 0) sum += kernel[k * y->cols + c] * from[row * x->cols + c];
      }
      ((real *)y->data)[r * y->cols + c] = sum;
    }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__channel_conv_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dy = node->in[TARN__CC_DY], *x = node->in[TARN__CC_X];
  const real *kernel = node->in[TARN__CC_KERNEL]->data, *d = dy->data;
  const int64_t cols = dy->cols, width = attr_of(node)->taps.width;
  real *dx = node->out[0] ? node->out[0]->data : NULL;
  real *dkernel = node->dparam[0] ? node->dparam[0]->training.grad : NULL;
  if (dx && !node->in[TARN__CC_PREVIOUS]) memset(dx, 0, (size_t)(dy->rows * cols) * sizeof *dx);
  if (dkernel && !tarn__param_accumulate(node->dparam[0])) memset(dkernel, 0, (size_t)(width * cols) * sizeof *dkernel);
  for (int64_t r = 0; r < dy->rows; r++)
    for (int64_t k = 0; k < width; k++) {
      const int64_t row = tap_of(node, r, k);
      for (int64_t c = 0; row >= 0 && c < cols; c++) {
        if (dx) dx[row * cols + c] += kernel[k * cols + c] * d[r * cols + c];
        if (dkernel) dkernel[k * cols + c] += ((const real *)x->data)[row * cols + c] * d[r * cols + c];
      }
    }
  return TARN_STATUS_OK;
}
