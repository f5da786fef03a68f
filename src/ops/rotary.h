// Shared by the files of the op rotary: attributes, indices of inputs and outputs.
#ifndef TARN_OPS_ROTARY_H
#define TARN_OPS_ROTARY_H

#include "ops/ops.h"

typedef struct tarn__rotary_attr {
  tarn__rotary_spec spec;
  int back;  // 0, or 1: by the negative angle
} tarn__rotary_attr;

// The gradient of the result replaces X in the backward pass.
enum { TARN__ROTARY_X, TARN__ROTARY_POSITIONS };

#endif
