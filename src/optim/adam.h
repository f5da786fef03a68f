// Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019) as one pass over all trained parameters: moments,
// fp32 master copy and bf16 compute copy are read and written once. The definitions are PyTorch's (torch.optim.Adam,
// torch.optim.AdamW):
//   g = factor * gradient (+ weight_decay * w, Adam);   w = w - learning_rate * weight_decay * w   (AdamW)
//   m = beta1 m + (1 - beta1) g;   v = beta2 v + (1 - beta2) g^2
//   w = w - learning_rate / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
#ifndef TARN_OPTIM_ADAM_H
#define TARN_OPTIM_ADAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/variant.h"
#include "graph/param.h"

typedef struct tarn__adam_options {
  double learning_rate;
  double beta1, beta2;  // 0.9, 0.98
  double epsilon;       // 1e-8
  double weight_decay;  // 0: none
  bool decoupled;       // AdamW
} tarn__adam_options;

// Updates every parameter of the list that is trained and whose gradient was written; the others stay as they are, as
// PyTorch does with a gradient of None. `step` counts from 1. `factor` scales the gradients (clipping, averaging).
// The bits of the result do not depend on the number of threads.
void tarn__adam_step(tarn__param *const *params, size_t count, const tarn__adam_options *options, int64_t step,
                     double factor, int threads);

// Euclidean norm of the gradients of the same parameters, added up in double in a fixed order. Infinite or NaN if one
// of them is: test it with isfinite().
double tarn__grad_norm(tarn__param *const *params, size_t count, int threads);

// sum += grad.
void tarn__grad_sum_add(float *sum, const float *grad, int64_t count);

// For the entry of a device that computes in the memory of the host. Whoever trains calls that of the model's device.
#define TARN__HOST_OPTIMISER \
  .grad_norm = tarn__grad_norm, .adam_step = tarn__adam_step, .grad_sum_add = tarn__grad_sum_add

// Inside: constants of a step in fp32, and the kernels.
typedef struct tarn__adam_factors {
  float gradient, decay_gradient, keep_weight;
  float beta1_rest, beta2, beta2_rest;
  float step_size, inverse_correction2, epsilon;
} tarn__adam_factors;

typedef struct tarn__adam_kernels {
  // value is NULL or the bf16 copy, grad NULL or not all zeros.
  void (*step)(float *master, float *moment1, float *moment2, uint16_t *value, const float *grad, int64_t n,
               const tarn__adam_factors *factors);
  double (*squares)(const float *x, int64_t n);
} tarn__adam_kernels;

TARN__TABLES(tarn__adam_kernels);

#endif
