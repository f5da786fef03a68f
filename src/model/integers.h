// Integers of the host that a model makes for a graph, in its arena: row numbers, offsets and the like.
#ifndef TARN_MODEL_INTEGERS_H
#define TARN_MODEL_INTEGERS_H

#include "graph/graph.h"

// `count` integers and one more, for offsets; NULL after a failure, which the graph records.
static inline int32_t *tarn__integers(tarn__graph *graph, int64_t count) {
  void *memory = NULL;
  if (graph->status == TARN_STATUS_OK)
    graph->status = tarn__arena_alloc(&graph->arena, &memory, (size_t)count + 1, sizeof(int32_t));
  return graph->status == TARN_STATUS_OK ? memory : NULL;
}

#endif
