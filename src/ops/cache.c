// Rows of keys and values that incremental decoding keeps from step to step.
#include <string.h>

#include "ops/ops.h"

typedef struct cache_attr {
  int64_t column, first_row;
} cache_attr;

enum { CACHE_X, CACHE_CACHE };

// Copying is the same for every device and dtype.
static tarn_status append(const tarn__exec *exec, const tarn__node *node) {
  (void)exec;
  const cache_attr *attr = node->attr;
  const tarn__tensor *x = node->in[CACHE_X], *cache = node->in[CACHE_CACHE];
  const size_t size = tarn__dtype_size(x->dtype), row = (size_t)cache->cols * size;
  for (int64_t r = 0; r < x->rows; r++)
    memcpy((char *)cache->data + (size_t)(attr->first_row + r) * row,
           (const char *)x->data + (size_t)(r * x->cols + attr->column) * size, row);
  return TARN_STATUS_OK;
}

static const tarn__op op_cache_append = {
    .name = "cache_append", .reference_f32 = append, .reference_f64 = append, .cpu = append};

tarn__tensor *tarn__cache_append(tarn__graph *graph, tarn__tensor *x, int64_t column, tarn__tensor *cache,
                                 int64_t first_row) {
  bool fits = x->dtype == cache->dtype && cache->place == TARN__EXTERNAL && column >= 0 &&
              column <= x->cols - cache->cols && first_row >= 0 && first_row <= cache->rows - x->rows;
  if (!fits) tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "cache_append: the rows do not fit into the cache");
  tarn__node *node = tarn__graph_node(graph, &op_cache_append, sizeof(cache_attr));
  *(cache_attr *)node->attr = (cache_attr){column, first_row};
  node->in[CACHE_X] = x;
  node->in[CACHE_CACHE] = cache;
  tarn__tensor *out = node->out[0] =
      tarn__graph_external(graph, cache->dtype, cache->rows, cache->cols, cache->data, cache->name);
  tarn__graph_emit(graph, node);
  return out;
}
