// One entry for both types: they differ only in the table of kernels, which are compiled from the same files.
#include <math.h>

#include "device/devices.h"
#include "device/host_memory.h"
#include "device/op_list.h"
#include "device/reference/optimiser_ref.h"
#include "device/reference/reference_ridge.h"

extern const tarn__device_kernel tarn__reference_kernels_f32[TARN__OPS], tarn__reference_kernels_f64[TARN__OPS];

static tarn_status grad_norm(const tarn__device *device, double *norm, const tarn__param_table *table, int threads) {
  (void)device, (void)threads;
  double sum = 0.0;
  for (size_t p = 0; p < table->count; p++) {
    const tarn__param *param = table->params[p];
    if (tarn__adam_moves(param))
      sum += (param->dtype == TARN__F64 ? tarn__squares_ref_f64 : tarn__squares_ref_f32)(param);
  }
  *norm = sqrt(sum);
  return TARN_STATUS_OK;
}

static tarn_status adam_step(const tarn__device *device, const tarn__param_table *table,
                             const tarn__adam_factors *factors, const tarn__step_numbers *numbers, int threads) {
  (void)device, (void)threads;
  if (numbers && numbers->failed != 0) return TARN_STATUS_OK;
  const double gradient = tarn__adam_gradient(factors, numbers);
  for (size_t p = 0; p < table->count; p++) {
    const tarn__param *param = table->params[p];
    if (tarn__adam_moves(param))
      (param->dtype == TARN__F64 ? tarn__adam_ref_f64 : tarn__adam_ref_f32)(param, factors, gradient);
  }
  return TARN_STATUS_OK;
}

static tarn_status grad_sum_add(const tarn__device *device, const tarn__param_table *table, int threads) {
  (void)device, (void)threads;
  for (size_t p = 0; p < table->count; p++) {
    const tarn__param *param = table->params[p];
    if (tarn__adam_sums(param)) (param->dtype == TARN__F64 ? tarn__grad_sum_ref_f64 : tarn__grad_sum_ref_f32)(param);
  }
  return TARN_STATUS_OK;
}

static const char *variant(const tarn__device *device) {
  (void)device;
  return "reference";
}

static tarn_status open(const tarn__device **device, int ordinal) {
  return tarn__host_open(device, &tarn__device_reference, ordinal);
}

const tarn__device_type tarn__reference_type = {
    .name = "reference",
    .ops = TARN__OPS,
    .kernels = {[TARN__F32] = tarn__reference_kernels_f32, [TARN__F64] = tarn__reference_kernels_f64},
    .open = open,
    .variant = variant,
    TARN__HOST_MEMORY,
    .grad_norm = grad_norm,
    .adam_step = adam_step,
    .grad_sum_add = grad_sum_add,
    .ridge_add = tarn__reference_ridge_add,
    .ridge_take = tarn__reference_ridge_take,
    .cholesky = tarn__reference_cholesky};

const tarn__device tarn__device_reference = {.type = &tarn__reference_type, .name = "reference"};
