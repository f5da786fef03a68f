// What the output layer's files share: chunks of rows, the softmax of a row of logits, and sums over rows in a fixed
// order.
#ifndef TARN_DEVICE_CUDA_OUTPUT_OUTPUT_ROWS_H
#define TARN_DEVICE_CUDA_OUTPUT_OUTPUT_ROWS_H

#include <float.h>

#include "device/cuda/cuda.h"

// The logits of all rows are never in memory together: of a chunk they take at most so many bytes, unless that were
// fewer than CHUNK_ROWS rows. A large chunk reads and writes the gradient of the table seldom. On the host chunks are
// small, so that tests meet several.
#if defined(TARN_CUDA_HOST)
enum { TARN__CHUNK_BYTES = 2 << 20, TARN__CHUNK_ROWS = 8 };
#else
enum { TARN__CHUNK_BYTES = 256 << 20, TARN__CHUNK_ROWS = 128 };
#endif

// Rows of a chunk, all but the last of which are equal.
static inline int64_t tarn__chunk_rows(int64_t rows, int64_t row_bytes) {
  const int64_t fit = TARN__CHUNK_BYTES / row_bytes;
  const int64_t most = fit > TARN__CHUNK_ROWS ? fit : (int64_t)TARN__CHUNK_ROWS;
  if (rows <= most) return rows > 0 ? rows : 1;
  const int64_t chunks = (rows + most - 1) / most, each = (rows + chunks - 1) / chunks;
  const int64_t even = (each + 7) / 8 * 8;
  return even < most ? even : most;
}

// Floats from one row of logits to the next: rows begin at 32 bytes.
static inline int64_t tarn__logits_ld(int64_t words) { return (words + 7) / 8 * 8; }

// Arrays in the scratch of a node, one after the other: their offsets, and the sum of their sizes.
static inline size_t tarn__room_after(size_t *used, int64_t count, size_t size) {
  const size_t at = *used;
  *used = (at + (size_t)count * size + 255) & ~(size_t)255;
  return at;
}

// Threads of a block that has one row.
static inline unsigned tarn__row_threads(int64_t words) {
  return words <= 128 ? 32 : words <= 1024 ? 128 : words <= 8192 ? 256 : 512;
}

// Bytes of shared memory for sums over a block.
enum { TARN__SUMS_BYTES = TARN__WARP_SIZE * sizeof(double) };

// Of the logits of a row: the largest, the sum of exp(logit - largest), and their plain sum. A logit that is no number,
// or infinite, makes the sum no number.
typedef struct tarn__softmax {
  float most, sum;
  double plain;
} tarn__softmax;

static __device__ __forceinline__ void tarn__softmax_add(tarn__softmax *s, float x) {
  if (x > s->most) {
    s->sum *= expf(s->most - x);
    s->most = x;
  }
  s->sum += expf(x - s->most);
}

// The same in all threads of a block. `aligned`: the row may be read 16 bytes at a time. `shared`: [32], free again on
// return.
static __device__ __forceinline__ tarn__softmax tarn__softmax_of(const float *row, int64_t words, bool aligned,
                                                                 double *shared) {
  // Not -infinity, from which a logit of -infinity could not be subtracted.
  tarn__softmax own = {-FLT_MAX, 0.0f, 0.0};
  float plain = 0.0f;
  const int64_t fours = aligned ? words / 4 : 0;
  for (int64_t i = threadIdx.x; i < fours; i += blockDim.x) {
    const float4 x = reinterpret_cast<const float4 *>(row)[i];
    const float most = fmaxf(fmaxf(x.x, x.y), fmaxf(x.z, x.w));
    if (most > own.most) {
      own.sum *= expf(own.most - most);
      own.most = most;
    }
    own.sum += (expf(x.x - own.most) + expf(x.y - own.most)) + (expf(x.z - own.most) + expf(x.w - own.most));
    plain += (x.x + x.y) + (x.z + x.w);
  }
  for (int64_t i = 4 * fours + threadIdx.x; i < words; i += blockDim.x) {
    tarn__softmax_add(&own, row[i]);
    plain += row[i];
  }
  tarn__softmax all;
  all.most = tarn__block_max(own.most, reinterpret_cast<float *>(shared));
  all.sum = tarn__block_sum(own.sum * expf(own.most - all.most), reinterpret_cast<float *>(shared));
  all.plain = tarn__block_sum((double)plain, shared);
  return all;
}

// Writes row[4 i .. 4 i + 3] of gradients in the type of the products, over the fp32 logits at `row`.
static __device__ __forceinline__ void tarn__set_four(float *row, int64_t i, float4 x) {
  reinterpret_cast<float4 *>(row)[i] = x;
}
static __device__ __forceinline__ void tarn__set_four(tarn__bf16 *row, int64_t i, float4 x) {
  reinterpret_cast<__nv_bfloat162 *>(row)[2 * i] = __floats2bfloat162_rn(x.x, x.y);
  reinterpret_cast<__nv_bfloat162 *>(row)[2 * i + 1] = __floats2bfloat162_rn(x.z, x.w);
}

// to[c] = (accumulate ? to[c] : 0) + the sum over rows r of weights[r] x[r ld + c], for c < cols; weights NULL: 1.
// `partial`: tarn__column_sums_bytes(cols) of device memory.
tarn_status tarn__cuda_column_sums(float *to, const void *x, tarn__dtype dtype, int64_t ld, int64_t rows, int64_t cols,
                                   const float *weights, bool accumulate, float *partial, cudaStream_t stream);
size_t tarn__column_sums_bytes(int64_t cols);

// totals[2 g + i] = the sum over r < rows of losses[2 (g rows + r) + i], for g < groups.
tarn_status tarn__cuda_loss_totals(double *totals, const double *losses, int64_t groups, int64_t rows,
                                   cudaStream_t stream);

// The words with the largest logits in each row, as the op output_top gives them; without `normalise` the logits are
// log-probabilities already. Rows are `ld` floats apart.
typedef struct tarn__top_rows {
  const float *logits;
  int64_t ld, rows, words, best;
  int32_t always;
  bool normalise;
  float *values;  // [rows, best + 1]
  int32_t *ids;   // [rows, best]
} tarn__top_rows;
tarn_status tarn__cuda_top_rows(const tarn__top_rows *top, cudaStream_t stream);

#endif
