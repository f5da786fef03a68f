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

// `which` is 1 or 2, also below.
static TARN_REAL moment(const tarn__param *param, uint32_t which, int64_t i) {
  const void *moments = which == 1 ? param->training.moment1 : param->training.moment2;
  if (param->training.moments == TARN__MOMENTS_F32) return (TARN_REAL)((const float *)moments)[i];
  if (param->training.moments == TARN__MOMENTS_BF16)
    return (TARN_REAL)tarn__bf16_to_f32(((const uint16_t *)moments)[i]);
  const tarn__moment_block *block = (const tarn__moment_block *)moments + i / TARN__MOMENT_BLOCK;
  const uint8_t code = block->codes[i % TARN__MOMENT_BLOCK];
  return (TARN_REAL)(which == 1 ? tarn__moment_value1(code, block->unit) : tarn__moment_value2(code, block->unit));
}

static uint16_t number_of(const tarn__param *param, int64_t i, const tarn__adam_factors *factors) {
  const tarn__exec stream = tarn__moment_stream(factors->seed, factors->step);
  uint16_t numbers[TARN__DROPOUT_BLOCK];
  const int64_t at = param->training.first + i;
  tarn__dropout_block(numbers, &stream, param->training.number, 0, (uint32_t)(at / TARN__DROPOUT_BLOCK));
  return numbers[at % TARN__DROPOUT_BLOCK];
}

static void store_moment(const tarn__param *param, uint32_t which, int64_t i, TARN_REAL value,
                         const tarn__adam_factors *factors) {
  void *moments = which == 1 ? param->training.moment1 : param->training.moment2;
  if (param->training.moments == TARN__MOMENTS_BF16) {
    const uint16_t number = number_of(param, i, factors);
    ((uint16_t *)moments)[i] = tarn__moment_round((float)value, which == 1 ? number : tarn__moment_second(number));
  } else {
    ((float *)moments)[i] = (float)value;
  }
}

// The `count` elements from i on, a block.
static void store_blocks(const tarn__param *param, int64_t i, int64_t count, const float *values1, const float *values2,
                         const tarn__adam_factors *factors) {
  tarn__moment_block *block1 = (tarn__moment_block *)param->training.moment1 + i / TARN__MOMENT_BLOCK;
  tarn__moment_block *block2 = (tarn__moment_block *)param->training.moment2 + i / TARN__MOMENT_BLOCK;
  uint32_t largest1 = 0, largest2 = 0;
  for (int64_t k = 0; k < count; k++) {
    const uint32_t bits1 = tarn__moment_bits(values1[k]) & 0x7FFFFFFFu;
    const uint32_t bits2 = tarn__moment_bits(values2[k]) & 0x7FFFFFFFu;
    if (bits1 > largest1) largest1 = bits1;
    if (bits2 > largest2) largest2 = bits2;
  }
  block1->unit = tarn__moment_unit_of(largest1, TARN__MOMENT_SPAN1);
  block2->unit = tarn__moment_unit_of(largest2, TARN__MOMENT_SPAN2);
  for (int64_t k = 0; k < count; k++) {
    const uint16_t number = number_of(param, i + k, factors);
    block1->codes[k] = tarn__moment_code1(values1[k], block1->unit, number);
    block2->codes[k] = tarn__moment_code2(values2[k], block2->unit, number);
  }
}

void TARN__REF(tarn__adam_ref)(const tarn__param *param, const tarn__adam_factors *factors, double gradient_factor) {
  const tarn__adam_factors *f = factors;
  const int64_t size = param->rows * param->cols;
  float block1[TARN__MOMENT_BLOCK], block2[TARN__MOMENT_BLOCK];
  for (int64_t i = 0; i < size; i++) {
    const TARN_REAL w =
        param->dtype == TARN__F64 ? ((const TARN_REAL *)param->value)[i] : (TARN_REAL)param->training.master[i];
    const TARN_REAL g = gradient(param, i) * (TARN_REAL)gradient_factor + w * (TARN_REAL)f->decay_gradient;
    const TARN_REAL m0 = moment(param, 1, i), v0 = moment(param, 2, i);
    const TARN_REAL m = m0 + (TARN_REAL)f->beta1_rest * (g - m0);
    const TARN_REAL v = (TARN_REAL)f->beta2 * v0 + (TARN_REAL)f->beta2_rest * g * g;
    const TARN_REAL root = (TARN_REAL)sqrt((double)v) * (TARN_REAL)f->inverse_correction2;
    if (param->training.moments == TARN__MOMENTS_F8) {
      const int64_t in = i % TARN__MOMENT_BLOCK;
      block1[in] = (float)m;
      block2[in] = (float)v;
      if (in == TARN__MOMENT_BLOCK - 1 || i == size - 1) store_blocks(param, i - in, in + 1, block1, block2, f);
    } else {
      store_moment(param, 1, i, m, f);
      store_moment(param, 2, i, v, f);
    }
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
