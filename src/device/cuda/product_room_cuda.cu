// The memory that products of each stream use.
#include <pthread.h>
#include <stdlib.h>

#include "device/cuda/product.h"

typedef struct stream_room {
  struct stream_room *next;
  cudaStream_t stream;
  char *memory;
} stream_room;
static stream_room *rooms;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static tarn_status find_or_make(char **memory, cudaStream_t stream) {
  for (stream_room *room = rooms; room; room = room->next)
    if (room->stream == stream) return *memory = room->memory, TARN_STATUS_OK;
  stream_room *room = (stream_room *)calloc(1, sizeof *room);
  TARN_REQUIRE(room, MEMORY, "out of memory");
  const cudaError_t error = cudaMalloc((void **)&room->memory, TARN__PRODUCT_WORKSPACE + TARN__PRODUCT_BIAS);
  if (error != cudaSuccess) {
    free(room);
    return tarn__cuda_fail(error, "allocating room for products");
  }
  room->stream = stream;
  room->next = rooms;
  rooms = room;
  *memory = room->memory;
  return TARN_STATUS_OK;
}

tarn_status tarn__cuda_product_room(char **memory, cudaStream_t stream) {
  pthread_mutex_lock(&lock);
  const tarn_status status = find_or_make(memory, stream);
  pthread_mutex_unlock(&lock);
  return status;
}

void tarn__cuda_product_free(cudaStream_t stream) {
  pthread_mutex_lock(&lock);
  for (stream_room **at = &rooms; *at; at = &(*at)->next) {
    stream_room *room = *at;
    if (room->stream != stream) continue;
    *at = room->next;
    cudaFree(room->memory);
    free(room);
    break;
  }
  pthread_mutex_unlock(&lock);
}
