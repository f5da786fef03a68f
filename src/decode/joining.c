#include "decode/joining.h"

#include <math.h>
#include <string.h>

#include "text/repair.h"

// A request that is done leaves its memory to another, as a block of an arena is large and has to be cleared.
static void leave_memory(tarn__joined *j, tarn__joined_request *r) {
  tarn__arena memory = r->memory;
  j->kind->close(r);
  tarn__arena_reset(&memory);
  memset(r, 0, j->kind->bytes);
  r->memory = memory;
  r->after = j->spare;
  j->spare = r;
}

static void free_spare(tarn__joined *j) {
  while (j->spare) {
    tarn__joined_request *r = j->spare;
    j->spare = r->after;
    tarn__arena_close(&r->memory);
    tarn__free(r);
  }
}

// Tells the source that a request is done, and frees it.
static void finish(tarn__joined_request *r) {
  tarn__joined *j = r->in;
  if (r->failure.status == TARN_STATUS_OK) tarn__failure_note(&r->failure, j->kind->result(r));
  const tarn_status status = tarn__failure_raise(&r->failure);
  if (j->taken == r) j->taken = NULL;
  j->kind->done(r, status);
  if (j->kept) {
    tarn__arena_close(j->kept);
    *j->kept = r->memory;
    r->memory = (tarn__arena){0};
  }
  leave_memory(j, r);
}

// --- tokens ----------------------------------------------------------------------------------------------------------

tarn_status tarn__joined_grow(tarn__joined_item *item, const tarn__heard *heard, char **out, size_t *size,
                              bool *stopped) {
  static const tarn__stops nothing = {0};
  tarn__detokenizer *text = &item->text;
  tarn__arena *part = &item->of->in->part;
  const tarn__stops *stops = item->own.stops ? item->own.stops : &nothing;
  if (heard->id != tarn_vocab_eos(text->vocab)) TARN_TRY(tarn__detokenizer_add(text, heard->id));
  const size_t from = item->searched > stops->longest ? item->searched - stops->longest : 0;
  const size_t found = tarn__stops_find(stops, text->text, from, text->length);
  size_t end = heard->last ? text->length : text->certain;
  *stopped = found < text->length;
  item->searched = text->certain;
  if (found < end) end = found;
  if (!heard->last) end -= tarn__stops_begun(stops, text->text, end);
  if (end < item->sent) end = item->sent;
  tarn__arena_reset(part);
  TARN_TRY(tarn__repair_copy(part, out, size, text->text + item->sent, end - item->sent));
  item->sent = end;
  return TARN_STATUS_OK;
}

// Keeps the likeliest tokens in the place of a token.
static tarn_status keep_tops(tarn__joined_item *item, const tarn__heard *heard) {
  const int64_t tops = item->own.tops, at = (item->tokens - 1) * tops, room = item->tokens * tops;
  if (tops == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__grow(&item->top_ids, &item->ids_room, (size_t)room, sizeof *item->top_ids));
  TARN_TRY(tarn__grow(&item->top_values, &item->values_room, (size_t)room, sizeof *item->top_values));
  for (int64_t i = 0; i < tops; i++) {
    item->top_ids[at + i] = i < heard->tops ? heard->top_ids[i] : -1;
    item->top_values[at + i] = i < heard->tops ? heard->top_log_probabilities[i] : -INFINITY;
  }
  return TARN_STATUS_OK;
}

static tarn_status hear(void *user, const tarn__heard *heard) {
  tarn__joined_item *item = user;
  tarn__joined_request *r = item->of;
  TARN_TRY(tarn__failure_raise(&r->failure));  // of another item
  item->tokens++;
  TARN_TRY(keep_tops(item, heard));
  return r->listens ? r->in->kind->hear(item, heard) : TARN_STATUS_OK;
}

// --- what the decoder asks for ---------------------------------------------------------------------------------------

static tarn_status open_request(tarn__joined_request *r) {
  void *memory;
  TARN_TRY(r->in->kind->open(r));
  const size_t items = (size_t)r->number, most = r->number > 1 ? items : (size_t)r->own.n_best;
  TARN_TRY(tarn__arena_alloc(&r->memory, &memory, most, sizeof *r->found));
  r->found = memory;
  if (r->own.tops == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__arena_alloc(&r->memory, &memory, items, sizeof *r->top_ids));
  r->top_ids = memory;
  TARN_TRY(tarn__arena_alloc(&r->memory, &memory, items, sizeof *r->top_values));
  r->top_values = memory;
  return TARN_STATUS_OK;
}

// Takes the next possible request of the source. False: none waits, or there is no memory for one.
static bool take_request(tarn__joined *j) {
  for (;;) {
    if (!j->spare) {
      void *memory;
      const tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, j->kind->bytes);
      tarn__failure_note(&j->failure, status);
      if (status != TARN_STATUS_OK) return false;
      j->spare = memory;
    }
    tarn__joined_request *r = j->spare;
    if (!j->kind->next(j, r)) return false;
    j->spare = r->after;
    r->in = j;
    tarn__failure_note(&r->failure, open_request(r));
    if (r->failure.status == TARN_STATUS_OK && r->number > 0) {
      j->taken = r;
      return true;
    }
    finish(r);
  }
}

static tarn_status open_item(tarn__joined_request *r, tarn__joined_item **out) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn__joined_item)));
  tarn__joined_item *item = *out = memory;
  *item = (tarn__joined_item){.of = r, .number = r->handed, .own = r->own};
  item->own.listener = (tarn__listener){r->listens || r->own.tops > 0 ? hear : NULL, item};
  return r->listens ? r->in->kind->begin(item) : TARN_STATUS_OK;
}

static void close_item(tarn__joined_item *item) {
  if (item) {
    tarn__detokenizer_close(&item->text);
    tarn__free(item->top_ids);
    tarn__free(item->top_values);
  }
  tarn__free(item);
}

static bool next(void *user, tarn__item *out) {
  tarn__joined *j = user;
  for (;;) {
    tarn__joined_item *item = NULL;
    if (!j->taken && !take_request(j)) return false;
    tarn__joined_request *r = j->taken;
    if (r->draws != j->draws) return false;
    const tarn_status status = open_item(r, &item);
    if (status != TARN_STATUS_OK) {
      close_item(item);
      tarn__failure_note(&r->failure, status);
      j->taken = NULL;
      if (r->active == 0) finish(r);
      continue;
    }
    *out = r->item;
    out->sample = (uint32_t)r->handed;
    out->samples = r->draws ? r->number : 0;
    out->own = &item->own;
    r->active++;
    if (++r->handed == r->number) j->taken = NULL;
    return true;
  }
}

// Keeps a hypothesis, which is the decoder's, in a place of what the request found.
static tarn_status keep_hypothesis(tarn__joined_request *r, int64_t place, const tarn__hypothesis *from) {
  const size_t length = (size_t)from->length;
  void *memory;
  TARN_TRY(tarn__arena_alloc(&r->memory, &memory, length, sizeof(int32_t) + sizeof(float)));
  int32_t *ids = memory;
  float *log_probabilities = (float *)(void *)(ids + length);
  memcpy(ids, from->ids, length * sizeof *ids);
  memcpy(log_probabilities, from->log_probabilities, length * sizeof *log_probabilities);
  r->found[place] = *from;
  r->found[place].ids = ids;
  r->found[place].log_probabilities = log_probabilities;
  return TARN_STATUS_OK;
}

static tarn_status keep(tarn__joined_item *item, const tarn__translation *result) {
  tarn__joined_request *r = item->of;
  void *memory;
  for (int64_t i = 0; i < result->count; i++) TARN_TRY(keep_hypothesis(r, item->number + i, &result->hypotheses[i]));
  r->count = r->number > 1 ? r->number : result->count;
  const int64_t length = result->hypotheses[0].length;
  const size_t tops = (size_t)(length * item->own.tops);
  if (tops == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__arena_alloc(&r->memory, &memory, tops, sizeof *item->top_ids + sizeof *item->top_values));
  r->top_ids[item->number] = memory;
  r->top_values[item->number] = (float *)(void *)(r->top_ids[item->number] + tops);
  TARN_REQUIRE(length == item->tokens, INTERNAL, "%lld tokens, and %lld were told", (long long)length,
               (long long)item->tokens);
  memcpy(r->top_ids[item->number], item->top_ids, tops * sizeof *item->top_ids);
  memcpy(r->top_values[item->number], item->top_values, tops * sizeof *item->top_values);
  return TARN_STATUS_OK;
}

static void done(void *user, const tarn__item *from, tarn_status status, const tarn__translation *result) {
  tarn__joined *j = user;
  tarn__joined_item *item = (tarn__joined_item *)from->own->listener.user;
  tarn__joined_request *r = item->of;
  tarn__failure_note(&r->failure, result ? keep(item, result) : status);
  close_item(item);
  if (r->failure.status != TARN_STATUS_OK && j->taken == r) j->taken = NULL;  // no more items of it
  if (--r->active == 0 && j->taken != r) finish(r);
}

tarn_status tarn__joined_run(tarn__joined *j) {
  const tarn__feed feed = {next, done, j, j->kept != NULL};
  tarn_status status = TARN_STATUS_OK;
  while (status == TARN_STATUS_OK && (j->taken || take_request(j))) {
    j->draws = j->taken->draws;
    status = j->kind->feed(j->owner, j->draws, &feed);
  }
  if (j->taken) {  // items of it are not taken any more
    tarn__failure_note(&j->taken->failure, status);
    finish(j->taken);
  }
  free_spare(j);
  tarn__arena_close(&j->part);
  return status == TARN_STATUS_OK ? tarn__failure_raise(&j->failure) : status;
}
