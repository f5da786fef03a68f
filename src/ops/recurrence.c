#include "ops/recurrence.h"

#include "device/cpu/gemm.h"

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
                      .c = node->dparam[0]->grad,
                      .lda = du->cols,
                      .ldb = y->cols,
                      .ldc = n,
                      .dtype = du->dtype,
                      .c_dtype = TARN__F32,
                      .transpose_a = true,
                      .accumulate = accumulate};
}

static tarn_status dweight_cpu(const tarn__exec *exec, const tarn__node *node) {
  tarn__gemm product = dweight_product(node, tarn__param_accumulate(node->dparam[0]) != 0);
  tarn__gemm_run(&product, exec->threads, node->scratch);
  return TARN_STATUS_OK;
}

static size_t dweight_scratch(const tarn__node *node, int threads) {
  tarn__gemm product = dweight_product(node, false);
  return tarn__gemm_scratch(&product, threads);
}

// Of the products of all steps with one recurrent weight. Of a sparse one only the entries count that it is to have:
// those alone are multiplied.
static double product_flops(const tarn__tensor *weight, int64_t rows) {
  const double share = tarn__recurrence_sparse(weight) ? 1.0 - weight->param->reservoir->sparsity : 1.0;
  return 2.0 * (double)rows * (double)weight->rows * (double)weight->cols * share;
}

// The first step of a sentence has no product.
static double loop_flops(const tarn__node *node, int first_weight, const tarn__tensor *offsets, int64_t rows) {
  const tarn__recurrence_spec *spec = node->attr;
  const int64_t sentences = offsets->cols - 1;
  double flops = 0;
  for (int d = 0; d < spec->directions; d++) flops += product_flops(node->in[first_weight + d], rows - sentences);
  return flops;
}

static double flops(const tarn__node *node) {
  return loop_flops(node, TARN__RECURRENCE_WEIGHTS, node->in[TARN__RECURRENCE_OFFSETS],
                    node->in[TARN__RECURRENCE_X]->rows);
}

static double backward_flops(const tarn__node *node) {
  return loop_flops(node, TARN__RECURRENCE_BACK_WEIGHTS, node->in[TARN__RECURRENCE_BACK_OFFSETS],
                    node->in[TARN__RECURRENCE_BACK_DY]->rows);
}

// That is a dense product whatever the weight is.
static double dweight_flops(const tarn__node *node) {
  const tarn__recurrence_dweight_attr *attr = node->attr;
  const double n = (double)attr->spec.hidden;
  return 2.0 * (double)node->in[0]->rows * (double)tarn__recurrence_gates(&attr->spec) * n * n;
}

static const tarn__op dweight_op = {.name = "recurrence_dweight",
                                    .flops = dweight_flops,
                                    .scratch = dweight_scratch,
                                    .reference_f32 = tarn__recurrence_dweight_ref_f32,
                                    .reference_f64 = tarn__recurrence_dweight_ref_f64,
                                    .cpu = dweight_cpu};

// The gradient of x takes over the memory of the gates, which were written over x.
static const tarn__op backward_op = {.name = "recurrence_backward",
                                     .flops = backward_flops,
                                     .scratch = tarn__recurrence_backward_scratch,
                                     .in_place = true,
                                     .inplace_out = TARN__RECURRENCE_BACK_DX,
                                     .inplace_in = TARN__RECURRENCE_BACK_GATES,
                                     .reference_f32 = tarn__recurrence_backward_ref_f32,
                                     .reference_f64 = tarn__recurrence_backward_ref_f64,
                                     .cpu = tarn__recurrence_backward_cpu};

static void append_dweight(tarn__graph *graph, const tarn__recurrence_spec *spec, int direction, tarn__tensor *du,
                           tarn__tensor *y, tarn__param *weight) {
  tarn__node *node = tarn__graph_node(graph, &dweight_op, sizeof(tarn__recurrence_dweight_attr));
  *(tarn__recurrence_dweight_attr *)node->attr = (tarn__recurrence_dweight_attr){*spec, direction};
  node->in[0] = du;
  node->in[1] = y;
  node->dparam[0] = weight;
  tarn__graph_emit(graph, node);
}

static void gradient(tarn__graph *graph, tarn__node *forward) {
  const tarn__recurrence_spec *spec = forward->attr;
  tarn__tensor *x = forward->in[TARN__RECURRENCE_X], *y = forward->out[TARN__RECURRENCE_Y], *du = NULL;
  tarn__node *node = tarn__graph_node(graph, &backward_op, sizeof *spec);
  *(tarn__recurrence_spec *)node->attr = *spec;
  node->in[TARN__RECURRENCE_BACK_DY] = y->grad;
  node->in[TARN__RECURRENCE_BACK_Y] = y;
  node->in[TARN__RECURRENCE_BACK_GATES] = forward->out[TARN__RECURRENCE_GATES];
  node->in[TARN__RECURRENCE_BACK_EXTRA] = forward->out[TARN__RECURRENCE_EXTRA];
  node->in[TARN__RECURRENCE_BACK_OFFSETS] = forward->in[TARN__RECURRENCE_OFFSETS];
  bool weights = false;
  for (int d = 0; d < spec->directions; d++) {
    const tarn__tensor *bias = forward->in[TARN__RECURRENCE_BIASES + d];
    node->in[TARN__RECURRENCE_BACK_WEIGHTS + d] = forward->in[TARN__RECURRENCE_WEIGHTS + d];
    if (bias && bias->needs_grad) node->dparam[d] = bias->param;
    weights |= forward->in[TARN__RECURRENCE_WEIGHTS + d]->needs_grad;
  }
  if (x->needs_grad)
    node->out[TARN__RECURRENCE_BACK_DX] = tarn__grad_into(graph, x, &node->in[TARN__RECURRENCE_BACK_PREVIOUS]);
  if (weights)
    du = node->out[TARN__RECURRENCE_BACK_DU] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "recurrence du");
  tarn__graph_emit(graph, node);
  for (int d = 0; d < spec->directions; d++) {
    const tarn__tensor *weight = forward->in[TARN__RECURRENCE_WEIGHTS + d];
    if (weight->needs_grad) append_dweight(graph, spec, d, du, y, weight->param);
  }
}

static const tarn__op recurrence_op = {.name = "recurrence",
                                       .grad = gradient,
                                       .flops = flops,
                                       .scratch = tarn__recurrence_forward_scratch,
                                       .in_place = true,
                                       .inplace_out = TARN__RECURRENCE_GATES,
                                       .inplace_in = TARN__RECURRENCE_X,
                                       .reference_f32 = tarn__recurrence_ref_f32,
                                       .reference_f64 = tarn__recurrence_ref_f64,
                                       .cpu = tarn__recurrence_forward_cpu};

static bool fits(const tarn__tensor *x, const tarn__tensor *offsets, const tarn__recurrent weights[2],
                 const tarn__recurrence_spec *spec) {
  const int64_t n = spec->hidden, width = tarn__recurrence_gates(spec) * n;
  if (n < 1 || spec->directions < 1 || spec->directions > 2 || x->cols != spec->directions * width) return false;
  if (offsets->dtype != TARN__I32 || offsets->cols < 1) return false;
  if (spec->cell == TARN__CELL_ECHO && !(spec->leak > 0 && spec->leak <= 1)) return false;
  for (int d = 0; d < spec->directions; d++) {
    const tarn__param *weight = weights[d].weight, *bias = weights[d].bias;
    if (weight->rows != width || weight->cols != n || weight->dtype != x->dtype) return false;
    if (bias && bias->cols != width) return false;
  }
  return true;
}

tarn__tensor *tarn__recurrence(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets,
                               const tarn__recurrent weights[2], tarn__recurrence_spec spec) {
  if (!fits(x, offsets, weights, &spec)) {
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "recurrence: its inputs do not fit together");
    return x;
  }
  tarn__node *node = tarn__graph_node(graph, &recurrence_op, sizeof spec);
  *(tarn__recurrence_spec *)node->attr = spec;
  node->in[TARN__RECURRENCE_X] = x;
  node->in[TARN__RECURRENCE_OFFSETS] = offsets;
  bool trained = x->needs_grad;
  for (int d = 0; d < spec.directions; d++) {
    tarn__tensor *weight = tarn__graph_param(graph, weights[d].weight);
    tarn__tensor *bias = weights[d].bias ? tarn__graph_param(graph, weights[d].bias) : NULL;
    node->in[TARN__RECURRENCE_WEIGHTS + d] = weight;
    node->in[TARN__RECURRENCE_BIASES + d] = bias;
    trained |= weight->needs_grad || (bias && bias->needs_grad);
  }
  const int64_t cols = spec.directions * spec.hidden;
  tarn__tensor *y = node->out[TARN__RECURRENCE_Y] = tarn__graph_tensor(graph, x->dtype, x->rows, cols, "recurrence");
  if (trained)
    node->out[TARN__RECURRENCE_GATES] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "recurrence gates");
  if (trained && spec.cell != TARN__CELL_ECHO)
    node->out[TARN__RECURRENCE_EXTRA] = tarn__graph_tensor(graph, x->dtype, x->rows, cols, "recurrence extra");
  tarn__graph_emit(graph, node);
  return y;
}
