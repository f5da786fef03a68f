// Small dense products and transpositions of fp32 matrices in cache, for attention. Matrices have a given row stride;
// those that are read or written in whole vectors have rows padded to TARN__TILE_PAD floats.
#ifndef TARN_DEVICE_CPU_ISA_TILE_CPU_H
#define TARN_DEVICE_CPU_ISA_TILE_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "device/cpu/isa/vec_cpu.h"

// Padded lengths are a multiple of this on every instruction set.
enum { TARN__TILE_PAD = 16 };

// A tile of the product is ROWS rows times VECTORS registers of accumulators: 24 of 32 registers on AVX-512 and ARM.
#if defined(__AVX512F__) || defined(TARN_NEON) || defined(TARN_SVE)
enum { TARN__TILE_ROWS = 6, TARN__TILE_VECTORS = 4 };
#else
enum { TARN__TILE_ROWS = 6, TARN__TILE_VECTORS = 2 };
#endif

static inline int64_t tarn__tile_pad(int64_t n) { return (n + TARN__TILE_PAD - 1) / TARN__TILE_PAD * TARN__TILE_PAD; }

// One product C (+)= A B; see tarn__tile_product().
typedef struct tarn__tile_operands {
  float *c;
  const float *a, *b;
  int64_t c_row, a_row, a_step, b_row;
} tarn__tile_operands;

// Rows i .. i + rows - 1 and `vectors` registers of columns from column j on; rows and vectors are constants.
TARN__VEC_INLINE void tarn__tile_one(const tarn__tile_operands *t, int64_t i, int64_t j, int64_t k, int rows,
                                     int vectors, bool add) {
  tarn__vec sum[TARN__TILE_ROWS][TARN__TILE_VECTORS];
  const float *a = t->a + i * t->a_row, *b = t->b + j;
  float *c = t->c + i * t->c_row + j;
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
      sum[r][v] = add ? tarn__vec_load(c + r * t->c_row + v * TARN__VEC_LANES) : (tarn__vec){0};
  for (int64_t p = 0; p < k; p++) {
    tarn__vec row[TARN__TILE_VECTORS];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) row[v] = tarn__vec_load(b + v * TARN__VEC_LANES);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
      const float factor = a[r * t->a_row];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++) sum[r][v] = tarn__vec_axpy(factor, row[v], sum[r][v]);
    }
    a += t->a_step;
    b += t->b_row;
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) tarn__vec_store(c + r * t->c_row + v * TARN__VEC_LANES, sum[r][v]);
}

// All rows of `vectors` registers of columns.
TARN__VEC_INLINE void tarn__tile_columns(const tarn__tile_operands *t, int64_t j, int64_t m, int64_t k, int vectors,
                                         bool add) {
  int64_t i = 0;
  for (; i + TARN__TILE_ROWS <= m; i += TARN__TILE_ROWS) tarn__tile_one(t, i, j, k, TARN__TILE_ROWS, vectors, add);
  switch (m - i) {
    case 5:
      tarn__tile_one(t, i, j, k, 5, vectors, add);
      break;
    case 4:
      tarn__tile_one(t, i, j, k, 4, vectors, add);
      break;
    case 3:
      tarn__tile_one(t, i, j, k, 3, vectors, add);
      break;
    case 2:
      tarn__tile_one(t, i, j, k, 2, vectors, add);
      break;
    case 1:
      tarn__tile_one(t, i, j, k, 1, vectors, add);
      break;
    default:
      break;
  }
}

// C [m, n] = A [m, k] B [k, n], or C += A B. Element (i, p) of A is a[i * a_row + p * a_step], so A may be a transposed
// matrix; n is a multiple of TARN__TILE_PAD.
static __attribute__((noinline, unused)) void tarn__tile_product(const tarn__tile_operands *t, int64_t m, int64_t n,
                                                                 int64_t k, bool add) {
  int64_t j = 0;
  for (; j + TARN__TILE_VECTORS * TARN__VEC_LANES <= n; j += TARN__TILE_VECTORS * TARN__VEC_LANES)
    tarn__tile_columns(t, j, m, k, TARN__TILE_VECTORS, add);
#if defined(__AVX512F__) || defined(TARN_SVE)
  switch ((n - j) / TARN__VEC_LANES) {
#if TARN__VEC_LANES == 16
    case 3:
      tarn__tile_columns(t, j, m, k, 3, add);
      break;
    case 1:
      tarn__tile_columns(t, j, m, k, 1, add);
      break;
#endif
    case 2:
      tarn__tile_columns(t, j, m, k, 2, add);
      break;
    default:
      break;
  }
#endif
}

// {a0, b0, a1, b1, ...} of the lower and of the upper halves of two registers.
#if TARN__VEC_LANES == 16
#define TARN__TILE_LOW(a, b) \
  TARN__VEC_SHUFFLE(tarn__vec_int, a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define TARN__TILE_HIGH(a, b) \
  TARN__VEC_SHUFFLE(tarn__vec_int, a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif TARN__VEC_LANES == 8
#define TARN__TILE_LOW(a, b) TARN__VEC_SHUFFLE(tarn__vec_int, a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define TARN__TILE_HIGH(a, b) TARN__VEC_SHUFFLE(tarn__vec_int, a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#else
#define TARN__TILE_LOW(a, b) TARN__VEC_SHUFFLE(tarn__vec_int, a, b, 0, 4, 1, 5)
#define TARN__TILE_HIGH(a, b) TARN__VEC_SHUFFLE(tarn__vec_int, a, b, 2, 6, 3, 7)
#endif

// out[c][r] = in[r][c] for one square of LANES rows and columns: interleaving row i with row i + LANES / 2, log2(LANES)
// times, transposes.
TARN__VEC_INLINE void tarn__tile_transpose_square(float *out, int64_t out_row, const float *in, int64_t in_row) {
  enum { N = TARN__VEC_LANES };
  tarn__vec x[N], y[N];
#pragma GCC unroll 16
  for (int i = 0; i < N; i++) x[i] = tarn__vec_load(in + i * in_row);
#pragma GCC unroll 4
  for (int stage = 1; stage < N; stage *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < N / 2; i++) {
      y[2 * i] = TARN__TILE_LOW(x[i], x[i + N / 2]);
      y[2 * i + 1] = TARN__TILE_HIGH(x[i], x[i + N / 2]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < N; i++) x[i] = y[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < N; i++) tarn__vec_store(out + i * out_row, x[i]);
}

// out[c][r] = in[r][c] for rows and cols that are multiples of TARN__TILE_PAD.
static inline void tarn__tile_transpose(float *out, int64_t out_row, const float *in, int64_t in_row, int64_t rows,
                                        int64_t cols) {
  for (int64_t r = 0; r < rows; r += TARN__VEC_LANES)
    for (int64_t c = 0; c < cols; c += TARN__VEC_LANES)
      tarn__tile_transpose_square(out + c * out_row + r, out_row, in + r * in_row + c, in_row);
}

#endif
