// What the files of the op rotary share: attributes, places of inputs and outputs.
#ifndef TARN_OPS_ROTARY_H
#define TARN_OPS_ROTARY_H

#include "ops/ops.h"

typedef struct tarn__rotary_attr {
  tarn__rotary_spec spec;
  int back;  // 0, or 1: by the negative angle
} tarn__rotary_attr;

// The gradient of the result takes the place of X on the way back.
enum { TARN__ROTARY_X, TARN__ROTARY_POSITIONS };

#endif
