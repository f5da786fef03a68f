#include "ops/product_keys.h"

#include "graph/tangents.h"

static double flops(const tarn__node *node) {
  const tarn__tensor *queries = node->in[TARN__PRODUCT_KEYS_QUERIES], *keys = node->in[TARN__PRODUCT_KEYS_KEYS];
  return 2.0 * (double)queries->rows * (double)keys->rows * (double)keys->cols;
}

// Of the keys that were nearest, both halves.
static double backward_flops(const tarn__node *node) {
  const tarn__tensor *gates = node->in[TARN__PRODUCT_KEYS_G], *keys = node->in[TARN__PRODUCT_KEYS_KEYS];
  const double once = 4.0 * (double)(gates->rows * gates->cols) * (double)keys->cols;
  return once * ((node->out[0] ? 1.0 : 0.0) + (node->dparam[0] ? 1.0 : 0.0));
}

static const tarn__op op_backward = {
    .id = TARN__OP_PRODUCT_KEYS_BACKWARD, .name = "product_keys_backward", .flops = backward_flops};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *queries = node->in[TARN__PRODUCT_KEYS_QUERIES], *keys = node->in[TARN__PRODUCT_KEYS_KEYS];
  tarn__node *back = tarn__graph_node(graph, &op_backward, sizeof(tarn__product_keys_spec));
  *(tarn__product_keys_spec *)back->attr = *(const tarn__product_keys_spec *)node->attr;
  back->in[TARN__PRODUCT_KEYS_QUERIES] = queries;
  back->in[TARN__PRODUCT_KEYS_KEYS] = keys;
  back->in[TARN__PRODUCT_KEYS_G] = node->out[TARN__PRODUCT_KEYS_GATES];
  back->in[TARN__PRODUCT_KEYS_CHOSEN] = node->out[TARN__PRODUCT_KEYS_IDS];
  back->in[TARN__PRODUCT_KEYS_DGATES] = node->out[TARN__PRODUCT_KEYS_GATES]->grad;
  if (keys->needs_grad) back->dparam[0] = keys->param;
  if (queries->needs_grad) back->out[0] = tarn__grad_into(graph, queries, &back->in[TARN__PRODUCT_KEYS_PREVIOUS]);
  tarn__graph_emit(graph, back);
}

// Of the keys that were nearest, both halves.
static double tangent_flops(const tarn__node *node) {
  const tarn__tensor *keys = node->in[TARN__PRODUCT_KEYS_KEYS], *out = node->out[0];
  return 4.0 * (double)(out->rows * out->cols) * (double)keys->cols;
}

static const tarn__op op_tangent = {
    .id = TARN__OP_PRODUCT_KEYS_TANGENT, .name = "product_keys_tangent", .flops = tangent_flops};

// The choice of nearest keys is constant except where two are equally near.
static void tangent(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *gates = node->out[TARN__PRODUCT_KEYS_GATES];
  tarn__node *push = tarn__graph_node(graph, &op_tangent, sizeof(tarn__product_keys_spec));
  *(tarn__product_keys_spec *)push->attr = *(const tarn__product_keys_spec *)node->attr;
  push->in[TARN__PRODUCT_KEYS_KEYS] = node->in[TARN__PRODUCT_KEYS_KEYS];
  push->in[TARN__PRODUCT_KEYS_G] = gates;
  push->in[TARN__PRODUCT_KEYS_CHOSEN] = node->out[TARN__PRODUCT_KEYS_IDS];
  push->in[TARN__PRODUCT_KEYS_DQUERIES] = node->in[TARN__PRODUCT_KEYS_QUERIES]->tangent;
  push->out[0] = gates->tangent = tarn__tangent_new(graph, gates, "tangent of gates of nearest keys");
  tarn__graph_emit(graph, push);
}

static const tarn__op op_product_keys = {
    .id = TARN__OP_PRODUCT_KEYS, .name = "product_keys", .grad = grad, .tangent = tangent, .flops = flops};

tarn__nearest tarn__product_keys(tarn__graph *graph, tarn__tensor *queries, tarn__param *keys,
                                 tarn__product_keys_spec spec) {
  const int64_t n = keys->out;
  if (spec.heads < 1 || n < 1 || keys->rows != 2 * spec.heads * n || queries->cols != 2 * spec.heads * keys->cols ||
      queries->dtype != keys->dtype || spec.nearest < 1 || spec.nearest > n || spec.nearest > TARN__PRODUCT_KEYS_MOST)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "product_keys: %s [%lld, %lld] does not fit its queries", keys->name,
                     (long long)keys->rows, (long long)keys->cols);
  tarn__node *node = tarn__graph_node(graph, &op_product_keys, sizeof spec);
  *(tarn__product_keys_spec *)node->attr = spec;
  node->in[TARN__PRODUCT_KEYS_QUERIES] = queries;
  node->in[TARN__PRODUCT_KEYS_KEYS] = tarn__graph_param(graph, keys);
  const tarn__dtype dtype = queries->dtype == TARN__F64 ? TARN__F64 : TARN__F32;
  const int64_t count = spec.heads * spec.nearest;
  const tarn__nearest nearest = {tarn__graph_tensor(graph, dtype, queries->rows, count, "gates of nearest keys"),
                                 tarn__graph_tensor(graph, TARN__I32, queries->rows, count, "nearest keys")};
  node->out[TARN__PRODUCT_KEYS_GATES] = nearest.gates;
  node->out[TARN__PRODUCT_KEYS_IDS] = nearest.ids;
  tarn__graph_emit(graph, node);
  nearest.ids->needs_grad = false;
  return nearest;
}
