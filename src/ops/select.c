// Rows of a matrix by number.
#include "ops/offsets.h"
#include "ops/ops.h"

static tarn_status check(const tarn__node *node) {
  return tarn__numbers_check(node->in[1], node->in[0]->rows, "select_rows", "row");
}

// The rows that are selected, twice.
static double bytes(const tarn__node *node) {
  return tarn__tensor_bytes(node->in[1]) + 2.0 * tarn__tensor_bytes(node->out[0]);
}

static const tarn__op op_select_rows = {
    .id = TARN__OP_SELECT_ROWS, .name = "select_rows", .bytes = bytes, .check = check};

tarn__tensor *tarn__select_rows(tarn__graph *graph, tarn__tensor *x, tarn__tensor *rows) {
  if (rows->dtype != TARN__I32)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "select_rows: the numbers of rows are not integers");
  tarn__node *node = tarn__graph_node(graph, &op_select_rows, 0);
  node->in[0] = x;
  node->in[1] = rows;
  tarn__tensor *out = node->out[0] = tarn__graph_tensor(graph, x->dtype, rows->cols, x->cols, "selected rows");
  tarn__graph_emit(graph, node);
  return out;
}
