// The gradient of recurrent weights: one product over all rows.
#include "device/cpu/cpu_kernels.h"
#include "device/cpu/gemm.h"
#include "ops/recurrence.h"

// dweight (+)= du^T (the states of the step before)
static tarn__gemm dweight_product(const tarn__node *node, bool accumulate) {
  const tarn__recurrence_dweight_attr *attr = node->attr;
  const tarn__tensor *du = node->in[0], *y = node->in[1];
  const int64_t n = attr->spec.hidden, width = tarn__recurrence_gates(&attr->spec) * n;
  const bool reverse = tarn__recurrence_reverse(&attr->spec, attr->direction);
  const int64_t size = (int64_t)tarn__dtype_size(du->dtype), rows = du->rows > 0 ? du->rows - 1 : 0;
  const int64_t du_first = (reverse ? 0 : du->cols) + attr->direction * width;
  const int64_t y_first = (reverse ? y->cols : 0) + attr->direction * n;
  return (tarn__gemm){.m = width,
                      .n = n,
                      .k = rows,
                      .a = du->data ? (const char *)du->data + du_first * size : NULL,
                      .b = y->data ? (const char *)y->data + y_first * size : NULL,
                      .c = node->dparam[0]->training.grad,
                      .lda = du->cols,
                      .ldb = y->cols,
                      .ldc = n,
                      .dtype = du->dtype,
                      .fp32 = node->fp32,
                      .c_dtype = TARN__F32,
                      .transpose_a = true,
                      .accumulate = accumulate};
}

tarn_status tarn__cpu_recurrence_dweight(const tarn__exec *exec, const tarn__node *node) {
  tarn__gemm product = dweight_product(node, tarn__param_accumulate(node->dparam[0]) != 0);
  tarn__gemm_run(&product, exec->threads, node->scratch);
  return TARN_STATUS_OK;
}

size_t tarn__cpu_recurrence_dweight_scratch(const tarn__node *node, int threads) {
  tarn__gemm product = dweight_product(node, false);
  return tarn__gemm_scratch(&product, threads);
}
