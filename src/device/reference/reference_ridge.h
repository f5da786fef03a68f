// Ridge regression in plain C (device/device.h says what is computed).
#ifndef TARN_DEVICE_REFERENCE_REFERENCE_RIDGE_H
#define TARN_DEVICE_REFERENCE_REFERENCE_RIDGE_H

#include "optim/ridge.h"

void tarn__reference_ridge_add(const tarn__ridge *ridge);
bool tarn__reference_cholesky(double *a, int64_t n, double least);

#endif
