// Streams of the shadow device (shadow_device.h). Commands are queued and executed when the host waits for them at the
// latest. Before that, a random part of them is executed, one command from a random stream at a time, in any order that
// streams and events permit. Code that relies on an order not guaranteed, reads too early, or modifies data that a
// command has yet to read gets different numbers, usually in the first run.
#ifndef TARN_TESTS_SHADOW_STREAM_H
#define TARN_TESTS_SHADOW_STREAM_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/stream.h"

static inline void shadow_stop(const char *what) {
  fprintf(stderr, "shadow device: %s\n", what);
  abort();
}

struct tarn__device_event {
  uint64_t recorded, done;  // number of times
};

// A command of a stream: a function with a copy of its arguments, or an operation on an event.
typedef struct shadow_command {
  struct shadow_command *next;
  tarn_status (*run)(void *arguments);
  tarn__device_event *event;  // recorded here, or waited for until it has been recorded `times` times
  bool waits;
  uint64_t times;
  max_align_t arguments[];
} shadow_command;

struct tarn__device_stream {
  shadow_command *first, **last;
  struct tarn__device_stream *next;
};

static struct {
  pthread_mutex_t lock;  // for all fields below; held while commands run
  tarn__device_stream always, *others;
  uint64_t random;
  bool eager;  // execute everything immediately
  bool idle;   // execute nothing until the host waits
  // Ignore what the default stream, and what the others wait for: the mistake of a missing event.
  bool deaf, others_deaf;
  bool open;  // the memory is accessible until the lock is released
  tarn_status status;
  char line[1024];          // the first failure
  int64_t commands, ahead;  // executed, in total and before the host waited for them
} shadow_queues = {.lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP, .random = 1};

// After a fault within a command, waiting for the lock would never end.
static inline void shadow_lock(void) {
  if (pthread_mutex_lock(&shadow_queues.lock) != 0) shadow_stop("a command did not come to its end");
}

// Of shadow_device.h: the memory becomes accessible, and protected again.
static inline void shadow_enter(void);
static inline void shadow_leave(void);

// Protects the memory once for all commands that were executed since the lock was taken: for each of them, that took
// most of the tests' time.
static inline void shadow_unlock(void) {
  if (shadow_queues.open) shadow_leave();
  shadow_queues.open = false;
  pthread_mutex_unlock(&shadow_queues.lock);
}

static inline uint64_t shadow_random(uint64_t below) {
  uint64_t x = shadow_queues.random += 0x9E3779B97F4A7C15u;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return (x ^ x >> 31) % below;
}

static inline tarn__device_stream *shadow_stream(tarn__device_stream *stream) {
  return stream ? stream : &shadow_queues.always;
}

static inline bool shadow_ready(const tarn__device_stream *stream) {
  const shadow_command *c = stream->first;
  const bool deaf = stream == &shadow_queues.always ? shadow_queues.deaf : shadow_queues.others_deaf;
  return c && (deaf || !(c->waits && c->event->done < c->times));
}

// Executes the next command of a stream.
static inline void shadow_do(tarn__device_stream *stream) {
  shadow_command *c = stream->first;
  stream->first = c->next;
  if (!stream->first) stream->last = &stream->first;
  if (c->event && !c->waits && c->event->done < c->times) c->event->done = c->times;
  if (c->run) {
    if (!shadow_queues.open) shadow_enter();
    shadow_queues.open = true;
    const tarn_status status = c->run(c->arguments);
    if (status != TARN_STATUS_OK && shadow_queues.status == TARN_STATUS_OK) {
      shadow_queues.status = status;
      snprintf(shadow_queues.line, sizeof shadow_queues.line, "%s", tarn_error_message());
    }
  }
  shadow_queues.commands++;
  free(c);
}

// Executes a command of a random stream that can proceed; false: none can.
static inline bool shadow_do_some(void) {
  uint64_t ready = shadow_ready(&shadow_queues.always);
  for (tarn__device_stream *s = shadow_queues.others; s; s = s->next) ready += shadow_ready(s);
  if (ready == 0) return false;
  uint64_t left = shadow_random(ready);
  if (shadow_ready(&shadow_queues.always) && left-- == 0) return shadow_do(&shadow_queues.always), true;
  for (tarn__device_stream *s = shadow_queues.others; s; s = s->next)
    if (shadow_ready(s) && left-- == 0) return shadow_do(s), true;
  return false;
}

// The status returned to the host when it waits; reported once.
static inline tarn_status shadow_outcome(void) {
  const tarn_status status = shadow_queues.status;
  shadow_queues.status = TARN_STATUS_OK;
  return status == TARN_STATUS_OK ? status : tarn__fail(status, "%s", shadow_queues.line);
}

static inline void shadow_append(tarn__device_stream *to, shadow_command *command) {
  tarn__device_stream *stream = shadow_stream(to);
  shadow_lock();
  if (!stream->last) stream->last = &stream->first;
  *stream->last = command;
  stream->last = &command->next;
  // Usually nothing is executed yet; occasionally the device is fast.
  uint64_t now = shadow_queues.eager ? UINT64_MAX : shadow_random(4) == 0 ? shadow_random(8) : 0;
  if (shadow_queues.idle) now = 0;
  while (now-- > 0 && shadow_do_some()) shadow_queues.ahead++;
  shadow_unlock();
}

// Allocates a command with `bytes` bytes of arguments, which the caller fills in before appending it.
static inline shadow_command *shadow_command_new(tarn_status (*run)(void *arguments), size_t bytes) {
  shadow_command *command = calloc(1, sizeof *command + bytes);
  if (!command) shadow_stop("out of memory");
  command->run = run;
  return command;
}

static inline tarn_status shadow_ask(tarn__device_stream *stream, tarn_status (*run)(void *arguments),
                                     const void *arguments, size_t bytes) {
  shadow_command *command = shadow_command_new(run, bytes);
  memcpy(command->arguments, arguments, bytes);
  shadow_append(stream, command);
  return TARN_STATUS_OK;
}

// --- the interface of a device

static inline tarn_status shadow_stream_open(const tarn__device *device, tarn__device_stream **stream) {
  (void)device;
  tarn__device_stream *fresh = calloc(1, sizeof *fresh);
  if (!fresh) shadow_stop("out of memory");
  shadow_lock();
  fresh->next = shadow_queues.others;
  shadow_queues.others = fresh;
  shadow_unlock();
  *stream = fresh;
  return TARN_STATUS_OK;
}

static inline tarn_status shadow_synchronise(const tarn__device *device, tarn__device_stream *stream) {
  (void)device;
  shadow_lock();
  while (shadow_stream(stream)->first)
    if (!shadow_do_some()) shadow_stop("streams wait for each other for ever");
  const tarn_status status = shadow_outcome();
  shadow_unlock();
  return status;
}

// Waits for all streams.
static inline void shadow_synchronise_all(void) {
  shadow_lock();
  while (shadow_do_some()) continue;
  shadow_unlock();
}

static inline void shadow_stream_close(const tarn__device *device, tarn__device_stream *stream) {
  const tarn_status status = shadow_synchronise(device, stream);
  (void)status;
  shadow_lock();
  tarn__device_stream **at = &shadow_queues.others;
  while (*at != stream) at = &(*at)->next;
  *at = stream->next;
  shadow_unlock();
  free(stream);
}

static inline tarn_status shadow_event_open(const tarn__device *device, tarn__device_event **event) {
  (void)device;
  *event = calloc(1, sizeof **event);
  if (!*event) shadow_stop("out of memory");
  return TARN_STATUS_OK;
}

static inline void shadow_event_close(const tarn__device *device, tarn__device_event *event) {
  (void)device;
  shadow_synchronise_all();  // a command may still refer to it
  free(event);
}

static inline tarn_status shadow_record(const tarn__device *device, tarn__device_event *event,
                                        tarn__device_stream *stream) {
  (void)device;
  shadow_command *command = shadow_command_new(NULL, 0);
  command->event = event;
  shadow_lock();
  command->times = ++event->recorded;
  shadow_unlock();
  shadow_append(stream, command);
  return TARN_STATUS_OK;
}

static inline tarn_status shadow_await(const tarn__device *device, tarn__device_stream *stream,
                                       tarn__device_event *event) {
  (void)device;
  shadow_command *command = shadow_command_new(NULL, 0);
  command->event = event;
  command->waits = true;
  shadow_lock();
  command->times = event->recorded;
  shadow_unlock();
  shadow_append(stream, command);
  return TARN_STATUS_OK;
}

static inline tarn_status shadow_synchronise_event(const tarn__device *device, tarn__device_event *event) {
  (void)device;
  shadow_lock();
  while (event->done < event->recorded)
    if (!shadow_do_some()) shadow_stop("an event waits for ever");
  const tarn_status status = shadow_outcome();
  shadow_unlock();
  return status;
}

#endif
