// The fast kernels of the tangents of recurrences, in F32.
#ifndef TARN_DEVICE_CPU_RECURRENCE_RECURRENCE_TANGENT_KERNELS_H
#define TARN_DEVICE_CPU_RECURRENCE_RECURRENCE_TANGENT_KERNELS_H

#include "device/variant.h"
#include "ops/recurrence.h"

// One time step of the running sentences, each in all directions. The directions of sentence i are rows i * directions
// onwards of u, and those of sentence s rows s * directions onwards of the states.
typedef struct tarn__recurrence_push {
  tarn__recurrence_spec spec;
  int64_t directions, block;  // block: rows of the forward pass, and of each direction's tangents
  const int32_t *sentences, *rows;
  const float *u;                         // [*, gates * hidden]: the products with the weights
  const float *leaks;                     // [hidden], ECHO: per unit; NULL: spec.leak
  float *state, *cell;                    // [*, hidden], in and out; cell: LSTM
  tarn__recurrence_band y, gates, extra;  // of the forward pass
  tarn__recurrence_band dx, dy;           // dx.data NULL: zero
  const float *start;                     // initial states of sentences, [*, start_ld]; NULL: zero
  int64_t start_ld;
  int64_t before;  // distance to the row of the previous step; 0 at a sentence's first step
} tarn__recurrence_push;

typedef struct tarn__recurrence_tangent_kernels {
  // Direction k of sentence i, by number i * directions + k.
  void (*step)(const tarn__recurrence_push *push, int64_t number);
} tarn__recurrence_tangent_kernels;
TARN__TABLES(tarn__recurrence_tangent_kernels);

tarn_status tarn__cpu_recurrence_tangent(const tarn__exec *exec, const tarn__node *node);
size_t tarn__cpu_recurrence_tangent_scratch(const tarn__node *node, int threads);

#endif
