// The memory of a recurrence for past inputs (Jaeger 2002, "Short term memory in echo state networks").
#ifndef TARN_DYNAMICS_MEMORY_CAPACITY_H
#define TARN_DYNAMICS_MEMORY_CAPACITY_H

#include "dynamics/cell.h"

// The measurement.
typedef struct tarn__memory_task {
  int64_t delays, samples;
  double ridge;
  uint64_t seed;
  size_t max_memory;  // 0: no limit
} tarn__memory_task;

// capacities [delays], for delays 1, 2, ...: squared correlations of u(t - k) with its readout, on samples after those
// of the fit; all NAN if a state is not finite. The cell has noise_in. Fails with MEMORY.
tarn_status tarn__memory_capacity(double *capacities, const tarn__cell_map *cell,
                                  const tarn__memory_task *task) TARN_CHECKED;

#endif
