#include "ops/feature_map.h"

#include "graph/tangents.h"
#include "ops/linear_attention.h"

// The product with W, if any.
static double flops(const tarn__node *node) {
  const tarn__feature_map_spec *spec = node->attr;
  if (!node->in[TARN__FEATURE_MAP_PROJECTION]) return 0.0;
  return 2.0 * 2.0 * (double)node->out[0]->rows * (double)(spec->heads * spec->width) * (double)spec->features;
}

static const tarn__op op_backward = {
    .id = TARN__OP_FEATURE_MAP_BACKWARD, .name = "feature_map_backward", .flops = flops};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[TARN__FEATURE_MAP_X];
  if (!x->needs_grad) return;
  tarn__node *back = tarn__graph_node(graph, &op_backward, sizeof(tarn__feature_map_spec));
  *(tarn__feature_map_spec *)back->attr = *(const tarn__feature_map_spec *)node->attr;
  back->in[TARN__FEATURE_MAP_X] = x;
  back->in[TARN__FEATURE_MAP_PROJECTION] = node->in[TARN__FEATURE_MAP_PROJECTION];
  back->in[TARN__FEATURE_MAP_PHI] = node->out[0];
  back->in[TARN__FEATURE_MAP_DPHI] = node->out[0]->grad;
  back->out[0] = tarn__grad_into(graph, x, &back->in[TARN__FEATURE_MAP_PREVIOUS]);
  tarn__graph_emit(graph, back);
}

static const tarn__op op_tangent = {.id = TARN__OP_FEATURE_MAP_TANGENT, .name = "feature_map_tangent", .flops = flops};

static void tangent(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[TARN__FEATURE_MAP_X], *phi = node->out[0];
  tarn__node *push = tarn__graph_node(graph, &op_tangent, sizeof(tarn__feature_map_spec));
  *(tarn__feature_map_spec *)push->attr = *(const tarn__feature_map_spec *)node->attr;
  push->in[TARN__FEATURE_MAP_X] = x;
  push->in[TARN__FEATURE_MAP_PROJECTION] = node->in[TARN__FEATURE_MAP_PROJECTION];
  push->in[TARN__FEATURE_MAP_PHI] = phi;
  push->in[TARN__FEATURE_MAP_DX] = x->tangent;
  push->out[0] = phi->tangent = tarn__tangent_new(graph, phi, "tangent of features");
  tarn__graph_emit(graph, push);
}

static const tarn__op op_feature_map = {
    .id = TARN__OP_FEATURE_MAP, .name = "feature_map", .grad = grad, .tangent = tangent, .flops = flops, .cheap = true};

tarn__tensor *tarn__feature_map(tarn__graph *graph, tarn__tensor *x, tarn__param *projection,
                                tarn__feature_map_spec spec) {
  const int64_t d = spec.heads * spec.width;
  bool fits = spec.heads > 0 && spec.width > 0 && spec.query_column >= 0 && spec.query_column <= x->cols - d &&
              spec.key_column >= 0 && spec.key_column <= x->cols - d && spec.features > 0;
  fits = fits && (projection ? projection->rows == spec.features && projection->cols == spec.width &&
                                   projection->dtype == x->dtype && !projection->trained
                             : spec.features == spec.width);
  if (!fits) tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "feature_map: its inputs do not fit together");
  tarn__node *node = tarn__graph_node(graph, &op_feature_map, sizeof spec);
  *(tarn__feature_map_spec *)node->attr = spec;
  node->in[TARN__FEATURE_MAP_X] = x;
  node->in[TARN__FEATURE_MAP_PROJECTION] = projection ? tarn__graph_param(graph, projection) : NULL;
  const tarn__dtype dtype = projection ? tarn__linear_attention_state_dtype(x->dtype) : x->dtype;
  node->out[0] = tarn__graph_tensor(graph, dtype, x->rows, 2 * spec.heads * spec.features, "features");
  tarn__graph_emit(graph, node);
  return node->out[0];
}
