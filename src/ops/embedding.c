#include "ops/embedding.h"

#include "ops/offsets.h"
#include "ops/ops.h"

// As many rows of the tables as the result has, not the whole tables.
static double bytes(const tarn__node *node) {
  const tarn__tensor *table = node->in[TARN__EMBEDDING_TABLE], *y = node->out[0];
  const int tables = (table->rows > 0) + (node->in[TARN__EMBEDDING_LEARNED] != NULL);
  const double rows = (double)y->rows * (double)y->cols * (double)tarn__dtype_size(table->dtype) * tables;
  return rows + tarn__tensor_bytes(node->in[TARN__EMBEDDING_IDS]) +
         tarn__tensor_bytes(node->in[TARN__EMBEDDING_POSITIONS]) + tarn__tensor_bytes(y);
}

// The same for the gradient, to which every row is added.
static double backward_bytes(const tarn__node *node) {
  const tarn__tensor *dy = node->in[TARN__EMBEDDING_BACKWARD_DY];
  const double size = node->dparam[0]->dtype == TARN__F64 ? sizeof(double) : sizeof(float);
  return tarn__tensor_bytes(node->in[TARN__EMBEDDING_BACKWARD_IDS]) + tarn__tensor_bytes(dy) +
         2.0 * size * (double)dy->rows * (double)dy->cols;
}

static const tarn__op op_backward = {
    .id = TARN__OP_EMBEDDING_BACKWARD, .name = "embedding_backward", .bytes = backward_bytes};

// The gradient of one of the tables, from which row r of the result takes row ids[r], times `scale`.
static void grad_table(tarn__graph *graph, const tarn__node *node, tarn__tensor *ids, const tarn__tensor *table,
                       double scale) {
  if (!table || !tarn__param_learns(table->param)) return;
  tarn__node *back = tarn__graph_node(graph, &op_backward, sizeof(tarn__embedding_attr));
  *(tarn__embedding_attr *)back->attr = *(const tarn__embedding_attr *)node->attr;
  ((tarn__embedding_attr *)back->attr)->scale = scale;
  back->in[TARN__EMBEDDING_BACKWARD_IDS] = ids;
  back->in[TARN__EMBEDDING_BACKWARD_DY] = node->out[0]->grad;
  back->dparam[0] = table->param;
  tarn__graph_emit(graph, back);
}

static void grad(tarn__graph *graph, tarn__node *node) {
  grad_table(graph, node, node->in[TARN__EMBEDDING_IDS], node->in[TARN__EMBEDDING_TABLE],
             ((const tarn__embedding_attr *)node->attr)->scale);
  grad_table(graph, node, node->in[TARN__EMBEDDING_POSITIONS], node->in[TARN__EMBEDDING_LEARNED], 1.0);
}

static tarn_status check(const tarn__node *node) {
  const tarn__tensor *learned = node->in[TARN__EMBEDDING_LEARNED];
  if (learned)
    TARN_TRY(tarn__numbers_check(node->in[TARN__EMBEDDING_POSITIONS], learned->rows, "embedding", "position"));
  const int64_t rows = node->in[TARN__EMBEDDING_TABLE]->rows;
  return rows == 0 ? TARN_STATUS_OK : tarn__numbers_check(node->in[TARN__EMBEDDING_IDS], rows, "embedding", "id");
}

static const tarn__op op_embedding = {
    .id = TARN__OP_EMBEDDING, .name = "embedding", .grad = grad, .bytes = bytes, .cheap = true, .check = check};

static tarn__tensor *build(tarn__graph *graph, tarn__tensor *ids, tarn__tensor *positions, tarn__param *table,
                           tarn__param *learned, double scale, double steps, int64_t first, int64_t shift,
                           double dropout) {
  bool fits = ids->dtype == TARN__I32 && ids->rows == 1;
  if (positions) fits = fits && positions->dtype == TARN__I32 && positions->rows == 1 && positions->cols == ids->cols;
  if (learned) fits = fits && positions && learned->cols == table->cols;
  if (shift != 0) fits = fits && positions && !learned && shift > 0 && shift <= INT32_MAX;
  if (!fits) tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "embedding: its inputs do not fit together");
  tarn__node *node = tarn__graph_node(graph, &op_embedding, sizeof(tarn__embedding_attr));
  tarn__embedding_attr *attr = node->attr;
  *attr = (tarn__embedding_attr){
      .scale = scale, .steps = steps, .dropout = tarn__dropout_make(graph, dropout), .first = first};
  if (shift > 0) attr->shift_site = tarn__graph_site(graph);
  if (graph->training) attr->shift = (uint32_t)shift;
  node->in[TARN__EMBEDDING_IDS] = ids;
  node->in[TARN__EMBEDDING_POSITIONS] = positions;
  node->in[TARN__EMBEDDING_TABLE] = tarn__graph_param(graph, table);
  node->in[TARN__EMBEDDING_LEARNED] = learned ? tarn__graph_param(graph, learned) : NULL;
  tarn__tensor *y = node->out[0] = tarn__graph_tensor(graph, graph->dtype, ids->cols, table->cols, "embedding");
  tarn__graph_emit(graph, node);
  return y;
}

static double steps_of(const tarn__param *table) {
  const int64_t half = table->cols / 2;
  return half > 1 ? (double)(half - 1) : 1.0;
}

tarn__tensor *tarn__embedding(tarn__graph *graph, tarn__tensor *ids, tarn__tensor *positions, tarn__param *table,
                              tarn__param *learned, double scale, double dropout) {
  return build(graph, ids, positions, table, learned, scale, steps_of(table), 0, 0, dropout);
}

tarn__tensor *tarn__embedding_shifted(tarn__graph *graph, tarn__tensor *ids, tarn__tensor *positions,
                                      tarn__param *table, double scale, int64_t shift, double dropout) {
  return build(graph, ids, positions, table, NULL, scale, steps_of(table), 0, shift, dropout);
}

tarn__tensor *tarn__embedding_from(tarn__graph *graph, tarn__tensor *ids, tarn__tensor *positions, tarn__param *table,
                                   double scale, int64_t first, double dropout) {
  return build(graph, ids, positions, table, NULL, scale, steps_of(table), first, 0, dropout);
}

tarn__tensor *tarn__embedding_paper(tarn__graph *graph, tarn__tensor *ids, tarn__tensor *positions, tarn__param *table,
                                    double scale, double dropout) {
  return build(graph, ids, positions, table, NULL, scale, (double)(table->cols / 2), 0, 0, dropout);
}
