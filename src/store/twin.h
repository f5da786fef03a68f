// A twin of the model of a training: a model of the same description, not for training, with the values that it would
// have if a checkpoint of the training were written now and read.
#ifndef TARN_STORE_TWIN_H
#define TARN_STORE_TWIN_H

#include "store/checkpoint.h"

// Names and shapes only. The model's description must outlive it; close it with tarn__model_close().
tarn_status tarn__twin_open(tarn__model **twin, const tarn__model *model, tarn__dtype dtype) TARN_CHECKED;

// The memory that it takes, with the weights of its products packed.
size_t tarn__twin_bytes(const tarn__model *twin);

// Takes its memory and draws the frozen parameters, of that update.
tarn_status tarn__twin_allocate(tarn__model *twin, const tarn__model *model, int64_t update) TARN_CHECKED;

// Takes the values after that update, which is not before that of the last call. `parts` reads those of a model with
// shares_optimiser.
tarn_status tarn__twin_take(tarn__model *twin, const tarn__model *model, int64_t update,
                            const tarn__part_reader *parts) TARN_CHECKED;

#endif
