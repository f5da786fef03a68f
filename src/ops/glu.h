// Shared by the files of the op glu: indices of inputs and outputs. The attribute of the ops is the gate's
// tarn__activation.
#ifndef TARN_OPS_GLU_H
#define TARN_OPS_GLU_H

#include "graph/graph.h"

// Forward: X is the only input and y the only output. Backward: PREVIOUS is the gradient of x so far, whose memory the
// output shares, or NULL.
enum { TARN__GLU_X, TARN__GLU_DY, TARN__GLU_PREVIOUS };

// Tangent: X and its tangent DX [k R, 2 d]; out dy [k R, d] = dleft act(right) + left act'(right) dright.
enum { TARN__GLU_DX = 1 };

#endif
