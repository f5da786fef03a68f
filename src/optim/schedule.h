// Learning rate as a function of the update.
#ifndef TARN_OPTIM_SCHEDULE_H
#define TARN_OPTIM_SCHEDULE_H

#include <stdint.h>

#include "description/description.h"

// The rate of the n-th update, n from 1. It rises linearly to train.lr in the first train.warmup updates, then
//   inverse_sqrt  lr * sqrt(warmup / n)   (Vaswani et al. 2017; without warm-up lr / sqrt(n))
//   cosine        min_lr + (lr - min_lr) * (1 + cos(pi t)) / 2, t from 0 at the end of warm-up to 1 at max_updates
//   constant      lr
//   linear        min_lr + (lr - min_lr) (1 - t), t as above   (fairseq: polynomial_decay of power 1)
// and never falls below min_lr.
double tarn__schedule_rate(const tarn_config_train *train, int64_t n);

#endif
