// HTTP: connections, paths, bodies, limits of size and time, answers. The thread of libmicrohttpd reads requests and
// writes answers; a request to the model waits in the queue (tarn/work_queue.h) with its connection suspended, and the
// queue's thread resumes it with the answer.
#ifndef TARN_TOOLS_SERVE_HTTP_H
#define TARN_TOOLS_SERVE_HTTP_H

#include "cli.h"
#include "serve/serve_languages.h"
#include "serve/serve_metrics.h"
#include "serve/serve_names.h"
#include "serve/serve_request.h"
#include "serve/serve_secret.h"
#include "serve/serve_socket.h"
#include "tarn/work_queue.h"

typedef struct serve_http_options {
  int64_t max_body;      // bytes of a request's body
  int64_t max_pending;   // bytes of the bodies of all unanswered requests; and of all streams that wait to be read
  int64_t connections;   // concurrent connections
  double timeout;        // seconds for a request to arrive, to wait for its turn, and for its answer to be read
  int64_t capacity;      // of the queue
  serve_offers *offers;  // the models
  int64_t started;       // seconds of the epoch
  int64_t stream_bytes;  // most bytes of a stream that its client has not read yet
  const serve_languages *languages;
  serve_names names;
  serve_secret *secret;
  double rate;                    // requests to a model per minute and token; 0: any number
  const char *certificate, *key;  // files; NULL: plain HTTP
} serve_http_options;

typedef struct serve_http serve_http;

// Answers requests on the socket from now on. -1, or the exit code of a failure that has been printed.
int serve_http_open(const cli_command *command, serve_http **http, const serve_http_options *options,
                    const serve_socket *listener, serve_metrics *metrics, tarn_work_queue *queue);

// For serve_models.done: sends the answer.
void serve_http_done(serve_request *request);

// To be called several times per second: disconnects clients that exceed the time for sending a request, with 408 if
// possible, or for reading the answer.
void serve_http_look(serve_http *http);

// Accepts no further connections, and answers further requests with 503.
void serve_http_stop(serve_http *http);

// Waits until the existing answers have been sent, for at most `seconds`, and closes all connections. The queue must be
// finished, and is closed later.
void serve_http_close(serve_http **http, double seconds);

#endif
