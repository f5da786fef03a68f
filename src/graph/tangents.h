// Forward-mode derivatives (Jacobian-vector products): directions that are pushed through a graph (Wengert 1964). For
// an input x and directions v_1 .. v_k of it, every result y that depends on x gets J v_1 .. J v_k, where J is the
// Jacobian of y with respect to x at the values that x has.
//
//   tarn__graph_begin(&graph, device, dtype, false, threads);    // F64 on the reference device, or F32
//   x = tarn__graph_external(&graph, dtype, R, d, values, "x");
//   x->tangent = tarn__graph_external(&graph, dtype, k * R, d, directions, "directions");
//   y = ... ops ...
//   tarn__graph_push(&graph, k);  // y->tangent [k * rows of y, columns of y]; NULL: y does not depend on x
//   y->keep = y->tangent->keep = true;
//   tarn__graph_plan(), tarn__graph_bind(), and tarn__graph_run() as often as wanted, with other numbers in x
//
// A tangent has the dtype and the columns of its tensor and `directions` blocks of its rows: row r of direction k is
// row k * rows + r. Parameters do not move.
//
// A rule, tarn__op.tangent, finds the tangents of its inputs in node->in[j]->tangent (NULL: that input does not move;
// at least one does), and gives each output that moves its own in node->out[i]->tangent. It may set tangents of outputs
// only. What it builds is appended right after its node, so that tensors die soon.
//   - Ops that are linear in x, row by row or sentence by sentence, are their own rule, on the block of all directions
//     and without what is added (biases): y->tangent = tarn__linear(graph, x->tangent, weight, NULL, TARN__IDENTITY).
//     Their offsets, positions and numbers of rows must be those of all directions: tarn__tangent_offsets() and so on.
//   - Sums of several terms are added by tarn__tangent_add().
//   - Other ops have an op X_TANGENT, whose inputs are those of the forward pass [R, *] and their tangents [k R, *],
//     and which finds k by its tensors (tarn__tangent_directions()). Its kernels read row r of the forward pass for
//     rows r, R + r, 2 R + r, ... of tangents.
//   - What a forward node keeps only in training, such as z before an activation, a rule asks it for by giving the node
//     that output (tarn__tangent_keep()).
// tests/tangents/tangent_check.h proves a rule in a few lines.
#ifndef TARN_GRAPH_TANGENTS_H
#define TARN_GRAPH_TANGENTS_H

#include "graph/graph.h"

// Pushes all tangents that inputs of the graph have, each of `directions` (1 or more) directions, through its nodes, in
// order. Comes after building and in place of differentiation; once a graph. Fails (graph->status) with UNSUPPORTED
// where a node that something moves has no rule or the device has no kernel for what a rule needs.
void tarn__graph_push(tarn__graph *graph, int directions);

// A new tensor for the directions of `tensor`.
tarn__tensor *tarn__tangent_new(tarn__graph *graph, const tarn__tensor *tensor, const char *name);

// tensor->tangent += contribution; NULL contributions are zeros. Neither is written to.
void tarn__tangent_add(tarn__graph *graph, tarn__tensor *tensor, tarn__tensor *contribution);

// Whether a node of the forward pass reads a tensor, or it is kept: rules with several outputs may leave out the
// tangents of all others. So a caller who wants an output of such a node sets its `keep` before pushing.
bool tarn__tangent_wanted(const tarn__tensor *tensor);

// Output `out` of a forward node that is being pushed: what is there, or a new tensor that the node then writes too.
tarn__tensor *tarn__tangent_keep(tarn__graph *graph, tarn__node *node, int out, tarn__dtype dtype, int64_t rows,
                                 int64_t cols, const char *name);

// Integers of the forward pass for all directions one after the other, made once a graph; NULL stays NULL. The values
// are copied as they are at the time of pushing.
//   offsets [1, n + 1]  becomes [1, directions * n + 1], sentences of direction k after those of direction k - 1
//   positions [1, n]    becomes [1, directions * n], repeated: whatever does not count rows (ids, positions)
//   rows [1, n]         becomes [1, directions * n]: numbers of rows of a tensor of `period` rows, plus k * period
tarn__tensor *tarn__tangent_offsets(tarn__graph *graph, tarn__tensor *offsets);
tarn__tensor *tarn__tangent_positions(tarn__graph *graph, tarn__tensor *positions);
tarn__tensor *tarn__tangent_rows(tarn__graph *graph, tarn__tensor *rows, int64_t period);

// For kernels: the directions of a tangent of a tensor of `rows` rows.
static inline int64_t tarn__tangent_directions(const tarn__tensor *tangent, int64_t rows) {
  return rows > 0 ? tangent->rows / rows : 0;
}

#endif
