// model.safetensors of the package transformers: tensors in F32, F16 or BF16, each used once.
#ifndef TARN_FOREIGN_HF_TENSORS_H
#define TARN_FOREIGN_HF_TENSORS_H

#include <stdbool.h>

#include "store/safetensors.h"

typedef struct tarn__hf_tensors {
  tarn__safetensors file;
  bool *used;          // [file.count]
  const char *prefix;  // optional prefix of names: "transformer."
} tarn__hf_tensors;

// Zero-initialise it; close it even after a failure.
tarn_status tarn__hf_tensors_open(tarn__hf_tensors *tensors, const char *path, const char *prefix) TARN_CHECKED;
void tarn__hf_tensors_close(tarn__hf_tensors *tensors);

// The tensor of a name, with or without the prefix; NULL if there is none.
const tarn__stored *tarn__hf_tensors_find(const tarn__hf_tensors *tensors, const char *name);

// Checks that `tensor` (NULL: missing, reported with `name`) is a matrix of this shape, or with one row also a vector,
// and marks it as used. Fails with DATA.
tarn_status tarn__hf_tensors_check(tarn__hf_tensors *tensors, const tarn__stored *tensor, const char *name,
                                   int64_t rows, int64_t cols) TARN_CHECKED;

// Reads elements first .. first + count - 1 of a checked tensor as floats. Fails with DATA if one is not finite.
tarn_status tarn__hf_tensors_read(const tarn__hf_tensors *tensors, float *values, const tarn__stored *tensor,
                                  size_t first, size_t count) TARN_CHECKED;

#endif
