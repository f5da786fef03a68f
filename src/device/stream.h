// Streams and events of a device. What is asked for on one stream is done in that order; streams know nothing of each
// other but by events. NULL is the stream that every device has. A device that has done all when a call returns, such
// as the processor, has no others: opening one gives NULL, and nothing waits.
#ifndef TARN_DEVICE_STREAM_H
#define TARN_DEVICE_STREAM_H

#include "device/device.h"

static inline tarn_status tarn__device_stream_open(const tarn__device *device, tarn__device_stream **stream) {
  *stream = NULL;
  return device->type->stream_open ? device->type->stream_open(device, stream) : TARN_STATUS_OK;
}
// Waits until all is done that was asked for on it. Accepts NULL.
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

// The event is what was asked for on the stream until now; an event that was recorded before is forgotten. Here and
// below an event of NULL is over.
static inline tarn_status tarn__device_event_record(const tarn__device *device, tarn__device_event *event,
                                                    tarn__device_stream *stream) {
  return event ? device->type->record(device, event, stream) : TARN_STATUS_OK;
}
// What is asked for on the stream from now on comes after the event. One that was never recorded is over.
static inline tarn_status tarn__device_stream_await(const tarn__device *device, tarn__device_stream *stream,
                                                    tarn__device_event *event) {
  return event ? device->type->await(device, stream, event) : TARN_STATUS_OK;
}
// The host waits for the event.
static inline tarn_status tarn__device_event_synchronise(const tarn__device *device, tarn__device_event *event) {
  return event ? device->type->synchronise_event(device, event) : TARN_STATUS_OK;
}
// The host waits for a stream. Fails where something has failed that was asked for.
static inline tarn_status tarn__device_stream_synchronise(const tarn__device *device, tarn__device_stream *stream) {
  return device->type->synchronise ? device->type->synchronise(device, stream) : TARN_STATUS_OK;
}
// For the stream that every device has.
static inline tarn_status tarn__device_synchronise(const tarn__device *device) {
  return tarn__device_stream_synchronise(device, NULL);
}

#endif
