#include "ops/linear.h"

#include <string.h>

#include "device/cpu/gemm.h"
#include "device/cpu/isa.h"
#include "device/cpu/row_cpu.h"
#include "ops/gelu.h"
#include "ops/ops.h"

enum { Y, Z };  // outputs of linear

// GELU of a block of the product, which is z, or y itself where no gradient is wanted.
static void apply_gelu(const tarn__gemm *gemm, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const tarn__node *node = gemm->user;
  tarn__gelu_block(node->out[Y]->data, gemm->c, gemm->c_dtype, ((const tarn__linear_attr *)node->attr)->activation,
                   gemm->ldc, row, rows, column, columns);
}

// y = x weight^T + bias
static tarn__gemm forward_product(const tarn__node *node) {
  const tarn__tensor *x = node->in[0], *weight = node->in[1], *bias = node->in[2], *y = node->out[Y];
  const tarn__linear_attr *attr = node->attr;
  return (tarn__gemm){.m = x->rows,
                      .n = y->cols,
                      .k = x->cols,
                      .a = x->data,
                      .b = weight->data,
                      .packed = weight->param->packed,
                      .int8 = weight->param->packed_int8,
                      .c = node->out[Z] != NULL ? node->out[Z]->data : y->data,
                      .bias = bias != NULL ? bias->data : NULL,
                      .lda = x->cols,
                      .ldb = weight->cols,
                      .ldc = y->cols,
                      .dtype = x->dtype,
                      .c_dtype = y->dtype,
                      .transpose_b = true,
                      .relu = attr->activation == TARN__RELU,
                      .complete = tarn__is_gelu(attr->activation) ? apply_gelu : NULL,
                      .user = node};
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
                      .c_dtype = dx->dtype,
                      .accumulate = node->in[2] != NULL};
}

// dweight (+)= dz^T x
static tarn__gemm dweight_product(const tarn__node *node, bool accumulate) {
  const tarn__tensor *dz = node->in[0], *x = node->in[1];
  return (tarn__gemm){.m = dz->cols,
                      .n = x->cols,
                      .k = x->rows,
                      .a = dz->data,
                      .b = x->data,
                      .c = node->dparam[0]->grad,
                      .lda = dz->cols,
                      .ldb = x->cols,
                      .ldc = x->cols,
                      .dtype = dz->dtype,
                      .c_dtype = TARN__F32,
                      .transpose_a = true,
                      .accumulate = accumulate};
}

static tarn_status forward_cpu(const tarn__exec *exec, const tarn__node *node) {
  tarn__gemm product = forward_product(node);
  tarn__gemm_run(&product, exec->threads, node->scratch);
  return TARN_STATUS_OK;
}

static tarn_status dx_cpu(const tarn__exec *exec, const tarn__node *node) {
  tarn__gemm product = dx_product(node);
  tarn__gemm_run(&product, exec->threads, node->scratch);
  return TARN_STATUS_OK;
}

static tarn_status dweight_cpu(const tarn__exec *exec, const tarn__node *node) {
  tarn__gemm product = dweight_product(node, tarn__param_accumulate(node->dparam[0]) != 0);
  tarn__gemm_run(&product, exec->threads, node->scratch);
  return TARN_STATUS_OK;
}

static size_t forward_scratch(const tarn__node *node, int threads) {
  tarn__gemm product = forward_product(node);
  return tarn__gemm_scratch(&product, threads);
}

static size_t dx_scratch(const tarn__node *node, int threads) {
  tarn__gemm product = dx_product(node);
  return tarn__gemm_scratch(&product, threads);
}

static size_t dweight_scratch(const tarn__node *node, int threads) {
  tarn__gemm product = dweight_product(node, false);
  return tarn__gemm_scratch(&product, threads);
}

// For every thread: its column sums.
static size_t dz_scratch(const tarn__node *node, int threads) {
  return tarn__row_floats(node->in[0]->cols) * sizeof(float) * (size_t)threads;
}

static tarn_status dz_cpu(const tarn__exec *exec, const tarn__node *node) {
  const tarn__linear_kernels *kernels = TARN__TABLE_NOW(tarn__linear_kernels);
  const tarn__tensor *dy = node->in[0];
  const void *saved = node->in[1] != NULL ? node->in[1]->data : NULL;
  const tarn__activation activation = ((const tarn__linear_attr *)node->attr)->activation;
  tarn__param *bias = node->dparam[0];
  size_t width = tarn__row_floats(dy->cols);
  float *scratch = node->scratch;
  // The rows of each sum depend on the number of threads alone, so equal runs give equal bits.
#pragma omp parallel for schedule(static) num_threads(exec->threads)
  for (int part = 0; part < exec->threads; part++) {
    float *sums = scratch + (size_t)part * width;
    memset(sums, 0, width * sizeof *sums);
    kernels->dz(dy->data, saved, bias != NULL ? sums : NULL, dy->dtype, activation, dy->cols,
                dy->rows * part / exec->threads, dy->rows * (part + 1) / exec->threads);
  }
  if (bias == NULL) return TARN_STATUS_OK;
  float *grad = bias->grad;
  if (!tarn__param_accumulate(bias)) memset(grad, 0, (size_t)dy->cols * sizeof *grad);
  for (int part = 0; part < exec->threads; part++) tarn__row_add(grad, scratch + (size_t)part * width, dy->cols);
  return TARN_STATUS_OK;
}

static double forward_flops(const tarn__node *node) {
  return 2.0 * (double)node->in[0]->rows * (double)node->in[0]->cols * (double)node->out[0]->cols;
}

static double dx_flops(const tarn__node *node) {
  return 2.0 * (double)node->in[0]->rows * (double)node->in[0]->cols * (double)node->out[0]->cols;
}

static double dweight_flops(const tarn__node *node) {
  return 2.0 * (double)node->in[0]->rows * (double)node->in[0]->cols * (double)node->in[1]->cols;
}

static const tarn__op dz_op = {.name = "linear_dz",
                               .scratch = dz_scratch,
                               .reference_f32 = tarn__linear_dz_ref_f32,
                               .reference_f64 = tarn__linear_dz_ref_f64,
                               .cpu = dz_cpu};

static const tarn__op dweight_op = {.name = "linear_dweight",
                                    .flops = dweight_flops,
                                    .scratch = dweight_scratch,
                                    .reference_f32 = tarn__linear_dweight_ref_f32,
                                    .reference_f64 = tarn__linear_dweight_ref_f64,
                                    .cpu = dweight_cpu};

static const tarn__op dx_op = {.name = "linear_dx",
                               .flops = dx_flops,
                               .scratch = dx_scratch,
                               .reference_f32 = tarn__linear_dx_ref_f32,
                               .reference_f64 = tarn__linear_dx_ref_f64,
                               .cpu = dx_cpu};

tarn__tensor *tarn__linear_dz(tarn__graph *graph, tarn__tensor *dy, tarn__tensor *saved, tarn__param *bias,
                              tarn__activation activation) {
  if (activation == TARN__IDENTITY && bias == NULL) return dy;
  tarn__node *node = tarn__graph_node(graph, &dz_op, sizeof(tarn__linear_attr));
  ((tarn__linear_attr *)node->attr)->activation = activation;
  node->in[0] = dy;
  node->dparam[0] = bias;
  if (activation != TARN__IDENTITY) {
    node->in[1] = saved;
    node->out[0] = tarn__graph_tensor(graph, dy->dtype, dy->rows, dy->cols, "dz");
    node->out[0]->shares = dy;
  }
  tarn__graph_emit(graph, node);
  return activation != TARN__IDENTITY ? node->out[0] : dy;
}

static void gradient(tarn__graph *graph, tarn__node *linear) {
  tarn__tensor *x = linear->in[0], *weight = linear->in[1];
  tarn__param *bias = linear->in[2] != NULL && linear->in[2]->needs_grad ? linear->in[2]->param : NULL;
  const tarn__activation activation = ((const tarn__linear_attr *)linear->attr)->activation;
  tarn__tensor *saved = linear->out[tarn__is_gelu(activation) ? Z : Y];
  tarn__tensor *dz = tarn__linear_dz(graph, linear->out[Y]->grad, saved, bias, activation);
  // The weight's gradient first: x may die before the memory of dx is taken.
  if (weight->needs_grad) {
    tarn__node *node = tarn__graph_node(graph, &dweight_op, 0);
    node->in[0] = dz;
    node->in[1] = x;
    node->dparam[0] = weight->param;
    tarn__graph_emit(graph, node);
  }
  if (x->needs_grad) {
    tarn__node *node = tarn__graph_node(graph, &dx_op, 0);
    node->in[0] = dz;
    node->in[1] = weight;
    node->out[0] = tarn__grad_into(graph, x, &node->in[2]);
    tarn__graph_emit(graph, node);
  }
}

// GELU's result again from what it was applied to.
static tarn__tensor *renew(tarn__graph *graph, const tarn__node *linear) {
  return tarn__gelu(graph, linear->out[Z], ((const tarn__linear_attr *)linear->attr)->activation);
}

static const tarn__op linear_op = {.name = "linear",
                                   .grad = gradient,
                                   .renew = renew,
                                   .renew_out = Y,
                                   .renew_in = Z,
                                   .flops = forward_flops,
                                   .scratch = forward_scratch,
                                   .reference_f32 = tarn__linear_ref_f32,
                                   .reference_f64 = tarn__linear_ref_f64,
                                   .cpu = forward_cpu};

tarn__tensor *tarn__linear(tarn__graph *graph, tarn__tensor *x, tarn__param *weight, tarn__param *bias,
                           tarn__activation activation) {
  if (x->cols != weight->cols || x->dtype != weight->dtype || (bias != NULL && bias->cols != weight->rows))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "linear: weight %s [%lld, %lld] does not fit its input or bias",
                     weight->name, (long long)weight->rows, (long long)weight->cols);
  tarn__node *node = tarn__graph_node(graph, &linear_op, sizeof(tarn__linear_attr));
  ((tarn__linear_attr *)node->attr)->activation = activation;
  node->in[0] = x;
  node->in[1] = tarn__graph_param(graph, weight);
  node->in[2] = bias != NULL ? tarn__graph_param(graph, bias) : NULL;
  tarn__tensor *y = node->out[Y] = tarn__graph_tensor(graph, x->dtype, x->rows, weight->rows, "linear");
  bool backward = x->needs_grad || node->in[1]->needs_grad || (bias != NULL && node->in[2]->needs_grad);
  if (tarn__is_gelu(activation) && graph->training && backward)
    node->out[Z] = tarn__graph_tensor(graph, x->dtype, x->rows, weight->rows, "before GELU");
  tarn__graph_emit(graph, node);
  return y;
}
