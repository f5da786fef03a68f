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

#include "device/step_numbers.h"
#include "optim/param_table.h"

typedef struct tarn__adam_options {
  double learning_rate;
  double beta1, beta2;  // 0.9, 0.98
  double epsilon;       // 1e-8
  double weight_decay;  // 0: none
  bool decoupled;       // AdamW
  uint64_t seed;        // of the rounding of moments in BF16 and F8
} tarn__adam_options;

// Updates every parameter of the table that moves; the others stay as they are, as PyTorch does with a gradient of
// None. `step` counts from 1. `factor` scales the gradients (clipping, averaging); with `numbers`, in the memory of the
// device (device/step_numbers.h), there is no update if they say that it has failed, and a factor of 0 means theirs.
// All lies in the memory of the device, which computes it.
tarn_status tarn__adam_step(const tarn__device *device, tarn__param_table *table, const tarn__adam_options *options,
                            int64_t step, double factor, const tarn__step_numbers *numbers, int threads) TARN_CHECKED;

// The constants of a step, for a device.
struct tarn__adam_factors;
void tarn__adam_factors_set(struct tarn__adam_factors *factors, const tarn__adam_options *options, int64_t step,
                            double factor);

// Whether an update moves a parameter and its gradient counts in the norm.
static inline bool tarn__adam_moves(const tarn__param *param) { return param->trained && param->training.grad_written; }

// Whether its gradient is added to a sum (AutoFreeze).
static inline bool tarn__adam_sums(const tarn__param *param) {
  return param->training.grad_sum && param->training.grad_written && tarn__param_learns(param);
}

// Bytes that such an update reads and writes: gradients, fp32 copies, moments, and what kernels read where it is
// another copy. grad_norm() of the device reads the gradients: `gradients`.
double tarn__adam_bytes(tarn__param *const *params, size_t count, double *gradients);

// The constants of a step for a device, the same for every parameter.
//   g = gradient * grad + decay_gradient * w;   m += beta1_rest * (g - m);   v = beta2 * v + beta2_rest * g * g
//   w = keep_weight * w - step_size * m / (sqrt(v) * inverse_correction2 + epsilon)
typedef struct tarn__adam_factors {
  double gradient, decay_gradient, keep_weight;
  double beta1_rest, beta2, beta2_rest;
  double step_size, inverse_correction2, epsilon;
  uint64_t seed;  // of the rounding of moments in BF16 and F8, and the update
  uint32_t step;
  bool clips;  // gradients are multiplied by the factor of the update's numbers, and not by `gradient`
} tarn__adam_factors;

static inline double tarn__adam_gradient(const tarn__adam_factors *factors, const tarn__step_numbers *numbers) {
  return factors->clips ? numbers->factor : factors->gradient;
}

#endif
