// The one card of the process, and the functions of the device type by file.
#ifndef TARN_DEVICE_CUDA_CUDA_DEVICE_H
#define TARN_DEVICE_CUDA_CUDA_DEVICE_H

#include "device/cuda/cuda.h"

// Each sets the functions of the type that its file holds.
void tarn__cuda_memory_entries(tarn__device_type *type);     // memory_cuda.cu: memory and copies
void tarn__cuda_stream_entries(tarn__device_type *type);     // stream_cuda.cu: streams and events
void tarn__cuda_peers_entries(tarn__device_type *type);      // peers_cuda.cu: cards of other processes
void tarn__cuda_peaks_entries(tarn__device_type *type);      // peaks_cuda.cu: what products and copies reach
void tarn__cuda_optimiser_entries(tarn__device_type *type);  // optim/: parameters and ridge regression

// The default stream, and what the device is called in messages.
cudaStream_t tarn__cuda_default_stream(void);
const char *tarn__cuda_name(void);

// Frees the room of a stream that is being closed.
void tarn__cuda_room_free(cudaStream_t stream);

// Forgets the table of parameters (optim/param_table.h) whose copy is in memory that is being freed, if there is one.
void tarn__cuda_table_forget(const void *there);

#endif
