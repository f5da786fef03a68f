// Trajectories of all systems of a map, with all measures.
#ifndef TARN_DYNAMICS_TRAJECTORY_H
#define TARN_DYNAMICS_TRAJECTORY_H

#include <stddef.h>

#include "dynamics/iterated.h"
#include "tarn/lab/dynamics.h"

// The result of iterating `map` from `start` [rows, width]. Uses the options from `iterations` to `max_memory`, and
// progress; iterations is not 0, and without an autonomous map there are no measures of settling. map_bytes: memory of
// the map itself. Fails like tarn_dynamics_run().
tarn_status tarn__trajectory_run(tarn_dynamics_result **result, const tarn__iterated *map, const double *start,
                                 const tarn_dynamics_options *options, size_t map_bytes) TARN_CHECKED;

// Fails as tarn__trajectory_run() would before its first iteration, without taking its memory: with USAGE for more
// exponents than a system has dimensions, or none of the iterations left to average; with MEMORY beyond
// options->max_memory.
tarn_status tarn__trajectory_check(const tarn__iterated *map, const tarn_dynamics_options *options,
                                   size_t map_bytes) TARN_CHECKED;

// options->tolerance, or its default if 0.
double tarn__trajectory_tolerance(const tarn_dynamics_options *options);

#endif
