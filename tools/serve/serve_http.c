#include "serve/serve_http.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "json_output.h"
#include "serve/serve_clients.h"
#include "serve/serve_framing.h"
#include "serve/serve_models.h"
#include "serve/serve_openai.h"
#include "serve/serve_paths.h"
#include "serve/serve_slice.h"

// If a body is too large, this much is read and discarded before the answer: a client that is still sending would not
// read it.
enum { DROPPED_BODY = 64 << 20, FILE_BYTES = 1 << 20, LONGEST_RETRY = 1000000000 };

struct serve_http {
  serve_http_options options;
  serve_metrics *metrics;
  tarn_work_queue *queue;
  struct MHD_Daemon *daemon;
  serve_clients clients;
  atomic_bool stopping;
  atomic_int exchanges;  // requests whose answer has not been sent
  size_t pending;        // bytes held by exchanges; only used by the thread of libmicrohttpd
  serve_stream_total unread;
  char *certificate, *key;
  char log[256];  // the last message of libmicrohttpd while it starts
  atomic_bool started;
};

// A request in progress, from the header to the end of its answer.
typedef struct exchange {
  serve_request request;  // first member: the queue's view of it
  serve_http *http;
  struct MHD_Connection *connection;
  serve_client *client;
  const serve_path *path;
  bool get;  // the method is GET or HEAD
  char *body;
  size_t size, room;
  size_t dropped;  // discarded bytes of the body
  size_t held;     // bytes of the body, from arrival to the answer, counted in http->pending
  double began;
  bool queued;  // was added to the queue
  bool answered;
  bool ends;           // close the connection after the answer: the start of the next request is unknown
  int retry;           // seconds after which to try again; 0: 1
  bool reads;          // of a stream: the client has bytes to read
  atomic_int holders;  // the thread of libmicrohttpd, and that of the queue while it computes
  char item[256];      // of a list: its name; "": the path is the list's own
} exchange;

static const char *header(struct MHD_Connection *connection, const char *name) {
  return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

// --- answers ---------------------------------------------------------------------------------------------------------

static bool add_retry(struct MHD_Response *response, int seconds) {
  char text[16];
  snprintf(text, sizeof text, "%d", seconds);
  return MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, text) == MHD_YES;
}

static struct MHD_Response *make_response(exchange *e) {
  serve_request *r = &e->request;
  struct MHD_Response *response;
  const serve_file *file = r->code == 200 ? e->path->file : NULL;
  if (file) {
    response = MHD_create_response_from_buffer(*file->size, (void *)(uintptr_t)file->bytes, MHD_RESPMEM_PERSISTENT);
  } else {
    response = MHD_create_response_from_buffer(r->answer_size, r->answer, MHD_RESPMEM_MUST_FREE);
    if (response) r->answer = NULL;
  }
  if (!response) return NULL;
  const char *type = r->code == 200 ? e->path->type : "application/json";
  bool good = MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES;
  good &= MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") == MHD_YES;
  good &= MHD_add_response_header(response, "X-Content-Type-Options", "nosniff") == MHD_YES;
  if (file)
    good &= MHD_add_response_header(response, "Content-Security-Policy",
                                    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
                                    "connect-src 'self'; img-src data:; frame-ancestors 'none'") == MHD_YES;
  if (r->code == 401) good &= MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer") == MHD_YES;
  if (r->code == 405)
    good &= MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW,
                                    e->path->use < SERVE_USES ? "POST" : "GET, HEAD") == MHD_YES;
  if (r->code == 429 || r->code == 503) good &= add_retry(response, e->retry > 0 ? e->retry : 1);
  if (e->http->stopping || e->ends)
    good &= MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES;
  if (good) return response;
  MHD_destroy_response(response);
  return NULL;
}

static void drop_body(exchange *e) {
  free(e->body);
  e->body = NULL;
  e->size = e->room = 0;
}

static void release(exchange *e) {
  e->http->pending -= e->held;
  e->held = 0;
}

static enum MHD_Result reply(exchange *e) {
  struct MHD_Response *response = make_response(e);
  if (!response) return MHD_NO;
  const enum MHD_Result result = MHD_queue_response(e->connection, (unsigned)e->request.code, response);
  MHD_destroy_response(response);
  e->answered = result == MHD_YES;
  if (e->answered) serve_client_reads(&e->http->clients, e->client);
  // Free the request before the client reads the answer, which may take long.
  drop_body(e);
  serve_request_forget(&e->request);
  release(e);
  return result;
}

// --- streams ---------------------------------------------------------------------------------------------------------

static void suspend(void *user) { MHD_suspend_connection(((exchange *)user)->connection); }
static void resume(void *user) { MHD_resume_connection(((exchange *)user)->connection); }

// A client has the timeout for each time that there is something to read, not for the stream.
static ssize_t read_stream(void *user, uint64_t position, char *to, size_t most) {
  exchange *e = user;
  (void)position;
  const ssize_t taken = serve_stream_take(&e->request.stream, to, most, suspend);
  if (taken > 0 && !e->reads) serve_client_reads(&e->http->clients, e->client);
  if (taken == SERVE_STREAM_WAIT) serve_client_works(&e->http->clients, e->client);
  e->reads = taken > 0;
  return taken > 0                    ? taken
         : taken == SERVE_STREAM_WAIT ? 0
         : taken == SERVE_STREAM_END  ? MHD_CONTENT_READER_END_OF_STREAM
                                      : MHD_CONTENT_READER_END_WITH_ERROR;
}

static enum MHD_Result reply_stream(exchange *e) {
  enum { BLOCK = 4096 };
  struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_stream, e, NULL);
  if (!response) return MHD_NO;
  bool good = MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream") == MHD_YES;
  good &= MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") == MHD_YES;
  good &= MHD_add_response_header(response, "X-Content-Type-Options", "nosniff") == MHD_YES;
  good &= MHD_add_response_header(response, "X-Accel-Buffering", "no") == MHD_YES;  // nginx passes it on at once
  if (e->http->stopping) good &= MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES;
  e->answered = good && MHD_queue_response(e->connection, MHD_HTTP_OK, response) == MHD_YES;
  e->request.code = 200;
  MHD_destroy_response(response);
  return e->answered ? MHD_YES : MHD_NO;
}

// --- requests without the model --------------------------------------------------------------------------------------

static void answer_health(exchange *e) {
  const serve_http_options *o = &e->http->options;
  const serve_offer *offer = &o->offers->items[0];
  const serve_limits *limits = &offer->limits;
  json_t *uses = json_array(), *models = json_array();
  for (int i = 0; i < SERVE_USES; i++)
    if (offer->uses[i]) json_array_append_new(uses, json_string(serve_use_word((serve_use)i, offer->verb)));
  for (size_t i = 0; i < o->offers->count; i++) json_array_append_new(models, json_output_text(o->offers->items[i].id));
  json_t *languages = json_array();
  for (int i = 0; i < o->languages->count; i++) json_array_append_new(languages, json_string(o->languages->tags[i]));
  pthread_mutex_lock(&o->offers->lock);
  json_t *object =
      json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:s, s:b}", "status", e->http->stopping ? "stopping" : "ok", "version",
                TARN_VERSION, "uses", uses, "model", json_output_text(offer->name), "models", models, "languages",
                languages, "precision", offer->precision, "token", o->secret->count > 0);
  pthread_mutex_unlock(&o->offers->lock);
  if (object && offer->uses[SERVE_TRANSLATE]) {
    if (!limits->edits)
      json_object_set_new(object, limits->refines ? "length_beam" : "beam", json_integer((json_int_t)limits->beam));
    if (limits->refines)
      json_object_set_new(object, "iterations", json_integer((json_int_t)limits->iterations));
    else
      json_object_set_new(object, "length_penalty", json_real(limits->length_penalty));
  }
  serve_request_answer(&e->request, object);
  if (e->request.code == 200 && e->http->stopping) e->request.code = 503;
}

static void answer_models(exchange *e) {
  const serve_http_options *o = &e->http->options;
  json_t *answer = serve_openai_models(o->offers, o->started, e->item[0] ? e->item : NULL);
  if (e->item[0] && !answer)
    serve_request_refuse_key(&e->request, 404, "model", "there is no model \"%.200s\"", e->item);
  else
    serve_request_answer(&e->request, answer);
}

static void answer_metrics(exchange *e) {
  serve_http *h = e->http;
  const serve_gauges gauges = {tarn_work_queue_waiting(h->queue), h->options.capacity,
                               serve_clients_count(&h->clients)};
  const char *names[SERVE_PATHS];
  const int count = serve_paths_names(names);
  serve_request *r = &e->request;
  r->answer = serve_metrics_text(h->metrics, names, count, &gauges);
  r->code = 200;
  r->answer_size = r->answer ? strlen(r->answer) : 0;
  if (!r->answer) serve_request_answer(r, NULL);
}

// --- requests to the model -------------------------------------------------------------------------------------------

// One thread less has the exchange; the last one frees it.
static void let_go(exchange *e) {
  serve_http *h = e->http;
  if (atomic_fetch_sub(&e->holders, 1) > 1) return;
  serve_request_close(&e->request);
  free(e);
  atomic_fetch_sub(&h->exchanges, 1);
}

void serve_http_done(serve_request *request) {
  exchange *e = (exchange *)request;
  if (request->streams)
    serve_stream_end(&request->stream);
  else
    resume(e);
  let_go(e);
}

// The request is complete. A request to the model is queued, and the connection is suspended until the answer.
static void finish(exchange *e) {
  serve_http *h = e->http;
  serve_request *r = &e->request;
  serve_client_works(&h->clients, e->client);
  if (e->path->use == SERVE_USES) {
    if (e->path->file)
      r->code = 200;
    else if (strcmp(e->path->name, "/health") == 0)
      answer_health(e);
    else if (e->path->form == SERVE_FORM_OPENAI)
      answer_models(e);
    else
      answer_metrics(e);
    return;
  }
  const bool good = serve_request_read(r, e->body ? e->body : "", e->size, h->options.offers);
  drop_body(e);
  if (!good) return;
  r->arrived = serve_seconds();
  r->deadline = r->arrived + h->options.timeout;
  if (r->streams) serve_stream_open(&r->stream, (size_t)h->options.stream_bytes, &h->unread, resume, e);
  MHD_suspend_connection(e->connection);
  e->queued = true;
  atomic_store(&e->holders, 2);
  serve_metrics_queued(h->metrics, tarn_work_queue_waiting(h->queue));
  const int64_t copies = r->translation.samples > 1 ? r->translation.samples : 1;
  if (tarn_work_queue_add(h->queue, r, ((int64_t)r->bytes + 1) * copies)) return;
  e->queued = false;
  atomic_store(&e->holders, 1);
  if (h->stopping)
    serve_request_refuse(r, 503, "the server is stopping");
  else
    serve_request_refuse(r, 429, "%lld requests wait already", (long long)h->options.capacity);
  MHD_resume_connection(e->connection);
}

// --- headers and bodies ----------------------------------------------------------------------------------------------

// "application/json", with or without parameters.
static bool is_json(const char *type) {
  static const char json[] = "application/json";
  const size_t length = sizeof json - 1;
  return type && strncasecmp(type, json, length) == 0 && strchr("; \t", type[length]);
}

static bool can_do(const serve_offers *offers, const serve_path *path) {
  for (size_t i = 0; i < offers->count; i++)
    if (serve_offer_fits(&offers->items[i], path->use, path->verb)) return true;
  return false;
}

static void check_rate(exchange *e, int token) {
  const serve_http_options *o = &e->http->options;
  const double wait = serve_rate_take(&o->secret->rates[token], o->rate, serve_seconds());
  if (wait == 0) return;
  e->retry = wait < LONGEST_RETRY ? 1 + (int)wait : LONGEST_RETRY;
  serve_request_refuse(&e->request, 429, "more than %g requests a minute%s", o->rate,
                       o->secret->count > 0 ? " with this token" : "");
}

// Checks the header of a request before its body is read.
static void check_header(exchange *e, const char *method) {
  const serve_http_options *o = &e->http->options;
  serve_request *r = &e->request;
  const char *type = header(e->connection, MHD_HTTP_HEADER_CONTENT_TYPE);
  const bool model = e->path->use < SERVE_USES;
  e->get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
  const int token = serve_secret_find(o->secret, header(e->connection, MHD_HTTP_HEADER_AUTHORIZATION));
  if (!e->path->open && token < 0)
    serve_request_refuse(r, 401, "a bearer token is required");
  else if (!e->path->name[0])
    serve_request_refuse(r, 404, "there is nothing here; see /openapi.json");
  else if (model && !can_do(o->offers, e->path))
    serve_request_refuse(r, 404, "this model cannot do %s; /health says what it can do", e->path->name);
  else if (model ? strcmp(method, "POST") != 0 : !e->get)
    serve_request_refuse(r, 405, "%s takes %s", e->path->name, model ? "POST" : "GET");
  else if (e->http->stopping && model)
    serve_request_refuse(r, 503, "the server is stopping");
  else if (model && !is_json(type))
    serve_request_refuse(r, 415, "the body must be JSON, and the header Content-Type must say application/json");
  else if (model && o->rate > 0)
    check_rate(e, token);
}

static void refuse_pending(exchange *e) {
  serve_request_refuse(&e->request, 503, "the bodies of other requests take all of --max-pending-bytes");
}

// Refuses a body that is too large by its header, or for which there is no space now. True: the answer may be sent
// before the body is read.
static bool check_length(exchange *e) {
  const serve_http *h = e->http;
  const char *text = header(e->connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
  const unsigned long long length = text ? strtoull(text, NULL, 10) : 0;
  const bool large = length > (unsigned long long)h->options.max_body;
  if (!large && h->pending + length <= (size_t)h->options.max_pending) return false;
  if (!e->request.code && large)
    serve_request_refuse(&e->request, 413, "a body may have at most %lld bytes", (long long)h->options.max_body);
  else if (!e->request.code)
    refuse_pending(e);
  return length > DROPPED_BODY || header(e->connection, MHD_HTTP_HEADER_EXPECT);
}

static exchange *begin(serve_http *http, struct MHD_Connection *connection, const char *url, const char *method,
                       const char *version, bool bad_target) {
  serve_framing framing = {.bad_target = bad_target};
  exchange *e = calloc(1, sizeof *e);
  if (!e) return NULL;
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  e->http = http;
  e->connection = connection;
  e->client = info ? info->socket_context : NULL;
  e->path = serve_path_find(serve_framing_path(url));
  const char *item = serve_path_item(e->path, serve_framing_path(url));
  if (item) snprintf(e->item, sizeof e->item, "%s", item);
  e->request.use = e->path->use;
  e->request.verb = e->path->verb;
  e->request.form = strncmp(serve_framing_path(url), "/v1/", 4) == 0 ? SERVE_FORM_OPENAI : e->path->form;
  e->holders = 1;
  e->began = serve_seconds();
  atomic_fetch_add(&http->exchanges, 1);
  serve_client_sends(&http->clients, e->client);
  if (!serve_framing_check(&framing, connection, url, version, &e->request) ||
      !serve_names_check(&http->options.names, framing.host, header(connection, "Origin"), &e->request))
    e->ends = true;
  else
    check_header(e, method);
  return e;
}

// Reserves space for this many bytes of the body. False: there is none, and the request has its answer.
static bool make_room(exchange *e, size_t size) {
  serve_http *h = e->http;
  const size_t most = (size_t)h->options.max_body;
  size_t room = 2 * size;
  if (room > most) room = most;
  if (h->pending - e->held + room > (size_t)h->options.max_pending) {
    refuse_pending(e);
    return false;
  }
  char *body = realloc(e->body, room);
  if (!body) {
    serve_request_answer(&e->request, NULL);
    return false;
  }
  h->pending += room - e->held;
  e->held = room;
  e->body = body;
  e->room = room;
  return true;
}

// False: the body is so large that the connection is closed.
static bool take_body(exchange *e, const char *bytes, size_t size) {
  const size_t most = (size_t)e->http->options.max_body;
  if (!e->request.code && e->path->use < SERVE_USES && size > most - e->size)
    serve_request_refuse(&e->request, 413, "a body may have at most %zu bytes", most);
  if (e->request.code || e->path->use == SERVE_USES) {
    drop_body(e);
    release(e);
    e->dropped += size;
    return e->dropped <= DROPPED_BODY;
  }
  if (e->size + size > e->room && !make_room(e, e->size + size)) return true;
  memcpy(e->body + e->size, bytes, size);
  e->size += size;
  return true;
}

static enum MHD_Result handle(void *user, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *upload, size_t *upload_size, void **state) {
  const bool bad_target = serve_framing_saw_bad(*state);
  exchange *e = bad_target ? NULL : *state;
  if (!e) {
    e = *state = begin(user, connection, url, method, version, bad_target);
    if (!e) return MHD_NO;
    return e->ends || check_length(e) ? reply(e) : MHD_YES;
  }
  if (*upload_size > 0) {
    const bool taken = take_body(e, upload, *upload_size);
    *upload_size = 0;
    return taken ? MHD_YES : MHD_NO;
  }
  if (!e->request.code && !e->queued) {
    finish(e);
    if (e->path->use < SERVE_USES && e->request.deadline > 0) return MHD_YES;  // called again after the wake-up
  }
  return e->queued && e->request.streams && serve_stream_has_begun(&e->request.stream) ? reply_stream(e) : reply(e);
}

static void complete(void *user, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode why) {
  serve_http *h = user;
  exchange *e = serve_framing_saw_bad(*state) ? NULL : *state;
  (void)connection;
  if (!e) return;
  if (e->answered && why == MHD_REQUEST_TERMINATED_COMPLETED_OK)
    serve_metrics_request(h->metrics, serve_path_number(e->path), e->request.code, serve_seconds() - e->began);
  else if (!serve_client_was_cut(&h->clients, e->client))  // already counted
    serve_metrics_cut(h->metrics);
  serve_client_rests(&h->clients, e->client);
  if (e->queued && e->request.streams) serve_stream_leave(&e->request.stream);
  drop_body(e);
  release(e);
  *state = NULL;
  let_go(e);
}

static void connect_or_leave(void *user, struct MHD_Connection *connection, void **client,
                             enum MHD_ConnectionNotificationCode what) {
  serve_http *h = user;
  if (what == MHD_CONNECTION_NOTIFY_STARTED) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    *client = serve_client_add(&h->clients, info ? info->connect_fd : -1);
  } else {
    serve_client_remove(&h->clients, *client);
    *client = NULL;
  }
}

// --- starting and stopping -------------------------------------------------------------------------------------------

static void note_log(void *user, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
static void note_log(void *user, const char *format, va_list args) {
  serve_http *h = user;
  if (h->started) return;
  vsnprintf(h->log, sizeof h->log, format, args);
  h->log[strcspn(h->log, "\n")] = '\0';
}

// Reads the file of the certificate or its key, with a zero byte at its end. -1, or the exit code.
static int read_file(const cli_command *command, char **text, const char *path) {
  errno = 0;
  FILE *file = fopen(path, "r");
  char *bytes = file ? malloc(FILE_BYTES) : NULL;
  const size_t size = bytes ? fread(bytes, 1, FILE_BYTES, file) : 0;
  const bool good = bytes && !ferror(file) && size > 0 && size < FILE_BYTES;
  const int error = errno;
  if (file) fclose(file);
  if (!good) {
    free(bytes);
    fprintf(stderr, "tarn %s: %s: %s\n", command->name, path,
            error ? strerror(error) : "it is neither a certificate nor a key");
    return CLI_FAILURE;
  }
  bytes[size] = '\0';
  *text = bytes;
  return -1;
}

static int start(const cli_command *command, serve_http *h, const serve_socket *listener) {
  const serve_http_options *o = &h->options;
  // By poll() rather than epoll: with epoll, libmicrohttpd 0.9.75 misses a client's close that arrives together with
  // its last bytes, and keeps the connection until the timeout.
  unsigned flags = MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
  struct MHD_OptionItem secure[] = {{MHD_OPTION_END, 0, NULL}, {MHD_OPTION_END, 0, NULL}, {MHD_OPTION_END, 0, NULL}};
  if (o->certificate) {
    flags |= MHD_USE_TLS;
    secure[0] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, h->certificate};
    secure[1] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, h->key};
  }
  // serve_http_look() checks the clients' timeouts more precisely; this one is for answers that are not read.
  serve_slice_set(SERVE_SLICE_SHORT);  // inherited by the thread that libmicrohttpd starts
  h->daemon = MHD_start_daemon(flags, 0, NULL, NULL, handle, h, MHD_OPTION_EXTERNAL_LOGGER, note_log, h,
                               MHD_OPTION_LISTEN_SOCKET, listener->fd, MHD_OPTION_CONNECTION_LIMIT,
                               (unsigned)o->connections, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(o->timeout + 5.0),
                               MHD_OPTION_NOTIFY_COMPLETED, complete, h, MHD_OPTION_STRICT_FOR_CLIENT, 1,
                               MHD_OPTION_URI_LOG_CALLBACK, serve_framing_see, NULL, MHD_OPTION_NOTIFY_CONNECTION,
                               connect_or_leave, h, MHD_OPTION_ARRAY, secure, MHD_OPTION_END);
  serve_slice_set(0);
  if (h->daemon) {
    h->started = true;
    return -1;
  }
  if (o->certificate)
    fprintf(stderr, "tarn %s: cannot use the certificate %s with the key %s: %s\n", command->name, o->certificate,
            o->key, *h->log ? h->log : "libmicrohttpd refuses them");
  else
    fprintf(stderr, "tarn %s: cannot start: %s\n", command->name, *h->log ? h->log : "libmicrohttpd refuses");
  return CLI_FAILURE;
}

int serve_http_open(const cli_command *command, serve_http **http, const serve_http_options *options,
                    const serve_socket *listener, serve_metrics *metrics, tarn_work_queue *queue) {
  serve_http *h = calloc(1, sizeof *h);
  *http = NULL;
  if (!h) return cli_no_memory(command);
  h->options = *options;
  h->unread.most = (size_t)options->max_pending;
  h->metrics = metrics;
  h->queue = queue;
  serve_clients_open(&h->clients, metrics, options->timeout, options->certificate != NULL);
  int code = -1;
  if (options->certificate && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES) {
    fprintf(stderr, "tarn %s: this libmicrohttpd has no TLS\n", command->name);
    code = CLI_FAILURE;
  }
  if (code < 0 && options->certificate) code = read_file(command, &h->certificate, options->certificate);
  if (code < 0 && options->certificate) code = read_file(command, &h->key, options->key);
  if (code < 0) code = start(command, h, listener);
  if (code >= 0) {
    serve_http_close(&h, 0);
    return code;
  }
  *http = h;
  return -1;
}

void serve_http_look(serve_http *http) { serve_clients_look(&http->clients); }

void serve_http_stop(serve_http *http) {
  http->stopping = true;
  const MHD_socket fd = MHD_quiesce_daemon(http->daemon);
  if (fd != MHD_INVALID_SOCKET) close(fd);
}

void serve_http_close(serve_http **http, double seconds) {
  serve_http *h = *http;
  if (!h) return;
  const double now = serve_seconds(), end = now + seconds, begin = seconds > 0 ? now + 0.2 : now;
  // Requests that have arrived but were not read yet get a moment to be refused.
  while (h->daemon && serve_seconds() < (atomic_load(&h->exchanges) > 0 ? end : begin)) {
    serve_http_look(h);
    usleep(5000);
  }
  if (h->daemon) MHD_stop_daemon(h->daemon);
  serve_clients_close(&h->clients);
  if (h->key) explicit_bzero(h->key, strlen(h->key));
  free(h->certificate);
  free(h->key);
  free(h);
  *http = NULL;
}
