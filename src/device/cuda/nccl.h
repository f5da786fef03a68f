// What is used of NCCL, which is loaded when ranks join (peers_cuda.cu): declared here, so that it is not needed to
// build. The types and numbers are those of nccl.h of NCCL 2.
#ifndef TARN_DEVICE_CUDA_NCCL_H
#define TARN_DEVICE_CUDA_NCCL_H

#include <cuda_runtime.h>
#include <stddef.h>

typedef struct tarn__nccl_comm *tarn__nccl_comm_t;
typedef struct tarn__nccl_id {
  char internal[128];
} tarn__nccl_id;
enum { TARN__NCCL_SUCCESS = 0, TARN__NCCL_BYTES = 1 };  // ncclSuccess, ncclUint8

typedef struct tarn__nccl {
  int (*get_unique_id)(tarn__nccl_id *id);
  int (*comm_init_rank)(tarn__nccl_comm_t *comm, int size, tarn__nccl_id id, int rank);
  int (*comm_destroy)(tarn__nccl_comm_t comm);
  int (*comm_abort)(tarn__nccl_comm_t comm);
  int (*comm_get_async_error)(tarn__nccl_comm_t comm, int *error);
  int (*group_start)(void);
  int (*group_end)(void);
  int (*send)(const void *from, size_t count, int type, int peer, tarn__nccl_comm_t comm, cudaStream_t stream);
  int (*recv)(void *to, size_t count, int type, int peer, tarn__nccl_comm_t comm, cudaStream_t stream);
  const char *(*get_error_string)(int error);
} tarn__nccl;

#endif
