// Shown tensors (parts/shown.h) in the host's memory, and the weights of attention, which the op's kernels never store
// as a whole: they are recomputed from queries and keys.
#ifndef TARN_DECODE_SHOWN_VALUES_H
#define TARN_DECODE_SHOWN_VALUES_H

#include "device/dtype.h"
#include "graph/graph.h"
#include "parts/shown.h"

// A matrix in the host's memory.
typedef struct tarn__shown_matrix {
  const void *values;  // NULL: none
  tarn__dtype dtype;
  int64_t cols;
} tarn__shown_matrix;

// What was read of a shown tensor; of attention `values` are the queries. Zero-initialise.
typedef struct tarn__shown_values {
  tarn__shown shown;
  tarn__shown_matrix values, keys;
  tarn__shown_matrix biases;    // by distance
  tarn__shown_matrix relative;  // relative keys [2 reach + 1, width]
  tarn__host_room values_room, keys_room, biases_room, relative_room;
} tarn__shown_values;

// Value number `index`, as a float.
static inline float tarn__shown_value(const tarn__shown_matrix *matrix, int64_t index) {
  if (matrix->dtype == TARN__BF16) return tarn__bf16_to_f32(((const uint16_t *)matrix->values)[index]);
  if (matrix->dtype == TARN__F64) return (float)((const double *)matrix->values)[index];
  return ((const float *)matrix->values)[index];
}

// Reads from a graph that has run; what it reads is valid until the next one, or close.
tarn_status tarn__shown_read(tarn__shown_values *out, const tarn__graph *graph, const tarn__shown *shown) TARN_CHECKED;
void tarn__shown_values_close(tarn__shown_values *values);

// out [heads, queries, keys]: the weights of one sentence, whose queries begin in row q_row and whose keys in row
// k_row. Bits do not depend on `threads`.
tarn_status tarn__shown_attention(float *out, const tarn__shown_values *from, int64_t q_row, int64_t query_count,
                                  int64_t k_row, int64_t key_count, int threads) TARN_CHECKED;

#endif
