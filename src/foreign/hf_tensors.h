// The tensors of a model of another program: those of model.safetensors of the package transformers, or of the several
// files that model.safetensors.index.json names, in F32, F16 or BF16, or of a GGUF file, also in Q8_0 (half_floats.h).
// Each is used once.
#ifndef TARN_FOREIGN_HF_TENSORS_H
#define TARN_FOREIGN_HF_TENSORS_H

#include <stdbool.h>

#include "store/safetensors.h"

typedef struct tarn__hf_tensors {
  tarn__stored *tensors;  // of all files, sorted by name
  size_t count;
  bool *used;          // [count]
  const char *prefix;  // optional prefix of names: "transformer."
  char *path;          // of the file or the index, for messages
  tarn__safetensors *files;
  size_t file_count;
  tarn__map map;  // of a file of another format, whose reader opens it and fills in `tensors`
} tarn__hf_tensors;

// Zero-initialise it; close it even after a failure.
tarn_status tarn__hf_tensors_open(tarn__hf_tensors *tensors, const char *path, const char *prefix) TARN_CHECKED;
// The files of an index, which stand in its folder. Fails with DATA unless they hold the tensors that the index says,
// each once.
tarn_status tarn__hf_tensors_open_index(tarn__hf_tensors *tensors, const char *path, const char *prefix) TARN_CHECKED;
// Makes room for `count` tensors of one file of another format, which the caller fills in and sorts by name.
tarn_status tarn__hf_tensors_room(tarn__hf_tensors *tensors, const char *path, size_t count) TARN_CHECKED;
void tarn__hf_tensors_close(tarn__hf_tensors *tensors);

// tarn__map_judge() for all files; with OK tarn__map_check().
tarn_status tarn__hf_tensors_judge(const tarn__hf_tensors *tensors, tarn_status status) TARN_CHECKED;

// The tensor of a name, with or without the prefix; NULL if there is none.
const tarn__stored *tarn__hf_tensors_find(const tarn__hf_tensors *tensors, const char *name);
// Whether a name has this end.
bool tarn__hf_ends(const char *name, const char *end);
// The file of a tensor.
const char *tarn__hf_tensors_path(const tarn__hf_tensors *tensors, const tarn__stored *tensor);

// Checks that `tensor` (NULL: missing, reported with `name`) is a matrix of this shape, or with one row also a vector,
// and marks it as used. Fails with DATA.
tarn_status tarn__hf_tensors_check(tarn__hf_tensors *tensors, const tarn__stored *tensor, const char *name,
                                   int64_t rows, int64_t cols) TARN_CHECKED;

// Checks that a tensor is a matrix of 1 to 2^24 rows and columns, whose shape gives sizes. Fails with DATA.
tarn_status tarn__hf_tensors_sizes(const tarn__hf_tensors *tensors, const tarn__stored *tensor) TARN_CHECKED;

// Reads elements first .. first + count - 1 of a checked tensor as floats. Fails with DATA if one is not finite.
tarn_status tarn__hf_tensors_read(const tarn__hf_tensors *tensors, float *values, const tarn__stored *tensor,
                                  size_t first, size_t count) TARN_CHECKED;

#endif
