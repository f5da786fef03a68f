// Shared by the files of the op neighbours: indices of inputs. The attribute is tarn__taps.
#ifndef TARN_OPS_NEIGHBOURS_H
#define TARN_OPS_NEIGHBOURS_H

#include "ops/ops.h"

enum { TARN__NEIGHBOURS_X, TARN__NEIGHBOURS_OFFSETS };

// Backward: PREVIOUS is the gradient of x so far, whose memory the output shares, or NULL.
enum { TARN__NEIGHBOURS_DY = TARN__NEIGHBOURS_X, TARN__NEIGHBOURS_PREVIOUS = TARN__NEIGHBOURS_OFFSETS + 1 };

#endif
