// Products with frozen sparse matrices that are stored as their entries, and their transposed.
#include "device/cuda/recurrence/recurrence_entries.h"

extern "C" {
#include "graph/entries.h"
}

enum { WARPS = 8, THREADS = WARPS * 32 };

tarn__sparse_rows tarn__sparse_of(const tarn__tensor *weight) {
  const tarn__entries entries = tarn__entries_at(weight->param, weight->data);
  tarn__sparse_rows m = {};
  m.rows = weight->rows;
  m.starts = entries.starts;
  m.columns = entries.columns;
  m.values = (const float *)entries.values;
  return m;
}

template <typename T>
struct operand_of {
  const T *a;
  int64_t ld;
  __device__ float operator()(int32_t j) const { return tarn__get(a[j * ld]); }
};

// A warp has one row of the matrix and LANES sequences, side by side in memory; the lanes of a sequence divide its
// entries.
template <typename T, int LANES>
static __global__ void sparse_product_kernel(tarn__sparse_product p) {
  constexpr int ENTRY_LANES = TARN__WARP_SIZE / LANES;
  const int64_t warp = (int64_t)blockIdx.x * WARPS + threadIdx.x / TARN__WARP_SIZE;
  const int lane = (int)threadIdx.x % TARN__WARP_SIZE;
  const int64_t tiles = (p.count + LANES - 1) / LANES, i = warp / tiles, q = warp % tiles * LANES + lane % LANES;
  if (i >= p.matrix.rows) return;  // a whole warp
  const operand_of<T> at = {(const T *)p.a + (q < p.count ? q : 0), p.a_ld};
  const float sum = tarn__entries_sum<ENTRY_LANES, LANES>(p.matrix, i, lane / LANES, at);
  if (lane >= LANES || q >= p.count) return;
  float *to = p.c + q * p.c_ld + i * p.c_step;
  *to = p.accumulate ? *to + sum : sum;
}

template <typename T, int LANES>
static tarn_status run_lanes(const tarn__sparse_product *p, cudaStream_t stream) {
  const int64_t warps = p->matrix.rows * ((p->count + LANES - 1) / LANES);
  TARN__LAUNCH((sparse_product_kernel<T, LANES>), tarn__blocks(warps, WARPS), (unsigned)THREADS, 0, stream, *p);
  return TARN_STATUS_OK;
}

template <typename T>
static tarn_status run(const tarn__sparse_product *p, cudaStream_t stream) {
  if (p->count <= 2) return run_lanes<T, 2>(p, stream);
  return p->count <= 8 ? run_lanes<T, 8>(p, stream) : run_lanes<T, 32>(p, stream);
}

tarn_status tarn__cuda_sparse_product(const tarn__sparse_product *product, tarn__dtype dtype, cudaStream_t stream) {
  return TARN__BY_DTYPE(run, dtype, product, stream);
}

// --- the transposed: entries are counted by column, placed in any order, and then put where the number of smaller rows
// in their column says.

typedef struct transposing {
  tarn__sparse_rows from;
  int32_t *starts, *cursor;        // [rows + 1], [rows]
  int32_t *row, *column, *source;  // [entries] in any order within a column
  int32_t *columns;                // the transposed
  float *values;
} transposing;

static __global__ void count_columns_kernel(transposing t) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= t.from.rows) return;
  for (int32_t e = t.from.starts[i]; e < t.from.starts[i + 1]; e++) atomicAdd(&t.cursor[t.from.columns[e]], 1);
}

// starts = the sums of the counts before; counts become 0. One block.
static __global__ void sum_counts_kernel(transposing t) {
  TARN__SHARED(int32_t, sums);
  const int64_t each = (t.from.rows + blockDim.x - 1) / blockDim.x, first = threadIdx.x * each;
  const int64_t end = first + each < t.from.rows ? first + each : t.from.rows;
  int32_t sum = 0;
  for (int64_t i = first; i < end; i++) sum += t.cursor[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  sum = 0;
  for (int before = 0; before < (int)threadIdx.x; before++) sum += sums[before];
  for (int64_t i = first; i < end; i++) {
    const int32_t count = t.cursor[i];
    t.starts[i] = sum;
    t.cursor[i] = 0;
    sum += count;
  }
  if (first < t.from.rows && end == t.from.rows) t.starts[end] = sum;
}

static __global__ void place_entries_kernel(transposing t) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= t.from.rows) return;
  for (int32_t e = t.from.starts[i]; e < t.from.starts[i + 1]; e++) {
    const int32_t column = t.from.columns[e], at = t.starts[column] + atomicAdd(&t.cursor[column], 1);
    t.row[at] = (int32_t)i;
    t.column[at] = column;
    t.source[at] = e;
  }
}

static __global__ void order_entries_kernel(transposing t) {
  const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= t.starts[t.from.rows]) return;
  const int32_t first = t.starts[t.column[at]], end = t.starts[t.column[at] + 1], row = t.row[at];
  int32_t place = first;
  for (int32_t other = first; other < end; other++) place += t.row[other] < row;
  t.columns[place] = row;
  t.values[place] = t.from.values[t.source[at]];
}

// Lays it out in a room; without a room, only *bytes is of use.
static transposing lay_out(const tarn__tensor *weight, char *room, size_t *bytes) {
  const int64_t rows = weight->rows, entries = weight->param->entries;
  size_t used = 0;
  int32_t *part[6];
  const int64_t counts[] = {rows + 1, rows, entries, entries, entries, entries};
  for (int i = 0; i < 6; i++) {
    part[i] = room ? (int32_t *)(room + used) : NULL;
    used += tarn__entries_aligned((size_t)counts[i] * sizeof(int32_t));
  }
  transposing t = {tarn__sparse_of(weight), part[0], part[1], part[2], part[3], part[4], part[5], NULL};
  t.values = room ? (float *)(room + used) : NULL;
  *bytes = used + tarn__entries_aligned((size_t)entries * sizeof(float));
  return t;
}

size_t tarn__sparse_transpose_bytes(const tarn__tensor *weight) {
  size_t bytes = 0;
  if (weight->param->entries > 0) (void)lay_out(weight, NULL, &bytes);
  return bytes;
}

tarn_status tarn__sparse_transpose(tarn__sparse_rows *transposed, const tarn__tensor *weight, void *room,
                                   cudaStream_t stream) {
  size_t bytes;
  const transposing t = lay_out(weight, (char *)room, &bytes);
  const unsigned blocks = tarn__blocks(t.from.rows, THREADS), threads = THREADS;
  TARN__CUDA(cudaMemsetAsync(t.cursor, 0, (size_t)t.from.rows * sizeof(int32_t), stream), "clearing counts");
  TARN__LAUNCH(count_columns_kernel, blocks, threads, 0, stream, t);
  TARN__LAUNCH(sum_counts_kernel, 1u, threads, THREADS * sizeof(int32_t), stream, t);
  TARN__LAUNCH(place_entries_kernel, blocks, threads, 0, stream, t);
  TARN__LAUNCH(order_entries_kernel, tarn__blocks(weight->param->entries, THREADS), threads, 0, stream, t);
  transposed->starts = t.starts;
  transposed->columns = t.columns;
  transposed->values = t.values;
  transposed->rows = t.from.rows;
  return TARN_STATUS_OK;
}
