// The numbers that decide an update (device/step_numbers.h), sums of absolute values, and averages of checkpoints.
#include <string.h>

#include "device/cuda/optim/optimiser.h"

enum { THREADS = 256, TOTAL_THREADS = 1024, MOST_BLOCKS = 1024 };

static __global__ void __launch_bounds__(TOTAL_THREADS)
    total_kernel(double *to, const double *numbers, int64_t count, tarn__total how) {
  TARN__SHARED(double, shared);
  double sum = 0.0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) sum += numbers[i];
  sum = tarn__block_sum(sum, shared);
  if (threadIdx.x == 0) *to = how == TARN__TOTAL_ADDED ? *to + sum : how == TARN__TOTAL_ROOT ? sqrt(sum) : sum;
}

tarn_status tarn__cuda_total(double *to, const double *numbers, int64_t count, tarn__total how, cudaStream_t stream) {
  const unsigned threads = count <= THREADS ? THREADS : TOTAL_THREADS;
  TARN__LAUNCH(total_kernel, 1, threads, TARN__WARP_SIZE * sizeof(double), stream, to, numbers, count, how);
  return TARN_STATUS_OK;
}

// --- numbers of an update

static __global__ void add_loss_kernel(tarn__step_numbers *numbers, const double *loss) {
  if (threadIdx.x == 0) tarn__step_add_loss(numbers, loss);
}

static tarn_status add_loss(const tarn__device *device, tarn__step_numbers *numbers, const double *loss) {
  (void)device;
  TARN__LAUNCH(add_loss_kernel, 1, TARN__WARP_SIZE, 0, tarn__cuda_stream(NULL), numbers, loss);
  return TARN_STATUS_OK;
}

static __global__ void decide_kernel(tarn__step_numbers *numbers, const tarn__step_rule rule) {
  if (threadIdx.x == 0) tarn__step_decide(numbers, &rule);
}

static tarn_status decide(const tarn__device *device, tarn__step_numbers *numbers, const tarn__step_rule *rule) {
  (void)device;
  TARN__LAUNCH(decide_kernel, 1, TARN__WARP_SIZE, 0, tarn__cuda_stream(NULL), numbers, *rule);
  return TARN_STATUS_OK;
}

// --- sums over arrays

// The number of blocks depends on n alone, and with it the order of the sum.
static __global__ void __launch_bounds__(THREADS) absolute_kernel(double *partial, const float *x, int64_t n) {
  TARN__SHARED(double, shared);
  double sum = 0.0;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (int64_t)gridDim.x * THREADS)
    sum += fabs((double)x[i]);
  sum = tarn__block_sum(sum, shared);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// Returns a number to the host, and so waits for it.
static tarn_status absolute_sum(const tarn__device *device, double *sum, const float *x, size_t n) {
  const cudaStream_t stream = tarn__cuda_stream(NULL);
  const int64_t chunks = tarn__cuda_chunks((int64_t)n);
  const unsigned blocks = chunks < MOST_BLOCKS ? (unsigned)chunks : (unsigned)MOST_BLOCKS;
  void *room;
  double found;
  TARN_TRY(tarn__cuda_room(&room, stream, (MOST_BLOCKS + 1) * sizeof(double)));
  double *partial = (double *)room, *total = partial + MOST_BLOCKS;
  TARN__LAUNCH(absolute_kernel, blocks, THREADS, TARN__WARP_SIZE * sizeof(double), stream, partial, x, (int64_t)n);
  TARN_TRY(tarn__cuda_total(total, partial, blocks, TARN__TOTAL, stream));
  TARN_TRY(device->type->copy_out(device, NULL, &found, total, sizeof found));
  *sum += found;
  return TARN_STATUS_OK;
}

static __global__ void __launch_bounds__(THREADS)
    add_scaled_kernel(float *sums, const void *values, int64_t n, double weight, int aligned) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  float value;
  if (aligned)
    value = ((const float *)values)[i];
  else
    memcpy(&value, (const unsigned char *)values + i * (int64_t)sizeof value, sizeof value);
  sums[i] += (float)(weight * (double)value);
}

static tarn_status add_scaled(const tarn__device *device, float *sums, const void *values, size_t n, double weight) {
  (void)device;
  TARN__LAUNCH(add_scaled_kernel, tarn__blocks((int64_t)n, THREADS), THREADS, 0, tarn__cuda_stream(NULL), sums, values,
               (int64_t)n, weight, (int)((uintptr_t)values % sizeof(float) == 0));
  return TARN_STATUS_OK;
}

void tarn__cuda_sums_entries(tarn__device_type *type) {
  type->add_loss = add_loss;
  type->decide = decide;
  type->absolute_sum = absolute_sum;
  type->add_scaled = add_scaled;
}
