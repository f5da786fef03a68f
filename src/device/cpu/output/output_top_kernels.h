// The fast kernel of output_top.
#ifndef TARN_DEVICE_CPU_OUTPUT_OUTPUT_TOP_KERNELS_H
#define TARN_DEVICE_CPU_OUTPUT_OUTPUT_TOP_KERNELS_H

#include "device/variant.h"
#include "ops/output_top.h"

typedef struct tarn__output_top_kernels {
  // One row: values [best + 1] and ids [best] from logits [words]. `maxima` is scratch of scratch_floats(words).
  void (*row)(float *values, int32_t *ids, const float *logits, int64_t words, const tarn__output_top_attr *attr,
              float *maxima);
  size_t (*scratch_floats)(int64_t words);
  // log sum exp of logits [words].
  float (*log_sum)(const float *logits, int64_t words);
} tarn__output_top_kernels;
TARN__TABLES(tarn__output_top_kernels);

#endif
