// Some layers of a model by themselves: the map that is iterated when a stack is studied as a dynamical system.
#ifndef TARN_MODEL_LAYERS_H
#define TARN_MODEL_LAYERS_H

#include "model/model.h"

// Appends the layers [first, last) of the first stack of the model's task, which attends to no other, on sentences
// `packed`, without dropout if the graph does not train. x [packed->rows, d_model] is the residual stream before them;
// if NULL, the embeddings are appended first. Returns the residual stream after them, with every branch added and
// without a final norm (kept).
tarn__tensor *tarn__model_build_layers(const tarn__model *model, tarn__graph *graph, const tarn__packed *packed,
                                       tarn__tensor *x, int first, int last);

// That stack.
const tarn__task_stack *tarn__model_first_stack(const tarn__model *model);

#endif
