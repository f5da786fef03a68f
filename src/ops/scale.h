// The op scale: one number times a tensor, plus one number.
//   y [R, C] = gain x + shift, gain and shift [1, 1]; either may be NULL, which counts as 1 or as 0, not both
// ReZero (Bachlechner et al. 2020) has the gain before a branch, Fixup (Zhang et al. 2019) both.
#ifndef TARN_OPS_SCALE_H
#define TARN_OPS_SCALE_H

#include "graph/graph.h"

tarn__tensor *tarn__scale(tarn__graph *graph, tarn__tensor *x, tarn__param *gain, tarn__param *shift);

// Forward: GAIN or SHIFT may be NULL.
enum { TARN__SCALE_X, TARN__SCALE_GAIN, TARN__SCALE_SHIFT };

// Backward, with a trained gain or shift, or any gain: DY is set; SAVED_X only if the gain is trained, SAVED_GAIN with
// a gain. DX (NULL: not wanted) shares the memory of PREVIOUS, the gradient of x so far, or NULL.
enum { TARN__SCALE_DY, TARN__SCALE_SAVED_X, TARN__SCALE_SAVED_GAIN, TARN__SCALE_PREVIOUS };
enum { TARN__SCALE_DX };
enum { TARN__SCALE_DGAIN, TARN__SCALE_DSHIFT };

#endif
