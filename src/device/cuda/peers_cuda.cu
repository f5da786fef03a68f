// Cards of other processes, by NCCL: sums of gradients. A sum sends each process the others' values of its part, adds
// them in the order of the processes, and sends the results to all. A ring of NCCL's own would send as much, but add in
// another order; so the bits here are those of every other communicator (comm/comm_sums.c).
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/cuda/cuda_device.h"
#include "device/cuda/nccl.h"

extern "C" {
#include "device/peers.h"
}

// Elements that are sent to one process at a time, and bytes of all of them.
enum { LINE = 32, ROOM = 64 << 20 };

struct tarn__peers {
  tarn__nccl_comm_t comm;
  int rank, size;
  bool broken;
  int64_t most;             // elements of a part in a round
  unsigned char *out, *in;  // [size, most] floats each
  struct span_at *table;    // in the card's memory
  size_t table_spans;
};

// A span and the position of its first element among those of all spans; the last entry of a table only has a position.
struct span_at {
  float *values;
  int64_t begin;
};

static tarn__nccl nccl;

static tarn_status load_nccl(void) {
  static const struct {
    const char *name;
    size_t at;
  } symbols[] = {{"ncclGetUniqueId", offsetof(tarn__nccl, get_unique_id)},
                 {"ncclCommInitRank", offsetof(tarn__nccl, comm_init_rank)},
                 {"ncclCommDestroy", offsetof(tarn__nccl, comm_destroy)},
                 {"ncclCommAbort", offsetof(tarn__nccl, comm_abort)},
                 {"ncclCommGetAsyncError", offsetof(tarn__nccl, comm_get_async_error)},
                 {"ncclGroupStart", offsetof(tarn__nccl, group_start)},
                 {"ncclGroupEnd", offsetof(tarn__nccl, group_end)},
                 {"ncclSend", offsetof(tarn__nccl, send)},
                 {"ncclRecv", offsetof(tarn__nccl, recv)},
                 {"ncclGetErrorString", offsetof(tarn__nccl, get_error_string)}};
  if (nccl.get_unique_id) return TARN_STATUS_OK;
  void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  TARN_REQUIRE(library, UNSUPPORTED, "communicator nccl: NCCL cannot be loaded: %s", dlerror());
  tarn__nccl found;
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *symbol = dlsym(library, symbols[i].name);
    TARN_REQUIRE(symbol, UNSUPPORTED, "communicator nccl: this NCCL has no %s (2.7 or later is needed)",
                 symbols[i].name);
    memcpy((char *)&found + symbols[i].at, &symbol, sizeof symbol);
  }
  nccl = found;
  return TARN_STATUS_OK;
}

static tarn_status nccl_fail(tarn__peers *peers, int error, const char *what) {
  if (peers) peers->broken = true;
  return tarn__fail(TARN_STATUS_IO, "%s: NCCL: %s failed: %s", tarn__cuda_name(), what, nccl.get_error_string(error));
}

#define TRY_NCCL(peers, call, what)                                                    \
  do {                                                                                 \
    const int nccl_error_ = (call);                                                    \
    if (nccl_error_ != TARN__NCCL_SUCCESS) return nccl_fail(peers, nccl_error_, what); \
  } while (0)

static tarn_status peers_identify(const tarn__device *device, unsigned char *identity) {
  (void)device;
  tarn__nccl_id id;
  TARN_TRY(load_nccl());
  TRY_NCCL(NULL, nccl.get_unique_id(&id), "making an identity");
  memcpy(identity, &id, sizeof id);
  return TARN_STATUS_OK;
}

static void peers_leave(const tarn__device *device, tarn__peers *peers) {
  (void)device;
  tarn__cuda_stream(NULL);
  if (peers->comm && peers->broken)
    nccl.comm_abort(peers->comm);
  else if (peers->comm)
    nccl.comm_destroy(peers->comm);
  if (!peers->broken) cudaDeviceSynchronize();
  cudaFree(peers->out);
  cudaFree(peers->table);
  free(peers);
}

static tarn_status join(tarn__peers *peers, const unsigned char *identity) {
  tarn__nccl_id id;
  memcpy(&id, identity, sizeof id);
  TARN_TRY(load_nccl());
  tarn__cuda_stream(NULL);
  TRY_NCCL(NULL, nccl.comm_init_rank(&peers->comm, peers->size, id, peers->rank), "joining the other ranks");
  peers->most = ROOM / (int64_t)sizeof(float) / peers->size / 2 / LINE * LINE;
  TARN_REQUIRE(peers->most > 0, UNSUPPORTED, "%d ranks are more than sums are made for", peers->size);
  const size_t bytes = (size_t)peers->most * (size_t)peers->size * sizeof(float);
  TARN__CUDA(cudaMalloc((void **)&peers->out, 2 * bytes), "allocating room for sums over ranks");
  peers->in = peers->out + bytes;
  return TARN_STATUS_OK;
}

static tarn_status peers_join(const tarn__device *device, tarn__peers **out, const unsigned char *identity, int rank,
                              int size) {
  *out = NULL;
  tarn__peers *peers = (tarn__peers *)calloc(1, sizeof *peers);
  TARN_REQUIRE(peers, MEMORY, "out of memory");
  peers->rank = rank;
  peers->size = size;
  const tarn_status status = join(peers, identity);
  if (status == TARN_STATUS_OK) {
    *out = peers;
    return status;
  }
  peers->broken = true;
  peers_leave(device, peers);
  return status;
}

// --- kernels: T is the format in which elements are sent

// The address of an element by its position among all.
static __device__ float *element_at(const span_at *table, int spans, int64_t position) {
  int first = 0, end = spans;
  while (end - first > 1) {
    const int middle = (first + end) / 2;
    if (table[middle].begin <= position)
      first = middle;
    else
      end = middle;
  }
  return table[first].values + (position - table[first].begin);
}

template <typename T>
static __global__ void pack_kernel(T *to, const span_at *table, int spans, int64_t position, int64_t count) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) tarn__set(to + i, *element_at(table, spans, position + i));
}

template <typename T>
static __global__ void unpack_kernel(const T *from, const span_at *table, int spans, int64_t position, int64_t count) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) *element_at(table, spans, position + i) = tarn__get(from[i]);
}

// Adds up this process's part, in the order of the processes: `from` [size, most] has the others' values. `to`, if not
// NULL: the sums, to be sent.
template <typename T>
static __global__ void add_kernel(T *to, const T *from, int64_t most, int rank, int size, const span_at *table,
                                  int spans, int64_t position, int64_t count) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float *own = element_at(table, spans, position + i);
  const float mine = tarn__rounded<T>(*own);
  float sum = rank == 0 ? mine : tarn__get(from[i]);
  for (int r = 1; r < size; r++) sum += r == rank ? mine : tarn__get(from[r * most + i]);
  sum = tarn__rounded<T>(sum);
  *own = sum;
  if (to) tarn__set(to + i, sum);
}

// --- sums

// Sends the table of the spans; *ends: where the parts of the processes end.
static tarn_status send_table(tarn__peers *peers, const tarn__peers_sum *sum, int64_t *begins, int *spans,
                              cudaStream_t stream) {
  int64_t count = 0, position = 0;
  for (int r = 0; r < peers->size; r++) count += sum->numbers[r];
  TARN_REQUIRE(count < INT32_MAX, INTERNAL, "a sum has too many spans");
  const size_t entries = (size_t)count + 1;
  span_at *table = (span_at *)malloc(entries * sizeof *table);
  TARN_REQUIRE(table, MEMORY, "out of memory");
  int64_t at = 0;
  for (int r = 0; r < peers->size; r++) {
    begins[r] = position;
    for (int64_t end = at + sum->numbers[r]; at < end; at++) {
      table[at].values = sum->spans[at].values;
      table[at].begin = position;
      position += sum->spans[at].count;
    }
  }
  begins[peers->size] = table[count].begin = position;
  table[count].values = NULL;
  *spans = (int)count;
  cudaError_t error = cudaSuccess;
  if (peers->table_spans < entries) {
    error = cudaFree(peers->table);
    peers->table = NULL;
    peers->table_spans = 0;
    if (error == cudaSuccess) error = cudaMalloc((void **)&peers->table, entries * sizeof *table);
    if (error == cudaSuccess) peers->table_spans = entries;
  }
  // The runtime has read pageable memory, or a copy of it, when the call returns.
  if (error == cudaSuccess)
    error = cudaMemcpyAsync(peers->table, table, entries * sizeof *table, cudaMemcpyHostToDevice, stream);
  free(table);
  TARN__CUDA(error, "preparing a sum over ranks");
  return TARN_STATUS_OK;
}

// One round: elements [at, at + most) of each part.
template <typename T>
static tarn_status run_round(tarn__peers *peers, const tarn__peers_sum *sum, const int64_t *begins, int spans,
                             int64_t at, cudaStream_t stream) {
  T *out = (T *)(void *)peers->out, *in = (T *)(void *)peers->in;
  const int64_t most = peers->most, me = peers->rank;
  const auto left = [&](int64_t r) {
    const int64_t count = begins[r + 1] - begins[r] - at;
    return count < 0 ? 0 : count < most ? count : most;
  };
  const int64_t own = left(me);
  for (int64_t r = 0; r < peers->size; r++)
    if (r != me)
      TARN__LAUNCH(pack_kernel<T>, tarn__blocks(left(r), 256), 256, 0, stream, out + r * most, peers->table, spans,
                   begins[r] + at, left(r));
  TRY_NCCL(peers, nccl.group_start(), "sending");
  for (int r = 0; r < peers->size; r++) {
    if (r == me) continue;
    TRY_NCCL(peers, nccl.send(out + r * most, (size_t)left(r) * sizeof(T), TARN__NCCL_BYTES, r, peers->comm, stream),
             "sending");
    TRY_NCCL(peers, nccl.recv(in + r * most, (size_t)own * sizeof(T), TARN__NCCL_BYTES, r, peers->comm, stream),
             "receiving");
  }
  TRY_NCCL(peers, nccl.group_end(), "sending");
  TARN__LAUNCH(add_kernel<T>, tarn__blocks(own, 256), 256, 0, stream, sum->gathers ? out + me * most : (T *)nullptr, in,
               most, (int)me, peers->size, peers->table, spans, begins[me] + at, own);
  if (!sum->gathers) return TARN_STATUS_OK;
  TRY_NCCL(peers, nccl.group_start(), "sending");
  for (int r = 0; r < peers->size; r++) {
    if (r == me) continue;
    TRY_NCCL(peers, nccl.send(out + me * most, (size_t)own * sizeof(T), TARN__NCCL_BYTES, r, peers->comm, stream),
             "sending");
    TRY_NCCL(peers, nccl.recv(in + r * most, (size_t)left(r) * sizeof(T), TARN__NCCL_BYTES, r, peers->comm, stream),
             "receiving");
  }
  TRY_NCCL(peers, nccl.group_end(), "sending");
  for (int64_t r = 0; r < peers->size; r++)
    if (r != me)
      TARN__LAUNCH(unpack_kernel<T>, tarn__blocks(left(r), 256), 256, 0, stream, in + r * most, peers->table, spans,
                   begins[r] + at, left(r));
  return TARN_STATUS_OK;
}

// A lost process never sends, and the stream would never end.
static tarn_status wait(tarn__peers *peers, const tarn__peers_sum *sum, cudaStream_t stream) {
  cudaError_t error;
  while ((error = cudaStreamQuery(stream)) == cudaErrorNotReady) {
    int failed = TARN__NCCL_SUCCESS;
    nccl.comm_get_async_error(peers->comm, &failed);
    const bool lost = sum->given_up(sum->user);
    if (lost || failed != TARN__NCCL_SUCCESS) {
      peers->broken = true;
      nccl.comm_abort(peers->comm);
      peers->comm = NULL;
      return lost ? tarn__fail(TARN_STATUS_IO, "another rank is lost") : nccl_fail(peers, failed, "a sum over ranks");
    }
    usleep(20);
  }
  TARN__CUDA(error, "a sum over ranks");
  return TARN_STATUS_OK;
}

static tarn_status peers_sum(const tarn__device *device, tarn__peers *peers, tarn__device_stream *stream,
                             const tarn__peers_sum *sum) {
  (void)device;
  const cudaStream_t at = tarn__cuda_stream(stream);
  TARN_REQUIRE(!peers->broken, IO, "%s: an earlier sum over ranks has failed", tarn__cuda_name());
  int64_t *begins = (int64_t *)malloc(((size_t)peers->size + 1) * sizeof *begins), longest = 0;
  TARN_REQUIRE(begins, MEMORY, "out of memory");
  int spans = 0;
  tarn_status status = send_table(peers, sum, begins, &spans, at);
  for (int r = 0; r < peers->size && status == TARN_STATUS_OK; r++)
    if (begins[r + 1] - begins[r] > longest) longest = begins[r + 1] - begins[r];
  for (int64_t done = 0; done < longest && status == TARN_STATUS_OK; done += peers->most)
    status = sum->bf16 ? run_round<tarn__bf16>(peers, sum, begins, spans, done, at)
                       : run_round<float>(peers, sum, begins, spans, done, at);
  free(begins);
  return status == TARN_STATUS_OK ? wait(peers, sum, at) : status;
}

void tarn__cuda_peers_entries(tarn__device_type *type) {
  type->peers_bytes = ROOM;
  type->peers_identify = peers_identify;
  type->peers_join = peers_join;
  type->peers_leave = peers_leave;
  type->peers_sum = peers_sum;
}
