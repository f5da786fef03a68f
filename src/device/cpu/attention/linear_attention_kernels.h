// Kernels of linear attention and its features other than products: rows in registers, of floats or of the activations'
// type.
#ifndef TARN_DEVICE_CPU_ATTENTION_LINEAR_ATTENTION_KERNELS_H
#define TARN_DEVICE_CPU_ATTENTION_LINEAR_ATTENTION_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "device/dtype.h"
#include "device/variant.h"
#include "graph/graph.h"

// `count` rows of `n` elements, with a stride of `step` elements.
typedef struct tarn__band {
  void *data;
  tarn__dtype dtype;
  int64_t step, count, n;
} tarn__band;

static inline tarn__band tarn__band_of(const tarn__tensor *tensor, int64_t row, int64_t count, int64_t column,
                                       int64_t n) {
  char *at = (char *)tensor->data + (size_t)(row * tensor->cols + column) * tarn__dtype_size(tensor->dtype);
  return (tarn__band){at, tensor->dtype, tensor->cols, count, n};
}

// A level of exponents so low that the exponential of anything minus it is 0: no key yet. Not infinite, because the
// difference of two levels could then be NaN.
static const float TARN__LEVEL_LOWEST = -1e38f;

typedef struct tarn__linear_attention_kernels {
  // sums[i] (+)= rows[i] . z
  void (*dot)(float *sums, tarn__band rows, const float *z, bool add);
  // sum (+)= the rows, each times its factor (NULL: 1)
  void (*sum)(float *sum, tarn__band rows, const float *factors, bool add);
  // to[i][j] = from[i][j] + shifts[i] (NULL: 0), and with `causal` 0 where j > i; sums[i] the sum of the row, unless
  // sums is NULL. from is F32, and may be the memory of to.
  void (*mask)(tarn__band to, tarn__band from, const float *shifts, bool causal, float *sums);
  // to[i] = from[i] / sums[i * sum_step]
  void (*divide)(tarn__band to, tarn__band from, const float *sums, int64_t sum_step);
  // shifts[i] = -(a[i] . b[i]) / sums[i * sum_step]
  void (*shift)(float *shifts, tarn__band a, tarn__band b, const float *sums, int64_t sum_step);
  // to[i] (+)= from[i] + factors[i] (NULL: 1) row (NULL: 0)
  void (*finish)(tarn__band to, tarn__band from, const float *factors, const float *row, bool add);
  // A step of decoding for one head: after = before (NULL: 0), each row of it times its factor (NULL: 1), + k v^T,
  // followed by z; y = q after / (q . z).
  void (*step)(void *y, const void *q, const void *k, const void *v, tarn__dtype dtype, const float *before,
               const float *factors, float *after, int64_t features, int64_t width);
  // to = elu(from) + 1
  void (*elu)(tarn__band to, tarn__band from);
  // to (+)= dphi where phi > 1, else dphi phi
  void (*elu_back)(tarn__band to, tarn__band phi, tarn__band dphi, bool add);
  // Exponents, in F32. to[i] = scale products[i], for keys - |scale x[i]|^2 / 2
  void (*exponents)(tarn__band to, tarn__band products, tarn__band x, float scale, bool query);
  // levels = the largest of the rows, column by column; add: including the current levels
  void (*highest)(float *levels, tarn__band rows, bool add);
  // The number of leading rows without anything above levels + most.
  int64_t (*below)(tarn__band rows, const float *levels, float most);
  // Features. to[i] = exp(e[i] - levels), for queries exp(e[i] + levels - the largest of the row)
  void (*raise)(tarn__band to, tarn__band e, const float *levels, bool query);
  // to[i] = (from[i] + factors[i] (NULL: 1) row (NULL: 0)) by[i]; to and from in F32
  void (*weigh)(tarn__band to, tarn__band from, const float *factors, const float *row, tarn__band by);
  // factors = exp(-|to - from|)
  void (*lift)(float *factors, const float *to, const float *from, int64_t n);
  // to[i] (+)= scale (products[i] - sums[i] scale x[i]); sums NULL: zero
  void (*pull)(tarn__band to, tarn__band products, const float *sums, tarn__band x, float scale, bool add);
  // Tangents, in F32. to[i] = scale products[i], for keys scale (products[i] - scale x[i] . dx[i])
  void (*push)(tarn__band to, tarn__band products, tarn__band x, tarn__band dx, float scale, bool query);
  // to[i] = (from[i] - y[i] moved[i]) / sums[i * sum_step]
  void (*divide_moved)(tarn__band to, tarn__band from, tarn__band y, const float *moved, const float *sums,
                       int64_t sum_step);
} tarn__linear_attention_kernels;
TARN__TABLES(tarn__linear_attention_kernels);

#endif
