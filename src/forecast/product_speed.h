// How fast whole updates may be, from the speed of a matrix product on this machine, and how much a training has to do.
#ifndef TARN_FORECAST_PRODUCT_SPEED_H
#define TARN_FORECAST_PRODUCT_SPEED_H

#include "base/status.h"
#include "device/dtype.h"
#include "tarn/config.h"
#include "tarn/plan.h"

// Of a product's speed that whole updates reach (bench/performance.md).
#define TARN__SHARE_OF_PRODUCTS 0.8

// Operations a second of the first product of a usual FFN, from `d` columns (2048 at most) to 4 d: the best within a
// twentieth of a second (`during` 0), or the mean over so many seconds, with all that else runs.
tarn_status tarn__product_speed(double *rate, int64_t d, tarn__dtype dtype, tarn__fp32 fp32, int threads,
                                double during) TARN_CHECKED;

// Tokens of both sides that a training reads at the most; 0: it has no limit of updates or epochs, or no data to count.
double tarn__tokens_of_run(const tarn_config *config, const tarn_plan *plan);

#endif
