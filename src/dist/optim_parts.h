// The sharded optimiser (train.shard_optimiser; ZeRO stage 1: Rajbhandari et al. 2020, arXiv 1910.02054): every trained
// parameter is cut into one part for each rank, which alone keeps its moments, AutoFreeze's sums and, for a bf16
// parameter, its fp32 master copy, and updates it. Parts follow the order of the ranks. Their sizes are equal up to one
// unit: 32 elements (256 with moments in F8), or 2^n rows of a table with separately updated rows, the fewest whose
// elements are a multiple of 8 (256).
//
// Ranks that do not share the optimiser also use the parts: each sums the squares of its part of the gradients.
#ifndef TARN_DIST_OPTIM_PARTS_H
#define TARN_DIST_OPTIM_PARTS_H

#include "model/model.h"
#include "tarn/plan.h"

// Zero-initialise or open.
typedef struct tarn__optim_parts {
  const tarn__model *model;
  int rank, ranks;
  size_t count;        // parameters: those of the model, then its helpers
  int64_t *ends;       // [count, ranks]: the end of each part
  tarn__param *own;    // [count]: the parts of this rank, for optim/adam.h and the device; empty ones have no columns
  tarn__param **list;  // [count]: pointers to them
  void *masters, *moments;  // memory of the device: NULL unless taken
} tarn__optim_parts;

// Elements of one parameter.
typedef struct tarn__optim_range {
  int64_t first, count;
} tarn__optim_range;

// Only divides. The model, for which tarn__model_open() suffices, must outlive it.
tarn_status tarn__optim_parts_open(tarn__optim_parts *parts, const tarn__model *model, int rank,
                                   int ranks) TARN_CHECKED;
void tarn__optim_parts_close(tarn__optim_parts *parts);

// The part of a rank in parameter `index`; empty if it is not trained.
tarn__optim_range tarn__optim_part_of(const tarn__optim_parts *parts, size_t index, int rank);

// Its end.
int64_t tarn__optim_part_end(const tarn__optim_parts *parts, size_t index, int rank);

// Bytes of the moments and sums of a rank's parts, and of their master copies.
size_t tarn__optim_parts_moments(const tarn__optim_parts *parts, int rank);
size_t tarn__optim_parts_masters(const tarn__optim_parts *parts, int rank);

// Takes memory for the state of this rank's parts, and attaches them to the parameters (param.training.part). The
// model, with shares_optimiser, has its memory.
tarn_status tarn__optim_parts_take(tarn__optim_parts *parts) TARN_CHECKED;

// Updates the parts from the parameters: addresses of gradients, and whether they were written.
void tarn__optim_parts_refresh(tarn__optim_parts *parts);

// Turns the plan of one rank into that of the largest of so many, if they share the optimiser.
tarn_status tarn__plan_share(tarn_plan *plan, const tarn__model *model, int ranks) TARN_CHECKED;

#endif
