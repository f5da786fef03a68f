// The gradient of recurrent weights, and single steps for decoding: products and a kernel.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/product.h"
#include "device/cuda/recurrence/recurrence_units.h"

enum { THREADS = 128 };

// --- recurrence_dweight: one product over all rows, and one over the initial states of sentences

static tarn__product dweight_product(const tarn__node *node) {
  tarn__product p = {};
  const tarn__recurrence_dweight_attr *attr = (const tarn__recurrence_dweight_attr *)node->attr;
  p.m = tarn__recurrence_gates(&attr->spec) * attr->spec.hidden;
  p.n = p.ldc = attr->spec.hidden;
  p.c = node->dparam[0]->training.grad;
  p.transpose_a = true;
  p.dtype = node->in[TARN__RECURRENCE_DWEIGHT_DU]->dtype;
  p.out = TARN__F32;
  p.fp32 = node->fp32;
  p.alpha = 1.0f;
  p.batch = 1;
  return p;
}

// dweight (+)= du^T (the states before)
static tarn_status rows_product(const tarn__node *node, bool accumulate, cudaStream_t stream) {
  const tarn__recurrence_dweight_attr *attr = (const tarn__recurrence_dweight_attr *)node->attr;
  const tarn__tensor *du = node->in[TARN__RECURRENCE_DWEIGHT_DU], *y = node->in[TARN__RECURRENCE_DWEIGHT_Y];
  const bool reverse = tarn__recurrence_reverse(&attr->spec, attr->direction);
  const size_t size = tarn__dtype_size(du->dtype);
  tarn__product p = dweight_product(node);
  p.k = du->rows > 0 ? du->rows - 1 : 0;
  p.a = (const char *)du->data + (size_t)((reverse ? 0 : du->cols) + attr->direction * p.m) * size;
  p.b = (const char *)y->data + (size_t)((reverse ? y->cols : 0) + attr->direction * p.n) * size;
  p.lda = du->cols;
  p.ldb = y->cols;
  p.beta = accumulate ? 1.0f : 0.0f;
  return tarn__cuda_product(&p, stream);
}

static __global__ void round_states_kernel(tarn__bf16 *to, const float *from, int64_t ld, int64_t rows, int64_t cols) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * cols) tarn__set(to + i, from[i / cols * ld + i % cols]);
}

static bool rounds_starts(const tarn__node *node) {
  const tarn__tensor *first = node->in[TARN__RECURRENCE_DWEIGHT_FIRST];
  return first && first->dtype == TARN__BF16;
}

static size_t dweight_scratch(const tarn__node *node, int threads) {
  (void)threads;
  const tarn__recurrence_dweight_attr *attr = (const tarn__recurrence_dweight_attr *)node->attr;
  if (!rounds_starts(node)) return 0;
  return (size_t)(node->in[TARN__RECURRENCE_DWEIGHT_FIRST]->rows * attr->spec.hidden) * sizeof(tarn__bf16);
}

// dweight += (du of first rows)^T (the initial states)
static tarn_status starts_product(const tarn__node *node, cudaStream_t stream) {
  const tarn__tensor *first = node->in[TARN__RECURRENCE_DWEIGHT_FIRST];
  const tarn__tensor *start = node->in[TARN__RECURRENCE_DWEIGHT_START];
  tarn__product p = dweight_product(node);
  p.k = first->rows;
  p.a = first->data;
  p.b = start->data;
  p.lda = first->cols;
  p.ldb = start->cols;
  p.beta = 1.0f;
  if (rounds_starts(node)) {
    TARN__LAUNCH(round_states_kernel, tarn__blocks(p.k * p.n, THREADS), (unsigned)THREADS, 0, stream,
                 (tarn__bf16 *)node->scratch, (const float *)start->data, start->cols, p.k, p.n);
    p.b = node->scratch;
    p.ldb = p.n;
  }
  return tarn__cuda_product(&p, stream);
}

static tarn_status dweight(const tarn__exec *exec, const tarn__node *node) {
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  TARN_TRY(rows_product(node, tarn__param_accumulate(node->dparam[0]) != 0, stream));
  return node->in[TARN__RECURRENCE_DWEIGHT_FIRST] ? starts_product(node, stream) : TARN_STATUS_OK;
}

// --- recurrence_rows

typedef struct step_rows {
  void *cache, *x, *y, *operand;
  const int32_t *rows, *ranges;
  int64_t count, n, width, cache_ld, first_row;
  int64_t u_ld, u_step, operand_ld, operand_step;
  const float *u, *bias, *leaks;
  float leak;
  bool relu;
} step_rows;

// The cache row of the token before, or -1.
static __device__ __forceinline__ int64_t row_before(const step_rows &w, int64_t i) {
  const int32_t *range = w.ranges + 2 * i;
  return range[1] - range[0] > 1 ? w.rows[range[1] - 2] : -1;
}

// The states before, as the product reads them.
template <typename T>
static __global__ void gather_states_kernel(step_rows w) {
  const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, i = at / w.n, j = at % w.n;
  if (i >= w.count) return;
  const int64_t before = row_before(w, i);
  tarn__set((T *)w.operand + i * w.operand_ld + j * w.operand_step,
            before >= 0 ? tarn__get(((const T *)w.cache)[before * w.cache_ld + j]) : 0.0f);
}

// No row follows one that the same node writes.
template <typename T, tarn__cell CELL>
static __global__ void step_rows_kernel(step_rows w) {
  constexpr int GATES = tarn__gates_of<CELL>;
  const int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, i = at / w.n, j = at % w.n;
  if (i >= w.count) return;
  const int64_t before = row_before(w, i);
  const T *old = before >= 0 ? (const T *)w.cache + before * w.cache_ld : (const T *)nullptr;
  T *now = (T *)w.cache + (w.first_row + i) * w.cache_ld;
  float x[GATES], u[GATES], extra, c = old && CELL == TARN__CELL_LSTM ? tarn__get(old[w.n + j]) : 0.0f;
  for (int k = 0; k < GATES; k++) {
    x[k] = tarn__get(((const T *)w.x)[i * w.width + k * w.n + j]);
    u[k] = w.u[i * w.u_ld + (k * w.n + j) * w.u_step] + (w.bias ? w.bias[k * w.n + j] : 0.0f);
  }
  const float h =
      tarn__unit<CELL>(x, u, old ? tarn__get(old[j]) : 0.0f, &c, &extra, w.relu, w.leaks ? w.leaks[j] : w.leak);
  tarn__set((T *)w.y + at, h);
  tarn__set(now + j, h);
  if (CELL == TARN__CELL_LSTM) tarn__set(now + w.n + j, c);
}

template <typename T, tarn__cell CELL>
static tarn_status run_rows(const step_rows *w, cudaStream_t stream) {
  TARN__LAUNCH((step_rows_kernel<T, CELL>), tarn__blocks(w->count * w->n, THREADS), (unsigned)THREADS, 0, stream, *w);
  return TARN_STATUS_OK;
}

static size_t rows_scratch(const tarn__node *node, int threads) {
  (void)threads;
  const tarn__tensor *weight = node->in[TARN__RECURRENCE_ROWS_WEIGHT], *x = node->in[TARN__RECURRENCE_ROWS_X];
  return (size_t)(x->rows * weight->rows) * sizeof(float) +
         (size_t)(x->rows * weight->cols) * tarn__dtype_size(x->dtype);
}

static tarn_status multiply(const step_rows *w, const tarn__node *node, cudaStream_t stream) {
  const tarn__tensor *weight = node->in[TARN__RECURRENCE_ROWS_WEIGHT];
  if (weight->param->entries > 0) {
    tarn__sparse_product p = {};
    p.matrix = tarn__sparse_of(weight);
    p.a = w->operand;
    p.a_ld = w->operand_step;
    p.count = w->count;
    p.c = (float *)node->scratch;
    p.c_ld = w->u_ld;
    p.c_step = w->u_step;
    return tarn__cuda_sparse_product(&p, node->in[TARN__RECURRENCE_ROWS_X]->dtype, stream);
  }
  tarn__product p = {};
  p.m = w->count;
  p.n = p.ldc = w->width;
  p.k = p.lda = p.ldb = w->n;
  p.a = w->operand;
  p.b = weight->data;
  p.c = node->scratch;
  p.transpose_b = true;
  p.dtype = weight->dtype;
  p.out = TARN__F32;
  p.fp32 = node->fp32;
  p.alpha = 1.0f;
  p.batch = 1;
  return tarn__cuda_product(&p, stream);
}

static step_rows rows_of(const tarn__node *node) {
  const tarn__recurrence_rows_attr *attr = (const tarn__recurrence_rows_attr *)node->attr;
  const tarn__tensor *x = node->in[TARN__RECURRENCE_ROWS_X], *cache = node->in[TARN__RECURRENCE_ROWS_CACHE];
  const tarn__tensor *bias = node->in[TARN__RECURRENCE_ROWS_BIAS], *leaks = node->in[TARN__RECURRENCE_ROWS_LEAKS];
  const bool stored = node->in[TARN__RECURRENCE_ROWS_WEIGHT]->param->entries > 0;
  step_rows w = {};
  w.cache = cache->data;
  w.cache_ld = cache->cols;
  w.x = x->data;
  w.y = node->out[0]->data;
  w.rows = (const int32_t *)node->in[TARN__RECURRENCE_ROWS_ROWS]->data;
  w.ranges = (const int32_t *)node->in[TARN__RECURRENCE_ROWS_RANGES]->data;
  w.count = x->rows;
  w.n = attr->spec.hidden;
  w.width = x->cols;
  w.first_row = attr->first_row;
  w.u = (const float *)node->scratch;
  w.operand = (float *)node->scratch + w.count * w.width;
  w.u_ld = stored ? 1 : w.width;
  w.operand_ld = stored ? 1 : w.n;
  w.u_step = w.operand_step = stored ? w.count : 1;
  w.bias = bias ? (const float *)bias->data : NULL;
  w.leaks = leaks ? (const float *)leaks->data : NULL;
  w.leak = (float)attr->spec.leak;
  w.relu = attr->spec.relu;
  return w;
}

static tarn_status recurrence_rows(const tarn__exec *exec, const tarn__node *node) {
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const tarn__recurrence_rows_attr *attr = (const tarn__recurrence_rows_attr *)node->attr;
  const tarn__dtype dtype = node->in[TARN__RECURRENCE_ROWS_X]->dtype;
  const step_rows w = rows_of(node);
  if (w.count == 0) return TARN_STATUS_OK;
  const unsigned blocks = tarn__blocks(w.count * w.n, THREADS), threads = THREADS;
  if (dtype == TARN__BF16)
    TARN__LAUNCH(gather_states_kernel<tarn__bf16>, blocks, threads, 0, stream, w);
  else
    TARN__LAUNCH(gather_states_kernel<float>, blocks, threads, 0, stream, w);
  TARN_TRY(multiply(&w, node, stream));
  return TARN__BY_KIND(run_rows, dtype, attr->spec.cell, &w, stream);
}

void tarn__cuda_recurrence_rows_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_RECURRENCE_DWEIGHT].run = dweight;
  kernels[TARN__OP_RECURRENCE_DWEIGHT].scratch = dweight_scratch;
  kernels[TARN__OP_RECURRENCE_ROWS].run = recurrence_rows;
  kernels[TARN__OP_RECURRENCE_ROWS].scratch = rows_scratch;
}
