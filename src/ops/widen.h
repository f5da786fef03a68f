// Shared by the files of the op widen: indices of inputs.
#ifndef TARN_OPS_WIDEN_H
#define TARN_OPS_WIDEN_H

#include "ops/ops.h"

// BASE may be NULL; the output may share its memory.
enum { TARN__WIDEN_X, TARN__WIDEN_BASE };

// Backward, the gradient of x: its columns of DY. PREVIOUS is the gradient so far, whose memory the output shares, or
// NULL.
enum { TARN__WIDEN_DY, TARN__WIDEN_PREVIOUS };

#endif
