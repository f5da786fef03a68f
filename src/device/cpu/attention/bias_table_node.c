// Tables of biases are so small that these kernels have a single version for all instruction sets.
#include <string.h>

#include "device/cpu/cpu_kernels.h"
#include "ops/bias_table.h"

static float value_of(const tarn__tensor *table, int64_t i) {
  if (table->dtype == TARN__F32) return ((const float *)table->data)[i];
  return tarn__bf16_to_f32(((const uint16_t *)table->data)[i]);
}

tarn_status tarn__cpu_bias_table(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *table = node->in[TARN__BIAS_TABLE_TABLE], *y = node->out[0];
  int32_t *bucket = node->scratch;
  tarn__bias_buckets(node->attr, bucket);
  for (int64_t h = 0; h < y->rows; h++)
    for (int64_t n = 0; n < y->cols; n++)
      ((float *)y->data)[h * y->cols + n] = value_of(table, bucket[n] * table->cols + h);
  return TARN_STATUS_OK;
}

tarn_status tarn__cpu_bias_table_backward(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__tensor *dy = node->in[TARN__BIAS_TABLE_DY];
  tarn__param *table = node->dparam[0];
  float *grad = table->training.grad;
  int32_t *bucket = node->scratch;
  tarn__bias_buckets(node->attr, bucket);
  if (!tarn__param_accumulate(table)) memset(grad, 0, (size_t)(table->rows * table->cols) * sizeof *grad);
  for (int64_t h = 0; h < dy->rows; h++)
    for (int64_t n = 0; n < dy->cols; n++)
      grad[bucket[n] * table->cols + h] += ((const float *)dy->data)[h * dy->cols + n];
  return TARN_STATUS_OK;
}

size_t tarn__cpu_bias_table_scratch(const tarn__node *node, int threads) {
  (void)threads;
  return tarn__bias_table_scratch(node->attr);
}
