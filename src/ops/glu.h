// What the files of the op glu share: places of inputs and outputs, kernels.
#ifndef TARN_OPS_GLU_H
#define TARN_OPS_GLU_H

#include "device/variant.h"
#include "graph/graph.h"

// Forward: X is the only input and y the only output. Backward: PREVIOUS is the gradient of x so far, which the output
// shares, or NULL.
enum { TARN__GLU_X, TARN__GLU_DY, TARN__GLU_PREVIOUS };

tarn_status tarn__glu_f32(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__glu_f64(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__glu_backward_f32(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__glu_backward_f64(const tarn__exec *exec, const tarn__node *node);

typedef struct tarn__glu_kernels {
  tarn__kernel forward, backward;
} tarn__glu_kernels;
TARN__TABLES(tarn__glu_kernels);

#endif
