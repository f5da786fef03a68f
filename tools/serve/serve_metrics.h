// The counters of a server, in Prometheus' text format 0.0.4.
#ifndef TARN_TOOLS_SERVE_METRICS_H
#define TARN_TOOLS_SERVE_METRICS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { SERVE_PATHS = 24, SERVE_CODES = 20, SERVE_BUCKETS = 14 };

struct serve_request;

typedef struct serve_histogram {
  int64_t counts[SERVE_BUCKETS + 1];  // cumulative up to each bound, and above the last
  double sum;
} serve_histogram;

typedef struct serve_metrics {
  pthread_mutex_t lock;  // protects the following
  int64_t requests[SERVE_PATHS][SERVE_CODES];
  serve_histogram seconds[SERVE_PATHS];  // from a request's first byte to its answer
  int64_t cut;                           // requests whose client disconnected before the answer
  serve_histogram batch_texts, batch_seconds, batch_running;
  serve_histogram queue_seconds, queue_requests;             // of a request: its wait, and those that waited before it
  serve_histogram first_seconds, token_seconds, token_rate;  // of continuations
  int64_t source_tokens, target_tokens, texts;
  int64_t models, model_bytes, model_loads;
} serve_metrics;

// Gauges, read at the time of the request.
typedef struct serve_gauges {
  int64_t waiting, capacity, connections;
} serve_gauges;

void serve_metrics_open(serve_metrics *metrics);
void serve_metrics_close(serve_metrics *metrics);

// Counts an answer with this code to a request for paths[path]; `seconds` below 0: not measured.
void serve_metrics_request(serve_metrics *metrics, int path, int code, double seconds);
void serve_metrics_cut(serve_metrics *metrics);
// Counts a batch of texts and its computing time in seconds.
void serve_metrics_batch(serve_metrics *metrics, int64_t texts, double seconds, int64_t source_tokens,
                         int64_t target_tokens);

// A model was read (`read`) or forgotten; now so many are in memory, with these bytes.
void serve_metrics_models(serve_metrics *metrics, int64_t models, int64_t bytes, bool read);
// A text joined a running batch, which has `running` texts with it.
void serve_metrics_joined(serve_metrics *metrics, int64_t running);
// A request was queued behind `waiting` others; is computed after `seconds`.
void serve_metrics_queued(serve_metrics *metrics, int64_t waiting);
void serve_metrics_waited(serve_metrics *metrics, double seconds);
// A request that joined a batch is done.
void serve_metrics_request_done(serve_metrics *metrics, const struct serve_request *request);

// All metrics as text, allocated by malloc(), NULL without memory. paths [path_count]: their names.
char *serve_metrics_text(serve_metrics *metrics, const char *const *paths, int path_count, const serve_gauges *gauges);

#endif
