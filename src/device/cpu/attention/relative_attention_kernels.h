// Attention with relative keys and values: its nodes (relative_attention_node.c), and their row kernels; products use
// tarn__gemm_run(). A row of scores or weights has `distances` numbers for the distances that occur in the sentence,
// followed by one for each key. Key j and query i use number clip(j - i, -reach, reach) + reach of them.
#ifndef TARN_DEVICE_CPU_ATTENTION_RELATIVE_ATTENTION_KERNELS_H
#define TARN_DEVICE_CPU_ATTENTION_RELATIVE_ATTENTION_KERNELS_H

#include <stdint.h>

#include "device/dtype.h"
#include "device/variant.h"
#include "graph/graph.h"

// A query at index `place` of its sentence, which sees the first `count` keys.
typedef struct tarn__relative_row {
  int64_t place, count, reach, distances;
  int64_t columns;       // number of keys in a row of products, at least `count`; the rest are zero
  float scale;           // of scores
  const uint16_t *drop;  // [count] dropout numbers (ops/dropout.h), or NULL
  uint32_t threshold;    // lower numbers are dropped
  float keep_scale;      // factor of the others
  float *score;          // [distances + columns] scores; then, for keys, the softmax without dropout
  void *weight;          // [distances + columns] of `dtype`: factors of values, with dropout
  const float *dweight;  // their gradient; NULL in the forward pass
  void *dscore;          // [distances + columns] of `dtype`: gradient of scores
  float *room;           // [distances + columns]
  tarn__dtype dtype;
} tarn__relative_row;

typedef struct tarn__relative_kernels {
  void (*weigh)(const tarn__relative_row *row);
  // Call after weigh().
  void (*back)(const tarn__relative_row *row);
  // The same for tangents, in F32: dweight holds those of the scores, and dscore receives those of the weights, with
  // dropout.
  void (*push)(const tarn__relative_row *row);
  // Stores n floats in, or adds them to, n elements from `at` on.
  void (*put)(void *to, tarn__dtype dtype, int64_t at, const float *from, int64_t n, bool add);
  void (*add)(float *sum, const float *x, int64_t n);
  void (*numbers)(uint16_t *drop, const tarn__exec *exec, uint32_t site, int64_t row, int64_t first, int64_t n);
} tarn__relative_kernels;
TARN__TABLES(tarn__relative_kernels);

tarn_status tarn__cpu_relative_attention(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_relative_attention_backward(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__cpu_relative_attention_tangent(const tarn__exec *exec, const tarn__node *node);
size_t tarn__cpu_relative_attention_scratch(const tarn__node *node, int threads);

// Zeroes the columns of the gradients of queries, keys and values that no attention writes (attention_node.c).
void tarn__cpu_attention_zero_unwritten(const tarn__node *node);

#endif
