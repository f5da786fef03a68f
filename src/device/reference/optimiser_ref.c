#include "device/reference/optimiser_ref.h"
#include "device/reference/reference_kernels.h"

#include <math.h>

#include "device/variant.h"
#include "optim/moments.h"

// Unused rows contain no valid values.
static TARN_REAL gradient(const tarn__param *param, int64_t i) {
  const bool used = !param->training.used_rows || param->training.used_rows[i / param->cols];
  return used ? ((const TARN_REAL *)param->training.grad)[i] : 0;
}

double TARN__REF(tarn__squares_ref)(const tarn__param *param) {
  double sum = 0.0;
  for (int64_t i = 0; i < param->rows * param->cols; i++)
    sum += (double)gradient(param, i) * (double)gradient(param, i);
  return sum;
}

// Stores the weight in the copy that is saved and in the values that kernels read.
static void store(const tarn__param *param, int64_t i, TARN_REAL w) {
  param->training.master[i] = (float)w;
  if (param->dtype == TARN__BF16)
    ((uint16_t *)param->value)[i] = tarn__bf16_from_f32((float)w);
  else
    ((TARN_REAL *)param->value)[i] = w;
}

static TARN_REAL moment(const tarn__param *param, const void *moments, int64_t i) {
  return param->training.moments == TARN__BF16 ? (TARN_REAL)tarn__bf16_to_f32(((const uint16_t *)moments)[i])
                                               : (TARN_REAL)((const float *)moments)[i];
}

// `which` is 1 or 2.
static void store_moment(const tarn__param *param, uint32_t which, int64_t i, TARN_REAL value,
                         const tarn__adam_factors *factors) {
  void *moments = which == 1 ? param->training.moment1 : param->training.moment2;
  if (param->training.moments == TARN__BF16) {
    const tarn__exec stream = tarn__moment_stream(factors->seed, factors->step);
    uint16_t numbers[TARN__DROPOUT_BLOCK];
    const int64_t at = param->training.first + i;
    tarn__dropout_block(numbers, &stream, param->training.number, 0, (uint32_t)(at / TARN__DROPOUT_BLOCK));
    const uint16_t number = numbers[at % TARN__DROPOUT_BLOCK];
    ((uint16_t *)moments)[i] = tarn__moment_round((float)value, which == 1 ? number : tarn__moment_second(number));
  } else {
    ((float *)moments)[i] = (float)value;
  }
}

void TARN__REF(tarn__adam_ref)(const tarn__param *param, const tarn__adam_factors *factors, double gradient_factor) {
  const tarn__adam_factors *f = factors;
  for (int64_t i = 0; i < param->rows * param->cols; i++) {
    const TARN_REAL w =
        param->dtype == TARN__F64 ? ((const TARN_REAL *)param->value)[i] : (TARN_REAL)param->training.master[i];
    const TARN_REAL g = gradient(param, i) * (TARN_REAL)gradient_factor + w * (TARN_REAL)f->decay_gradient;
    const TARN_REAL m0 = moment(param, param->training.moment1, i), v0 = moment(param, param->training.moment2, i);
    const TARN_REAL m = m0 + (TARN_REAL)f->beta1_rest * (g - m0);
    const TARN_REAL v = (TARN_REAL)f->beta2 * v0 + (TARN_REAL)f->beta2_rest * g * g;
    const TARN_REAL root = (TARN_REAL)sqrt((double)v) * (TARN_REAL)f->inverse_correction2;
    store_moment(param, 1, i, m, f);
    store_moment(param, 2, i, v, f);
    store(param, i, w * (TARN_REAL)f->keep_weight - (TARN_REAL)f->step_size * m / (root + (TARN_REAL)f->epsilon));
  }
}

tarn_status TARN__REF(tarn__update_ref)(const tarn__exec *exec, const tarn__node *node) {
  TARN_REQUIRE(exec->update && exec->squares, INTERNAL, "a graph with updates runs without what they need");
  *exec->squares += TARN__REF(tarn__squares_ref)(node->dparam[0]);
  TARN__REF(tarn__adam_ref)(node->dparam[0], exec->update, exec->update->gradient);
  return TARN_STATUS_OK;
}

void TARN__REF(tarn__grad_sum_ref)(const tarn__param *param) {
  for (int64_t i = 0; i < param->rows * param->cols; i++)
    param->training.grad_sum[i] = (float)(param->training.grad_sum[i] + gradient(param, i));
}
