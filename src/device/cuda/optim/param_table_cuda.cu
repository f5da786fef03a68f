// Tables of parameters in the memory of the card. A copy is sent only where it changed, from pinned memory, of which
// the host writes one half while the card may still read the other, so that it need not wait.
#include <string.h>

#include "device/cuda/cuda_device.h"
#include "device/cuda/optim/optimiser.h"

enum { HALVES = 2 };

// What the host knows about a copy. It lies at the start of pinned memory, in front of the halves, because the module
// has no other memory of the host.
typedef struct record {
  struct record *next;
  void *there;  // the parameters, and behind them the partial sums
  size_t capacity;
  int64_t chunk_capacity;
  int now;  // the half that was sent last
  int count[HALVES];
  int64_t chunks[HALVES];
  cudaEvent_t sent[HALVES];
} record;

static record *records;
static volatile char records_locked;

static void lock(void) {
  while (__atomic_test_and_set(&records_locked, __ATOMIC_ACQUIRE)) continue;
}
static void unlock(void) { __atomic_clear(&records_locked, __ATOMIC_RELEASE); }

static record *record_of(const void *there) {
  lock();
  record *r = records;
  while (r && r->there != there) r = r->next;
  unlock();
  return there ? r : NULL;
}

static tarn__moved *half_of(record *r, int half) { return (tarn__moved *)(void *)(r + 1) + (size_t)half * r->capacity; }

static void release(record *r) {
  for (int half = 0; half < HALVES; half++)
    if (r->sent[half]) cudaEventDestroy(r->sent[half]);
  cudaFreeHost(r);
}

void tarn__cuda_table_forget(const void *there) {
  lock();
  record **at = &records;
  while (*at && (*at)->there != there) at = &(*at)->next;
  record *found = *at;
  if (found) *at = found->next;
  unlock();
  if (found) release(found);
}

static size_t padded(size_t bytes) { return (bytes + 255) / 256 * 256; }

static int64_t all_chunks(const tarn__param_table *table) {
  int64_t chunks = 0;
  for (size_t i = 0; i < table->count; i++)
    chunks += tarn__cuda_chunks(table->params[i]->rows * table->params[i]->cols);
  return chunks;
}

static tarn_status make(const tarn__device *device, tarn__param_table *table) {
  const size_t list = table->count * sizeof(tarn__moved), capacity = table->count;
  const int64_t chunks = all_chunks(table);
  record *r = NULL;
  tarn__cuda_stream(NULL);
  TARN__CUDA(cudaHostAlloc((void **)&r, sizeof *r + HALVES * list, cudaHostAllocDefault),
             "allocating pinned memory of the host");
  memset(r, 0, sizeof *r + HALVES * list);
  r->capacity = capacity;
  r->chunk_capacity = chunks;
  tarn_status status = TARN_STATUS_OK;
  for (int half = 0; half < HALVES && status == TARN_STATUS_OK; half++) {
    const cudaError_t error = cudaEventCreateWithFlags(&r->sent[half], cudaEventDisableTiming);
    if (error != cudaSuccess) status = tarn__cuda_fail(error, "opening an event");
  }
  if (status == TARN_STATUS_OK)
    status = device->type->allocate(device, &r->there, TARN__MEMORY_OTHER,
                                    padded(list) + (size_t)chunks * sizeof(double), 1);
  if (status != TARN_STATUS_OK) {
    release(r);
    return status;
  }
  table->there = r->there;
  lock();
  r->next = records;
  records = r;
  unlock();
  return TARN_STATUS_OK;
}

static bool is_wide(const tarn__moved *p) {
  const uintptr_t floats = (uintptr_t)p->master | (uintptr_t)p->grad | (uintptr_t)p->grad_sum;
  const uintptr_t moments = (uintptr_t)p->moment1 | (uintptr_t)p->moment2, value = (uintptr_t)p->value;
  const uintptr_t moment = p->moments == TARN__MOMENTS_F32 ? 15u : p->moments == TARN__MOMENTS_BF16 ? 7u : 3u;
  return (floats & 15u) == 0 && (moments & moment) == 0 && (value & (p->is_bf16 ? 7u : 15u)) == 0;
}

void tarn__cuda_moved_set(tarn__moved *moved, const tarn__param *param) {
  const tarn__param_training *t = &param->training;
  memset(moved, 0, sizeof *moved);
  moved->master = t->master;
  moved->value = param->value == t->master ? NULL : param->value;
  moved->grad = (const float *)t->grad;
  moved->used_rows = t->used_rows;
  moved->moment1 = t->moment1;
  moved->moment2 = t->moment2;
  moved->grad_sum = tarn__adam_sums(param) ? t->grad_sum : NULL;
  moved->size = param->rows * param->cols;
  moved->cols = param->cols;
  moved->before = t->first;
  moved->number = t->number;
  moved->is_bf16 = param->dtype == TARN__BF16;
  moved->moments = t->moments;
  moved->wide = is_wide(moved);
}

// Lists the parameters that move in a half.
static void fill_half(record *r, int half, const tarn__param_table *table) {
  tarn__moved *to = half_of(r, half);
  r->count[half] = 0;
  r->chunks[half] = 0;
  for (size_t i = 0; i < table->count; i++) {
    if (!tarn__adam_moves(table->params[i])) continue;
    tarn__cuda_moved_set(to, table->params[i]);
    to->first_chunk = r->chunks[half];
    r->chunks[half] += tarn__cuda_chunks(to->size);
    r->count[half]++;
    to++;
  }
}

static tarn_status refresh(const tarn__device *device, tarn__param_table *table) {
  record *r = record_of(table->there);
  if (r && (r->capacity < table->count || r->chunk_capacity < all_chunks(table))) {
    device->type->free(device, table->there);  // forgets it
    table->there = NULL;
    r = NULL;
  }
  if (!r) TARN_TRY(make(device, table));
  if (!r) r = record_of(table->there);
  const int other = 1 - r->now;
  const cudaStream_t stream = tarn__cuda_stream(NULL);
  TARN__CUDA(cudaEventSynchronize(r->sent[other]), "computing");  // of the change before the last one
  fill_half(r, other, table);
  const size_t bytes = (size_t)r->count[other] * sizeof(tarn__moved);
  if (r->count[other] == r->count[r->now] && memcmp(half_of(r, other), half_of(r, r->now), bytes) == 0)
    return TARN_STATUS_OK;
  TARN__CUDA(cudaMemcpyAsync(r->there, half_of(r, other), bytes, cudaMemcpyHostToDevice, stream),
             "copying to the card");
  TARN__CUDA(cudaEventRecord(r->sent[other], stream), "recording an event");
  r->now = other;
  return TARN_STATUS_OK;
}

tarn_status tarn__cuda_table_of(tarn__moved_table *out, const tarn__param_table *table) {
  const record *r = record_of(table->there);
  TARN_REQUIRE(r, INTERNAL, "the device has no copy of a table of parameters");
  out->params = (const tarn__moved *)r->there;
  out->partial = (double *)(void *)((char *)r->there + padded(r->capacity * sizeof(tarn__moved)));
  out->chunks = r->chunks[r->now];
  out->count = r->count[r->now];
  return TARN_STATUS_OK;
}

void tarn__cuda_param_table_entries(tarn__device_type *type) { type->table = refresh; }

void tarn__cuda_optimiser_entries(tarn__device_type *type) {
  tarn__cuda_param_table_entries(type);
  tarn__cuda_adam_entries(type);
  tarn__cuda_sums_entries(type);
  tarn__cuda_ridge_entries(type);
}
