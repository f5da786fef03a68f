// Checks that the tensors of a checkpoint are those of its description; shared by all readers.
#ifndef TARN_STORE_CHECKPOINT_CHECK_H
#define TARN_STORE_CHECKPOINT_CHECK_H

#include <string.h>

#include "store/checkpoint.h"

// The tensor of a parameter's values ("") or of its state (TARN__TENSOR_MOMENT1, ...), or NULL.
const tarn__stored *tarn__checkpoint_values(const tarn__safetensors *tensors, const char *prefix,
                                            const tarn__param *param);

// The scales of a parameter's values in I8 or U8, or NULL.
const tarn__stored *tarn__checkpoint_scales(const tarn__safetensors *tensors, const tarn__param *param);
static inline bool tarn__stored_is(const tarn__stored *tensor, const char *dtype) {
  return tensor && strcmp(tensor->dtype, dtype) == 0;
}

// How the values of a parameter are rounded in that tensor: I8 is INT8, U8 is INT4.
static inline tarn__rounding tarn__stored_rounding(const tarn__stored *tensor) {
  return tarn__stored_is(tensor, "I8")   ? TARN__ROUNDING_INT8
         : tarn__stored_is(tensor, "U8") ? TARN__ROUNDING_INT4
                                         : TARN__ROUNDING_NONE;
}

// Fails with DATA unless there is such a tensor, of the parameter's shape in fp32; signs must be 1 or -1.
// Matrices may be BF16 (tarn export --precision bf16); I8 with finite, non-negative scales, if the parameter may be
// INT8 (tarn export --precision int8), or U8 with the same and factors within their range, if it may be INT4
// (device/int4.h).
tarn_status tarn__checkpoint_check_values(const tarn__safetensors *tensors, const char *prefix,
                                          const tarn__param *param) TARN_CHECKED;
// The same for its moments, which must have the training's type of moments.
tarn_status tarn__checkpoint_check_moments(const tarn__safetensors *tensors, const tarn__param *param) TARN_CHECKED;

// Fails with DATA if a tensor belongs neither to the model of the file's whole description nor to its training, nor is
// a vocabulary. Completeness and shapes are not checked.
tarn_status tarn__checkpoint_check_names(const tarn__checkpoint_file *file, const tarn__model *model) TARN_CHECKED;

// The checked recipe of a frozen parameter, whose factor is copied to the parameter; NULL for one that the file holds
// as a tensor, and for trained ones. Having both is refused.
tarn_status tarn__checkpoint_recipe(const char **recipe, const tarn__checkpoint_file *file,
                                    tarn__param *param) TARN_CHECKED;

#endif
