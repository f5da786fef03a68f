// The fast kernels of the output layer: a row of logits at a time.
#ifndef TARN_DEVICE_CPU_OUTPUT_OUTPUT_KERNELS_H
#define TARN_DEVICE_CPU_OUTPUT_OUTPUT_KERNELS_H

#include "device/variant.h"
#include "ops/output.h"

// The results for one row of logits.
typedef struct tarn__output_row {
  int64_t words;
  int32_t target;
  double smoothing;
  float scale;      // of the gradient
  bool wants_grad;  // false: only the loss
  float *sums;      // [words] += gradient; NULL: not wanted
} tarn__output_row;

typedef struct tarn__output_kernels {
  // loss = {smoothed loss, nll}. Overwrites the logits.
  void (*loss)(float *logits, uint16_t *dlogits, double loss[2], const tarn__output_row *row);
  // Replaces logits by log-probabilities.
  void (*log_softmax)(float *logits, int64_t words);
} tarn__output_kernels;
TARN__TABLES(tarn__output_kernels);

#endif
