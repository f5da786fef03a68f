#include "ops/attention.h"

#include "base/fixed.h"
#include "graph/tangents.h"
#include "ops/offsets.h"
#include "ops/relative_attention.h"

// Fails with INTERNAL unless the offsets cover all rows in order and no sequence is longer than spec.longest keys.
static tarn_status check(const tarn__node *node) {
  const tarn__attention_spec *spec = node->attr;
  const tarn__tensor *queries = node->in[TARN__ATTENTION_QUERIES];
  const tarn__tensor *keys = node->in[TARN__ATTENTION_KEYS_VALUES] ? node->in[TARN__ATTENTION_KEYS_VALUES] : queries;
  const tarn__tensor *query_offsets = node->in[TARN__ATTENTION_QUERY_OFFSETS];
  const tarn__tensor *key_offsets = tarn__attention_key_offsets(node);
  const bool biased = spec->alibi > 0 || ((const tarn__attention_attr *)node->attr)->reach >= 0;
  TARN_TRY(tarn__offsets_check(query_offsets, queries->rows, "attention", "queries"));
  TARN_TRY(tarn__offsets_check(key_offsets, keys->rows, "attention", "keys"));
  const int32_t *q = query_offsets->host, *k = key_offsets->host;
  for (int64_t s = 0; s + 1 < key_offsets->cols; s++) {
    const long long length = (long long)k[s + 1] - k[s];
    TARN_REQUIRE(length <= spec->longest, INTERNAL, "attention: sequence %lld has %lld keys; the plan allows %lld",
                 (long long)s, length, (long long)spec->longest);
    TARN_REQUIRE((!spec->causal && !biased) || length == (long long)q[s + 1] - q[s], INTERNAL,
                 "attention: sequence %lld, %s, has unequal numbers of queries and keys", (long long)s,
                 spec->causal ? "causal" : "with biases of distances");
  }
  return TARN_STATUS_OK;
}

void tarn__attention_slopes(const tarn__attention_spec *spec, double *slopes) {
  int power = 1;
  while (2 * power <= spec->heads) power *= 2;
  const double half = tarn__fixed_exp(-0.69314718055994530942 * spec->alibi / (2.0 * power)), step = half * half;
  const bool any = spec->alibi > 0;
  double slope = 1.0;
  for (int h = 0; h < power; h++) slopes[h] = any ? slope *= step : 0.0;
  slope = half;
  for (int h = power; h < spec->heads; h++, slope *= step) slopes[h] = any ? slope : 0.0;
}

// Pairs of a query and a key that it sees: exact when the offsets are known, else a bound.
static double pairs(const tarn__node *node) {
  const tarn__attention_spec *spec = node->attr;
  const tarn__tensor *query_offsets = node->in[TARN__ATTENTION_QUERY_OFFSETS];
  const int32_t *q = query_offsets->host, *k = tarn__attention_key_offsets(node)->host;
  if (!q || !k) return (double)node->in[TARN__ATTENTION_QUERIES]->rows * (double)spec->longest;
  double sum = 0.0;
  for (int64_t s = 0; s + 1 < query_offsets->cols; s++) {
    const double rows = q[s + 1] - q[s], keys = k[s + 1] - k[s];
    sum += spec->causal ? rows * (rows + 1.0) / 2.0 : rows * keys;
  }
  return sum;
}

static double flops(const tarn__node *node) {
  return 2.0 * 2.0 * pairs(node) * (double)((const tarn__attention_spec *)node->attr)->d;
}

// Scores and their gradient, then one product for the queries and two for keys and values.
static double backward_flops(const tarn__node *node) {
  const tarn__attention_backward b = tarn__attention_backward_of(node);
  const double products = 2.0 + (b.dqueries ? 1.0 : 0.0) + (b.dkeys_values ? 2.0 : 0.0);
  return products * 2.0 * pairs(node) * (double)((const tarn__attention_spec *)node->attr)->d;
}

// The gradient takes over the memory of queries (self-attention: of q, k and v): each head of a sequence is read before
// its gradient is written.
static const tarn__op op_backward = {.id = TARN__OP_ATTENTION_BACKWARD,
                                     .name = "attention_backward",
                                     .flops = backward_flops,
                                     .in_place = true,
                                     .inplace_out = TARN__ATTENTION_DQUERIES,
                                     .inplace_in = TARN__ATTENTION_QUERIES,
                                     .check = check};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *queries = node->in[TARN__ATTENTION_QUERIES], *keys_values = node->in[TARN__ATTENTION_KEYS_VALUES];
  const bool self = queries == keys_values;
  tarn__node *back = tarn__graph_node(graph, &op_backward, sizeof(tarn__attention_attr));
  *(tarn__attention_attr *)back->attr = *(const tarn__attention_attr *)node->attr;
  back->in[TARN__ATTENTION_QUERIES] = queries;
  back->in[TARN__ATTENTION_KEYS_VALUES] = self ? NULL : keys_values;
  back->in[TARN__ATTENTION_QUERY_OFFSETS] = node->in[TARN__ATTENTION_QUERY_OFFSETS];
  back->in[TARN__ATTENTION_KEY_OFFSETS] = node->in[TARN__ATTENTION_KEY_OFFSETS];
  tarn__tensor *biases = node->in[TARN__ATTENTION_BIASES];
  if (biases) back->in[TARN__ATTENTION_BACKWARD_BIASES] = biases;
  back->in[TARN__ATTENTION_DO] = node->out[0]->grad;
  back->in[TARN__ATTENTION_FORWARD_STATISTICS] = node->out[TARN__ATTENTION_STATISTICS];
  if (node->out[TARN__ATTENTION_STATISTICS]) back->in[TARN__ATTENTION_FORWARD_RESULT] = node->out[0];
  if (queries->needs_grad)
    back->out[TARN__ATTENTION_DQUERIES] = tarn__grad_into(graph, queries, &back->in[TARN__ATTENTION_PREVIOUS_QUERIES]);
  if (!self && keys_values->needs_grad)
    back->out[TARN__ATTENTION_DKEYS_VALUES] =
        tarn__grad_into(graph, keys_values, &back->in[TARN__ATTENTION_PREVIOUS_KEYS_VALUES]);
  if (!biases || !biases->needs_grad) {
    tarn__graph_emit(graph, back);
    return;
  }
  tarn__tensor *dbiases = tarn__graph_tensor(graph, biases->dtype, biases->rows, biases->cols, "gradient of biases");
  back->out[TARN__ATTENTION_DBIASES] = dbiases;
  back->out[TARN__ATTENTION_BIAS_SUMS] =
      tarn__graph_tensor(graph, biases->dtype, 2 * biases->rows, queries->rows, "sums by distance");
  tarn__graph_emit(graph, back);
  tarn__grad_add(graph, biases, dbiases);
}

// Scores and their two tangents, then the result's two, if both sides move.
static double tangent_flops(const tarn__node *node) {
  const tarn__tensor *dq = node->in[TARN__ATTENTION_TANGENT_QUERIES];
  const tarn__tensor *dkv = node->in[TARN__ATTENTION_TANGENT_KEYS_VALUES];
  const int64_t rows = node->in[TARN__ATTENTION_QUERIES]->rows;
  const double directions = (double)tarn__tangent_directions(node->out[0], rows);
  const double products = 1.0 + directions * (1.0 + (dq ? 1.0 : 0.0) + (dkv ? 2.0 : 0.0));
  return products * 2.0 * pairs(node) * (double)((const tarn__attention_spec *)node->attr)->d;
}

static const tarn__op op_tangent = {
    .id = TARN__OP_ATTENTION_TANGENT, .name = "attention_tangent", .flops = tangent_flops, .check = check};

static void tangent(tarn__graph *graph, tarn__node *node) {
  const tarn__tensor *biases = node->in[TARN__ATTENTION_BIASES];
  if (biases && biases->tangent)
    tarn__graph_fail(graph, TARN_STATUS_UNSUPPORTED, "attention: there are no tangents of biases");
  tarn__node *push = tarn__graph_node(graph, &op_tangent, sizeof(tarn__attention_attr));
  *(tarn__attention_attr *)push->attr = *(const tarn__attention_attr *)node->attr;
  for (int i = 0; i <= TARN__ATTENTION_BIASES; i++) push->in[i] = node->in[i];
  push->in[TARN__ATTENTION_TANGENT_QUERIES] = node->in[TARN__ATTENTION_QUERIES]->tangent;
  push->in[TARN__ATTENTION_TANGENT_KEYS_VALUES] = node->in[TARN__ATTENTION_KEYS_VALUES]->tangent;
  push->out[0] = node->out[0]->tangent = tarn__tangent_new(graph, node->out[0], "tangent of attention");
  tarn__graph_emit(graph, push);
}

static const tarn__op op_attention = {.id = TARN__OP_ATTENTION,
                                      .name = "attention",
                                      .grad = grad,
                                      .tangent = tangent,
                                      .flops = flops,
                                      .cheap = true,
                                      .check = check};

static bool holds(const tarn__tensor *tensor, int64_t column, int64_t d) {
  return column >= 0 && column <= tensor->cols - d;
}

bool tarn__attention_extras_fit(const tarn__graph *graph, const tarn__attention_spec *spec,
                                const tarn__attention_extras *extras) {
  const tarn__tensor *biases = extras->biases;
  if (extras->kv_heads < 0 || (extras->kv_heads > 0 && spec->heads % extras->kv_heads != 0)) return false;
  const tarn__dtype dtype = graph->dtype == TARN__F64 ? TARN__F64 : TARN__F32;
  return !biases ||
         (spec->alibi <= 0 && biases->dtype == dtype && biases->rows == spec->heads && biases->cols % 2 == 1);
}

tarn__tensor *tarn__attention(tarn__graph *graph, tarn__tensor *queries, tarn__tensor *keys_values,
                              tarn__tensor *query_offsets, tarn__tensor *key_offsets, tarn__attention_spec spec) {
  return tarn__attention_with(graph, queries, keys_values, query_offsets, key_offsets, spec,
                              (tarn__attention_extras){0});
}

tarn__tensor *tarn__attention_with(tarn__graph *graph, tarn__tensor *queries, tarn__tensor *keys_values,
                                   tarn__tensor *query_offsets, tarn__tensor *key_offsets, tarn__attention_spec spec,
                                   tarn__attention_extras extras) {
  if (extras.relative.keys) {
    if (query_offsets != key_offsets || extras.biases)
      tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "attention: its inputs do not fit together");
    return tarn__relative_attention(graph, queries, keys_values, query_offsets, spec, extras.kv_heads, extras.relative);
  }
  bool fits = spec.heads > 0 && spec.d > 0 && spec.d % spec.heads == 0 && spec.longest >= 0 &&
              query_offsets->dtype == TARN__I32 && key_offsets->dtype == TARN__I32 && query_offsets->cols >= 1 &&
              query_offsets->cols == key_offsets->cols && queries->dtype == keys_values->dtype;
  fits = fits && tarn__attention_extras_fit(graph, &spec, &extras);
  tarn__tensor *biases = fits ? extras.biases : NULL;
  const tarn__attention_attr attr = {.spec = spec,
                                     .dropout = tarn__dropout_make(graph, spec.dropout),
                                     .kv_heads = extras.kv_heads > 0 ? extras.kv_heads : spec.heads,
                                     .reach = biases ? biases->cols / 2 : -1};
  const int64_t kv = fits ? tarn__attention_kv_width(&attr) : 0;
  fits = fits && holds(queries, spec.query_column, spec.d) && holds(keys_values, spec.key_column, kv) &&
         holds(keys_values, spec.value_column, kv) && (!biases || query_offsets == key_offsets);
  fits = fits && spec.alibi >= 0 && spec.heads <= TARN__ATTENTION_HEADS && spec.longest <= TARN__ATTENTION_KEYS;
  if (!fits) tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "attention: its inputs do not fit together");
  tarn__node *node = tarn__graph_node(graph, &op_attention, sizeof(tarn__attention_attr));
  *(tarn__attention_attr *)node->attr = attr;
  node->in[TARN__ATTENTION_BIASES] = biases;
  node->in[TARN__ATTENTION_QUERIES] = queries;
  node->in[TARN__ATTENTION_KEYS_VALUES] = keys_values;
  node->in[TARN__ATTENTION_QUERY_OFFSETS] = query_offsets;
  node->in[TARN__ATTENTION_KEY_OFFSETS] = key_offsets;
  tarn__tensor *out = node->out[0] = tarn__graph_tensor(graph, queries->dtype, queries->rows, spec.d, "attention");
  if (graph->training && queries->dtype == TARN__BF16 && spec.longest > TARN__ATTENTION_LONG)
    node->out[TARN__ATTENTION_STATISTICS] =
        tarn__graph_tensor(graph, TARN__F32, 2 * spec.heads, queries->rows, "attention statistics");
  tarn__graph_emit(graph, node);
  return out;
}
