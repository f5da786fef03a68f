// Products within a kernel, for those whose shapes are only known on the card or differ from piece to piece: groups of
// rows, sentences. A block of 128 threads adds to one tile [64, 64] of C = op(A) op(B): bf16 on tensor cores, fp32 in
// fp32 with sums in the order of the terms. Each element of a tile is summed in the same way wherever the tile lies.
#ifndef TARN_DEVICE_CUDA_PRODUCTS_TILE_CUDA_H
#define TARN_DEVICE_CUDA_PRODUCTS_TILE_CUDA_H

#include "device/cuda/mma.h"
#include "device/cuda/products/vector_cuda.h"

enum { TARN__TILE = 64, TARN__TILE_THREADS = 128 };

// What is 0 of a factor A, by its place (i, l).
typedef enum tarn__tile_mask { TARN__TILE_ALL, TARN__TILE_LOWER, TARN__TILE_UPPER } tarn__tile_mask;

// A factor: 64 lines from line `first` on of those below `lines`, each of `terms` terms. Terms are adjacent in memory
// (`along`), with `ld` elements from line to line; or lines are, with `ld` elements from term to term.
template <typename T>
struct tarn__tile_factor {
  const T *data;
  int64_t ld, first, lines, terms;
  tarn__tile_mask mask;
};

// Terms of a step, and elements of a line of shared memory.
template <typename T>
struct tarn__tile_shape;
template <>
struct tarn__tile_shape<tarn__bf16> {
  enum { STEP = 32, LINE = STEP + 8, ELEMENTS = TARN__TILE * LINE };  // [line][term]
};
template <>
struct tarn__tile_shape<float> {
  enum { STEP = 16, LINE = TARN__TILE + 4, ELEMENTS = STEP * LINE };  // [term][line]
};

// Shared memory of a kernel: two steps of two factors.
template <typename T>
constexpr size_t TARN__TILE_BYTES = 4 * tarn__tile_shape<T>::ELEMENTS * sizeof(T);

template <typename T>
static __device__ __forceinline__ bool tarn__tile_has(const tarn__tile_factor<T> &f, int64_t line, int64_t term) {
  if (line >= f.lines || term >= f.terms) return false;
  return f.mask == TARN__TILE_ALL || (f.mask == TARN__TILE_LOWER ? term <= line : term >= line);
}

// N elements from (line, term) on, along terms or along lines; 0 for what is not there.
template <bool ALONG, typename T>
static __device__ __forceinline__ tarn__elements<T, TARN__WIDE<T>> tarn__tile_load(const tarn__tile_factor<T> &f,
                                                                                   int64_t line, int64_t term) {
  constexpr int N = TARN__WIDE<T>;
  const T *from = f.data + (ALONG ? line * f.ld + term : term * f.ld + line);
  const int64_t left = ALONG ? f.terms - term : f.lines - line;
  if (f.mask == TARN__TILE_ALL && (ALONG ? line < f.lines : term < f.terms) && left >= N &&
      ((uintptr_t)from & 15u) == 0)
    return *reinterpret_cast<const tarn__elements<T, N> *>(from);
  tarn__elements<T, N> all;
#pragma unroll
  for (int i = 0; i < N; i++) {
    const bool there = ALONG ? tarn__tile_has(f, line, term + i) : tarn__tile_has(f, line + i, term);
    if (there)
      all.x[i] = from[i];
    else
      tarn__set(all.x + i, 0.0f);
  }
  return all;
}

// A thread's part of a step of a factor, on its way from memory to shared memory: two pieces of 16 bytes.
template <bool ALONG, typename T>
struct tarn__tile_part {
  tarn__elements<T, TARN__WIDE<T>> piece[2];
};

template <bool ALONG>
static __device__ __forceinline__ void tarn__tile_fetch(tarn__tile_part<ALONG, tarn__bf16> &part,
                                                        const tarn__tile_factor<tarn__bf16> &f, int64_t term) {
  const int t = (int)threadIdx.x;
#pragma unroll
  for (int q = 0; q < 2; q++) {
    if constexpr (ALONG)  // 4 pieces a line
      part.piece[q] = tarn__tile_load<true>(f, f.first + t / 4 + 32 * q, term + t % 4 * 8);
    else  // two adjacent terms of 8 lines
      part.piece[q] = tarn__tile_load<false>(f, f.first + t / 16 * 8, term + t % 16 * 2 + q);
  }
}

template <bool ALONG>
static __device__ __forceinline__ void tarn__tile_store(tarn__bf16 *shared,
                                                        const tarn__tile_part<ALONG, tarn__bf16> &part) {
  constexpr int LINE = tarn__tile_shape<tarn__bf16>::LINE;
  const int t = (int)threadIdx.x;
  if constexpr (ALONG) {
#pragma unroll
    for (int q = 0; q < 2; q++)
      *reinterpret_cast<tarn__elements<tarn__bf16, 8> *>(shared + (t / 4 + 32 * q) * LINE + t % 4 * 8) = part.piece[q];
  } else {
#pragma unroll
    for (int i = 0; i < 8; i++)
      *reinterpret_cast<tarn__elements<tarn__bf16, 2> *>(shared + (t / 16 * 8 + i) * LINE +
                                                         t % 16 * 2) = {{part.piece[0].x[i], part.piece[1].x[i]}};
  }
}

template <bool ALONG>
static __device__ __forceinline__ void tarn__tile_fetch(tarn__tile_part<ALONG, float> &part,
                                                        const tarn__tile_factor<float> &f, int64_t term) {
  const int t = (int)threadIdx.x;
#pragma unroll
  for (int q = 0; q < 2; q++) {
    if constexpr (ALONG)  // 4 pieces a line
      part.piece[q] = tarn__tile_load<true>(f, f.first + t / 4 + 32 * q, term + t % 4 * 4);
    else  // 16 pieces a term
      part.piece[q] = tarn__tile_load<false>(f, f.first + t % 16 * 4, term + t / 16 + 8 * q);
  }
}

template <bool ALONG>
static __device__ __forceinline__ void tarn__tile_store(float *shared, const tarn__tile_part<ALONG, float> &part) {
  constexpr int LINE = tarn__tile_shape<float>::LINE;
  const int t = (int)threadIdx.x;
#pragma unroll
  for (int q = 0; q < 2; q++) {
    if constexpr (ALONG) {
#pragma unroll
      for (int i = 0; i < 4; i++) shared[(t % 4 * 4 + i) * LINE + t / 4 + 32 * q] = part.piece[q].x[i];
    } else {
      *reinterpret_cast<tarn__elements<float, 4> *>(shared + (t / 16 + 8 * q) * LINE + t % 16 * 4) = part.piece[q];
    }
  }
}

// The sums of a thread. Of bf16 a warp has [32, 32] of the tile, in fragments of tarn__mma(); of fp32 a thread has
// [8, 4].
template <typename T>
struct tarn__tile_sums {
  float x[32];
};

static __device__ __forceinline__ unsigned tarn__tile_pair(const tarn__bf16 *at) {
  return *reinterpret_cast<const unsigned *>(at);
}

static __device__ __forceinline__ void tarn__tile_step(tarn__tile_sums<tarn__bf16> &sums, const tarn__bf16 *a,
                                                       const tarn__bf16 *b) {
  constexpr int LINE = tarn__tile_shape<tarn__bf16>::LINE;
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  a += (warp / 2 * 32 + lane / 4) * LINE + lane % 4 * 2;
  b += (warp % 2 * 32 + lane / 4) * LINE + lane % 4 * 2;
#pragma unroll
  for (int k = 0; k < tarn__tile_shape<tarn__bf16>::STEP; k += 16) {
    unsigned rows[2][4], columns[4][2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      rows[i][0] = tarn__tile_pair(a + i * 16 * LINE + k);
      rows[i][1] = tarn__tile_pair(a + (i * 16 + 8) * LINE + k);
      rows[i][2] = tarn__tile_pair(a + i * 16 * LINE + k + 8);
      rows[i][3] = tarn__tile_pair(a + (i * 16 + 8) * LINE + k + 8);
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
      columns[j][0] = tarn__tile_pair(b + j * 8 * LINE + k);
      columns[j][1] = tarn__tile_pair(b + j * 8 * LINE + k + 8);
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) tarn__mma(sums.x + (i * 4 + j) * 4, rows[i], columns[j]);
  }
}

static __device__ __forceinline__ void tarn__tile_step(tarn__tile_sums<float> &sums, const float *a, const float *b) {
  constexpr int LINE = tarn__tile_shape<float>::LINE;
  const int row = (int)threadIdx.x / 16 * 8, column = (int)threadIdx.x % 16 * 4;
#pragma unroll 4
  for (int k = 0; k < tarn__tile_shape<float>::STEP; k++) {
    float rows[8], columns[4];
    tarn__read<4>(rows, a + k * LINE + row);
    tarn__read<4>(rows + 4, a + k * LINE + row + 4);
    tarn__read<4>(columns, b + k * LINE + column);
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) sums.x[i * 4 + j] = fmaf(rows[i], columns[j], sums.x[i * 4 + j]);
  }
}

// sums += the products of terms `from` to a.terms - 1; a.terms is b.terms. ALONG_A and ALONG_B say how the factors lie
// in memory. All threads of the block call it; `shared` has TARN__TILE_BYTES and is free again on return.
template <bool ALONG_A, bool ALONG_B, typename T>
static __device__ __forceinline__ void tarn__tile_add(tarn__tile_sums<T> &sums, const tarn__tile_factor<T> &a,
                                                      const tarn__tile_factor<T> &b, int64_t from, T *shared) {
  constexpr int STEP = tarn__tile_shape<T>::STEP, ELEMENTS = tarn__tile_shape<T>::ELEMENTS;
  tarn__tile_part<ALONG_A, T> part_a;
  tarn__tile_part<ALONG_B, T> part_b;
  if (from >= a.terms) return;
  tarn__tile_fetch(part_a, a, from);
  tarn__tile_fetch(part_b, b, from);
  int half = 0;
  for (int64_t term = from; term < a.terms; term += STEP) {
    T *now = shared + half * 2 * ELEMENTS;
    tarn__tile_store(now, part_a);
    tarn__tile_store(now + ELEMENTS, part_b);
    // The other half may still be read; it is written after the next barrier, when all have read it.
    __syncthreads();
    if (term + STEP < a.terms) {
      tarn__tile_fetch(part_a, a, term + STEP);
      tarn__tile_fetch(part_b, b, term + STEP);
    }
    tarn__tile_step(sums, now, now + ELEMENTS);
    half ^= 1;
  }
  __syncthreads();
}

// Calls with(row, column, sum) for each of the thread's sums, by place in the tile.
template <typename With>
static __device__ __forceinline__ void tarn__tile_each(const tarn__tile_sums<tarn__bf16> &sums, With with) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE, warp = (int)threadIdx.x / TARN__WARP_SIZE;
  const int row = warp / 2 * 32 + lane / 4, column = warp % 2 * 32 + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) with(row + i * 16 + e / 2 * 8, column + j * 8 + e % 2, sums.x[(i * 4 + j) * 4 + e]);
}

template <typename With>
static __device__ __forceinline__ void tarn__tile_each(const tarn__tile_sums<float> &sums, With with) {
  const int row = (int)threadIdx.x / 16 * 8, column = (int)threadIdx.x % 16 * 4;
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) with(row + i, column + j, sums.x[i * 4 + j]);
}

#endif
