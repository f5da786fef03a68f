#include "graph/tangents.h"

#include "graph/add.h"

static tarn__tensor *stacked(tarn__graph *graph, tarn__tensor *source, const char *name, int64_t period, int extra) {
  if (!source) return NULL;
  // Integers have no tangents: the field holds a chain of their copies for all directions instead.
  tarn__tensor *last = source;
  for (tarn__tensor *known = source->tangent; known; known = known->tangent) {
    const bool shifted = source->cols > extra && source->host;
    if (known->name == name && (!shifted || known->host[source->cols - extra] == source->host[0] + period))
      return known;
    last = known;
  }
  const int64_t n = source->cols - extra, count = graph->directions * n + extra;
  void *memory = NULL;
  if (source->host && graph->status == TARN_STATUS_OK)
    graph->status = tarn__arena_alloc(&graph->arena, &memory, (size_t)count + 1, sizeof(int32_t));
  int32_t *host = graph->status == TARN_STATUS_OK ? memory : NULL;
  if (source->host && (int64_t)graph->directions * (period + 1) > INT32_MAX)
    tarn__graph_fail(graph, TARN_STATUS_UNSUPPORTED, "%d directions of %lld rows are too many to be counted",
                     graph->directions, (long long)period);
  for (int64_t k = 0; host && k < graph->directions; k++)
    for (int64_t i = 0; i < n + extra; i++) host[k * n + i] = source->host[i] + (int32_t)(k * period);
  return last->tangent = tarn__graph_input(graph, count, host, name);
}

// Names, whose addresses identify the kinds.
static const char offsets_name[] = "offsets of directions", positions_name[] = "positions of directions",
                  rows_name[] = "rows of directions";

tarn__tensor *tarn__tangent_offsets(tarn__graph *graph, tarn__tensor *offsets) {
  const int64_t rows = offsets && offsets->host ? offsets->host[offsets->cols - 1] : 0;
  return stacked(graph, offsets, offsets_name, rows, 1);
}

tarn__tensor *tarn__tangent_positions(tarn__graph *graph, tarn__tensor *positions) {
  return stacked(graph, positions, positions_name, 0, 0);
}

tarn__tensor *tarn__tangent_rows(tarn__graph *graph, tarn__tensor *rows, int64_t period) {
  return stacked(graph, rows, rows_name, period, 0);
}

tarn__tensor *tarn__tangent_new(tarn__graph *graph, const tarn__tensor *tensor, const char *name) {
  return tarn__graph_tensor(graph, tensor->dtype, graph->directions * tensor->rows, tensor->cols, name);
}

void tarn__tangent_add(tarn__graph *graph, tarn__tensor *tensor, tarn__tensor *contribution) {
  if (!tensor->tangent || !contribution) {
    if (contribution) tensor->tangent = contribution;
    return;
  }
  tarn__node *node = tarn__graph_node(graph, &tarn__op_add, 0);
  node->in[0] = tensor->tangent;
  node->in[1] = contribution;
  node->out[0] = tarn__tangent_new(graph, tensor, "tangent");
  tarn__graph_emit(graph, node);
  tensor->tangent = node->out[0];
}

bool tarn__tangent_wanted(const tarn__tensor *tensor) { return tensor->keep || tensor->last >= 0; }

tarn__tensor *tarn__tangent_keep(tarn__graph *graph, tarn__node *node, int out, tarn__dtype dtype, int64_t rows,
                                 int64_t cols, const char *name) {
  if (!node->out[out]) {
    node->out[out] = tarn__graph_tensor(graph, dtype, rows, cols, name);
    node->out[out]->source = node;
  }
  return node->out[out];
}

static bool moves(const tarn__node *node) {
  for (int i = 0; i < TARN__MAX_INPUTS; i++)
    if (node->in[i] && node->in[i]->tangent && node->in[i]->dtype != TARN__I32) return true;
  return false;
}

static void check_inputs(tarn__graph *graph) {
  if (graph->dtype == TARN__BF16)
    tarn__graph_fail(graph, TARN_STATUS_UNSUPPORTED, "tangents are computed in fp32 or in double, not in bf16");
  if (graph->directions != 0 || graph->forward_count != 0)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "a graph is pushed once, and not differentiated");
  for (size_t i = 0; i < graph->tensor_count; i++) {
    const tarn__tensor *tensor = graph->tensors[i], *tangent = tensor->tangent;
    if (!tangent) continue;
    if (tensor->source || tensor->param || tangent->dtype != tensor->dtype || tangent->cols != tensor->cols)
      tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "the directions of %s do not fit it", tensor->name);
  }
}

// Checks that tangents of inputs have the announced number of directions, for the inputs that are read.
static void check_rows(tarn__graph *graph, const tarn__node *node) {
  for (int i = 0; i < TARN__MAX_INPUTS; i++) {
    const tarn__tensor *tensor = node->in[i];
    if (tensor && tensor->tangent && tensor->dtype != TARN__I32 &&
        tensor->tangent->rows != graph->directions * tensor->rows)
      tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "%s has %lld rows of directions; expected %d times %lld",
                       tensor->name, (long long)tensor->tangent->rows, graph->directions, (long long)tensor->rows);
  }
}

static void push_node(tarn__graph *graph, tarn__node *node) {
  check_rows(graph, node);
  if (!node->op->tangent) {
    tarn__graph_fail(graph, TARN_STATUS_UNSUPPORTED, "the op %s has no tangents", node->op->name);
    return;
  }
  const size_t first = graph->node_count;
  graph->label = node->label;
  graph->fp32 = node->fp32;
  node->op->tangent(graph, node);
  for (size_t i = first; i < graph->node_count; i++) {
    const tarn__op *op = graph->nodes[i]->op;
    if (op->id >= graph->device->type->ops || !graph->kernels[op->id].run)
      tarn__graph_fail(graph, TARN_STATUS_UNSUPPORTED,
                       "the device %s has no tangents of the op %s in %s; the reference has them in double precision",
                       graph->device->name, node->op->name, tarn__dtype_name(graph->dtype));
  }
}

// Marks the tensors that nodes read, in tensor->last, which planning sets anew.
static void mark_read(tarn__graph *graph) {
  for (size_t i = 0; i < graph->tensor_count; i++) graph->tensors[i]->last = -1;
  for (size_t n = 0; n < graph->node_count; n++)
    for (int k = 0; k < TARN__MAX_INPUTS; k++)
      if (graph->nodes[n]->in[k]) graph->nodes[n]->in[k]->last = (int)n;
}

static void append(tarn__graph *graph, tarn__node *node) {
  tarn_status status = tarn__grow(&graph->nodes, &graph->node_capacity, graph->node_count + 1, sizeof *graph->nodes);
  if (status != TARN_STATUS_OK)
    graph->status = status;
  else
    graph->nodes[graph->node_count++] = node;
}

void tarn__graph_push(tarn__graph *graph, int directions) {
  const char *label = graph->label;
  const tarn__fp32 fp32 = graph->fp32;
  const size_t count = graph->node_count;
  void *memory = NULL;
  if (directions < 1) tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "%d directions cannot be pushed", directions);
  check_inputs(graph);
  if (graph->status == TARN_STATUS_OK)
    graph->status = tarn__arena_alloc(&graph->arena, &memory, count + 1, sizeof(tarn__node *));
  if (graph->status != TARN_STATUS_OK) return;
  tarn__node **forward = memory;
  for (size_t i = 0; i < count; i++) forward[i] = graph->nodes[i];
  tarn__graph_segment_end(graph);
  mark_read(graph);
  graph->directions = directions;
  graph->backward = true;  // nodes added now need no gradient rule
  graph->node_count = 0;
  for (size_t i = 0; i < count && graph->status == TARN_STATUS_OK; i++) {
    append(graph, forward[i]);
    if (graph->status == TARN_STATUS_OK && moves(forward[i])) push_node(graph, forward[i]);
  }
  graph->label = label;
  graph->fp32 = fp32;
}
