#include "ops/relative_attention.h"

#include "graph/tangents.h"
#include "ops/offsets.h"

// Fails with INTERNAL unless the sentences cover all rows and are no longer than planned.
static tarn_status check(const tarn__node *node) {
  const tarn__attention_spec *spec = node->attr;
  const tarn__tensor *offsets = node->in[TARN__ATTENTION_QUERY_OFFSETS];
  TARN_TRY(tarn__offsets_check(offsets, node->in[TARN__ATTENTION_QUERIES]->rows, node->op->name, "sentences"));
  for (int64_t s = 0; s + 1 < offsets->cols; s++)
    TARN_REQUIRE(offsets->host[s + 1] - offsets->host[s] <= spec->longest, INTERNAL,
                 "%s: sentence %lld has %d tokens; the plan allows %lld", node->op->name, (long long)s,
                 (int)(offsets->host[s + 1] - offsets->host[s]), (long long)spec->longest);
  return TARN_STATUS_OK;
}

// Pairs of a query and a key that it sees, and of a query and a distance that occurs in its sentence: exact if the
// offsets are known, else a bound.
typedef struct pairs {
  double keys, distances;
} pairs;

static pairs pairs_of(const tarn__node *node) {
  const tarn__attention_attr *attr = node->attr;
  const tarn__tensor *offsets = node->in[TARN__ATTENTION_QUERY_OFFSETS];
  const int32_t *offset = offsets->host;
  pairs sum = {0.0, 0.0};
  if (!offset) {
    const double rows = (double)node->in[TARN__ATTENTION_QUERIES]->rows;
    return (pairs){rows * (double)attr->spec.longest,
                   rows * (double)tarn__distances_of(attr, attr->spec.longest).count};
  }
  for (int64_t s = 0; s + 1 < offsets->cols; s++) {
    const int64_t n = offset[s + 1] - offset[s];
    sum.keys += attr->spec.causal ? (double)n * ((double)n + 1.0) / 2.0 : (double)n * (double)n;
    sum.distances += (double)n * (double)tarn__distances_of(attr, n).count;
  }
  return sum;
}

// Scores, and the mean of values.
static double flops(const tarn__node *node) {
  const pairs p = pairs_of(node);
  const double tables = node->in[TARN__RELATIVE_VALUES] ? 2.0 : 1.0;
  return 2.0 * (2.0 * p.keys + tables * p.distances) * (double)((const tarn__attention_spec *)node->attr)->d;
}

// Scores and the gradient of the weights, then one product for the queries, and one each for keys and values with their
// relative vectors.
static double backward_flops(const tarn__node *node) {
  const tarn__attention_backward b = tarn__attention_backward_of(node);
  const pairs p = pairs_of(node);
  const bool values = node->in[TARN__RELATIVE_VALUES] != NULL;
  double keys = 2.0, distances = values ? 2.0 : 1.0;
  if (b.dqueries) keys += 1.0, distances += 1.0;
  if (b.dkeys_values) keys += 2.0;
  for (int i = 0; i < 2; i++) distances += node->dparam[i] ? 1.0 : 0.0;
  return 2.0 * (keys * p.keys + distances * p.distances) * (double)((const tarn__attention_spec *)node->attr)->d;
}

// The gradient takes over the memory of queries, like that of attention.
static const tarn__op op_backward = {.id = TARN__OP_RELATIVE_ATTENTION_BACKWARD,
                                     .name = "relative_attention_backward",
                                     .flops = backward_flops,
                                     .in_place = true,
                                     .inplace_out = TARN__ATTENTION_DQUERIES,
                                     .inplace_in = TARN__ATTENTION_QUERIES,
                                     .check = check};

static tarn__param *learns(const tarn__tensor *table) {
  return table && tarn__param_learns(table->param) ? table->param : NULL;
}

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *queries = node->in[TARN__ATTENTION_QUERIES], *keys_values = node->in[TARN__ATTENTION_KEYS_VALUES];
  const bool self = queries == keys_values;
  tarn__node *back = tarn__graph_node(graph, &op_backward, sizeof(tarn__attention_attr));
  *(tarn__attention_attr *)back->attr = *(const tarn__attention_attr *)node->attr;
  back->in[TARN__ATTENTION_QUERIES] = queries;
  back->in[TARN__ATTENTION_KEYS_VALUES] = self ? NULL : keys_values;
  back->in[TARN__ATTENTION_QUERY_OFFSETS] = node->in[TARN__ATTENTION_QUERY_OFFSETS];
  back->in[TARN__RELATIVE_KEYS] = node->in[TARN__RELATIVE_KEYS];
  back->in[TARN__RELATIVE_VALUES] = node->in[TARN__RELATIVE_VALUES];
  back->in[TARN__ATTENTION_DO] = node->out[0]->grad;
  back->dparam[TARN__RELATIVE_DKEYS] = learns(node->in[TARN__RELATIVE_KEYS]);
  back->dparam[TARN__RELATIVE_DVALUES] = learns(node->in[TARN__RELATIVE_VALUES]);
  if (queries->needs_grad)
    back->out[TARN__ATTENTION_DQUERIES] = tarn__grad_into(graph, queries, &back->in[TARN__ATTENTION_PREVIOUS_QUERIES]);
  if (!self && keys_values->needs_grad)
    back->out[TARN__ATTENTION_DKEYS_VALUES] =
        tarn__grad_into(graph, keys_values, &back->in[TARN__ATTENTION_PREVIOUS_KEYS_VALUES]);
  tarn__graph_emit(graph, back);
}

// Scores, and for each direction their tangents and both terms of the result's.
static double tangent_flops(const tarn__node *node) {
  const pairs p = pairs_of(node);
  const double directions = (double)tarn__tangent_directions(node->out[0], node->in[TARN__ATTENTION_QUERIES]->rows);
  double keys = 1.0 + directions, distances = 1.0;
  if (node->in[TARN__RELATIVE_MOVED_QUERIES]) keys += directions, distances += directions;
  if (node->in[TARN__RELATIVE_MOVED_KEYS_VALUES]) keys += 2.0 * directions;
  if (node->in[TARN__RELATIVE_VALUES]) distances += directions;
  return 2.0 * (keys * p.keys + distances * p.distances) * (double)((const tarn__attention_spec *)node->attr)->d;
}

static const tarn__op op_tangent = {.id = TARN__OP_RELATIVE_ATTENTION_TANGENT,
                                    .name = "relative_attention_tangent",
                                    .flops = tangent_flops,
                                    .check = check};

static void tangent(tarn__graph *graph, tarn__node *node) {
  tarn__node *push = tarn__graph_node(graph, &op_tangent, sizeof(tarn__attention_attr));
  *(tarn__attention_attr *)push->attr = *(const tarn__attention_attr *)node->attr;
  push->in[TARN__ATTENTION_QUERIES] = node->in[TARN__ATTENTION_QUERIES];
  push->in[TARN__ATTENTION_KEYS_VALUES] = node->in[TARN__ATTENTION_KEYS_VALUES];
  push->in[TARN__ATTENTION_QUERY_OFFSETS] = node->in[TARN__ATTENTION_QUERY_OFFSETS];
  push->in[TARN__RELATIVE_KEYS] = node->in[TARN__RELATIVE_KEYS];
  push->in[TARN__RELATIVE_VALUES] = node->in[TARN__RELATIVE_VALUES];
  push->in[TARN__RELATIVE_MOVED_QUERIES] = node->in[TARN__ATTENTION_QUERIES]->tangent;
  push->in[TARN__RELATIVE_MOVED_KEYS_VALUES] = node->in[TARN__ATTENTION_KEYS_VALUES]->tangent;
  push->out[0] = node->out[0]->tangent = tarn__tangent_new(graph, node->out[0], "tangent of attention");
  tarn__graph_emit(graph, push);
}

static const tarn__op op_relative_attention = {.id = TARN__OP_RELATIVE_ATTENTION,
                                               .name = "relative_attention",
                                               .grad = grad,
                                               .tangent = tangent,
                                               .flops = flops,
                                               .cheap = true,
                                               .check = check};

bool tarn__relative_fits(const tarn__relative *relative, int64_t width) {
  const tarn__param *keys = relative->keys, *values = relative->values;
  return keys->cols == width && keys->rows % 2 == 1 &&
         (!values || (values->cols == width && values->rows == keys->rows));
}

static bool holds(const tarn__tensor *tensor, int64_t column, int64_t d) {
  return column >= 0 && column <= tensor->cols - d;
}

tarn__tensor *tarn__relative_attention(tarn__graph *graph, tarn__tensor *queries, tarn__tensor *keys_values,
                                       tarn__tensor *offsets, tarn__attention_spec spec, int kv_heads,
                                       tarn__relative relative) {
  bool fits = spec.heads > 0 && spec.d > 0 && spec.d % spec.heads == 0 && spec.longest >= 0 && spec.alibi == 0 &&
              spec.heads <= TARN__ATTENTION_HEADS && spec.longest <= TARN__ATTENTION_KEYS &&
              offsets->dtype == TARN__I32 && offsets->cols >= 1 && queries->dtype == keys_values->dtype;
  const tarn__attention_attr attr = {.spec = spec,
                                     .dropout = tarn__dropout_make(graph, spec.dropout),
                                     .kv_heads = kv_heads > 0 ? kv_heads : spec.heads,
                                     .reach = relative.keys->rows / 2};
  fits = fits && spec.heads % attr.kv_heads == 0 && tarn__relative_fits(&relative, spec.d / spec.heads);
  const int64_t kv = fits ? tarn__attention_kv_width(&attr) : 0;
  fits = fits && holds(queries, spec.query_column, spec.d) && holds(keys_values, spec.key_column, kv) &&
         holds(keys_values, spec.value_column, kv) && queries->rows == keys_values->rows;
  if (!fits) tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "relative_attention: its inputs do not fit together");
  tarn__node *node = tarn__graph_node(graph, &op_relative_attention, sizeof(tarn__attention_attr));
  *(tarn__attention_attr *)node->attr = attr;
  node->in[TARN__ATTENTION_QUERIES] = queries;
  node->in[TARN__ATTENTION_KEYS_VALUES] = keys_values;
  node->in[TARN__ATTENTION_QUERY_OFFSETS] = offsets;
  node->in[TARN__RELATIVE_KEYS] = tarn__graph_param(graph, relative.keys);
  if (relative.values) node->in[TARN__RELATIVE_VALUES] = tarn__graph_param(graph, relative.values);
  node->out[0] = tarn__graph_tensor(graph, queries->dtype, queries->rows, spec.d, "relative attention");
  tarn__graph_emit(graph, node);
  return node->out[0];
}
