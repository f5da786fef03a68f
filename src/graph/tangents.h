// Forward-mode derivatives (Jacobian-vector products): directions are pushed through a graph (Wengert 1964). Given an
// input x and directions v_1 .. v_k for it, every result y that depends on x gets J v_1 .. J v_k, where J is the
// Jacobian of y with respect to x at the current values of x.
//
//   tarn__graph_begin(&graph, device, dtype, false, threads);    // F64 on the reference device, or F32
//   x = tarn__graph_external(&graph, dtype, R, d, values, "x");
//   x->tangent = tarn__graph_external(&graph, dtype, k * R, d, directions, "directions");
//   y = ... ops ...
//   tarn__graph_push(&graph, k);  // y->tangent [k * rows of y, columns of y]; NULL: y does not depend on x
//   y->keep = y->tangent->keep = true;
//   tarn__graph_plan(), tarn__graph_bind(), and tarn__graph_run() as often as needed, with new numbers in x
//
// A tangent has the dtype and the columns of its tensor and `directions` blocks of its rows: row r of direction k is
// row k * rows + r. Parameters are constant.
//
// A rule, tarn__op.tangent, finds the tangents of its inputs in node->in[j]->tangent (NULL: that input is constant; at
// least one is not), and sets node->out[i]->tangent of each output that depends on them. It may set tangents of outputs
// only. Its nodes are appended right after the node, so that tensors have short lifetimes.
//   - Ops that are linear in x, per row or per sentence, are their own rule, applied to the block of all directions
//     without additive terms (biases): y->tangent = tarn__linear(graph, x->tangent, weight, NULL, TARN__IDENTITY).
//     Their offsets, positions and row numbers must cover all directions: tarn__tangent_offsets() and so on.
//   - Sums of several terms are added by tarn__tangent_add().
//   - Other ops have an op X_TANGENT, whose inputs are those of the forward pass [R, *] and their tangents [k R, *],
//     and which derives k from their shapes (tarn__tangent_directions()). Its kernels read row r of the forward pass
//     for rows r, R + r, 2 R + r, ... of tangents.
//   - A rule that needs a value which the forward node keeps only in training, such as z before an activation, adds
//     that output to the node (tarn__tangent_keep()).
// tests/tangents/tangent_check.h checks a rule in a few lines.
#ifndef TARN_GRAPH_TANGENTS_H
#define TARN_GRAPH_TANGENTS_H

#include "graph/graph.h"

// Pushes the tangents of all inputs, each with `directions` (1 or more) directions, through the graph's nodes in order.
// Call it after building, instead of differentiation, once per graph. Fails (graph->status) with UNSUPPORTED if a node
// that depends on such an input has no rule, or if the device lacks a kernel for a rule.
void tarn__graph_push(tarn__graph *graph, int directions);

// A new tensor for the directions of `tensor`.
tarn__tensor *tarn__tangent_new(tarn__graph *graph, const tarn__tensor *tensor, const char *name);

// tensor->tangent += contribution; NULL stands for zero. Neither is written to.
void tarn__tangent_add(tarn__graph *graph, tarn__tensor *tensor, tarn__tensor *contribution);

// Whether a tensor is kept or read by a forward node: rules with several outputs may omit the tangents of all others.
// To get an output of such a node, set its `keep` before pushing.
bool tarn__tangent_wanted(const tarn__tensor *tensor);

// Output `out` of a forward node that is being pushed: the existing one, or a new tensor that the node then also
// writes.
tarn__tensor *tarn__tangent_keep(tarn__graph *graph, tarn__node *node, int out, tarn__dtype dtype, int64_t rows,
                                 int64_t cols, const char *name);

// Integers of the forward pass for all directions in sequence, made once per graph; NULL stays NULL. Values are copied
// at the time of pushing.
//   offsets [1, n + 1]  becomes [1, directions * n + 1], sentences of direction k after those of direction k - 1
//   positions [1, n]    becomes [1, directions * n], repeated: integers that are not row numbers (ids, positions)
//   rows [1, n]         becomes [1, directions * n]: row numbers of a tensor of `period` rows, plus k * period
tarn__tensor *tarn__tangent_offsets(tarn__graph *graph, tarn__tensor *offsets);
tarn__tensor *tarn__tangent_positions(tarn__graph *graph, tarn__tensor *positions);
tarn__tensor *tarn__tangent_rows(tarn__graph *graph, tarn__tensor *rows, int64_t period);

// For kernels: the number of directions in a tangent of a tensor with `rows` rows.
static inline int64_t tarn__tangent_directions(const tarn__tensor *tangent, int64_t rows) {
  return rows > 0 ? tangent->rows / rows : 0;
}

#endif
