// Rows of a matrix by number.
#include "ops/select.h"

#include "graph/tangents.h"
#include "ops/offsets.h"
#include "ops/ops.h"

static tarn_status check(const tarn__node *node) {
  return tarn__numbers_check(node->in[TARN__SELECT_ROWS], node->in[TARN__SELECT_X]->rows, "select_rows", "row");
}

// The selected rows, twice.
static double bytes(const tarn__node *node) {
  return tarn__tensor_bytes(node->in[TARN__SELECT_ROWS]) + 2.0 * tarn__tensor_bytes(node->out[0]);
}

static tarn_status check_backward(const tarn__node *node) {
  return tarn__numbers_check(node->in[TARN__SELECT_ROWS], node->out[0]->rows, "select_rows_backward", "row");
}

// The selected rows are read and added; without a gradient so far all others are also written.
static double backward_bytes(const tarn__node *node) {
  const double rows = tarn__tensor_bytes(node->in[TARN__SELECT_DY]);
  return tarn__tensor_bytes(node->in[TARN__SELECT_ROWS]) + 3.0 * rows +
         (node->in[TARN__SELECT_PREVIOUS] ? 0.0 : tarn__tensor_bytes(node->out[0]));
}

static const tarn__op op_backward = {.id = TARN__OP_SELECT_ROWS_BACKWARD,
                                     .name = "select_rows_backward",
                                     .bytes = backward_bytes,
                                     .check = check_backward};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[TARN__SELECT_X];
  if (!x->needs_grad) return;
  tarn__node *back = tarn__graph_node(graph, &op_backward, 0);
  back->in[TARN__SELECT_DY] = node->out[0]->grad;
  back->in[TARN__SELECT_ROWS] = node->in[TARN__SELECT_ROWS];
  back->out[0] = tarn__grad_into(graph, x, &back->in[TARN__SELECT_PREVIOUS]);
  tarn__graph_emit(graph, back);
}

static void tangent(tarn__graph *graph, tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__SELECT_X];
  tarn__tensor *rows = tarn__tangent_rows(graph, node->in[TARN__SELECT_ROWS], x->rows);
  node->out[0]->tangent = tarn__select_rows(graph, x->tangent, rows);
}

static const tarn__op op_select_rows = {.id = TARN__OP_SELECT_ROWS,
                                        .name = "select_rows",
                                        .grad = grad,
                                        .tangent = tangent,
                                        .bytes = bytes,
                                        .cheap = true,
                                        .check = check};

tarn__tensor *tarn__select_rows(tarn__graph *graph, tarn__tensor *x, tarn__tensor *rows) {
  if (rows->dtype != TARN__I32)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "select_rows: the numbers of rows are not integers");
  tarn__node *node = tarn__graph_node(graph, &op_select_rows, 0);
  node->in[TARN__SELECT_X] = x;
  node->in[TARN__SELECT_ROWS] = rows;
  tarn__tensor *out = node->out[0] = tarn__graph_tensor(graph, x->dtype, rows->cols, x->cols, "selected rows");
  tarn__graph_emit(graph, node);
  return out;
}
