// Logits changed at a few tokens of each row.
#include "ops/adjust.h"

#include "ops/ops.h"

static tarn_status check(const tarn__node *node) {
  const tarn__tensor *logits = node->in[TARN__ADJUST_LOGITS], *edits = node->in[TARN__ADJUST_EDITS];
  const int64_t rows = logits->rows, count = (edits->cols - rows - 1) / TARN__EDIT_WORDS;
  const int32_t *offsets = edits->host, *words = offsets + rows + 1;
  TARN_REQUIRE(offsets[0] == 0 && offsets[rows] == count, INTERNAL, "adjust_rows: the edits do not fit their offsets");
  for (int64_t r = 0; r < rows; r++)
    TARN_REQUIRE(offsets[r] <= offsets[r + 1], INTERNAL, "adjust_rows: the offsets fall in row %lld", (long long)r);
  for (int64_t i = 0; i < count; i++)
    TARN_REQUIRE(words[i * TARN__EDIT_WORDS] >= 0 && words[i * TARN__EDIT_WORDS] < logits->cols, INTERNAL,
                 "adjust_rows: token %d of %lld", (int)words[i * TARN__EDIT_WORDS], (long long)logits->cols);
  return TARN_STATUS_OK;
}

static const tarn__op op_adjust = {.id = TARN__OP_ADJUST_ROWS, .name = "adjust_rows", .check = check};

tarn__tensor *tarn__adjust_rows(tarn__graph *graph, tarn__tensor *logits, tarn__tensor *edits) {
  const int64_t words = edits->cols - logits->rows - 1;
  if (edits->dtype != TARN__I32 || words < 0 || words % TARN__EDIT_WORDS != 0)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "adjust_rows: %lld words of edits do not fit %lld rows",
                     (long long)edits->cols, (long long)logits->rows);
  tarn__node *node = tarn__graph_node(graph, &op_adjust, 0);
  node->in[TARN__ADJUST_LOGITS] = logits;
  node->in[TARN__ADJUST_EDITS] = edits;
  tarn__tensor *scores = node->out[0] =
      tarn__graph_tensor(graph, logits->dtype, logits->rows, logits->cols, "adjusted_logits");
  tarn__graph_emit(graph, node);
  return scores;
}
