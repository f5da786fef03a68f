// Keys and values that incremental decoding keeps between steps.
#include "ops/cache.h"

#include "ops/ops.h"

// The appended rows, twice, not the whole cache.
static double bytes(const tarn__node *node) {
  const tarn__tensor *cache = node->in[TARN__CACHE_CACHE];
  return 2.0 * (double)node->in[TARN__CACHE_X]->rows * (double)((const tarn__cache_attr *)node->attr)->cols *
         (double)tarn__dtype_size(cache->dtype);
}

static const tarn__op op_cache_append = {.id = TARN__OP_CACHE_APPEND, .name = "cache_append", .bytes = bytes};

tarn__tensor *tarn__cache_append(tarn__graph *graph, tarn__tensor *x, int64_t column, tarn__tensor *cache,
                                 int64_t first_row) {
  return tarn__cache_append_columns(graph, x, column, cache->cols, cache, 0, first_row);
}

tarn__tensor *tarn__cache_append_columns(tarn__graph *graph, tarn__tensor *x, int64_t column, int64_t cols,
                                         tarn__tensor *cache, int64_t to, int64_t first_row) {
  bool fits = x->dtype == cache->dtype && cache->place == TARN__EXTERNAL && column >= 0 && cols >= 0 &&
              column <= x->cols - cols && to >= 0 && to <= cache->cols - cols && first_row >= 0 &&
              first_row <= cache->rows - x->rows;
  if (!fits) tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "cache_append: the rows do not fit into the cache");
  tarn__node *node = tarn__graph_node(graph, &op_cache_append, sizeof(tarn__cache_attr));
  *(tarn__cache_attr *)node->attr = (tarn__cache_attr){column, first_row, cols, to};
  node->in[TARN__CACHE_X] = x;
  node->in[TARN__CACHE_CACHE] = cache;
  tarn__tensor *out = node->out[0] =
      tarn__graph_external(graph, cache->dtype, cache->rows, cache->cols, cache->data, cache->name);
  tarn__graph_emit(graph, node);
  return out;
}
