// The part of CUDA that src/device/cuda uses, for compilation by a C++ compiler: the threads of a block are fibres of
// one thread of the host (fibres.cc), the runtime's calls work in host memory (runtime.cc).
//
// Order: a block's threads run one at a time, each as far as it can: to a barrier, a shuffle, or its end. Without an
// order (TARN_CUDA_ORDER unset or 0) warps, lanes and blocks run in their natural order; with a number they run in an
// order drawn from it, anew after every barrier, so that a warp at random runs ahead of all others. A missing barrier
// then lets some warp read what another has not written yet, or overwrite what another still reads. Shared memory is
// filled with NaNs before each block, and threads that can never go on are an error.
#ifndef TARN_TESTS_CUDA_HOST_CUDA_RUNTIME_H
#define TARN_TESTS_CUDA_HOST_CUDA_RUNTIME_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <functional>
#include <tuple>

#define __global__ __attribute__((noinline))
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
struct uint3 {
  unsigned x, y, z;
};
#define TARN__HOST_VECTOR(type, name)                                             \
  struct alignas(2 * sizeof(type)) name##2 {                                      \
    type x, y;                                                                    \
  };                                                                              \
  struct alignas(4 * sizeof(type) < 16 ? 4 * sizeof(type) : 16) name##4 {         \
    type x, y, z, w;                                                              \
  };                                                                              \
  static inline name##2 make_##name##2(type x, type y) { return name##2 {x, y}; } \
  static inline name##4 make_##name##4(type x, type y, type z, type w) { return name##4 {x, y, z, w}; }
TARN__HOST_VECTOR(float, float)
TARN__HOST_VECTOR(int, int)
TARN__HOST_VECTOR(unsigned, uint)
TARN__HOST_VECTOR(double, double)
#undef TARN__HOST_VECTOR

// --- threads (fibres.cc)

// The thread that runs.
struct tarn__host_thread {
  uint3 thread, block;
  dim3 block_size, grid;
};
extern tarn__host_thread *tarn__host_now;
#define threadIdx (tarn__host_now->thread)
#define blockIdx (tarn__host_now->block)
#define blockDim (tarn__host_now->block_size)
#define gridDim (tarn__host_now->grid)

void *tarn__host_shared();
void tarn__host_barrier();
// Waits for all lanes of the mask, and returns what they gave: `bytes` (at most 64) of each, 64 bytes apart.
const unsigned char *tarn__host_exchange(unsigned mask, const void *mine, size_t bytes);

// Copies to shared memory that arrive later (cp.async): `size` bytes, the first `valid` of them from global memory, the
// others 0. Until a wait of this thread they are NaNs, and they are read from global memory only then. A group ends
// with a commit; a wait leaves the last `left` groups under way, and copies that are in no group yet.
void tarn__host_copy(void *to, const void *from, size_t size, size_t valid);
void tarn__host_copy_commit();
void tarn__host_copy_wait(int left);

static inline void __syncthreads() { tarn__host_barrier(); }
static inline void __syncwarp(unsigned mask = 0xFFFFFFFFu) { tarn__host_exchange(mask, "", 0); }
static inline void __threadfence() {}
static inline void __threadfence_block() {}

template <typename T>
static inline T __shfl_sync(unsigned mask, T x, int from, int width = 32) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned char *all = tarn__host_exchange(mask, &x, sizeof x);
  T out;
  memcpy(&out, all + 64 * (lane / (unsigned)width * (unsigned)width + (unsigned)from % (unsigned)width), sizeof out);
  return out;
}
template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T x, int lanes, int width = 32) {
  (void)width;
  return __shfl_sync(mask, x, (int)((threadIdx.x % 32) ^ (unsigned)lanes));
}
template <typename T>
static inline T __shfl_down_sync(unsigned mask, T x, int by, int width = 32) {
  const int lane = (int)(threadIdx.x % 32), at = lane % width + by;
  return __shfl_sync(mask, x, at < width ? lane + by : lane);
}
template <typename T>
static inline T __shfl_up_sync(unsigned mask, T x, int by, int width = 32) {
  const int lane = (int)(threadIdx.x % 32), at = lane % width - by;
  return __shfl_sync(mask, x, at >= 0 ? lane - by : lane);
}
static inline unsigned __ballot_sync(unsigned mask, int is) {
  const unsigned char own = is != 0, *all = tarn__host_exchange(mask, &own, 1);
  unsigned bits = 0;
  for (unsigned lane = 0; lane < 32; lane++)
    if (mask >> lane & 1u && all[64 * lane]) bits |= 1u << lane;
  return bits;
}
static inline int __any_sync(unsigned mask, int is) { return __ballot_sync(mask, is) != 0; }
static inline int __all_sync(unsigned mask, int is) { return __ballot_sync(mask, is) == mask; }

// --- functions of kernels
static inline unsigned __float_as_uint(float x) {
  unsigned bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline float __uint_as_float(unsigned bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
template <typename T>
static inline T __ldg(const T *x) {
  return *x;
}
static inline float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
static inline void sincospif(float x, float *sine, float *cosine) {
  *sine = (float)__builtin_sin(3.14159265358979323846 * (double)x);
  *cosine = (float)__builtin_cos(3.14159265358979323846 * (double)x);
}
#define TARN__HOST_LEAST(type)                                     \
  static inline type min(type a, type b) { return b < a ? b : a; } \
  static inline type max(type a, type b) { return a < b ? b : a; }
TARN__HOST_LEAST(int)
TARN__HOST_LEAST(unsigned)
TARN__HOST_LEAST(long)
TARN__HOST_LEAST(float)
#undef TARN__HOST_LEAST
template <typename T>
static inline T atomicAdd(T *to, T x) {
  const T old = *to;
  *to = (T)(old + x);
  return old;
}
template <typename T>
static inline T atomicMax(T *to, T x) {
  const T old = *to;
  if (*to < x) *to = x;
  return old;
}

// --- the runtime (runtime.cc)
typedef enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorECCUncorrectable = 214,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchFailure = 719,
  cudaErrorUnknown = 999
} cudaError_t;
typedef struct tarn__host_stream *cudaStream_t;
typedef struct tarn__host_event *cudaEvent_t;
typedef enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
} cudaMemcpyKind;
typedef enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
} cudaDeviceAttr;
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem;
  int major, minor, multiProcessorCount;
};
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaHostAllocDefault = 0, cudaMemAttachGlobal = 1 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum { CUDART_VERSION = 13000 };

const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attr, int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaMallocManaged(void **memory, size_t bytes, unsigned flags = cudaMemAttachGlobal);
cudaError_t cudaFree(void *memory);
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventSynchronize(cudaEvent_t event);

// --- launches (fibres.cc)
cudaError_t tarn__host_launch(const void *kernel, dim3 blocks, dim3 threads, size_t shared, cudaStream_t stream,
                              const std::function<void()> &body);
// A kernel with its arguments, copied as a launch copies them.
template <typename... P, typename... A>
static inline std::function<void()> tarn__host_bind(void (*kernel)(P...), A... arguments) {
  std::tuple<P...> all(static_cast<P>(arguments)...);
  return [kernel, all] { std::apply(kernel, all); };
}

#endif
