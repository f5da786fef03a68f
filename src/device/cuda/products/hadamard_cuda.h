// What the op hadamard cannot do on a card.
#ifndef TARN_DEVICE_CUDA_PRODUCTS_HADAMARD_CUDA_H
#define TARN_DEVICE_CUDA_PRODUCTS_HADAMARD_CUDA_H

#include "device/cuda/cuda.h"

// Rows that are transformed, and sums of them, lie in shared memory.
enum { TARN__HADAMARD_WIDEST = 27000 };

// For tarn__cuda_lacks().
const char *tarn__cuda_hadamard_lacks(const tarn__node *node);

#endif
