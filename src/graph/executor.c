#include <string.h>

#include "base/spinning.h"
#include "graph/profile.h"
#include "graph/run_telling.h"

// What one thread does before another one is awake: a node of fewer operations and bytes runs on the caller alone.
static const double FEW_OPERATIONS = 2e5, FEW_BYTES = 16384.0;

static bool is_small(const tarn__node *node) {
  const double operations = node->op->flops ? node->op->flops(node) : 0.0;
  if (operations >= FEW_OPERATIONS) return false;
  if (node->op->gradient_flops && operations + node->op->gradient_flops(node) >= FEW_OPERATIONS) return false;
  return tarn__node_bytes(node) < FEW_BYTES;
}

static tarn_status run_node(const tarn__graph *graph, const tarn__exec *exec, const tarn__node *node) {
  for (int k = 0; k < TARN__MOST_JOINED && node->joined[k]; k++)
    if (node->joined[k]->op->check) TARN_TRY(node->joined[k]->op->check(node->joined[k]));
  if (node->op->check) TARN_TRY(node->op->check(node));
  if (exec->threads == 1 || exec->spread || !is_small(node)) return graph->kernels[node->op->id].run(exec, node);
  tarn__exec alone = *exec;
  alone.threads = 1;
  return graph->kernels[node->op->id].run(&alone, node);
}

static tarn_status run_measured(const tarn__graph *graph, const tarn__exec *exec, size_t n, double bytes) {
  double begin = tarn__profile_clock(exec->profile);
  TARN_TRY(run_node(graph, exec, graph->nodes[n]));
  TARN_TRY(tarn__device_stream_synchronise(graph->device, exec->stream));
  return tarn__profile_node(exec->profile, graph->nodes[n], n >= graph->forward_count, begin, bytes);
}

// Sends the block of inputs ahead of the kernels, and gives the inputs their addresses.
static tarn_status send_ahead(tarn__graph *graph, tarn__device_stream *stream) {
  void *there;
  TARN_TRY(tarn__inlet_send(&graph->inlet, &graph->staging, stream, &there, graph->input_bytes));
  for (size_t i = 0; i < graph->tensor_count; i++) {
    tarn__tensor *tensor = graph->tensors[i], *owner = tarn__tensor_owner(tensor);
    if (owner->place == TARN__INPUT) tensor->data = (char *)there + (owner->offset - graph->input_offset);
  }
  return TARN_STATUS_OK;
}

// Sends the host's inputs in one block to a device that cannot read host memory.
static tarn_status send_inputs(tarn__graph *graph, tarn__device_stream *stream) {
  void *block;
  if (graph->input_bytes == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__staging_take(&graph->staging, graph->device, &block, graph->input_bytes));
  for (size_t i = 0; i < graph->tensor_count; i++) {
    const tarn__tensor *tensor = graph->tensors[i];
    if (tensor->place != TARN__INPUT || tensor->first < 0 || tensor->rows * tensor->cols == 0) continue;
    TARN_REQUIRE(tensor->host, INTERNAL, "the input %s of a graph has no values", tensor->name);
    memcpy((char *)block + (tensor->offset - graph->input_offset), tensor->host,
           (size_t)(tensor->rows * tensor->cols) * sizeof *tensor->host);
  }
  if (graph->ahead) return send_ahead(graph, stream);
  return tarn__staging_send(&graph->staging, stream, (char *)graph->workspace + graph->input_offset,
                            graph->input_bytes);
}

tarn_status tarn__graph_run_telling(tarn__graph *graph, const tarn__exec *exec,
                                    tarn_status (*ran)(void *user, size_t nodes), void *user) {
  tarn__spinning_look();
  graph->stream = exec->stream;
  graph->results_read = false;
  if (!graph->device->type->host_memory) TARN_TRY(send_inputs(graph, exec->stream));
  for (size_t n = 0; n < graph->node_count; n++) {
    if (graph->nodes[n]->joins) continue;
    // Before the node runs: whether it adds to a gradient or is the first to write it, nobody can say afterwards.
    const double bytes = exec->profile || exec->moved_bytes ? tarn__node_bytes(graph->nodes[n]) : 0.0;
    if (exec->moved_bytes) *exec->moved_bytes += bytes;
    TARN_TRY(exec->profile ? run_measured(graph, exec, n, bytes) : run_node(graph, exec, graph->nodes[n]));
    if (ran) TARN_TRY(ran(user, n + 1));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__graph_run(tarn__graph *graph, const tarn__exec *exec) {
  return tarn__graph_run_telling(graph, exec, NULL, NULL);
}

tarn_status tarn__graph_read(const tarn__graph *graph, void **values, const tarn__tensor *tensor,
                             tarn__host_room *room) {
  const size_t bytes = (size_t)(tensor->rows * tensor->cols) * tarn__dtype_size(tensor->dtype);
  return tarn__device_read(graph->device, values, tensor->data, bytes, room);
}

tarn_status tarn__graph_result(tarn__graph *graph, void **values, const tarn__tensor *tensor) {
  *values = tensor->data;
  if (tarn__device_is_host(graph->device)) return TARN_STATUS_OK;
  TARN_REQUIRE(tensor->result, INTERNAL, "the tensor %s of a graph is no result", tensor->name);
  if (!graph->results_read) {
    void *all;
    TARN_TRY(tarn__device_read_on(graph->device, graph->stream, &all, (char *)graph->workspace + graph->result_offset,
                                  graph->result_bytes, &graph->results));
    graph->results_read = true;
  }
  *values = (char *)graph->results.memory + ((char *)tensor->data - (char *)graph->workspace - graph->result_offset);
  return TARN_STATUS_OK;
}

tarn_status tarn__graph_get(const tarn__graph *graph, void *values, const tarn__tensor *tensor) {
  const size_t bytes = (size_t)(tensor->rows * tensor->cols) * tarn__dtype_size(tensor->dtype);
  return tarn__device_get(graph->device, values, tensor->data, bytes);
}

int tarn__param_accumulate(tarn__param *param) {
  int accumulate = param->training.grad_written;
  param->training.grad_written = true;
  return accumulate;
}
