// Memory of the card, pinned memory of the host, copies between and within them, and the rooms of streams.
#include <stdlib.h>

#include "device/cuda/cuda_device.h"

// --- rooms: memory that the launches of one stream use in turn

enum { ROOMS = 64 };
static struct room {
  cudaStream_t stream;
  void *memory;
  size_t bytes;
} rooms[ROOMS];
static int room_count;
static volatile char rooms_locked;

static void lock_rooms(void) {
  while (__atomic_test_and_set(&rooms_locked, __ATOMIC_ACQUIRE)) continue;
}
static void unlock_rooms(void) { __atomic_clear(&rooms_locked, __ATOMIC_RELEASE); }

// The room of a stream; NULL if there is no more. Only the stream's own thread uses it.
static struct room *room_of(cudaStream_t stream, bool make) {
  struct room *found = NULL;
  lock_rooms();
  for (int i = 0; i < room_count && !found; i++)
    if (rooms[i].stream == stream && (rooms[i].memory || make)) found = &rooms[i];
  for (int i = 0; i < room_count && !found && make; i++)
    if (!rooms[i].memory) found = &rooms[i];
  if (!found && make && room_count < ROOMS) found = &rooms[room_count++];
  if (found) found->stream = stream;
  unlock_rooms();
  return found;
}

tarn_status tarn__cuda_room(void **memory, cudaStream_t stream, size_t bytes) {
  struct room *room = room_of(stream, true);
  *memory = NULL;
  TARN_REQUIRE(room, INTERNAL, "more than %d streams of a card compute", ROOMS);
  if (room->bytes < bytes || !room->memory) {
    if (room->memory) TARN__CUDA(cudaFree(room->memory), "freeing memory");  // waits for all uses
    room->memory = NULL;
    room->bytes = 0;
    TARN__CUDA(cudaMalloc(&room->memory, bytes ? bytes : 1), "allocating room for a launch");
    room->bytes = bytes;
  }
  *memory = room->memory;
  return TARN_STATUS_OK;
}

void tarn__cuda_room_free(cudaStream_t stream) {
  struct room *room = room_of(stream, false);
  if (!room) return;
  cudaFree(room->memory);
  room->memory = NULL;
  room->bytes = 0;
}

// --- memory

static tarn_status memory(const tarn__device *device, size_t *available, size_t *total) {
  (void)device;
  tarn__cuda_stream(NULL);
  TARN__CUDA(cudaMemGetInfo(available, total), "asking for free memory");
  return TARN_STATUS_OK;
}

static tarn_status out_of_memory(const tarn__device *device, size_t bytes) {
  size_t available = 0, total = 0;
  cudaGetLastError();
  TARN_TRY(memory(device, &available, &total));
  return tarn__fail(TARN_STATUS_MEMORY, "%s: out of memory: %.1f MB are needed, and %.1f of %.1f MB are free",
                    device->name, (double)bytes / 1e6, (double)available / 1e6, (double)total / 1e6);
}

// With TARN_CUDA_MANAGED, tests may read and write the memory on the host, between launches.
static tarn_status allocate(const tarn__device *device, void **out, tarn__memory_kind kind, size_t count, size_t size) {
  (void)kind;
  size_t bytes = 0;
  *out = NULL;
  const bool fits = !__builtin_mul_overflow(count, size, &bytes);
  TARN_REQUIRE(fits, MEMORY, "%s: out of memory: %zu times %zu bytes are needed", device->name, count, size);
  const cudaStream_t stream = tarn__cuda_stream(NULL);
  const size_t room = bytes ? bytes : 1;
  const cudaError_t error = getenv("TARN_CUDA_MANAGED") ? cudaMallocManaged(out, room) : cudaMalloc(out, room);
  if (error == cudaErrorMemoryAllocation) return out_of_memory(device, bytes);
  TARN__CUDA(error, "allocating memory");
  cudaError_t cleared = cudaMemsetAsync(*out, 0, room, stream);
  // Other streams may use it at once.
  if (cleared == cudaSuccess) cleared = cudaStreamSynchronize(stream);
  if (cleared == cudaSuccess) return TARN_STATUS_OK;
  cudaFree(*out);
  *out = NULL;
  return tarn__cuda_fail(cleared, "clearing memory");
}

static void free_memory(const tarn__device *device, void *memory) {
  (void)device;
  if (!memory) return;
  tarn__cuda_stream(NULL);
  cudaDeviceSynchronize();
  tarn__cuda_table_forget(memory);
  cudaFree(memory);
}

static tarn_status staging_allocate(const tarn__device *device, void **out, size_t bytes) {
  (void)device;
  *out = NULL;
  tarn__cuda_stream(NULL);
  TARN__CUDA(cudaHostAlloc(out, bytes ? bytes : 1, cudaHostAllocDefault), "allocating pinned memory of the host");
  return TARN_STATUS_OK;
}

static void staging_free(const tarn__device *device, void *memory) {
  (void)device;
  if (!memory) return;
  tarn__cuda_stream(NULL);
  cudaFreeHost(memory);
}

// --- copies

static tarn_status send(const tarn__device *device, tarn__device_stream *stream, void *to, const void *from,
                        size_t bytes) {
  (void)device;
  TARN__CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, tarn__cuda_stream(stream)),
             "copying to the card");
  return TARN_STATUS_OK;
}

// The runtime may still read `from` when it returns, unless the stream is waited for.
static tarn_status copy_in(const tarn__device *device, tarn__device_stream *stream, void *to, const void *from,
                           size_t bytes) {
  TARN_TRY(send(device, stream, to, from, bytes));
  TARN__CUDA(cudaStreamSynchronize(tarn__cuda_stream(stream)), "copying to the card");
  return TARN_STATUS_OK;
}

static tarn_status copy_out(const tarn__device *device, tarn__device_stream *stream, void *to, const void *from,
                            size_t bytes) {
  (void)device;
  const cudaStream_t at = tarn__cuda_stream(stream);
  TARN__CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, at), "copying to the host");
  TARN__CUDA(cudaStreamSynchronize(at), "computing");
  return TARN_STATUS_OK;
}

static tarn_status copy(const tarn__device *device, tarn__device_stream *stream, void *to, const void *from,
                        size_t bytes) {
  (void)device;
  TARN__CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, tarn__cuda_stream(stream)),
             "copying within the card");
  return TARN_STATUS_OK;
}

static tarn_status fill(const tarn__device *device, tarn__device_stream *stream, void *to, unsigned char byte,
                        size_t bytes) {
  (void)device;
  TARN__CUDA(cudaMemsetAsync(to, byte, bytes, tarn__cuda_stream(stream)), "filling memory");
  return TARN_STATUS_OK;
}

// Row pairs[2 k] of `from` becomes row pairs[2 k + 1] of `to`; without `pairs`, row k becomes row k. A block a row.
static __global__ void move_rows_kernel(unsigned char *to, const unsigned char *from, size_t bytes,
                                        const int32_t *from_rows, const int32_t *to_rows) {
  const size_t k = blockIdx.x;
  const unsigned char *source = from + (from_rows ? (size_t)from_rows[k] : k) * bytes;
  unsigned char *target = to + (to_rows ? (size_t)to_rows[k] : k) * bytes;
  const bool wide = (((uintptr_t)source | (uintptr_t)target | bytes) & 15u) == 0;
  for (size_t i = threadIdx.x; wide && i < bytes / 16; i += blockDim.x)
    ((uint4 *)target)[i] = ((const uint4 *)source)[i];
  for (size_t i = threadIdx.x; !wide && i < bytes; i += blockDim.x) target[i] = source[i];
}

// Rows move through a room, because in place one row may take the place of another that moves too.
static tarn_status move_rows(const tarn__device *device, tarn__device_stream *stream, void *to, const void *from,
                             size_t bytes, const int32_t *numbers, int64_t rows) {
  (void)device;
  const cudaStream_t at = tarn__cuda_stream(stream);
  int32_t *pairs = (int32_t *)malloc((size_t)rows * 2 * sizeof *pairs + 1);
  TARN_REQUIRE(pairs, MEMORY, "out of memory");
  size_t count = 0;
  for (int64_t i = 0; i < rows; i++)
    if (numbers[i] >= 0 && !(numbers[i] == i && to == from)) pairs[count++] = (int32_t)i;
  for (size_t k = 0; k < count; k++) pairs[count + k] = numbers[pairs[k]];
  void *room = NULL;
  const size_t table = (count * 2 * sizeof *pairs + 255) / 256 * 256;
  tarn_status status = count ? tarn__cuda_room(&room, at, table + count * bytes) : TARN_STATUS_OK;
  // The runtime has read pageable memory, or a copy of it, when the call returns.
  if (status == TARN_STATUS_OK && count) {
    const cudaError_t error = cudaMemcpyAsync(room, pairs, count * 2 * sizeof *pairs, cudaMemcpyHostToDevice, at);
    if (error != cudaSuccess) status = tarn__cuda_fail(error, "copying to the card");
  }
  free(pairs);
  TARN_TRY(status);
  if (count == 0 || bytes == 0) return TARN_STATUS_OK;
  unsigned char *middle = (unsigned char *)room + table;
  const int32_t *there = (const int32_t *)room;
  TARN__LAUNCH(move_rows_kernel, (unsigned)count, 256, 0, at, middle, (const unsigned char *)from, bytes, there,
               (const int32_t *)nullptr);
  TARN__LAUNCH(move_rows_kernel, (unsigned)count, 256, 0, at, (unsigned char *)to, middle, bytes,
               (const int32_t *)nullptr, there + count);
  return TARN_STATUS_OK;
}

void tarn__cuda_memory_entries(tarn__device_type *type) {
  type->allocate = allocate;
  type->free = free_memory;
  type->memory = memory;
  type->copy_in = copy_in;
  type->send = send;
  type->copy_out = copy_out;
  type->copy = copy;
  type->fill = fill;
  type->move_rows = move_rows;
  type->staging_allocate = staging_allocate;
  type->staging_free = staging_free;
}
