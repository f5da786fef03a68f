// The iterated map, which advances several independent systems at once (such as sentences), each with its
// perturbations.
#ifndef TARN_DYNAMICS_ITERATED_H
#define TARN_DYNAMICS_ITERATED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

// State x [rows, width], the rows of all systems one after the other; perturbations [directions, rows, width]: for
// every direction a block in the form of the state. All in double, in the host's memory, on any device.
typedef struct tarn__iterated {
  void *self;              // the map's data
  int64_t systems, width;  // at least 1
  const int64_t *offsets;  // [systems + 1]: the first row of each; none is empty
  const int64_t *lengths;  // [systems]: limit of iterations of each; NULL: no limit
  const int64_t *lines;    // [systems]: line numbers in results; NULL: numbered from 1
  bool autonomous;         // the map is the same in every iteration
  // x becomes g_t(x), t = `iteration`, counted from 0; and, unless perturbations is NULL, each perturbation v becomes J
  // v, J the Jacobian of g_t at the old x. Systems beyond their length, or with a non-finite state, are ignored, but
  // must not affect others.
  tarn_status (*step)(void *self, double *state, double *perturbations, int64_t directions, int64_t iteration);
} tarn__iterated;

static inline int64_t tarn__iterated_rows(const tarn__iterated *map) { return map->offsets[map->systems]; }
static inline int64_t tarn__iterated_dimensions(const tarn__iterated *map, int64_t system) {
  return (map->offsets[system + 1] - map->offsets[system]) * map->width;
}

#endif
