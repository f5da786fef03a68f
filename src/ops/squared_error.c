// Regression: a number per row, and its squared error.
#include "ops/squared_error.h"

#include "ops/ops.h"
#include "ops/output_tangent.h"

static double flops(const tarn__node *node) {
  return 2.0 * (double)node->in[TARN__SQUARED_ERROR_X]->rows * (double)node->in[TARN__SQUARED_ERROR_X]->cols;
}

static double gradient_flops(const tarn__node *node) {
  return flops(node) * ((node->out[TARN__SQUARED_ERROR_DX] != NULL) + (node->dparam[0] != NULL));
}

// The forward node itself computes the gradients, for which it gets additional outputs.
static void gradient(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[TARN__SQUARED_ERROR_X];
  tarn__tensor *weight = node->in[TARN__SQUARED_ERROR_WEIGHT], *bias = node->in[TARN__SQUARED_ERROR_BIAS];
  if (weight->needs_grad) node->dparam[0] = weight->param;
  if (bias->needs_grad) node->dparam[1] = bias->param;
  if (!x->needs_grad) return;
  node->out[TARN__SQUARED_ERROR_DX] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "squared_error_dx");
  tarn__grad_add(graph, x, node->out[TARN__SQUARED_ERROR_DX]);
}

static void tangent(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *values = node->in[TARN__SQUARED_ERROR_VALUES], *numbers = node->out[TARN__SQUARED_ERROR_NUMBERS];
  numbers->tangent = tarn__linear(graph, node->in[TARN__SQUARED_ERROR_X]->tangent,
                                  node->in[TARN__SQUARED_ERROR_WEIGHT]->param, NULL, TARN__IDENTITY);
  if (!values) return;
  const tarn__output_tangent_attr attr = {.form = TARN__OUTPUT_TANGENT_SQUARES};
  tarn__output_tangent(graph, attr, numbers->tangent, numbers, values, node->out[TARN__SQUARED_ERROR_LOSS], NULL);
}

static const tarn__op op_squared_error = {.id = TARN__OP_SQUARED_ERROR,
                                          .name = "squared_error",
                                          .grad = gradient,
                                          .tangent = tangent,
                                          .flops = flops,
                                          .gradient_flops = gradient_flops};

tarn__tensor *tarn__squared_error(tarn__graph *graph, tarn__tensor *x, tarn__param *weight, tarn__param *bias,
                                  tarn__tensor *values, double grad_scale, tarn__tensor **numbers) {
  if (weight->rows != 1 || weight->cols != x->cols || bias->rows != 1 || bias->cols != 1 ||
      (values && (values->dtype != TARN__I32 || values->cols != x->rows)))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "squared error: %s [%lld, %lld] or the values do not fit its input",
                     weight->name, (long long)weight->rows, (long long)weight->cols);
  tarn__node *node = tarn__graph_node(graph, &op_squared_error, sizeof(tarn__squared_error_attr));
  *(tarn__squared_error_attr *)node->attr = (tarn__squared_error_attr){grad_scale};
  node->in[TARN__SQUARED_ERROR_X] = x;
  node->in[TARN__SQUARED_ERROR_WEIGHT] = tarn__graph_param(graph, weight);
  node->in[TARN__SQUARED_ERROR_BIAS] = tarn__graph_param(graph, bias);
  node->in[TARN__SQUARED_ERROR_VALUES] = values;
  tarn__tensor *loss = node->out[TARN__SQUARED_ERROR_LOSS] = tarn__graph_tensor(graph, TARN__F64, 1, 2, "loss");
  const tarn__dtype dtype = x->dtype == TARN__F64 ? TARN__F64 : TARN__F32;
  *numbers = node->out[TARN__SQUARED_ERROR_NUMBERS] = tarn__graph_tensor(graph, dtype, x->rows, 1, "predicted numbers");
  tarn__graph_emit(graph, node);
  return loss;
}
