// The output layer: losses with their gradients, in chunks of rows, and the log-probabilities of all words.
//
// For each chunk: logits = x table^T + bias in fp32; each row's loss, and over its logits their gradients in the type
// of the products; dtable += dlogits^T x; dbias += sums of dlogits; dx = dlogits table, which comes last, because it
// may overwrite x.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/output/output_rows.h"
#include "device/cuda/product.h"

extern "C" {
#include "ops/output.h"
#include "ops/output_top.h"
}

// Offsets in the scratch and sizes of a node.
typedef struct layout {
  int64_t rows, words, width, ld, chunk;
  bool wants_grad;
  size_t logits, losses, partial, bytes;
} layout;

static layout layout_of(const tarn__node *node) {
  layout l = {};
  l.rows = node->in[0]->rows;
  l.words = node->in[1]->rows;
  l.width = node->in[1]->cols;
  l.ld = tarn__logits_ld(l.words);
  l.chunk = tarn__chunk_rows(l.rows, l.ld * (int64_t)sizeof(float));
  l.wants_grad = node->out[1] || node->dparam[0] || node->dparam[1];
  l.logits = tarn__room_after(&l.bytes, l.chunk * l.ld, sizeof(float));
  l.losses = tarn__room_after(&l.bytes, node->out[2] ? 0 : 2 * l.rows, sizeof(double));
  l.partial = tarn__room_after(&l.bytes, node->dparam[1] ? (int64_t)tarn__column_sums_bytes(l.words) : 0, 1);
  return l;
}

static size_t loss_scratch(const tarn__node *node, int threads) {
  (void)threads;
  return layout_of(node).bytes;
}

typedef struct loss_rows {
  float *logits;  // overwritten by the gradients, whose rows take as many bytes
  int64_t ld, words;
  const int32_t *targets;
  double *losses;
  double smoothing;
  float scale;
  bool wants_grad;
} loss_rows;

// One block a row.
template <typename T>
static __global__ void loss_kernel(loss_rows w) {
  TARN__SHARED(double, shared);
  float *row = w.logits + (int64_t)blockIdx.x * w.ld;
  const int32_t target = w.targets[blockIdx.x];
  const tarn__softmax s = tarn__softmax_of(row, w.words, true, shared);
  if (threadIdx.x == 0) {
    const double log_sum = (double)s.most + log((double)s.sum), nll = log_sum - (double)row[target];
    w.losses[2 * blockIdx.x] = (1.0 - w.smoothing) * nll + w.smoothing * (log_sum - s.plain / (double)w.words);
    w.losses[2 * blockIdx.x + 1] = nll;
  }
  if (!w.wants_grad) return;
  __syncthreads();  // the target's logit has been read
  const float share = 1.0f / s.sum, rest = (float)(w.smoothing / (double)w.words);
  const float own = (float)(w.smoothing / (double)w.words + (1.0 - w.smoothing));
  const int64_t fours = (w.words + 3) / 4;
  for (int64_t first = 0; first < fours; first += blockDim.x) {
    const int64_t i = first + threadIdx.x, j = 4 * i;
    float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (i < fours) x = reinterpret_cast<const float4 *>(row)[i];
    x.x = (expf(x.x - s.most) * share - (j == target ? own : rest)) * w.scale;
    x.y = (expf(x.y - s.most) * share - (j + 1 == target ? own : rest)) * w.scale;
    x.z = (expf(x.z - s.most) * share - (j + 2 == target ? own : rest)) * w.scale;
    x.w = (expf(x.w - s.most) * share - (j + 3 == target ? own : rest)) * w.scale;
    // A bf16 gradient lies where another thread's logit was.
    if (sizeof(T) < sizeof(float)) __syncthreads();
    if (i < fours) tarn__set_four(reinterpret_cast<T *>(row), i, x);
  }
}

// The rows of a tensor from number `first` on.
static char *row_of(const tarn__tensor *tensor, int64_t first) {
  return (char *)tensor->data + (size_t)(first * tensor->cols) * tarn__dtype_size(tensor->dtype);
}

// What the three products of a layer have in common.
static tarn__product product_of(const tarn__node *node) {
  tarn__product p = {};
  p.dtype = node->in[0]->dtype;
  p.fp32 = node->fp32;
  p.alpha = 1.0f;
  p.batch = 1;
  return p;
}

static tarn_status logits_of(float *logits, const tarn__node *node, int64_t ld, int64_t first, int64_t rows,
                             cudaStream_t stream) {
  const tarn__tensor *table = node->in[1], *bias = node->in[2];
  tarn__product p = product_of(node);
  p.m = rows;
  p.n = table->rows;
  p.k = table->cols;
  p.a = row_of(node->in[0], first);
  p.b = table->data;
  p.c = logits;
  p.lda = p.ldb = p.k;
  p.ldc = ld;
  p.transpose_b = true;
  p.out = TARN__F32;
  p.bias = bias ? (const float *)bias->data : NULL;
  return tarn__cuda_product(&p, stream);
}

// From the dlogits of a chunk.
static tarn_status chunk_gradients(const tarn__node *node, const layout *l, int64_t first, int64_t rows,
                                   const bool accumulate[2], cudaStream_t stream) {
  const tarn__dtype dtype = node->in[0]->dtype;
  char *scratch = (char *)node->scratch;
  const int64_t ld = l->ld * (int64_t)(sizeof(float) / tarn__dtype_size(dtype));
  if (node->dparam[0]) {
    tarn__product p = product_of(node);
    p.m = l->words;
    p.n = l->width;
    p.k = rows;
    p.a = scratch + l->logits;
    p.b = row_of(node->in[0], first);
    p.c = node->dparam[0]->training.grad;
    p.lda = ld;
    p.ldb = p.ldc = l->width;
    p.transpose_a = true;
    p.out = TARN__F32;
    p.beta = accumulate[0] || first > 0 ? 1.0f : 0.0f;
    TARN_TRY(tarn__cuda_product(&p, stream));
  }
  if (node->dparam[1])
    TARN_TRY(tarn__cuda_column_sums((float *)node->dparam[1]->training.grad, scratch + l->logits, dtype, ld, rows,
                                    l->words, NULL, accumulate[1] || first > 0, (float *)(scratch + l->partial),
                                    stream));
  if (!node->out[1] || rows == 0) return TARN_STATUS_OK;
  tarn__product p = product_of(node);
  p.m = rows;
  p.n = l->width;
  p.k = l->words;
  p.a = scratch + l->logits;
  p.b = node->in[1]->data;
  p.c = row_of(node->out[1], first);
  p.lda = ld;
  p.ldb = p.ldc = l->width;
  p.out = node->out[1]->dtype;
  return tarn__cuda_product(&p, stream);
}

static tarn_status loss(const tarn__exec *exec, const tarn__node *node) {
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const tarn__output_attr *attr = (const tarn__output_attr *)node->attr;
  const layout l = layout_of(node);
  char *scratch = (char *)node->scratch;
  double *losses = node->out[2] ? (double *)node->out[2]->data : (double *)(scratch + l.losses);
  bool accumulate[2];
  for (int i = 0; i < 2; i++) accumulate[i] = node->dparam[i] && tarn__param_accumulate(node->dparam[i]);
  int64_t first = 0;
  do {  // without rows an empty chunk, which clears the gradients
    const int64_t rows = l.rows - first < l.chunk ? l.rows - first : l.chunk;
    loss_rows w = {};
    w.logits = (float *)(scratch + l.logits);
    w.ld = l.ld;
    w.words = l.words;
    w.targets = (const int32_t *)node->in[3]->data + first;
    w.losses = losses + 2 * first;
    w.smoothing = attr->smoothing;
    w.scale = (float)attr->grad_scale;
    w.wants_grad = l.wants_grad;
    TARN_TRY(logits_of(w.logits, node, l.ld, first, rows, stream));
    if (node->in[0]->dtype == TARN__BF16)
      TARN__LAUNCH(loss_kernel<tarn__bf16>, (unsigned)rows, tarn__row_threads(l.words), TARN__SUMS_BYTES, stream, w);
    else
      TARN__LAUNCH(loss_kernel<float>, (unsigned)rows, tarn__row_threads(l.words), TARN__SUMS_BYTES, stream, w);
    if (l.wants_grad) TARN_TRY(chunk_gradients(node, &l, first, rows, accumulate, stream));
    first += rows;
  } while (first < l.rows);
  return tarn__cuda_loss_totals((double *)node->out[0]->data, losses, 1, l.rows, stream);
}

static __global__ void log_softmax_kernel(float *logits, int64_t words, bool aligned) {
  TARN__SHARED(double, shared);
  float *row = logits + (int64_t)blockIdx.x * words;
  const tarn__softmax s = tarn__softmax_of(row, words, aligned, shared);
  const float log_sum = s.most + logf(s.sum);
  for (int64_t j = threadIdx.x; j < words; j += blockDim.x) row[j] -= log_sum;
}

static tarn_status log_probabilities(const tarn__exec *exec, const tarn__node *node) {
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  float *out = (float *)node->out[0]->data;
  const int64_t rows = node->out[0]->rows, words = node->out[0]->cols;
  if (rows == 0) return TARN_STATUS_OK;
  TARN_TRY(logits_of(out, node, words, 0, rows, stream));
  if (((const tarn__output_log_attr *)node->attr)->raw) return TARN_STATUS_OK;
  TARN__LAUNCH(log_softmax_kernel, (unsigned)rows, tarn__row_threads(words), TARN__SUMS_BYTES, stream, out, words,
               words % 4 == 0);
  return TARN_STATUS_OK;
}

// Rows of a chunk of output_top.
static int64_t top_chunk(const tarn__node *node) {
  return tarn__chunk_rows(node->in[0]->rows, tarn__logits_ld(node->in[1]->rows) * (int64_t)sizeof(float));
}

static size_t top_scratch(const tarn__node *node, int threads) {
  (void)threads;
  return (size_t)(top_chunk(node) * tarn__logits_ld(node->in[1]->rows)) * sizeof(float);
}

static tarn_status top(const tarn__exec *exec, const tarn__node *node) {
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const tarn__output_top_attr *attr = (const tarn__output_top_attr *)node->attr;
  const int64_t rows = node->in[0]->rows, chunk = top_chunk(node);
  tarn__top_rows t = {};
  t.logits = (const float *)node->scratch;
  t.words = node->in[1]->rows;
  t.ld = tarn__logits_ld(t.words);
  t.best = attr->best;
  t.always = attr->always;
  t.normalise = true;
  for (int64_t first = 0; first < rows; first += chunk) {
    t.rows = rows - first < chunk ? rows - first : chunk;
    t.values = (float *)node->out[0]->data + first * (t.best + 1);
    t.ids = (int32_t *)node->out[1]->data + first * t.best;
    TARN_TRY(logits_of((float *)node->scratch, node, t.ld, first, t.rows, stream));
    TARN_TRY(tarn__cuda_top_rows(&t, stream));
  }
  return TARN_STATUS_OK;
}

void tarn__cuda_output_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_OUTPUT_LOSS].run = loss;
  kernels[TARN__OP_OUTPUT_LOSS].scratch = loss_scratch;
  kernels[TARN__OP_OUTPUT_LOG_PROBABILITIES].run = log_probabilities;
  kernels[TARN__OP_OUTPUT_TOP].run = top;
  kernels[TARN__OP_OUTPUT_TOP].scratch = top_scratch;
}
