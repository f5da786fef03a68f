// Sorting by number: blocks of 1,024 items in shared memory (Batcher 1968), then merges of eight sorted lists at a
// time, where an item finds its place by its rank in each of them. Items of equal numbers stay in order.
#include "device/cuda/rows/by_number.h"

constexpr int TILE = 1024, LISTS = 8;

static __global__ void sort_tile_kernel(uint64_t *sorted, const int32_t *numbers, int64_t items) {
  TARN__SHARED(uint64_t, keys);
  const int64_t first = (int64_t)blockIdx.x * TILE;
  const int n = 2 * (int)blockDim.x, own = (int)threadIdx.x;
  for (int i = own; i < n; i += (int)blockDim.x)
    keys[i] = first + i < items ? (uint64_t)(uint32_t)numbers[first + i] << 32 | (uint64_t)(first + i) : ~(uint64_t)0;
  __syncthreads();
  for (int size = 2; size <= n; size *= 2)
    for (int step = size / 2; step > 0; step /= 2) {
      const int i = 2 * own - (own & (step - 1)), j = i + step;
      const uint64_t a = keys[i], b = keys[j];
      if ((a > b) == ((i & size) == 0)) {
        keys[i] = b;
        keys[j] = a;
      }
      __syncthreads();
    }
  for (int i = own; i < n; i += (int)blockDim.x)
    if (first + i < items) sorted[first + i] = keys[i];
}

static __global__ void merge_lists_kernel(uint64_t *to, const uint64_t *from, int64_t items, int64_t length) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= items) return;
  const uint64_t key = from[i];
  const int64_t list = i / length, group = list / LISTS * LISTS;
  int64_t place = group * length + i % length;
  for (int64_t other = group; other < group + LISTS && other * length < items; other++) {
    if (other == list) continue;
    const int64_t begin = other * length;
    int64_t low = begin, high = begin + length < items ? begin + length : items;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (from[middle] < key)
        low = middle + 1;
      else
        high = middle;
    }
    place += low - begin;
  }
  to[place] = key;
}

tarn_status tarn__sort_by_number(uint64_t **sorted, void *scratch, const int32_t *numbers, int64_t items,
                                 cudaStream_t stream) {
  uint64_t *now = (uint64_t *)scratch, *next = (uint64_t *)((char *)scratch + tarn__sorted_bytes(items));
  int threads = TARN__WARP_SIZE;
  while (threads < TILE / 2 && 2 * threads < items) threads *= 2;
  TARN__LAUNCH(sort_tile_kernel, tarn__blocks(items, TILE), threads, 2 * threads * sizeof(uint64_t), stream, now,
               numbers, items);
  for (int64_t length = TILE; length < items; length *= LISTS) {
    TARN__LAUNCH(merge_lists_kernel, tarn__blocks(items, 256), 256, 0, stream, next, now, items, length);
    uint64_t *const other = now;
    now = next;
    next = other;
  }
  *sorted = now;
  return TARN_STATUS_OK;
}

struct cleared {
  float *grad;
  const uint8_t *used;
  int64_t cols;
  bool whole;
  __device__ void operator()(int64_t row, int64_t column, int left) const {
    const float zeros[TARN__EIGHT] = {0};
    if (used[row]) tarn__write8(grad + row * cols + column, zeros, left, whole);
  }
};

tarn_status tarn__table_clear(const tarn__param *table, cudaStream_t stream) {
  float *grad = (float *)table->training.grad;
  uint8_t *used = table->training.used_rows;
  if (!used) {
    TARN__CUDA(cudaMemsetAsync(grad, 0, (size_t)(table->rows * table->cols) * sizeof(float), stream), "clearing");
    return TARN_STATUS_OK;
  }
  if (!table->training.planned) {
    const cleared each = {grad, used, table->cols, tarn__whole_eights(table->rows, table->cols, grad)};
    TARN_TRY(tarn__each8(each, table->rows, table->cols, stream));
  }
  TARN__CUDA(cudaMemsetAsync(used, 0, (size_t)table->rows, stream), "clearing");
  return TARN_STATUS_OK;
}

static __global__ void use_rows_kernel(uint8_t *used, const int32_t *numbers, int64_t items) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < items && numbers[i] >= 0) used[numbers[i]] = 1;
}

tarn_status tarn__use_rows(uint8_t *used, const int32_t *numbers, int64_t items, cudaStream_t stream) {
  TARN__LAUNCH(use_rows_kernel, tarn__blocks(items, 256), 256, 0, stream, used, numbers, items);
  return TARN_STATUS_OK;
}
