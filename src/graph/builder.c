#include <stdarg.h>
#include <stdio.h>

#include "graph/graph.h"

void tarn__graph_begin(tarn__graph *graph, const tarn__device *device, tarn__dtype dtype, bool training, int threads) {
  tarn__arena arena = graph->arena;
  tarn__node **nodes = graph->nodes;
  tarn__tensor **tensors = graph->tensors;
  size_t node_capacity = graph->node_capacity;
  size_t tensor_capacity = graph->tensor_capacity;
  tarn__arena_reset(&arena);
  *graph = (tarn__graph){.arena = arena,
                         .device = device,
                         .kernels = device->type->kernels[dtype],
                         .dtype = dtype,
                         .training = training,
                         .threads = threads,
                         .nodes = nodes,
                         .node_capacity = node_capacity,
                         .tensors = tensors,
                         .tensor_capacity = tensor_capacity,
                         .staging = graph->staging,
                         .inlet = graph->inlet,
                         .results = graph->results};
  if (!graph->kernels)
    tarn__graph_fail(graph, TARN_STATUS_UNSUPPORTED, "the device %s does not compute in %s", device->name,
                     tarn__dtype_name(dtype));
}

void tarn__graph_close(tarn__graph *graph) {
  tarn__arena_close(&graph->arena);
  tarn__free(graph->nodes);
  tarn__free(graph->tensors);
  tarn__inlet_close(&graph->inlet);  // which reads what is staged
  tarn__staging_close(&graph->staging);
  tarn__host_room_close(&graph->results);
  *graph = (tarn__graph){0};
}

void tarn__graph_fail(tarn__graph *graph, tarn_status status, const char *format, ...) {
  if (graph->status != TARN_STATUS_OK) return;
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  graph->status = tarn__fail(status, "%s", text);
}

// Allocates from the arena; NULL after a failure of the graph.
static void *take(tarn__graph *graph, size_t bytes) {
  void *memory = NULL;
  if (graph->status != TARN_STATUS_OK) return NULL;
  tarn_status status = tarn__arena_alloc(&graph->arena, &memory, 1, bytes);
  if (status != TARN_STATUS_OK) {
    graph->status = status;
    return NULL;
  }
  return memory;
}

static tarn__tensor *tensor_new(tarn__graph *graph, tarn__tensor value) {
  tarn__tensor *tensor = take(graph, sizeof *tensor);
  if (tensor && graph->tensor_count == graph->tensor_capacity) {
    tarn_status status =
        tarn__grow(&graph->tensors, &graph->tensor_capacity, graph->tensor_count + 1, sizeof *graph->tensors);
    if (status != TARN_STATUS_OK) {
      graph->status = status;
      tensor = NULL;
    }
  }
  if (!tensor) tensor = &graph->spare_tensor;
  *tensor = value;
  tensor->first = tensor->last = -1;
  if (tensor != &graph->spare_tensor) graph->tensors[graph->tensor_count++] = tensor;
  return tensor;
}

tarn__tensor *tarn__graph_tensor(tarn__graph *graph, tarn__dtype dtype, int64_t rows, int64_t cols, const char *name) {
  if (rows < 0 || cols < 1)
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "tensor %s has the shape [%lld, %lld]", name, (long long)rows,
                     (long long)cols);
  return tensor_new(graph, (tarn__tensor){.name = name, .dtype = dtype, .rows = rows, .cols = cols});
}

tarn__tensor *tarn__graph_external(tarn__graph *graph, tarn__dtype dtype, int64_t rows, int64_t cols, void *data,
                                   const char *name) {
  return tensor_new(
      graph,
      (tarn__tensor){.name = name, .dtype = dtype, .place = TARN__EXTERNAL, .rows = rows, .cols = cols, .data = data});
}

tarn__tensor *tarn__graph_input(tarn__graph *graph, int64_t count, const int32_t *host, const char *name) {
  return tarn__graph_input_rows(graph, 1, count, host, name);
}

tarn__tensor *tarn__graph_input_rows(tarn__graph *graph, int64_t rows, int64_t cols, const int32_t *host,
                                     const char *name) {
  void *data = graph->device->type->host_memory ? (void *)(uintptr_t)host : NULL;
  tarn__tensor *tensor = tarn__graph_external(graph, TARN__I32, rows, cols, data, name);
  tensor->place = TARN__INPUT;
  tensor->host = host;
  return tensor;
}

tarn__tensor *tarn__graph_detached(tarn__graph *graph, tarn__tensor *tensor) {
  tarn__tensor *detached = tarn__graph_tensor(graph, tensor->dtype, tensor->rows, tensor->cols, tensor->name);
  detached->shares = tarn__tensor_owner(tensor);
  return detached;
}

tarn__tensor *tarn__graph_param(tarn__graph *graph, tarn__param *param) {
  return tensor_new(graph, (tarn__tensor){.name = param->name,
                                          .dtype = param->dtype,
                                          .place = TARN__PARAMETER,
                                          .rows = param->rows,
                                          .cols = param->cols,
                                          .param = param,
                                          .data = param->value,
                                          .needs_grad = tarn__param_learns(param) && graph->training});
}

tarn__node *tarn__graph_node(tarn__graph *graph, const tarn__op *op, size_t attr_size) {
  tarn__node *node = take(graph, sizeof *node);
  void *attr = attr_size ? take(graph, attr_size) : NULL;
  if (!node || (attr_size && !attr)) {
    // The caller fills in the returned node, so even a spare node needs memory for attributes.
    static _Thread_local char spare_attr[1024];
    node = &graph->spare_node;
    attr = spare_attr;
    if (attr_size > sizeof spare_attr && graph->status == TARN_STATUS_OK)
      tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "op %s has too large attributes", op->name);
  }
  *node = (tarn__node){.op = op,
                       .attr = attr,
                       .attr_bytes = attr_size,
                       .label = graph->label,
                       .fp32 = graph->fp32,
                       .segment = graph->segment,
                       .lean = graph->lean};
  return node;
}

void tarn__graph_emit(tarn__graph *graph, tarn__node *node) {
  if (graph->status != TARN_STATUS_OK || node == &graph->spare_node) return;
  tarn_status status = tarn__grow(&graph->nodes, &graph->node_capacity, graph->node_count + 1, sizeof *graph->nodes);
  if (status != TARN_STATUS_OK) {
    graph->status = status;
    return;
  }
  graph->nodes[graph->node_count++] = node;
  bool needs_grad = false;
  for (int i = 0; i < TARN__MAX_INPUTS; i++) needs_grad |= node->in[i] && node->in[i]->needs_grad;
  if (needs_grad && !node->op->grad && graph->training && !graph->backward) {
    tarn__graph_fail(graph, TARN_STATUS_INTERNAL, "op %s has no gradient rule, but its input needs a gradient",
                     node->op->name);
    return;
  }
  for (int i = 0; i < TARN__MAX_OUTPUTS; i++) {
    if (!node->out[i]) continue;
    node->out[i]->needs_grad |= needs_grad && node->op->grad;
    node->out[i]->source = node;
  }
}

void tarn__graph_segment(tarn__graph *graph) { graph->segment = ++graph->segments; }

void tarn__graph_segment_end(tarn__graph *graph) { graph->segment = 0; }

uint32_t tarn__graph_site(tarn__graph *graph) { return graph->sites++; }
