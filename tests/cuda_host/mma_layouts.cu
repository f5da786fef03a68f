// Products of fragments against plain products: what device/cuda/mma.h says of layouts, of loads from shared memory and
// of asynchronous copies. With two registers of a fragment exchanged, the results must differ.
//
// On a card: nvcc -std=c++20 -arch=native -D_GNU_SOURCE -Isrc -Iinclude tests/cuda_host/mma_layouts.cu && ./a.out
#include "device/cuda/mma.h"

#include <stdio.h>
#include <stdlib.h>

tarn_status tarn__cuda_fail(cudaError_t error, const char *what) {
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}
tarn_status tarn__cuda_fits(size_t) { return TARN_STATUS_OK; }

enum { N = 16, PITCH = N + 8, RESULTS = 3 };  // matrices are [N, N]

enum exchange { NOTHING, LEFT_HALVES, LEFT_ROWS, RIGHT_HALVES, RIGHT_COLUMNS, EXCHANGES };

static __device__ void exchange_registers(uint32_t *x, uint32_t *y) {
  const uint32_t kept = *x;
  *x = *y;
  *y = kept;
}

static __device__ void store(float *to, const float left[4], const float right[4]) {
  const int g = (int)threadIdx.x / 4, t = (int)threadIdx.x % 4;
  for (int e = 0; e < 4; e++) {
    to[(g + 8 * (e / 2)) * N + 2 * t + e % 2] = left[e];
    to[(g + 8 * (e / 2)) * N + 8 + 2 * t + e % 2] = right[e];
  }
}

// d [2][4] = a b with registers exchanged.
static __device__ void multiply(float d[2][4], const uint32_t left[4], const uint32_t right[4], exchange which) {
  uint32_t a[4], b[4];
  for (int i = 0; i < 4; i++) {
    a[i] = left[i];
    b[i] = right[i];
    d[0][i] = d[1][i] = 0.0f;
  }
  if (which == LEFT_HALVES) exchange_registers(&a[1], &a[2]);
  if (which == LEFT_ROWS) exchange_registers(&a[0], &a[1]);
  if (which == RIGHT_HALVES) exchange_registers(&b[0], &b[1]);
  if (which == RIGHT_COLUMNS) exchange_registers(&b[1], &b[2]);
  tarn__mma(d[0], a, b);
  tarn__mma(d[1], a, b + 2);
}

// results: x y, x y^T, and (x y) y. The last `cut` columns of x, which are 8 a copy, are copied as 0.
static __global__ void layouts_kernel(float *results, const tarn__bf16 *x, const tarn__bf16 *y, exchange which,
                                      int cut) {
  TARN__SHARED(tarn__bf16, left);
  tarn__bf16 *const right = left + N * PITCH;
  const int row = (int)threadIdx.x / 2, column = (int)threadIdx.x % 2 * 8;
  tarn__copy_async16(left + row * PITCH + column, x + row * N + column, column ? 16 - 2 * cut : 16);
  tarn__copy_commit();
  tarn__copy_async16(right + row * PITCH + column, y + row * N + column, 16);
  tarn__copy_commit();
  tarn__copy_wait<1>();
  __syncwarp();
  uint32_t a[4], b[4], next[4];
  float d[2][4];
  tarn__mma_load_a(a, left, PITCH);
  tarn__copy_wait<0>();
  __syncwarp();
  tarn__mma_load_b(b, right, PITCH);
  multiply(d, a, b, which);
  store(results, d[0], d[1]);
  tarn__mma_next(next, d[0], d[1]);
  multiply(d, next, b, which);
  store(results + 2 * N * N, d[0], d[1]);
  tarn__mma_load_bt(b, right, PITCH);
  multiply(d, a, b, which);
  store(results + N * N, d[0], d[1]);
}

static tarn_status run(float *results, const tarn__bf16 *x, const tarn__bf16 *y, exchange which, int cut) {
  TARN__LAUNCH(layouts_kernel, 1, 32, 2 * N * PITCH * sizeof(tarn__bf16), (cudaStream_t)0, results, x, y, which, cut);
  TARN__CUDA(cudaDeviceSynchronize(), "running a kernel");
  return TARN_STATUS_OK;
}

static void product(float *z, const float *x, const float *y, bool transpose) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      z[i * N + j] = 0.0f;
      for (int k = 0; k < N; k++) z[i * N + j] += x[i * N + k] * (transpose ? y[j * N + k] : y[k * N + j]);
    }
}

int main() {
  tarn__bf16 *x, *y;
  float *results, numbers[2][N * N], expected[RESULTS][N * N];
  int failures = 0;
  if (cudaMallocManaged((void **)&x, N * N * sizeof *x) || cudaMallocManaged((void **)&y, N * N * sizeof *y) ||
      cudaMallocManaged((void **)&results, RESULTS * N * N * sizeof *results))
    return 1;
  for (int which = 0; which < EXCHANGES; which++)
    for (int cut = 0; cut <= 8; cut += 8) {
      for (int i = 0; i < N * N; i++) {  // whole numbers, whose products are exact in both types
        numbers[0][i] = (float)(i * 7 % 5 - 2 + i / N % 3);
        numbers[1][i] = (float)(i * 11 % 7 - 3 - i % N % 2);
        x[i] = __float2bfloat16_rn(numbers[0][i]);
        y[i] = __float2bfloat16_rn(numbers[1][i]);
        if (i % N >= N - cut) numbers[0][i] = 0.0f;
      }
      product(expected[0], numbers[0], numbers[1], false);
      product(expected[1], numbers[0], numbers[1], true);
      product(expected[2], expected[0], numbers[1], false);
      if (run(results, x, y, (exchange)which, cut) != TARN_STATUS_OK) return 1;
      for (int r = 0; r < RESULTS; r++) {
        int wrong = 0;
        for (int i = 0; i < N * N; i++) wrong += !(results[r * N * N + i] == expected[r][i]);
        if ((wrong == 0) == (which == NOTHING)) continue;
        printf("exchange %d, cut %d, product %d: %d elements differ\n", which, cut, r, wrong);
        failures++;
      }
    }
  cudaFree(x);
  cudaFree(y);
  cudaFree(results);
  printf("%s\n", failures ? "FAILED" : "layouts are as documented");
  return failures != 0;
}
