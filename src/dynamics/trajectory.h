// Trajectories of all systems of a map, with everything that is measured on them.
#ifndef TARN_DYNAMICS_TRAJECTORY_H
#define TARN_DYNAMICS_TRAJECTORY_H

#include <stddef.h>

#include "dynamics/iterated.h"
#include "tarn/lab/dynamics.h"

// The result of iterating `map` from `start` [rows, width]. Of the options those from `iterations` to `max_memory`
// count, and progress; iterations is not 0, and where the map is not autonomous nothing is said of settling. map_bytes:
// of memory that the map itself takes. Fails as tarn_dynamics_run().
tarn_status tarn__trajectory_run(tarn_dynamics_result **result, const tarn__iterated *map, const double *start,
                                 const tarn_dynamics_options *options, size_t map_bytes) TARN_CHECKED;

// options->tolerance, or what stands for 0.
double tarn__trajectory_tolerance(const tarn_dynamics_options *options);

#endif
