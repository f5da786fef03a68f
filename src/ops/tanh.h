// Shared by the files of the op tanh: indices of inputs of its gradient, which needs the output. PREVIOUS is the
// gradient of x so far, whose memory the output shares, or NULL.
//   tanh_tangent  in: y, dx [k R, n]   out: dy = (1 - y^2) dx
#ifndef TARN_OPS_TANH_H
#define TARN_OPS_TANH_H

#include "graph/graph.h"

enum { TARN__TANH_Y, TARN__TANH_DY, TARN__TANH_PREVIOUS };
enum { TARN__TANH_DX = TARN__TANH_DY };

#endif
