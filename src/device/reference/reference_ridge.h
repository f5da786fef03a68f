// Ridge regression in plain C (device/device.h says what is computed).
#ifndef TARN_DEVICE_REFERENCE_REFERENCE_RIDGE_H
#define TARN_DEVICE_REFERENCE_REFERENCE_RIDGE_H

#include "optim/ridge.h"

void tarn__reference_ridge_add(const tarn__ridge *ridge);
void tarn__reference_ridge_take(const tarn__ridge *ridge, const void *rows, tarn__dtype dtype, int64_t first,
                                int64_t count);
bool tarn__reference_cholesky(double *a, int64_t n, double least);

#endif
