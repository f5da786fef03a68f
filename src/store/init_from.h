// train.init_from: starting from the weights of another model.
#ifndef TARN_STORE_INIT_FROM_H
#define TARN_STORE_INIT_FROM_H

#include "model/model.h"
#include "tarn/vocab.h"

// Gives every trained parameter of the initialised model the values of the parameter of the same name in the checkpoint
// `path` (in a run directory the one that tarn_checkpoint_find() chooses, which is reported), whether trained or frozen
// there. A classifier takes its body from any model, from a translation model its encoder; its head stays as drawn
// unless the other has the same task and labels. Frozen parameters stay as drawn from train.seed, and must be equal in
// the file. Fails with DATA if a parameter is missing or has another shape, a frozen one has other values, or a
// vocabulary differs; with IO or MEMORY.
tarn_status tarn__init_from(tarn__model *model, const char *path, const tarn_vocab *source,
                            const tarn_vocab *target) TARN_CHECKED;

#endif
