// Measures what a card can do at most: bytes that it copies within its memory, and operations of large matrix products
// on random numbers in bf16, TF32 and fp32, by cuBLAS, which is looked for at run time.
//   cuda_ceilings [--small]
// Prints one object of JSON; a rate that could not be measured is null, and "why" says the reason. Rates are medians.
// Compiled for the host (tests/cuda_host) it has no products, and its figures say nothing.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace {

const char *why = "";  // the first reason why something was not measured

bool ok(cudaError_t error, const char *what) {
  static char text[256];
  if (error == cudaSuccess) return true;
  if (!*why) {
    snprintf(text, sizeof text, "%s: %s", what, cudaGetErrorString(error));
    why = text;
  }
  return false;
}

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Median seconds of one of `calls` calls that are queued together, after a warm-up; 0 after a failure. The clock is the
// host's: a group takes long enough for that.
template <typename F>
double time_of(F call, int calls) {
  enum { GROUPS = 9 };
  std::vector<double> times;
  for (int group = 0; group < GROUPS + 1; group++) {
    const double begin = seconds();
    for (int i = 0; i < calls; i++)
      if (!call()) return 0;
    if (!ok(cudaDeviceSynchronize(), "waiting for the card")) return 0;
    if (group > 0) times.push_back((seconds() - begin) / calls);
  }
  std::sort(times.begin(), times.end());
  return times[GROUPS / 2];
}

// Numbers in (-1, 1) that differ, so that the card draws the power that real numbers cost it.
template <typename T>
__global__ void fill_kernel(T *to, int64_t n, uint32_t seed) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  uint32_t x = (uint32_t)i * 2654435761u + seed;
  x ^= x >> 16, x *= 0x85EBCA6Bu, x ^= x >> 13, x *= 0xC2B2AE35u, x ^= x >> 16;
  const float value = (float)(int32_t)x * (1.0f / 2147483648.0f);
  if constexpr (sizeof(T) == 2)
    to[i] = __float2bfloat16_rn(value);
  else
    to[i] = value;
}

#if defined(TARN_CUDA_HOST)
#define LAUNCH(kernel, blocks, threads, ...) \
  tarn__host_launch((const void *)&kernel, (blocks), (threads), 0, nullptr, tarn__host_bind(kernel, __VA_ARGS__))
#else
// clang-format off
#define LAUNCH(kernel, blocks, threads, ...) ((kernel)<<<(blocks), (threads)>>>(__VA_ARGS__), cudaGetLastError())
// clang-format on
#endif

template <typename T>
void fill(T *to, int64_t n, uint32_t seed) {
  ok(LAUNCH(fill_kernel<T>, (unsigned)((n + 255) / 256), 256, to, n, seed), "launching a kernel");
}

// Bytes read and written a second; 0: not measured.
double copy_rate(size_t bytes, int calls) {
  void *from = nullptr, *to = nullptr;
  double rate = 0;
  if (ok(cudaMalloc(&from, bytes), "memory to copy") && ok(cudaMalloc(&to, bytes), "memory to copy")) {
    fill((float *)from, (int64_t)(bytes / sizeof(float)), 1);
    const double time = time_of(
        [&] { return ok(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, nullptr), "copying"); }, calls);
    if (time > 0) rate = 2.0 * (double)bytes / time;
  }
  cudaFree(from);
  cudaFree(to);
  return rate;
}

// The part of cuBLAS's interface (cublas_v2.h of CUDA 12 and 13) that is called, so that no header is needed.
enum {
  CUBLAS_R_32F = 0,
  CUBLAS_R_16BF = 14,
  CUBLAS_32F = 68,
  CUBLAS_TF32 = 77,
  CUBLAS_AS_IT_IS = 0,
  CUBLAS_DEFAULT = -1
};
typedef int (*cublas_create)(void **handle);
typedef int (*cublas_product)(void *handle, int transpose_a, int transpose_b, int m, int n, int k, const void *alpha,
                              const void *a, int a_type, int lda, const void *b, int b_type, int ldb, const void *beta,
                              void *c, int c_type, int ldc, int compute, int algorithm);

struct library {
  cublas_product product;
  void *handle;
};

bool open_library(library *opened) {
#if defined(TARN_CUDA_HOST)
  why = *why ? why : "no products on the host";
  return false;
#endif
  static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
  void *found = nullptr;
  for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++) found = dlopen(names[i], RTLD_NOW);
  cublas_create create = found ? (cublas_create)dlsym(found, "cublasCreate_v2") : nullptr;
  opened->product = found ? (cublas_product)dlsym(found, "cublasGemmEx") : nullptr;
  if (create && opened->product && create(&opened->handle) == 0) return true;
  if (!*why) why = found ? "cuBLAS does not start" : "no libcublas.so.13 or .12: LD_LIBRARY_PATH";
  return false;
}

// Operations a second of a product of two square matrices; 0: not measured.
template <typename T>
double product_rate(const library *blas, int side, int type, int compute, int calls) {
  const int64_t n = (int64_t)side * side;
  const float one = 1.0f, zero = 0.0f;
  T *matrix[3] = {};
  double rate = 0;
  bool all = true;
  for (int i = 0; i < 3 && all; i++) {
    all = ok(cudaMalloc((void **)&matrix[i], (size_t)n * sizeof(T)), "memory of a product");
    if (all) fill(matrix[i], n, 7u + (uint32_t)i);
  }
  const double time = !all ? 0
                           : time_of(
                                 [&] {
                                   const int code =
                                       blas->product(blas->handle, CUBLAS_AS_IT_IS, CUBLAS_AS_IT_IS, side, side, side,
                                                     &one, matrix[0], type, side, matrix[1], type, side, &zero,
                                                     matrix[2], type, side, compute, CUBLAS_DEFAULT);
                                   if (code != 0 && !*why) why = "cuBLAS refuses a product";
                                   return code == 0;
                                 },
                                 calls);
  if (time > 0) rate = 2.0 * (double)side * (double)side * (double)side / time;
  for (T *each : matrix) cudaFree(each);
  return rate;
}

void print_rate(const char *name, double rate) {
  if (rate > 0)
    printf(", \"%s\": %.6g", name, rate);
  else
    printf(", \"%s\": null", name);
}

}  // namespace

int main(int argc, char **argv) {
  const bool small = argc == 2 && strcmp(argv[1], "--small") == 0;
  if (argc > 1 && !small) {
    fprintf(stderr, "usage: cuda_ceilings [--small]\n");
    return 2;
  }
  cudaDeviceProp card = {};
  if (!ok(cudaSetDevice(0), "opening the card") || !ok(cudaGetDeviceProperties(&card, 0), "asking the card")) {
    fprintf(stderr, "cuda_ceilings: %s\n", why);
    return 1;
  }
  const int side = small ? 256 : 8192;
  const double copied = copy_rate(small ? (size_t)1 << 16 : (size_t)4 << 30, small ? 1 : 5);
  double rates[3] = {};
  library blas = {};
  if (open_library(&blas)) {
    rates[0] = product_rate<__nv_bfloat16>(&blas, side, CUBLAS_R_16BF, CUBLAS_32F, 10);
    rates[1] = product_rate<float>(&blas, side, CUBLAS_R_32F, CUBLAS_TF32, 5);
    rates[2] = product_rate<float>(&blas, side, CUBLAS_R_32F, CUBLAS_32F, 1);
  }
  printf("{\"card\": \"%s\", \"memory_bytes\": %zu, \"side\": %d", card.name, card.totalGlobalMem, side);
  print_rate("copy_bytes_per_second", copied);
  print_rate("bf16_flops", rates[0]);
  print_rate("tf32_flops", rates[1]);
  print_rate("fp32_flops", rates[2]);
  printf(", \"why\": \"%s\"}\n", why);
  return copied > 0 ? 0 : 1;
}
