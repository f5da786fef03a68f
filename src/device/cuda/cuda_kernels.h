// The kernels of the CUDA device for nodes of a graph, in families: a folder or file of this folder that fills its
// entries of the table.
#ifndef TARN_DEVICE_CUDA_CUDA_KERNELS_H
#define TARN_DEVICE_CUDA_CUDA_KERNELS_H

#include "device/cuda/cuda.h"

// Each family has one function, void tarn__cuda_NAME_entries(tarn__device_kernel *kernels), which sets kernels[op] for
// its ops.
#define TARN__CUDA_FAMILIES(FAMILY) FAMILY(add) FAMILY(attention)

#define TARN__CUDA_FAMILY(name) void tarn__cuda_##name##_entries(tarn__device_kernel *kernels);
TARN__CUDA_FAMILIES(TARN__CUDA_FAMILY)
#undef TARN__CUDA_FAMILY

// The table: complete after tarn__cuda_kernels_fill().
extern tarn__device_kernel tarn__cuda_kernels[TARN__OPS];
void tarn__cuda_kernels_fill(void);

// A feature that a node needs and the device lacks, worded to follow "needs"; NULL: none.
const char *tarn__cuda_lacks(const tarn__device *device, const tarn__node *node);
const char *tarn__cuda_attention_lacks(const tarn__node *node);  // a family's part of it

#endif
