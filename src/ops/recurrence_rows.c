// One step of a recurrence for incremental decoding.
#include "ops/recurrence.h"

int64_t tarn__recurrence_cache_width(tarn__cell cell, int64_t hidden) {
  return cell == TARN__CELL_LSTM ? 2 * hidden : hidden;
}

// Every range must name existing rows, its own being the last.
static tarn_status check(const tarn__node *node) {
  const tarn__recurrence_rows_attr *attr = node->attr;
  const tarn__tensor *list = node->in[TARN__RECURRENCE_ROWS_ROWS], *cache = node->in[TARN__RECURRENCE_ROWS_CACHE];
  const int32_t *row = list->host, *range = node->in[TARN__RECURRENCE_ROWS_RANGES]->host;
  for (int64_t i = 0; i < node->in[TARN__RECURRENCE_ROWS_X]->rows; i++) {
    const int64_t first = range[2 * i], last = range[2 * i + 1];
    TARN_REQUIRE(first >= 0 && first < last && last <= list->cols && row[last - 1] == attr->first_row + i, INTERNAL,
                 "recurrence_rows: row %lld has the range %lld .. %lld, which does not end with it", (long long)i,
                 (long long)first, (long long)last);
    const int64_t before = last - first > 1 ? row[last - 2] : -1;
    TARN_REQUIRE(before < cache->rows && (before >= 0 || last - first == 1), INTERNAL,
                 "recurrence_rows: row %lld follows row %lld of %lld", (long long)i, (long long)before,
                 (long long)cache->rows);
  }
  return TARN_STATUS_OK;
}

static double flops(const tarn__node *node) {
  const tarn__tensor *weight = node->in[TARN__RECURRENCE_ROWS_WEIGHT];
  const int64_t rows = node->in[TARN__RECURRENCE_ROWS_X]->rows;
  // Weights not stored as entries are packed for dense products.
  if (weight->param->entries > 0) return tarn__recurrence_product_flops(weight, rows);
  return 2.0 * (double)rows * (double)weight->rows * (double)weight->cols;
}

// The states in the cache before and after each row.
static double bytes(const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__RECURRENCE_ROWS_X], *cache = node->in[TARN__RECURRENCE_ROWS_CACHE];
  return tarn__tensor_bytes(x) + tarn__tensor_bytes(node->in[TARN__RECURRENCE_ROWS_LEAKS]) +
         tarn__tensor_bytes(node->in[TARN__RECURRENCE_ROWS_WEIGHT]) +
         tarn__tensor_bytes(node->in[TARN__RECURRENCE_ROWS_BIAS]) + tarn__tensor_bytes(node->out[0]) +
         2.0 * (double)x->rows * (double)cache->cols * (double)tarn__dtype_size(cache->dtype);
}

static const tarn__op recurrence_rows_op = {
    .id = TARN__OP_RECURRENCE_ROWS, .name = "recurrence_rows", .flops = flops, .bytes = bytes, .check = check};

tarn__tensor *tarn__recurrence_rows(tarn__graph *graph, tarn__tensor *x, tarn__tensor *cache, int64_t first_row,
                                    tarn__tensor *rows, tarn__tensor *ranges, tarn__recurrent weights,
                                    tarn__recurrence_spec spec) {
  const int64_t n = spec.hidden, width = tarn__recurrence_gates(&spec) * n;
  bool fits = spec.directions == 1 && !spec.reverse && x->cols == width && tarn__recurrence_fits(x, &weights, &spec) &&
              cache->dtype == x->dtype;
  fits = fits && cache->cols == tarn__recurrence_cache_width(spec.cell, n) && first_row >= 0 &&
         first_row + x->rows <= cache->rows && rows->dtype == TARN__I32 && ranges->dtype == TARN__I32 &&
         ranges->cols == 2 * x->rows;
  if (!fits) tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "recurrence_rows: its inputs do not fit together");
  tarn__node *node = tarn__graph_node(graph, &recurrence_rows_op, sizeof(tarn__recurrence_rows_attr));
  *(tarn__recurrence_rows_attr *)node->attr = (tarn__recurrence_rows_attr){spec, first_row};
  node->in[TARN__RECURRENCE_ROWS_X] = x;
  node->in[TARN__RECURRENCE_ROWS_CACHE] = cache;
  node->in[TARN__RECURRENCE_ROWS_ROWS] = rows;
  node->in[TARN__RECURRENCE_ROWS_RANGES] = ranges;
  node->in[TARN__RECURRENCE_ROWS_WEIGHT] = tarn__graph_param(graph, weights.weight);
  node->in[TARN__RECURRENCE_ROWS_BIAS] = weights.bias ? tarn__graph_param(graph, weights.bias) : NULL;
  if (weights.leaks) node->in[TARN__RECURRENCE_ROWS_LEAKS] = tarn__graph_param(graph, weights.leaks);
  tarn__tensor *y = node->out[0] = tarn__graph_tensor(graph, x->dtype, x->rows, n, "recurrence");
  tarn__graph_emit(graph, node);
  return y;
}
