// The device type of the module, and how a card is opened: one card a process.
#include "device/cuda/cuda_device.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/cuda_kernels.h"
#include "device/cuda/product.h"

// The first architecture with products of bf16 and asynchronous copies to shared memory.
enum { LEAST_MAJOR = 8 };

const tarn__cuda_calls *tarn__cuda_calls_now;

static struct {
  bool is_open;
  tarn__device device;
  char name[32], variant[32], card[256];
  int processors, shared;
  cudaStream_t stream;
} opened;

static tarn__device_type type;

extern "C" tarn_status tarn__fail(tarn_status status, const char *format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  return tarn__cuda_calls_now->fail(status, line);
}

extern "C" int tarn__param_accumulate(tarn__param *param) { return tarn__cuda_calls_now->param_accumulate(param); }

const char *tarn__cuda_name(void) { return opened.is_open ? opened.name : "cuda"; }

tarn_status tarn__cuda_fail(cudaError_t error, const char *what) {
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // not an error of later calls
    return tarn__fail(TARN_STATUS_MEMORY, "%s: out of memory while %s", tarn__cuda_name(), what);
  }
  return tarn__fail(TARN_STATUS_IO, "%s: %s failed: %s (error %d of the CUDA runtime)", tarn__cuda_name(), what,
                    cudaGetErrorString(error), (int)error);
}

cudaStream_t tarn__cuda_default_stream(void) { return opened.stream; }

cudaStream_t tarn__cuda_stream(const tarn__device_stream *stream) {
  static thread_local bool current;
  if (!current) current = cudaSetDevice(opened.device.ordinal) == cudaSuccess;
  return stream ? (cudaStream_t)(void *)const_cast<tarn__device_stream *>(stream) : opened.stream;
}

int tarn__cuda_processors(void) { return opened.processors; }

size_t tarn__cuda_shared(void) { return (size_t)opened.shared; }

tarn_status tarn__cuda_fits(size_t shared) {
  TARN_REQUIRE(shared <= (size_t)opened.shared, UNSUPPORTED,
               "%s: a kernel needs %zu KiB of shared memory, and a block of the card %s may have %d KiB",
               tarn__cuda_name(), shared >> 10, opened.card, opened.shared >> 10);
  return TARN_STATUS_OK;
}

static const char *variant(const tarn__device *device) {
  (void)device;
  return opened.variant;
}

// Products of tensor cores round each factor once; there are none of sums of bf16 numbers.
static const char *fp32_lacks(const tarn__device *device, tarn__fp32 fp32) {
  (void)device;
  return fp32 == TARN__FP32_TF32 ? NULL : "the matrix tiles of a processor";
}

static tarn_status fill(void) {
  static bool filled;
  if (filled) return TARN_STATUS_OK;
  filled = true;
  tarn__cuda_kernels_fill();
  type.name = "cuda";
  type.accelerator = true;
  type.ops = TARN__OPS;
  type.stream_bytes = TARN__PRODUCT_WORKSPACE + TARN__PRODUCT_BIAS;
  type.kernels[TARN__F32] = type.kernels[TARN__BF16] = tarn__cuda_kernels;
  type.variant = variant;
  type.lacks = tarn__cuda_lacks;
  type.fp32_lacks = fp32_lacks;
  tarn__cuda_memory_entries(&type);
  tarn__cuda_stream_entries(&type);
  tarn__cuda_peaks_entries(&type);
  tarn__cuda_peers_entries(&type);
  tarn__cuda_optimiser_entries(&type);
  return TARN_STATUS_OK;
}

static tarn_status start(const tarn__cuda_calls *calls) {
  tarn__cuda_calls_now = calls;
  return fill();
}

static tarn_status count_cards(int *count) {
  int driver = 0, runtime = 0;
  const cudaError_t error = cudaGetDeviceCount(count);
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (error == cudaErrorNoDevice || (error == cudaSuccess && *count == 0))
    return tarn__fail(TARN_STATUS_UNSUPPORTED,
                      "cuda: there is no card of NVIDIA in this machine, or this process may not use it");
  if (driver == 0)
    return tarn__fail(TARN_STATUS_UNSUPPORTED,
                      "cuda: there is no driver of NVIDIA (expected one for CUDA %d.%d or later)", runtime / 1000,
                      runtime % 1000 / 10);
  if (error == cudaErrorInsufficientDriver)
    return tarn__fail(TARN_STATUS_UNSUPPORTED,
                      "cuda: the driver supports CUDA %d.%d, but this build needs one for CUDA %d.%d or later",
                      driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
  TARN__CUDA(error, "looking for cards");
  return TARN_STATUS_OK;
}

static tarn_status open_card(int ordinal, int count) {
  cudaDeviceProp prop;
  TARN__CUDA(cudaSetDevice(ordinal), "choosing the card");
  TARN__CUDA(cudaGetDeviceProperties(&prop, ordinal), "asking for the card's properties");
  snprintf(opened.card, sizeof opened.card, "%s", prop.name);
  if (prop.major < LEAST_MAJOR)
    return tarn__fail(TARN_STATUS_UNSUPPORTED,
                      "cuda:%d: the card %s has compute capability %d.%d and no bf16; 8.0 or later is needed", ordinal,
                      opened.card, prop.major, prop.minor);
  TARN__CUDA(cudaDeviceGetAttribute(&opened.shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, ordinal),
             "asking for the card's properties");
  TARN_TRY(tarn__cuda_product_open());
  TARN__CUDA(cudaStreamCreateWithFlags(&opened.stream, cudaStreamNonBlocking), "opening a stream");
  if (count > 1)
    snprintf(opened.name, sizeof opened.name, "cuda:%d", ordinal);
  else
    snprintf(opened.name, sizeof opened.name, "cuda");
  snprintf(opened.variant, sizeof opened.variant, "sm_%d%d", prop.major, prop.minor);
  opened.processors = prop.multiProcessorCount;
  opened.device.type = &type;
  opened.device.name = opened.name;
  opened.device.ordinal = ordinal;
  opened.is_open = true;
  return TARN_STATUS_OK;
}

// The number of this process among those that were started together on this machine; 0 for one that was started alone.
static int local_rank(void) {
  static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *text = getenv(names[i]);
    if (text && *text >= '0' && *text <= '9') return atoi(text);
  }
  return 0;
}

static tarn_status open_device(const tarn__device **device, int ordinal) {
  int count = 0;
  *device = &opened.device;
  const bool any = ordinal < 0;
  if (opened.is_open && (any || ordinal == opened.device.ordinal)) return TARN_STATUS_OK;
  if (any) ordinal = local_rank();
  TARN_REQUIRE(!opened.is_open, UNSUPPORTED,
               "a process can use one card, and this one uses %s: it cannot use cuda:%d too", opened.name, ordinal);
  TARN_TRY(count_cards(&count));
  TARN_REQUIRE(!any || ordinal < count, USAGE,
               "cuda: %d processes on this machine have a card each, and this one has none", count);
  TARN_REQUIRE(ordinal < count, USAGE, "there is no card cuda:%d; there %s %d, from cuda:0", ordinal,
               count == 1 ? "is" : "are", count);
  return open_card(ordinal, count);
}

extern "C" __attribute__((visibility("default"))) const tarn__cuda_module tarn__cuda_module_entry;
const tarn__cuda_module tarn__cuda_module_entry = {TARN__CUDA_BUILD, TARN_CUDA_TOOLKIT, start, open_device};
