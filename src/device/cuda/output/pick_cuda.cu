// Logits in memory: changed at a few tokens, a block a row; the best of them; and log-probabilities of given tokens.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/output/output_rows.h"

extern "C" {
#include "ops/adjust.h"
#include "ops/ops.h"
#include "ops/output_top.h"
#include "ops/pick.h"
}

static __global__ void adjust_kernel(float *scores, const float *logits, int64_t words, int64_t rows,
                                     const int32_t *edits) {
  const int64_t r = blockIdx.x;
  float *to = scores + r * words;
  const int32_t *first = edits + rows + 1;
  for (int64_t i = threadIdx.x; i < words; i += blockDim.x) to[i] = logits[r * words + i];
  __syncthreads();
  for (int64_t i = edits[r] + (int64_t)threadIdx.x; i < edits[r + 1]; i += blockDim.x) {
    const int32_t *edit = first + i * TARN__EDIT_WORDS;
    to[edit[0]] = (float)tarn__adjusted((double)to[edit[0]], edit);
  }
}

static tarn_status adjust(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *logits = node->in[TARN__ADJUST_LOGITS];
  if (logits->rows == 0) return TARN_STATUS_OK;
  TARN__LAUNCH(adjust_kernel, (unsigned)logits->rows, tarn__row_threads(logits->cols), 0,
               tarn__cuda_stream(exec->stream), (float *)node->out[0]->data, (const float *)logits->data, logits->cols,
               logits->rows, (const int32_t *)node->in[TARN__ADJUST_EDITS]->data);
  return TARN_STATUS_OK;
}

static tarn_status best(const tarn__exec *exec, const tarn__node *node) {
  const tarn__output_top_attr *attr = (const tarn__output_top_attr *)node->attr;
  const tarn__tensor *logits = node->in[TARN__PICK_LOGITS];
  tarn__top_rows top = {};
  if (logits->rows == 0) return TARN_STATUS_OK;
  top.logits = (const float *)logits->data;
  top.ld = top.words = logits->cols;
  top.rows = logits->rows;
  top.best = attr->best;
  top.always = attr->always;
  top.normalise = true;
  top.values = (float *)node->out[0]->data;
  top.ids = (int32_t *)node->out[1]->data;
  return tarn__cuda_top_rows(&top, tarn__cuda_stream(exec->stream));
}

typedef struct pick_work {
  const float *logits;
  const int32_t *ids, *numbers;
  int64_t words, wanted;
  int32_t always;
  float *out;
} pick_work;

static __global__ void pick_kernel(pick_work w) {
  TARN__SHARED(double, sums);
  const int64_t r = blockIdx.x;
  const float *row = w.logits + w.numbers[r] * w.words;
  const tarn__softmax all = tarn__softmax_of(row, w.words, w.words % 4 == 0, sums);
  const float log_sum = all.most + logf(all.sum);
  for (int64_t i = threadIdx.x; i <= w.wanted; i += blockDim.x) {
    const int64_t id = i < w.wanted ? w.ids[r * w.wanted + i] : w.always;
    w.out[r * (w.wanted + 1) + i] = id < 0 || id >= w.words ? -INFINITY : row[id] - log_sum;
  }
}

static tarn_status pick(const tarn__exec *exec, const tarn__node *node) {
  const tarn__tensor *logits = node->in[TARN__PICK_LOGITS], *ids = node->in[TARN__PICK_IDS];
  pick_work w = {};
  if (ids->rows == 0) return TARN_STATUS_OK;
  w.logits = (const float *)logits->data;
  w.ids = (const int32_t *)ids->data;
  w.numbers = (const int32_t *)node->in[TARN__PICK_NUMBERS]->data;
  w.words = logits->cols;
  w.wanted = ids->cols;
  w.always = ((const tarn__pick_attr *)node->attr)->always;
  w.out = (float *)node->out[0]->data;
  TARN__LAUNCH(pick_kernel, (unsigned)ids->rows, tarn__row_threads(w.words), TARN__SUMS_BYTES,
               tarn__cuda_stream(exec->stream), w);
  return TARN_STATUS_OK;
}

void tarn__cuda_pick_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_ADJUST_ROWS].run = adjust;
  kernels[TARN__OP_BEST_ROWS].run = best;
  kernels[TARN__OP_PICK_ROWS].run = pick;
}
