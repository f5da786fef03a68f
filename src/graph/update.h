// The update of a parameter as soon as its gradient is whole, for trainings that need not know the gradients of all
// others first. Its gradient then is a tensor of the workspace, which lives from the first node that adds to it to its
// update, and memory for the gradients of a whole model is never taken.
//
//   dweight A   dx A     dweight B   update B   dx ...      the gradient of B: [dweight B, update B]
//   \___ A is shared with a layer below: its gradient lives on, and its values stay until nobody reads them ___/
#ifndef TARN_GRAPH_UPDATE_H
#define TARN_GRAPH_UPDATE_H

#include "graph/graph.h"

// Its kernel updates dparam[0] by exec->update and adds the sum of the squares of its gradient to *exec->squares, in
// the order of the updates.
extern const tarn__op tarn__op_update;

// After differentiation and recomputation: the gradients of the parameters that are `planned` (param.h) become tensors,
// and behind the last node that adds to such a gradient or reads the parameter comes its update.
void tarn__graph_update(tarn__graph *graph);

#endif
