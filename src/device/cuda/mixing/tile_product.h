// A tile of a product C = A B for products that no library has: of ragged sentences, or with factors that are computed
// where they are read. A block of 256 threads has 64 rows and 64 columns of C, each thread 4 of each.
#ifndef TARN_DEVICE_CUDA_MIXING_TILE_PRODUCT_H
#define TARN_DEVICE_CUDA_MIXING_TILE_PRODUCT_H

#include "device/cuda/cuda_kernels.h"

static const int TARN__TILE_SIDE = 64, TARN__TILE_TERMS = 16, TARN__TILE_STRIDE = TARN__TILE_SIDE + 4,
                 TARN__TILE_SIDE_THREADS = 256;
static const int TARN__TILE_FLOATS = 2 * TARN__TILE_TERMS * TARN__TILE_STRIDE;

// Copies `count` rows or columns of a factor, 16 terms of each, to shared memory: to[term][which]. `next` tells whether
// neighbours in memory are terms or rows, for coalesced reads; elements beyond the factor are 0.
template <bool terms_next, typename F>
static __device__ __forceinline__ void tarn__tile_read(float *to, const F &factor, int64_t first, int64_t count,
                                                       int64_t first_term, int64_t terms) {
  for (int i = (int)threadIdx.x; i < TARN__TILE_SIDE * TARN__TILE_TERMS; i += TARN__TILE_SIDE_THREADS) {
    const int which = terms_next ? i / TARN__TILE_TERMS : i % TARN__TILE_SIDE;
    const int term = terms_next ? i % TARN__TILE_TERMS : i / TARN__TILE_SIDE;
    const bool is = first + which < count && first_term + term < terms;
    to[term * TARN__TILE_STRIDE + which] = is ? factor(first + which, first_term + term) : 0.0f;
  }
}

// sums[i][j] = row first_row + tarn__tile_row(i) of A times column first_column + tarn__tile_column(j) of B. a(row,
// term) and b(column, term) are read once per tile. shared: TARN__TILE_FLOATS; all threads must take part.
template <bool a_terms_next, bool b_terms_next, typename A, typename B>
static __device__ __forceinline__ void tarn__tile_product(float (&sums)[4][4], const A &a, const B &b,
                                                          int64_t first_row, int64_t rows, int64_t first_column,
                                                          int64_t columns, int64_t terms, float *shared) {
  float *of_a = shared, *of_b = shared + TARN__TILE_TERMS * TARN__TILE_STRIDE;
  const int row = (int)threadIdx.x / 16 * 4, column = (int)threadIdx.x % 16 * 4;
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) sums[i][j] = 0.0f;
  for (int64_t k = 0; k < terms; k += TARN__TILE_TERMS) {
    __syncthreads();
    tarn__tile_read<a_terms_next>(of_a, a, first_row, rows, k, terms);
    tarn__tile_read<b_terms_next>(of_b, b, first_column, columns, k, terms);
    __syncthreads();
    for (int t = 0; t < TARN__TILE_TERMS; t++) {
      const float4 x = *reinterpret_cast<const float4 *>(of_a + t * TARN__TILE_STRIDE + row);
      const float4 y = *reinterpret_cast<const float4 *>(of_b + t * TARN__TILE_STRIDE + column);
      const float left[4] = {x.x, x.y, x.z, x.w}, right[4] = {y.x, y.y, y.z, y.w};
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) sums[i][j] += left[i] * right[j];
    }
  }
}

static __device__ __forceinline__ int tarn__tile_row(int i) { return (int)threadIdx.x / 16 * 4 + i; }
static __device__ __forceinline__ int tarn__tile_column(int j) { return (int)threadIdx.x % 16 * 4 + j; }

#endif
