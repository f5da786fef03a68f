// Layers of a model as a map of the residual stream.
#ifndef TARN_DYNAMICS_STACK_MAP_H
#define TARN_DYNAMICS_STACK_MAP_H

#include "data/batch.h"
#include "dynamics/iterated.h"
#include "model/model.h"

// Layers, with or without perturbations, for fixed sentences: a graph that is planned once and run as long as the
// layers stay the same.
typedef struct tarn__stack_graph {
  tarn__graph graph;
  int first, last;  // layers, from 0; last 0: not built
  int64_t directions;
  tarn__tensor *y;
  void *workspace, *x, *v;  // in the memory of the device
  size_t workspace_bytes, v_bytes;
} tarn__stack_graph;

// Zero-initialise it, then open it.
typedef struct tarn__stack_map {
  const tarn__model *model;
  const tarn__packed *packed;
  int first, last;              // of a period, from 0
  bool whole;                   // the layers [first, last) in every iteration; else iteration t is layer first + t
  tarn__stack_graph graphs[2];  // with perturbations, without
  float *single;                // if the model computes in fp32
  size_t bytes;                 // taken so far
  size_t most_bytes;            // that all iterations take
} tarn__stack_map;

// Takes memory for so many directions; beyond max_bytes (0: no limit) it fails with MEMORY.
tarn_status tarn__stack_map_open(tarn__stack_map *map, int64_t directions, bool twice, size_t max_bytes) TARN_CHECKED;
void tarn__stack_map_close(tarn__stack_map *map);

// The residual stream before the first layer of the stack, [rows, d_model].
tarn_status tarn__stack_map_start(tarn__stack_map *map, double *start) TARN_CHECKED;

// tarn__iterated.step of a tarn__stack_map.
tarn_status tarn__stack_map_step(void *map, double *state, double *perturbations, int64_t directions,
                                 int64_t iteration);

#endif
