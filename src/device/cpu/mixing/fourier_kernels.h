// Kernels of the op fourier other than products, for each instruction set.
#ifndef TARN_DEVICE_CPU_MIXING_FOURIER_KERNELS_H
#define TARN_DEVICE_CPU_MIXING_FOURIER_KERNELS_H

#include "device/variant.h"
#include "graph/graph.h"

typedef struct tarn__fourier_kernels {
  // wave[i] = cos(2 pi i / n) and, n floats further, sin(2 pi i / n).
  void (*wave)(float *wave, int64_t n);
  // Lines of a transform of n numbers from its wave, [n, n]: first the cosines of the frequencies 0 to n / 2, then the
  // sines of the frequencies 1 to (n - 1) / 2. Lines are rows, or columns if `across`; for rows [first, last).
  void (*table)(void *table, tarn__dtype dtype, const float *wave, int64_t n, bool across, int64_t first, int64_t last,
                float *row);
  // Rows [first, last) of y [n, d] from the halves of both products, cosines [n / 2 + 1, d / 2 + 1] and sines
  // [(n - 1) / 2, (d - 1) / 2]; `add`: added to y. row: 2 d floats of scratch.
  void (*unfold)(void *y, tarn__dtype dtype, const float *cosines, const float *sines, int64_t n, int64_t d,
                 int64_t first, int64_t last, bool add, float *row);
} tarn__fourier_kernels;
TARN__TABLES(tarn__fourier_kernels);

tarn_status tarn__cpu_fourier(const tarn__exec *exec, const tarn__node *node);
size_t tarn__cpu_fourier_scratch(const tarn__node *node, int threads);

#endif
