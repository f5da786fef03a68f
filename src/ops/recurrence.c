#include "ops/recurrence.h"

#include "graph/entries.h"
#include "graph/tangents.h"
#include "ops/offsets.h"
#include "ops/recurrence_inside.h"

// Share of zeros from which the recurrent matrix of an echo state network is multiplied as a sparse one. The break-even
// points differ between machines: 0.6 in fp32 and 0.8 in bf16 on Zen 4, 0.85 and 0.65 on a Xeon with AVX-512
// (bench/performance.md).
static const double SPARSE = 0.85;

bool tarn__recurrence_sparse(const tarn__tensor *weight) {
  const tarn__param *param = weight->param;
  if (param->entries > 0) return true;
  return param->reservoir && weight->rows == weight->cols && param->decoding.rounding == TARN__ROUNDING_NONE &&
         param->reservoir->sparsity >= SPARSE;
}

// The products of all steps with one recurrent weight. For a sparse one only its expected entries count.
double tarn__recurrence_product_flops(const tarn__tensor *weight, int64_t rows) {
  if (weight->param->entries > 0)
    return 2.0 * (double)rows * tarn__reservoir_entries(weight->rows, weight->param->reservoir);
  const double share = tarn__recurrence_sparse(weight) ? 1.0 - weight->param->reservoir->sparsity : 1.0;
  return 2.0 * (double)rows * (double)weight->rows * (double)weight->cols * share;
}

// The first step of a sentence has no product, unless it begins with a state; the backward pass ends there in any case.
static double loop_flops(const tarn__node *node, int first_weight, const tarn__tensor *offsets, int64_t rows,
                         const tarn__tensor *start) {
  const tarn__recurrence_spec *spec = node->attr;
  const int64_t without = start ? 0 : offsets->cols - 1;
  double flops = 0;
  for (int d = 0; d < spec->directions; d++)
    flops += tarn__recurrence_product_flops(node->in[first_weight + d], rows - without);
  return flops;
}

static double flops(const tarn__node *node) {
  return loop_flops(node, TARN__RECURRENCE_WEIGHTS, node->in[TARN__RECURRENCE_OFFSETS],
                    node->in[TARN__RECURRENCE_X]->rows, node->in[TARN__RECURRENCE_START]);
}

static double backward_flops(const tarn__node *node) {
  return loop_flops(node, TARN__RECURRENCE_BACK_WEIGHTS, node->in[TARN__RECURRENCE_BACK_OFFSETS],
                    node->in[TARN__RECURRENCE_BACK_DY]->rows, NULL);
}

// A dense product for any kind of weight.
static double dweight_flops(const tarn__node *node) {
  const tarn__recurrence_dweight_attr *attr = node->attr;
  const tarn__tensor *first = node->in[TARN__RECURRENCE_DWEIGHT_FIRST];
  const double n = (double)attr->spec.hidden;
  const double rows = (double)(node->in[TARN__RECURRENCE_DWEIGHT_DU]->rows + (first ? first->rows : 0));
  return 2.0 * rows * (double)tarn__recurrence_gates(&attr->spec) * n * n;
}

static tarn_status check(const tarn__node *node) {
  return tarn__offsets_check(node->in[TARN__RECURRENCE_OFFSETS], node->in[TARN__RECURRENCE_X]->rows, "recurrence", "x");
}

static tarn_status backward_check(const tarn__node *node) {
  return tarn__offsets_check(node->in[TARN__RECURRENCE_BACK_OFFSETS], node->in[TARN__RECURRENCE_BACK_DY]->rows,
                             "recurrence", "x");
}

static const tarn__op dweight_op = {
    .id = TARN__OP_RECURRENCE_DWEIGHT, .name = "recurrence_dweight", .flops = dweight_flops};

// The gradient of x takes over the memory of the gates, which overwrote x.
static const tarn__op backward_op = {.id = TARN__OP_RECURRENCE_BACKWARD,
                                     .name = "recurrence_backward",
                                     .flops = backward_flops,
                                     .check = backward_check,
                                     .in_place = true,
                                     .inplace_out = TARN__RECURRENCE_BACK_DX,
                                     .inplace_in = TARN__RECURRENCE_BACK_GATES};

static void append_dweight(tarn__graph *graph, const tarn__node *backward, int direction, tarn__param *weight) {
  const tarn__recurrence_spec *spec = backward->attr;
  tarn__node *node = tarn__graph_node(graph, &dweight_op, sizeof(tarn__recurrence_dweight_attr));
  *(tarn__recurrence_dweight_attr *)node->attr = (tarn__recurrence_dweight_attr){*spec, direction};
  node->in[TARN__RECURRENCE_DWEIGHT_DU] = backward->out[TARN__RECURRENCE_BACK_DU];
  node->in[TARN__RECURRENCE_DWEIGHT_Y] = backward->in[TARN__RECURRENCE_BACK_Y];
  node->in[TARN__RECURRENCE_DWEIGHT_FIRST] = backward->out[TARN__RECURRENCE_BACK_FIRST];
  node->in[TARN__RECURRENCE_DWEIGHT_START] = backward->in[TARN__RECURRENCE_BACK_START];
  node->dparam[0] = weight;
  tarn__graph_emit(graph, node);
}

static void gradient(tarn__graph *graph, tarn__node *forward) {
  const tarn__recurrence_spec *spec = forward->attr;
  tarn__tensor *x = forward->in[TARN__RECURRENCE_X], *y = forward->out[TARN__RECURRENCE_Y];
  tarn__tensor *offsets = forward->in[TARN__RECURRENCE_OFFSETS], *start = forward->in[TARN__RECURRENCE_START];
  tarn__node *node = tarn__graph_node(graph, &backward_op, sizeof *spec);
  *(tarn__recurrence_spec *)node->attr = *spec;
  node->in[TARN__RECURRENCE_BACK_DY] = y->grad;
  node->in[TARN__RECURRENCE_BACK_Y] = y;
  node->in[TARN__RECURRENCE_BACK_GATES] = forward->out[TARN__RECURRENCE_GATES];
  node->in[TARN__RECURRENCE_BACK_EXTRA] = forward->out[TARN__RECURRENCE_EXTRA];
  if (spec->cell == TARN__CELL_ECHO) node->in[TARN__RECURRENCE_BACK_LEAKS] = forward->in[TARN__RECURRENCE_LEAKS];
  node->in[TARN__RECURRENCE_BACK_OFFSETS] = offsets;
  node->in[TARN__RECURRENCE_BACK_START] = start;
  bool weights = false;
  for (int d = 0; d < spec->directions; d++) {
    const tarn__tensor *bias = forward->in[TARN__RECURRENCE_BIASES + d];
    node->in[TARN__RECURRENCE_BACK_WEIGHTS + d] = forward->in[TARN__RECURRENCE_WEIGHTS + d];
    if (bias && bias->needs_grad) node->dparam[d] = bias->param;
    weights |= forward->in[TARN__RECURRENCE_WEIGHTS + d]->needs_grad;
  }
  if (x->needs_grad)
    node->out[TARN__RECURRENCE_BACK_DX] = tarn__grad_into(graph, x, &node->in[TARN__RECURRENCE_BACK_PREVIOUS]);
  if (weights)
    node->out[TARN__RECURRENCE_BACK_DU] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "recurrence du");
  if (weights && start)
    node->out[TARN__RECURRENCE_BACK_FIRST] =
        tarn__graph_tensor(graph, x->dtype, offsets->cols - 1, x->cols, "recurrence du first");
  tarn__graph_emit(graph, node);
  for (int d = 0; d < spec->directions; d++) {
    const tarn__tensor *weight = forward->in[TARN__RECURRENCE_WEIGHTS + d];
    if (weight->needs_grad) append_dweight(graph, node, d, weight->param);
  }
}

static double tangent_flops(const tarn__node *node) {
  const tarn__tensor *y = node->in[TARN__RECURRENCE_TANGENT_Y];
  const double directions = (double)tarn__tangent_directions(node->out[0], y->rows);
  return directions * loop_flops(node, TARN__RECURRENCE_TANGENT_WEIGHTS, node->in[TARN__RECURRENCE_TANGENT_OFFSETS],
                                 y->rows, node->in[TARN__RECURRENCE_TANGENT_DSTART]);
}

static tarn_status tangent_check(const tarn__node *node) {
  return tarn__offsets_check(node->in[TARN__RECURRENCE_TANGENT_OFFSETS], node->in[TARN__RECURRENCE_TANGENT_Y]->rows,
                             "recurrence", "x");
}

static const tarn__op tangent_op = {
    .id = TARN__OP_RECURRENCE_TANGENT, .name = "recurrence_tangent", .flops = tangent_flops, .check = tangent_check};

static void keep_inside(tarn__graph *graph, tarn__node *node);

static void tangent(tarn__graph *graph, tarn__node *node) {
  const tarn__recurrence_spec *spec = node->attr;
  tarn__tensor *start = node->in[TARN__RECURRENCE_START], *end = node->in[TARN__RECURRENCE_END];
  tarn__tensor *y = node->out[TARN__RECURRENCE_Y];
  if (!node->out[TARN__RECURRENCE_GATES]) keep_inside(graph, node);
  tarn__node *push = tarn__graph_node(graph, &tangent_op, sizeof *spec);
  *(tarn__recurrence_spec *)push->attr = *spec;
  push->in[TARN__RECURRENCE_TANGENT_DX] = node->in[TARN__RECURRENCE_X]->tangent;
  push->in[TARN__RECURRENCE_TANGENT_Y] = y;
  push->in[TARN__RECURRENCE_TANGENT_GATES] = node->out[TARN__RECURRENCE_GATES];
  push->in[TARN__RECURRENCE_TANGENT_EXTRA] = node->out[TARN__RECURRENCE_EXTRA];
  if (spec->cell == TARN__CELL_ECHO) push->in[TARN__RECURRENCE_TANGENT_LEAKS] = node->in[TARN__RECURRENCE_LEAKS];
  push->in[TARN__RECURRENCE_TANGENT_OFFSETS] = node->in[TARN__RECURRENCE_OFFSETS];
  for (int d = 0; d < spec->directions; d++)
    push->in[TARN__RECURRENCE_TANGENT_WEIGHTS + d] = node->in[TARN__RECURRENCE_WEIGHTS + d];
  push->in[TARN__RECURRENCE_TANGENT_START] = start;
  push->in[TARN__RECURRENCE_TANGENT_DSTART] = start ? start->tangent : NULL;
  push->out[TARN__RECURRENCE_TANGENT_DY] = y->tangent = tarn__tangent_new(graph, y, "tangent of recurrence");
  if (end && end->tangent) push->out[TARN__RECURRENCE_TANGENT_DEND] = tarn__graph_detached(graph, end->tangent);
  tarn__graph_emit(graph, push);
}

static const tarn__op recurrence_op = {.id = TARN__OP_RECURRENCE,
                                       .name = "recurrence",
                                       .grad = gradient,
                                       .tangent = tangent,
                                       .flops = flops,
                                       .check = check,
                                       .in_place = true,
                                       .inplace_out = TARN__RECURRENCE_GATES,
                                       .inplace_in = TARN__RECURRENCE_X};

bool tarn__recurrence_fits(const tarn__tensor *x, const tarn__recurrent *weights, const tarn__recurrence_spec *spec) {
  const int64_t n = spec->hidden, width = tarn__recurrence_gates(spec) * n;
  const tarn__param *weight = weights->weight, *bias = weights->bias, *leaks = weights->leaks;
  const bool echo = spec->cell == TARN__CELL_ECHO;
  if (weight->rows != width || weight->cols != n || weight->dtype != x->dtype) return false;
  if (weight->entries > 0 && (!echo || weight->trained || !weight->reservoir)) return false;
  if (echo && !leaks && !(spec->leak > 0 && spec->leak <= 1)) return false;
  if (leaks && (!echo || leaks->trained || leaks->rows != 1 || leaks->cols != n)) return false;
  return !bias || bias->cols == width;
}

static bool fits(const tarn__tensor *x, const tarn__tensor *offsets, const tarn__recurrent weights[2],
                 const tarn__recurrence_spec *spec) {
  const int64_t n = spec->hidden, width = tarn__recurrence_gates(spec) * n;
  if (n < 1 || spec->directions < 1 || spec->directions > 2 || x->cols != spec->directions * width) return false;
  if (offsets->dtype != TARN__I32 || offsets->cols < 1) return false;
  for (int d = 0; d < spec->directions; d++)
    if (!tarn__recurrence_fits(x, &weights[d], spec)) return false;
  return spec->directions == 1 || !weights[0].leaks;
}

// Nodes keep gates and extra if they have them as outputs.
static void keep_inside(tarn__graph *graph, tarn__node *node) {
  const tarn__recurrence_spec *spec = node->attr;
  const tarn__tensor *x = node->in[TARN__RECURRENCE_X];
  const int64_t cols = spec->directions * spec->hidden;
  node->out[TARN__RECURRENCE_GATES] = tarn__graph_tensor(graph, x->dtype, x->rows, x->cols, "recurrence gates");
  if (spec->cell != TARN__CELL_ECHO)
    node->out[TARN__RECURRENCE_EXTRA] = tarn__graph_tensor(graph, x->dtype, x->rows, cols, "recurrence extra");
  for (int k = TARN__RECURRENCE_GATES; k <= TARN__RECURRENCE_EXTRA; k++)
    if (node->out[k]) node->out[k]->source = node;
}

static tarn__tensor *build(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets, const tarn__recurrent weights[2],
                           tarn__recurrence_spec spec, tarn__tensor *start, tarn__tensor *end) {
  if (!fits(x, offsets, weights, &spec)) {
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "recurrence: its inputs do not fit together");
    return x;
  }
  tarn__node *node = tarn__graph_node(graph, &recurrence_op, sizeof spec);
  *(tarn__recurrence_spec *)node->attr = spec;
  node->in[TARN__RECURRENCE_X] = x;
  node->in[TARN__RECURRENCE_OFFSETS] = offsets;
  node->in[TARN__RECURRENCE_START] = start;
  node->in[TARN__RECURRENCE_END] = end;
  if (weights[0].leaks) node->in[TARN__RECURRENCE_LEAKS] = tarn__graph_param(graph, weights[0].leaks);
  bool trained = x->needs_grad;
  for (int d = 0; d < spec.directions; d++) {
    tarn__tensor *weight = tarn__graph_param(graph, weights[d].weight);
    tarn__tensor *bias = weights[d].bias ? tarn__graph_param(graph, weights[d].bias) : NULL;
    node->in[TARN__RECURRENCE_WEIGHTS + d] = weight;
    node->in[TARN__RECURRENCE_BIASES + d] = bias;
    trained |= weight->needs_grad || (bias && bias->needs_grad);
  }
  const int64_t cols = spec.directions * spec.hidden;
  tarn__tensor *y = node->out[TARN__RECURRENCE_Y] = tarn__graph_tensor(graph, x->dtype, x->rows, cols, "recurrence");
  if (trained) keep_inside(graph, node);
  tarn__graph_emit(graph, node);
  return y;
}

tarn__tensor *tarn__recurrence(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets,
                               const tarn__recurrent weights[2], tarn__recurrence_spec spec) {
  return build(graph, x, offsets, weights, spec, NULL, NULL);
}

void tarn__recurrence_inside(tarn__graph *graph, const tarn__tensor *states, tarn__tensor **gates,
                             tarn__tensor **cells) {
  tarn__node *node = states->source;
  *gates = *cells = NULL;
  if (!node || node->op != &recurrence_op || graph->status != TARN_STATUS_OK) return;
  if (!node->out[TARN__RECURRENCE_GATES]) keep_inside(graph, node);
  *gates = node->out[TARN__RECURRENCE_GATES];
  if (((const tarn__recurrence_spec *)node->attr)->cell == TARN__CELL_LSTM) *cells = node->out[TARN__RECURRENCE_EXTRA];
}

static bool holds_states(const tarn__tensor *states, const tarn__tensor *x, const tarn__tensor *offsets,
                         const tarn__recurrence_spec *spec) {
  return states->place == TARN__EXTERNAL && states->dtype == tarn__recurrence_state_dtype(x->dtype) &&
         states->rows >= offsets->cols - 1 && states->cols == tarn__recurrence_cache_width(spec->cell, spec->hidden);
}

tarn__tensor *tarn__recurrence_carried(tarn__graph *graph, tarn__tensor *x, tarn__tensor *offsets,
                                       tarn__recurrent weights, tarn__recurrence_spec spec, tarn__tensor *start,
                                       tarn__tensor *end) {
  const bool apart = !start->data || start->data != end->data;  // without memory if the graph is only planned
  if (spec.directions != 1 || spec.reverse || !apart || !holds_states(start, x, offsets, &spec) ||
      !holds_states(end, x, offsets, &spec))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "recurrence: its carried states do not fit");
  return build(graph, x, offsets, (const tarn__recurrent[2]){weights}, spec, start, end);
}
