// The mean of the rows of each sentence.
#include "ops/sentence_mean.h"

#include "graph/tangents.h"
#include "ops/offsets.h"
#include "ops/ops.h"

static tarn_status check(const tarn__node *node) {
  return tarn__offsets_check(node->in[TARN__SENTENCE_MEAN_OFFSETS], node->in[TARN__SENTENCE_MEAN_X]->rows,
                             "sentence_mean", "x");
}

static tarn_status check_backward(const tarn__node *node) {
  return tarn__offsets_check(node->in[TARN__SENTENCE_MEAN_OFFSETS], node->out[0]->rows, "sentence_mean_backward", "x");
}

static const tarn__op op_backward = {
    .id = TARN__OP_SENTENCE_MEAN_BACKWARD, .name = "sentence_mean_backward", .check = check_backward};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[TARN__SENTENCE_MEAN_X];
  if (!x->needs_grad) return;
  tarn__node *back = tarn__graph_node(graph, &op_backward, 0);
  back->in[TARN__SENTENCE_MEAN_DY] = node->out[0]->grad;
  back->in[TARN__SENTENCE_MEAN_OFFSETS] = node->in[TARN__SENTENCE_MEAN_OFFSETS];
  back->out[0] = tarn__grad_into(graph, x, &back->in[TARN__SENTENCE_MEAN_PREVIOUS]);
  tarn__graph_emit(graph, back);
}

static void tangent(tarn__graph *graph, tarn__node *node) {
  node->out[0]->tangent = tarn__sentence_mean(graph, node->in[TARN__SENTENCE_MEAN_X]->tangent,
                                              tarn__tangent_offsets(graph, node->in[TARN__SENTENCE_MEAN_OFFSETS]));
}

static const tarn__op op_mean = {.id = TARN__OP_SENTENCE_MEAN,
                                 .name = "sentence_mean",
                                 .grad = grad,
                                 .tangent = tangent,
                                 .cheap = true,
                                 .check = check};

tarn__tensor *tarn__sentence_mean(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets) {
  tarn__node *node = tarn__graph_node(graph, &op_mean, 0);
  node->in[TARN__SENTENCE_MEAN_X] = x;
  node->in[TARN__SENTENCE_MEAN_OFFSETS] = offsets;
  tarn__tensor *y = node->out[0] = tarn__graph_tensor(graph, x->dtype, offsets->cols - 1, x->cols, "sentence means");
  tarn__graph_emit(graph, node);
  return y;
}
