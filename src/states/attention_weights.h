// Weights of attention, which the op's kernels never store as a whole: recomputed from queries and keys.
#ifndef TARN_STATES_ATTENTION_WEIGHTS_H
#define TARN_STATES_ATTENTION_WEIGHTS_H

#include "device/dtype.h"
#include "ops/ops.h"

// A matrix in the host's memory.
typedef struct tarn__states_matrix {
  const void *values;
  tarn__dtype dtype;
  int64_t cols;
} tarn__states_matrix;

// Arguments of tarn__attention_with() in addition to its spec; kv_heads 0: as many as heads. biases, relative keys:
// values NULL: none.
typedef struct tarn__states_extras {
  int kv_heads;
  tarn__states_matrix biases;
  tarn__states_matrix relative;  // [2 reach + 1, width]
  int64_t reach;                 // of relative keys
} tarn__states_extras;

// Value number `index`, as a float.
static inline float tarn__states_value(const tarn__states_matrix *matrix, int64_t index) {
  if (matrix->dtype == TARN__BF16) return tarn__bf16_to_f32(((const uint16_t *)matrix->values)[index]);
  if (matrix->dtype == TARN__F64) return (float)((const double *)matrix->values)[index];
  return ((const float *)matrix->values)[index];
}

// out [heads, queries, keys]: the weights of one sentence, whose queries begin in row q_row and whose keys in row
// k_row. Bits do not depend on `threads`.
tarn_status tarn__states_attention(float *out, const tarn__states_matrix *queries, int64_t q_row, int64_t query_count,
                                   const tarn__states_matrix *keys, int64_t k_row, int64_t key_count,
                                   const tarn__attention_spec *spec, const tarn__states_extras *extras,
                                   int threads) TARN_CHECKED;

#endif
