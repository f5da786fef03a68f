#include "serve/serve_joined.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/serve_answer.h"
#include "serve/serve_events.h"
#include "serve/serve_openai.h"

static const char *singular(const serve_request *r) { return r->use == SERVE_TRANSLATE ? "translation" : "generation"; }
static const char *plural(const serve_request *r) { return r->use == SERVE_TRANSLATE ? "translations" : "generations"; }

typedef struct joined {
  serve_models *models;
  serve_request *const *batch;  // [count], of which `at` were taken
  size_t count, at;
  serve_request kind;               // a copy of the first one: what joins is compared with it
  serve_request *current;           // who gave the last text, in a ring of those with more of them; NULL: nobody has
  bool fresh;                       // the last text was the first one of its request
  tarn_translator_options options;  // of a translation that is given
  int64_t active;                   // texts
  int64_t running, bytes;           // requests that have begun and are not done; bytes of their texts at work
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
  if (r->count == 1 || serve_models_code(status) != 422 || r->use == SERVE_TRANSLATE) {  // whose messages name the line
    fail_status(r, status);
    return;
  }
  snprintf(line, sizeof line, "prompt %zu: %s", p->number + 1, tarn_error_message());
  fail(r, 422, line);
}

// What a stream has lost for lack of memory ends it with an error.
static tarn_status streamed(serve_request *r, bool good) {
  if (good) return TARN_STATUS_OK;
  if (serve_stream_is_read(&r->stream)) fail(r, 503, "there is not enough memory");
  return TARN_STATUS_INTERRUPTED;
}

// All texts of a request are done. A stream that has begun is an answer already.
static void finish(joined *j, serve_request *r) {
  serve_models *m = j->models;
  j->running--;
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
    serve_request_answer(r, own ? serve_answer_prompts(r, plural(r)) : serve_openai_answer(r));
  serve_metrics_request_done(m->metrics, r);
  m->done(r);
}

// Makes room for what is known of the texts.
static bool begin(joined *j, serve_request *r) {
  r->generator = j->models->generator;
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
    return true;
  }
  serve_request_answer(r, NULL);
  j->models->done(r);
  return false;
}

// Requests with more texts give one each in turn, so that one with many keeps none waiting. Who enters is the next.
static void enter(joined *j, serve_request *r) {
  if (!j->current) j->current = r->after = r;
  r->after = j->current->after;
  j->current->after = r;
}

static void leave(joined *j, serve_request *r) {
  serve_request *before = r;
  while (before->after != r) before = before->after;
  before->after = r->after;
  if (j->current == r) j->current = before == r ? NULL : before;
}

// Texts that were not given to the model are not computed.
static void drop_rest(joined *j, serve_request *r) {
  if (r->given == r->count) return;
  r->left -= r->count - r->given;
  r->given = r->count;
  leave(j, r);
}

static tarn_status hear(void *item, const tarn_generator_event *event) {
  serve_prompt *p = item;
  serve_request *r = p->request;
  if (r->failed) return TARN_STATUS_INTERRUPTED;
  if (!serve_request_draws(r)) return TARN_STATUS_OK;  // a beam is not streamed, and counted in the end
  if (r->first == 0) r->first = serve_seconds();
  r->target_tokens++;  // here, as a stream that is cut has no result
  if (!r->streams) return TARN_STATUS_OK;
  return streamed(r, r->form == SERVE_FORM_TARN ? serve_events_token(p, r->generator, event)
                                                : serve_openai_stream(p, r->generator, event));
}

static tarn_status hear_part(void *item, const char *text, size_t length) {
  const serve_prompt *p = item;
  serve_request *r = p->request;
  if (r->failed) return TARN_STATUS_INTERRUPTED;
  if (!r->streams) return TARN_STATUS_OK;
  return streamed(r, serve_events_part(r, p->number, text, length));
}

// The next request of the batch, or of the queue while there is room; NULL: there is none.
static serve_request *take(joined *j) {
  const serve_models *m = j->models;
  if (j->at < j->count) return j->batch[j->at++];
  const bool full = j->active > 0 && (j->running >= m->most_requests || j->bytes >= m->most_bytes);
  return full ? NULL : tarn_work_queue_join(m->queue, &j->kind);
}

// The next text; NULL: there is none. First texts of requests and further ones take turns, so that neither those that
// arrive nor those with many texts keep the others waiting.
static serve_prompt *next_text(joined *j) {
  serve_request *fresh = j->fresh && j->current ? NULL : take(j);
  while (fresh && !begin(j, fresh)) fresh = take(j);
  if (fresh) enter(j, fresh);
  j->fresh = fresh != NULL;
  if (!j->current) return NULL;
  serve_request *r = j->current->after;
  const size_t i = r->given++;
  j->current = r;
  if (r->given == r->count) leave(j, r);
  j->bytes += (int64_t)r->lengths[i];
  serve_metrics_joined(j->models->metrics, ++j->active);
  return &r->prompts[i];
}

static bool next_prompt(void *user, tarn_generator_request *out) {
  serve_prompt *p = next_text(user);
  if (!p) return false;
  const serve_request *r = p->request;
  *out = (tarn_generator_request){r->texts[p->number], r->lengths[p->number], &r->generation, hear, p, r->tops};
  return true;
}

static bool next_line(void *user, tarn_translator_request *out) {
  joined *j = user;
  serve_prompt *p = next_text(j);
  if (!p) return false;
  const serve_request *r = p->request;
  j->options = serve_models_translation(j->models, r);
  *out = (tarn_translator_request){
      r->texts[p->number], r->lengths[p->number], &j->options, (int64_t)p->number + 1, hear_part, p};
  return true;
}

// A text is done: its answer, NULL if it has none for lack of memory, unless the status tells of a failure.
static void done(joined *j, serve_prompt *p, tarn_status status, json_t *answer) {
  serve_request *r = p->request;
  j->active--;
  j->bytes -= (int64_t)r->lengths[p->number];
  if (status != TARN_STATUS_OK) fail_text(p, status);
  if (status == TARN_STATUS_OK && !r->failed && r->streams && r->form == SERVE_FORM_TARN)
    (void)streamed(r, serve_events_answer(r, p->number, singular(r), answer));
  else if (status == TARN_STATUS_OK && !r->streams)
    p->answer = answer;
  else
    json_decref(answer);
  if (status == TARN_STATUS_OK && !r->streams && !p->answer) fail(r, 503, "there is not enough memory");
  if (r->failed) drop_rest(j, r);
  if (--r->left == 0) finish(j, r);
}

static void done_prompt(void *user, void *item, tarn_status status, const tarn_generator_result *result) {
  serve_prompt *p = item;
  serve_request *r = p->request;
  json_t *answer = NULL;
  if (result) r->source_tokens += result->prompt_tokens;
  if (result && r->form == SERVE_FORM_TARN) answer = serve_answer_prompt(r, r->generator, result);
  if (result && r->form == SERVE_FORM_OPENAI && !r->streams)
    answer = serve_openai_choices(r, r->generator, p->number, result);
  for (int64_t i = 0; result && !serve_request_draws(r) && i < result->count; i++)
    r->target_tokens += result->texts[i].tokens;
  done(user, p, status, answer);
}

static void done_line(void *user, void *item, tarn_status status, const tarn_translate_result *result) {
  joined *j = user;
  serve_prompt *p = item;
  json_t *answer = NULL;
  if (result) {
    p->request->source_tokens += result->source_tokens;
    p->request->target_tokens += result->hypotheses[0].tokens;
    answer = serve_answer_translation(p->request, j->models->translator, result, 0);
  }
  done(j, p, status, answer);
}

static tarn_status compute(joined *j) {
  const tarn_generator_source prompts = {next_prompt, done_prompt, j};
  const tarn_translator_requests lines = {next_line, done_line, j};
  return j->kind.use == SERVE_TRANSLATE ? tarn_translator_serve(j->models->translator, &lines)
                                        : tarn_generator_serve(j->models->generator, &prompts);
}

void serve_joined_run(serve_models *models, serve_request *const *requests, size_t count) {
  joined j = {.models = models, .batch = requests, .count = count, .kind = *requests[0]};
  const tarn_status status = compute(&j);
  if (status == TARN_STATUS_OK) return;
  // Some may not have been taken.
  for (; j.at < count; j.at++)
    if (begin(&j, requests[j.at])) enter(&j, requests[j.at]);
  while (j.current) {
    serve_request *r = j.current;
    fail_status(r, status);
    drop_rest(&j, r);
    if (r->left == 0) finish(&j, r);
  }
}
