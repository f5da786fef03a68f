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

// Takes dy [rows, cols], in place, through an activation whose y or z is `saved` (not read for IDENTITY), and adds the
// sums of its columns to the gradient of the bias (NULL: none), for which it needs scratch.
tarn_status tarn__cuda_through_activation(const tarn__tensor *dy, const tarn__tensor *saved, tarn__activation form,
                                          tarn__param *bias, void *scratch, cudaStream_t stream);
size_t tarn__cuda_bias_scratch(const tarn__tensor *dy, const tarn__param *bias);

#endif
