// A recurrence in double: a step of an echo state network, a GRU or an LSTM (equations in ops/ops.h), and of
// perturbations of its state.
#ifndef TARN_DYNAMICS_CELL_H
#define TARN_DYNAMICS_CELL_H

#include "base/sparse.h"
#include "dynamics/iterated.h"
#include "graph/graph.h"
#include "ops/ops.h"

// Zero-initialise it.
typedef struct tarn__cell_map {
  tarn__recurrence_spec spec;  // of one direction
  double *weight;              // [gates * hidden, hidden]; NULL: it is sparse
  double *bias;                // [gates * hidden], or NULL
  tarn__sparse sparse;
  double *noise_in;  // [hidden]: input weights of noise, for a reservoir alone; NULL: no noise
  double factor;     // factor on the weight
} tarn__cell_map;

// What a cell is without its weights.
void tarn__cell_describe(tarn__cell_map *cell, const tarn__node *node);

// With the weights of a node of the op recurrence, of the first direction. Fails with MEMORY, or what the device fails
// with.
tarn_status tarn__cell_open(tarn__cell_map *cell, const tarn__node *node) TARN_CHECKED;
void tarn__cell_close(tarn__cell_map *cell);

int64_t tarn__cell_gates(const tarn__cell_map *cell);
int64_t tarn__cell_width(const tarn__cell_map *cell);  // of a state: hidden, for an LSTM followed by cells

// The spectral radius of its scaled matrix; only for echo state networks.
tarn_status tarn__cell_radius(double *radius, const tarn__cell_map *cell) TARN_CHECKED;

// The drive: the input of iteration t of system s, which is added to W h, is row inputs[offsets[s] + t]
// [gates * hidden], or from the end of the system's rows if spec.reverse; or noise[s * iterations + t] times noise_in;
// or nothing.
typedef struct tarn__cell_run {
  const tarn__cell_map *cell;
  const double *inputs;
  const int64_t *offsets;
  const double *noise;
  int64_t iterations, systems;
  double *work;  // [(2 + directions) * systems, gates * hidden]
} tarn__cell_run;

// tarn__iterated.step of a tarn__cell_run.
tarn_status tarn__cell_step(void *run, double *state, double *perturbations, int64_t directions, int64_t iteration);

#endif
