// The fast kernel of hadamard and hadamard_dx.
#ifndef TARN_DEVICE_CPU_MIXING_HADAMARD_KERNELS_H
#define TARN_DEVICE_CPU_MIXING_HADAMARD_KERNELS_H

#include "device/variant.h"
#include "ops/hadamard.h"

// The task of the fast kernel: to = act(from Q^T + bias), or transposed to (+)= from Q.
typedef struct tarn__hadamard_job {
  tarn__hadamard_shape shape;
  const float *signs;
  const float *bias;  // forward, or NULL
  const void *from;   // [rows, from_cols]
  const void *mask;   // transposed: elements of `from` count as 0 unless this [rows, from_cols] is above 0; or NULL
  void *to;           // [rows, to_cols]
  int64_t from_cols, to_cols;
  tarn__dtype dtype;  // of from, mask and to
  bool relu, transposed, accumulate;
  bool past;  // BF16 by tiles: non-temporal stores of whole lines
} tarn__hadamard_job;

// A row of `to` is divided into equal regions, each the sum of the same number of transforms.
typedef struct tarn__hadamard_cut {
  int64_t regions, terms;
} tarn__hadamard_cut;

static inline tarn__hadamard_cut tarn__hadamard_cut_of(const tarn__hadamard_shape *shape, bool transposed) {
  const bool side_by_side = shape->in > shape->out;
  const int64_t all = shape->blocks * shape->parts;
  const int64_t regions = !transposed ? (side_by_side ? shape->blocks : all) : side_by_side ? shape->parts : 1;
  return (tarn__hadamard_cut){regions, all / regions};
}

// The number of the transform for this term of this region.
static inline int64_t tarn__hadamard_transform_of(const tarn__hadamard_shape *shape, bool transposed, int64_t region,
                                                  int64_t term) {
  if (transposed && shape->in > shape->out) return term * shape->parts + region;
  return region * tarn__hadamard_cut_of(shape, transposed).terms + term;
}

typedef struct tarn__hadamard_kernels {
  // Rows [first, last).
  void (*run)(const tarn__hadamard_job *job, int64_t first, int64_t last, float *scratch);
} tarn__hadamard_kernels;
TARN__TABLES(tarn__hadamard_kernels);

// In hadamard_amx.c, replacing `run` if it supports the job: BF16, a width of 128, 256 or 512, and inputs and outputs
// that fill every transform. Floats of scratch, which is aligned to 64 bytes: for the rows in progress, and for the
// signs of each transform.
enum { TARN__HADAMARD_AMX_TILE = 512, TARN__HADAMARD_AMX_TILES = 2 };
enum { TARN__HADAMARD_AMX_FLOATS = TARN__HADAMARD_AMX_TILE * (TARN__HADAMARD_AMX_TILES * 4 + 1) };
enum { TARN__HADAMARD_AMX_TABLE = TARN__HADAMARD_AMX_TILE * 3 };
bool tarn__hadamard_amx_can(const tarn__hadamard_job *job);
void tarn__hadamard_amx_run(const tarn__hadamard_job *job, int64_t first, int64_t last, float *scratch);

#endif
