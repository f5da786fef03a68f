// What the files of the op rotary share: attributes, places of inputs and outputs, kernels.
#ifndef TARN_OPS_ROTARY_H
#define TARN_OPS_ROTARY_H

#include "device/variant.h"
#include "ops/ops.h"

typedef struct tarn__rotary_attr {
  tarn__rotary_spec spec;
  bool back;  // by the negative angle
} tarn__rotary_attr;

// The gradient of the result takes the place of X on the way back.
enum { TARN__ROTARY_X, TARN__ROTARY_POSITIONS };

tarn_status tarn__rotary_f32(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__rotary_f64(const tarn__exec *exec, const tarn__node *node);

typedef struct tarn__rotary_kernels {
  tarn__kernel forward;
  size_t (*scratch)(const tarn__node *node, int threads);  // bytes
} tarn__rotary_kernels;
TARN__TABLES(tarn__rotary_kernels);

#endif
