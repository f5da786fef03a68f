// What is iterated: a map that advances several independent systems at once (sentences, or whatever else has a state),
// and with each of them perturbations of it.
#ifndef TARN_DYNAMICS_ITERATED_H
#define TARN_DYNAMICS_ITERATED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

// State x [rows, width], the rows of all systems one after the other; perturbations [directions, rows, width]: of every
// direction a block in the form of the state. All in double, in the host's memory, whatever computes the map.
typedef struct tarn__iterated {
  void *self;              // the map's own
  int64_t systems, width;  // at least 1
  const int64_t *offsets;  // [systems + 1]: the first row of each; none is empty
  const int64_t *lengths;  // [systems]: the most iterations of each; NULL: no limit
  const int64_t *lines;    // [systems]: what each is called in results; NULL: they are numbered from 1
  bool autonomous;         // the map is the same in every iteration
  // x becomes g_t(x), t = `iteration`, counted from 0; and, unless perturbations is NULL, each perturbation v becomes
  // J v, J the Jacobian of g_t at the old x. What becomes of systems beyond their length, or whose state is not finite,
  // is not looked at, but others must not depend on it.
  tarn_status (*step)(void *self, double *state, double *perturbations, int64_t directions, int64_t iteration);
} tarn__iterated;

static inline int64_t tarn__iterated_rows(const tarn__iterated *map) { return map->offsets[map->systems]; }
static inline int64_t tarn__iterated_dimensions(const tarn__iterated *map, int64_t system) {
  return (map->offsets[system + 1] - map->offsets[system]) * map->width;
}

#endif
