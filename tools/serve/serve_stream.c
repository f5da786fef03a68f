#include "serve/serve_stream.h"

#include <stdlib.h>
#include <string.h>

void serve_stream_open(serve_stream *stream, size_t most, serve_stream_total *total, void (*wake)(void *user),
                       void *user) {
  *stream = (serve_stream){.most = most, .total = total, .wake = wake, .user = user, .waits = true};
  pthread_mutex_init(&stream->lock, NULL);
}

// With the lock held, or by the last thread.
static void drop_bytes(serve_stream *s) {
  free(s->bytes);
  atomic_fetch_sub(&s->total->bytes, s->counted);
  s->bytes = NULL;
  s->size = s->room = s->counted = 0;
}

void serve_stream_close(serve_stream *stream) {
  pthread_mutex_destroy(&stream->lock);
  drop_bytes(stream);
}

// Unlocks the stream, and resumes its connection if it is suspended. That is done without the lock: the woken thread
// may run at once; if it found the lock taken, it would sleep again and then wait for a computing thread's slice to
// end. Only this call resumes the connection, and the caller still holds the exchange, so nothing is closed in between.
static void unlock_and_wake(serve_stream *s, bool wanted) {
  const bool wakes = wanted && s->waits;
  void (*const wake)(void *user) = s->wake;
  void *const user = s->user;
  if (wakes) s->waits = false;
  pthread_mutex_unlock(&s->lock);
  if (wakes) wake(user);
}

// Makes room for `size` bytes. Cuts the stream if all streams have too many. With the lock held.
static bool grow(serve_stream *s, size_t size) {
  const size_t room = size > SERVE_STREAM_FREE / 2 ? 2 * size : SERVE_STREAM_FREE;
  const size_t more = room > SERVE_STREAM_FREE ? room - s->counted : 0;
  if (atomic_fetch_add(&s->total->bytes, more) > s->total->most - more || more > s->total->most) {
    atomic_fetch_sub(&s->total->bytes, more);
    s->cut = true;
    return false;
  }
  char *grown = realloc(s->bytes, room);
  if (!grown) atomic_fetch_sub(&s->total->bytes, more);
  if (!grown) return false;
  s->counted += more;
  s->bytes = grown;
  s->room = room;
  return true;
}

// A part that is alone in the buffer may have any size. With the lock held.
static bool append(serve_stream *s, const char *bytes, size_t size) {
  if (s->size > 0 && (size > s->most || s->size > s->most - size)) s->cut = true;
  if (s->cut) return false;
  if (s->size + size > s->room && !grow(s, s->size + size)) return false;
  memcpy(s->bytes + s->size, bytes, size);
  s->size += size;
  return true;
}

bool serve_stream_put(serve_stream *stream, const char *bytes, size_t size) {
  pthread_mutex_lock(&stream->lock);
  const bool good = append(stream, bytes, size);
  if (stream->cut) drop_bytes(stream);  // nobody takes them any more
  stream->begun |= good || stream->cut;
  unlock_and_wake(stream, stream->begun);  // else the request goes on, and its connection sleeps until it is done
  return good;
}

void serve_stream_last(serve_stream *stream, const char *bytes) {
  pthread_mutex_lock(&stream->lock);
  stream->last = bytes;
  stream->last_size = strlen(bytes);
  stream->begun = true;
  unlock_and_wake(stream, true);
}

void serve_stream_end(serve_stream *stream) {
  pthread_mutex_lock(&stream->lock);
  stream->ended = true;
  unlock_and_wake(stream, true);
}

ssize_t serve_stream_take(serve_stream *stream, char *to, size_t most, void (*suspend)(void *user)) {
  ssize_t taken;
  pthread_mutex_lock(&stream->lock);
  const size_t size = stream->size < most ? stream->size : most;
  const size_t rest = stream->last_size < most ? stream->last_size : most;
  if (stream->cut) {
    taken = SERVE_STREAM_CUT;
  } else if (size > 0) {
    memcpy(to, stream->bytes, size);
    memmove(stream->bytes, stream->bytes + size, stream->size - size);
    stream->size -= size;
    if (stream->size == 0 && stream->counted > 0) drop_bytes(stream);
    taken = (ssize_t)size;
  } else if (rest > 0) {
    memcpy(to, stream->last, rest);
    stream->last += rest;
    stream->last_size -= rest;
    taken = (ssize_t)rest;
  } else if (stream->ended) {
    taken = SERVE_STREAM_END;
  } else {
    stream->waits = true;
    suspend(stream->user);
    taken = SERVE_STREAM_WAIT;
  }
  pthread_mutex_unlock(&stream->lock);
  return taken;
}

void serve_stream_leave(serve_stream *stream) {
  pthread_mutex_lock(&stream->lock);
  stream->cut = true;
  stream->waits = false;
  drop_bytes(stream);
  pthread_mutex_unlock(&stream->lock);
}

bool serve_stream_is_read(serve_stream *stream) {
  pthread_mutex_lock(&stream->lock);
  const bool cut = stream->cut;
  pthread_mutex_unlock(&stream->lock);
  return !cut;
}

bool serve_stream_has_begun(serve_stream *stream) {
  pthread_mutex_lock(&stream->lock);
  const bool begun = stream->begun;
  pthread_mutex_unlock(&stream->lock);
  return begun;
}
