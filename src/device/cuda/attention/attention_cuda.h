// Shared by the kernels of attention: its shape as kernels see it, tiles of packed sequences, slopes, masks.
//
// A sequence is cut into tiles of rows; a block computes one tile for one head. Blocks have slots: with tiles of n
// rows, sequence s has the slots from offsets[s] / n + s on, which is enough for its tiles, whatever the lengths. So a
// grid follows from the number of rows and of sequences alone, and offsets are read only on the card.
#ifndef TARN_DEVICE_CUDA_ATTENTION_CUDA_H
#define TARN_DEVICE_CUDA_ATTENTION_CUDA_H

#include "device/cuda/cuda_kernels.h"

extern "C" {
#include "ops/attention.h"
}

enum { TARN__ATTENTION_WARPS = 4, TARN__ATTENTION_THREADS = TARN__ATTENTION_WARPS * TARN__WARP_SIZE };

// By value to kernels.
typedef struct tarn__attention_shape {
  const int32_t *query_offsets, *key_offsets;
  int sequences, heads, group, width;  // group: heads that share keys and values; width: of a head
  bool causal;
  int64_t query_rows, key_rows, query_pitch, key_pitch, d;
  int64_t query_column, key_column, value_column;
  float scale;          // of scores
  float alibi;          // 0: no slopes
  int power;            // the largest power of two that is not above heads
  int reach;            // of biases
  const float *biases;  // [heads, 2 reach + 1], or NULL
  tarn__mask mask;
} tarn__attention_shape;

static inline unsigned tarn__attention_slots(int64_t rows, int sequences, int tile) {
  return rows ? (unsigned)(rows / tile + sequences) : 0u;
}

// The sequence of a slot, and the first row of its tile within it. All lanes of the warp take part.
typedef struct tarn__attention_tile {
  int sequence, first;
} tarn__attention_tile;
static __device__ __forceinline__ tarn__attention_tile tarn__attention_tile_of(const int32_t *offsets, int sequences,
                                                                               int slot, int rows) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  int low = 0, high = sequences;
  while (high - low > 1) {  // the last sequence whose slots begin at this one or before
    const int step = (high - low + TARN__WARP_SIZE - 1) / TARN__WARP_SIZE, s = low + lane * step;
    const int count = __popc(__ballot_sync(TARN__WARP, s < high && offsets[s] / rows + s <= slot));
    low += (count - 1) * step;
    high = min(low + step, high);
  }
  const tarn__attention_tile tile = {low, (slot - offsets[low] / rows - low) * rows};
  return tile;
}

// The factor of the distance in scores that are scaled for powers of two (tarn__attention_slopes()).
static __device__ __forceinline__ float tarn__attention_slope(const tarn__attention_shape &shape, int head) {
  if (shape.alibi == 0.0f) return 0.0f;
  const int steps = head < shape.power ? 2 * (head + 1) : 2 * (head - shape.power) + 1;
  return exp2f(-shape.alibi * (float)steps / (2.0f * (float)shape.power)) * 1.4426950408889634f;
}

// A bit for each of the 8 columns of a block of a mask: whether it is kept.
static __device__ __forceinline__ uint32_t tarn__mask_bits(const tarn__mask &mask, uint32_t row, uint32_t block) {
  uint32_t words[4], bits = 0;
  tarn__mask_words(words, mask, row, block);
  for (int i = 0; i < 4; i++) {
    bits |= (uint32_t)((words[i] & 0xFFFFu) >= mask.threshold) << (2 * i);
    bits |= (uint32_t)((words[i] >> 16) >= mask.threshold) << (2 * i + 1);
  }
  return bits;
}

// The block of a mask that holds a key of a head.
static __device__ __forceinline__ uint32_t tarn__attention_block(int head, int key) {
  return ((uint32_t)head << 22) + (uint32_t)key / 8;  // 2^25 columns a head, 8 a block
}

// The backward pass: what is wanted and where it goes. Gradients of queries go to `dqueries`, whose rows have
// `dquery_pitch` elements; queries that lie in the same memory are read by both passes, so it is scratch memory then.
template <typename T>
struct tarn__attention_gradients {
  const T *queries, *keys_values, *dout;
  const T *result;          // of the forward pass, with statistics
  const float *statistics;  // [2 heads, rows], or NULL
  T *dqueries;              // NULL: not wanted
  T *dkeys_values;          // NULL: not wanted
  int64_t dquery_pitch, dquery_column;
  bool add_queries, add_keys_values;
  float *rows;       // scratch: [3 heads, rows], for each head what the second pass needs of each row
  float *dbiases;    // NULL: not wanted
  float *bias_sums;  // scratch: [slots, heads, 2 reach + 1]
};

// Whether tensor cores can do it: bf16, heads of 32, 64, 96 or 128 columns, rows that begin at multiples of 16 bytes,
// no biases. The answer is the same for the forward and the backward pass of a node.
bool tarn__attention_mma_fits(const tarn__attention_shape *shape);

tarn_status tarn__attention_mma(const tarn__attention_shape &shape, const tarn__bf16 *queries,
                                const tarn__bf16 *keys_values, tarn__bf16 *result, float *statistics,
                                cudaStream_t stream);
tarn_status tarn__attention_mma_backward(const tarn__attention_shape &shape,
                                         const tarn__attention_gradients<tarn__bf16> &to, cudaStream_t stream);

// Any width that there is shared memory for, any option, fp32 sums without tensor cores.
typedef enum tarn__attention_way {
  TARN__ATTENTION_FORWARD,
  TARN__ATTENTION_BACK,
  TARN__ATTENTION_MOVED
} tarn__attention_way;
// Bytes of shared memory of a block.
size_t tarn__attention_plain_bytes(tarn__attention_way pass, int width);
template <typename T>
tarn_status tarn__attention_plain(const tarn__attention_shape &shape, const T *queries, const T *keys_values, T *result,
                                  cudaStream_t stream);
template <typename T>
tarn_status tarn__attention_plain_backward(const tarn__attention_shape &shape, const tarn__attention_gradients<T> &to,
                                           cudaStream_t stream);
// Rows of a tile of queries, for the number of `bias_sums`.
enum { TARN__ATTENTION_PLAIN_LEAST = 4 };
template <typename T>
tarn_status tarn__attention_plain_tangent(const tarn__attention_shape &shape, const T *queries, const T *keys_values,
                                          const T *dqueries, const T *dkeys_values, T *dresult, int directions,
                                          cudaStream_t stream);

// Families within this folder.
void tarn__cuda_attention_rows_entries(tarn__device_kernel *kernels);
void tarn__cuda_bias_table_entries(tarn__device_kernel *kernels);
void tarn__cuda_rotary_entries(tarn__device_kernel *kernels);

#endif
