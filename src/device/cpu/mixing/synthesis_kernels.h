// The row-wise fast kernels of synthetic attention; its products are tarn__gemm_run() (synthesis_node.c). Rows of
// weights are padded to whole registers, `width` numbers; elements after the first `count` are read but ignored, and
// written as zeros.
#ifndef TARN_DEVICE_CPU_MIXING_SYNTHESIS_KERNELS_H
#define TARN_DEVICE_CPU_MIXING_SYNTHESIS_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "device/dtype.h"
#include "device/variant.h"

// A row of weights: softmax(share[0] logit + share[1] score) over its first `count` numbers.
typedef struct tarn__synthesis_row {
  float *weight;
  void *rounded;               // the same in BF16; NULL: not wanted
  const float *logit, *score;  // score NULL: weights are softmax(logit)
  float share[2];
  int64_t count, width;  // width: a multiple of 16
} tarn__synthesis_row;

// Its gradients.
typedef struct tarn__synthesis_back {
  const float *dweight;
  float *dlogit;
  void *dlogit_rounded;  // in BF16; NULL: not wanted
  void *dscore;          // of `dtype`, the gradient of the score times `scale`; NULL: not wanted
  tarn__dtype dtype;
  float scale;
  float sums[2];  // set to the sums of the gradient before applying its shares, times logit and times score
} tarn__synthesis_back;

typedef struct tarn__synthesis_kernels {
  void (*softmax)(const tarn__synthesis_row *row);
  void (*softmax_back)(tarn__synthesis_back *back, const tarn__synthesis_row *row);
  // logit[j] = pair[j mod a] pair[a + j div a] for j < count. pair [a + b] is at element `at` of an array.
  void (*factorised)(float *logit, const void *pairs, tarn__dtype dtype, int64_t at, int64_t a, int64_t count);
  // The tangent of logits, in F32: dpair, of the pair, is at element `moved` of a separate array.
  void (*factorised_push)(float *dlogit, const float *pairs, int64_t at, const float *dpairs, int64_t moved, int64_t a,
                          int64_t count);
  // The gradient of the pair, at the same index of dpairs; `add`: added to it. room [width] floats.
  void (*factorised_back)(void *dpairs, const void *pairs, tarn__dtype dtype, int64_t at, int64_t a, int64_t width,
                          const float *dlogit, int64_t count, bool add, float *room);
  void (*copy)(float *out, const void *from, tarn__dtype dtype, int64_t at, int64_t n);
  void (*add)(float *sum, const float *x, int64_t n);
  void (*scale)(float *x, float factor, int64_t n);
  // n floats become, or are added to, n elements from `at` on.
  void (*put)(void *to, tarn__dtype dtype, int64_t at, const float *from, int64_t n, bool add);
  // scale * x . y of n elements from x_at and y_at on.
  float (*dot)(const void *x, int64_t x_at, const void *y, int64_t y_at, tarn__dtype dtype, int64_t n, float scale);
  // sum [n] += factor * x, n elements from `at` on
  void (*axpy)(float *sum, float factor, const void *x, tarn__dtype dtype, int64_t at, int64_t n);
} tarn__synthesis_kernels;
TARN__TABLES(tarn__synthesis_kernels);

#endif
