// Vocabularies in bands: copies, sums and merges of a few numbers a row; other nodes compute the products and
// softmaxes.
#include "device/cuda/cuda_kernels.h"

extern "C" {
#include "ops/adaptive.h"
}

enum { THREADS = 256 };

// --- adaptive_rows: rows as words of 16 bytes, or of 2

template <typename W>
static __global__ void place_rows_kernel(W *y, const W *x, const int32_t *to, int64_t rows, int64_t words) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * words) y[to[i / words] * words + i % words] = x[i];
}

static tarn_status adaptive_rows(const tarn__exec *exec, const tarn__node *node) {
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const tarn__tensor *y = node->out[0];
  const int64_t bytes = y->cols * (int64_t)tarn__dtype_size(y->dtype);
  const int32_t *to = (const int32_t *)node->in[TARN__ADAPTIVE_ROWS]->data;
  for (int k = 0; k < TARN__ADAPTIVE_PARTS && node->in[k]; k++) {
    const int64_t rows = node->in[k]->rows;
    if (bytes % 16 == 0 && (uintptr_t)node->in[k]->data % 16 == 0 && (uintptr_t)y->data % 16 == 0)
      TARN__LAUNCH(place_rows_kernel<uint4>, tarn__blocks(rows * (bytes / 16), THREADS), THREADS, 0, stream,
                   (uint4 *)y->data, (const uint4 *)node->in[k]->data, to, rows, bytes / 16);
    else
      TARN__LAUNCH(place_rows_kernel<uint16_t>, tarn__blocks(rows * (bytes / 2), THREADS), THREADS, 0, stream,
                   (uint16_t *)y->data, (const uint16_t *)node->in[k]->data, to, rows, bytes / 2);
    to += rows;
  }
  return TARN_STATUS_OK;
}

// --- loss_sum, in the order of the parts

// The tails' rows add to rows `to` of the sums, in fixed order because each launch meets a row once; `to` NULL: to the
// same.
static __global__ void add_losses_kernel(double *sums, const double *x, const int32_t *to, int64_t rows) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 2 * rows) sums[to ? 2 * (int64_t)to[i / 2] + i % 2 : i] += x[i];
}

static __global__ void copy_losses_kernel(double *sums, const double *x, int64_t rows) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 2 * rows) sums[i] = x[i];
}

static tarn_status loss_sum(const tarn__exec *exec, const tarn__node *node) {
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const tarn__tensor *rows = node->in[TARN__ADAPTIVE_ROWS];
  const int32_t *to = rows ? (const int32_t *)rows->data : NULL;
  double *sums = (double *)node->out[0]->data;
  TARN__LAUNCH(copy_losses_kernel, tarn__blocks(2 * node->out[0]->rows, THREADS), THREADS, 0, stream, sums,
               (const double *)node->in[0]->data, node->out[0]->rows);
  for (int k = 1; k < TARN__ADAPTIVE_PARTS && node->in[k]; k++) {
    TARN__LAUNCH(add_losses_kernel, tarn__blocks(2 * node->in[k]->rows, THREADS), THREADS, 0, stream, sums,
                 (const double *)node->in[k]->data, to, node->in[k]->rows);
    if (to) to += node->in[k]->rows;
  }
  return TARN_STATUS_OK;
}

// --- adaptive_scores

typedef struct band_scores {
  const float *head, *tail[TARN__ADAPTIVE_PARTS];
  int64_t ends[TARN__ADAPTIVE_PARTS];  // numbers of the words behind the tails; ends[-1]: words of the head
  int64_t rows, words, shortlist, head_cols;
  int tails;
  float *out;
} band_scores;

static __global__ void all_words_kernel(band_scores b) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= b.rows * b.words) return;
  const int64_t r = i / b.words, v = i % b.words;
  const float *own = b.head + r * b.head_cols;
  if (v < b.shortlist) {
    b.out[i] = own[v];
    return;
  }
  int64_t first = b.shortlist;
  for (int k = 0; k < b.tails; k++) {
    if (v < b.ends[k]) {
      b.out[i] = own[b.shortlist + k] + b.tail[k][r * (b.ends[k] - first) + v - first];
      return;
    }
    first = b.ends[k];
  }
}

static tarn_status all_words(const tarn__node *node, cudaStream_t stream) {
  band_scores b = {};
  b.head = (const float *)node->in[0]->data;
  b.head_cols = node->in[0]->cols;
  b.rows = node->out[0]->rows;
  b.words = node->out[0]->cols;
  b.out = (float *)node->out[0]->data;
  while (b.tails + 1 < TARN__ADAPTIVE_PARTS && node->in[b.tails + 1]) b.tails++;
  b.shortlist = b.head_cols - b.tails;
  for (int k = 0; k < b.tails; k++) {
    b.tail[k] = (const float *)node->in[k + 1]->data;
    b.ends[k] = (k > 0 ? b.ends[k - 1] : b.shortlist) + node->in[k + 1]->cols;
  }
  TARN__LAUNCH(all_words_kernel, tarn__blocks(b.rows * b.words, THREADS), THREADS, 0, stream, b);
  return TARN_STATUS_OK;
}

typedef struct band_merge {
  tarn__adaptive_merge merge;
  const float *values, *tail;
  const int32_t *ids, *tail_ids;
  int64_t rows, count, most;
  float *to;
  int32_t *to_ids;
} band_merge;

// Both lists are sorted, and so is the result: by decreasing value, ties by increasing id. One thread a row: they are
// as short as the beam.
static __global__ void merge_kernel(band_merge b) {
  const int64_t r = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, count = b.count;
  if (r >= b.rows) return;
  const tarn__adaptive_merge &m = b.merge;
  const float *values = b.values + r * (count + 1), *tail = b.tail + r * (b.most + 1);
  const int32_t *ids = b.ids + r * count, *tail_ids = b.tail_ids + r * b.most;
  float *to = b.to + r * count;
  int32_t *to_ids = b.to_ids + r * (count - 1);
  const int64_t base = m.shortlist > 0 ? m.shortlist : m.words;
  int64_t of_class = 0, i = 0, j = 0;
  while (of_class < count && ids[of_class] != base + m.tail) of_class++;
  const bool found = of_class < count, none = found && tail_ids[0] < 0;  // none: the row has no words
  for (int64_t n = 0; n < count - 1; n++) {
    if (i == of_class) i++;
    const bool own = !none && i < count && ids[i] >= 0, other = !none && found && j < b.most && tail_ids[j] >= 0;
    const int64_t id = own ? ids[i] + (ids[i] >= base ? m.words - base : 0) : -1;
    const int64_t word = other ? m.first + tail_ids[j] : -1;
    const float value = other ? values[of_class] + tail[j] : 0.0f;
    const bool takes = other && (!own || value > values[i] || (value == values[i] && word < id));
    to[n] = takes ? value : own ? values[i] : -INFINITY;
    to_ids[n] = (int32_t)(takes ? word : id);
    j += takes;
    i += !takes && own;
  }
  to[count - 1] = values[count] + (m.always || none ? tail[b.most] : 0.0f);
}

static tarn_status merge(const tarn__node *node, cudaStream_t stream) {
  band_merge b = {};
  b.merge = ((const tarn__adaptive_attr *)node->attr)->merge;
  b.values = (const float *)node->in[TARN__ADAPTIVE_VALUES]->data;
  b.ids = (const int32_t *)node->in[TARN__ADAPTIVE_IDS]->data;
  b.tail = (const float *)node->in[TARN__ADAPTIVE_TAIL_VALUES]->data;
  b.tail_ids = (const int32_t *)node->in[TARN__ADAPTIVE_TAIL_IDS]->data;
  b.rows = node->out[0]->rows;
  b.count = node->in[TARN__ADAPTIVE_IDS]->cols;
  b.most = node->in[TARN__ADAPTIVE_TAIL_IDS]->cols;
  b.to = (float *)node->out[0]->data;
  b.to_ids = (int32_t *)node->out[1]->data;
  TARN__LAUNCH(merge_kernel, tarn__blocks(b.rows, TARN__WARP_SIZE), (unsigned)TARN__WARP_SIZE, 0, stream, b);
  return TARN_STATUS_OK;
}

static tarn_status adaptive_scores(const tarn__exec *exec, const tarn__node *node) {
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  return ((const tarn__adaptive_attr *)node->attr)->top ? merge(node, stream) : all_words(node, stream);
}

void tarn__cuda_adaptive_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_ADAPTIVE_ROWS].run = adaptive_rows;
  kernels[TARN__OP_ADAPTIVE_SCORES].run = adaptive_scores;
  kernels[TARN__OP_LOSS_SUM].run = loss_sum;
}
