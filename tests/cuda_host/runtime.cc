// The calls of CUDA's runtime in host memory. Work is done at once, in the order of the calls: that the library orders
// its streams by events is what the shadow device tests (tests/shadow_device.h).
//
// TARN_CUDA_FAULT lets a card fail: no_driver, old_driver, no_card, old_card (compute capability 7.5), small_card (with
// the shared memory of a desktop's), memory:BYTES (the card has so much), full:N (the Nth allocation finds it full, and
// all later ones), lost:N (the Nth piece of work fails, and all later calls). TARN_CUDA_CARDS: their number, 1.
// TARN_CUDA_MEMORY: a file to which each process adds the most memory that it allocated at a time, a line.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <map>
#include <mutex>

#include "cuda_host.h"

struct tarn__host_stream {
  int unused;
};
struct tarn__host_event {
  int unused;
};

namespace {

std::mutex lock;
std::map<void *, size_t> blocks;
size_t held;
bool lost;

struct most_held {
  size_t bytes = 0;
  ~most_held() {
    const char *path = getenv("TARN_CUDA_MEMORY");
    FILE *file = path && bytes ? fopen(path, "a") : nullptr;
    if (!file) return;
    fprintf(file, "%zu\n", bytes);
    fclose(file);
  }
} most;
long work, allocations;
cudaError_t last;

// The text behind NAME: in TARN_CUDA_FAULT, or "" for NAME alone; NULL: another fault or none.
const char *fault(const char *name) {
  const char *text = getenv("TARN_CUDA_FAULT");
  const size_t length = strlen(name);
  if (!text || strncmp(text, name, length) != 0) return nullptr;
  return text[length] == ':' ? text + length + 1 : text[length] ? nullptr : "";
}

size_t total() {
  const char *text = fault("memory");
  return text ? strtoull(text, nullptr, 10) : (size_t)8 << 30;
}

int cards() {
  const char *text = getenv("TARN_CUDA_CARDS");
  return text ? atoi(text) : 1;
}

cudaError_t keep(cudaError_t error) { return last = lost ? cudaErrorLaunchFailure : error; }

}  // namespace

cudaError_t tarn__host_queue(cudaStream_t) {
  const char *text = fault("lost");
  const std::lock_guard<std::mutex> guard(lock);
  if (text && ++work >= atol(text)) lost = true;
  return keep(cudaSuccess);
}

const char *cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    default:
      return "unknown error";
  }
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = last;
  last = cudaSuccess;
  return error;
}

cudaError_t cudaDriverGetVersion(int *version) {
  *version = fault("no_driver") ? 0 : fault("old_driver") ? 11040 : 13000;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count) {
  *count = 0;
  if (fault("no_driver") || fault("old_driver")) return keep(cudaErrorInsufficientDriver);
  if (fault("no_card")) return keep(cudaErrorNoDevice);
  *count = cards();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  return keep(device >= 0 && device < cards() ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device) {
  if (device < 0 || device >= cards()) return keep(cudaErrorInvalidDevice);
  memset(prop, 0, sizeof *prop);
  snprintf(prop->name, sizeof prop->name, "cuda-host");
  prop->totalGlobalMem = total();
  prop->major = fault("old_card") ? 7 : 9;
  prop->minor = fault("old_card") ? 5 : 0;
  prop->multiProcessorCount = 4;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attr, int device) {
  cudaDeviceProp prop;
  const cudaError_t error = cudaGetDeviceProperties(&prop, device);
  if (error != cudaSuccess) return error;
  *value = attr == cudaDevAttrMultiProcessorCount      ? prop.multiProcessorCount
           : attr == cudaDevAttrComputeCapabilityMajor ? prop.major
           : attr == cudaDevAttrComputeCapabilityMinor ? prop.minor
           : fault("small_card")                       ? 99 * 1024
                                                       : 227 * 1024;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() { return keep(cudaSuccess); }

cudaError_t cudaMemGetInfo(size_t *free, size_t *all) {
  const std::lock_guard<std::mutex> guard(lock);
  *all = total();
  *free = held < *all ? *all - held : 0;
  return keep(cudaSuccess);
}

// Memory is full of NaNs: nothing may rely on what it finds there.
cudaError_t cudaMalloc(void **memory, size_t bytes) {
  const std::lock_guard<std::mutex> guard(lock);
  const char *full = fault("full");
  *memory = nullptr;
  if (full && ++allocations >= atol(full)) return keep(cudaErrorMemoryAllocation);
  if (held + bytes > total()) return keep(cudaErrorMemoryAllocation);
  if (posix_memalign(memory, 256, bytes ? bytes : 1)) return keep(cudaErrorMemoryAllocation);
  memset(*memory, 0xFF, bytes);
  blocks[*memory] = bytes;
  held += bytes;
  if (held > most.bytes) most.bytes = held;
  return keep(cudaSuccess);
}

cudaError_t cudaMallocManaged(void **memory, size_t bytes, unsigned) { return cudaMalloc(memory, bytes); }

cudaError_t cudaFree(void *memory) {
  const std::lock_guard<std::mutex> guard(lock);
  if (!memory) return keep(cudaSuccess);
  const auto at = blocks.find(memory);
  if (at == blocks.end()) return keep(cudaErrorInvalidValue);
  held -= at->second;
  blocks.erase(at);
  free(memory);
  return keep(cudaSuccess);
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned) {
  return keep(posix_memalign(memory, 256, bytes ? bytes : 1) ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaFreeHost(void *memory) {
  free(memory);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  const cudaError_t error = tarn__host_queue(stream);
  if (error == cudaSuccess && bytes) memcpy(to, from, bytes);
  return error;
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream) {
  const cudaError_t error = tarn__host_queue(stream);
  if (error == cudaSuccess && bytes) memset(to, byte, bytes);
  return error;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) {
  *stream = (cudaStream_t)calloc(1, sizeof **stream);
  return keep(*stream ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  free(stream);
  return keep(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t) { return keep(cudaSuccess); }
cudaError_t cudaStreamQuery(cudaStream_t) { return keep(cudaSuccess); }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return keep(cudaSuccess); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned) {
  *event = (cudaEvent_t)calloc(1, sizeof **event);
  return keep(*event ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  free(event);
  return keep(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return keep(cudaSuccess); }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return keep(cudaSuccess); }
