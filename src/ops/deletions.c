#include "ops/deletions.h"

#include "ops/offsets.h"

static tarn_status check(const tarn__node *node) {
  const tarn__tensor *ids = node->in[TARN__DELETIONS_IDS], *offsets = node->in[TARN__DELETIONS_OFFSETS];
  const tarn__deletions_attr *attr = node->attr;
  TARN_TRY(tarn__offsets_check(offsets, ids->cols, "deletions", "sentences"));
  TARN_REQUIRE(node->out[TARN__DELETIONS_DELETED]->cols == ids->cols - 2 * (offsets->cols - 1), INTERNAL,
               "deletions: there are not as many answers as rows that are no borders");
  for (int64_t s = 0; s + 1 < offsets->cols; s++) {
    const int64_t length = offsets->host[s + 1] - offsets->host[s];
    TARN_REQUIRE(length >= 2 && length <= 64 * attr->words_of_row, INTERNAL,
                 "deletions: sentence %lld has %lld rows; expected 2 to %lld", (long long)s, (long long)length,
                 (long long)(64 * attr->words_of_row));
  }
  return tarn__numbers_check(node->in[TARN__DELETIONS_ROWS], ids->cols, "deletions", "placeholder");
}

static const tarn__op op = {.id = TARN__OP_DELETIONS, .name = "deletions", .check = check};

tarn__deletions tarn__deletions_of(tarn__graph *graph, tarn__tensor *ids, tarn__tensor *offsets, tarn__tensor *rows,
                                   tarn__tensor *words, tarn__tensor *truth, int64_t inner, int64_t longest) {
  tarn__node *node = tarn__graph_node(graph, &op, sizeof(tarn__deletions_attr));
  const int64_t count = ids->cols, row = (longest + 63) / 64;
  if (words->dtype != TARN__I32 || words->rows * words->cols != rows->cols || truth->cols != rows->cols || inner < 1)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "deletions: the placeholders and their words do not fit together");
  *(tarn__deletions_attr *)node->attr = (tarn__deletions_attr){row};
  node->in[TARN__DELETIONS_IDS] = ids;
  node->in[TARN__DELETIONS_OFFSETS] = offsets;
  node->in[TARN__DELETIONS_ROWS] = rows;
  node->in[TARN__DELETIONS_WORDS] = words;
  node->in[TARN__DELETIONS_TRUTH] = truth;
  const tarn__deletions made = {tarn__graph_tensor(graph, TARN__I32, 1, count, "filled ids"),
                                tarn__graph_tensor(graph, TARN__I32, 1, inner, "deletions")};
  node->out[TARN__DELETIONS_FILLED] = made.filled;
  node->out[TARN__DELETIONS_DELETED] = made.deleted;
  tarn__graph_emit(graph, node);
  return made;
}
