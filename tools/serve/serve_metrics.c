#include "serve/serve_metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "serve/serve_models.h"

static const int CODES[SERVE_CODES] = {200, 400, 401, 403, 404, 405, 408, 413, 415, 421, 422, 429, 500, 501, 503, 505};
static const double SECONDS[SERVE_BUCKETS] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30};
static const double RATES[SERVE_BUCKETS] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000};
static const double WAITING[SERVE_BUCKETS] = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384};
static const double TEXTS[SERVE_BUCKETS] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256};

void serve_metrics_open(serve_metrics *metrics) {
  *metrics = (serve_metrics){0};
  pthread_mutex_init(&metrics->lock, NULL);
}

void serve_metrics_close(serve_metrics *metrics) { pthread_mutex_destroy(&metrics->lock); }

static void observe(serve_histogram *histogram, const double bounds[SERVE_BUCKETS], double value) {
  int at = 0;
  while (at < SERVE_BUCKETS && value > bounds[at]) at++;
  histogram->counts[at]++;
  histogram->sum += value;
}

void serve_metrics_request(serve_metrics *metrics, int path, int code, double seconds) {
  int at = 0;
  while (at < SERVE_CODES - 1 && CODES[at] != code) at++;
  pthread_mutex_lock(&metrics->lock);
  metrics->requests[path][at]++;
  if (seconds >= 0) observe(&metrics->seconds[path], SECONDS, seconds);
  pthread_mutex_unlock(&metrics->lock);
}

void serve_metrics_cut(serve_metrics *metrics) {
  pthread_mutex_lock(&metrics->lock);
  metrics->cut++;
  pthread_mutex_unlock(&metrics->lock);
}

void serve_metrics_batch(serve_metrics *metrics, int64_t texts, double seconds, int64_t source_tokens,
                         int64_t target_tokens) {
  pthread_mutex_lock(&metrics->lock);
  observe(&metrics->batch_texts, TEXTS, (double)texts);
  observe(&metrics->batch_seconds, SECONDS, seconds);
  metrics->texts += texts;
  metrics->source_tokens += source_tokens;
  metrics->target_tokens += target_tokens;
  pthread_mutex_unlock(&metrics->lock);
}

void serve_metrics_models(serve_metrics *metrics, int64_t models, int64_t bytes, bool read) {
  pthread_mutex_lock(&metrics->lock);
  metrics->models = models;
  metrics->model_bytes = bytes;
  metrics->model_loads += read;
  pthread_mutex_unlock(&metrics->lock);
}

void serve_metrics_joined(serve_metrics *metrics, int64_t running) {
  pthread_mutex_lock(&metrics->lock);
  observe(&metrics->batch_running, TEXTS, (double)running);
  metrics->texts++;
  pthread_mutex_unlock(&metrics->lock);
}

void serve_metrics_queued(serve_metrics *metrics, int64_t waiting) {
  pthread_mutex_lock(&metrics->lock);
  observe(&metrics->queue_requests, WAITING, (double)waiting);
  pthread_mutex_unlock(&metrics->lock);
}

void serve_metrics_waited(serve_metrics *metrics, double seconds) {
  pthread_mutex_lock(&metrics->lock);
  observe(&metrics->queue_seconds, SECONDS, seconds);
  pthread_mutex_unlock(&metrics->lock);
}

void serve_metrics_request_done(serve_metrics *metrics, const serve_request *r) {
  const double now = serve_seconds();
  const int64_t more = r->target_tokens - (int64_t)r->count * r->generation.number;  // after the first ones
  pthread_mutex_lock(&metrics->lock);
  metrics->source_tokens += r->source_tokens;
  metrics->target_tokens += r->target_tokens;
  if (r->first > 0) observe(&metrics->first_seconds, SECONDS, r->first - r->arrived);
  if (!r->failed && r->first > 0 && more > 0 && now > r->first) {
    observe(&metrics->token_seconds, SECONDS, (now - r->first) / (double)more);
    observe(&metrics->token_rate, RATES, (double)more / (now - r->first));
  }
  pthread_mutex_unlock(&metrics->lock);
}

static void print_head(FILE *file, const char *name, const char *type, const char *help) {
  fprintf(file, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_number(FILE *file, const char *name, const char *type, const char *help, int64_t value) {
  print_head(file, name, type, help);
  fprintf(file, "%s %" PRId64 "\n", name, value);
}

// `label`: "path=\"/translate\"," or "".
static void print_histogram(FILE *file, const char *name, const char *label, const serve_histogram *histogram,
                            const double bounds[SERVE_BUCKETS]) {
  int64_t count = 0;
  for (int i = 0; i < SERVE_BUCKETS; i++) {
    count += histogram->counts[i];
    fprintf(file, "%s_bucket{%sle=\"%g\"} %" PRId64 "\n", name, label, bounds[i], count);
  }
  count += histogram->counts[SERVE_BUCKETS];
  fprintf(file, "%s_bucket{%sle=\"+Inf\"} %" PRId64 "\n", name, label, count);
  if (!*label) fprintf(file, "%s_sum %.9g\n%s_count %" PRId64 "\n", name, histogram->sum, name, count);
}

static void print_requests(FILE *file, const serve_metrics *m, const char *const *paths, int path_count) {
  print_head(file, "tarn_http_requests_total", "counter", "Answered requests, by path and status code.");
  for (int p = 0; p < path_count; p++)
    for (int c = 0; c < SERVE_CODES; c++)
      if (m->requests[p][c])
        fprintf(file, "tarn_http_requests_total{path=\"%s\",code=\"%d\"} %" PRId64 "\n", paths[p], CODES[c],
                m->requests[p][c]);
  print_head(file, "tarn_http_request_seconds", "histogram", "Time from a request's header to its answer, in seconds.");
  for (int p = 0; p < path_count; p++) {
    char label[64];
    int64_t count = 0;
    for (int i = 0; i <= SERVE_BUCKETS; i++) count += m->seconds[p].counts[i];
    if (count == 0) continue;
    snprintf(label, sizeof label, "path=\"%s\",", paths[p]);
    print_histogram(file, "tarn_http_request_seconds", label, &m->seconds[p], SECONDS);
    fprintf(file, "tarn_http_request_seconds_sum{path=\"%s\"} %.9g\n", paths[p], m->seconds[p].sum);
    fprintf(file, "tarn_http_request_seconds_count{path=\"%s\"} %" PRId64 "\n", paths[p], count);
  }
}

static void print_all(FILE *file, const serve_metrics *m, const char *const *paths, int path_count,
                      const serve_gauges *gauges) {
  print_head(file, "tarn_build_info", "gauge", "The version of the program.");
  fprintf(file, "tarn_build_info{version=\"%s\"} 1\n", TARN_VERSION);
  print_requests(file, m, paths, path_count);
  print_number(file, "tarn_http_cut_total", "counter", "Requests whose client went away before the answer.", m->cut);
  print_number(file, "tarn_http_connections", "gauge", "Open connections.", gauges->connections);
  print_number(file, "tarn_queue_requests", "gauge", "Requests that are waiting for a batch.", gauges->waiting);
  print_number(file, "tarn_queue_capacity", "gauge", "Most requests that may wait.", gauges->capacity);
  print_head(file, "tarn_batch_texts", "histogram", "Number of texts in a batch.");
  print_histogram(file, "tarn_batch_texts", "", &m->batch_texts, TEXTS);
  print_head(file, "tarn_batch_seconds", "histogram", "Time to compute a batch, in seconds.");
  print_histogram(file, "tarn_batch_seconds", "", &m->batch_seconds, SECONDS);
  print_head(file, "tarn_running_texts", "histogram", "Texts that are computed together, whenever one joins them.");
  print_histogram(file, "tarn_running_texts", "", &m->batch_running, TEXTS);
  print_head(file, "tarn_queue_length", "histogram", "Requests that waited already when a request arrived.");
  print_histogram(file, "tarn_queue_length", "", &m->queue_requests, WAITING);
  print_head(file, "tarn_queue_seconds", "histogram",
             "Time from a request's arrival until it is computed, in seconds.");
  print_histogram(file, "tarn_queue_seconds", "", &m->queue_seconds, SECONDS);
  print_head(file, "tarn_first_token_seconds", "histogram",
             "Time from the arrival of a request for continuations to its first token, in seconds.");
  print_histogram(file, "tarn_first_token_seconds", "", &m->first_seconds, SECONDS);
  print_head(file, "tarn_token_seconds", "histogram",
             "Time of a token after the first, of a request's mean, in seconds.");
  print_histogram(file, "tarn_token_seconds", "", &m->token_seconds, SECONDS);
  print_head(file, "tarn_tokens_per_second", "histogram", "Tokens after the first per second of a request.");
  print_histogram(file, "tarn_tokens_per_second", "", &m->token_rate, RATES);
  print_number(file, "tarn_models", "gauge", "Models in memory.", m->models);
  print_number(file, "tarn_model_bytes", "gauge", "Memory that they took when they were read, in bytes.",
               m->model_bytes);
  print_number(file, "tarn_model_loads_total", "counter", "How often a model was read.", m->model_loads);
  print_number(file, "tarn_source_tokens_total", "counter", "Tokens that the model has read.", m->source_tokens);
  print_number(file, "tarn_target_tokens_total", "counter", "Tokens that the model has written.", m->target_tokens);
}

char *serve_metrics_text(serve_metrics *metrics, const char *const *paths, int path_count, const serve_gauges *gauges) {
  char *text = NULL;
  size_t size;
  FILE *file = open_memstream(&text, &size);
  if (!file) return NULL;
  pthread_mutex_lock(&metrics->lock);
  print_all(file, metrics, paths, path_count, gauges);
  pthread_mutex_unlock(&metrics->lock);
  const int failed = ferror(file);
  if (fclose(file) == 0 && !failed) return text;
  free(text);
  return NULL;
}
