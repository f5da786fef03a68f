// Products with a number of rows that is known only at run time, up to a bound known in advance. Scratch is planned for
// all rows, half of them, a quarter and so on; a product that would need more runs in parts, which leaves all rows
// bit-identical. With transpose_a, the number of terms in its sums is unknown instead.
#ifndef TARN_DEVICE_CPU_GEMM_GEMM_WITHIN_H
#define TARN_DEVICE_CPU_GEMM_GEMM_WITHIN_H

#include "device/cpu/gemm/gemm.h"

// `gemm` has the maximum number of rows.
size_t tarn__gemm_scratch_within(const tarn__gemm *gemm, int threads);
// Runs with any number of rows up to that, including 0, which leaves C unchanged.
void tarn__gemm_run_within(const tarn__gemm *gemm, int threads, void *scratch, size_t bytes);

// The address of element `index` of an array; the array may be NULL for the first one, while a graph is only planned.
char *tarn__gemm_element(const void *data, tarn__dtype dtype, int64_t index);

#endif
