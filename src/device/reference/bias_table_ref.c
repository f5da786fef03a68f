#include "ops/bias_table.h"

#include "device/reference/reference_kernels.h"

typedef TARN_REAL real;

tarn_status TARN__REF(tarn__bias_table_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__bias_table_spec *spec = node->attr;
  const tarn__tensor *table = node->in[TARN__BIAS_TABLE_TABLE], *y = node->out[0];
  int32_t *bucket = node->scratch;
  tarn__bias_buckets(spec, bucket);
  for (int64_t h = 0; h < y->rows; h++)
    for (int64_t n = 0; n < y->cols; n++)
      ((real *)y->data)[h * y->cols + n] = ((const real *)table->data)[bucket[n] * table->cols + h];
  return TARN_STATUS_OK;
}

tarn_status TARN__REF(tarn__bias_table_backward_ref)(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const tarn__bias_table_spec *spec = node->attr;
  const tarn__tensor *dy = node->in[TARN__BIAS_TABLE_DY];
  tarn__param *table = node->dparam[0];
  real *grad = table->training.grad;
  int32_t *bucket = node->scratch;
  tarn__bias_buckets(spec, bucket);
  if (!tarn__param_accumulate(table))
    for (int64_t i = 0; i < table->rows * table->cols; i++) grad[i] = 0;
  for (int64_t h = 0; h < dy->rows; h++)
    for (int64_t n = 0; n < dy->cols; n++)
      grad[bucket[n] * table->cols + h] += ((const real *)dy->data)[h * dy->cols + n];
  return TARN_STATUS_OK;
}

size_t TARN__REF(tarn__bias_table_ref_scratch)(const tarn__node *node, int threads) {
  (void)threads;
  return tarn__bias_table_scratch(node->attr);
}
