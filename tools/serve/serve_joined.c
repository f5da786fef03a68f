#include "serve/serve_joined.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/serve_answer.h"
#include "serve/serve_events.h"
#include "serve/serve_openai.h"

typedef struct joined {
  serve_models *models;
  serve_request *const *batch;  // [count], of which `at` were taken
  size_t count, at;
  serve_request kind;      // a copy of the first one: what joins is compared with it
  serve_request *current;  // whose texts are being given
  int64_t active;          // texts
  int64_t running, bytes;  // requests that have begun and are not done; bytes of their texts
} joined;

static void fail(serve_request *r, int code, const char *line) {
  if (r->failed) return;
  r->failed = code;
  snprintf(r->why, sizeof r->why, "%s", line);
}

static void fail_status(serve_request *r, tarn_status status) {
  fail(r, serve_models_code(status), *tarn_error_message() ? tarn_error_message() : tarn_status_text(status));
}

// The same for one of its texts, which is named if it is at fault and there are others.
static void fail_text(const serve_prompt *p, tarn_status status) {
  serve_request *r = p->request;
  char line[sizeof r->why];
  if (r->count == 1 || serve_models_code(status) != 422) {
    fail_status(r, status);
    return;
  }
  snprintf(line, sizeof line, "prompt %zu: %s", p->number + 1, tarn_error_message());
  fail(r, 422, line);
}

// All texts of a request are done. A stream that has begun is an answer already.
static void finish(joined *j, serve_request *r) {
  serve_models *m = j->models;
  j->running--;
  j->bytes -= (int64_t)r->bytes;
  const bool begun = r->streams && serve_stream_has_begun(&r->stream);
  const bool own = r->form == SERVE_FORM_TARN;
  if (begun && r->failed)
    serve_events_fail(r, r->failed, r->why);
  else if (begun && own)
    serve_events_end(r);
  else if (begun)
    serve_openai_stream_end(r);
  else if (r->failed)
    serve_request_refuse(r, r->failed, "%s", r->why);
  else
    serve_request_answer(r, own ? serve_answer_prompts(r) : serve_openai_answer(r));
  serve_metrics_request_done(m->metrics, r);
  m->done(r);
}

// Makes room for what is known of the texts.
static bool begin(joined *j, serve_request *r) {
  r->began = serve_seconds();
  serve_metrics_waited(j->models->metrics, r->began - r->arrived);
  r->given = 0;
  r->left = r->count;
  if (serve_models_late(j->models, r, r->began)) {
    serve_request_refuse(r, 503, "the request waited too long for its turn");
    j->models->done(r);
    return false;
  }
  r->prompts = calloc(r->count, sizeof *r->prompts);
  bool good = r->prompts != NULL;
  for (size_t i = 0; good && i < r->count; i++) {
    r->prompts[i] = (serve_prompt){.request = r, .number = i};
    if (!r->streams) continue;
    r->prompts[i].begun = calloc((size_t)r->generation.number, sizeof(bool));
    good = r->prompts[i].begun != NULL;
  }
  if (good) {
    j->running++;
    j->bytes += (int64_t)r->bytes;
    return true;
  }
  serve_request_answer(r, NULL);
  j->models->done(r);
  return false;
}

// Texts that were not given to the generator are not computed.
static void drop_rest(joined *j, serve_request *r) {
  r->left -= r->count - r->given;
  r->given = r->count;
  if (j->current == r) j->current = NULL;
}

static tarn_status hear(void *item, const tarn_generator_event *event) {
  serve_prompt *p = item;
  serve_request *r = p->request;
  if (r->first == 0) r->first = serve_seconds();
  r->target_tokens++;  // here, as a stream that is cut has no result
  if (r->failed) return TARN_STATUS_INTERRUPTED;
  if (!r->streams) return TARN_STATUS_OK;
  const bool read = r->form == SERVE_FORM_TARN ? serve_events_token(p, r->generator, event)
                                               : serve_openai_stream(p, r->generator, event);
  return read ? TARN_STATUS_OK : TARN_STATUS_INTERRUPTED;
}

// The next request of the batch, or of the queue while there is room; NULL: there is none.
static serve_request *take(joined *j) {
  const serve_models *m = j->models;
  if (j->at < j->count) return j->batch[j->at++];
  const bool full = j->running > 0 && (j->running >= m->most_requests || j->bytes >= m->most_bytes);
  return full ? NULL : tarn_work_queue_join(m->queue, &j->kind);
}

static bool next(void *user, tarn_generator_request *out) {
  joined *j = user;
  while (!j->current) {
    serve_request *r = take(j);
    if (!r) return false;
    r->generator = j->models->generator;
    if (begin(j, r)) j->current = r;
  }
  serve_request *r = j->current;
  const size_t i = r->given++;
  if (r->given == r->count) j->current = NULL;
  *out = (tarn_generator_request){r->texts[i], r->lengths[i], &r->generation, hear, &r->prompts[i], r->tops};
  serve_metrics_joined(j->models->metrics, ++j->active);
  return true;
}

static void done(void *user, void *item, tarn_status status, const tarn_generator_result *result) {
  joined *j = user;
  serve_prompt *p = item;
  serve_request *r = p->request;
  j->active--;
  if (!result) fail_text(p, status);
  if (result) r->source_tokens += result->prompt_tokens;
  if (result && !r->failed && !r->streams) {
    p->answer = r->form == SERVE_FORM_OPENAI ? serve_openai_choices(r, r->generator, p->number, result)
                                             : serve_answer_prompt(r, r->generator, result);
    if (!p->answer) fail(r, 503, "there is not enough memory");
  }
  if (result && !r->failed && r->streams && r->form == SERVE_FORM_TARN)
    (void)serve_events_answer(r, p->number, "generation", serve_answer_prompt(r, r->generator, result));
  if (r->failed) drop_rest(j, r);
  if (--r->left == 0) finish(j, r);
}

void serve_joined_run(serve_models *models, serve_request *const *requests, size_t count) {
  joined j = {.models = models, .batch = requests, .count = count, .kind = *requests[0]};
  const tarn_generator_source source = {next, done, &j};
  const tarn_status status = tarn_generator_serve(models->generator, &source);
  // After a failure of the generator some may not have been taken.
  while (status != TARN_STATUS_OK && (j.current || j.at < count)) {
    if (!j.current) {
      j.current = j.batch[j.at++];
      if (!begin(&j, j.current)) {
        j.current = NULL;
        continue;
      }
    }
    serve_request *r = j.current;
    fail_status(r, status);
    drop_rest(&j, r);
    if (r->left == 0) finish(&j, r);
  }
}
