// TARN__HOST_DEVICE marks inline functions that kernels of a GPU (src/device/cuda) call as well as the host.
#ifndef TARN_BASE_HOST_DEVICE_H
#define TARN_BASE_HOST_DEVICE_H

#if defined(__CUDACC__)
#define TARN__HOST_DEVICE __host__ __device__
#else
#define TARN__HOST_DEVICE
#endif

#endif
