// Streams and events: those of CUDA, whose pointers stand behind the names of device/stream.h.
#include "device/cuda/cuda_device.h"
#include "device/cuda/product.h"

static cudaEvent_t event_of(tarn__device_event *event) { return (cudaEvent_t)(void *)event; }

static tarn_status stream_open(const tarn__device *device, tarn__device_stream **stream) {
  (void)device;
  cudaStream_t made = NULL;
  tarn__cuda_stream(NULL);
  TARN__CUDA(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "opening a stream");
  *stream = (tarn__device_stream *)(void *)made;
  return TARN_STATUS_OK;
}

static void stream_close(const tarn__device *device, tarn__device_stream *stream) {
  (void)device;
  const cudaStream_t closed = tarn__cuda_stream(stream);
  cudaStreamSynchronize(closed);
  tarn__cuda_room_free(closed);
  tarn__cuda_product_free(closed);
  cudaStreamDestroy(closed);
}

static tarn_status event_open(const tarn__device *device, tarn__device_event **event) {
  (void)device;
  cudaEvent_t made = NULL;
  tarn__cuda_stream(NULL);
  TARN__CUDA(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "opening an event");
  *event = (tarn__device_event *)(void *)made;
  return TARN_STATUS_OK;
}

static void event_close(const tarn__device *device, tarn__device_event *event) {
  (void)device;
  tarn__cuda_stream(NULL);
  cudaEventDestroy(event_of(event));
}

static tarn_status record(const tarn__device *device, tarn__device_event *event, tarn__device_stream *stream) {
  (void)device;
  TARN__CUDA(cudaEventRecord(event_of(event), tarn__cuda_stream(stream)), "recording an event");
  return TARN_STATUS_OK;
}

static tarn_status await(const tarn__device *device, tarn__device_stream *stream, tarn__device_event *event) {
  (void)device;
  TARN__CUDA(cudaStreamWaitEvent(tarn__cuda_stream(stream), event_of(event), 0), "waiting for an event");
  return TARN_STATUS_OK;
}

static tarn_status synchronise_event(const tarn__device *device, tarn__device_event *event) {
  (void)device;
  tarn__cuda_stream(NULL);
  TARN__CUDA(cudaEventSynchronize(event_of(event)), "computing");
  return TARN_STATUS_OK;
}

static tarn_status synchronise(const tarn__device *device, tarn__device_stream *stream) {
  (void)device;
  TARN__CUDA(cudaStreamSynchronize(tarn__cuda_stream(stream)), "computing");
  return TARN_STATUS_OK;
}

void tarn__cuda_stream_entries(tarn__device_type *type) {
  type->stream_open = stream_open;
  type->stream_close = stream_close;
  type->event_open = event_open;
  type->event_close = event_close;
  type->record = record;
  type->await = await;
  type->synchronise_event = synchronise_event;
  type->synchronise = synchronise;
}
