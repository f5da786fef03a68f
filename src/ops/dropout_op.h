// Inside of the op dropout: its forward and backward nodes do the same, y = mask * x / (1 - p).
#ifndef TARN_OPS_DROPOUT_OP_H
#define TARN_OPS_DROPOUT_OP_H

#include "device/variant.h"
#include "ops/dropout.h"

// The attribute is a tarn__dropout.
tarn_status tarn__dropout_ref_f32(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__dropout_ref_f64(const tarn__exec *exec, const tarn__node *node);

typedef struct tarn__dropout_kernels {
  tarn__kernel apply;
} tarn__dropout_kernels;

TARN__TABLES(tarn__dropout_kernels);

#endif
