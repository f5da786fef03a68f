// One entry for both types: they differ in nothing but the table of kernels, which are compiled from the same files.
#include <math.h>

#include "device/devices.h"
#include "device/host_memory.h"
#include "device/op_list.h"
#include "device/reference/optimiser_ref.h"
#include "device/reference/reference_ridge.h"

extern const tarn__device_kernel tarn__reference_kernels_f32[TARN__OPS], tarn__reference_kernels_f64[TARN__OPS];

static double grad_norm(tarn__param *const *params, size_t count, int threads) {
  (void)threads;
  double sum = 0.0;
  for (size_t p = 0; p < count; p++)
    if (tarn__adam_moves(params[p]))
      sum += (params[p]->dtype == TARN__F64 ? tarn__squares_ref_f64 : tarn__squares_ref_f32)(params[p]);
  return sqrt(sum);
}

static void adam_step(tarn__param *const *params, size_t count, const tarn__adam_factors *factors, int threads) {
  (void)threads;
  for (size_t p = 0; p < count; p++)
    if (tarn__adam_moves(params[p]))
      (params[p]->dtype == TARN__F64 ? tarn__adam_ref_f64 : tarn__adam_ref_f32)(params[p], factors);
}

static void grad_sum_add(const tarn__param *param) {
  (param->dtype == TARN__F64 ? tarn__grad_sum_ref_f64 : tarn__grad_sum_ref_f32)(param);
}

static const char *variant(void) { return "reference"; }

const tarn__device tarn__device_reference = {
    .name = "reference",
    .variant = variant,
    .ops = TARN__OPS,
    .kernels = {[TARN__F32] = tarn__reference_kernels_f32, [TARN__F64] = tarn__reference_kernels_f64},
    TARN__HOST_MEMORY,
    .grad_norm = grad_norm,
    .adam_step = adam_step,
    .grad_sum_add = grad_sum_add,
    .ridge_add = tarn__reference_ridge_add,
    .ridge_take = tarn__reference_ridge_take,
    .cholesky = tarn__reference_cholesky};
