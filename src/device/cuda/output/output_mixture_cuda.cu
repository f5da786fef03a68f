// The output layer of a mixture of softmaxes, in chunks of rows: the logits of all softmaxes of a chunk in one product,
// then one block for each row. It replaces logits by their gradients, from which products compute those of the vectors
// and of the table.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/output/output_rows.h"
#include "device/cuda/product.h"

extern "C" {
#include "ops/output_mixture.h"
}

typedef struct layout {
  int64_t rows, words, width, mixtures, ld, chunk;
  bool wants_grad;
  size_t logits, log_p, losses, partial, bytes;  // log_p: of a chunk, [rows, ld]
} layout;

static tarn__mixture_mode mode_of(const tarn__node *node) { return ((const tarn__mixture_attr *)node->attr)->mode; }

static layout layout_of(const tarn__node *node) {
  layout l = {};
  const bool loss = mode_of(node) == TARN__MIXTURE_LOSS;
  l.rows = node->in[TARN__MIXTURE_H]->rows;
  l.words = node->in[TARN__MIXTURE_TABLE]->rows;
  l.width = node->in[TARN__MIXTURE_TABLE]->cols;
  l.mixtures = node->in[TARN__MIXTURE_PRIOR]->cols;
  l.ld = tarn__logits_ld(l.words);
  l.chunk = tarn__chunk_rows(l.rows, (l.mixtures + 1) * l.ld * (int64_t)sizeof(float));
  l.wants_grad =
      loss && (node->out[TARN__MIXTURE_DH] || node->out[TARN__MIXTURE_DPRIOR] || node->dparam[0] || node->dparam[1]);
  l.logits = tarn__room_after(&l.bytes, l.chunk * l.mixtures * l.ld, sizeof(float));
  l.log_p = tarn__room_after(&l.bytes, l.chunk * l.ld, sizeof(float));
  l.losses = tarn__room_after(&l.bytes, loss && !node->out[TARN__MIXTURE_ROWS] ? 2 * l.rows : 0, sizeof(double));
  l.partial = tarn__room_after(&l.bytes, node->dparam[1] ? (int64_t)tarn__column_sums_bytes(l.words) : 0, 1);
  return l;
}

static size_t scratch(const tarn__node *node, int threads) {
  (void)threads;
  return layout_of(node).bytes;
}

typedef struct mixture_rows {
  float *logits, *log_p;
  int64_t ld, log_p_ld, words;
  int mixtures;
  const void *prior;       // [rows, mixtures]
  void *dprior;            // or NULL
  const int32_t *targets;  // NULL: only log_p is wanted
  double *losses;
  double smoothing;
  float scale;
  bool wants_grad;
} mixture_rows;

typedef struct mixture_shared {
  double sums[TARN__WARP_SIZE];
  // Of each softmax: its largest logit; log pi - log sum exp(logit - largest), so that logit - most + shift is the log
  // of its part of the probability of a word; log pi; and Q of output_mixture.h.
  float most[TARN__MIXTURES_MOST], shift[TARN__MIXTURES_MOST], log_pi[TARN__MIXTURES_MOST], all[TARN__MIXTURES_MOST];
} mixture_shared;

template <typename T>
static __device__ void find_shifts(const mixture_rows &w, const float *logits, mixture_shared *s) {
  const T *prior = (const T *)w.prior + (int64_t)blockIdx.x * w.mixtures;
  float most = -FLT_MAX, sum = 0.0f;
  for (int k = 0; k < w.mixtures; k++) most = fmaxf(most, tarn__get(prior[k]));
  for (int k = 0; k < w.mixtures; k++) sum += expf(tarn__get(prior[k]) - most);
  const float priors = logf(sum);
  for (int k = 0; k < w.mixtures; k++) {
    const tarn__softmax own = tarn__softmax_of(logits + k * w.ld, w.words, true, s->sums);
    if (threadIdx.x > 0) continue;
    s->most[k] = own.most;
    s->log_pi[k] = (tarn__get(prior[k]) - most) - priors;
    s->shift[k] = s->log_pi[k] - logf(own.sum);
  }
  __syncthreads();
}

// The log of the probability of word v.
static __device__ __forceinline__ float log_p_of(const mixture_rows &w, const float *logits, const mixture_shared *s,
                                                 int64_t v) {
  tarn__softmax sum = {-FLT_MAX, 0.0f, 0.0};
  for (int k = 0; k < w.mixtures; k++) tarn__softmax_add(&sum, (logits[k * w.ld + v] - s->most[k]) + s->shift[k]);
  return sum.most + logf(sum.sum);
}

// The share of softmax k in the probability of word v.
static __device__ __forceinline__ float share_of(const mixture_rows &w, const float *logits, const float *log_p,
                                                 const mixture_shared *s, int k, int64_t v) {
  return expf(((logits[k * w.ld + v] - s->most[k]) + s->shift[k]) - log_p[v]);
}

// Q_k, the sum of the softmax's shares in the wanted words, and the gradient of the prior.
template <typename T>
static __device__ void find_shares(const mixture_rows &w, const float *logits, const float *log_p, int32_t target,
                                   mixture_shared *s) {
  for (int k = 0; k < w.mixtures; k++) {
    float shares = 0.0f;
    for (int64_t v = threadIdx.x; w.smoothing > 0.0 && v < w.words; v += blockDim.x)
      shares += share_of(w, logits, log_p, s, k, v);
    const double sum = w.smoothing > 0.0 ? tarn__block_sum((double)shares, s->sums) : 0.0;
    if (threadIdx.x > 0) continue;
    const double all =
        w.smoothing / (double)w.words * sum + (1.0 - w.smoothing) * (double)share_of(w, logits, log_p, s, k, target);
    s->all[k] = (float)all;
    if (w.dprior)
      tarn__set((T *)w.dprior + (int64_t)blockIdx.x * w.mixtures + k,
                (float)((double)w.scale * (exp((double)s->log_pi[k]) - all)));
  }
  __syncthreads();
}

// Replaces the logits of softmax k by their gradients in T, whose rows take as many bytes.
template <typename T>
static __device__ void differentiate(const mixture_rows &w, float *logits, const float *log_p, int32_t target, int k,
                                     const mixture_shared *s) {
  const float rest = (float)(w.smoothing / (double)w.words), own = (float)(1.0 - w.smoothing) + rest;
  const float of_softmax = s->shift[k] - s->log_pi[k], all = s->all[k];
  float *row = logits + k * w.ld;
  const int64_t fours = (w.words + 3) / 4;
  for (int64_t first = 0; first < fours; first += blockDim.x) {
    const int64_t i = first + threadIdx.x;
    float x[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int64_t j = 4 * i; j < 4 * i + 4 && j < w.words; j++) {
      const float z = row[j] - s->most[k];
      x[j % 4] =
          w.scale * (expf(z + of_softmax) * all - (j == target ? own : rest) * expf((z + s->shift[k]) - log_p[j]));
    }
    // A bf16 gradient lies where another thread's logit was.
    if (sizeof(T) < sizeof(float)) __syncthreads();
    if (i < fours) tarn__set_four(reinterpret_cast<T *>(row), i, make_float4(x[0], x[1], x[2], x[3]));
  }
}

// One block a row.
template <typename T>
static __global__ void mixture_kernel(mixture_rows w) {
  TARN__SHARED(mixture_shared, s);
  float *logits = w.logits + (int64_t)blockIdx.x * w.mixtures * w.ld;
  float *log_p = w.log_p + (int64_t)blockIdx.x * w.log_p_ld;
  find_shifts<T>(w, logits, s);
  double plain = 0.0;
  for (int64_t v = threadIdx.x; v < w.words; v += blockDim.x) {
    log_p[v] = log_p_of(w, logits, s, v);
    plain += (double)log_p[v];
  }
  if (!w.targets) return;
  plain = tarn__block_sum(plain, s->sums);  // and all of log_p is there
  const int32_t target = w.targets[blockIdx.x];
  if (threadIdx.x == 0) {
    const double nll = -(double)log_p[target];
    w.losses[2 * (int64_t)blockIdx.x] = (1.0 - w.smoothing) * nll - w.smoothing * plain / (double)w.words;
    w.losses[2 * (int64_t)blockIdx.x + 1] = nll;
  }
  if (!w.wants_grad) return;
  find_shares<T>(w, logits, log_p, target, s);
  for (int k = 0; k < w.mixtures; k++) differentiate<T>(w, logits, log_p, target, k, s);
}

// Row `first` of a tensor.
static char *row_of(const tarn__tensor *tensor, int64_t first) {
  return (char *)tensor->data + (size_t)(first * tensor->cols) * tarn__dtype_size(tensor->dtype);
}

static tarn__product product_of(const tarn__node *node) {
  tarn__product p = {};
  p.dtype = node->in[TARN__MIXTURE_H]->dtype;
  p.out = TARN__F32;
  p.fp32 = node->fp32;
  p.alpha = 1.0f;
  p.batch = 1;
  return p;
}

// The vectors of all softmaxes of a row are rows of one product.
static tarn_status logits_of(const tarn__node *node, const layout *l, int64_t first, int64_t rows,
                             cudaStream_t stream) {
  const tarn__tensor *bias = node->in[TARN__MIXTURE_BIAS];
  tarn__product p = product_of(node);
  p.m = rows * l->mixtures;
  p.n = l->words;
  p.k = p.lda = p.ldb = l->width;
  p.ldc = l->ld;
  p.a = row_of(node->in[TARN__MIXTURE_H], first);
  p.b = node->in[TARN__MIXTURE_TABLE]->data;
  p.c = (char *)node->scratch + l->logits;
  p.transpose_b = true;
  p.bias = bias ? (const float *)bias->data : NULL;
  return tarn__cuda_product(&p, stream);
}

static tarn_status finish_rows(const tarn__node *node, const layout *l, int64_t first, int64_t rows, double *losses,
                               cudaStream_t stream) {
  const tarn__mixture_attr *attr = (const tarn__mixture_attr *)node->attr;
  mixture_rows w = {};
  w.logits = (float *)((char *)node->scratch + l->logits);
  w.log_p = (float *)((char *)node->scratch + l->log_p);
  w.ld = w.log_p_ld = l->ld;
  w.words = l->words;
  w.mixtures = (int)l->mixtures;
  w.prior = row_of(node->in[TARN__MIXTURE_PRIOR], first);
  if (attr->mode == TARN__MIXTURE_LOG) {
    w.log_p = (float *)node->out[0]->data + first * l->words;
    w.log_p_ld = l->words;
  }
  if (attr->mode == TARN__MIXTURE_LOSS) {
    w.dprior = node->out[TARN__MIXTURE_DPRIOR] ? row_of(node->out[TARN__MIXTURE_DPRIOR], first) : NULL;
    w.targets = (const int32_t *)node->in[TARN__MIXTURE_TARGETS]->data + first;
    w.losses = losses + 2 * first;
    w.smoothing = attr->smoothing;
    w.scale = (float)attr->grad_scale;
    w.wants_grad = l->wants_grad;
  }
  const unsigned threads = tarn__row_threads(l->words);
  if (node->in[TARN__MIXTURE_H]->dtype == TARN__BF16)
    TARN__LAUNCH(mixture_kernel<tarn__bf16>, (unsigned)rows, threads, sizeof(mixture_shared), stream, w);
  else
    TARN__LAUNCH(mixture_kernel<float>, (unsigned)rows, threads, sizeof(mixture_shared), stream, w);
  if (attr->mode != TARN__MIXTURE_TOP) return TARN_STATUS_OK;
  tarn__top_rows top = {};
  top.logits = w.log_p;
  top.ld = l->ld;
  top.rows = rows;
  top.words = l->words;
  top.best = attr->top.best;
  top.always = attr->top.always;
  top.values = (float *)node->out[0]->data + first * (top.best + 1);
  top.ids = (int32_t *)node->out[1]->data + first * top.best;
  return tarn__cuda_top_rows(&top, stream);
}

// From the dlogits of a chunk.
static tarn_status chunk_gradients(const tarn__node *node, const layout *l, int64_t first, int64_t rows,
                                   const bool accumulate[2], cudaStream_t stream) {
  const tarn__dtype dtype = node->in[TARN__MIXTURE_H]->dtype;
  const char *dlogits = (const char *)node->scratch + l->logits;
  const int64_t ld = l->ld * (int64_t)(sizeof(float) / tarn__dtype_size(dtype));
  if (node->dparam[0]) {
    tarn__product p = product_of(node);
    p.m = l->words;
    p.n = p.ldb = p.ldc = l->width;
    p.k = rows * l->mixtures;
    p.a = dlogits;
    p.lda = ld;
    p.transpose_a = true;
    p.b = row_of(node->in[TARN__MIXTURE_H], first);
    p.c = node->dparam[0]->training.grad;
    p.beta = accumulate[0] || first > 0 ? 1.0f : 0.0f;
    TARN_TRY(tarn__cuda_product(&p, stream));
  }
  if (node->dparam[1])
    TARN_TRY(tarn__cuda_column_sums((float *)node->dparam[1]->training.grad, dlogits, dtype, ld, rows * l->mixtures,
                                    l->words, NULL, accumulate[1] || first > 0,
                                    (float *)((char *)node->scratch + l->partial), stream));
  if (!node->out[TARN__MIXTURE_DH] || rows == 0) return TARN_STATUS_OK;
  tarn__product p = product_of(node);
  p.m = rows * l->mixtures;
  p.n = p.ldb = p.ldc = l->width;
  p.k = l->words;
  p.a = dlogits;
  p.lda = ld;
  p.b = node->in[TARN__MIXTURE_TABLE]->data;
  p.c = row_of(node->out[TARN__MIXTURE_DH], first);
  p.out = dtype;
  return tarn__cuda_product(&p, stream);
}

static tarn_status output_mixture(const tarn__exec *exec, const tarn__node *node) {
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const layout l = layout_of(node);
  const bool loss = mode_of(node) == TARN__MIXTURE_LOSS;
  double *losses = (double *)((char *)node->scratch + l.losses);
  if (loss && node->out[TARN__MIXTURE_ROWS]) losses = (double *)node->out[TARN__MIXTURE_ROWS]->data;
  bool accumulate[2];
  for (int i = 0; i < 2; i++) accumulate[i] = node->dparam[i] && tarn__param_accumulate(node->dparam[i]);
  int64_t first = 0;
  do {  // without rows an empty chunk, which clears the gradients
    const int64_t rows = l.rows - first < l.chunk ? l.rows - first : l.chunk;
    TARN_TRY(logits_of(node, &l, first, rows, stream));
    TARN_TRY(finish_rows(node, &l, first, rows, losses, stream));
    if (l.wants_grad) TARN_TRY(chunk_gradients(node, &l, first, rows, accumulate, stream));
    first += rows;
  } while (first < l.rows);
  return loss ? tarn__cuda_loss_totals((double *)node->out[TARN__MIXTURE_SUMS]->data, losses, 1, l.rows, stream)
              : TARN_STATUS_OK;
}

void tarn__cuda_output_mixture_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_OUTPUT_MIXTURE].run = output_mixture;
  kernels[TARN__OP_OUTPUT_MIXTURE].scratch = scratch;
}
