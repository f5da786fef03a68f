#include "ops/attention_rows.h"

#include "ops/attention.h"
#include "ops/offsets.h"
#include "ops/relative_attention.h"

// Every range must be in order, no longer than planned, and name existing rows.
static tarn_status check(const tarn__node *node) {
  const tarn__attention_spec *spec = node->attr;
  const tarn__tensor *list = node->in[TARN__ATTENTION_ROWS_ROWS];
  const int64_t rows = node->in[TARN__ATTENTION_ROWS_KEYS_VALUES]->rows;
  const int64_t limit = list ? list->cols : rows;
  const int32_t *range = node->in[TARN__ATTENTION_ROWS_RANGES]->host;
  for (int64_t i = 0; i < node->in[TARN__ATTENTION_ROWS_QUERIES]->rows; i++) {
    const int64_t first = range[2 * i], last = range[2 * i + 1];
    TARN_REQUIRE(first >= 0 && first <= last && last <= limit && last - first <= spec->longest, INTERNAL,
                 "attention_rows: query %lld has the range %lld .. %lld of %lld rows, at most %lld at once",
                 (long long)i, (long long)first, (long long)last, (long long)limit, (long long)spec->longest);
    for (int64_t j = first; list && j < last; j++) {
      const int64_t row = list->host[j];
      TARN_REQUIRE(row >= 0 && row < rows, INTERNAL, "attention_rows: query %lld names row %lld of %lld", (long long)i,
                   (long long)row, (long long)rows);
    }
  }
  return TARN_STATUS_OK;
}

// Pairs of a query and a key; a bound if only the shapes are known.
static double pairs_of(const tarn__node *node) {
  const tarn__attention_spec *spec = node->attr;
  return tarn__ranges_rows(node->in[TARN__ATTENTION_ROWS_RANGES], spec->longest);
}

static double flops(const tarn__node *node) {
  const tarn__attention_spec *spec = node->attr;
  return 2.0 * 2.0 * pairs_of(node) * (double)spec->d;
}

// A key and a value for each pair.
static double bytes(const tarn__node *node) {
  const tarn__attention_rows_attr *attr = node->attr;
  const tarn__tensor *y = node->out[0];
  const double width = (double)(y->cols / attr->spec.heads * attr->kv_heads);
  return 2.0 * (pairs_of(node) * width * (double)tarn__dtype_size(y->dtype) + tarn__tensor_bytes(y)) +
         tarn__tensor_bytes(node->in[TARN__ATTENTION_ROWS_RANGES]) +
         tarn__tensor_bytes(node->in[TARN__ATTENTION_ROWS_BIASES]);
}

// Relative vectors of a query, for the distances to the keys that it sees; a bound if only the shapes are known.
static double distances_of(const tarn__node *node) {
  const tarn__attention_spec *spec = node->attr;
  const int64_t rows = node->in[TARN__ATTENTION_ROWS_QUERIES]->rows;
  const int64_t most = node->in[TARN__ATTENTION_ROWS_RELATIVE_KEYS]->rows / 2 + 1;
  const int32_t *range = node->in[TARN__ATTENTION_ROWS_RANGES]->host;
  double sum = 0.0;
  if (!range) return (double)rows * (double)(spec->longest < most ? spec->longest : most);
  for (int64_t i = 0; i < rows; i++) {
    const int64_t count = range[2 * i + 1] - range[2 * i];
    sum += (double)(count < most ? count : most);
  }
  return sum;
}

static double relative_tables(const tarn__node *node) {
  return node->in[TARN__ATTENTION_ROWS_RELATIVE_VALUES] ? 2.0 : 1.0;
}

static double relative_flops(const tarn__node *node) {
  const tarn__attention_spec *spec = node->attr;
  return flops(node) + 2.0 * relative_tables(node) * distances_of(node) * (double)spec->d;
}

static double relative_bytes(const tarn__node *node) {
  return bytes(node) + relative_tables(node) * tarn__tensor_bytes(node->in[TARN__ATTENTION_ROWS_RELATIVE_KEYS]);
}

static const tarn__op op_relative_rows = {.id = TARN__OP_RELATIVE_ATTENTION_ROWS,
                                          .name = "relative_attention_rows",
                                          .flops = relative_flops,
                                          .bytes = relative_bytes,
                                          .check = check};

static const tarn__op op_attention_rows = {
    .id = TARN__OP_ATTENTION_ROWS, .name = "attention_rows", .flops = flops, .bytes = bytes, .check = check};

tarn__tensor *tarn__attention_rows(tarn__graph *graph, tarn__tensor *queries, tarn__tensor *keys_values,
                                   tarn__tensor *rows, tarn__tensor *ranges, tarn__attention_spec spec) {
  return tarn__attention_rows_with(graph, queries, keys_values, rows, ranges, spec, (tarn__attention_extras){0});
}

tarn__tensor *tarn__attention_rows_with(tarn__graph *graph, tarn__tensor *queries, tarn__tensor *keys_values,
                                        tarn__tensor *rows, tarn__tensor *ranges, tarn__attention_spec spec,
                                        tarn__attention_extras extras) {
  const int kv_heads = extras.kv_heads > 0 ? extras.kv_heads : spec.heads;
  const int64_t kv = spec.heads > 0 ? spec.d / spec.heads * kv_heads : 0;
  bool fits = spec.heads > 0 && spec.d > 0 && spec.d % spec.heads == 0 && spec.longest >= 0 &&
              ranges->dtype == TARN__I32 && ranges->cols == 2 * queries->rows && queries->dtype == keys_values->dtype &&
              spec.query_column >= 0 && spec.query_column <= queries->cols - spec.d && spec.key_column >= 0 &&
              spec.key_column <= keys_values->cols - kv && spec.value_column >= 0 &&
              spec.value_column <= keys_values->cols - kv && spec.alibi >= 0 && spec.heads <= TARN__ATTENTION_HEADS &&
              (!rows || rows->dtype == TARN__I32) && tarn__attention_extras_fit(graph, &spec, &extras);
  const bool relative = extras.relative.keys != NULL;
  if (relative)
    fits = fits && !extras.biases && spec.alibi == 0 && tarn__relative_fits(&extras.relative, spec.d / spec.heads);
  if (!fits) tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "attention_rows: its inputs do not fit together");
  tarn__node *node =
      tarn__graph_node(graph, relative ? &op_relative_rows : &op_attention_rows, sizeof(tarn__attention_rows_attr));
  *(tarn__attention_rows_attr *)node->attr = (tarn__attention_rows_attr){
      .spec = spec, .kv_heads = kv_heads, .reach = fits && extras.biases ? extras.biases->cols / 2 : -1};
  node->in[TARN__ATTENTION_ROWS_BIASES] = fits ? extras.biases : NULL;
  node->in[TARN__ATTENTION_ROWS_QUERIES] = queries;
  node->in[TARN__ATTENTION_ROWS_KEYS_VALUES] = keys_values;
  node->in[TARN__ATTENTION_ROWS_ROWS] = rows;
  node->in[TARN__ATTENTION_ROWS_RANGES] = ranges;
  if (relative) node->in[TARN__ATTENTION_ROWS_RELATIVE_KEYS] = tarn__graph_param(graph, extras.relative.keys);
  if (extras.relative.values)
    node->in[TARN__ATTENTION_ROWS_RELATIVE_VALUES] = tarn__graph_param(graph, extras.relative.values);
  tarn__tensor *out = node->out[0] = tarn__graph_tensor(graph, queries->dtype, queries->rows, spec.d, "attention");
  tarn__graph_emit(graph, node);
  return out;
}
