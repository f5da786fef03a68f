// The graph of one step: nodes in execution order, built by ops, differentiated, planned, run, dropped.
//
//   build      ops append nodes; every tensor is a matrix [rows, cols], row-major, rows = packed tokens (no padding)
//   gradients  tarn__graph_differentiate() appends the nodes of the backward pass by each op's gradient rule, only on
//              paths from the loss to a trained parameter
//   recompute  tarn__graph_recompute(), if wanted: forward nodes of a segment run again before its backward pass, so
//              that their results need no memory in between
//   plan       tarn__graph_plan() gives every tensor an offset in one workspace from its lifetime
//   run        tarn__graph_run() executes the nodes in order
//
// Building never returns errors one by one: the first failure is kept in graph->status, later calls do nothing harmful
// (they return a spare tensor or node of the graph), and tarn__graph_plan() reports it.
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
typedef struct tarn__node tarn__node;

typedef enum tarn__place {
  TARN__WORKSPACE,  // memory given by the planner
  TARN__PARAMETER,  // the value of a parameter
  TARN__EXTERNAL,   // memory of the caller on the device: caches of the decoder
  TARN__INPUT       // integers of the host: token ids, offsets
} tarn__place;

typedef struct tarn__tensor {
  const char *name;  // for messages and profiles; static or in the graph's arena
  tarn__dtype dtype;
  tarn__place place;
  int64_t rows, cols;
  tarn__param *param;           // for PARAMETER
  void *data;                   // in the device's memory; valid from tarn__graph_plan()'s binding on
  const int32_t *host;          // for INPUT: the same values in the host's memory; NULL where the graph is only planned
  bool needs_grad;              // a path leads from a trained parameter to it
  bool keep;                    // lives to the end of the run, where the device or the host reads it
  bool result;                  // and is for the host (tarn__graph_result())
  struct tarn__tensor *shares;  // in place: the tensor whose memory it uses; NULL for memory of its own
  struct tarn__tensor *grad;    // while differentiating: gradient of the loss with respect to it, or NULL so far
  struct tarn__tensor *tangent;  // while pushing forward: directions of it, [directions * rows, cols], or NULL: zeros
  tarn__node *source;            // the node that writes it; NULL for inputs of the graph
  bool border, saved;            // while recomputing: read by forward nodes outside its segment, by backward nodes
  struct tarn__tensor *again;    // while recomputing: the tensor that holds its values in the backward pass, or NULL
  int first, last;               // lifetime in node numbers, for the tensor that owns the memory
  size_t bytes, offset;          // in the workspace
} tarn__tensor;

// The tensor whose memory it uses: itself, unless it shares.
static inline tarn__tensor *tarn__tensor_owner(tarn__tensor *tensor) {
  while (tensor->shares) tensor = tensor->shares;
  return tensor;
}

// What a run needs beside the graph.
typedef struct tarn__exec {
  int threads;
  uint64_t seed;                 // key of the dropout masks
  uint32_t step;                 // counter of the dropout masks: number of the (micro) step
  struct tarn_profile *profile;  // is told how long every node took (graph/profile.h); NULL: nothing is measured
  // For graphs with updates (graph/update.h): their constants, and, in the device's memory, the sum of the squares of
  // the gradients, to which each adds its own.
  const struct tarn__adam_factors *update;
  double *squares;
  tarn__device_stream *stream;  // of the device, on which all is done; NULL: the one that it always has
} tarn__exec;

// An op: one entry, in src/ops/, for each kind of node. What computes it is the device's to know.
typedef struct tarn__op {
  int id;  // its place in the tables of devices (device/op_list.h)
  const char *name;
  // Appends the nodes that compute the gradients of the inputs from node->out[i]->grad (NULL: no gradient reaches that
  // output) and adds to the gradients of trained parameters. NULL for nodes that are themselves part of a backward
  // pass.
  void (*grad)(tarn__graph *graph, tarn__node *node);
  // Appends the nodes that compute the tangents of its outputs, J v for every direction v, from node->in[i]->tangent
  // (NULL: that input does not move), and sets node->out[i]->tangent. Parameters do not move. NULL: there is no rule.
  void (*tangent)(tarn__graph *graph, tarn__node *node);
  // Floating-point operations (a multiply-add counts two); NULL: not counted (element-wise work).
  double (*flops)(const tarn__node *node);
  // The same of gradients that a node of the forward pass computes on top; NULL: none.
  double (*gradient_flops)(const tarn__node *node);
  // Bytes that a node moves through memory; NULL: tarn__node_bytes() says the general rule.
  double (*bytes)(const tarn__node *node);
  bool in_place;  // output `inplace_out` may overwrite input `inplace_in` when nothing reads that input later
  int inplace_out, inplace_in;
  // Appends a node that computes output `renew_out` again, with equal bits, from output `renew_in`, and returns the new
  // tensor: a short cut for recomputation. NULL: there is none. A node that lacks either output is never asked.
  tarn__tensor *(*renew)(tarn__graph *graph, const tarn__node *node);
  int renew_out, renew_in;
  bool cheap;  // running it again costs little beside the memory of its outputs
  // Runs before a kernel, on every device: fails with INTERNAL where integers in the inputs, such as offsets, would
  // lead outside a tensor. NULL: nothing to check.
  tarn_status (*check)(const tarn__node *node);
} tarn__op;

struct tarn__node {
  const tarn__op *op;
  tarn__tensor *in[TARN__MAX_INPUTS];                // NULL where an optional input is absent
  tarn__tensor *out[TARN__MAX_OUTPUTS];              // NULL where an optional output is not wanted
  tarn__param *dparam[TARN__MAX_PARAM_GRADS];        // trained parameters whose gradient this node adds to; else NULL
  tarn__tensor *dparam_grad[TARN__MAX_PARAM_GRADS];  // their memory, where it is in the workspace (graph/update.h)
  void *attr;                                        // the op's own attributes, in the graph's arena; no addresses,
  size_t attr_bytes;                                 // because they travel to the device with the call
  size_t scratch_bytes;
  void *scratch;
  const char *label;  // the part of the model it belongs to; a backward node has the label of its forward node
  tarn__fp32 fp32;    // how its products are computed, where it has any and they are of fp32
  int segment;        // of the forward pass, from 1; 0: none
  bool lean;          // of a segment whose results are recomputed whatever the rest of the graph does
  bool again;         // runs in the backward pass what a node of the forward pass ran before
};

struct tarn__graph {
  tarn__arena arena;
  const tarn__device *device;          // whose kernels run, in whose memory all tensors lie
  const tarn__device_kernel *kernels;  // of the device for `dtype`, by op
  tarn__dtype dtype;                   // of activations: F32, BF16, or F64 on the reference device
  tarn__fp32 fp32;                     // of the nodes that are made from now on, in F32; EXACT; set after begin
  bool training;                       // dropout is on and gradients are wanted
  bool backward;  // tarn__graph_differentiate() has begun: what is emitted now needs no gradient rule
  int threads;
  int directions;  // while pushing forward: how many directions a tangent has, one block of rows after the other
  int64_t update;  // number of the optimiser step, from 1, for what differs from step to step; 0: none; set after begin
  tarn_status status;  // first failure of building
  tarn__node **nodes;
  size_t node_count, node_capacity;
  size_t forward_count;  // nodes before this number are the forward pass
  tarn__tensor **tensors;
  size_t tensor_count, tensor_capacity;
  const char *label;      // given to the nodes that are made from now on; must outlive the graph; may be NULL
  int segment, segments;  // the segment that is being built (0: none), and how many there are
  bool lean;              // given to the nodes that are made from now on
  uint32_t sites;         // dropout sites handed out so far
  // By tarn__graph_plan(): tensors, then scratch. Where the device has memory of its own, the host's integers lie side
  // by side behind the other tensors, and results behind them, so that each is one copy.
  size_t activation_bytes, scratch_bytes, workspace_bytes;
  size_t input_offset, input_bytes, result_offset, result_bytes;
  void *workspace;          // by tarn__graph_bind()
  tarn__staging staging;    // what is sent of the host's integers
  tarn__host_room results;  // what was read of the last run's results, if results_read
  bool results_read;
  tarn__device_stream *stream;  // of the last run
  tarn__tensor spare_tensor;
  tarn__node spare_node;
};

// Starts a graph (zero-initialise before the first use); keeps the memory of an earlier one for reuse.
void tarn__graph_begin(tarn__graph *graph, const tarn__device *device, tarn__dtype dtype, bool training, int threads);
void tarn__graph_close(tarn__graph *graph);

// Records a failure of building; the first one stays.
void tarn__graph_fail(tarn__graph *graph, tarn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// New tensors; never NULL. `name` must outlive the graph (string literals).
tarn__tensor *tarn__graph_tensor(tarn__graph *graph, tarn__dtype dtype, int64_t rows, int64_t cols, const char *name);
tarn__tensor *tarn__graph_external(tarn__graph *graph, tarn__dtype dtype, int64_t rows, int64_t cols, void *data,
                                   const char *name);
// Integers that the host has made [1, count], in its memory at `host` until the run is over. Shape rules, checks and
// counts read them there; kernels read tensor->data, which is the same memory where the device computes in the host's,
// and else a copy in the workspace that tarn__graph_run() makes.
tarn__tensor *tarn__graph_input(tarn__graph *graph, int64_t count, const int32_t *host, const char *name);
// The same values in the same memory, without a source: what reads it sends no gradient back.
tarn__tensor *tarn__graph_detached(tarn__graph *graph, tarn__tensor *tensor);
// The tensor of a parameter.
tarn__tensor *tarn__graph_param(tarn__graph *graph, tarn__param *param);

// A new node that is not yet part of the order, with zeroed attributes of `attr_size` bytes; never NULL. Set in, out,
// dparam and attr, then emit it: that appends it and gives its outputs needs_grad if any input has it.
tarn__node *tarn__graph_node(tarn__graph *graph, const tarn__op *op, size_t attr_size);
void tarn__graph_emit(tarn__graph *graph, tarn__node *node);

// Begins a segment (a layer of the model, from residual stream to residual stream), which ends the one before; ends it.
void tarn__graph_segment(tarn__graph *graph);
void tarn__graph_segment_end(tarn__graph *graph);

// A number that is unique in the graph and equal in every build of the same model, for the dropout generator.
uint32_t tarn__graph_site(tarn__graph *graph);

// For gradient rules. `tensor->grad` at the time an op's rule runs is complete for its outputs, because rules run in
// reverse order. To add a contribution to an input's gradient, a rule either
//   - calls tarn__grad_into(): returns the tensor the kernel must write to. If *previous comes back non-NULL, the
//     kernel must add to what is there (the returned tensor shares memory with *previous, the gradient so far), else
//     overwrite. *previous must be put among the node's inputs, so that the planner sees the dependence; or
//   - owns a finished tensor and calls tarn__grad_add(), which emits an addition if there is a gradient already.
// Both set tensor->grad. Only call them for inputs with needs_grad. A gradient tensor has one owner: a rule that wants
// the same values for two inputs writes two tensors.
tarn__tensor *tarn__grad_into(tarn__graph *graph, tarn__tensor *tensor, tarn__tensor **previous);
void tarn__grad_add(tarn__graph *graph, tarn__tensor *tensor, tarn__tensor *contribution);

// Appends the backward pass of `loss`, whose op must be the last of the forward pass.
void tarn__graph_differentiate(tarn__graph *graph, tarn__tensor *loss);

// Recomputation, after differentiation: the backward nodes read copies of what nodes of segments computed, made by
// nodes that are appended right before the first backward node that needs them. Only nodes whose results are read run
// again, with the same attributes (dropout sites) and kernels, so gradients have the bits that they have without.
//   LEAN      nothing but lean nodes
//   CHEAP     what an op can renew from another output, and the outputs of cheap ops, where what these start from is
//             kept in any case (Korthikanti et al. 2022)
//   SEGMENTS  everything but what comes from outside of segments and what another segment reads, and of that too what
//             CHEAP does not keep (Chen et al. 2016)
// Lean nodes are treated as by SEGMENTS in any case.
typedef enum tarn__recompute { TARN__RECOMPUTE_LEAN, TARN__RECOMPUTE_CHEAP, TARN__RECOMPUTE_SEGMENTS } tarn__recompute;
void tarn__graph_recompute(tarn__graph *graph, tarn__recompute what);

// Lifetimes, offsets, sizes. Reports the first failure of building. Takes no memory for tensors.
tarn_status tarn__graph_plan(tarn__graph *graph) TARN_CHECKED;
// Gives every tensor its address in `workspace` (memory of the device, graph->workspace_bytes, aligned to 64).
void tarn__graph_bind(tarn__graph *graph, void *workspace);
// Runs all nodes in order.
tarn_status tarn__graph_run(tarn__graph *graph, const tarn__exec *exec) TARN_CHECKED;
// The values of a tensor that was kept, for the host: as tarn__device_read().
tarn_status tarn__graph_read(const tarn__graph *graph, void **values, const tarn__tensor *tensor,
                             tarn__host_room *room) TARN_CHECKED;
// The values of a result: the first call after a run waits for it, and brings all results in one copy. Valid until the
// next run.
tarn_status tarn__graph_result(tarn__graph *graph, void **values, const tarn__tensor *tensor) TARN_CHECKED;
// A copy of what was kept.
tarn_status tarn__graph_get(const tarn__graph *graph, void *values, const tarn__tensor *tensor) TARN_CHECKED;

// Bytes that a node reads and writes, as if no cache held anything: every input once, parameters too, every output
// once, and the gradients of parameters, which are read too where the node adds to them; a value that is replaced in
// place is read and written. Scratch does not count, nor what an op reads several times. Ops of which less is read say
// so themselves (tarn__op). To be asked before the node runs.
double tarn__node_bytes(const tarn__node *node);
double tarn__tensor_bytes(const tarn__tensor *tensor);  // NULL: 0
// Of an update by Adam: the gradient is read, the fp32 copy and the moments are read and written, and what kernels read
// is written where it is another copy.
double tarn__update_bytes(const tarn__param *param);

// For kernels: 0 if the next addition to a parameter's gradient overwrites, else 1; marks the gradient as written.
// Called once a node, outside of parallel regions.
int tarn__param_accumulate(tarn__param *param);

#endif
