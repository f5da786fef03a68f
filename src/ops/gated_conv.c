#include "ops/gated_conv.h"

#include "device/cpu/isa.h"
#include "device/cpu/row_cpu.h"
#include "ops/ops.h"

static tarn_status forward_cpu(const tarn__exec *exec, const tarn__node *node) {
  return TARN__TABLE_NOW(tarn__gated_conv_kernels)->forward(exec, node);
}

static tarn_status backward_cpu(const tarn__exec *exec, const tarn__node *node) {
  return TARN__TABLE_NOW(tarn__gated_conv_kernels)->backward(exec, node);
}

static size_t rows_of_scratch(const tarn__node *node, int rows, int threads) {
  return (size_t)rows * tarn__row_floats(node->in[0]->cols) * sizeof(float) * (size_t)threads;
}

static size_t forward_scratch(const tarn__node *node, int threads) {
  return rows_of_scratch(node, TARN__GC_FORWARD_ROWS, threads);
}

static size_t backward_scratch(const tarn__node *node, int threads) {
  return rows_of_scratch(node, TARN__GC_BACKWARD_ROWS, threads);
}

static const tarn__op op_backward = {.name = "gated_conv_backward",
                                     .scratch = backward_scratch,
                                     .reference_f32 = tarn__gated_conv_backward_ref_f32,
                                     .reference_f64 = tarn__gated_conv_backward_ref_f64,
                                     .cpu = backward_cpu};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__node *back = tarn__graph_node(graph, &op_backward, 0);
  back->in[TARN__GC_DY] = node->out[0]->grad;
  for (int k = TARN__GC_X; k <= TARN__GC_KERNEL; k++) back->in[1 + k] = node->in[k];
  for (int k = TARN__GC_X; k <= TARN__GC_V; k++) {
    const tarn__tensor *in = node->in[k];
    if (in->needs_grad) back->out[k] = tarn__graph_tensor(graph, in->dtype, in->rows, in->cols, "gradient");
  }
  tarn__param *kernel = node->in[TARN__GC_KERNEL]->param;
  back->dparam[0] = kernel->trained ? kernel : NULL;
  tarn__graph_emit(graph, back);
  for (int k = TARN__GC_X; k <= TARN__GC_V; k++)
    if (back->out[k]) tarn__grad_add(graph, node->in[k], back->out[k]);
}

static const tarn__op op_forward = {.name = "gated_conv",
                                    .grad = grad,
                                    .scratch = forward_scratch,
                                    .reference_f32 = tarn__gated_conv_ref_f32,
                                    .reference_f64 = tarn__gated_conv_ref_f64,
                                    .cpu = forward_cpu};

static bool same_shape(const tarn__tensor *a, const tarn__tensor *b) {
  return a->rows == b->rows && a->cols == b->cols && a->dtype == b->dtype;
}

tarn__tensor *tarn__gated_conv(tarn__graph *graph, tarn__tensor *x, tarn__tensor *u, tarn__tensor *v,
                               tarn__tensor *offsets, tarn__param *kernel) {
  bool vector = kernel->dtype == (graph->dtype == TARN__F64 ? TARN__F64 : TARN__F32);
  if (!same_shape(x, u) || !same_shape(x, v) || kernel->rows * kernel->cols != 3 * x->cols || !vector)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "gated_conv: its inputs do not fit together");
  tarn__node *node = tarn__graph_node(graph, &op_forward, 0);
  node->in[TARN__GC_X] = x;
  node->in[TARN__GC_U] = u;
  node->in[TARN__GC_V] = v;
  node->in[TARN__GC_OFFSETS] = offsets;
  node->in[TARN__GC_KERNEL] = tarn__graph_param(graph, kernel);
  node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "gated convolution");
  tarn__graph_emit(graph, node);
  return node->out[0];
}
