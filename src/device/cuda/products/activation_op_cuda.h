// An activation after a product.
#ifndef TARN_DEVICE_CUDA_PRODUCTS_ACTIVATION_OP_CUDA_H
#define TARN_DEVICE_CUDA_PRODUCTS_ACTIVATION_OP_CUDA_H

#include "device/cuda/cuda.h"

extern "C" {
#include "ops/ops.h"
}

// n elements y = act(x), float or bf16; y may be x.
template <typename T>
tarn_status tarn__cuda_activate(T *y, const T *x, int64_t n, tarn__activation form, cudaStream_t stream);

#endif
