#include "ops/bias_table.h"

#include "ops/ops.h"

void tarn__bias_buckets(const tarn__bias_table_spec *spec, int32_t *of) {
  for (int64_t n = -spec->max_distance; n <= spec->max_distance; n++)
    of[spec->max_distance + n] = (int32_t)tarn__bias_bucket(spec, n);
}

static const tarn__op op_backward = {.id = TARN__OP_BIAS_TABLE_BACKWARD, .name = "bias_table_backward"};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__param *table = node->in[TARN__BIAS_TABLE_TABLE]->param;
  if (!tarn__param_learns(table)) return;
  tarn__node *back = tarn__graph_node(graph, &op_backward, sizeof(tarn__bias_table_spec));
  *(tarn__bias_table_spec *)back->attr = *(const tarn__bias_table_spec *)node->attr;
  back->in[TARN__BIAS_TABLE_DY] = node->out[0]->grad;
  back->dparam[0] = table;
  tarn__graph_emit(graph, back);
}

static const tarn__op op_bias_table = {.id = TARN__OP_BIAS_TABLE, .name = "bias_table", .grad = grad, .cheap = true};

tarn__tensor *tarn__bias_table(tarn__graph *graph, tarn__param *table, tarn__bias_table_spec spec) {
  const int64_t half = spec.two_ways ? spec.buckets / 2 : spec.buckets;
  if (spec.buckets != table->rows || half < 2 || (spec.two_ways && spec.buckets % 2 != 0) ||
      spec.max_distance <= half / 2)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "bias_table: its inputs do not fit together");
  tarn__node *node = tarn__graph_node(graph, &op_bias_table, sizeof spec);
  *(tarn__bias_table_spec *)node->attr = spec;
  node->in[TARN__BIAS_TABLE_TABLE] = tarn__graph_param(graph, table);
  const tarn__dtype dtype = graph->dtype == TARN__F64 ? TARN__F64 : TARN__F32;
  tarn__tensor *y = node->out[0] =
      tarn__graph_tensor(graph, dtype, table->cols, 2 * spec.max_distance + 1, "biases by distance");
  tarn__graph_emit(graph, node);
  return y;
}
