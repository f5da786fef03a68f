// Memory planning: every tensor of the workspace lives from the node that writes it to the last node that reads it;
// tensors with overlapping lifetimes get disjoint bytes. Tensors are placed by decreasing size, each at the lowest
// offset that is free during its lifetime (the greedy-by-size strategy of Pisarchyk and Lee 2020).
//
//   bytes ^   +--------+
//         |   |  qkv   |   +-----------+
//         |   +--------+   |   ...     |        one column per node, one box per tensor;
//         |   |   sum 1        |  dqkv |        scratch of kernels comes after all boxes
//         +---+----------------+-------+---> node
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

// Whether the planner places a tensor: results of nodes, and copies of the host's integers if the device needs them.
static bool is_placed(const tarn__graph *graph, const tarn__tensor *tensor) {
  return tensor->place == TARN__WORKSPACE || (tensor->place == TARN__INPUT && !graph->device->type->host_memory);
}

// Whether a tensor belongs to a block copied between the host and a device with its own memory.
static bool is_copied(const tarn__graph *graph, const tarn__tensor *tensor) {
  return !graph->device->type->host_memory && (tensor->place == TARN__INPUT || tensor->result);
}

static void touch(const tarn__graph *graph, tarn__tensor *tensor, int node) {
  if (!tensor || !is_placed(graph, tensor)) return;
  tensor = tarn__tensor_owner(tensor);
  if (tensor->first < 0) tensor->first = tensor->place == TARN__INPUT ? 0 : node;  // inputs exist from the start
  tensor->last = node;
}

static tarn_status tensor_bytes(const tarn__tensor *tensor, size_t *bytes) {
  size_t count;
  TARN_TRY(tarn__mul_size(&count, (size_t)tensor->rows, (size_t)tensor->cols));
  TARN_TRY(tarn__mul_size(bytes, count, tarn__dtype_size(tensor->dtype)));
  TARN_TRY(tarn__add_size(bytes, *bytes, 63));
  *bytes &= ~(size_t)63;
  return TARN_STATUS_OK;
}

static void lifetimes(tarn__graph *graph) {
  for (size_t i = 0; i < graph->tensor_count; i++) graph->tensors[i]->first = graph->tensors[i]->last = -1;
  for (size_t n = 0; n < graph->node_count; n++) {
    for (int k = 0; k < TARN__MAX_INPUTS; k++) touch(graph, graph->nodes[n]->in[k], (int)n);
    for (int k = 0; k < TARN__MAX_OUTPUTS; k++) touch(graph, graph->nodes[n]->out[k], (int)n);
    for (int k = 0; k < TARN__MAX_PARAM_GRADS; k++) touch(graph, graph->nodes[n]->dparam_grad[k], (int)n);
  }
  for (size_t i = 0; i < graph->tensor_count; i++)
    if (graph->tensors[i]->keep) tarn__tensor_owner(graph->tensors[i])->last = (int)graph->node_count;
  for (size_t i = 0; i < graph->tensor_count; i++)
    if (graph->tensors[i]->result) tarn__tensor_owner(graph->tensors[i])->result = true;
}

// Lets an output reuse the memory of an input that dies at the same node, if the op allows it.
static void share_in_place(tarn__graph *graph) {
  for (size_t n = 0; n < graph->node_count; n++) {
    const tarn__node *node = graph->nodes[n];
    int in = node->op->inplace_in;
    int out = node->op->inplace_out;
    if (!node->op->in_place || !node->in[in] || !node->out[out] || node->out[out]->shares) continue;
    tarn__tensor *from = tarn__tensor_owner(node->in[in]);
    tarn__tensor *to = node->out[out];
    bool fits = from->place == TARN__WORKSPACE && to->place == TARN__WORKSPACE && from->dtype == to->dtype &&
                from->rows == to->rows && from->cols == to->cols;
    if (!fits || from->last != (int)n || to->first != (int)n) continue;
    bool twice = false;  // another input reads the same memory
    for (int k = 0; k < TARN__MAX_INPUTS; k++)
      twice |= k != in && node->in[k] && tarn__tensor_owner(node->in[k]) == from;
    if (twice || is_copied(graph, from) || is_copied(graph, to)) continue;
    from->last = to->last;
    to->shares = from;
  }
}

// Whether a node has other tensors in the workspace than these two.
static bool places_others(const tarn__graph *graph, const tarn__node *node, const tarn__tensor *from,
                          const tarn__tensor *to) {
  for (int k = 0; k < TARN__MAX_INPUTS; k++)
    if (node->in[k] && node->in[k] != from && is_placed(graph, node->in[k])) return true;
  for (int k = 0; k < TARN__MAX_OUTPUTS; k++)
    if (node->out[k] && node->out[k] != to && is_placed(graph, node->out[k])) return true;
  for (int k = 0; k < TARN__MAX_PARAM_GRADS; k++)
    if (node->dparam_grad[k] && is_placed(graph, node->dparam_grad[k])) return true;
  return false;
}

// Gives a node the work of another one if the device can do both at once.
static bool join(const tarn__graph *graph, tarn__node *node, tarn__node *other, bool before) {
  const tarn__op *op = other->op;
  int count = 0;
  while (count < TARN__MOST_JOINED && node->joined[count]) count++;
  if (count == TARN__MOST_JOINED || !op->in_place || other->joins || other->joined[0] || node->joins) return false;
  // What shares its memory is read by nobody else before it.
  tarn__tensor *from = other->in[op->inplace_in], *to = other->out[op->inplace_out];
  if (!from || !to || tarn__tensor_owner(from) != tarn__tensor_owner(to)) return false;
  // The other's work is done when the node runs, but its tensors live at its own place in the graph.
  if (places_others(graph, other, from, to)) return false;
  if (!graph->device->type->joins(node, other, before)) return false;
  node->joined[count] = other;
  other->joins = true;
  return true;
}

static void join_neighbours(tarn__graph *graph) {
  for (size_t n = 0; n < graph->node_count; n++) {
    graph->nodes[n]->joins = false;
    memset(graph->nodes[n]->joined, 0, sizeof graph->nodes[n]->joined);
  }
  for (size_t n = 0; graph->device->type->joins && n < graph->node_count; n++) {
    for (size_t k = n; k > 0 && join(graph, graph->nodes[n], graph->nodes[k - 1], true);) k--;
    for (size_t k = n + 1; k < graph->node_count && join(graph, graph->nodes[n], graph->nodes[k], false);) k++;
  }
}

static int larger_first(const void *a, const void *b) {
  const tarn__tensor *x = *(tarn__tensor *const *)a;
  const tarn__tensor *y = *(tarn__tensor *const *)b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return (x->first > y->first) - (x->first < y->first);
}

// The placed tensors, sorted by offset, in runs of consecutive ones. A graph of a thousand layers has tens of thousands
// of tensors, and each is compared with all placed before it. So their numbers are in separate arrays, whose loops the
// compiler vectorises, and an insertion moves elements of a single run.
enum { RUN = 128 };
typedef struct run {
  int first[RUN], last[RUN];  // lifetimes
  size_t begin[RUN], end[RUN];
  int count, earliest, latest;  // number of tensors; the minimum of first and the maximum of last
} run;

typedef struct placed {
  tarn__arena *arena;
  run **runs;
  size_t count;
} placed;

// Allocates for `most` tensors: every run but one is at least half full.
static tarn_status placed_open(placed *p, tarn__arena *arena, size_t most) {
  void *memory;
  TARN_TRY(tarn__arena_alloc(arena, &memory, most / (RUN / 2) + 2, sizeof(run *)));
  *p = (placed){.arena = arena, .runs = memory};
  return TARN_STATUS_OK;
}

// Whether any lifetime in a run overlaps that of a tensor, and which ones do.
static bool lives_overlap(unsigned char overlaps[RUN], const run *r, const tarn__tensor *tensor) {
  const int first = tensor->first, last = tensor->last, count = r->count;
  unsigned char any = 0;
  if (r->earliest > last || first > r->latest) return false;
  for (int i = 0; i < count; i++) {
    overlaps[i] = (unsigned char)((r->first[i] <= last) & (first <= r->last[i]));
    any |= overlaps[i];
  }
  return any;
}

// The lowest offset that is free during the lifetime of a tensor.
static size_t free_offset(const placed *p, const tarn__tensor *tensor) {
  unsigned char overlaps[RUN];
  size_t offset = 0;
  for (size_t k = 0; k < p->count; k++) {
    const run *r = p->runs[k];
    if (!lives_overlap(overlaps, r, tensor)) continue;
    for (int i = 0; i < r->count; i++) {
      if (!overlaps[i]) continue;
      if (offset + tensor->bytes <= r->begin[i]) return offset;
      if (r->end[i] > offset) offset = r->end[i];
    }
  }
  return offset;
}

static void set_bounds(run *r) {
  r->earliest = r->first[0];
  r->latest = r->last[0];
  for (int i = 1; i < r->count; i++) {
    if (r->first[i] < r->earliest) r->earliest = r->first[i];
    if (r->last[i] > r->latest) r->latest = r->last[i];
  }
}

// Moves the tensors [from, count) of a run to index `to` of a run, possibly the same one.
static void move_tail(run *target, int to, const run *r, int from) {
  const size_t n = (size_t)(r->count - from);
  memmove(target->first + to, r->first + from, n * sizeof *r->first);
  memmove(target->last + to, r->last + from, n * sizeof *r->last);
  memmove(target->begin + to, r->begin + from, n * sizeof *r->begin);
  memmove(target->end + to, r->end + from, n * sizeof *r->end);
}

// Inserts a run after run k and moves the second half of run k to it, or creates the first run.
static tarn_status add_run(placed *p, size_t k) {
  void *memory;
  TARN_TRY(tarn__arena_alloc(p->arena, &memory, 1, sizeof(run)));
  run *fresh = memory;
  if (p->count == 0) {
    p->runs[p->count++] = fresh;
    return TARN_STATUS_OK;
  }
  run *full = p->runs[k];
  move_tail(fresh, 0, full, RUN / 2);
  full->count = fresh->count = RUN / 2;
  set_bounds(full);
  set_bounds(fresh);
  memmove(p->runs + k + 2, p->runs + k + 1, (p->count - k - 1) * sizeof *p->runs);
  p->runs[k + 1] = fresh;
  p->count++;
  return TARN_STATUS_OK;
}

static tarn_status place(placed *p, tarn__tensor *tensor) {
  const size_t offset = tensor->offset = free_offset(p, tensor);
  size_t k = 0;
  while (k + 1 < p->count && p->runs[k + 1]->begin[0] <= offset) k++;
  if (p->count == 0 || p->runs[k]->count == RUN) {
    TARN_TRY(add_run(p, k));
    if (k + 1 < p->count && p->runs[k + 1]->begin[0] <= offset) k++;
  }
  run *r = p->runs[k];
  int at = r->count;
  while (at > 0 && r->begin[at - 1] > offset) at--;
  move_tail(r, at + 1, r, at);
  r->first[at] = tensor->first;
  r->last[at] = tensor->last;
  r->begin[at] = offset;
  r->end[at] = offset + tensor->bytes;
  if (r->count++ == 0) set_bounds(r);
  if (tensor->first < r->earliest) r->earliest = tensor->first;
  if (tensor->last > r->latest) r->latest = tensor->last;
  return TARN_STATUS_OK;
}

static tarn_status find_kernel(const tarn__graph *graph, const tarn__node *node, const tarn__device_kernel **kernel) {
  const tarn__device *device = graph->device;
  const tarn__op *op = node->op;
  const bool known = op->id >= 0 && op->id < device->type->ops && graph->kernels[op->id].run;
  TARN_REQUIRE(known, UNSUPPORTED, "the device %s has no kernel for the op %s in %s", device->name, op->name,
               tarn__dtype_name(graph->dtype));
  const char *lacks = device->type->lacks ? device->type->lacks(device, node) : NULL;
  TARN_REQUIRE(!lacks, UNSUPPORTED, "the device %s cannot compute the op %s of %s in %s: it needs %s", device->name,
               op->name, node->label ? node->label : "the model", tarn__dtype_name(graph->dtype), lacks);
  *kernel = &graph->kernels[op->id];
  return TARN_STATUS_OK;
}

// Places the tensors of one kind side by side from *end on.
static tarn_status place_side_by_side(tarn__graph *graph, bool inputs, size_t *end, size_t *offset, size_t *bytes) {
  *offset = *end;
  for (size_t i = 0; i < graph->tensor_count; i++) {
    tarn__tensor *tensor = graph->tensors[i];
    if (!is_copied(graph, tensor) || (tensor->place == TARN__INPUT) != inputs) continue;
    if (tensor->shares || tensor->first < 0) continue;
    TARN_TRY(tensor_bytes(tensor, &tensor->bytes));
    tensor->offset = *end;
    TARN_TRY(tarn__add_size(end, *end, tensor->bytes));
  }
  *bytes = *end - *offset;
  return TARN_STATUS_OK;
}

tarn_status tarn__graph_plan(tarn__graph *graph) {
  if (graph->status != TARN_STATUS_OK) return graph->status;
  if (graph->forward_count == 0) graph->forward_count = graph->node_count;
  lifetimes(graph);
  share_in_place(graph);
  join_neighbours(graph);
  void *memory;
  TARN_TRY(tarn__arena_alloc(&graph->arena, &memory, graph->tensor_count + 1, sizeof(tarn__tensor *)));
  tarn__tensor **order = memory;
  size_t count = 0;
  for (size_t i = 0; i < graph->tensor_count; i++) {
    tarn__tensor *tensor = graph->tensors[i];
    if (!is_placed(graph, tensor) || tensor->shares || tensor->first < 0 || is_copied(graph, tensor)) continue;
    TARN_TRY(tensor_bytes(tensor, &tensor->bytes));
    order[count++] = tensor;
  }
  qsort(order, count, sizeof(tarn__tensor *), larger_first);
  graph->activation_bytes = 0;
  placed taken;
  TARN_TRY(placed_open(&taken, &graph->arena, count));
  for (size_t i = 0; i < count; i++) {
    TARN_TRY(place(&taken, order[i]));
    size_t end;
    TARN_TRY(tarn__add_size(&end, order[i]->offset, order[i]->bytes));
    if (end > graph->activation_bytes) graph->activation_bytes = end;
  }
  size_t apart = 0;
  size_t *inputs_end = graph->ahead ? &apart : &graph->activation_bytes;
  TARN_TRY(place_side_by_side(graph, true, inputs_end, &graph->input_offset, &graph->input_bytes));
  TARN_TRY(place_side_by_side(graph, false, &graph->activation_bytes, &graph->result_offset, &graph->result_bytes));
  graph->scratch_bytes = 0;
  for (size_t n = 0; n < graph->node_count; n++) {
    tarn__node *node = graph->nodes[n];
    const tarn__device_kernel *kernel = NULL;
    TARN_TRY(find_kernel(graph, node, &kernel));
    node->scratch_bytes = kernel->scratch ? kernel->scratch(node, graph->threads) : 0;
    // The executor may run it on one thread, which a few kernels need more for.
    const size_t alone = kernel->scratch ? kernel->scratch(node, 1) : 0;
    if (alone > node->scratch_bytes) node->scratch_bytes = alone;
    if (node->scratch_bytes > graph->scratch_bytes) graph->scratch_bytes = node->scratch_bytes;
  }
  return tarn__add_size(&graph->workspace_bytes, graph->activation_bytes, graph->scratch_bytes);
}

// Inputs that are sent ahead get their addresses when the graph runs.
void tarn__graph_bind(tarn__graph *graph, void *workspace) {
  char *base = workspace;
  graph->workspace = workspace;
  for (size_t i = 0; i < graph->tensor_count; i++) {
    tarn__tensor *tensor = graph->tensors[i];
    if (is_placed(graph, tensor) && !tensor->shares && !(graph->ahead && tensor->place == TARN__INPUT))
      tensor->data = base + tensor->offset;
  }
  for (size_t i = 0; i < graph->tensor_count; i++) {
    tarn__tensor *tensor = graph->tensors[i];
    if (tensor->shares) tensor->data = tarn__tensor_owner(tensor)->data;
  }
  for (size_t n = 0; n < graph->node_count; n++) {
    const tarn__node *node = graph->nodes[n];
    for (int k = 0; k < TARN__MAX_PARAM_GRADS; k++) {
      if (!node->dparam_grad[k]) continue;
      node->dparam[k]->training.grad = node->dparam_grad[k]->data;
      node->dparam[k]->training.grad_written = false;  // the workspace contains no gradient yet
    }
    graph->nodes[n]->scratch = base + graph->activation_bytes;
  }
}
