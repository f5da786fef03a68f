// Are the tensors of a checkpoint those that its description asks for? Shared by all that read one.
#ifndef TARN_STORE_CHECKPOINT_CHECK_H
#define TARN_STORE_CHECKPOINT_CHECK_H

#include <string.h>

#include "store/checkpoint.h"

// The tensor of a parameter's values ("") or of its state (TARN__TENSOR_MOMENT1, ...), or NULL.
const tarn__stored *tarn__checkpoint_values(const tarn__safetensors *tensors, const char *prefix,
                                            const tarn__param *param);

// The scales of a parameter's values in I8, or NULL.
const tarn__stored *tarn__checkpoint_scales(const tarn__safetensors *tensors, const tarn__param *param);
static inline bool tarn__stored_is(const tarn__stored *tensor, const char *dtype) {
  return tensor && strcmp(tensor->dtype, dtype) == 0;
}

// Fails with DATA unless there is such a tensor, of the parameter's shape in fp32; signs must be 1 or -1.
// Matrices may be BF16 (tarn export --precision bf16), and I8 with scales that are finite and not negative, where INT8
// may stand for the parameter (tarn export --precision int8).
tarn_status tarn__checkpoint_check_values(const tarn__safetensors *tensors, const char *prefix,
                                          const tarn__param *param) TARN_CHECKED;
// The same of its moments, which must be of the type that the training keeps them in.
tarn_status tarn__checkpoint_check_moments(const tarn__safetensors *tensors, const tarn__param *param) TARN_CHECKED;

// Fails with DATA if there is a tensor that belongs neither to the model of the file's whole description, nor to its
// training, nor is a vocabulary. Whether all are there and have the right shapes is not looked at.
tarn_status tarn__checkpoint_check_names(const tarn__checkpoint_file *file, const tarn__model *model) TARN_CHECKED;

// The line of a frozen parameter that says how its values are drawn, checked, and its factor taken over into the
// parameter; NULL for one that the file holds as a tensor, and for trained ones. Both at once are refused.
tarn_status tarn__checkpoint_recipe(const char **recipe, const tarn__checkpoint_file *file,
                                    tarn__param *param) TARN_CHECKED;

#endif
