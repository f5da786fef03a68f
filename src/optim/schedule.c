#include "optim/schedule.h"

#include <math.h>

// From lr at the end of warm-up to min_lr at max_updates, by half a cosine or linearly.
static double falling(const tarn_config_train *train, int64_t n) {
  const double pi = 3.14159265358979323846;
  if (n >= train->max_updates) return train->min_lr;
  double t = (double)(n - train->warmup) / (double)(train->max_updates - train->warmup);
  double left = train->schedule == TARN_SCHEDULE_COSINE ? 0.5 * (1.0 + cos(pi * t)) : 1.0 - t;
  return train->min_lr + (train->lr - train->min_lr) * left;
}

double tarn__schedule_rate(const tarn_config_train *train, int64_t n) {
  if (n <= train->warmup) return train->lr * (double)n / (double)train->warmup;
  double rate = train->lr;
  if (train->schedule == TARN_SCHEDULE_INVERSE_SQRT)
    rate *= sqrt((double)(train->warmup > 0 ? train->warmup : 1) / (double)n);
  if (train->schedule == TARN_SCHEDULE_COSINE || train->schedule == TARN_SCHEDULE_LINEAR) rate = falling(train, n);
  return rate > train->min_lr ? rate : train->min_lr;
}
