// An answer that is sent while it is computed: the thread that computes puts bytes in, libmicrohttpd's takes them out.
// The buffer is bounded, and those of all streams together, and neither thread waits for the other: a connection
// without bytes is suspended, and a client that does not read loses its answer when the buffer is full.
#ifndef TARN_TOOLS_SERVE_STREAM_H
#define TARN_TOOLS_SERVE_STREAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// What the buffers of all streams take together. Those of up to SERVE_STREAM_FREE bytes do not count, so a client that
// reads as fast as its answer comes has no loss from others that do not.
typedef struct serve_stream_total {
  atomic_size_t bytes;
  size_t most;
} serve_stream_total;

enum { SERVE_STREAM_FREE = 4096 };

typedef struct serve_stream {
  pthread_mutex_t lock;  // protects the following
  char *bytes;           // [size], not taken yet
  size_t size, room;
  const char *last;  // [last_size], constant bytes behind all others
  size_t last_size;
  bool begun, ended, cut;  // something was put in; nothing more comes; the client is gone or too slow
  bool waits;              // the connection is suspended until something comes
  size_t most;             // maximum of `size`
  serve_stream_total *total;
  size_t counted;  // bytes of `room` in `total`
  void (*wake)(void *user);
  void *user;
} serve_stream;

enum { SERVE_STREAM_WAIT = -1, SERVE_STREAM_END = -2, SERVE_STREAM_CUT = -3 };

// `wake` resumes the suspended connection, which it is at first. It is called without the lock, so that the resumed
// thread may take bytes at once.
void serve_stream_open(serve_stream *stream, size_t most, serve_stream_total *total, void (*wake)(void *user),
                       void *user);
void serve_stream_close(serve_stream *stream);

// For the thread that computes. False: nobody reads any more, and it may stop; or there was no memory, and the bytes
// are lost.
bool serve_stream_put(serve_stream *stream, const char *bytes, size_t size);
// The last bytes, which stay the caller's and take no memory.
void serve_stream_last(serve_stream *stream, const char *bytes);
// Nothing more comes.
void serve_stream_end(serve_stream *stream);

// For libmicrohttpd's thread. Takes at most `most` bytes; returns their number, or SERVE_STREAM_WAIT after `suspend`,
// called with the lock held, or an end.
ssize_t serve_stream_take(serve_stream *stream, char *to, size_t most, void (*suspend)(void *user));
// The client is gone.
void serve_stream_leave(serve_stream *stream);
// Whether something was put in; whether somebody may still read.
bool serve_stream_has_begun(serve_stream *stream);
bool serve_stream_is_read(serve_stream *stream);

#endif
