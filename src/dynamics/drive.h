// What drives a recurrence, and where it starts.
#ifndef TARN_DYNAMICS_DRIVE_H
#define TARN_DYNAMICS_DRIVE_H

#include "dynamics/cell.h"
#include "dynamics/dynamics.h"

typedef struct tarn__drive {
  int64_t systems, width, iterations;
  double *inputs, *noise, *start;     // as tarn__cell_run has the first two; start [systems, width]
  int64_t *offsets, *rows, *lengths;  // of a text: [systems + 1], [systems]; rows [systems + 1]: a row a system
  size_t bytes;
} tarn__drive;

// A text: a system a line, from a state of zeros, the input of every token as the model has it in front of the layer.
// Otherwise as many systems as options.starts, from states uniform in -1 .. 1. Zeroed where it fails; close it in any
// case.
tarn_status tarn__drive_open(tarn__drive *drive, const tarn_dynamics *dynamics, int64_t iterations,
                             tarn_dynamics_drive kind) TARN_CHECKED;
void tarn__drive_close(tarn__drive *drive);

// Trajectories of a cell of that width.
tarn_status tarn__drive_run(const tarn__drive *drive, tarn_dynamics_result **result, const tarn__cell_map *cell,
                            const tarn_dynamics_options *options) TARN_CHECKED;

#endif
