// What the files of cuda-host share.
#ifndef TARN_TESTS_CUDA_HOST_CUDA_HOST_H
#define TARN_TESTS_CUDA_HOST_CUDA_HOST_H

#include <cuda_runtime.h>

// Called before each piece of work on a stream; fails if the card has fallen off.
cudaError_t tarn__host_queue(cudaStream_t stream);

#endif
