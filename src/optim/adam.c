#include "optim/adam.h"

#include <math.h>

#include "graph/graph.h"

void tarn__adam_factors_set(tarn__adam_factors *factors, const tarn__adam_options *options, int64_t step,
                            double factor) {
  const tarn__adam_options *o = options;
  const double correction1 = 1.0 - pow(o->beta1, (double)step), correction2 = 1.0 - pow(o->beta2, (double)step);
  *factors = (tarn__adam_factors){
      .gradient = factor,
      .decay_gradient = o->decoupled ? 0.0 : o->weight_decay,
      .keep_weight = o->decoupled ? 1.0 - o->learning_rate * o->weight_decay : 1.0,
      .beta1_rest = 1.0 - o->beta1,
      .beta2 = o->beta2,
      .beta2_rest = 1.0 - o->beta2,
      .step_size = o->learning_rate / correction1,
      .inverse_correction2 = 1.0 / sqrt(correction2),
      .epsilon = o->epsilon,
      .seed = o->seed,
      .step = (uint32_t)step,
  };
}

tarn_status tarn__adam_step(const tarn__device *device, tarn__param_table *table, const tarn__adam_options *options,
                            int64_t step, double factor, const tarn__step_numbers *numbers, int threads) {
  tarn__adam_factors factors;
  tarn__adam_factors_set(&factors, options, step, factor);
  factors.clips = numbers && factor == 0.0;
  TARN_TRY(tarn__param_table_refresh(device, table));
  return device->type->adam_step(device, table, &factors, numbers, threads);
}

double tarn__adam_bytes(tarn__param *const *params, size_t count, double *gradients) {
  double bytes = *gradients = 0.0;
  for (size_t i = 0; i < count; i++) {
    const tarn__param *p = params[i];
    if (!tarn__adam_moves(p)) continue;
    *gradients += (double)p->rows * (double)p->cols * (double)(p->dtype == TARN__F64 ? sizeof(double) : sizeof(float));
    bytes += tarn__update_bytes(p);
  }
  return bytes;
}
