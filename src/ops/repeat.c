#include "ops/repeat.h"

#include "graph/tangents.h"
#include "ops/ops.h"

tarn__tensor *tarn__repeat(tarn__graph *graph, tarn__tensor *x) {
  if (graph->directions == 1) return x;
  const int64_t count = graph->directions * x->rows;
  void *memory = NULL;
  if (graph->status == TARN_STATUS_OK && count > INT32_MAX)
    tarn__graph_fail(graph, TARN_STATUS_UNSUPPORTED, "%d directions of %lld rows are too many to be counted",
                     graph->directions, (long long)x->rows);
  if (graph->status == TARN_STATUS_OK)
    graph->status = tarn__arena_alloc(&graph->arena, &memory, (size_t)count + 1, sizeof(int32_t));
  int32_t *rows = graph->status == TARN_STATUS_OK ? memory : NULL;
  for (int64_t i = 0; rows && i < count; i++) rows[i] = (int32_t)(i % x->rows);
  return tarn__select_rows(graph, x, tarn__graph_input(graph, count, rows, "rows of all directions"));
}
