#include "ops/adaptive.h"

#include <string.h>

#include "graph/tangents.h"
#include "ops/offsets.h"

static int64_t rows_of(tarn__tensor *const *parts, int count) {
  int64_t rows = 0;
  for (int k = 0; k < count; k++) rows += parts[k]->rows;
  return rows;
}

// Rows [first, first + count) of a list; of a planned one only the number.
static tarn__tensor *part_of_list(tarn__graph *graph, const tarn__tensor *list, int64_t first, int64_t count) {
  return tarn__graph_input(graph, count, list->host ? list->host + first : NULL, "rows of a band");
}

static void rows_gradient(tarn__graph *graph, tarn__node *node) {
  const tarn__tensor *rows = node->in[TARN__ADAPTIVE_ROWS];
  int64_t first = 0;
  for (int k = 0; k < TARN__ADAPTIVE_PARTS && node->in[k]; k++) {
    tarn__tensor *part = node->in[k];
    if (part->needs_grad)
      tarn__grad_add(graph, part,
                     tarn__select_rows(graph, node->out[0]->grad, part_of_list(graph, rows, first, part->rows)));
    first += part->rows;
  }
}

// The row numbers for all directions, part by part, from part number `part` on.
static tarn__tensor *rows_of_directions(tarn__graph *graph, const tarn__node *node, int part) {
  const tarn__tensor *rows = node->in[TARN__ADAPTIVE_ROWS];
  const int64_t count = graph->directions * rows->cols, period = node->out[0]->rows;
  void *memory = NULL;
  if (graph->directions * period > INT32_MAX)
    tarn__graph_fail(graph, TARN_STATUS_UNSUPPORTED, "%d directions of %lld rows are too many to be counted",
                     graph->directions, (long long)period);
  if (rows->host && graph->status == TARN_STATUS_OK)
    graph->status = tarn__arena_alloc(&graph->arena, &memory, (size_t)count + 1, sizeof(int32_t));
  int32_t *to = graph->status == TARN_STATUS_OK ? memory : NULL;
  const int32_t *from = rows->host;
  for (int k = part; to && k < TARN__ADAPTIVE_PARTS && node->in[k]; from += node->in[k++]->rows)
    for (int64_t i = 0; i < graph->directions * node->in[k]->rows; i++)
      *to++ = from[i % node->in[k]->rows] + (int32_t)(i / node->in[k]->rows * period);
  return tarn__graph_input(graph, count, memory, "rows of bands in all directions");
}

// All of these ops are linear in their parts, which move together or not at all.
static void push_parts(tarn__graph *graph, tarn__node *node, int part_of_rows) {
  tarn__node *push = tarn__graph_node(graph, node->op, node->attr_bytes);
  if (node->attr_bytes > 0) memcpy(push->attr, node->attr, node->attr_bytes);
  for (int k = 0; k < TARN__ADAPTIVE_PARTS && node->in[k]; k++) {
    push->in[k] = node->in[k]->tangent;
    if (!push->in[k])
      tarn__graph_fail(graph, TARN_STATUS_UNSUPPORTED, "%s: some of its bands move and some do not", node->op->name);
  }
  if (node->in[TARN__ADAPTIVE_ROWS]) push->in[TARN__ADAPTIVE_ROWS] = rows_of_directions(graph, node, part_of_rows);
  push->out[0] = node->out[0]->tangent = tarn__tangent_new(graph, node->out[0], "tangent of bands");
  tarn__graph_emit(graph, push);
}

static void rows_tangent(tarn__graph *graph, tarn__node *node) { push_parts(graph, node, 0); }

static tarn_status rows_check(const tarn__node *node) {
  return tarn__numbers_check(node->in[TARN__ADAPTIVE_ROWS], node->out[0]->rows, "adaptive_rows", "row");
}

static const tarn__op rows_op = {.id = TARN__OP_ADAPTIVE_ROWS,
                                 .name = "adaptive_rows",
                                 .grad = rows_gradient,
                                 .tangent = rows_tangent,
                                 .cheap = true,
                                 .check = rows_check};

tarn__tensor *tarn__adaptive_rows(tarn__graph *graph, tarn__tensor *const *parts, int count, tarn__tensor *rows) {
  bool fits = count >= 1 && count <= TARN__ADAPTIVE_PARTS && rows->dtype == TARN__I32;
  for (int k = 0; fits && k < count; k++) fits = parts[k]->cols == parts[0]->cols && parts[k]->dtype == parts[0]->dtype;
  if (!fits || rows->cols != rows_of(parts, count)) {
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "adaptive_rows: the bands and their rows do not fit together");
    return &graph->spare_tensor;
  }
  tarn__node *node = tarn__graph_node(graph, &rows_op, 0);
  for (int k = 0; k < count; k++) node->in[k] = parts[k];
  node->in[TARN__ADAPTIVE_ROWS] = rows;
  tarn__tensor *y = node->out[0] =
      tarn__graph_tensor(graph, parts[0]->dtype, rows->cols, parts[0]->cols, "vectors of all bands");
  tarn__graph_emit(graph, node);
  return y;
}

// The gradient of a loss is a number that its node already has; this only invokes its rule.
static void sum_gradient(tarn__graph *graph, tarn__node *node) {
  (void)graph;
  for (int k = 0; k < TARN__ADAPTIVE_PARTS && node->in[k]; k++) node->in[k]->grad = node->out[0];
}

static void sum_tangent(tarn__graph *graph, tarn__node *node) { push_parts(graph, node, 1); }

static tarn_status sum_check(const tarn__node *node) {
  const tarn__tensor *rows = node->in[TARN__ADAPTIVE_ROWS];
  return rows ? tarn__numbers_check(rows, node->out[0]->rows, "loss_sum", "row") : TARN_STATUS_OK;
}

static const tarn__op sum_op = {
    .id = TARN__OP_LOSS_SUM, .name = "loss_sum", .grad = sum_gradient, .tangent = sum_tangent, .check = sum_check};

tarn__tensor *tarn__loss_sum(tarn__graph *graph, tarn__tensor *const *losses, int count) {
  tarn__node *node = tarn__graph_node(graph, &sum_op, 0);
  for (int k = 0; k < count; k++) node->in[k] = losses[k];
  tarn__tensor *sum = node->out[0] = tarn__graph_tensor(graph, TARN__F64, 1, 2, "loss");
  tarn__graph_emit(graph, node);
  return sum;
}

tarn__tensor *tarn__adaptive_row_losses(tarn__graph *graph, tarn__tensor *head, tarn__tensor *const *tails, int count,
                                        tarn__tensor *rows) {
  if (rows->cols != rows_of(tails, count) || count >= TARN__ADAPTIVE_PARTS)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "loss_sum: the rows of the tails do not fit");
  tarn__node *node = tarn__graph_node(graph, &sum_op, 0);
  node->in[0] = head;
  for (int k = 0; k < count; k++) node->in[k + 1] = tails[k];
  node->in[TARN__ADAPTIVE_ROWS] = rows;
  tarn__tensor *losses = node->out[0] = tarn__graph_tensor(graph, TARN__F64, head->rows, 2, "token_losses");
  tarn__graph_emit(graph, node);
  return losses;
}

static void scores_tangent(tarn__graph *graph, tarn__node *node) { push_parts(graph, node, 0); }

static const tarn__op scores_op = {
    .id = TARN__OP_ADAPTIVE_SCORES, .name = "adaptive_scores", .tangent = scores_tangent};

tarn__tensor *tarn__adaptive_log_probabilities(tarn__graph *graph, tarn__tensor *head, tarn__tensor *const *tails,
                                               int count) {
  tarn__node *node = tarn__graph_node(graph, &scores_op, sizeof(tarn__adaptive_attr));
  int64_t words = head->cols - count;
  node->in[0] = head;
  for (int k = 0; k < count; k++) {
    node->in[k + 1] = tails[k];
    words += tails[k]->cols;
  }
  tarn__tensor *out = node->out[0] = tarn__graph_tensor(graph, head->dtype, head->rows, words, "log_probabilities");
  tarn__graph_emit(graph, node);
  return out;
}

tarn__top tarn__adaptive_top(tarn__graph *graph, tarn__top head, tarn__top tail, tarn__adaptive_merge merge) {
  const int64_t rows = head.values->rows, best = head.ids->cols - 1;
  if (best < 1 || tail.values->rows != rows)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "adaptive_scores: the best words do not fit together");
  tarn__node *node = tarn__graph_node(graph, &scores_op, sizeof(tarn__adaptive_attr));
  *(tarn__adaptive_attr *)node->attr = (tarn__adaptive_attr){.top = true, .merge = merge};
  node->in[TARN__ADAPTIVE_VALUES] = head.values;
  node->in[TARN__ADAPTIVE_IDS] = head.ids;
  node->in[TARN__ADAPTIVE_TAIL_VALUES] = tail.values;
  node->in[TARN__ADAPTIVE_TAIL_IDS] = tail.ids;
  const tarn__top top = {tarn__graph_tensor(graph, head.values->dtype, rows, best + 1, "best_log_probabilities"),
                         tarn__graph_tensor(graph, TARN__I32, rows, best, "best_ids")};
  node->out[0] = top.values;
  node->out[1] = top.ids;
  tarn__graph_emit(graph, node);
  return top;
}
