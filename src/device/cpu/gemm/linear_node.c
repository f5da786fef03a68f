#include <string.h>

#include "device/cpu/cpu_kernels.h"
#include "device/cpu/gemm/gemm.h"
#include "device/cpu/gemm/linear_kernels.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/rows/activation_kernels.h"

// Applies the activation to a block of the product, which is z, or y itself if no gradient is wanted.
static void apply_activation(const tarn__gemm *gemm, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const tarn__node *node = gemm->user;
  tarn__activation_block(node->out[TARN__LINEAR_Y]->data, gemm->c, gemm->c_dtype,
                         ((const tarn__linear_attr *)node->attr)->activation, gemm->ldc, row, rows, column, columns);
}

// y = x weight^T + bias
static tarn__gemm forward_product(const tarn__node *node) {
  const tarn__tensor *x = node->in[0], *weight = node->in[1], *bias = node->in[2], *y = node->out[TARN__LINEAR_Y];
  const tarn__linear_attr *attr = node->attr;
  return (tarn__gemm){.m = x->rows,
                      .n = y->cols,
                      .k = x->cols,
                      .a = x->data,
                      .b = weight->data,
                      .packed = weight->param->decoding.packed,
                      .int8 = weight->param->decoding.rounding == TARN__ROUNDING_INT8,
                      .int4 = weight->param->decoding.rounding == TARN__ROUNDING_INT4,
                      .c = node->out[TARN__LINEAR_Z] != NULL ? node->out[TARN__LINEAR_Z]->data : y->data,
                      .bias = bias != NULL ? bias->data : NULL,
                      .lda = x->cols,
                      .ldb = weight->cols,
                      .ldc = y->cols,
                      .dtype = x->dtype,
                      .fp32 = node->fp32,
                      .c_dtype = y->dtype,
                      .transpose_b = true,
                      .relu = attr->activation == TARN__RELU,
                      .complete = tarn__keeps_z(attr->activation) ? apply_activation : NULL,
                      .user = node};
}

void tarn__linear_slope(const tarn__gemm *gemm, const void *saved, tarn__activation activation, int64_t row,
                        int64_t rows, int64_t column, int64_t columns) {
  const tarn__linear_kernels *kernels = TARN__TABLE_NOW(tarn__linear_kernels);
  const int64_t size = (int64_t)tarn__dtype_size(gemm->c_dtype);
  for (int64_t r = row; r < row + rows; r++) {
    const int64_t at = (r * gemm->ldc + column) * size;
    kernels->dz((char *)gemm->c + at, (const char *)saved + at, NULL, gemm->c_dtype, activation, columns, 0, 1);
  }
}

static void apply_slope(const tarn__gemm *gemm, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const tarn__node *node = gemm->user;
  tarn__linear_slope(gemm, node->in[TARN__LINEAR_DX_SAVED]->data, ((const tarn__linear_attr *)node->attr)->activation,
                     row, rows, column, columns);
}

// dx (+)= dz weight
static tarn__gemm dx_product(const tarn__node *node) {
  const tarn__tensor *dz = node->in[0], *weight = node->in[1], *dx = node->out[0];
  return (tarn__gemm){.m = dz->rows,
                      .n = dx->cols,
                      .k = dz->cols,
                      .a = dz->data,
                      .b = weight->data,
                      .c = dx->data,
                      .lda = dz->cols,
                      .ldb = weight->cols,
                      .ldc = dx->cols,
                      .dtype = dz->dtype,
                      .fp32 = node->fp32,
                      .c_dtype = dx->dtype,
                      .accumulate = node->in[TARN__LINEAR_DX_PREVIOUS] != NULL,
                      .complete = node->in[TARN__LINEAR_DX_SAVED] != NULL ? apply_slope : NULL,
                      .user = node};
}

// dweight (+)= dz^T x
static tarn__gemm dweight_product(const tarn__node *node, bool accumulate) {
  const tarn__tensor *dz = node->in[0], *x = node->in[1];
  return (tarn__gemm){.m = dz->cols,
                      .n = x->cols,
                      .k = x->rows,
                      .a = dz->data,
                      .b = x->data,
                      .c = node->dparam[0]->training.grad,
                      .lda = dz->cols,
                      .ldb = x->cols,
                      .ldc = x->cols,
                      .dtype = dz->dtype,
                      .fp32 = node->fp32,
                      .c_dtype = TARN__F32,
                      .transpose_a = true,
                      .accumulate = accumulate};
}

tarn_status tarn__cpu_linear(const tarn__exec *exec, const tarn__node *node) {
  tarn__gemm product = forward_product(node);
  tarn__gemm_run(&product, exec->threads, node->scratch);
  return TARN_STATUS_OK;
}

tarn_status tarn__cpu_linear_dx(const tarn__exec *exec, const tarn__node *node) {
  tarn__gemm product = dx_product(node);
  tarn__gemm_run(&product, exec->threads, node->scratch);
  return TARN_STATUS_OK;
}

// Takes dy through an activation in place (saved: NULL for none) and adds the gradient of the bias (NULL: none). The
// rows of each sum depend only on the number of threads, so equal runs give equal bits.
static void through_activation(const tarn__tensor *dy, const void *saved, tarn__activation activation,
                               tarn__param *bias, int threads, float *scratch) {
  const tarn__linear_kernels *kernels = TARN__TABLE_NOW(tarn__linear_kernels);
  const size_t width = tarn__row_floats(dy->cols);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int part = 0; part < threads; part++) {
    float *sums = scratch + (size_t)part * width;
    memset(sums, 0, width * sizeof *sums);
    kernels->dz(dy->data, saved, bias != NULL ? sums : NULL, dy->dtype, activation, dy->cols, dy->rows * part / threads,
                dy->rows * (part + 1) / threads);
  }
  if (bias == NULL) return;
  float *grad = bias->training.grad;
  if (!tarn__param_accumulate(bias)) memset(grad, 0, (size_t)dy->cols * sizeof *grad);
  for (int part = 0; part < threads; part++) tarn__row_add(grad, scratch + (size_t)part * width, dy->cols);
}

tarn_status tarn__cpu_linear_dweight(const tarn__exec *exec, const tarn__node *node) {
  tarn__gemm product = dweight_product(node, tarn__param_accumulate(node->dparam[0]) != 0);
  tarn__param *bias = node->dparam[1];
  if (bias != NULL && tarn__gemm_sums_rows(&product)) {
    product.row_sums = bias->training.grad;
    if (!tarn__param_accumulate(bias)) memset(product.row_sums, 0, (size_t)product.m * sizeof *product.row_sums);
  } else if (bias != NULL) {
    through_activation(node->in[0], NULL, TARN__IDENTITY, bias, exec->threads, node->scratch);
  }
  tarn__gemm_run(&product, exec->threads, node->scratch);
  return TARN_STATUS_OK;
}

size_t tarn__cpu_linear_scratch(const tarn__node *node, int threads) {
  tarn__gemm product = forward_product(node);
  return tarn__gemm_scratch(&product, threads);
}

size_t tarn__cpu_linear_dx_scratch(const tarn__node *node, int threads) {
  tarn__gemm product = dx_product(node);
  return tarn__gemm_scratch(&product, threads);
}

// Column sums for every thread.
static size_t sums_bytes(const tarn__tensor *dy, int threads) {
  return tarn__row_floats(dy->cols) * sizeof(float) * (size_t)threads;
}

size_t tarn__cpu_linear_dweight_scratch(const tarn__node *node, int threads) {
  const tarn__gemm product = dweight_product(node, false);
  const size_t bytes = tarn__gemm_scratch(&product, threads);
  const size_t sums = node->dparam[1] != NULL ? sums_bytes(node->in[0], threads) : 0;
  return sums > bytes ? sums : bytes;
}

size_t tarn__cpu_linear_dz_scratch(const tarn__node *node, int threads) { return sums_bytes(node->in[0], threads); }

tarn_status tarn__cpu_linear_dz(const tarn__exec *exec, const tarn__node *node) {
  const void *saved = node->in[1] != NULL ? node->in[1]->data : NULL;
  through_activation(node->in[0], saved, ((const tarn__linear_attr *)node->attr)->activation, node->dparam[0],
                     exec->threads, node->scratch);
  return TARN_STATUS_OK;
}
