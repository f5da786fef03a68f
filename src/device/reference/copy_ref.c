#include "device/reference/reference_kernels.h"
#include "ops/cache.h"
#include "ops/select.h"

typedef TARN_REAL real;

tarn_status TARN__REF(tarn__cache_append_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__cache_attr *attr = node->attr;
  const tarn__tensor *x = node->in[TARN__CACHE_X], *cache = node->in[TARN__CACHE_CACHE];
  for (int64_t r = 0; r < x->rows; r++)
    for (int64_t c = 0; c < attr->cols; c++)
      ((real *)cache->data)[(attr->first_row + r) * cache->cols + attr->to + c] =
          ((const real *)x->data)[r * x->cols + attr->column + c];
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__select_rows_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[TARN__SELECT_X], *rows = node->in[TARN__SELECT_ROWS];
  const int32_t *numbers = rows->data;
  for (int64_t i = 0; i < rows->cols; i++)
    for (int64_t c = 0; c < x->cols; c++)
      ((real *)node->out[0]->data)[i * x->cols + c] = ((const real *)x->data)[numbers[i] * x->cols + c];
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__select_rows_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dy = node->in[TARN__SELECT_DY], *rows = node->in[TARN__SELECT_ROWS];
  tarn__tensor *dx = node->out[0];
  const int32_t *numbers = rows->data;
  for (int64_t i = 0; !node->in[TARN__SELECT_PREVIOUS] && i < dx->rows * dx->cols; i++) ((real *)dx->data)[i] = 0;
  for (int64_t i = 0; i < rows->cols; i++)
    for (int64_t c = 0; c < dx->cols; c++)
      ((real *)dx->data)[numbers[i] * dx->cols + c] += ((const real *)dy->data)[i * dx->cols + c];
  return TARN_STATUS_OK;
}
