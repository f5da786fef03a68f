// Adam, norms and sums of gradients on the processor (specified in device/device.h).
#ifndef TARN_DEVICE_CPU_OPTIM_ADAM_KERNELS_H
#define TARN_DEVICE_CPU_OPTIM_ADAM_KERNELS_H

#include "device/variant.h"
#include "graph/graph.h"
#include "optim/adam.h"

// The bits of all three do not depend on the number of threads.
tarn_status tarn__cpu_grad_norm(const tarn__device *device, double *norm, const tarn__param_table *table,
                                int threads) TARN_CHECKED;
tarn_status tarn__cpu_adam_step(const tarn__device *device, const tarn__param_table *table,
                                const tarn__adam_factors *factors, const tarn__step_numbers *numbers,
                                int threads) TARN_CHECKED;
tarn_status tarn__cpu_grad_sum_add(const tarn__device *device, const tarn__param_table *table,
                                   int threads) TARN_CHECKED;

// The constants of a step in fp32.
typedef struct tarn__adam_floats {
  float gradient, decay_gradient, keep_weight;
  float beta1_rest, beta2, beta2_rest;
  float step_size, inverse_correction2, epsilon;
} tarn__adam_floats;

// Elements [first, end) of a parameter, of whole blocks with moments in F8 (or up to its end); the arrays begin with
// its element 0.
typedef struct tarn__adam_piece {
  float *master;
  void *moment1, *moment2;
  tarn__moments moments;
  uint16_t *value;           // the bf16 copy, or NULL
  const float *grad;         // NULL: all zeros
  const uint8_t *used_rows;  // of `cols` columns: those whose gradient is not all zeros; NULL: all
  int64_t cols;
  int64_t first, end;
  tarn__exec stream;  // random numbers (optim/moments.h)
  uint32_t number;
  int64_t before;  // elements of the whole parameter before element 0 (tarn__param_training.first)
} tarn__adam_piece;

typedef struct tarn__adam_kernels {
  void (*step)(const tarn__adam_piece *piece, const tarn__adam_floats *factors);
  double (*squares)(const float *x, int64_t n);
} tarn__adam_kernels;

TARN__TABLES(tarn__adam_kernels);

#endif
