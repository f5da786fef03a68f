// Continuations that join a running batch (tarn/lm.h: tarn_generator_serve()), and the stream of a single one.
#include <string.h>

#include "base/clock.h"
#include "decode/generate_state.h"
#include "decode/joining.h"

enum { MOST_TOPS = 100 };

typedef struct request {
  tarn__joined_request base;
  tarn_generator_request from;
  tarn_generator_options options;
  tarn__steering steering;
  tarn_generator_result result;
} request;

static request *of(tarn__joined_request *r) { return (request *)(void *)r; }

static bool next(tarn__joined *j, tarn__joined_request *r) {
  const tarn_generator_source *source = j->source;
  if (!source->next(source->user, &of(r)->from)) return false;
  of(r)->options = *of(r)->from.options;
  of(r)->result.number = 1;
  return true;
}

static tarn_status open_request(tarn__joined_request *base) {
  request *r = of(base);
  tarn_generator *g = base->in->owner;
  const tarn_generator_options *own = &g->options;
  tarn__generator_options core;
  void *memory;
  r->options.precision = own->precision;
  r->options.threads = own->threads;
  r->options.window = own->window;
  TARN_TRY(tarn__generate_check(&r->options));
  TARN_TRY(tarn__generate_steer(&r->steering, &r->options, g->checkpoint->target));
  tarn__generate_core(&core, &r->options, &r->steering, g->checkpoint->target);
  TARN_TRY(tarn__generator_item(g->generator, &base->own, &base->draws, &core));
  TARN_TRY(tarn__generate_encode(g, r->options.strict, &r->result, r->from.prompt, r->from.length));
  const size_t tokens = g->line_ids.count;
  TARN_TRY(tarn__generator_check_prompt(g->generator, g->line_ids.data, (int64_t)tokens, 1));
  TARN_TRY(tarn__arena_alloc(&base->memory, &memory, tokens + 1, sizeof(int32_t)));
  if (tokens > 0) memcpy(memory, g->line_ids.data, tokens * sizeof(int32_t));
  base->item.ids = memory;
  base->item.length = (int64_t)tokens;
  base->item.key = tarn__generator_key(memory, (int64_t)tokens);
  TARN_REQUIRE(r->from.tops >= 0 && r->from.tops <= MOST_TOPS, USAGE, "the likeliest tokens are from 0 to %d, not %lld",
               MOST_TOPS, (long long)r->from.tops);
  TARN_REQUIRE(r->from.tops == 0 || base->draws, USAGE, "a beam search does not tell the likeliest tokens");
  base->own.tops = r->from.tops;
  base->number = core.samples ? core.number : 1;
  base->listens = r->from.hear != NULL;
  return TARN_STATUS_OK;
}

static tarn_status begin(tarn__joined_item *item) {
  const tarn__item *prompt = &item->of->item;
  const tarn_generator *g = item->of->in->owner;
  return tarn__detokenizer_begin(&item->text, g->checkpoint->target, prompt->ids, (size_t)prompt->length);
}

static tarn_status hear(tarn__joined_item *item, const tarn__heard *heard) {
  const request *r = of(item->of);
  const int64_t at = (item->tokens - 1) * item->own.tops;
  char *text = "";
  size_t size = 0;
  bool stopped = false;
  if (heard->id >= 0) TARN_TRY(tarn__joined_grow(item, heard, &text, &size, &stopped));
  const tarn_generator_event event = {
      .sample = item->number,
      .id = heard->id,
      .log_probability = heard->log_probability,
      .top_ids = item->own.tops > 0 ? item->top_ids + at : NULL,
      .top_log_probabilities = item->own.tops > 0 ? item->top_values + at : NULL,
      .tops = item->own.tops,
      .text = text,
      .length = size,
      .last = heard->last && heard->id >= 0,
      .end = tarn__generate_end(r->base.in->owner, &r->options, stopped, heard->id, item->tokens)};
  return r->from.hear(r->from.item, &event);
}

// Gives the texts of the result, which are in the order of the samples unless they are ranked, their likeliest tokens.
static void take_tops(request *r) {
  tarn_generator_text *texts = (tarn_generator_text *)(uintptr_t)r->result.texts;
  for (int64_t i = 0; i < r->result.count; i++)
    for (int64_t n = 0; n < r->base.count; n++)
      if (texts[i].ids == r->base.found[n].ids) {
        texts[i].tops = r->from.tops;
        texts[i].top_ids = r->base.top_ids[n];
        texts[i].top_log_probabilities = r->base.top_values[n];
      }
}

static tarn_status make_result(tarn__joined_request *base) {
  request *r = of(base);
  const tarn__generated from = {.options = &r->options,
                                .stops = &r->steering.stops,
                                .prompt = base->item.ids,
                                .hypotheses = base->found,
                                .count = base->count,
                                .memory = &base->memory};
  TARN_TRY(tarn__generate_result(base->in->owner, &r->result, &from));
  if (r->from.tops > 0) take_tops(r);
  return TARN_STATUS_OK;
}

static void done(tarn__joined_request *base, tarn_status status) {
  const tarn_generator_source *source = base->in->source;
  const tarn_generator *g = base->in->owner;
  const request *r = of(base);
  const tarn_status judged = tarn__map_judge(&g->checkpoint->file.map, status);
  source->done(source->user, r->from.item, judged, judged == TARN_STATUS_OK ? &r->result : NULL);
}

static void close_request(tarn__joined_request *base) { tarn__steering_close(&of(base)->steering); }

static tarn_status feed(void *owner, bool draws, const tarn__feed *items) {
  const tarn_generator *g = owner;
  return tarn__generator_feed(g->generator, draws, items);
}

static tarn_status serve(tarn_generator *generator, const tarn_generator_source *source, tarn__arena *kept) {
  static const tarn__joined_kind kind = {sizeof(request), next, open_request,  begin, hear,
                                         make_result,     done, close_request, feed};
  tarn__joined joined = {.kind = &kind, .owner = generator, .source = source, .kept = kept};
  const double start = tarn__seconds();
  const tarn_status status = tarn__map_judge(&generator->checkpoint->file.map, tarn__joined_run(&joined));
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
