// The functions of the device outside graphs: Adam, norms and sums of gradients, the numbers of an update, averages,
// and ridge regression. They run on the default stream, and the host does not wait for them, except where a call
// returns a number to it.
#ifndef TARN_DEVICE_CUDA_OPTIM_OPTIMISER_H
#define TARN_DEVICE_CUDA_OPTIM_OPTIMISER_H

#include "device/cuda/cuda.h"

extern "C" {
#include "optim/adam.h"
#include "optim/moments.h"
#include "optim/ridge.h"
}

// Each sets the functions of the type that its file holds.
void tarn__cuda_param_table_entries(tarn__device_type *type);  // param_table_cuda.cu
void tarn__cuda_adam_entries(tarn__device_type *type);         // adam_cuda.cu
void tarn__cuda_sums_entries(tarn__device_type *type);         // sums_cuda.cu
void tarn__cuda_ridge_entries(tarn__device_type *type);        // ridge_cuda.cu

// Elements are updated in chunks, one a block; a thread takes four neighbours at a time, half of a block of random
// numbers (optim/moments.h).
enum { TARN__CHUNK_THREADS = 256, TARN__CHUNK = 4096, TARN__QUAD = 4 };

static inline int64_t tarn__cuda_chunks(int64_t size) { return (size + TARN__CHUNK - 1) / TARN__CHUNK; }

// A parameter that an update moves, as kernels see it. Its chunks have the numbers from first_chunk on.
typedef struct tarn__moved {
  float *master;
  void *value;  // NULL: it is the master copy
  const float *grad;
  const uint8_t *used_rows;
  void *moment1, *moment2;
  float *grad_sum;  // NULL unless gradients are added to it
  int64_t size, cols;
  int64_t before;  // tarn__param_training.first
  int64_t first_chunk;
  uint32_t number;
  int32_t is_bf16;  // `value`
  int32_t moments;  // tarn__moments
  int32_t wide;     // all arrays are aligned to four of their elements, those of blocks of F8 to their scale
} tarn__moved;

// The whole struct is set, so that two can be compared as bytes.
void tarn__cuda_moved_set(tarn__moved *moved, const tarn__param *param);

// A table in the memory of the device.
typedef struct tarn__moved_table {
  const tarn__moved *params;
  double *partial;  // [chunks]: room for one sum of each
  int64_t chunks;
  int count;
} tarn__moved_table;

// The copy of a table, as of its last refresh. Fails with INTERNAL if it has none.
tarn_status tarn__cuda_table_of(tarn__moved_table *out, const tarn__param_table *table);

// The parameter that a chunk belongs to.
static __device__ __forceinline__ const tarn__moved *tarn__moved_at(const tarn__moved_table &table, int64_t chunk) {
  int low = 0, high = table.count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (table.params[middle].first_chunk <= chunk)
      low = middle;
    else
      high = middle - 1;
  }
  return table.params + low;
}

// --- four neighbours, of which `count` exist

static __device__ __forceinline__ void tarn__quad_load(float x[TARN__QUAD], const float *from, int64_t i, int count,
                                                       bool wide) {
  if (wide && count == TARN__QUAD) {
    const float4 all = *reinterpret_cast<const float4 *>(from + i);
    x[0] = all.x, x[1] = all.y, x[2] = all.z, x[3] = all.w;
    return;
  }
  for (int k = 0; k < TARN__QUAD; k++) x[k] = k < count ? from[i + k] : 0.0f;
}

static __device__ __forceinline__ void tarn__quad_store(float *to, const float x[TARN__QUAD], int64_t i, int count,
                                                        bool wide) {
  if (wide && count == TARN__QUAD)
    *reinterpret_cast<float4 *>(to + i) = make_float4(x[0], x[1], x[2], x[3]);
  else
    for (int k = 0; k < TARN__QUAD; k++)
      if (k < count) to[i + k] = x[k];
}

static __device__ __forceinline__ int tarn__quad_count(int64_t i, int64_t size) {
  return size - i < TARN__QUAD ? (int)(size - i) : TARN__QUAD;
}

// Gradients; those of unused rows are zero and are not read.
static __device__ __forceinline__ void tarn__quad_gradient(float g[TARN__QUAD], const tarn__moved &p, int64_t i,
                                                           int count) {
  if (!p.used_rows) {
    tarn__quad_load(g, p.grad, i, count, p.wide);
    return;
  }
  int64_t row = i / p.cols, column = i - row * p.cols;
  if (column + TARN__QUAD <= p.cols && p.used_rows[row]) {
    tarn__quad_load(g, p.grad, i, count, p.wide);
    return;
  }
  for (int k = 0; k < TARN__QUAD; k++) {
    g[k] = k < count && p.used_rows[row] ? p.grad[i + k] : 0.0f;
    if (++column == p.cols) row++, column = 0;
  }
}

static __device__ __forceinline__ double tarn__quad_squares(const float g[TARN__QUAD], double sum) {
  for (int k = 0; k < TARN__QUAD; k++) sum = fma((double)g[k], (double)g[k], sum);
  return sum;
}

// Adds `count` numbers in a fixed order, in one block: *to = their sum, or its root; or *to += it.
typedef enum tarn__total { TARN__TOTAL, TARN__TOTAL_ROOT, TARN__TOTAL_ADDED } tarn__total;
tarn_status tarn__cuda_total(double *to, const double *numbers, int64_t count, tarn__total how, cudaStream_t stream);

#endif
