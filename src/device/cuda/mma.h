// Tensor cores and asynchronous copies, by instructions of sm_80: products of bf16 fragments with sums in fp32
// (mma.m16n8k16), the loads that make fragments of shared memory (ldmatrix), and copies from global to shared memory
// that pass by the registers (cp.async).
//
// A fragment is a matrix that is spread over the lanes of a warp. With g = lane / 4 and t = lane % 4, and two elements
// of adjacent columns (rows, for b) in one register, the lower one in its low half (PTX ISA, "Matrix Fragments for
// mma.m16n8k16 with floating point type"):
//
//   a [16, 16]  a[0]: row g,     columns 2 t, 2 t + 1       a[2]: row g,     columns 2 t + 8, 2 t + 9
//               a[1]: row g + 8, columns 2 t, 2 t + 1       a[3]: row g + 8, columns 2 t + 8, 2 t + 9
//   b [16, 8]   b[0]: rows 2 t, 2 t + 1, column g           b[1]: rows 2 t + 8, 2 t + 9, column g
//   d [16, 8]   d[0], d[1]: row g, columns 2 t, 2 t + 1     d[2], d[3]: row g + 8, columns 2 t, 2 t + 1
//
// So the d of two products, of columns 0 .. 7 and 8 .. 15, is the a of the next one: tarn__mma_next().
//
// All lanes of a warp take part in each call. tests/cuda_host/mma_layouts.cu compares the layouts with plain
// products, on the host and on a card.
#ifndef TARN_DEVICE_CUDA_MMA_H
#define TARN_DEVICE_CUDA_MMA_H

#include "device/cuda/cuda.h"

// Two numbers in bf16 as one register, `low` in its low half.
static __device__ __forceinline__ uint32_t tarn__pair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}
static __device__ __forceinline__ float tarn__pair_low(uint32_t pair) { return __uint_as_float(pair << 16); }
static __device__ __forceinline__ float tarn__pair_high(uint32_t pair) { return __uint_as_float(pair & 0xFFFF0000u); }

// The a of a product from the d of two: columns 0 .. 7 and columns 8 .. 15.
static __device__ __forceinline__ void tarn__mma_next(uint32_t a[4], const float left[4], const float right[4]) {
  a[0] = tarn__pair(left[0], left[1]);
  a[1] = tarn__pair(left[2], left[3]);
  a[2] = tarn__pair(right[0], right[1]);
  a[3] = tarn__pair(right[2], right[3]);
}

#if defined(TARN_CUDA_HOST)

// d += a b.
static inline void tarn__mma(float d[4], const uint32_t a[4], const uint32_t b[2]) {
  struct given {
    uint32_t a[4], b[2];
  } mine;
  memcpy(mine.a, a, sizeof mine.a);
  memcpy(mine.b, b, sizeof mine.b);
  const unsigned char *all = tarn__host_exchange(TARN__WARP, &mine, sizeof mine);
  const unsigned lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  float rows[2][16], columns[2][16];  // of a: g and g + 8; of b: 2 t and 2 t + 1
  for (unsigned k = 0; k < 16; k += 2)
    for (unsigned i = 0; i < 2; i++) {
      uint32_t x, y;
      memcpy(&x, all + 64 * (4 * g + k % 8 / 2) + 4 * (i + 2 * (k / 8)), sizeof x);
      memcpy(&y, all + 64 * (4 * (2 * t + i) + k % 8 / 2) + sizeof mine.a + 4 * (k / 8), sizeof y);
      rows[i][k] = tarn__pair_low(x), rows[i][k + 1] = tarn__pair_high(x);
      columns[i][k] = tarn__pair_low(y), columns[i][k + 1] = tarn__pair_high(y);
    }
  for (unsigned k = 0; k < 16; k++)
    for (unsigned i = 0; i < 4; i++) d[i] += rows[i / 2][k] * columns[i % 2][k];
}

// Four matrices of [8, 8] elements in shared memory. Lane l gives the address of row l % 8 of matrix l / 8, a multiple
// of 16 bytes. r[i]: row g, columns 2 t and 2 t + 1 of matrix i.
static inline void tarn__load_matrices(uint32_t r[4], const tarn__bf16 *row) {
  uint32_t mine[4];
  memcpy(mine, row, sizeof mine);
  const unsigned char *all = tarn__host_exchange(TARN__WARP, mine, sizeof mine);
  const unsigned lane = threadIdx.x % 32;
  for (unsigned i = 0; i < 4; i++) memcpy(&r[i], all + 64 * (8 * i + lane / 4) + 4 * (lane % 4), 4);
}

// The same, transposed. r[i]: rows 2 t and 2 t + 1, column g of matrix i.
static inline void tarn__load_matrices_transposed(uint32_t r[4], const tarn__bf16 *row) {
  uint32_t mine[4];
  memcpy(mine, row, sizeof mine);
  const unsigned char *all = tarn__host_exchange(TARN__WARP, mine, sizeof mine);
  const unsigned lane = threadIdx.x % 32;
  for (unsigned i = 0; i < 4; i++) {
    uint16_t low, high;
    memcpy(&low, all + 64 * (8 * i + 2 * (lane % 4)) + 2 * (lane / 4), 2);
    memcpy(&high, all + 64 * (8 * i + 2 * (lane % 4) + 1) + 2 * (lane / 4), 2);
    r[i] = low | (uint32_t)high << 16;
  }
}

// Begins a copy of `bytes` of 16 (of 4) bytes from global to shared memory; the others become 0. Both addresses are
// multiples of 16 (4); with 0 bytes `from` is any address of that kind.
static inline void tarn__copy_async16(void *to, const void *from, int bytes) {
  tarn__host_copy(to, from, 16, (size_t)bytes);
}
static inline void tarn__copy_async4(void *to, const void *from, int bytes) {
  tarn__host_copy(to, from, 4, (size_t)bytes);
}
// Ends a group of copies of this thread.
static inline void tarn__copy_commit() { tarn__host_copy_commit(); }
// Waits for all groups of this thread but the last LEFT. Other threads see what has arrived after a barrier.
template <int LEFT>
static inline void tarn__copy_wait() {
  tarn__host_copy_wait(LEFT);
}

// 2^x with about 22 bits; results below 2^-126 are 0.
static inline float tarn__exp2(float x) { return x < -126.0f ? 0.0f : exp2f(x); }

#else

static __device__ __forceinline__ void tarn__mma(float d[4], const uint32_t a[4], const uint32_t b[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

static __device__ __forceinline__ void tarn__load_matrices(uint32_t r[4], const tarn__bf16 *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"((uint32_t)__cvta_generic_to_shared(row)));
}

static __device__ __forceinline__ void tarn__load_matrices_transposed(uint32_t r[4], const tarn__bf16 *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"((uint32_t)__cvta_generic_to_shared(row)));
}

static __device__ __forceinline__ void tarn__copy_async16(void *to, const void *from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes)
               : "memory");
}
static __device__ __forceinline__ void tarn__copy_async4(void *to, const void *from, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :
               : "r"((uint32_t)__cvta_generic_to_shared(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes)
               : "memory");
}
static __device__ __forceinline__ void tarn__copy_commit() { asm volatile("cp.async.commit_group;" : : : "memory"); }
template <int LEFT>
static __device__ __forceinline__ void tarn__copy_wait() {
  asm volatile("cp.async.wait_group %0;" : : "n"(LEFT) : "memory");
}

static __device__ __forceinline__ float tarn__exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

#endif

// --- fragments of row-major matrices in shared memory with `pitch` elements a row. If pitch / 8 is odd, no two lanes
// meet in a bank.

// a: the first 16 rows and columns.
static __device__ __forceinline__ void tarn__mma_load_a(uint32_t a[4], const tarn__bf16 *from, int pitch) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  tarn__load_matrices(a, from + lane % 16 * pitch + lane / 16 * 8);
}
// Two b, of columns 0 .. 7 (b[0], b[1]) and 8 .. 15 (b[2], b[3]), of the transpose of the first 16 rows and columns:
// column n of b is row n of the matrix.
static __device__ __forceinline__ void tarn__mma_load_bt(uint32_t b[4], const tarn__bf16 *from, int pitch) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  tarn__load_matrices(b, from + (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 8);
}
// Two b, of columns 0 .. 7 and 8 .. 15 of the matrix itself.
static __device__ __forceinline__ void tarn__mma_load_b(uint32_t b[4], const tarn__bf16 *from, int pitch) {
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  tarn__load_matrices_transposed(b, from + lane % 16 * pitch + lane / 16 * 8);
}

#endif
