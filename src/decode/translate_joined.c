// Lines that join a running batch (tarn/translate.h: tarn_translator_serve()), and the stream of a single one.
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "comm/ranks.h"
#include "decode/joining.h"
#include "decode/translate_state.h"
#include "graph/profile.h"
#include "task/task.h"

typedef struct request {
  tarn__joined_request base;
  tarn_translator_request from;
  tarn_translator_options options;
  tarn__steering steering;
  tarn__forced_text forced;
  tarn__translator_options core;
  tarn_translate_result result;
  size_t told;  // bytes of the text
} request;

static request *of(tarn__joined_request *r) { return (request *)(void *)r; }

static bool next(tarn__joined *j, tarn__joined_request *base) {
  const tarn_translator_requests *source = j->source;
  request *r = of(base);
  if (!source->next(source->user, &r->from)) return false;
  r->result.number = r->from.number > 0 ? r->from.number : 1;
  return true;
}

// A copy of the tokens that were encoded last.
static tarn_status copy_tokens(request *r, const int32_t **ids, int64_t *count) {
  const tarn_translator *t = r->base.in->owner;
  void *memory;
  TARN_TRY(tarn__arena_alloc(&r->base.memory, &memory, t->line_ids.count + 1, sizeof(int32_t)));
  if (t->line_ids.count > 0) memcpy(memory, t->line_ids.data, t->line_ids.count * sizeof(int32_t));
  *ids = memory;
  *count = (int64_t)t->line_ids.count;
  return TARN_STATUS_OK;
}

static tarn_status encode(request *r) {
  tarn_translator *t = r->base.in->owner;
  tarn__item *item = &r->base.item;
  const tarn__columns c = tarn__translate_split(&r->options, r->from.line, r->from.length);
  bool replaced = false;
  TARN_TRY(tarn__translate_encode(t, &r->result, r->from.line, c.length));
  TARN_TRY(copy_tokens(r, &item->ids, &item->length));
  if (item->length == 0) return TARN_STATUS_OK;
  item->key = tarn__hash64(item->ids, (size_t)item->length * sizeof *item->ids, 0);
  if (r->options.prefixes) {
    TARN_TRY(tarn__translate_encode_prefix(t, c.prefix, c.prefix_length));
    TARN_TRY(copy_tokens(r, &item->prefix, &item->prefix_length));
  }
  if (!tarn__translate_forces(&r->options)) return TARN_STATUS_OK;
  TARN_TRY(tarn__forced_text_begin(&r->forced, 1));
  TARN_TRY(tarn__forced_text_add(&r->forced, 0, c.forced, c.forced_length, t->options.strict, &replaced));
  r->forced.lines[0].line = r->result.number;
  if (r->forced.lines[0].count > 0) item->forced = &r->forced.lines[0];
  t->summary.replaced += replaced;
  return TARN_STATUS_OK;
}

static tarn_status open_request(tarn__joined_request *base) {
  request *r = of(base);
  tarn_translator *t = base->in->owner;
  TARN_TRY(tarn__translate_options(t, &r->options, r->from.options));
  TARN_TRY(tarn__translate_steer(&r->steering, &r->forced, &r->options, t->checkpoint));
  tarn__translate_core(&r->core, t, &r->options, &r->steering);
  TARN_TRY(tarn__translator_item(t->translator, &base->own, &r->core));
  tarn_status status = encode(r);
  if (status == TARN_STATUS_USAGE) status = TARN_STATUS_DATA;  // of a text in the line
  if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "line %lld: ", (long long)r->result.number);
  if (base->item.length == 0) return TARN_STATUS_OK;
  base->item.index = r->result.number - 1;
  TARN_TRY(tarn__translator_check_item(t->translator, &base->item));
  base->draws = r->core.samples > 0;
  base->number = base->draws ? r->core.samples : 1;
  base->listens = r->from.part != NULL;
  return TARN_STATUS_OK;
}

// A prefix is part of the text.
static tarn_status begin(tarn__joined_item *item) {
  const tarn__item *own = &item->of->item;
  const tarn_translator *t = item->of->in->owner;
  TARN_TRY(tarn__detokenizer_begin(&item->text, t->checkpoint->target, NULL, 0));
  for (int64_t i = 0; i < own->prefix_length; i++) TARN_TRY(tarn__detokenizer_add(&item->text, own->prefix[i]));
  return TARN_STATUS_OK;
}

// Of a beam, or of the best of several samples, nothing is certain before the end.
static tarn_status hear(tarn__joined_item *item, const tarn__heard *heard) {
  request *r = of(item->of);
  char *text;
  size_t size;
  bool stopped;
  if (heard->id < 0 || r->base.number > 1) return r->from.part(r->from.item, "", 0);
  TARN_TRY(tarn__joined_grow(item, heard, &text, &size, &stopped));
  tarn__translate_line(text, size);
  r->told += size;
  return r->from.part(r->from.item, text, size);
}

// Makes this the only line of the translator's last call.
static tarn_status remember(tarn_translator *t, const tarn__item *item, const tarn__translation *found) {
  size_t count = 0;
  t->lines = 0;
  TARN_TRY(tarn__grow(&t->offsets, &t->offsets_capacity, 2, sizeof *t->offsets));
  TARN_TRY(tarn__grow(&t->translations, &t->translations_capacity, 1, sizeof *t->translations));
  TARN_TRY(tarn__translate_add(t, item->ids, (size_t)item->length, &count));
  t->offsets[0] = 0;
  t->offsets[1] = item->length;
  t->translations[0] = *found;
  t->lines = 1;
  return TARN_STATUS_OK;
}

static tarn_status make_result(tarn__joined_request *base) {
  request *r = of(base);
  tarn_translator *t = base->in->owner;
  const tarn__item *item = &base->item;
  tarn__translation found = {base->found, base->count};
  const tarn__translated from = {.options = &r->options,
                                 .translation = &found,
                                 .prefix = {item->prefix, item->prefix_length},
                                 .memory = &base->memory};
  if (found.count > 0) TARN_TRY(tarn__translator_complete(t->translator, &found, item, &r->core));
  TARN_TRY(tarn__translate_result(t, &r->result, &from));
  TARN_TRY(remember(t, item, &found));
  t->summary.lines++;
  const tarn_translate_hypothesis *best = &r->result.hypotheses[0];
  TARN_REQUIRE(r->told <= best->length, INTERNAL, "a stream is longer than its text");
  if (!r->from.part || best->length == r->told) return TARN_STATUS_OK;
  return r->from.part(r->from.item, best->text + r->told, best->length - r->told);
}

static void done(tarn__joined_request *base, tarn_status status) {
  const tarn_translator_requests *source = base->in->source;
  tarn_translator *t = base->in->owner;
  const request *r = of(base);
  const tarn_status judged = tarn__map_judge(&t->checkpoint->file.map, status);
  source->done(source->user, r->from.item, judged, judged == TARN_STATUS_OK ? &r->result : NULL);
  if (!base->in->kept) t->lines = 0;
}

static void close_request(tarn__joined_request *base) {
  tarn__steering_close(&of(base)->steering);
  tarn__forced_text_close(&of(base)->forced);
}

static tarn_status feed(void *owner, bool draws, const tarn__feed *items) {
  const tarn_translator *t = owner;
  return tarn__translator_feed(t->translator, draws, items);
}

static tarn_status serve(tarn_translator *t, const tarn_translator_requests *source, tarn__arena *kept) {
  static const tarn__joined_kind kind = {sizeof(request), next, open_request,  begin, hear,
                                         make_result,     done, close_request, feed};
  tarn__joined joined = {.kind = &kind, .owner = t, .source = source, .kept = kept};
  TARN_TRY(tarn__profile_peaks(t->options.profile, t->checkpoint->model->device, tarn__threads()));
  const double start = tarn__seconds();
  tarn__profile_start(t->options.profile);
  t->lines = 0;
  const tarn_status status = tarn__map_judge(&t->checkpoint->file.map, tarn__joined_run(&joined));
  tarn__profile_stop(t->options.profile);
  t->summary.seconds += tarn__seconds() - start;
  return status;
}

static bool joins(const tarn_translator *t) {
  return tarn__config_task(t->checkpoint->config)->decoding == TARN__DECODING_TOKENS;
}

tarn_status tarn_translator_serve(tarn_translator *translator, const tarn_translator_requests *source) {
  TARN_REQUIRE(source->next && source->done, USAGE, "a source needs the functions `next` and `done`");
  TARN_TRY(tarn__ranks_must_be_one(translator->options.ranks, "tarn_translator_serve()"));
  TARN_REQUIRE(joins(translator), USAGE,
               "%s: only models that translate token by token take lines into a running batch",
               translator->checkpoint->path);
  return serve(translator, source, NULL);
}

// --- a stream --------------------------------------------------------------------------------------------------------

// The source of a single request.
typedef struct stream {
  tarn_translator_request request;
  bool taken;
  tarn_translate_result *result;
  tarn__failure failure;
} stream;

static bool next_of_stream(void *user, tarn_translator_request *out) {
  stream *s = user;
  if (s->taken) return false;
  *out = s->request;
  return s->taken = true;
}

static void done_stream(void *user, void *item, tarn_status status, const tarn_translate_result *result) {
  stream *s = user;
  (void)item;
  tarn__failure_note(&s->failure, status);
  if (result) *s->result = *result;
}

tarn_status tarn_translator_stream(tarn_translator *translator, tarn_translate_result *result, const char *line,
                                   size_t length, tarn_translator_part part, void *user) {
  stream s = {.request = {line, length, &translator->options, 1, part, user}, .result = result};
  const tarn_translator_requests source = {next_of_stream, done_stream, &s};
  TARN_TRY(tarn__ranks_must_be_one(translator->options.ranks, "tarn_translator_stream()"));
  if (joins(translator)) {
    const tarn_status status = serve(translator, &source, &translator->results);
    return s.failure.status != TARN_STATUS_OK ? tarn__failure_raise(&s.failure) : status;
  }
  TARN_TRY(tarn_translator_lines(translator, result, &line, &length, 1));
  const tarn_translate_hypothesis *best = &result->hypotheses[0];
  return best->length > 0 ? part(user, best->text, best->length) : TARN_STATUS_OK;
}
