// Shared by the files of the op rotary: attributes, indices of inputs and outputs.
#ifndef TARN_OPS_ROTARY_H
#define TARN_OPS_ROTARY_H

#include "base/host_device.h"
#include "ops/ops.h"

typedef struct tarn__rotary_attr {
  tarn__rotary_spec spec;
  int back;  // 0, or 1: by the negative angle
} tarn__rotary_attr;

// What a frequency, in turns a position, is multiplied by.
static inline TARN__HOST_DEVICE double tarn__rotary_slowing(const tarn__rotary_scaling *scaling, double turns) {
  if (!(scaling->factor > 1.0)) return 1.0;
  const double slow = 1.0 / scaling->factor, whole = turns * scaling->original;
  if (scaling->original <= 0.0 || whole < scaling->low) return slow;
  if (whole > scaling->high) return 1.0;
  const double share = (whole - scaling->low) / (scaling->high - scaling->low);
  return (1.0 - share) * slow + share;
}

// The gradient of the result replaces X in the backward pass.
enum { TARN__ROTARY_X, TARN__ROTARY_POSITIONS };

#endif
