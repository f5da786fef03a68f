#include "device/reference/optimiser_ref.h"

#include <math.h>

#include "device/variant.h"

// Rows that are not used hold nothing.
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

// Stores the weight in the copy that is saved and in what kernels read.
static void store(const tarn__param *param, int64_t i, TARN_REAL w) {
  param->training.master[i] = (float)w;
  if (param->dtype == TARN__BF16)
    ((uint16_t *)param->value)[i] = tarn__bf16_from_f32((float)w);
  else
    ((TARN_REAL *)param->value)[i] = w;
}

void TARN__REF(tarn__adam_ref)(const tarn__param *param, const tarn__adam_factors *factors) {
  const tarn__adam_factors *f = factors;
  for (int64_t i = 0; i < param->rows * param->cols; i++) {
    const TARN_REAL w =
        param->dtype == TARN__F64 ? ((const TARN_REAL *)param->value)[i] : (TARN_REAL)param->training.master[i];
    const TARN_REAL g = gradient(param, i) * (TARN_REAL)f->gradient + w * (TARN_REAL)f->decay_gradient;
    const TARN_REAL m = param->training.moment1[i] + (TARN_REAL)f->beta1_rest * (g - param->training.moment1[i]);
    const TARN_REAL v = (TARN_REAL)f->beta2 * param->training.moment2[i] + (TARN_REAL)f->beta2_rest * g * g;
    const TARN_REAL root = (TARN_REAL)sqrt((double)v) * (TARN_REAL)f->inverse_correction2;
    param->training.moment1[i] = (float)m;
    param->training.moment2[i] = (float)v;
    store(param, i, w * (TARN_REAL)f->keep_weight - (TARN_REAL)f->step_size * m / (root + (TARN_REAL)f->epsilon));
  }
}

void TARN__REF(tarn__grad_sum_ref)(const tarn__param *param) {
  for (int64_t i = 0; i < param->rows * param->cols; i++)
    param->training.grad_sum[i] = (float)(param->training.grad_sum[i] + gradient(param, i));
}
