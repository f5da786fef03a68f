// Products of rows whose number is known only when they run, but not more than a bound that is known before. Scratch is
// planned for all rows, a half of them, a quarter and so on; a product that would need more runs in parts, which
// changes no bit of a row. Of a product with transpose_a the terms of its sums are what is not known before.
#ifndef TARN_DEVICE_CPU_GEMM_GEMM_WITHIN_H
#define TARN_DEVICE_CPU_GEMM_GEMM_WITHIN_H

#include "device/cpu/gemm/gemm.h"

// `gemm` has the most rows that there can be.
size_t tarn__gemm_scratch_within(const tarn__gemm *gemm, int threads);
// With any number of rows up to those, 0 among them, which leaves C as it is.
void tarn__gemm_run_within(const tarn__gemm *gemm, int threads, void *scratch, size_t bytes);

// Where element `index` of an array lies; the array may be NULL for the first, while a graph is only planned.
char *tarn__gemm_element(const void *data, tarn__dtype dtype, int64_t index);

#endif
