// The fast kernel of activations, which products also apply to blocks of their results.
#ifndef TARN_DEVICE_CPU_ROWS_ACTIVATION_KERNELS_H
#define TARN_DEVICE_CPU_ROWS_ACTIVATION_KERNELS_H

#include "device/variant.h"
#include "ops/activation.h"

typedef struct tarn__activation_kernels {
  // Elements [first, last) of y from those of x; y may be x.
  void (*forward)(void *y, const void *x, tarn__dtype dtype, tarn__activation form, int64_t first, int64_t last);
} tarn__activation_kernels;
TARN__TABLES(tarn__activation_kernels);

// Elements of some rows and columns of a matrix whose rows are `ld` elements apart, on the calling thread.
void tarn__activation_block(void *y, const void *x, tarn__dtype dtype, tarn__activation form, int64_t ld, int64_t row,
                            int64_t rows, int64_t column, int64_t columns);

#endif
