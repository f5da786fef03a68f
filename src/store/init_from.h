// train.init_from: a training that starts from the weights of another model.
#ifndef TARN_STORE_INIT_FROM_H
#define TARN_STORE_INIT_FROM_H

#include "model/model.h"
#include "tarn/vocab.h"

// Gives every trained parameter of the model, which is initialised, the values that the checkpoint `path` (of a run
// directory the one that tarn_checkpoint_find() takes, which is told) has for the parameter of the same name, whether
// trained or frozen there. The model of a classifier takes its body from any model, that of a translation model from
// its encoder; its head stays as it was drawn unless the other has the same task and labels. Frozen parameters stay as
// train.seed draws them, and must be the same there. Fails with DATA where a parameter is missing or has another shape,
// a frozen one has other values, or a vocabulary is another one; with IO or MEMORY.
tarn_status tarn__init_from(tarn__model *model, const char *path, const tarn_vocab *source,
                            const tarn_vocab *target) TARN_CHECKED;

#endif
