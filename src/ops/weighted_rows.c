#include "ops/weighted_rows.h"

#include "graph/tangents.h"

// As many rows of the table as are named, not the whole table.
static double rows_of(const tarn__node *node) {
  const tarn__tensor *table = node->in[TARN__WEIGHTED_TABLE], *ids = node->in[TARN__WEIGHTED_IDS];
  return (double)(ids->rows * ids->cols) * (double)table->cols * (double)tarn__dtype_size(table->dtype);
}

static double bytes(const tarn__node *node) {
  return rows_of(node) + tarn__tensor_bytes(node->in[TARN__WEIGHTED_IDS]) +
         tarn__tensor_bytes(node->in[TARN__WEIGHTED_GATES]) + tarn__tensor_bytes(node->out[0]);
}

static double backward_bytes(const tarn__node *node) {
  const tarn__tensor *table = node->in[TARN__WEIGHTED_TABLE], *ids = node->in[TARN__WEIGHTED_IDS];
  const double named = (double)(ids->rows * ids->cols) * (double)table->cols;
  double moved = tarn__tensor_bytes(node->in[TARN__WEIGHTED_DY]) + tarn__tensor_bytes(ids) +
                 tarn__tensor_bytes(node->in[TARN__WEIGHTED_GATES]);
  if (node->out[TARN__WEIGHTED_DGATES]) moved += rows_of(node) + tarn__tensor_bytes(node->out[TARN__WEIGHTED_DGATES]);
  if (node->out[TARN__WEIGHTED_DTABLE]) moved += rows_of(node);
  if (node->dparam[0]) moved += 2.0 * (table->dtype == TARN__F64 ? sizeof(double) : sizeof(float)) * named;
  return moved;
}

static double flops(const tarn__node *node) {
  const tarn__tensor *table = node->in[TARN__WEIGHTED_TABLE], *ids = node->in[TARN__WEIGHTED_IDS];
  return 2.0 * (double)(ids->rows * ids->cols) * (double)table->cols;
}

static double backward_flops(const tarn__node *node) {
  const bool table = node->out[TARN__WEIGHTED_DTABLE] || node->dparam[0];
  return flops(node) * ((node->out[TARN__WEIGHTED_DGATES] ? 1.0 : 0.0) + (table ? 1.0 : 0.0));
}

static const tarn__op op_backward = {.id = TARN__OP_WEIGHTED_ROWS_BACKWARD,
                                     .name = "weighted_rows_backward",
                                     .flops = backward_flops,
                                     .bytes = backward_bytes};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *table = node->in[TARN__WEIGHTED_TABLE], *gates = node->in[TARN__WEIGHTED_GATES];
  tarn__node *back = tarn__graph_node(graph, &op_backward, 0);
  back->in[TARN__WEIGHTED_TABLE] = table;
  back->in[TARN__WEIGHTED_IDS] = node->in[TARN__WEIGHTED_IDS];
  back->in[TARN__WEIGHTED_GATES] = gates;
  back->in[TARN__WEIGHTED_DY] = node->out[0]->grad;
  tarn__tensor *dgates = NULL, *dtable = NULL;
  if (gates->needs_grad)
    dgates = back->out[TARN__WEIGHTED_DGATES] =
        tarn__graph_tensor(graph, gates->dtype, gates->rows, gates->cols, "gradient of gates");
  if (table->needs_grad && table->param)
    back->dparam[0] = table->param;
  else if (table->needs_grad)
    dtable = back->out[TARN__WEIGHTED_DTABLE] =
        tarn__graph_tensor(graph, table->dtype, table->rows, table->cols, "gradient of rows");
  tarn__graph_emit(graph, back);
  if (dgates) tarn__grad_add(graph, gates, dgates);
  if (dtable) tarn__grad_add(graph, table, dtable);
}

static double tangent_flops(const tarn__node *node) {
  const int sums = (node->in[TARN__WEIGHTED_TANGENT_TABLE] != NULL) + (node->in[TARN__WEIGHTED_TANGENT_GATES] != NULL);
  return sums * flops(node) * (double)tarn__tangent_directions(node->out[0], node->in[TARN__WEIGHTED_IDS]->rows);
}

static const tarn__op op_tangent = {
    .id = TARN__OP_WEIGHTED_ROWS_TANGENT, .name = "weighted_rows_tangent", .flops = tangent_flops};

static void tangent(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *y = node->out[0];
  tarn__node *push = tarn__graph_node(graph, &op_tangent, 0);
  for (int i = 0; i <= TARN__WEIGHTED_GATES; i++) push->in[i] = node->in[i];
  push->in[TARN__WEIGHTED_TANGENT_TABLE] = node->in[TARN__WEIGHTED_TABLE]->tangent;
  push->in[TARN__WEIGHTED_TANGENT_GATES] = node->in[TARN__WEIGHTED_GATES]->tangent;
  push->out[0] = y->tangent = tarn__tangent_new(graph, y, "tangent of weighted rows");
  tarn__graph_emit(graph, push);
}

static const tarn__op op_weighted_rows = {.id = TARN__OP_WEIGHTED_ROWS,
                                          .name = "weighted_rows",
                                          .grad = grad,
                                          .tangent = tangent,
                                          .flops = flops,
                                          .bytes = bytes};

tarn__tensor *tarn__weighted_rows(tarn__graph *graph, tarn__tensor *table, tarn__tensor *ids, tarn__tensor *gates) {
  if (ids->dtype != TARN__I32 || ids->rows != gates->rows || ids->cols != gates->cols)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "weighted_rows: ids and gates do not fit together");
  tarn__node *node = tarn__graph_node(graph, &op_weighted_rows, 0);
  node->in[TARN__WEIGHTED_TABLE] = table;
  node->in[TARN__WEIGHTED_IDS] = ids;
  node->in[TARN__WEIGHTED_GATES] = gates;
  node->out[0] = tarn__graph_tensor(graph, graph->dtype, ids->rows, table->cols, "weighted rows");
  tarn__graph_emit(graph, node);
  return node->out[0];
}
