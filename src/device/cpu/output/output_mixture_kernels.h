// The fast kernels of a mixture of softmaxes: the logits of a row's K softmaxes at a time.
#ifndef TARN_DEVICE_CPU_OUTPUT_OUTPUT_MIXTURE_KERNELS_H
#define TARN_DEVICE_CPU_OUTPUT_OUTPUT_MIXTURE_KERNELS_H

#include "device/variant.h"
#include "ops/output_mixture.h"

typedef struct tarn__mixture_row {
  int64_t words, mixtures;
  const float *prior;  // [mixtures]
  int32_t target;
  double smoothing;
  float scale;        // of the gradients
  bool wants_grad;    // false: only the loss
  tarn__dtype dtype;  // of the gradients that overwrite the logits
  float *dprior;      // [mixtures]
  float *sums;        // [words] += gradient of the logits, over the softmaxes; NULL: not wanted
  float *scratch;     // 2 * words
} tarn__mixture_row;

typedef struct tarn__mixture_kernels {
  // loss = {smoothed loss, nll} from logits [mixtures, words], which are overwritten by their gradients if these are
  // wanted: each row of them begins where that of its logits did.
  void (*loss)(float *logits, double loss[2], const tarn__mixture_row *row);
  // log p of all words [words]
  void (*log)(float *log_p, const float *logits, const tarn__mixture_row *row);
} tarn__mixture_kernels;
TARN__TABLES(tarn__mixture_kernels);

// The node itself (output_mixture_node.c).
tarn_status tarn__cpu_output_mixture(const tarn__exec *exec, const tarn__node *node);
size_t tarn__cpu_output_mixture_scratch(const tarn__node *node, int threads);

#endif
