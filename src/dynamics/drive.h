// The drive of a recurrence, and its initial states.
#ifndef TARN_DYNAMICS_DRIVE_H
#define TARN_DYNAMICS_DRIVE_H

#include "dynamics/cell.h"
#include "dynamics/dynamics.h"

typedef struct tarn__drive {
  int64_t systems, width, iterations;
  double *inputs, *noise, *start;     // as tarn__cell_run has the first two; start [systems, width]
  int64_t *offsets, *rows, *lengths;  // of a text: [systems + 1], [systems]; rows [systems + 1]: one row per system
  size_t bytes;
} tarn__drive;

// With a text: one system per line, from a state of zeros, driven by the inputs of the layer for every token. Otherwise
// options.starts systems, from states uniform in -1 .. 1. Zeroed on failure; close it in any case.
tarn_status tarn__drive_open(tarn__drive *drive, const tarn_dynamics *dynamics, int64_t iterations,
                             tarn_dynamics_drive kind) TARN_CHECKED;
void tarn__drive_close(tarn__drive *drive);

// Trajectories of a cell of that width.
tarn_status tarn__drive_run(const tarn__drive *drive, tarn_dynamics_result **result, const tarn__cell_map *cell,
                            const tarn_dynamics_options *options) TARN_CHECKED;
// Fails as running them would before the first iteration. A drive of a planned model has no inputs.
tarn_status tarn__drive_check(const tarn__drive *drive, const tarn__cell_map *cell,
                              const tarn_dynamics_options *options) TARN_CHECKED;

#endif
