// The fast kernel of hadamard and hadamard_dx.
#ifndef TARN_DEVICE_CPU_HADAMARD_KERNELS_H
#define TARN_DEVICE_CPU_HADAMARD_KERNELS_H

#include "device/variant.h"
#include "ops/hadamard.h"

// What the fast kernel does: to = act(from Q^T + bias), or transposed to (+)= from Q.
typedef struct tarn__hadamard_job {
  tarn__hadamard_shape shape;
  const float *signs;
  const float *bias;  // forward, or NULL
  const void *from;   // [rows, from_cols]
  const void *mask;   // transposed: `from` counts only where this [rows, from_cols] is above 0; or NULL
  void *to;           // [rows, to_cols]
  int64_t from_cols, to_cols;
  tarn__dtype dtype;  // of from, mask and to
  bool relu, transposed, accumulate;
} tarn__hadamard_job;

// Floats of scratch that one thread needs.
size_t tarn__hadamard_scratch(const tarn__hadamard_shape *shape);

typedef struct tarn__hadamard_kernels {
  // Rows [first, last).
  void (*run)(const tarn__hadamard_job *job, int64_t first, int64_t last, float *scratch);
} tarn__hadamard_kernels;
TARN__TABLES(tarn__hadamard_kernels);

#endif
