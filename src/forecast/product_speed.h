// The estimated speed of whole updates, from that of a matrix product on this machine, and the size of a training.
#ifndef TARN_FORECAST_PRODUCT_SPEED_H
#define TARN_FORECAST_PRODUCT_SPEED_H

#include "base/status.h"
#include "device/dtype.h"
#include "tarn/config.h"
#include "tarn/plan.h"

// Share of a product's speed that whole updates reach (bench/performance.md).
#define TARN__SHARE_OF_PRODUCTS 0.8

// Operations per second of the first product of a typical FFN, from `d` columns (at most 2048) to 4 d: the best within
// a twentieth of a second (`during` 0), or the mean over `during` seconds, with other programs running.
tarn_status tarn__product_speed(double *rate, int64_t d, tarn__dtype dtype, tarn__fp32 fp32, int threads,
                                double during) TARN_CHECKED;

// Upper bound of the tokens of both sides that a training reads; 0: no limit of updates or epochs, or no data to count.
double tarn__tokens_of_run(const tarn_config *config, const tarn_plan *plan);

#endif
