// Tangents of a model's final ops, which are computed in fp32 only: one block for each row of a direction.
#include "device/cuda/cuda_kernels.h"
#include "device/cuda/output/output_rows.h"

extern "C" {
#include "ops/output_tangent.h"
}

typedef struct tangent_rows {
  const float *d, *saved;
  const int32_t *targets;  // words or, as the bits of floats, values
  int64_t rows, words;     // rows of the forward pass
  double smoothing;
  float *out;      // LOG_PROBABILITIES
  double *losses;  // the others
} tangent_rows;

// The means of d over the words of the row of this block: weighted by their probabilities, and plain.
static __device__ void means_of(double means[2], const tangent_rows &w, double *shared) {
  const float *d = w.d + (int64_t)blockIdx.x * w.words, *log_p = w.saved + blockIdx.x % w.rows * w.words;
  float weighted = 0.0f, plain = 0.0f;
  for (int64_t j = threadIdx.x; j < w.words; j += blockDim.x) {
    weighted += expf(log_p[j]) * d[j];
    plain += d[j];
  }
  means[0] = tarn__block_sum((double)weighted, shared);
  means[1] = tarn__block_sum((double)plain, shared) / (double)w.words;
}

// The result may lie over d.
static __global__ void log_tangent_kernel(tangent_rows w) {
  TARN__SHARED(double, shared);
  double means[2];
  means_of(means, w, shared);
  for (int64_t j = threadIdx.x; j < w.words; j += blockDim.x) {
    const int64_t at = (int64_t)blockIdx.x * w.words + j;
    w.out[at] = (float)((double)w.d[at] - means[0]);
  }
}

static __global__ void loss_tangent_kernel(tangent_rows w) {
  TARN__SHARED(double, shared);
  double means[2];
  means_of(means, w, shared);
  if (threadIdx.x > 0) return;
  const double nll = means[0] - (double)w.d[(int64_t)blockIdx.x * w.words + w.targets[blockIdx.x % w.rows]];
  w.losses[2 * (int64_t)blockIdx.x] = (1.0 - w.smoothing) * nll + w.smoothing * (means[0] - means[1]);
  w.losses[2 * (int64_t)blockIdx.x + 1] = nll;
}

static __global__ void square_tangent_kernel(tangent_rows w, int64_t all) {
  const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, r = row % w.rows;
  if (row >= all) return;
  const double value = (double)__uint_as_float((uint32_t)w.targets[r]);
  w.losses[2 * row] = w.losses[2 * row + 1] = 2.0 * ((double)w.saved[r] - value) * (double)w.d[row];
}

static int64_t form_of(const tarn__node *node) { return ((const tarn__output_tangent_attr *)node->attr)->form; }

// The losses of all rows, unless they are an output.
static size_t scratch(const tarn__node *node, int threads) {
  (void)threads;
  if (form_of(node) == TARN__OUTPUT_TANGENT_LOG_PROBABILITIES || node->out[TARN__OUTPUT_TANGENT_ROWS]) return 0;
  return (size_t)node->in[TARN__OUTPUT_TANGENT_D]->rows * 2 * sizeof(double);
}

static tarn_status output_tangent(const tarn__exec *exec, const tarn__node *node) {
  const cudaStream_t stream = tarn__cuda_stream(exec->stream);
  const tarn__tensor *d = node->in[TARN__OUTPUT_TANGENT_D], *saved = node->in[TARN__OUTPUT_TANGENT_SAVED];
  const tarn__tensor *targets = node->in[TARN__OUTPUT_TANGENT_TARGETS], *kept = node->out[TARN__OUTPUT_TANGENT_ROWS];
  tarn__tensor *result = node->out[TARN__OUTPUT_TANGENT_RESULT];
  const unsigned rows = (unsigned)d->rows, threads = tarn__row_threads(saved->cols);
  tangent_rows w = {};
  w.d = (const float *)d->data;
  w.saved = (const float *)saved->data;
  w.targets = targets ? (const int32_t *)targets->data : NULL;
  w.rows = saved->rows;
  w.words = saved->cols;
  w.smoothing = ((const tarn__output_tangent_attr *)node->attr)->smoothing;
  if (form_of(node) == TARN__OUTPUT_TANGENT_LOG_PROBABILITIES) {
    w.out = (float *)result->data;
    TARN__LAUNCH(log_tangent_kernel, rows, threads, TARN__SUMS_BYTES, stream, w);
    return TARN_STATUS_OK;
  }
  w.losses = kept ? (double *)kept->data : (double *)node->scratch;
  if (form_of(node) == TARN__OUTPUT_TANGENT_LOSS)
    TARN__LAUNCH(loss_tangent_kernel, rows, threads, TARN__SUMS_BYTES, stream, w);
  else
    TARN__LAUNCH(square_tangent_kernel, tarn__blocks(d->rows, 64), 64, 0, stream, w, d->rows);
  return tarn__cuda_loss_totals((double *)result->data, w.losses, result->rows, saved->rows, stream);
}

void tarn__cuda_output_tangent_entries(tarn__device_kernel *kernels) {
  kernels[TARN__OP_OUTPUT_TANGENT].run = output_tangent;
  kernels[TARN__OP_OUTPUT_TANGENT].scratch = scratch;
}
