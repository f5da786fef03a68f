// Ops that copy rows of any type, and add them back to their origin.
#include <string.h>

#include "device/cpu/cpu_kernels.h"
#include "ops/cache.h"
#include "ops/select.h"

tarn_status tarn__cpu_cache_append(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__cache_attr *attr = node->attr;
  const tarn__tensor *x = node->in[TARN__CACHE_X], *cache = node->in[TARN__CACHE_CACHE];
  const size_t size = tarn__dtype_size(x->dtype), bytes = (size_t)attr->cols * size;
  for (int64_t r = 0; r < x->rows; r++)
    memcpy((char *)cache->data + (size_t)((attr->first_row + r) * cache->cols + attr->to) * size,
           (const char *)x->data + (size_t)(r * x->cols + attr->column) * size, bytes);
  return TARN_STATUS_OK;
}

tarn_status tarn__cpu_select_rows(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *x = node->in[TARN__SELECT_X], *rows = node->in[TARN__SELECT_ROWS];
  const size_t bytes = (size_t)x->cols * tarn__dtype_size(x->dtype);
  const int32_t *numbers = rows->data;
  char *out = node->out[0]->data;
  for (int64_t i = 0; i < rows->cols; i++)
    memcpy(out + (size_t)i * bytes, (const char *)x->data + (size_t)numbers[i] * bytes, bytes);
  return TARN_STATUS_OK;
}

static void add_row(void *to, const void *from, int64_t n, tarn__dtype dtype) {
  if (dtype == TARN__BF16) {
    for (int64_t c = 0; c < n; c++)
      ((uint16_t *)to)[c] =
          tarn__bf16_from_f32(tarn__bf16_to_f32(((uint16_t *)to)[c]) + tarn__bf16_to_f32(((const uint16_t *)from)[c]));
    return;
  }
  for (int64_t c = 0; c < n; c++) ((float *)to)[c] += ((const float *)from)[c];
}

// Each thread owns rows of x, and adds the selections from them in the order of the list.
tarn_status tarn__cpu_select_rows_backward(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__SELECT_DY], *rows = node->in[TARN__SELECT_ROWS], *dx = node->out[0];
  const size_t bytes = (size_t)dx->cols * tarn__dtype_size(dx->dtype);
  const int32_t *numbers = rows->data;
#pragma omp parallel for num_threads(exec->threads) schedule(static, 1)
  for (int which = 0; which < exec->threads; which++) {
    const int64_t first = dx->rows * which / exec->threads, last = dx->rows * (which + 1) / exec->threads;
    if (!node->in[TARN__SELECT_PREVIOUS])
      memset((char *)dx->data + (size_t)first * bytes, 0, (size_t)(last - first) * bytes);
    for (int64_t i = 0; i < rows->cols; i++)
      if (numbers[i] >= first && numbers[i] < last)
        add_row((char *)dx->data + (size_t)numbers[i] * bytes, (const char *)dy->data + (size_t)i * bytes, dx->cols,
                dx->dtype);
  }
  return TARN_STATUS_OK;
}
