// Continuous batching of text: requests that join a running batch (tarn/lm.h: tarn_generator_serve()), and the stream
// of a single one.
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/threads.h"
#include "decode/detokenizer.h"
#include "decode/generate_state.h"
#include "text/repair.h"

enum { MOST_TOPS = 100 };

typedef struct joined joined;
typedef struct request request;

// A continuation on its way.
typedef struct sample {
  request *of;
  int64_t number;  // among those of its request
  tarn__item_options own;
  tarn__detokenizer text;
  size_t sent, searched;  // bytes of its text: told, and searched for stop strings
  int64_t tokens;
  int32_t *top_ids;  // [tokens][tops of its request], if there are any
  float *top_values;
  size_t ids_room, values_room;
} sample;

struct request {
  joined *in;
  tarn_generator_request from;
  tarn_generator_options options;
  tarn__steering steering;
  tarn__sampling sampling;
  tarn_generator_result result;
  int32_t *prompt;
  tarn__hypothesis *found;  // [options.number]
  int32_t **top_ids;        // [options.number] of each, with from.tops
  float **top_values;
  int64_t handed, active;  // samples taken by the decoder, and of these not done
  tarn__failure failure;
  tarn__arena memory, parts;  // until it is done; until the next event
};

// All requests of a call.
struct joined {
  tarn_generator *generator;
  const tarn_generator_source *source;
  request *taken;        // the last one, if samples of it are still to be taken by the decoder
  tarn__arena *results;  // where the last result stays; NULL: nowhere
};

static void close_request(request *r) {
  tarn__steering_close(&r->steering);
  tarn__arena_close(&r->memory);
  tarn__arena_close(&r->parts);
  tarn__free(r);
}

// Gives the texts of the result, which are in the order of the samples unless they are ranked, their likeliest tokens.
static void take_tops(request *r) {
  tarn_generator_text *texts = (tarn_generator_text *)(uintptr_t)r->result.texts;
  for (int64_t i = 0; i < r->result.count; i++)
    for (int64_t n = 0; n < r->options.number; n++)
      if (texts[i].ids == r->found[n].ids) {
        texts[i].tops = r->from.tops;
        texts[i].top_ids = r->top_ids[n];
        texts[i].top_log_probabilities = r->top_values[n];
      }
}

// Tells the source that a request is done, and frees it.
static void finish(request *r) {
  joined *j = r->in;
  const tarn__generated from = {.options = &r->options,
                                .stops = &r->steering.stops,
                                .prompt = r->prompt,
                                .hypotheses = r->found,
                                .count = r->options.number,
                                .memory = &r->memory};
  if (r->failure.status == TARN_STATUS_OK)
    tarn__failure_note(&r->failure, tarn__generate_result(j->generator, &r->result, &from));
  if (r->failure.status == TARN_STATUS_OK && r->from.tops > 0) take_tops(r);
  const tarn_status status = tarn__failure_raise(&r->failure);
  if (j->taken == r) j->taken = NULL;
  j->source->done(j->source->user, r->from.item, status, status == TARN_STATUS_OK ? &r->result : NULL);
  if (j->results) {
    tarn__arena_close(j->results);
    *j->results = r->memory;
    r->memory = (tarn__arena){0};
  }
  close_request(r);
}

// --- tokens ----------------------------------------------------------------------------------------------------------

// Adds a token to the text. Returns where what may be told of it ends, and whether a stop string ends it.
static tarn_status grow_text(sample *s, int32_t id, bool last, size_t *end, bool *stopped) {
  tarn__detokenizer *text = &s->text;
  const tarn__stops *stops = &s->of->steering.stops;
  if (id != tarn_vocab_eos(text->vocab)) TARN_TRY(tarn__detokenizer_add(text, id));
  const size_t from = s->searched > stops->longest ? s->searched - stops->longest : 0;
  const size_t found = tarn__stops_find(stops, text->text, from, text->length);
  *end = last ? text->length : text->certain;
  *stopped = found < text->length;
  s->searched = text->certain;
  if (found < *end) *end = found;
  if (!last) *end -= tarn__stops_begun(stops, text->text, *end);
  return TARN_STATUS_OK;
}

// Keeps the likeliest tokens in the place of a token.
static tarn_status keep_tops(sample *s, const tarn__heard *heard) {
  const int64_t tops = s->of->from.tops, at = (s->tokens - 1) * tops, room = s->tokens * tops;
  if (tops == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__grow(&s->top_ids, &s->ids_room, (size_t)room, sizeof *s->top_ids));
  TARN_TRY(tarn__grow(&s->top_values, &s->values_room, (size_t)room, sizeof *s->top_values));
  for (int64_t i = 0; i < tops; i++) {
    s->top_ids[at + i] = i < heard->tops ? heard->top_ids[i] : -1;
    s->top_values[at + i] = i < heard->tops ? heard->top_log_probabilities[i] : -INFINITY;
  }
  return TARN_STATUS_OK;
}

static tarn_status hear(void *user, const tarn__heard *heard) {
  sample *s = user;
  request *r = s->of;
  const int32_t id = heard->id;
  const bool last = heard->last;
  size_t end, size;
  bool stopped;
  char *text;
  TARN_TRY(tarn__failure_raise(&r->failure));  // of another sample
  s->tokens++;
  TARN_TRY(keep_tops(s, heard));
  if (!r->from.hear) return TARN_STATUS_OK;
  TARN_TRY(grow_text(s, id, last, &end, &stopped));
  if (end < s->sent) end = s->sent;
  const int64_t at = (s->tokens - 1) * r->from.tops;
  tarn__arena_reset(&r->parts);
  TARN_TRY(tarn__repair_copy(&r->parts, &text, &size, s->text.text + s->sent, end - s->sent));
  s->sent = end;
  const tarn_generator_event event = {.sample = s->number,
                                      .id = id,
                                      .log_probability = heard->log_probability,
                                      .top_ids = r->from.tops > 0 ? s->top_ids + at : NULL,
                                      .top_log_probabilities = r->from.tops > 0 ? s->top_values + at : NULL,
                                      .tops = r->from.tops,
                                      .text = text,
                                      .length = size,
                                      .last = last,
                                      .end = tarn__generate_end(r->in->generator, &r->options, stopped, id, s->tokens)};
  return r->from.hear(r->from.item, &event);
}

// --- what the decoder asks for ---------------------------------------------------------------------------------------

static tarn_status open_request(joined *j, request *r) {
  tarn_generator *g = j->generator;
  const tarn_generator_options *own = &g->options;
  tarn__generator_options core;
  void *memory;
  r->options.precision = own->precision;
  r->options.threads = own->threads;
  r->options.window = own->window;
  TARN_REQUIRE(r->options.method != TARN_GENERATOR_METHOD_BEAM, USAGE, "a beam search joins no running batch");
  TARN_TRY(tarn__generate_check(&r->options));
  TARN_TRY(tarn__generate_steer(&r->steering, &r->options, g->checkpoint->target));
  tarn__generate_core(&core, &r->options, &r->steering, g->checkpoint->target);
  TARN_TRY(tarn__generator_check(g->generator, &core));
  r->sampling = tarn__generator_sampling(&core);
  TARN_TRY(tarn__generate_encode(g, r->options.strict, &r->result, r->from.prompt, r->from.length));
  const size_t tokens = g->line_ids.count;
  TARN_TRY(tarn__generator_check_prompt(g->generator, g->line_ids.data, (int64_t)tokens, 1));
  TARN_TRY(tarn__arena_alloc(&r->memory, &memory, tokens + 1, sizeof *r->prompt));
  r->prompt = memory;
  if (tokens > 0) memcpy(r->prompt, g->line_ids.data, tokens * sizeof *r->prompt);
  TARN_TRY(tarn__arena_alloc(&r->memory, &memory, (size_t)r->options.number, sizeof *r->found));
  r->found = memory;
  TARN_REQUIRE(r->from.tops >= 0 && r->from.tops <= MOST_TOPS, USAGE, "the likeliest tokens are from 0 to %d, not %lld",
               MOST_TOPS, (long long)r->from.tops);
  TARN_TRY(tarn__arena_alloc(&r->memory, &memory, (size_t)r->options.number, sizeof *r->top_ids));
  r->top_ids = memory;
  TARN_TRY(tarn__arena_alloc(&r->memory, &memory, (size_t)r->options.number, sizeof *r->top_values));
  r->top_values = memory;
  return TARN_STATUS_OK;
}

// Takes the next possible request of the source. False: none waits.
static bool take_request(joined *j) {
  for (;;) {
    tarn_generator_request from = {0};
    void *memory;
    if (!j->source->next(j->source->user, &from)) return false;
    tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(request));
    if (status != TARN_STATUS_OK) {
      j->source->done(j->source->user, from.item, status, NULL);
      continue;
    }
    request *r = memory;
    *r = (request){.in = j, .from = from, .options = *from.options, .result = {.number = 1}};
    tarn__failure_note(&r->failure, open_request(j, r));
    if (r->failure.status == TARN_STATUS_OK) {
      j->taken = r;
      return true;
    }
    finish(r);
  }
}

static tarn_status open_sample(request *r, sample **out) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(sample)));
  sample *s = *out = memory;
  *s = (sample){.of = r,
                .number = r->handed,
                .own = {.sampling = r->sampling,
                        .processing = &r->steering.processing,
                        .stops = &r->steering.stops,
                        .max_tokens = r->options.max_tokens,
                        .min_tokens = r->options.min_tokens,
                        .tops = r->from.tops,
                        .listener = {r->from.hear || r->from.tops > 0 ? hear : NULL, s}}};
  return tarn__detokenizer_begin(&s->text, r->in->generator->checkpoint->target, r->prompt,
                                 (size_t)r->result.prompt_tokens);
}

static void close_sample(sample *s) {
  if (s) {
    tarn__detokenizer_close(&s->text);
    tarn__free(s->top_ids);
    tarn__free(s->top_values);
  }
  tarn__free(s);
}

static bool next(void *user, tarn__item *item) {
  joined *j = user;
  for (;;) {
    sample *s = NULL;
    if (!j->taken && !take_request(j)) return false;
    request *r = j->taken;
    const tarn_status status = open_sample(r, &s);
    if (status != TARN_STATUS_OK) {
      close_sample(s);
      tarn__failure_note(&r->failure, status);
      j->taken = NULL;
      if (r->active == 0) finish(r);
      continue;
    }
    *item = (tarn__item){.ids = r->prompt,
                         .length = r->result.prompt_tokens,
                         .key = tarn__generator_key(r->prompt, r->result.prompt_tokens),
                         .sample = (uint32_t)r->handed,
                         .own = &s->own};
    r->active++;
    if (++r->handed == r->options.number) j->taken = NULL;
    return true;
  }
}

// Keeps a hypothesis, which is the decoder's.
static tarn_status keep(sample *s, const tarn__hypothesis *from) {
  request *r = s->of;
  const size_t length = (size_t)from->length;
  void *memory;
  TARN_TRY(tarn__arena_alloc(&r->memory, &memory, length, sizeof(int32_t) + sizeof(float)));
  int32_t *ids = memory;
  float *log_probabilities = (float *)(void *)(ids + length);
  memcpy(ids, from->ids, length * sizeof *ids);
  memcpy(log_probabilities, from->log_probabilities, length * sizeof *log_probabilities);
  r->found[s->number] = *from;
  r->found[s->number].ids = ids;
  r->found[s->number].log_probabilities = log_probabilities;
  const size_t tops = length * (size_t)r->from.tops;
  TARN_TRY(tarn__arena_alloc(&r->memory, &memory, tops, sizeof *s->top_ids + sizeof *s->top_values));
  r->top_ids[s->number] = memory;
  r->top_values[s->number] = (float *)(void *)(r->top_ids[s->number] + tops);
  if (tops == 0) return TARN_STATUS_OK;
  TARN_REQUIRE(from->length == s->tokens, INTERNAL, "%lld tokens, and %lld were told", (long long)from->length,
               (long long)s->tokens);
  memcpy(r->top_ids[s->number], s->top_ids, tops * sizeof *s->top_ids);
  memcpy(r->top_values[s->number], s->top_values, tops * sizeof *s->top_values);
  return TARN_STATUS_OK;
}

static void done(void *user, const tarn__item *item, tarn_status status, const tarn__translation *result) {
  joined *j = user;
  sample *s = (sample *)item->own->listener.user;
  request *r = s->of;
  tarn__failure_note(&r->failure, result ? keep(s, &result->hypotheses[0]) : status);
  close_sample(s);
  if (r->failure.status != TARN_STATUS_OK && j->taken == r) j->taken = NULL;  // no more samples of it
  if (--r->active == 0 && j->taken != r) finish(r);
}

static tarn_status serve(tarn_generator *generator, const tarn_generator_source *source, tarn__arena *results) {
  joined j = {.generator = generator, .source = source, .results = results};
  const tarn__feed feed = {next, done, &j};
  const double start = tarn__seconds();
  const tarn_status status = tarn__generator_feed(generator->generator, &feed);
  if (j.taken) {  // samples of it are not taken any more
    tarn__failure_note(&j.taken->failure, status);
    finish(j.taken);
  }
  generator->summary.seconds += tarn__seconds() - start;
  return status;
}

tarn_status tarn_generator_serve(tarn_generator *generator, const tarn_generator_source *source) {
  TARN_REQUIRE(source->next && source->done, USAGE, "a source needs the functions `next` and `done`");
  return serve(generator, source, NULL);
}

// --- a stream --------------------------------------------------------------------------------------------------------

// The source of a single request.
typedef struct stream {
  tarn_generator_request request;
  bool taken;
  tarn_generator_part part;
  void *user;
  tarn_generator_result *result;
  tarn__failure failure;
} stream;

static tarn_status hear_part(void *item, const tarn_generator_event *event) {
  const stream *s = item;
  return event->length > 0 ? s->part(s->user, event->text, event->length) : TARN_STATUS_OK;
}

static bool next_of_stream(void *user, tarn_generator_request *out) {
  stream *s = user;
  if (s->taken) return false;
  *out = s->request;
  return s->taken = true;
}

static void done_stream(void *user, void *item, tarn_status status, const tarn_generator_result *result) {
  stream *s = user;
  (void)item;
  tarn__failure_note(&s->failure, status);
  if (result) *s->result = *result;
}

tarn_status tarn_generator_stream(tarn_generator *generator, tarn_generator_result *result, const char *prompt,
                                  size_t length, tarn_generator_part part, void *user) {
  const tarn_generator_options *o = &generator->options;
  stream s = {.request = {prompt, length, o, hear_part, &s, 0}, .part = part, .user = user, .result = result};
  const tarn_generator_source source = {next_of_stream, done_stream, &s};
  TARN_REQUIRE(o->method != TARN_GENERATOR_METHOD_BEAM && o->number == 1, USAGE,
               "a stream has one continuation, and no beam");
  const tarn_status status = serve(generator, &source, &generator->results);
  return s.failure.status != TARN_STATUS_OK ? tarn__failure_raise(&s.failure) : status;
}
