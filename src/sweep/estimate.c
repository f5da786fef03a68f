// Estimates the training times of a sweep from operation counts and the measured speed of a matrix product.
#include <math.h>

#include "base/threads.h"
#include "forecast/product_speed.h"
#include "model/model.h"
#include "sweep/spec.h"

tarn_status tarn_sweep_estimate(tarn_sweep *sweep) {
  // More threads than processors gain nothing, and the system may not allow that many.
  tarn__threads_set(0);
  int threads = sweep->threads < tarn__threads() ? (int)sweep->threads : tarn__threads();
  double rate = 0;
  int64_t last_d = 0;
  tarn__dtype last_dtype = TARN__F32;
  tarn__fp32 last_fp32 = TARN__FP32_EXACT;
  for (size_t i = 0; i < sweep->variant_count; i++) {
    tarn_sweep_variant *v = &sweep->memory->variants[i];
    const tarn_plan *plan = &v->plan;
    const int64_t d = v->config->model.d_model;
    tarn__dtype dtype = v->config->train.precision == TARN_PRECISION_BF16 ? TARN__BF16 : TARN__F32;
    const tarn__fp32 fp32 = tarn__model_products(&v->config->train);
    if (d != last_d || dtype != last_dtype || fp32 != last_fp32)
      TARN_TRY(tarn__product_speed(&rate, d, dtype, fp32, threads, 0));
    last_d = d;
    last_dtype = dtype;
    last_fp32 = fp32;
    double token =
        (plan->forward_flops + plan->backward_flops + plan->recompute_flops) / (TARN__SHARE_OF_PRODUCTS * rate);
    v->epoch_seconds = plan->epoch_tokens * token;
    v->run_seconds = sweep->budget_seconds > 0 ? sweep->budget_seconds : tarn__tokens_of_run(v->config, plan) * token;
  }
  return TARN_STATUS_OK;
}

double tarn_sweep_training_left(const tarn_sweep *sweep, double run_seconds) {
  double sum = 0;
  double longest = 0;
  for (size_t i = 0; i < sweep->run_count; i++) {
    const tarn_sweep_run *run = &sweep->runs[i];
    bool open = run->state == TARN_SWEEP_WAITING || run->state == TARN_SWEEP_BEGUN;
    double all = run_seconds > 0 ? run_seconds : sweep->variants[run->variant].run_seconds;
    if (!open || run->reuse) continue;
    if (all <= 0) return -1;
    double left = fmax(all - run->seconds, 0);
    sum += left;
    longest = fmax(longest, left);
  }
  return fmax(sum / (double)sweep->parallel, longest);
}
