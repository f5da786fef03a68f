// Ops on approximate gradients (parts/backskip.h), all in backward passes:
//   stand_in_copy     in: x                 out: y = x
//   stand_in_add      in: dy, delta         out: dx = dy + scale delta, in the memory of dy where nothing else reads it
//   stand_in_measure  in: approximation, truth
//                     out: sums F64 [1, 3] over all elements, as in tarn__stand_in_sums, and
//                     error or NULL = 2 (approximation - truth) / |truth|^2, the gradient of the relative squared
//                     error |approximation - truth|^2 / |truth|^2; zeros where |truth|^2 is below 1e-30
#ifndef TARN_OPS_STAND_IN_H
#define TARN_OPS_STAND_IN_H

#include "graph/graph.h"
#include "ops/ops.h"

enum { TARN__STAND_IN_SUMS, TARN__STAND_IN_ERROR };  // outputs of stand_in_measure

typedef struct tarn__stand_in_add_attr {
  double scale;
} tarn__stand_in_add_attr;

#endif
