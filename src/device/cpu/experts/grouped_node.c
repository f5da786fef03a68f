// Grouped products: one product of gemm.h for each group (gemm_groups.h). The number of rows in a group is known only
// when the node runs.
#include <string.h>

#include "device/cpu/cpu_kernels.h"
#include "device/cpu/experts/experts_kernels.h"
#include "device/cpu/gemm/gemm_groups.h"
#include "device/cpu/gemm/gemm_within.h"
#include "device/cpu/gemm/linear_kernels.h"
#include "device/cpu/isa/isa.h"
#include "device/cpu/isa/row_cpu.h"
#include "device/cpu/rows/activation_kernels.h"
#include "ops/grouped.h"
#include "ops/linear.h"

static char *element(const void *data, tarn__dtype dtype, int64_t index) {
  return tarn__gemm_element(data, dtype, index);
}

static void run_groups(const tarn__exec *exec, const tarn__node *node, int64_t count,
                       tarn__gemm (*product)(const void *user, int64_t e), const void *user) {
  const tarn__gemm_groups groups = {.count = count, .product = product, .user = user};
  tarn__gemm_groups_run(&groups, exec->threads, node->scratch, node->scratch_bytes);
}

// Applies the activation to a block of the product, which is z, or y itself if no gradient is wanted.
static void apply_activation(const tarn__gemm *gemm, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const tarn__node *node = gemm->user;
  const tarn__tensor *z = node->out[TARN__LINEAR_Z], *y = node->out[TARN__LINEAR_Y];
  char *to = z ? (char *)y->data + ((char *)gemm->c - (char *)z->data) : gemm->c;
  tarn__activation_block(to, gemm->c, gemm->c_dtype, *(const tarn__activation *)node->attr, gemm->ldc, row, rows,
                         column, columns);
}

// Takes a block of dx through the activation before it.
static void apply_slope(const tarn__gemm *gemm, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const tarn__node *node = gemm->user;
  const char *saved = node->in[TARN__GROUPED_DX_SAVED]->data;
  tarn__linear_slope(gemm, saved + ((char *)gemm->c - (char *)node->out[0]->data),
                     ((const tarn__linear_attr *)node->attr)->activation, row, rows, column, columns);
}

// `rows` rows from row `first` on of expert e.
static tarn__gemm forward_product(const tarn__node *node, int64_t e, int64_t first, int64_t rows) {
  const tarn__tensor *x = node->in[TARN__GROUPED_X], *weight = node->in[TARN__GROUPED_WEIGHT];
  const tarn__tensor *bias = node->in[TARN__GROUPED_BIAS], *y = node->out[TARN__LINEAR_Y];
  const tarn__tensor *c = node->out[TARN__LINEAR_Z] ? node->out[TARN__LINEAR_Z] : y;
  const tarn__activation activation = *(const tarn__activation *)node->attr;
  return (tarn__gemm){.m = rows,
                      .n = y->cols,
                      .k = x->cols,
                      .a = element(x->data, x->dtype, first * x->cols),
                      .b = element(weight->data, weight->dtype, e * y->cols * x->cols),
                      .c = element(c->data, c->dtype, first * y->cols),
                      .bias = bias ? (const float *)(const void *)element(bias->data, TARN__F32, e * y->cols) : NULL,
                      .lda = x->cols,
                      .ldb = x->cols,
                      .ldc = y->cols,
                      .dtype = x->dtype,
                      .fp32 = node->fp32,
                      .c_dtype = y->dtype,
                      .transpose_b = true,
                      .relu = activation == TARN__RELU,
                      .complete = tarn__keeps_z(activation) ? apply_activation : NULL,
                      .user = node};
}

// The groups of each block of rows.
static tarn__gemm forward_group(const void *user, int64_t group) {
  const tarn__node *node = user;
  const tarn__tensor *offsets = node->in[TARN__GROUPED_OFFSETS];
  const int64_t experts = offsets->cols - 1, e = group % experts;
  const int32_t *offset = (const int32_t *)offsets->data + e;
  const int64_t first = group / experts * tarn__grouped_block(node) + offset[0];
  return forward_product(node, e, first, offset[1] - offset[0]);
}

tarn_status tarn__cpu_grouped_linear(const tarn__exec *exec, const tarn__node *node) {
  const int64_t experts = node->in[TARN__GROUPED_OFFSETS]->cols - 1;
  run_groups(exec, node, experts * tarn__grouped_blocks(node), forward_group, node);
  return TARN_STATUS_OK;
}

static tarn__gemm dx_product(const tarn__node *node, int64_t e, int64_t first, int64_t rows) {
  const tarn__tensor *dz = node->in[TARN__GROUPED_DX_DZ], *weight = node->in[TARN__GROUPED_DX_WEIGHT];
  const tarn__tensor *dx = node->out[0];
  return (tarn__gemm){.m = rows,
                      .n = dx->cols,
                      .k = dz->cols,
                      .a = element(dz->data, dz->dtype, first * dz->cols),
                      .b = element(weight->data, weight->dtype, e * dz->cols * dx->cols),
                      .c = element(dx->data, dx->dtype, first * dx->cols),
                      .lda = dz->cols,
                      .ldb = dx->cols,
                      .ldc = dx->cols,
                      .dtype = dz->dtype,
                      .fp32 = node->fp32,
                      .c_dtype = dx->dtype,
                      .accumulate = node->in[TARN__GROUPED_DX_PREVIOUS] != NULL,
                      .complete = node->in[TARN__GROUPED_DX_SAVED] ? apply_slope : NULL,
                      .user = node};
}

static tarn__gemm dx_group(const void *user, int64_t e) {
  const tarn__node *node = user;
  const int32_t *offset = node->in[TARN__GROUPED_DX_OFFSETS]->data;
  return dx_product(node, e, offset[e], offset[e + 1] - offset[e]);
}

tarn_status tarn__cpu_grouped_dx(const tarn__exec *exec, const tarn__node *node) {
  run_groups(exec, node, node->in[TARN__GROUPED_DX_OFFSETS]->cols - 1, dx_group, node);
  return TARN_STATUS_OK;
}

static tarn__gemm dweight_product(const tarn__node *node, int64_t e, int64_t first, int64_t rows, bool accumulate) {
  const tarn__tensor *dz = node->in[TARN__GROUPED_DWEIGHT_DZ], *x = node->in[TARN__GROUPED_DWEIGHT_X];
  return (tarn__gemm){.m = dz->cols,
                      .n = x->cols,
                      .k = rows,
                      .a = element(dz->data, dz->dtype, first * dz->cols),
                      .b = element(x->data, x->dtype, first * x->cols),
                      .c = element(node->dparam[0]->training.grad, TARN__F32, e * dz->cols * x->cols),
                      .lda = dz->cols,
                      .ldb = x->cols,
                      .ldc = x->cols,
                      .dtype = dz->dtype,
                      .fp32 = node->fp32,
                      .c_dtype = TARN__F32,
                      .transpose_a = true,
                      .accumulate = accumulate};
}

typedef struct gradient {
  const tarn__node *node;
  bool accumulate;
  float *dbias;
} gradient;

static tarn__gemm dweight_group(const void *user, int64_t e) {
  const gradient *of = user;
  const int32_t *offset = of->node->in[TARN__GROUPED_DWEIGHT_OFFSETS]->data;
  tarn__gemm product = dweight_product(of->node, e, offset[e], offset[e + 1] - offset[e], of->accumulate);
  if (of->dbias) product.row_sums = of->dbias + e * product.m;
  return product;
}

// dbias: to which the products add the gradient of the bias; NULL: they do not.
static void dweight(const tarn__exec *exec, const tarn__node *node, float *dbias) {
  const tarn__tensor *offsets = node->in[TARN__GROUPED_DWEIGHT_OFFSETS];
  const gradient of = {node, tarn__param_accumulate(node->dparam[0]) != 0, dbias};
  for (int64_t e = 0; !of.accumulate && e + 1 < offsets->cols; e++) {
    const tarn__gemm product = dweight_group(&of, e);
    if (product.k == 0) memset(product.c, 0, (size_t)(product.m * product.n) * sizeof(float));
  }
  run_groups(exec, node, offsets->cols - 1, dweight_group, &of);
}

// Each sum covers the rows of a group, so bits do not depend on threads.
static void dbias(const tarn__exec *exec, const tarn__node *node) {
  const tarn__linear_kernels *kernels = TARN__TABLE_NOW(tarn__linear_kernels);
  const tarn__tensor *dz = node->in[TARN__GROUPED_DWEIGHT_DZ], *offsets = node->in[TARN__GROUPED_DWEIGHT_OFFSETS];
  const int32_t *offset = offsets->data;
  const size_t width = tarn__row_floats(dz->cols);
  float *grad = node->dparam[1]->training.grad;
#pragma omp parallel for schedule(static, 1) num_threads(exec->threads)
  for (int part = 0; part < exec->threads; part++) {
    float *sums = (float *)node->scratch + (size_t)part * width;
    for (int64_t e = part; e + 1 < offsets->cols; e += exec->threads) {
      memset(sums, 0, width * sizeof *sums);
      kernels->dz(dz->data, NULL, sums, dz->dtype, TARN__IDENTITY, dz->cols, offset[e], offset[e + 1]);
      tarn__row_add(grad + e * dz->cols, sums, dz->cols);
    }
  }
}

tarn_status tarn__cpu_grouped_dweight(const tarn__exec *exec, const tarn__node *node) {
  tarn__param *weight = node->dparam[0], *bias = node->dparam[1];
  float *sums = bias ? bias->training.grad : NULL;
  if (bias && !tarn__param_accumulate(bias)) memset(sums, 0, (size_t)bias->cols * sizeof *sums);
  const tarn__gemm product = weight ? dweight_product(node, 0, 0, 0, false) : (tarn__gemm){0};
  const bool together = weight && bias && tarn__gemm_sums_rows(&product);
  if (weight) dweight(exec, node, together ? sums : NULL);
  if (bias && !together) dbias(exec, node);
  return TARN_STATUS_OK;
}

size_t tarn__cpu_grouped_linear_scratch(const tarn__node *node, int threads) {
  const tarn__gemm product = forward_product(node, 0, 0, node->in[TARN__GROUPED_X]->rows);
  return tarn__gemm_groups_scratch(&product, threads);
}

size_t tarn__cpu_grouped_dx_scratch(const tarn__node *node, int threads) {
  const tarn__gemm product = dx_product(node, 0, 0, node->in[TARN__GROUPED_DX_DZ]->rows);
  return tarn__gemm_groups_scratch(&product, threads);
}

size_t tarn__cpu_grouped_dweight_scratch(const tarn__node *node, int threads) {
  const tarn__tensor *dz = node->in[TARN__GROUPED_DWEIGHT_DZ];
  size_t most = node->dparam[1] ? tarn__row_floats(dz->cols) * sizeof(float) * (size_t)threads : 0;
  if (!node->dparam[0]) return most;
  const tarn__gemm product = dweight_product(node, 0, 0, dz->rows, false);
  const size_t bytes = tarn__gemm_groups_scratch(&product, threads);
  return bytes > most ? bytes : most;
}
