// The graph of one step: nodes in execution order, built by ops, differentiated, planned, run and discarded.
//
//   build      ops append nodes; every tensor is a matrix [rows, cols], row-major, rows = packed tokens (no padding)
//   gradients  tarn__graph_differentiate() appends the nodes of the backward pass by each op's gradient rule, only on
//              paths from the loss to a trained parameter
//   recompute  tarn__graph_recompute(), optional: forward nodes of a segment run again before its backward pass, so
//              that their results need not be kept
//   plan       tarn__graph_plan() gives every tensor an offset in one workspace, based on its lifetime
//   run        tarn__graph_run() executes the nodes in order
//
// Building reports no individual errors: graph->status keeps the first failure, later calls do nothing harmful (they
// return a spare tensor or node of the graph), and tarn__graph_plan() returns the failure.
#ifndef TARN_GRAPH_GRAPH_H
#define TARN_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"
#include "device/op_list.h"
#include "device/transfer.h"
#include "graph/param.h"

enum { TARN__MAX_INPUTS = 9, TARN__MAX_OUTPUTS = 4, TARN__MAX_PARAM_GRADS = 2 };

typedef struct tarn__graph tarn__graph;
enum { TARN__MOST_JOINED = 2 };
typedef struct tarn__node tarn__node;

typedef enum tarn__place {
  TARN__WORKSPACE,  // memory in the workspace
  TARN__PARAMETER,  // the value of a parameter
  TARN__EXTERNAL,   // the caller's device memory: caches of the decoder
  TARN__INPUT       // integers from the host: token ids, offsets
} tarn__place;

typedef struct tarn__tensor {
  const char *name;  // for messages and profiles; static or in the graph's arena
  tarn__dtype dtype;
  tarn__place place;
  int64_t rows, cols;
  tarn__param *param;            // for PARAMETER
  void *data;                    // in device memory; valid after tarn__graph_bind()
  const int32_t *host;           // for INPUT: the same values in host memory; NULL if the graph is only planned
  bool needs_grad;               // it depends on a trained parameter
  bool keep;                     // lives to the end of the run, for the device or the host to read
  bool result;                   // kept, and read by the host (tarn__graph_result())
  struct tarn__tensor *shares;   // in place: the tensor whose memory it uses; NULL if it owns its memory
  struct tarn__tensor *grad;     // during differentiation: gradient of the loss with respect to it; NULL: none yet
  struct tarn__tensor *tangent;  // in forward mode: its directions, [directions * rows, cols]; NULL: zero
  tarn__node *source;            // the node that writes it; NULL for inputs of the graph
  bool border, saved;            // during recomputation: read by forward nodes outside its segment; read by backward
                                 // nodes
  struct tarn__tensor *again;    // during recomputation: the tensor with its values in the backward pass, or NULL
  int first, last;               // lifetime in node numbers, of the tensor that owns the memory
  size_t bytes, offset;          // in the workspace
} tarn__tensor;

// The tensor that owns its memory: itself, unless it shares.
static inline tarn__tensor *tarn__tensor_owner(tarn__tensor *tensor) {
  while (tensor->shares) tensor = tensor->shares;
  return tensor;
}

// The arguments of a run.
typedef struct tarn__exec {
  int threads;
  bool spread;                   // nodes of little work use all threads too, which takes longer: for tests of kernels
  uint64_t seed;                 // key of the dropout masks
  uint32_t step;                 // counter of the dropout masks: number of the (micro) step
  struct tarn_profile *profile;  // records the time of every node (graph/profile.h); NULL: no measurement
  // For graphs with updates (graph/update.h): their constants, and, in device memory, the sum of squares of the
  // gradients, to which each update adds.
  const struct tarn__adam_factors *update;
  double *squares;
  tarn__device_stream *stream;  // stream of the device for all nodes; NULL: the default stream
  double *moved_bytes;          // gets the memory traffic of every node, by tarn__node_bytes(), in addition; NULL: none
} tarn__exec;

// An op: one entry in src/ops/ per kind of node. Its kernels belong to the devices.
typedef struct tarn__op {
  int id;  // its index in the tables of devices (device/op_list.h)
  const char *name;
  // Appends the nodes that compute the gradients of the inputs from node->out[i]->grad (NULL: no gradient reaches that
  // output) and adds to the gradients of trained parameters. NULL for nodes that are themselves part of a backward
  // pass.
  void (*grad)(tarn__graph *graph, tarn__node *node);
  // Appends the nodes that compute the tangents of the outputs, J v for every direction v, from node->in[i]->tangent
  // (NULL: that input is constant), and sets node->out[i]->tangent. Parameters are constant. NULL: there is no rule.
  void (*tangent)(tarn__graph *graph, tarn__node *node);
  // Floating-point operations (a multiply-add counts as two); NULL: not counted (element-wise work).
  double (*flops)(const tarn__node *node);
  // The additional operations for gradients that a forward node computes; NULL: none.
  double (*gradient_flops)(const tarn__node *node);
  // Memory traffic of a node in bytes; NULL: the general rule of tarn__node_bytes().
  double (*bytes)(const tarn__node *node);
  bool in_place;  // output `inplace_out` may overwrite input `inplace_in` if nothing reads that input later
  int inplace_out, inplace_in;
  // Appends a node that recomputes output `renew_out`, bit-identically, from output `renew_in`, and returns the new
  // tensor: a shortcut for recomputation. NULL: none. Not called for a node that lacks either output.
  tarn__tensor *(*renew)(tarn__graph *graph, const tarn__node *node);
  int renew_out, renew_in;
  bool cheap;  // running it again is cheap relative to the memory of its outputs
  // Runs before a kernel, on every device: fails with INTERNAL if integers in the inputs, such as offsets, would cause
  // access outside a tensor. NULL: nothing to check.
  tarn_status (*check)(const tarn__node *node);
} tarn__op;

struct tarn__node {
  const tarn__op *op;
  tarn__tensor *in[TARN__MAX_INPUTS];                // NULL for an absent optional input
  tarn__tensor *out[TARN__MAX_OUTPUTS];              // NULL for an unused optional output
  tarn__param *dparam[TARN__MAX_PARAM_GRADS];        // trained parameters whose gradients this node adds to; else NULL
  tarn__tensor *dparam_grad[TARN__MAX_PARAM_GRADS];  // these gradients, if in the workspace (graph/update.h)
  void *attr;                                        // the op's own attributes, in the graph's arena; no addresses,
  size_t attr_bytes;                                 // because they are copied to the device with the call
  size_t scratch_bytes;
  void *scratch;
  const char *label;  // the part of the model it belongs to; a backward node has the label of its forward node
  tarn__fp32 fp32;    // how its fp32 products are computed, if any
  int segment;        // of the forward pass, from 1; 0: none
  bool lean;          // in a segment whose results are always recomputed
  bool again;         // repeats a forward node in the backward pass
  // Set by planning, where the device joins nodes: nodes that work in place right before this one, on what it reads, or
  // right behind it, on what it writes, whose work its kernel does while the data are in a cache; and whether this node
  // is such a one and does not run itself.
  tarn__node *joined[TARN__MOST_JOINED];
  bool joins;
};

struct tarn__graph {
  tarn__arena arena;
  const tarn__device *device;          // runs the kernels; its memory holds all tensors
  const tarn__device_kernel *kernels;  // the device's kernels for `dtype`, by op
  tarn__dtype dtype;                   // of activations: F32, BF16, or F64 on the reference device
  tarn__fp32 fp32;                     // of nodes added from now on, in F32; EXACT by default; set after begin
  bool training;                       // with dropout and gradients
  bool ahead;                          // the host's integers are sent while the run before computes, on a stream of
                                       // their own, to memory outside the workspace; set after begin
  bool backward;                       // tarn__graph_differentiate() has begun: nodes added now need no gradient rule
  int threads;
  int directions;      // in forward mode: number of directions of a tangent, one block of rows per direction
  int64_t update;      // number of the optimiser step, from 1, for ops that depend on it; 0: none; set after begin
  tarn_status status;  // first failure of building
  tarn__node **nodes;
  size_t node_count, node_capacity;
  size_t forward_count;  // nodes below this number are the forward pass
  tarn__tensor **tensors;
  size_t tensor_count, tensor_capacity;
  const char *label;      // given to nodes added from now on; must outlive the graph; may be NULL
  int segment, segments;  // the current segment (0: none), and the number of segments
  bool lean;              // given to nodes added from now on
  uint32_t sites;         // dropout sites allocated so far
  // Set by tarn__graph_plan(): tensors, then scratch. On a device with its own memory, the host's integers are
  // contiguous after the other tensors, unless they are sent ahead, and results after them, so that each group is one
  // copy.
  size_t activation_bytes, scratch_bytes, workspace_bytes;
  size_t input_offset, input_bytes, result_offset, result_bytes;
  void *workspace;          // set by tarn__graph_bind()
  tarn__staging staging;    // for sending the host's integers
  tarn__inlet inlet;        // and, `ahead`, where they go
  tarn__host_room results;  // results read from the last run, if results_read
  bool results_read;
  tarn__device_stream *stream;  // of the last run
  tarn__tensor spare_tensor;
  tarn__node spare_node;
};

// Starts a graph (zero-initialise before the first use); reuses the memory of an earlier one.
void tarn__graph_begin(tarn__graph *graph, const tarn__device *device, tarn__dtype dtype, bool training, int threads);
void tarn__graph_close(tarn__graph *graph);

// Records a failure of building; the first one is kept.
void tarn__graph_fail(tarn__graph *graph, tarn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// New tensors; never NULL. `name` must outlive the graph (use string literals).
tarn__tensor *tarn__graph_tensor(tarn__graph *graph, tarn__dtype dtype, int64_t rows, int64_t cols, const char *name);
tarn__tensor *tarn__graph_external(tarn__graph *graph, tarn__dtype dtype, int64_t rows, int64_t cols, void *data,
                                   const char *name);
// Integers from the host [1, count], in host memory at `host` until the run ends. Shape rules, checks and counts read
// them there. Kernels read tensor->data: the same memory if the device computes in host memory, else a copy made by
// tarn__graph_run(), in the workspace or, for graphs that send `ahead`, in memory of its own.
tarn__tensor *tarn__graph_input(tarn__graph *graph, int64_t count, const int32_t *host, const char *name);
// The same [rows, cols].
tarn__tensor *tarn__graph_input_rows(tarn__graph *graph, int64_t rows, int64_t cols, const int32_t *host,
                                     const char *name);
// A tensor with the same memory but no source: its readers propagate no gradient.
tarn__tensor *tarn__graph_detached(tarn__graph *graph, tarn__tensor *tensor);
// The tensor of a parameter.
tarn__tensor *tarn__graph_param(tarn__graph *graph, tarn__param *param);

// A new node that is not yet part of the order, with zeroed attributes of `attr_size` bytes; never NULL. Set in, out,
// dparam and attr, then emit it, which appends it and gives its outputs needs_grad if any input has it.
tarn__node *tarn__graph_node(tarn__graph *graph, const tarn__op *op, size_t attr_size);
void tarn__graph_emit(tarn__graph *graph, tarn__node *node);

// Begins a segment (a layer of the model, from residual stream to residual stream), ending the one before; ends it.
void tarn__graph_segment(tarn__graph *graph);
void tarn__graph_segment_end(tarn__graph *graph);

// A number that is unique in the graph and the same in every build of the model, for the dropout generator.
uint32_t tarn__graph_site(tarn__graph *graph);

// For gradient rules. When an op's rule runs, `tensor->grad` is complete for its outputs, because rules run in reverse
// order. To add a contribution to an input's gradient, a rule either
//   - calls tarn__grad_into(), which returns the tensor the kernel must write to. If *previous is set to non-NULL, the
//     kernel must add to the existing values (the returned tensor shares memory with *previous, the gradient so far),
//     else overwrite. *previous must become an input of the node, so that the planner sees the dependence; or
//   - owns a finished tensor and calls tarn__grad_add(), which emits an addition if a gradient already exists.
// Both set tensor->grad. Only call them for inputs with needs_grad. A gradient tensor has one owner: a rule that has
// the same values for two inputs writes two tensors.
tarn__tensor *tarn__grad_into(tarn__graph *graph, tarn__tensor *tensor, tarn__tensor **previous);
void tarn__grad_add(tarn__graph *graph, tarn__tensor *tensor, tarn__tensor *contribution);

// Appends the backward pass of `loss`, whose op must be the last of the forward pass.
void tarn__graph_differentiate(tarn__graph *graph, tarn__tensor *loss);

// Recomputation, after differentiation: backward nodes read copies of the results of segments, computed by nodes that
// are inserted right before the first backward node that needs them. Only nodes whose results are read run again, with
// the same attributes (dropout sites) and kernels, so gradients are bit-identical to those without recomputation.
//   LEAN      only lean nodes
//   CHEAP     outputs that an op can renew from another output, and outputs of cheap ops, if their inputs are kept
//             in any case (Korthikanti et al. 2022)
//   SEGMENTS  everything in segments except results that another segment reads, and of these too the ones that CHEAP
//             does not keep (Chen et al. 2016)
// Lean nodes are always treated as with SEGMENTS.
typedef enum tarn__recompute { TARN__RECOMPUTE_LEAN, TARN__RECOMPUTE_CHEAP, TARN__RECOMPUTE_SEGMENTS } tarn__recompute;
void tarn__graph_recompute(tarn__graph *graph, tarn__recompute what);

// Computes lifetimes, offsets and sizes. Returns the first failure of building. Allocates no memory for tensors.
tarn_status tarn__graph_plan(tarn__graph *graph) TARN_CHECKED;
// Gives every tensor its address in `workspace` (device memory, graph->workspace_bytes, aligned to 64).
void tarn__graph_bind(tarn__graph *graph, void *workspace);
// Runs all nodes in order.
tarn_status tarn__graph_run(tarn__graph *graph, const tarn__exec *exec) TARN_CHECKED;
// The values of a kept tensor, for the host, as tarn__device_read().
tarn_status tarn__graph_read(const tarn__graph *graph, void **values, const tarn__tensor *tensor,
                             tarn__host_room *room) TARN_CHECKED;
// The values of a result. The first call after a run waits for it and copies all results at once. Valid until the next
// run.
tarn_status tarn__graph_result(tarn__graph *graph, void **values, const tarn__tensor *tensor) TARN_CHECKED;
// Copies the values of a kept tensor to the host.
tarn_status tarn__graph_get(const tarn__graph *graph, void *values, const tarn__tensor *tensor) TARN_CHECKED;

// Memory traffic of a node without caches: every input once, including parameters, every output once, and gradients of
// parameters, which are also read if the node adds to them; a value replaced in place is read and written. Scratch and
// repeated reads are not counted. Ops that read less have a rule of their own (tarn__op). Call it before the node runs.
double tarn__node_bytes(const tarn__node *node);
double tarn__tensor_bytes(const tarn__tensor *tensor);  // NULL: 0
// Traffic of an Adam update: the gradient is read, the fp32 copy and the moments are read and written, and the values
// that kernels read are written if they are a separate copy.
double tarn__update_bytes(const tarn__param *param);

// For kernels: 0 if the next addition to a parameter's gradient overwrites, else 1; marks the gradient as written. Call
// it once per node, outside parallel regions.
int tarn__param_accumulate(tarn__param *param);

#endif
