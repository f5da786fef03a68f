#include "ops/route.h"

#include <math.h>

#include "graph/tangents.h"

// Rows of x times one matrix.
static double product_flops(const tarn__node *node) {
  const tarn__tensor *x = node->in[TARN__ROUTE_X], *weight = node->in[TARN__ROUTE_WEIGHT];
  return 2.0 * (double)x->rows * (double)x->cols * (double)weight->rows;
}

static double route_flops(const tarn__node *node) {
  return product_flops(node) * (node->in[TARN__ROUTE_NOISE] ? 2.0 : 1.0);
}

static double backward_flops(const tarn__node *node) {
  return (node->out[0] ? route_flops(node) : 0.0) +
         product_flops(node) * ((node->dparam[0] ? 1.0 : 0.0) + (node->dparam[1] ? 1.0 : 0.0));
}

static const tarn__op op_route_backward = {
    .id = TARN__OP_ROUTE_BACKWARD, .name = "route_backward", .flops = backward_flops};

static void route_grad(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[TARN__ROUTE_X], *weight = node->in[TARN__ROUTE_WEIGHT];
  tarn__node *back = tarn__graph_node(graph, &op_route_backward, sizeof(tarn__route_attr));
  *(tarn__route_attr *)back->attr = *(const tarn__route_attr *)node->attr;
  back->in[TARN__ROUTE_X] = x;
  back->in[TARN__ROUTE_WEIGHT] = weight;
  back->in[TARN__ROUTE_P] = node->out[TARN__ROUTE_PROBABILITIES];
  back->in[TARN__ROUTE_DGATES] = node->out[TARN__ROUTE_GATES]->grad;
  tarn__tensor *noise = back->in[TARN__ROUTE_NOISE] = node->in[TARN__ROUTE_NOISE];
  if (weight->needs_grad) back->dparam[0] = weight->param;
  if (noise && noise->needs_grad) back->dparam[1] = noise->param;
  if (x->needs_grad) back->out[0] = tarn__grad_into(graph, x, &back->in[TARN__ROUTE_PREVIOUS]);
  tarn__graph_emit(graph, back);
}

static double tangent_flops(const tarn__node *node) {
  const int64_t rows = node->in[TARN__ROUTE_X]->rows;
  return route_flops(node) * (double)tarn__tangent_directions(node->out[0], rows);
}

static const tarn__op op_route_tangent = {
    .id = TARN__OP_ROUTE_TANGENT, .name = "route_tangent", .flops = tangent_flops};

static int64_t kept_columns(const tarn__node *node) {
  return node->in[TARN__ROUTE_WEIGHT]->rows * (node->in[TARN__ROUTE_NOISE] ? 3 : 1);
}

// Choices and places are constant except where two experts are equally probable.
static void route_tangent(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *x = node->in[TARN__ROUTE_X], *weight = node->in[TARN__ROUTE_WEIGHT];
  tarn__tensor *gates = node->out[TARN__ROUTE_GATES];
  tarn__node *push = tarn__graph_node(graph, &op_route_tangent, sizeof(tarn__route_attr));
  *(tarn__route_attr *)push->attr = *(const tarn__route_attr *)node->attr;
  push->in[TARN__ROUTE_X] = x;
  push->in[TARN__ROUTE_WEIGHT] = weight;
  push->in[TARN__ROUTE_NOISE] = node->in[TARN__ROUTE_NOISE];
  push->in[TARN__ROUTE_P] = tarn__tangent_keep(graph, node, TARN__ROUTE_PROBABILITIES, gates->dtype, x->rows,
                                               kept_columns(node), "probabilities of experts");
  push->in[TARN__ROUTE_DX] = x->tangent;
  push->out[0] = gates->tangent = tarn__tangent_new(graph, gates, "tangent of gates");
  tarn__graph_emit(graph, push);
}

static const tarn__op op_route = {
    .id = TARN__OP_ROUTE, .name = "route", .grad = route_grad, .tangent = route_tangent, .flops = route_flops};

// The number of choices that an expert takes.
static int64_t room_of(const tarn__graph *graph, const tarn__route_spec *spec, int64_t rows, int64_t experts) {
  if (!graph->training || isinf(spec->capacity)) return INT64_MAX;
  const double room = ceil(spec->capacity * (double)(rows * spec->choices) / (double)experts);
  return room < (double)rows ? (int64_t)room : INT64_MAX;
}

// noise: NULL without noisy gating.
static tarn__routed route(tarn__graph *graph, tarn__tensor *x, tarn__param *weight, tarn__param *noise,
                          tarn__route_spec spec) {
  const int64_t experts = weight->rows, rows = x->rows;
  if (x->cols != weight->cols || spec.choices < 1 || spec.choices > experts ||
      spec.choices > TARN__ROUTE_MOST_CHOICES || experts > TARN__ROUTE_MOST_EXPERTS || !(spec.capacity > 0.0) ||
      !(spec.noise >= 0.0 && spec.noise < 1.0))
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "route: %lld choices of %lld experts, or their weight, do not fit",
                     (long long)spec.choices, (long long)experts);
  tarn__node *node = tarn__graph_node(graph, &op_route, sizeof(tarn__route_attr));
  tarn__route_attr *attr = node->attr;
  *attr = (tarn__route_attr){.spec = spec, .room = room_of(graph, &spec, rows, experts)};
  if (spec.noise > 0.0 || noise) attr->site = tarn__graph_site(graph);
  attr->noisy = spec.noise > 0.0 && graph->training;
  node->in[TARN__ROUTE_X] = x;
  node->in[TARN__ROUTE_WEIGHT] = tarn__graph_param(graph, weight);
  if (noise && graph->training) node->in[TARN__ROUTE_NOISE] = tarn__graph_param(graph, noise);
  const tarn__tensor *second = node->in[TARN__ROUTE_NOISE];
  const tarn__dtype dtype = x->dtype == TARN__F64 ? TARN__F64 : TARN__F32;
  tarn__routed routed = {.gates = tarn__graph_tensor(graph, dtype, rows, spec.choices, "gates"),
                         .places = tarn__graph_tensor(graph, TARN__I32, rows, spec.choices, "places"),
                         .offsets = tarn__graph_tensor(graph, TARN__I32, 1, experts + 1, "offsets of experts"),
                         .rows = rows * spec.choices};
  if (attr->room < INT64_MAX && experts * attr->room < routed.rows) routed.rows = experts * attr->room;
  node->out[TARN__ROUTE_GATES] = routed.gates;
  node->out[TARN__ROUTE_PLACES] = routed.places;
  node->out[TARN__ROUTE_OFFSETS] = routed.offsets;
  if (graph->training && (x->needs_grad || node->in[TARN__ROUTE_WEIGHT]->needs_grad || (second && second->needs_grad)))
    node->out[TARN__ROUTE_PROBABILITIES] =
        tarn__graph_tensor(graph, dtype, rows, kept_columns(node), "probabilities of experts");
  tarn__graph_emit(graph, node);
  // Integers have no gradient: nodes that read nothing else with a gradient need none.
  routed.places->needs_grad = routed.offsets->needs_grad = false;
  routed.offsets->keep = node->out[TARN__ROUTE_PROBABILITIES] != NULL;  // for tarn__route_visit()
  return routed;
}

tarn__routed tarn__route(tarn__graph *graph, tarn__tensor *x, tarn__param *weight, tarn__route_spec spec) {
  return route(graph, x, weight, NULL, spec);
}

tarn__routed tarn__route_noisy(tarn__graph *graph, tarn__tensor *x, tarn__param *weight, tarn__param *noise,
                               tarn__route_spec spec) {
  if (noise->rows != weight->rows || noise->cols != weight->cols || noise->dtype != weight->dtype ||
      spec.choices >= weight->rows || !spec.normalise || spec.noise > 0.0 || spec.balance > 0.0)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "route: noise [%lld, %lld] and its keys do not fit the router",
                     (long long)noise->rows, (long long)noise->cols);
  return route(graph, x, weight, noise, spec);
}

tarn_status tarn__route_visit(const tarn__graph *graph, tarn__route_visitor *visit, void *user) {
  tarn__host_room room = {0};
  tarn_status status = TARN_STATUS_OK;
  const size_t count = graph->training ? graph->forward_count : 0;
  for (size_t i = 0; i < count && status == TARN_STATUS_OK; i++) {
    const tarn__node *node = graph->nodes[i];
    if (node->op != &op_route || !node->out[TARN__ROUTE_OFFSETS]->keep) continue;
    const tarn__tensor *offsets = node->out[TARN__ROUTE_OFFSETS];
    void *values;
    status = tarn__graph_read(graph, &values, offsets, &room);
    if (status == TARN_STATUS_OK) visit(user, node->in[TARN__ROUTE_WEIGHT]->param, values, offsets->cols - 1);
  }
  tarn__host_room_close(&room);
  return status;
}

static const tarn__op op_gather_backward = {.id = TARN__OP_GATHER_ROWS_BACKWARD, .name = "gather_rows_backward"};

static void gather_grad(tarn__graph *graph, tarn__node *node) {
  tarn__node *back = tarn__graph_node(graph, &op_gather_backward, 0);
  back->in[TARN__GATHER_DY] = node->out[0]->grad;
  back->in[TARN__GATHER_PLACES] = node->in[TARN__GATHER_PLACES];
  back->out[0] = tarn__grad_into(graph, node->in[TARN__GATHER_X], &back->in[TARN__GATHER_PREVIOUS]);
  tarn__graph_emit(graph, back);
}

static const tarn__op op_gather_tangent = {.id = TARN__OP_GATHER_ROWS, .name = "gather_rows_tangent"};

static void gather_tangent(tarn__graph *graph, tarn__node *node) {
  tarn__tensor *y = node->out[0];
  tarn__node *push = tarn__graph_node(graph, &op_gather_tangent, 0);
  push->in[TARN__GATHER_X] = node->in[TARN__GATHER_X]->tangent;
  push->in[TARN__GATHER_PLACES] = node->in[TARN__GATHER_PLACES];
  push->in[TARN__GATHER_OFFSETS] = node->in[TARN__GATHER_OFFSETS];
  push->out[0] = y->tangent = tarn__tangent_new(graph, y, "tangent of rows by expert");
  tarn__graph_emit(graph, push);
}

static const tarn__op op_gather = {
    .id = TARN__OP_GATHER_ROWS, .name = "gather_rows", .grad = gather_grad, .tangent = gather_tangent, .cheap = true};

tarn__tensor *tarn__gather_rows(tarn__graph *graph, tarn__tensor *x, const tarn__routed *routed) {
  if (x->rows != routed->places->rows)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "gather_rows: there are places of %lld rows",
                     (long long)routed->places->rows);
  tarn__node *node = tarn__graph_node(graph, &op_gather, 0);
  node->in[TARN__GATHER_X] = x;
  node->in[TARN__GATHER_PLACES] = routed->places;
  node->in[TARN__GATHER_OFFSETS] = routed->offsets;
  node->out[0] = tarn__graph_tensor(graph, x->dtype, routed->rows, x->cols, "rows by expert");
  tarn__graph_emit(graph, node);
  return node->out[0];
}
