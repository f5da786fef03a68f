// A copy of the model of a training: a model of the same description, not for training, with the values that it would
// have if a checkpoint of the training were written now and read.
#ifndef TARN_STORE_MODEL_COPY_H
#define TARN_STORE_MODEL_COPY_H

#include "store/checkpoint.h"

// The type of its numbers, for dynamics.precision.
tarn__dtype tarn__model_copy_type(const tarn_config *config);

// Names and shapes only, of that type. The model's description must outlive it; close it with tarn__model_close().
tarn_status tarn__model_copy_open(tarn__model **copy, const tarn__model *model) TARN_CHECKED;

// The memory that it takes, with the weights of its products packed.
size_t tarn__model_copy_bytes(const tarn__model *copy);

// Takes its memory and draws the frozen parameters, of that update.
tarn_status tarn__model_copy_allocate(tarn__model *copy, const tarn__model *model, int64_t update) TARN_CHECKED;

// Takes the values after that update, which is not before that of the last call. `parts` reads those of a model with
// shares_optimiser.
tarn_status tarn__model_copy_take(tarn__model *copy, const tarn__model *model, int64_t update,
                                  const tarn__part_reader *parts) TARN_CHECKED;

#endif
