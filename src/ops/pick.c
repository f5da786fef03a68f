// The best next tokens, and log-probabilities of given ones, from logits that are in memory.
#include "ops/pick.h"

#include "ops/offsets.h"
#include "ops/ops.h"
#include "ops/output_top.h"

static tarn_status check(const tarn__node *node) {
  return tarn__numbers_check(node->in[TARN__PICK_NUMBERS], node->in[TARN__PICK_LOGITS]->rows, "pick_rows", "row");
}

static const tarn__op op_best = {.id = TARN__OP_BEST_ROWS, .name = "best_rows"};
static const tarn__op op_pick = {.id = TARN__OP_PICK_ROWS, .name = "pick_rows", .check = check};

static tarn__dtype dtype_for(const tarn__tensor *logits) { return logits->dtype == TARN__F64 ? TARN__F64 : TARN__F32; }

tarn__top tarn__best_rows(tarn__graph *graph, tarn__tensor *logits, int64_t best, int32_t always) {
  if (best < 1 || always < 0 || always >= logits->cols)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "best_rows: %lld of %lld words", (long long)best,
                     (long long)logits->cols);
  tarn__node *node = tarn__graph_node(graph, &op_best, sizeof(tarn__output_top_attr));
  *(tarn__output_top_attr *)node->attr = (tarn__output_top_attr){best, always};
  node->in[TARN__PICK_LOGITS] = logits;
  const tarn__top top = {tarn__graph_tensor(graph, dtype_for(logits), logits->rows, best + 1, "best_log_probabilities"),
                         tarn__graph_tensor(graph, TARN__I32, logits->rows, best, "best_ids")};
  node->out[0] = top.values;
  node->out[1] = top.ids;
  tarn__graph_emit(graph, node);
  return top;
}

tarn__tensor *tarn__pick_rows(tarn__graph *graph, tarn__tensor *logits, tarn__tensor *ids, tarn__tensor *numbers,
                              int32_t always) {
  if (ids->dtype != TARN__I32 || numbers->dtype != TARN__I32 || numbers->cols != ids->rows || always < 0 ||
      always >= logits->cols)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "pick_rows: %lld rows of ids have %lld numbers", (long long)ids->rows,
                     (long long)numbers->cols);
  tarn__node *node = tarn__graph_node(graph, &op_pick, sizeof(tarn__pick_attr));
  *(tarn__pick_attr *)node->attr = (tarn__pick_attr){always};
  node->in[TARN__PICK_LOGITS] = logits;
  node->in[TARN__PICK_IDS] = ids;
  node->in[TARN__PICK_NUMBERS] = numbers;
  tarn__tensor *picked = node->out[0] =
      tarn__graph_tensor(graph, dtype_for(logits), ids->rows, ids->cols + 1, "picked_log_probabilities");
  tarn__graph_emit(graph, node);
  return picked;
}
