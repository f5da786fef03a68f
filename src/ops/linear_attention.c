#include "ops/linear_attention.h"

#include "graph/tangents.h"
#include "ops/offsets.h"

static tarn_status check(const tarn__node *node) {
  return tarn__offsets_check(node->in[TARN__LINEAR_ATTENTION_OFFSETS], node->in[TARN__LINEAR_ATTENTION_PHI]->rows,
                             "linear_attention", "sentences");
}

// One product of all rows with the state of their heads.
static double product_flops(const tarn__node *node, const tarn__linear_attention_spec *spec) {
  return 2.0 * (double)node->in[TARN__LINEAR_ATTENTION_PHI]->rows * (double)(spec->heads * spec->features) *
         (double)spec->width;
}

// By the equations, whether kernels use states or, in short sentences, pairs of rows.
static double flops(const tarn__node *node) { return 2.0 * product_flops(node, node->attr); }

// S and U again, and a product with each for the gradients of queries, keys and values.
static double backward_flops(const tarn__node *node) { return 5.0 * product_flops(node, node->attr); }

static const tarn__op op_backward = {.id = TARN__OP_LINEAR_ATTENTION_BACKWARD,
                                     .name = "linear_attention_backward",
                                     .flops = backward_flops,
                                     .check = check};

static void grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *phi = node->in[TARN__LINEAR_ATTENTION_PHI], *values = node->in[TARN__LINEAR_ATTENTION_VALUES];
  tarn__node *back = tarn__graph_node(graph, &op_backward, sizeof(tarn__linear_attention_spec));
  *(tarn__linear_attention_spec *)back->attr = *(const tarn__linear_attention_spec *)node->attr;
  for (int i = 0; i < TARN__LINEAR_ATTENTION_END; i++) back->in[i] = node->in[i];
  back->in[TARN__LINEAR_ATTENTION_BACK_Y] = node->out[TARN__LINEAR_ATTENTION_Y];
  back->in[TARN__LINEAR_ATTENTION_BACK_DENOMINATORS] = node->out[TARN__LINEAR_ATTENTION_DENOMINATORS];
  back->in[TARN__LINEAR_ATTENTION_BACK_DY] = node->out[TARN__LINEAR_ATTENTION_Y]->grad;
  if (phi->needs_grad)
    back->out[TARN__LINEAR_ATTENTION_DPHI] =
        tarn__graph_tensor(graph, phi->dtype, phi->rows, phi->cols, "gradient of features");
  if (values->needs_grad)
    back->out[TARN__LINEAR_ATTENTION_DVALUES] =
        tarn__grad_into(graph, values, &back->in[TARN__LINEAR_ATTENTION_BACK_PREVIOUS]);
  tarn__graph_emit(graph, back);
  if (phi->needs_grad) tarn__grad_add(graph, phi, back->out[TARN__LINEAR_ATTENTION_DPHI]);
}

// S and its two tangents, and a product with each.
static double tangent_flops(const tarn__node *node) {
  const int64_t rows = node->in[TARN__LINEAR_ATTENTION_PHI]->rows;
  return (1.0 + 4.0 * (double)tarn__tangent_directions(node->out[0], rows)) * product_flops(node, node->attr);
}

static const tarn__op op_tangent = {.id = TARN__OP_LINEAR_ATTENTION_TANGENT,
                                    .name = "linear_attention_tangent",
                                    .flops = tangent_flops,
                                    .check = check};

static void tangent(tarn__graph *graph, tarn__node *node) {
  const tarn__tensor *start = node->in[TARN__LINEAR_ATTENTION_START], *end = node->in[TARN__LINEAR_ATTENTION_END];
  tarn__tensor *y = node->out[TARN__LINEAR_ATTENTION_Y];
  if ((start && start->tangent) || (end && end->tangent))
    tarn__graph_fail(graph, TARN_STATUS_UNSUPPORTED, "linear_attention: there are no tangents of carried states");
  tarn__node *push = tarn__graph_node(graph, &op_tangent, sizeof(tarn__linear_attention_spec));
  *(tarn__linear_attention_spec *)push->attr = *(const tarn__linear_attention_spec *)node->attr;
  for (int i = 0; i < TARN__LINEAR_ATTENTION_END; i++) push->in[i] = node->in[i];
  push->in[TARN__LINEAR_ATTENTION_TANGENT_Y] = y;
  push->in[TARN__LINEAR_ATTENTION_TANGENT_DENOMINATORS] = node->out[TARN__LINEAR_ATTENTION_DENOMINATORS];
  push->in[TARN__LINEAR_ATTENTION_TANGENT_PHI] = node->in[TARN__LINEAR_ATTENTION_PHI]->tangent;
  push->in[TARN__LINEAR_ATTENTION_TANGENT_VALUES] = node->in[TARN__LINEAR_ATTENTION_VALUES]->tangent;
  push->out[0] = y->tangent = tarn__tangent_new(graph, y, "tangent of linear attention");
  tarn__graph_emit(graph, push);
}

static const tarn__op op_linear_attention = {.id = TARN__OP_LINEAR_ATTENTION,
                                             .name = "linear_attention",
                                             .grad = grad,
                                             .tangent = tangent,
                                             .flops = flops,
                                             .cheap = true,
                                             .check = check};

static bool holds(const tarn__tensor *phi, const tarn__tensor *values, const tarn__linear_attention_spec *spec) {
  return spec->heads > 0 && spec->width > 0 && spec->features > 0 && phi->cols == 2 * spec->heads * spec->features &&
         phi->rows == values->rows && spec->value_column >= 0 &&
         spec->value_column <= values->cols - spec->heads * spec->width &&
         phi->dtype == (spec->exponents ? tarn__linear_attention_state_dtype(values->dtype) : values->dtype);
}

static bool is_states(const tarn__tensor *states, tarn__dtype dtype, const tarn__linear_attention_spec *spec) {
  return states->place == TARN__EXTERNAL && states->dtype == tarn__linear_attention_state_dtype(dtype) &&
         states->cols == tarn__linear_attention_state(spec);
}

tarn__tensor *tarn__linear_attention(tarn__graph *graph, tarn__tensor *phi, tarn__tensor *values, tarn__tensor *offsets,
                                     tarn__linear_attention_spec spec, tarn__tensor *start, tarn__tensor *end) {
  bool fits = holds(phi, values, &spec) && offsets->dtype == TARN__I32 && !start == !end;
  if (start && end)
    fits = fits && spec.causal && is_states(start, phi->dtype, &spec) && is_states(end, phi->dtype, &spec) &&
           start->rows >= offsets->cols - 1 && end->rows >= offsets->cols - 1 &&
           (!start->data || start->data != end->data);  // without memory if the graph is only planned
  if (!fits) tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "linear_attention: its inputs do not fit together");
  tarn__node *node = tarn__graph_node(graph, &op_linear_attention, sizeof spec);
  *(tarn__linear_attention_spec *)node->attr = spec;
  node->in[TARN__LINEAR_ATTENTION_PHI] = phi;
  node->in[TARN__LINEAR_ATTENTION_VALUES] = values;
  node->in[TARN__LINEAR_ATTENTION_OFFSETS] = offsets;
  node->in[TARN__LINEAR_ATTENTION_START] = start;
  node->in[TARN__LINEAR_ATTENTION_END] = end;
  tarn__tensor *y = tarn__graph_tensor(graph, values->dtype, phi->rows, spec.heads * spec.width, "linear attention");
  node->out[TARN__LINEAR_ATTENTION_Y] = y;
  node->out[TARN__LINEAR_ATTENTION_DENOMINATORS] =
      tarn__graph_tensor(graph, tarn__linear_attention_state_dtype(phi->dtype), phi->rows, spec.heads, "denominators");
  tarn__graph_emit(graph, node);
  return y;
}

// Every range must name existing rows, its own being the last.
static tarn_status check_rows(const tarn__node *node) {
  const tarn__linear_attention_rows_attr *attr = node->attr;
  const tarn__tensor *list = node->in[TARN__LINEAR_ATTENTION_ROWS], *cache = node->in[TARN__LINEAR_ATTENTION_CACHE];
  const tarn__tensor *ranges = node->in[TARN__LINEAR_ATTENTION_RANGES];
  const int64_t count = node->out[0]->rows;
  TARN_TRY(tarn__ranges_check(list, ranges, count, cache->rows, "linear_attention_rows"));
  for (int64_t i = 0; i < count; i++)
    TARN_REQUIRE(list->host[ranges->host[2 * i + 1] - 1] == attr->first_row + i, INTERNAL,
                 "linear_attention_rows: the range of row %lld does not end with it", (long long)i);
  return TARN_STATUS_OK;
}

static double rows_flops(const tarn__node *node) {
  return 2.0 * product_flops(node, &((const tarn__linear_attention_rows_attr *)node->attr)->spec);
}

// The states in the cache before and after each row.
static double rows_bytes(const tarn__node *node) {
  const tarn__tensor *cache = node->in[TARN__LINEAR_ATTENTION_CACHE], *y = node->out[0];
  return tarn__tensor_bytes(node->in[TARN__LINEAR_ATTENTION_PHI]) + 2.0 * tarn__tensor_bytes(y) +
         2.0 * (double)y->rows * (double)cache->cols * (double)tarn__dtype_size(cache->dtype);
}

static const tarn__op op_rows = {.id = TARN__OP_LINEAR_ATTENTION_ROWS,
                                 .name = "linear_attention_rows",
                                 .flops = rows_flops,
                                 .bytes = rows_bytes,
                                 .check = check_rows};

tarn__tensor *tarn__linear_attention_rows(tarn__graph *graph, tarn__tensor *phi, tarn__tensor *values,
                                          tarn__tensor *cache, int64_t first_row, tarn__tensor *rows,
                                          tarn__tensor *ranges, tarn__linear_attention_spec spec) {
  const bool fits = holds(phi, values, &spec) && is_states(cache, phi->dtype, &spec) && first_row >= 0 &&
                    first_row + phi->rows <= cache->rows && rows->dtype == TARN__I32 && ranges->dtype == TARN__I32 &&
                    ranges->cols == 2 * phi->rows;
  if (!fits) tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "linear_attention_rows: its inputs do not fit together");
  tarn__node *node = tarn__graph_node(graph, &op_rows, sizeof(tarn__linear_attention_rows_attr));
  *(tarn__linear_attention_rows_attr *)node->attr = (tarn__linear_attention_rows_attr){spec, first_row};
  node->in[TARN__LINEAR_ATTENTION_PHI] = phi;
  node->in[TARN__LINEAR_ATTENTION_VALUES] = values;
  node->in[TARN__LINEAR_ATTENTION_CACHE] = cache;
  node->in[TARN__LINEAR_ATTENTION_ROWS] = rows;
  node->in[TARN__LINEAR_ATTENTION_RANGES] = ranges;
  node->out[0] = tarn__graph_tensor(graph, values->dtype, phi->rows, spec.heads * spec.width, "linear attention");
  tarn__graph_emit(graph, node);
  return node->out[0];
}
