#include "ops/neighbours.h"

#include "graph/tangents.h"
#include "ops/offsets.h"

static tarn_status check(const tarn__node *node) {
  return tarn__offsets_check(node->in[TARN__NEIGHBOURS_OFFSETS], node->in[TARN__NEIGHBOURS_X]->rows, "neighbours",
                             "sentences");
}

static const tarn__op op_backward = {.id = TARN__OP_NEIGHBOURS_BACKWARD, .name = "neighbours_backward", .check = check};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__node *back = tarn__graph_node(graph, &op_backward, sizeof(tarn__taps));
  *(tarn__taps *)back->attr = *(const tarn__taps *)node->attr;
  back->in[TARN__NEIGHBOURS_DY] = node->out[0]->grad;
  back->in[TARN__NEIGHBOURS_OFFSETS] = node->in[TARN__NEIGHBOURS_OFFSETS];
  back->out[0] = tarn__grad_into(graph, node->in[TARN__NEIGHBOURS_X], &back->in[TARN__NEIGHBOURS_PREVIOUS]);
  tarn__graph_emit(graph, back);
}

static void tangent(tarn__graph *graph, tarn__node *node) {
  node->out[0]->tangent = tarn__neighbours(graph, node->in[TARN__NEIGHBOURS_X]->tangent,
                                           tarn__tangent_offsets(graph, node->in[TARN__NEIGHBOURS_OFFSETS]),
                                           *(const tarn__taps *)node->attr);
}

static const tarn__op op_neighbours = {
    .id = TARN__OP_NEIGHBOURS, .name = "neighbours", .grad = grad, .tangent = tangent, .cheap = true, .check = check};

tarn__tensor *tarn__neighbours(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets, tarn__taps taps) {
  if (taps.width < 1 || taps.before < 0 || taps.before >= taps.width)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "neighbours: a row sees %lld rows from %lld before itself on",
                     (long long)taps.width, (long long)taps.before);
  tarn__node *node = tarn__graph_node(graph, &op_neighbours, sizeof taps);
  *(tarn__taps *)node->attr = taps;
  node->in[TARN__NEIGHBOURS_X] = x;
  node->in[TARN__NEIGHBOURS_OFFSETS] = offsets;
  node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, taps.width * x->cols, "neighbours");
  tarn__graph_emit(graph, node);
  return node->out[0];
}
