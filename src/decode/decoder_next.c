// The next tokens of a step: what it is asked for, and what the searches get.
#include <math.h>
#include <string.h>

#include "decode/decoder_state.h"

enum {
  SAMPLED_BYTES = 32 << 20,  // maximum size of log-probabilities of all words at once, except for a single row
  MOST_TOP_K = 1024          // found by the output layer; larger k among all words
};

// Whether logits are changed: of an item, and of any.
static bool acts(const tarn__processing *processing) { return processing && tarn__processing_acts(processing); }
static bool processes_slot(const tarn__decoder *d, const tarn__slot *s) { return acts(tarn__slot_processing(d, s)); }
static bool processes(const tarn__decoder *d) {
  if (acts(d->options.processing)) return true;
  for (int64_t a = 0; a < d->active; a++) {
    const tarn__slot *s = &d->slots[d->order[a]];
    if (s->item.own && processes_slot(d, s)) return true;
  }
  return false;
}

bool tarn__next_whole(const tarn__decoder *d, const tarn__item *item) {
  if (d->options.sampling || d->options.forced || acts(d->options.processing)) return true;
  return item && (item->forced || (item->own && acts(item->own->processing)));
}

int64_t tarn__next_fit(const tarn__decoder *d) {
  const int64_t fit = (int64_t)SAMPLED_BYTES / (d->model->target_vocab * (int64_t)sizeof(float));
  return fit < d->most_rows ? fit : d->most_rows;
}

tarn_status tarn__next_read(tarn__decoder *d, const tarn__next *next) {
  int32_t *none;
  TARN_TRY(tarn__workspace_top(&d->step, &next->top, &d->top_ids, &d->top_values));
  TARN_TRY(tarn__workspace_top(&d->step, &next->tops, &d->tops_ids, &d->tops_values));
  TARN_TRY(tarn__workspace_top(&d->step, &(tarn__top){next->wanted, NULL}, &none, &d->wanted_values));
  TARN_TRY(tarn__workspace_top(&d->step, &(tarn__top){next->wanted_own, NULL}, &none, &d->wanted_own));
  return tarn__workspace_top(&d->step, &(tarn__top){next->own, NULL}, &none, &d->top_own);
}

// The likeliest tokens that listeners want of each row, at most as many as there are.
static int64_t tops_of(const tarn__decoder *d) {
  int64_t most = 0;
  for (int64_t a = 0; a < d->active; a++) {
    const tarn__item *item = &d->slots[d->order[a]].item;
    if (item->own && item->own->tops > most) most = item->own->tops;
  }
  return most < d->model->target_vocab ? most : d->model->target_vocab;
}

// The most choices that a search needs.
static int64_t choices_of(const tarn__decoder *d) {
  int64_t most = tarn__beam_choices(&d->options.search);
  for (int64_t a = 0; a < d->active; a++) {
    const int64_t own = tarn__beam_choices(tarn__slot_search(d, &d->slots[d->order[a]]));
    if (own > most) most = own;
  }
  return most;
}

// The number of best continuations that searches or draws need; 0: all words.
static int64_t best_of(const tarn__decoder *d) {
  if (!d->options.sampling) return choices_of(d);
  if (processes(d) || d->tops_count > 0) return 0;
  int64_t most = 0;
  for (int64_t a = 0; a < d->active; a++) {
    const tarn__sampling *sampling = tarn__slot_sampling(d, &d->slots[d->order[a]]);
    if (sampling->top_k < 1 || sampling->top_k > MOST_TOP_K || tarn__sampling_typical(sampling)) return 0;
    if (sampling->top_k > most) most = sampling->top_k;
  }
  // Banned tokens and the end of sentence may be among the best.
  const int64_t best = most + d->options.search.banned_count + 1;
  return best < d->model->target_vocab ? best : 0;
}

// Fills in the draws of a step: a token for every slot that needs one. With a beam of 1 each has one hypothesis;
// samples that share a reading of the prompt draw from the same row.
static tarn_status fill_draws(tarn__decoder *d) {
  const tarn__beam_options *search = &d->options.search;
  d->draw_count = 0;
  if (!d->options.sampling) return TARN_STATUS_OK;
  d->draw_spec = (tarn__sample_spec){.banned_count = search->banned_count, .eos = search->eos};
  memcpy(d->draw_spec.banned, search->banned, sizeof search->banned);
  TARN_TRY(tarn__id_list_room(&d->draws, d->active * TARN__DRAW_WORDS));
  for (int64_t a = 0; a < d->active; a++) {
    tarn__slot *s = &d->slots[d->order[a]];
    if (s->first_top < 0) continue;
    s->first_choice = d->draw_count;
    int32_t *words = d->draws.data + TARN__DRAW_WORDS * d->draw_count++;
    words[TARN__DRAW_ROW] = (int32_t)s->first_top;
    words[TARN__DRAW_KEY] = (int32_t)(uint32_t)s->item.key;
    words[TARN__DRAW_KEY + 1] = (int32_t)(uint32_t)(s->item.key >> 32);
    words[TARN__DRAW_SAMPLE] = (int32_t)s->item.sample;
    words[TARN__DRAW_POSITION] = (int32_t)s->beam.step;
    words[TARN__DRAW_ENDS] = tarn__beam_allows(&s->beam, search->eos);
    memcpy(words + TARN__DRAW_HOW, tarn__slot_sampling(d, s), sizeof(tarn__sampling));
  }
  return TARN_STATUS_OK;
}

// The tokens of a hypothesis that ends with number `last` of its search, with room for one more; they are in d->so_far.
static tarn_status look_back(tarn__decoder *d, const tarn__slot *s, int32_t last, tarn__so_far *out) {
  const tarn__item *item = &s->item;
  const bool translates = tarn__decoder_translates(d);
  const int32_t *before = translates ? item->prefix : item->ids;
  const int64_t prompt = translates ? item->prefix_length : item->length, length = prompt + s->beam.step;
  TARN_TRY(tarn__id_list_room(&d->so_far, length + 1));
  if (prompt > 0) memcpy(d->so_far.data, before, (size_t)prompt * sizeof *before);
  tarn__beam_tokens(&s->beam, last, s->beam.step, d->so_far.data + prompt);
  *out = (tarn__so_far){d->so_far.data, length, prompt};
  return TARN_STATUS_OK;
}

static tarn_status stops_here(void *user, const tarn__beam *beam, int32_t last, int32_t id, bool *stop) {
  const tarn__slot *s = user;
  tarn__decoder *d = s->owner;
  tarn__so_far so_far;
  (void)beam;
  TARN_TRY(look_back(d, s, last, &so_far));
  d->so_far.data[so_far.length] = id;
  return tarn__stops_here(tarn__slot_stops(d, s), &d->continuation, so_far.ids, so_far.prompt, so_far.length + 1, stop);
}

void tarn__next_begin(tarn__decoder *d, tarn__slot *s) {
  s->owner = d;
  const tarn__stops *stops = tarn__slot_stops(d, s);
  if (stops && stops->count > 0) s->beam.stop = (tarn__beam_stop){stops_here, s};
}

tarn_status tarn__next_tell(const tarn__decoder *d, const tarn__slot *s, const tarn__listener *listener) {
  const tarn__beam *beam = &s->beam;
  tarn__heard heard = {.id = -1, .last = beam->done};
  if (beam->options.beam > 1) return listener->hear(listener->user, &heard);
  if (s->item.own && s->item.own->tops > 0) {
    heard.tops = s->item.own->tops < d->tops_count ? s->item.own->tops : d->tops_count;
    heard.top_ids = d->tops_ids + s->first_top * d->tops_count;
    heard.top_log_probabilities = d->tops_values + s->first_top * (d->tops_count + 1);
  }
  if (beam->done && beam->finished[0].ended) {
    heard.id = beam->options.eos;
    heard.log_probability = beam->finished[0].eos;
    return listener->hear(listener->user, &heard);
  }
  const tarn__beam_token *token = &beam->tokens[beam->done ? beam->finished[0].last : beam->running[0].last];
  heard.id = token->id;
  heard.log_probability = token->log_probability;
  return listener->hear(listener->user, &heard);
}

// What the processors change of the row of a hypothesis.
static tarn_status process_row(tarn__decoder *d, const tarn__slot *s, int32_t last) {
  static const tarn__processing none = {.repetition_penalty = 1.0};
  tarn__so_far so_far;
  if (!processes_slot(d, s)) return tarn__logit_edits_add(&d->edits, &none, &(tarn__so_far){NULL, 0, 0});
  TARN_TRY(look_back(d, s, last, &so_far));
  return tarn__logit_edits_add(&d->edits, tarn__slot_processing(d, s), &so_far);
}

// In the order of the rows that need a next token.
static tarn_status process_rows(tarn__decoder *d) {
  if (!processes(d) || d->predicted_count == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__logit_edits_begin(&d->edits, d->predicted_count, d->model->target_vocab));
  for (int64_t a = 0; a < d->active; a++) {
    const tarn__slot *s = &d->slots[d->order[a]];
    if (s->first_top < 0 || s->reader >= 0) continue;
    const int64_t rows = s->beam.step == 0 ? 1 : s->beam.running_count;
    for (int64_t i = 0; i < rows; i++) TARN_TRY(process_row(d, s, s->beam.running[i].last));
  }
  return TARN_STATUS_OK;
}

// The tokens that phrases want, in the order of the rows that need a next token.
static tarn_status want_tokens(tarn__decoder *d) {
  int64_t most = 0, at = 0;
  for (int64_t a = 0; a < d->active; a++) {
    const tarn__slot *s = &d->slots[d->order[a]];
    if (s->first_top >= 0 && s->item.forced && s->item.forced->count > most) most = s->item.forced->count;
  }
  d->wanted_count = most;
  if (most == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__id_list_room(&d->wanted, d->predicted_count * most));
  for (int64_t i = 0; i < d->predicted_count * most; i++) d->wanted.data[i] = -1;
  for (int64_t a = 0; a < d->active; a++) {
    const tarn__slot *s = &d->slots[d->order[a]];
    if (s->first_top < 0) continue;
    const int64_t rows = s->beam.step == 0 ? 1 : s->beam.running_count;
    for (int64_t i = 0; i < rows; i++, at++)
      if (s->item.forced)
        tarn__forced_wanted(s->item.forced, d->wanted.data + at * most, tarn__beam_progress(&s->beam, i));
  }
  return TARN_STATUS_OK;
}

void tarn__next_want(const tarn__decoder *d, tarn__slot *s) {
  const int64_t count = d->wanted_count, at = s->first_choice;
  s->beam.wanted = (tarn__beam_wanted){.ids = d->wanted.data + at * count,
                                       .values = d->wanted_values + at * (count + 1),
                                       .own = d->wanted_own ? d->wanted_own + at * (count + 1) : NULL,
                                       .count = count};
}

// The rows whose log-probabilities are wanted of the model itself, or of given tokens.
static tarn_status number_rows(tarn__decoder *d) {
  const int64_t count = d->options.sampling ? d->draw_count : d->predicted_count;
  if (!processes(d) && d->wanted_count == 0 && d->tops_count == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__id_list_room(&d->row_numbers, count));
  for (int64_t i = 0; i < count; i++)
    d->row_numbers.data[i] = d->options.sampling ? d->draws.data[i * TARN__DRAW_WORDS + TARN__DRAW_ROW] : (int32_t)i;
  return TARN_STATUS_OK;
}

tarn_status tarn__next_prepare(tarn__decoder *d) {
  d->tops_count = tops_of(d);
  TARN_TRY(process_rows(d));
  TARN_TRY(want_tokens(d));
  TARN_TRY(fill_draws(d));
  return number_rows(d);
}

void tarn__next_request(const tarn__decoder *d, tarn__model_step *step) {
  step->predicted = d->predicted_count < d->rows ? d->predicted.data : NULL;
  step->predicted_count = d->predicted_count;
  step->best = best_of(d);
  step->eos = d->options.search.eos;
  step->sampling = d->options.sampling ? &d->draw_spec : NULL;
  step->draws = d->draws.data;
  step->draw_count = d->draw_count;
  step->numbers = d->row_numbers.data;
  step->wanted = d->wanted.data;
  step->wanted_count = d->wanted_count;
  step->tops = d->tops_count;
  if (!processes(d)) return;
  step->edits = d->edits.words;
  step->edit_words = d->edits.count;
}

// Makes each drawn token the only continuation of its hypothesis.
static tarn_status take_draws(tarn__decoder *d, tarn__beam_rows *out) {
  const int64_t count = tarn__beam_choices(&d->options.search);
  TARN_TRY(tarn__id_list_room(&d->drawn_ids, d->draw_count * count));
  TARN_TRY(
      tarn__grow(&d->drawn_values, &d->drawn_capacity, (size_t)(d->draw_count * (count + 1)), sizeof *d->drawn_values));
  for (int64_t i = 0; i < d->draw_count; i++) {
    int32_t *ids = d->drawn_ids.data + i * count;
    float *values = d->drawn_values + i * (count + 1);
    const float *drawn = (d->top_own ? d->top_own : d->top_values) + 2 * i;
    for (int64_t k = 0; k < count; k++) ids[k] = -1, values[k] = -INFINITY;
    ids[0] = d->top_ids[i];
    values[0] = drawn[0];
    values[count] = drawn[1];
  }
  *out = (tarn__beam_rows){d->drawn_ids.data, d->drawn_values, NULL, count};
  return TARN_STATUS_OK;
}

tarn_status tarn__next_choices(tarn__decoder *d, tarn__beam_rows *out) {
  *out = (tarn__beam_rows){0};
  if (d->predicted_count == 0) return TARN_STATUS_OK;
  if (d->options.sampling) return take_draws(d, out);
  *out = (tarn__beam_rows){d->top_ids, d->top_values, d->top_own, choices_of(d)};
  return TARN_STATUS_OK;
}
