// Ridge regression in plain C (specified in device/device.h).
#ifndef TARN_DEVICE_REFERENCE_REFERENCE_RIDGE_H
#define TARN_DEVICE_REFERENCE_REFERENCE_RIDGE_H

#include "optim/ridge.h"

tarn_status tarn__reference_ridge_add(const tarn__device *device, const tarn__ridge *ridge) TARN_CHECKED;
tarn_status tarn__reference_ridge_take(const tarn__device *device, const tarn__ridge *ridge, const void *rows,
                                       tarn__dtype dtype, int64_t first, int64_t count) TARN_CHECKED;
tarn_status tarn__reference_cholesky(const tarn__device *device, bool *done, double *a, int64_t n,
                                     double least) TARN_CHECKED;

#endif
