// The stacks of a model, for code that builds on them.
#ifndef TARN_MODEL_STACKS_H
#define TARN_MODEL_STACKS_H

#include "model/model.h"

// Appends the first `count` stacks of the model's task, which read `sides` of a batch, and returns the output of the
// last one. *above (NULL: not wanted): the inputs that a stack above needs to attend to it (memory and the like).
tarn__tensor *tarn__model_build_stacks(const tarn__model *model, tarn__graph *graph, int count,
                                       const tarn__packed *const sides[TARN__SIDES], const tarn__model_shortcuts *cuts,
                                       tarn__block_run *above);

#endif
