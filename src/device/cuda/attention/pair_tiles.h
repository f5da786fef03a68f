// Attention-like mixers in tiles of 32 rows of a sentence, the tile's own, against 32 others, by blocks of 256 threads:
// each warp has 4 own rows, each lane one of the others. Products of rows are summed over their columns, 32 at a time,
// which pass through shared memory; so no width is too large. All are in fp32.
#ifndef TARN_DEVICE_CUDA_ATTENTION_PAIR_TILES_H
#define TARN_DEVICE_CUDA_ATTENTION_PAIR_TILES_H

#include "device/cuda/mixing/columns.h"

static const int TARN__PAIR = 32;     // rows of a tile, on both sides
static const int TARN__PAIR_OWN = 4;  // own rows of a warp
static const int TARN__PAIR_THREADS = TARN__PAIR / TARN__PAIR_OWN * TARN__WARP_SIZE;
static const int TARN__PAIR_STRIDE = TARN__PAIR + 1;  // of the other rows by columns
static const int TARN__PAIR_NEAR = 2 * TARN__PAIR;    // distances of a pair of tiles, and one to spare
static const int TARN__PAIR_NEAR_STRIDE = TARN__PAIR_NEAR + 1;
static const int TARN__PAIR_CHUNKS = 4;  // 32 columns each: of the results of a block
static const int TARN__PAIR_COLUMNS = TARN__PAIR_CHUNKS * TARN__PAIR;

// Shared memory, in floats: own rows, the others, vectors of distances; then two tiles of weights, and random words.
static const int TARN__PAIR_OTHERS = TARN__PAIR * TARN__PAIR,
                 TARN__PAIR_NEARS = TARN__PAIR_OTHERS + TARN__PAIR * TARN__PAIR_STRIDE;
static const int TARN__PAIR_WEIGHTS = TARN__PAIR_NEARS + TARN__PAIR * TARN__PAIR_NEAR_STRIDE;
static const int TARN__PAIR_WORDS = TARN__PAIR_WEIGHTS + 2 * TARN__PAIR * TARN__PAIR;
static const int TARN__PAIR_FLOATS = TARN__PAIR_WORDS + TARN__PAIR * 4 * 4;

// Up to 32 rows, consecutive or in a list. `fp32`: of floats, though T is another type (parameters of one row).
template <typename T>
struct tarn__pair_rows {
  const T *data;  // NULL: none
  int64_t step;   // elements from row to row
  int64_t count;  // rows there are; those behind them are read as zeros
  bool fp32;
};

// Vectors of distances: row `n` from `table` on, or the nearest that there is, up to `reach` in both directions.
// `first` is the distance from the tile's first query to its first key.
template <typename T>
struct tarn__pair_near {
  const T *table;  // at distance 0; NULL: none
  int64_t reach, first;
  bool fp32;
};

static __device__ __forceinline__ int tarn__pair_lane() { return (int)threadIdx.x % TARN__WARP_SIZE; }
static __device__ __forceinline__ int tarn__pair_warp() { return (int)threadIdx.x / TARN__WARP_SIZE; }
// The tile's own row r, 0 to 3, of this warp.
static __device__ __forceinline__ int tarn__pair_own(int r) { return tarn__pair_warp() * TARN__PAIR_OWN + r; }

template <typename T>
static __device__ __forceinline__ float tarn__pair_get(const T *data, int64_t at, bool fp32) {
  return fp32 ? reinterpret_cast<const float *>(data)[at] : tarn__get(data[at]);
}

// Columns c0 to c0 + 31 of rows: to[row * step + column * across]. Every warp reads every eighth row.
template <typename T>
static __device__ __forceinline__ void tarn__pair_read(float *to, int step, int across, const tarn__pair_rows<T> &rows,
                                                       int64_t c0, int64_t width) {
  const int64_t c = c0 + tarn__pair_lane();
  for (int r = tarn__pair_warp(); r < TARN__PAIR; r += TARN__PAIR_THREADS / TARN__WARP_SIZE) {
    const bool is = r < rows.count && c < width;
    to[r * step + tarn__pair_lane() * across] = is ? tarn__pair_get(rows.data, r * rows.step + c, rows.fp32) : 0.0f;
  }
}

// The same of the vectors of distances from first - 31 to first + 32.
template <typename T>
static __device__ __forceinline__ void tarn__pair_read_near(float *to, int step, int across,
                                                            const tarn__pair_near<T> &near, int64_t c0, int64_t width) {
  const int64_t c = c0 + tarn__pair_lane();
  for (int i = tarn__pair_warp(); i < TARN__PAIR_NEAR; i += TARN__PAIR_THREADS / TARN__WARP_SIZE) {
    int64_t n = near.first + i - (TARN__PAIR - 1);
    n = n < -near.reach ? -near.reach : n > near.reach ? near.reach : n;
    to[i * step + tarn__pair_lane() * across] = c < width ? tarn__pair_get(near.table, n * width + c, near.fp32) : 0.0f;
  }
}

// What own rows are: queries, whose distance to the others grows with the others, or keys.
typedef enum tarn__pair_side { TARN__PAIR_QUERIES, TARN__PAIR_KEYS } tarn__pair_side;

// The vector of own row r and another row.
template <tarn__pair_side side>
static __device__ __forceinline__ int tarn__pair_distance(int own, int other) {
  return TARN__PAIR - 1 + (side == TARN__PAIR_QUERIES ? other - own : own - other);
}

// sums[r] += own row r times this lane's other row. The vector of the distance is first added to the key, the other row
// or, with side KEYS, the own. All threads of the block must take part.
template <tarn__pair_side side, typename T>
static __device__ __forceinline__ void tarn__pair_products(float (&sums)[TARN__PAIR_OWN], const tarn__pair_rows<T> &own,
                                                           const tarn__pair_rows<T> &others,
                                                           const tarn__pair_near<T> &near, int64_t width,
                                                           float *shared) {
  const int lane = tarn__pair_lane();
  float *a = shared, *b = shared + TARN__PAIR_OTHERS, *n = shared + TARN__PAIR_NEARS;
  for (int64_t c0 = 0; c0 < width; c0 += TARN__PAIR) {
    __syncthreads();
    tarn__pair_read(a, TARN__PAIR, 1, own, c0, width);
    tarn__pair_read(b, 1, TARN__PAIR_STRIDE, others, c0, width);
    if (near.table) tarn__pair_read_near(n, 1, TARN__PAIR_NEAR_STRIDE, near, c0, width);
    __syncthreads();
    for (int c = 0; c < TARN__PAIR; c++) {
      const float other = b[c * TARN__PAIR_STRIDE + lane];
      for (int r = 0; r < TARN__PAIR_OWN; r++) {
        const float x = a[tarn__pair_own(r) * TARN__PAIR + c];
        if (near.table) {
          const float vector = n[c * TARN__PAIR_NEAR_STRIDE + tarn__pair_distance<side>(tarn__pair_own(r), lane)];
          sums[r] += side == TARN__PAIR_QUERIES ? x * (other + vector) : other * (x + vector);
        } else {
          sums[r] += x * other;
        }
      }
    }
  }
}

// sums[chunk][r] += the sum over the other rows of the weight of own row r, times the other row, to which the vector of
// the distance is added: column c0 + 32 chunk + lane. weights [32, 32] of this warp's own rows are in shared memory, by
// its other lanes too (__syncwarp).
template <typename T>
static __device__ __forceinline__ void tarn__pair_sums(float (&sums)[TARN__PAIR_CHUNKS][TARN__PAIR_OWN],
                                                       const float *weights, const tarn__pair_rows<T> &others,
                                                       const tarn__pair_near<T> &near, int64_t c0, int64_t width,
                                                       float *shared) {
  const int lane = tarn__pair_lane();
  float *b = shared, *n = shared + TARN__PAIR_NEARS;
#pragma unroll
  for (int chunk = 0; chunk < TARN__PAIR_CHUNKS; chunk++) {
    const int64_t c = c0 + chunk * TARN__PAIR;
    if (c >= width) continue;  // so do all threads
    __syncthreads();
    tarn__pair_read(b, TARN__PAIR, 1, others, c, width);
    if (near.table) tarn__pair_read_near(n, TARN__PAIR, 1, near, c, width);
    __syncthreads();
    for (int j = 0; j < TARN__PAIR; j++) {
      const float other = b[j * TARN__PAIR + lane];
      for (int r = 0; r < TARN__PAIR_OWN; r++) {
        const int own = tarn__pair_own(r);
        const float vector = near.table ? n[tarn__pair_distance<TARN__PAIR_QUERIES>(own, j) * TARN__PAIR + lane] : 0.0f;
        sums[chunk][r] += weights[own * TARN__PAIR + j] * (other + vector);
      }
    }
  }
}

// Writes columns c0 + 32 chunk + lane of the warp's own rows, times a factor, as far as they are among `count`; adds to
// what is there if `add`.
template <typename T>
static __device__ __forceinline__ void tarn__pair_write(T *to, int64_t step, int64_t count,
                                                        const float (&sums)[TARN__PAIR_CHUNKS][TARN__PAIR_OWN],
                                                        int64_t c0, int64_t width, bool add) {
#pragma unroll
  for (int chunk = 0; chunk < TARN__PAIR_CHUNKS; chunk++)
    for (int r = 0; r < TARN__PAIR_OWN; r++) {
      const int64_t c = c0 + chunk * TARN__PAIR + tarn__pair_lane();
      T *at = to + tarn__pair_own(r) * step + c;
      if (tarn__pair_own(r) < count && c < width) tarn__set(at, add ? tarn__get(*at) + sums[chunk][r] : sums[chunk][r]);
    }
}

// The largest of a row's scores so far and the sums over the exponentials relative to it: of this lane's, until the
// end.
typedef struct tarn__pair_softmax {
  float most, sum;
} tarn__pair_softmax;

static __device__ __forceinline__ tarn__pair_softmax tarn__pair_softmax_begin() { return {-INFINITY, 0.0f}; }

// Takes in a score, -INFINITY if the pair does not exist, and returns its exponential; *factor: for all sums so far.
static __device__ __forceinline__ float tarn__pair_softmax_take(tarn__pair_softmax *s, float score, float *factor) {
  const float most = fmaxf(s->most, tarn__warp_max(score));
  *factor = s->most == -INFINITY ? 0.0f : expf(s->most - most);
  const float e = score == -INFINITY ? 0.0f : expf(score - most);
  s->most = most;
  s->sum = s->sum * *factor + e;
  return e;
}

#endif
