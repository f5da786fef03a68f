// Ops that only copy rows, whatever their type is.
#include <string.h>

#include "device/cpu/cpu_kernels.h"
#include "ops/cache.h"

tarn_status tarn__cpu_cache_append(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__cache_attr *attr = node->attr;
  const tarn__tensor *x = node->in[TARN__CACHE_X], *cache = node->in[TARN__CACHE_CACHE];
  const size_t size = tarn__dtype_size(x->dtype), row = (size_t)cache->cols * size;
  for (int64_t r = 0; r < x->rows; r++)
    memcpy((char *)cache->data + (size_t)(attr->first_row + r) * row,
           (const char *)x->data + (size_t)(r * x->cols + attr->column) * size, row);
  return TARN_STATUS_OK;
}

tarn_status tarn__cpu_select_rows(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[0], *rows = node->in[1];
  const size_t bytes = (size_t)x->cols * tarn__dtype_size(x->dtype);
  const int32_t *numbers = rows->data;
  char *out = node->out[0]->data;
  for (int64_t i = 0; i < rows->cols; i++)
    memcpy(out + (size_t)i * bytes, (const char *)x->data + (size_t)numbers[i] * bytes, bytes);
  return TARN_STATUS_OK;
}
