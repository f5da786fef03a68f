// Streams and events of a device. Commands on one stream execute in order; streams are synchronised only by events.
// NULL is the default stream, which every device has. A synchronous device, such as the processor, has no other
// streams: opening one gives NULL, and nothing waits.
#ifndef TARN_DEVICE_STREAM_H
#define TARN_DEVICE_STREAM_H

#include "device/device.h"

static inline tarn_status tarn__device_stream_open(const tarn__device *device, tarn__device_stream **stream) {
  *stream = NULL;
  return device->type->stream_open ? device->type->stream_open(device, stream) : TARN_STATUS_OK;
}
// Waits for all commands on the stream. Accepts NULL.
static inline void tarn__device_stream_close(const tarn__device *device, tarn__device_stream *stream) {
  if (stream) device->type->stream_close(device, stream);
}

static inline tarn_status tarn__device_event_open(const tarn__device *device, tarn__device_event **event) {
  *event = NULL;
  return device->type->event_open ? device->type->event_open(device, event) : TARN_STATUS_OK;
}
// Accepts NULL.
static inline void tarn__device_event_close(const tarn__device *device, tarn__device_event *event) {
  if (event) device->type->event_close(device, event);
}

// Records the commands issued to the stream so far, replacing an earlier recording. Here and below a NULL event is
// complete.
static inline tarn_status tarn__device_event_record(const tarn__device *device, tarn__device_event *event,
                                                    tarn__device_stream *stream) {
  return event ? device->type->record(device, event, stream) : TARN_STATUS_OK;
}
// Commands issued to the stream from now on execute after the event. An event that was never recorded is complete.
static inline tarn_status tarn__device_stream_await(const tarn__device *device, tarn__device_stream *stream,
                                                    tarn__device_event *event) {
  return event ? device->type->await(device, stream, event) : TARN_STATUS_OK;
}
// The host waits for the event.
static inline tarn_status tarn__device_event_synchronise(const tarn__device *device, tarn__device_event *event) {
  return event ? device->type->synchronise_event(device, event) : TARN_STATUS_OK;
}
// The host waits for a stream. Fails if a command has failed.
static inline tarn_status tarn__device_stream_synchronise(const tarn__device *device, tarn__device_stream *stream) {
  return device->type->synchronise ? device->type->synchronise(device, stream) : TARN_STATUS_OK;
}
// For the default stream.
static inline tarn_status tarn__device_synchronise(const tarn__device *device) {
  return tarn__device_stream_synchronise(device, NULL);
}

#endif
