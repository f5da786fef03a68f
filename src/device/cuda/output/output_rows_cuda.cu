// Sums over rows in two passes of fixed order.
#include "device/cuda/column_sums.h"
#include "device/cuda/output/output_rows.h"

enum { SLICES = 64, SLICE_ROWS = 32 };  // most slices of the rows, and fewest rows of one

size_t tarn__column_sums_bytes(int64_t cols) { return (size_t)(SLICES * cols) * sizeof(float); }

template <typename T>
static __global__ void column_slices_kernel(float *partial, const T *x, int64_t ld, int64_t rows, int64_t cols,
                                            const float *weights, int64_t each) {
  const int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, first = (int64_t)blockIdx.y * each;
  const int64_t end = first + each < rows ? first + each : rows;
  if (c >= cols) return;
  float sum = 0.0f;
  for (int64_t r = first; r < end; r++) sum += (weights ? weights[r] : 1.0f) * tarn__get(x[r * ld + c]);
  partial[blockIdx.y * cols + c] = sum;
}

tarn_status tarn__cuda_column_sums(float *to, const void *x, tarn__dtype dtype, int64_t ld, int64_t rows, int64_t cols,
                                   const float *weights, bool accumulate, float *partial, cudaStream_t stream) {
  const unsigned threads = cols >= 128 ? 128 : 32;
  int64_t slices = (rows + SLICE_ROWS - 1) / SLICE_ROWS;
  if (slices > SLICES) slices = SLICES;
  const int64_t each = slices > 0 ? (rows + slices - 1) / slices : 0;
  const dim3 blocks(tarn__blocks(cols, threads), (unsigned)slices);
  if (dtype == TARN__BF16)
    TARN__LAUNCH(column_slices_kernel<tarn__bf16>, blocks, threads, 0, stream, partial, (const tarn__bf16 *)x, ld, rows,
                 cols, weights, each);
  else
    TARN__LAUNCH(column_slices_kernel<float>, blocks, threads, 0, stream, partial, (const float *)x, ld, rows, cols,
                 weights, each);
  return tarn__cuda_sum_parts(to, partial, slices, cols, accumulate, stream);
}

static __global__ void loss_totals_kernel(double *totals, const double *losses, int64_t rows) {
  TARN__SHARED(double, shared);
  const double *own = losses + 2 * (int64_t)blockIdx.x * rows;
  double first = 0.0, second = 0.0;
  for (int64_t r = threadIdx.x; r < rows; r += blockDim.x) {
    first += own[2 * r];
    second += own[2 * r + 1];
  }
  first = tarn__block_sum(first, shared);
  second = tarn__block_sum(second, shared);
  if (threadIdx.x > 0) return;
  totals[2 * blockIdx.x] = first;
  totals[2 * blockIdx.x + 1] = second;
}

tarn_status tarn__cuda_loss_totals(double *totals, const double *losses, int64_t groups, int64_t rows,
                                   cudaStream_t stream) {
  TARN__LAUNCH(loss_totals_kernel, (unsigned)groups, rows > 2048 ? 512u : 64u, TARN__SUMS_BYTES, stream, totals, losses,
               rows);
  return TARN_STATUS_OK;
}
