#include "ops/stand_in.h"

static const tarn__op op_copy = {.id = TARN__OP_STAND_IN_COPY, .name = "stand_in_copy"};

static const tarn__op op_add = {
    .id = TARN__OP_STAND_IN_ADD, .name = "stand_in_add", .in_place = true, .inplace_out = 0, .inplace_in = 0};

static const tarn__op op_measure = {.id = TARN__OP_STAND_IN_MEASURE, .name = "stand_in_measure"};

static void require_same(tarn__graph *graph, const tarn__tensor *a, const tarn__tensor *b) {
  if (a->rows != b->rows || a->cols != b->cols || a->dtype != b->dtype)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "stand_in: its inputs do not fit together");
}

tarn__tensor *tarn__stand_in_copy(tarn__graph *graph, tarn__tensor *x) {
  tarn__node *node = tarn__graph_node(graph, &op_copy, 0);
  node->in[0] = x;
  node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "gradient");
  tarn__graph_emit(graph, node);
  return node->out[0];
}

tarn__tensor *tarn__stand_in_add(tarn__graph *graph, tarn__tensor *dy, tarn__tensor *delta, double scale) {
  require_same(graph, dy, delta);
  tarn__node *node = tarn__graph_node(graph, &op_add, sizeof(tarn__stand_in_add_attr));
  ((tarn__stand_in_add_attr *)node->attr)->scale = scale;
  node->in[0] = dy;
  node->in[1] = delta;
  node->out[0] = tarn__graph_tensor(graph, dy->dtype, dy->rows, dy->cols, "gradient");
  tarn__graph_emit(graph, node);
  return node->out[0];
}

tarn__tensor *tarn__stand_in_measure(tarn__graph *graph, tarn__tensor *approximation, tarn__tensor *truth,
                                     tarn__tensor **error) {
  require_same(graph, approximation, truth);
  tarn__node *node = tarn__graph_node(graph, &op_measure, 0);
  node->in[0] = approximation;
  node->in[1] = truth;
  tarn__tensor *sums = tarn__graph_tensor(graph, TARN__F64, 1, 3, "sums of a measurement");
  sums->keep = true;
  node->out[TARN__STAND_IN_SUMS] = sums;
  if (error) *error = tarn__graph_tensor(graph, truth->dtype, truth->rows, truth->cols, "error");
  if (error) node->out[TARN__STAND_IN_ERROR] = *error;
  tarn__graph_emit(graph, node);
  return sums;
}
