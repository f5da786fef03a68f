// The gradient of recurrent weights: one product over all rows, and one over the initial states of sentences.
#include "device/cpu/cpu_kernels.h"
#include "device/cpu/gemm/gemm.h"
#include "ops/recurrence.h"

// dweight (+)= du^T (the previous states)
static tarn__gemm dweight_product(const tarn__node *node, bool accumulate) {
  const tarn__recurrence_dweight_attr *attr = node->attr;
  const tarn__tensor *du = node->in[TARN__RECURRENCE_DWEIGHT_DU], *y = node->in[TARN__RECURRENCE_DWEIGHT_Y];
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

// Bytes of the initial states as the product reads them: fp32 in place, BF16 rounded at the beginning of the scratch.
static size_t start_bytes(const tarn__node *node) {
  const tarn__tensor *first = node->in[TARN__RECURRENCE_DWEIGHT_FIRST];
  const tarn__recurrence_dweight_attr *attr = node->attr;
  if (!first || first->dtype != TARN__BF16) return 0;
  return ((size_t)(first->rows * attr->spec.hidden) * sizeof(uint16_t) + 63) & ~(size_t)63;
}

// dweight += (du of first rows)^T (their initial states), of one direction
static tarn__gemm start_product(const tarn__node *node) {
  const tarn__recurrence_dweight_attr *attr = node->attr;
  const tarn__tensor *first = node->in[TARN__RECURRENCE_DWEIGHT_FIRST];
  const tarn__tensor *start = node->in[TARN__RECURRENCE_DWEIGHT_START];
  const bool rounded = start_bytes(node) > 0;
  return (tarn__gemm){.m = first->cols,
                      .n = attr->spec.hidden,
                      .k = first->rows,
                      .a = first->data,
                      .b = rounded ? node->scratch : start->data,
                      .c = node->dparam[0]->training.grad,
                      .lda = first->cols,
                      .ldb = rounded ? attr->spec.hidden : start->cols,
                      .ldc = attr->spec.hidden,
                      .dtype = first->dtype,
                      .fp32 = node->fp32,
                      .c_dtype = TARN__F32,
                      .transpose_a = true,
                      .accumulate = true};
}

static void round_starts(const tarn__node *node) {
  const tarn__recurrence_dweight_attr *attr = node->attr;
  const tarn__tensor *start = node->in[TARN__RECURRENCE_DWEIGHT_START];
  const int64_t n = attr->spec.hidden;
  uint16_t *to = node->scratch;
  for (int64_t s = 0; s < node->in[TARN__RECURRENCE_DWEIGHT_FIRST]->rows; s++)
    for (int64_t j = 0; j < n; j++)
      to[s * n + j] = tarn__bf16_from_f32(((const float *)start->data)[s * start->cols + j]);
}

tarn_status tarn__cpu_recurrence_dweight(const tarn__exec *exec, const tarn__node *node) {
  tarn__gemm product = dweight_product(node, tarn__param_accumulate(node->dparam[0]) != 0);
  tarn__gemm_run(&product, exec->threads, node->scratch);
  if (!node->in[TARN__RECURRENCE_DWEIGHT_FIRST]) return TARN_STATUS_OK;
  if (start_bytes(node) > 0) round_starts(node);
  product = start_product(node);
  tarn__gemm_run(&product, exec->threads, (char *)node->scratch + start_bytes(node));
  return TARN_STATUS_OK;
}

size_t tarn__cpu_recurrence_dweight_scratch(const tarn__node *node, int threads) {
  tarn__gemm product = dweight_product(node, false);
  const size_t rows = tarn__gemm_scratch(&product, threads);
  if (!node->in[TARN__RECURRENCE_DWEIGHT_FIRST]) return rows;
  product = start_product(node);
  const size_t starts = start_bytes(node) + tarn__gemm_scratch(&product, threads);
  return rows > starts ? rows : starts;
}
