// Sums of rows by number, to[numbers[item]] (+)= the sum of row(item), as for the gradient of a table that rows were
// looked up in: in a fixed order, without atomic additions, however often a number occurs. Items are sorted by number
// and cut into chunks; a run of equal numbers within a chunk is added at once, and of one that crosses chunks the parts
// are added by the chunk that it begins in.
#ifndef TARN_DEVICE_CUDA_ROWS_BY_NUMBER_H
#define TARN_DEVICE_CUDA_ROWS_BY_NUMBER_H

#include "device/cuda/rows/rows.h"

// Items of a chunk; threads of a block, each with eight columns.
constexpr int TARN__CHUNK = 16, TARN__CHUNK_THREADS = 64;

static inline size_t tarn__sorted_bytes(int64_t items) { return ((size_t)items * sizeof(uint64_t) + 63) / 64 * 64; }

// Scratch: items twice, and two rows of sums for each chunk.
static inline size_t tarn__by_number_bytes(int64_t items, int64_t cols) {
  const int64_t chunks = (items + TARN__CHUNK - 1) / TARN__CHUNK;
  return 2 * tarn__sorted_bytes(items) + (size_t)(2 * chunks * tarn__eights_of(cols) * TARN__EIGHT) * sizeof(float);
}

// *sorted, in scratch: number << 32 | item, rising. Numbers below 0 come last (by_number_cuda.cu).
tarn_status tarn__sort_by_number(uint64_t **sorted, void *scratch, const int32_t *numbers, int64_t items,
                                 cudaStream_t stream);

// Before the first gradient of an update is added to a table: clears the rows in use by the last one, if known, else
// all. Rows of a gradient in the workspace are not cleared: those not in use are overwritten.
tarn_status tarn__table_clear(const tarn__param *table, cudaStream_t stream);

// used[numbers[item]] = 1.
tarn_status tarn__use_rows(uint8_t *used, const int32_t *numbers, int64_t items, cudaStream_t stream);

template <typename O, typename F>
struct tarn__by_number {
  F row;  // row(v [8], item, column, left)
  O *to;
  const uint8_t *used;  // of `to`: rows where it is 0 are overwritten; NULL: all are added to, or overwritten
  bool add, whole;
  const uint64_t *sorted;
  float *edges;
  int64_t items, cols;

  __device__ int32_t number(int64_t at) const { return (int32_t)(sorted[at] >> 32); }
  __device__ float *edge(int64_t chunk, int which, int64_t column) const {
    return edges + (2 * chunk + which) * tarn__eights_of(cols) * TARN__EIGHT + column;
  }
  __device__ void finish(int32_t id, int64_t column, int left, float sum[TARN__EIGHT]) const {
    if (id < 0) return;
    O *at = to + id * cols + column;
    if (used ? used[id] != 0 : add) {
      float before[TARN__EIGHT];
      tarn__read8(before, at, left, whole);
      for (int i = 0; i < TARN__EIGHT; i++) sum[i] += before[i];
    }
    tarn__write8(at, sum, left, whole);
  }
};

template <typename O, typename F>
static __global__ void by_number_kernel(const tarn__by_number<O, F> a) {
  const int64_t chunk = blockIdx.x, first = chunk * TARN__CHUNK;
  const int64_t last = first + TARN__CHUNK < a.items ? first + TARN__CHUNK : a.items;
  const int64_t column = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * TARN__EIGHT;
  const int left = a.cols - column < TARN__EIGHT ? (int)(a.cols - column) : TARN__EIGHT;
  if (left <= 0) return;
  float sum[TARN__EIGHT] = {0};
  int32_t id = a.number(first);
  bool begun = first > 0 && a.number(first - 1) == id;  // before this chunk
  for (int64_t at = first; at < last; at++) {
    const int32_t now = a.number(at);
    if (now != id) {
      if (begun)
        tarn__write8(a.edge(chunk, 0, column), sum, TARN__EIGHT, true);
      else
        a.finish(id, column, left, sum);
      for (int i = 0; i < TARN__EIGHT; i++) sum[i] = 0.0f;
      id = now;
      begun = false;
    }
    if (id < 0) return;
    float v[TARN__EIGHT];
    a.row(v, (int64_t)(uint32_t)a.sorted[at], column, left);
    for (int i = 0; i < TARN__EIGHT; i++) sum[i] += v[i];
  }
  const bool goes_on = last < a.items && a.number(last) == id;
  if (begun || goes_on)
    tarn__write8(a.edge(chunk, begun ? 0 : 1, column), sum, TARN__EIGHT, true);
  else
    a.finish(id, column, left, sum);
}

// The runs that begin in a chunk and go on after it.
template <typename O, typename F>
static __global__ void by_number_edges_kernel(const tarn__by_number<O, F> a) {
  const int64_t chunk = blockIdx.x, next = (chunk + 1) * TARN__CHUNK;
  const int64_t column = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * TARN__EIGHT;
  const int left = a.cols - column < TARN__EIGHT ? (int)(a.cols - column) : TARN__EIGHT;
  if (left <= 0 || next >= a.items) return;
  const int32_t id = a.number(next);
  if (id < 0 || a.number(next - 1) != id) return;
  const int64_t first = chunk * TARN__CHUNK;
  if (first > 0 && a.number(first) == id && a.number(first - 1) == id) return;
  float sum[TARN__EIGHT];
  tarn__read8(sum, a.edge(chunk, 1, column), TARN__EIGHT, true);
  for (int64_t at = next, c = chunk + 1; at < a.items && a.number(at) == id; at += TARN__CHUNK, c++) {
    float v[TARN__EIGHT];
    tarn__read8(v, a.edge(c, 0, column), TARN__EIGHT, true);
    for (int i = 0; i < TARN__EIGHT; i++) sum[i] += v[i];
  }
  a.finish(id, column, left, sum);
}

// The sums. `add`: rows are added to; else overwritten, unless `used` says of each. Then rows are marked as used.
template <typename O, typename F>
static tarn_status tarn__sum_by_number(O *to, int64_t cols, bool add, uint8_t *used, const F &row,
                                       const int32_t *numbers, int64_t items, void *scratch, cudaStream_t stream) {
  if (items == 0) return TARN_STATUS_OK;
  tarn__by_number<O, F> a = {row, to, used, add, tarn__whole_eights(2, cols, to), NULL, NULL, items, cols};
  uint64_t *sorted;
  TARN_TRY(tarn__sort_by_number(&sorted, scratch, numbers, items, stream));
  a.sorted = sorted;
  a.edges = (float *)((char *)scratch + 2 * tarn__sorted_bytes(items));
  const dim3 blocks(tarn__blocks(items, TARN__CHUNK), tarn__blocks(tarn__eights_of(cols), TARN__CHUNK_THREADS));
  TARN__LAUNCH((by_number_kernel<O, F>), blocks, TARN__CHUNK_THREADS, 0, stream, a);
  TARN__LAUNCH((by_number_edges_kernel<O, F>), blocks, TARN__CHUNK_THREADS, 0, stream, a);
  return used ? tarn__use_rows(used, numbers, items, stream) : TARN_STATUS_OK;
}

// The gradient of a table, float [rows, cols].
template <typename F>
static tarn_status tarn__table_gradient(tarn__param *table, const F &row, const int32_t *numbers, int64_t items,
                                        void *scratch, cudaStream_t stream) {
  if (!tarn__param_accumulate(table)) TARN_TRY(tarn__table_clear(table, stream));
  return tarn__sum_by_number((float *)table->training.grad, table->cols, true, table->training.used_rows, row, numbers,
                             items, scratch, stream);
}

#endif
