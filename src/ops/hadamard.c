#define TARN_REAL double  // of tarn__hadamard_dense()
#include "ops/hadamard_row.h"

#include "base/memory.h"
#include "graph/tangents.h"
#include "ops/activation.h"
#include "ops/linear.h"
#include "ops/ops.h"

tarn__hadamard_shape tarn__hadamard_shape_of(int64_t out, int64_t in, int blocks) {
  tarn__hadamard_shape shape = {.out = out / blocks, .in = in, .blocks = blocks, .parts = 1};
  int64_t least = shape.out < in ? shape.out : in, most = shape.out < in ? in : shape.out;
  shape.width = most % least == 0 ? least : most;
  if (most % least == 0) shape.parts = most / least;
  shape.window = 1;
  while (shape.window <= shape.width / 2) shape.window *= 2;
  shape.rounds = shape.window == shape.width ? 3 : 6;
  shape.scale = 1.0 / sqrt((double)shape.parts);
  return shape;
}

tarn__hadamard_shape tarn__hadamard_shape_signs(const tarn__param *signs) {
  tarn__hadamard_shape shape = tarn__hadamard_shape_of(signs->out, signs->in, signs->init.blocks);
  shape.scale *= signs->init.gain;
  return shape;
}

tarn_status tarn__hadamard_dense(float *values, const float *signs, const tarn__hadamard_shape *shape) {
  int64_t rows = shape->blocks * shape->out, width = shape->width;
  size_t sign_count = (size_t)(tarn__hadamard_sign_rows(shape) * width);
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, sign_count + (size_t)(rows + shape->in + width), sizeof(double)));
  double *sign = memory;
  double *x = sign + sign_count;
  double *y = x + shape->in;
  double *work = y + rows;
  for (size_t i = 0; i < sign_count; i++) sign[i] = signs[i];
  // Column i is the image of unit vector i.
  for (int64_t i = 0; i < shape->in; i++) {
    x[i] = 1.0;
    tarn__hadamard_row(y, x, sign, shape, work);
    x[i] = 0.0;
    for (int64_t r = 0; r < rows; r++) values[r * shape->in + i] = (float)y[r];
  }
  tarn__free(memory);
  return TARN_STATUS_OK;
}

// Additions of the butterflies.
static double flops(const tarn__node *node) {
  const tarn__hadamard_shape *shape = &((const tarn__hadamard_attr *)node->attr)->shape;
  double n = (double)shape->window, rounds = (double)(shape->blocks * shape->parts * shape->rounds);
  return (double)node->in[0]->rows * rounds * n * log2(n);
}

static const tarn__op dx_op = {.id = TARN__OP_HADAMARD_DX, .name = "hadamard_dx", .flops = flops};

static void gradient(tarn__graph *graph, tarn__node *forward) {
  tarn__tensor *x = forward->in[0], *bias = forward->in[2], *y = forward->out[0], *dz = y->grad;
  bool masked = ((const tarn__hadamard_attr *)forward->attr)->relu;
  // The bias sums already masked gradients.
  if (bias != NULL && bias->needs_grad) {
    dz = tarn__linear_dz(graph, dz, y, bias->param, masked ? TARN__RELU : TARN__IDENTITY);
    masked = false;
  }
  if (!x->needs_grad) return;
  tarn__node *node = tarn__graph_node(graph, &dx_op, sizeof(tarn__hadamard_attr));
  tarn__hadamard_attr *attr = node->attr;
  *attr = *(const tarn__hadamard_attr *)forward->attr;
  node->in[0] = dz;
  node->in[1] = forward->in[1];
  node->in[2] = masked ? y : NULL;
  attr->relu = false;
  node->out[0] = tarn__grad_into(graph, x, &node->in[3]);
  tarn__graph_emit(graph, node);
}

// The product of all directions without the bias, then the slope of relu.
static void tangent(tarn__graph *graph, tarn__node *node) {
  const bool relu = ((const tarn__hadamard_attr *)node->attr)->relu;
  tarn__tensor *y = node->out[0];
  tarn__tensor *dz = tarn__hadamard(graph, node->in[0]->tangent, node->in[1]->param, NULL, TARN__IDENTITY);
  y->tangent = tarn__activation_tangent(graph, dz, y, relu ? TARN__RELU : TARN__IDENTITY);
}

static const tarn__op hadamard_op = {
    .id = TARN__OP_HADAMARD, .name = "hadamard", .grad = gradient, .tangent = tangent, .flops = flops};

static bool fits(const tarn__tensor *x, const tarn__param *signs, const tarn__param *bias,
                 const tarn__hadamard_shape *shape) {
  return x->cols == signs->in && signs->rows == tarn__hadamard_sign_rows(shape) && signs->cols == shape->width &&
         !signs->trained && (bias == NULL || bias->cols == signs->out);
}

tarn__tensor *tarn__hadamard(tarn__graph *graph, tarn__tensor *x, tarn__param *signs, tarn__param *bias,
                             tarn__activation activation) {
  tarn__hadamard_shape shape = tarn__hadamard_shape_signs(signs);
  if (!fits(x, signs, bias, &shape))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "hadamard: the signs %s do not fit the input or bias, or are trained",
                     signs->name);
  tarn__node *node = tarn__graph_node(graph, &hadamard_op, sizeof(tarn__hadamard_attr));
  *(tarn__hadamard_attr *)node->attr = (tarn__hadamard_attr){.shape = shape, .relu = activation == TARN__RELU};
  node->in[0] = x;
  node->in[1] = tarn__graph_param(graph, signs);
  node->in[2] = bias != NULL ? tarn__graph_param(graph, bias) : NULL;
  node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, signs->out, "hadamard");
  tarn__graph_emit(graph, node);
  return tarn__keeps_z(activation) ? tarn__activate(graph, node->out[0], activation) : node->out[0];
}
