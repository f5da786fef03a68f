// Updates a parameter as soon as its gradient is complete, for training that does not need the gradients of all
// parameters first. Its gradient is then a tensor of the workspace, which lives from the first node that adds to it to
// its update; the gradients of a whole model are never in memory at once.
//
//   dweight A   dx A     dweight B   update B   dx ...      the gradient of B: [dweight B, update B]
//   \___ A is shared with a layer below: its gradient and values live until the last node that uses them ___/
#ifndef TARN_GRAPH_UPDATE_H
#define TARN_GRAPH_UPDATE_H

#include "graph/graph.h"

// Its kernel updates dparam[0] by exec->update and adds the sum of squares of its gradient to *exec->squares, in the
// order of the updates.
extern const tarn__op tarn__op_update;

// After differentiation and recomputation: makes the gradients of the `planned` parameters (param.h) tensors, and
// inserts each update after the last node that adds to the gradient or reads the parameter.
void tarn__graph_update(tarn__graph *graph);

#endif
