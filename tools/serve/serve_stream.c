#include "serve/serve_stream.h"

#include <stdlib.h>
#include <string.h>

void serve_stream_open(serve_stream *stream, size_t most, void (*wake)(void *user), void *user) {
  *stream = (serve_stream){.most = most, .wake = wake, .user = user, .waits = true};
  pthread_mutex_init(&stream->lock, NULL);
}

void serve_stream_close(serve_stream *stream) {
  pthread_mutex_destroy(&stream->lock);
  free(stream->bytes);
  stream->bytes = NULL;
}

// With the lock held, so that the connection is not suspended in between.
static void wake(serve_stream *s) {
  if (!s->waits) return;
  s->waits = false;
  s->wake(s->user);
}

// A part that is alone in the buffer may have any size. With the lock held.
static bool append(serve_stream *s, const char *bytes, size_t size) {
  if (s->size > 0 && (size > s->most || s->size > s->most - size)) return false;
  if (s->size + size > s->room) {
    const size_t room = 2 * (s->size + size);
    char *grown = realloc(s->bytes, room);
    if (!grown) return false;
    s->bytes = grown;
    s->room = room;
  }
  memcpy(s->bytes + s->size, bytes, size);
  s->size += size;
  return true;
}

bool serve_stream_put(serve_stream *stream, const char *bytes, size_t size) {
  pthread_mutex_lock(&stream->lock);
  if (!stream->cut) stream->cut = !append(stream, bytes, size);
  stream->begun = true;
  const bool good = !stream->cut;
  wake(stream);
  pthread_mutex_unlock(&stream->lock);
  return good;
}

void serve_stream_end(serve_stream *stream, bool good) {
  pthread_mutex_lock(&stream->lock);
  stream->ended = true;
  stream->cut |= !good;
  wake(stream);
  pthread_mutex_unlock(&stream->lock);
}

ssize_t serve_stream_take(serve_stream *stream, char *to, size_t most, void (*suspend)(void *user)) {
  ssize_t taken;
  pthread_mutex_lock(&stream->lock);
  const size_t size = stream->size < most ? stream->size : most;
  if (stream->cut) {
    taken = SERVE_STREAM_CUT;
  } else if (size > 0) {
    memcpy(to, stream->bytes, size);
    memmove(stream->bytes, stream->bytes + size, stream->size - size);
    stream->size -= size;
    taken = (ssize_t)size;
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
