// Plain C reference.
#include "device/reference/reference_kernels.h"
#include "ops/pooling.h"

#include "ops/offsets.h"

typedef TARN_REAL real;

static const real *row_of(const tarn__tensor *tensor, int64_t row) {
  return (const real *)tensor->data + row * tensor->cols;
}

// The window of row r in its sentence.
static tarn__pooling_window window_in_sentence(const tarn__node *node, int64_t r) {
  const tarn__tensor *offsets = node->in[TARN__POOLING_OFFSETS];
  const int32_t *offset = (const int32_t *)offsets->data + tarn__offsets_find(offsets, r);
  return tarn__pooling_window_of(r, offset[0], offset[1], node->attr);
}

// The same for its list of rows, whose last element is the row itself.
static tarn__pooling_window window_in_list(const tarn__node *node, int64_t r) {
  const int32_t *range = (const int32_t *)node->in[TARN__POOLING_RANGES]->data + 2 * r;
  return tarn__pooling_window_of(range[1] - 1, range[0], range[1], node->attr);
}

tarn_status TARN__REF(tarn__pooling_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[TARN__POOLING_X], *y = node->out[0];
  const int32_t *list = node->in[TARN__POOLING_OFFSETS] ? NULL : node->in[TARN__POOLING_ROWS]->data;
  for (int64_t r = 0; r < y->rows; r++) {
    const tarn__pooling_window w = list ? window_in_list(node, r) : window_in_sentence(node, r);
    const int64_t own = list ? list[w.last - 1] : r;
    for (int64_t c = 0; c < y->cols; c++) {
      real sum = 0;
      for (int64_t j = w.first; j < w.last; j++) sum += row_of(x, list ? list[j] : j)[c];
      ((real *)y->data)[r * y->cols + c] = sum / (real)(w.last - w.first) - row_of(x, own)[c];
    }
  }
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__pooling_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dy = node->in[TARN__POOLING_DY];
  real *dx = node->out[0]->data;
  for (int64_t i = 0; !node->in[TARN__POOLING_PREVIOUS] && i < dy->rows * dy->cols; i++) dx[i] = 0;
  for (int64_t r = 0; r < dy->rows; r++) {
    const tarn__pooling_window w = window_in_sentence(node, r);
    for (int64_t c = 0; c < dy->cols; c++) {
      for (int64_t j = w.first; j < w.last; j++) dx[j * dy->cols + c] += row_of(dy, r)[c] / (real)(w.last - w.first);
      dx[r * dy->cols + c] -= row_of(dy, r)[c];
    }
  }
  return TARN_STATUS_OK;
}
