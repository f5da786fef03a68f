// Inside of the op add.
#ifndef TARN_OPS_ADD_H
#define TARN_OPS_ADD_H

#include "device/variant.h"
#include "graph/graph.h"

tarn_status tarn__add_ref_f32(const tarn__exec *exec, const tarn__node *node);
tarn_status tarn__add_ref_f64(const tarn__exec *exec, const tarn__node *node);

typedef struct tarn__add_kernels {
  tarn__kernel add;
} tarn__add_kernels;

TARN__TABLES(tarn__add_kernels);

#endif
