#include "decode/beam.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static int64_t width_of(const tarn__beam *beam) { return beam->options.beam / tarn__beam_groups(&beam->options); }

tarn_status tarn__beam_start(tarn__beam *beam, const tarn__beam_options *options, int64_t max_length) {
  const int64_t groups = tarn__beam_groups(options);
  beam->options = *options;
  beam->max_length = max_length;
  beam->step = 0;
  beam->token_count = 0;
  beam->finished_count = 0;
  beam->running_count = 0;
  beam->done = false;
  beam->stop = (tarn__beam_stop){0};
  beam->forced = NULL;
  size_t width = (size_t)options->beam;
  TARN_TRY(tarn__grow(&beam->running, &beam->running_capacity, width, sizeof *beam->running));
  TARN_TRY(tarn__grow(&beam->next, &beam->next_capacity, width, sizeof *beam->next));
  TARN_TRY(tarn__grow(&beam->groups, &beam->group_capacity, (size_t)groups, sizeof *beam->groups));
  // Hypotheses still running at the maximum length are finished too, in addition to the others.
  TARN_TRY(tarn__grow(&beam->finished, &beam->finished_capacity, 2 * width, sizeof *beam->finished));
  TARN_TRY(tarn__grow(&beam->heap, &beam->heap_capacity, 2 * width, sizeof *beam->heap));
  beam->running[0] = (tarn__beam_running){.last = -1};
  beam->running_count = 1;
  for (int64_t g = 0; g < groups; g++) beam->groups[g] = (tarn__beam_group){.running = 1};  // all continue the same
  return TARN_STATUS_OK;
}

void tarn__beam_close(tarn__beam *beam) {
  tarn__free(beam->tokens);
  tarn__free(beam->running);
  tarn__free(beam->next);
  tarn__free(beam->finished);
  tarn__free(beam->groups);
  tarn__free(beam->heap);
  tarn__free(beam->progress);
  tarn__free(beam->banks);
  *beam = (tarn__beam){0};
}

int32_t tarn__beam_last(const tarn__beam *beam, int64_t place) {
  int32_t last = beam->running[place].last;
  return last < 0 ? beam->options.eos : beam->tokens[last].id;
}

// Whether a is a worse continuation than b; a total order, so equal inputs give equal outputs.
static bool is_worse(const tarn__beam_candidate *a, const tarn__beam_candidate *b) {
  if (a->sum != b->sum) return a->sum < b->sum;
  if (a->from != b->from) return a->from > b->from;
  return a->id > b->id;
}

static int compare_candidates(const void *a, const void *b) { return is_worse(a, b) ? 1 : is_worse(b, a) ? -1 : 0; }

static void heap_sink(tarn__beam_heap *h, tarn__beam_candidate item) {
  int64_t place = 0;
  for (;;) {
    int64_t child = 2 * place + 1;
    if (child >= h->count) break;
    if (child + 1 < h->count && is_worse(&h->items[child + 1], &h->items[child])) child++;
    if (!is_worse(&h->items[child], &item)) break;
    h->items[place] = h->items[child];
    place = child;
  }
  h->items[place] = item;
}

static void heap_offer(tarn__beam_heap *h, tarn__beam_candidate item) {
  if (h->count == h->limit) {
    if (is_worse(&h->items[0], &item)) heap_sink(h, item);
    return;
  }
  int64_t place = h->count++;
  while (place > 0) {
    int64_t parent = (place - 1) / 2;
    if (!is_worse(&item, &h->items[parent])) break;
    h->items[place] = h->items[parent];
    place = parent;
  }
  h->items[place] = item;
}

bool tarn__beam_allows(const tarn__beam *beam, int32_t id) {
  const tarn__beam_options *options = &beam->options;
  if (id == options->eos) return beam->step >= options->min_length;
  for (int i = 0; i < options->banned_count; i++)
    if (id == options->banned[i]) return false;
  return true;
}

// The results of a step, and how much a token lost by earlier groups.
typedef struct step {
  const int32_t *ids;
  const float *values, *own;
  int64_t count;                   // ids of a row
  const tarn__beam_token *chosen;  // [chosen_count] by earlier groups
  int64_t chosen_count;
} step;

static double lost(const tarn__beam *beam, const step *s, int32_t id) {
  int64_t times = 0;
  for (int64_t i = 0; i < s->chosen_count; i++) times += s->chosen[i].id == id;
  return times > 0 ? beam->options.diversity * (double)times : 0.0;
}

// Offers the continuations of one hypothesis, best first, until no other can be among the best.
static tarn_status scan_row(tarn__beam_heap *h, const tarn__beam *beam, const step *s, int32_t from) {
  const int64_t choices = tarn__beam_choices(&beam->options), end = s->count;
  const int32_t *ids = s->ids + from * end;
  const float *row = s->values + from * (end + 1), *own = s->own + from * (end + 1);
  const int32_t eos = beam->options.eos;
  const double sum = beam->running[from].sum;
  TARN_REQUIRE(row[end] == row[end], NUMERIC, "a log-probability is not a number");
  // At the maximum length the end of sentence is the only continuation, however unlikely.
  if (!beam->options.open_end && beam->step >= beam->max_length) {
    if (row[end] > -INFINITY) heap_offer(h, (tarn__beam_candidate){sum + (double)row[end], from, eos, own[end]});
    return TARN_STATUS_OK;
  }
  for (int64_t i = 0; i < choices && ids[i] >= 0; i++) {
    TARN_REQUIRE(row[i] == row[i], NUMERIC, "a log-probability is not a number");
    if (!tarn__beam_allows(beam, ids[i])) continue;
    tarn__beam_candidate candidate = {sum + (double)row[i], from, ids[i], own[i]};
    if (h->count == h->limit && candidate.sum < h->items[0].sum) break;
    candidate.sum -= lost(beam, s, ids[i]);
    heap_offer(h, candidate);
  }
  return TARN_STATUS_OK;
}

static tarn__beam_finished *finished_of(const tarn__beam *beam, int64_t group) {
  return beam->finished + 2 * group * width_of(beam);
}

static tarn__beam_finished *finish(tarn__beam *beam, int64_t group, int32_t last, int64_t length, double sum,
                                   double likelihood) {
  tarn__beam_finished *finished = &finished_of(beam, group)[beam->groups[group].finished++];
  const double counts = beam->options.beam == 1 ? likelihood : sum;
  *finished = (tarn__beam_finished){.last = last,
                                    .length = length,
                                    .sum = sum,
                                    .likelihood = likelihood,
                                    .score = counts / pow((double)length, beam->options.length_penalty)};
  return finished;
}

static double likelihood_of(const tarn__beam *beam, const tarn__beam_candidate *candidate) {
  return beam->running[candidate->from].likelihood + (double)candidate->log_probability;
}

static void finish_with_eos(tarn__beam *beam, int64_t group, const tarn__beam_candidate *candidate) {
  tarn__beam_finished *finished = finish(beam, group, beam->running[candidate->from].last, beam->step + 1,
                                         candidate->sum, likelihood_of(beam, candidate));
  finished->ended = true;
  finished->eos = candidate->log_probability;
}

// Insertion sort: stable, so equal scores stay in the order of finishing. Returns how many of at most `most` there are.
static int64_t sort_finished(tarn__beam_finished *finished, int64_t count, int64_t most) {
  for (int64_t i = 1; i < count; i++) {
    tarn__beam_finished item = finished[i];
    int64_t j = i;
    for (; j > 0 && finished[j - 1].score < item.score; j--) finished[j] = finished[j - 1];
    finished[j] = item;
  }
  return count < most ? count : most;
}

static void sort_group(tarn__beam *beam, int64_t group) {
  beam->groups[group].finished = sort_finished(finished_of(beam, group), beam->groups[group].finished, width_of(beam));
}

// Whether the search of a group continues although enough hypotheses (sorted) are finished.
static bool may_improve(const tarn__beam *beam, int64_t group, const tarn__beam_running *best, int64_t running) {
  if (!beam->options.late_stop || running == 0) return false;
  const double length = pow((double)beam->step, beam->options.length_penalty);
  return best->sum / length > finished_of(beam, group)[beam->groups[group].finished - 1].score;
}

static int32_t add_token(tarn__beam *beam, const tarn__beam_candidate *candidate) {
  beam->tokens[beam->token_count] =
      (tarn__beam_token){candidate->id, beam->running[candidate->from].last, candidate->log_probability};
  return (int32_t)beam->token_count++;
}

// Continues or finishes the best candidates [count] of a group. New hypotheses go to next[first] and behind; returns
// how many.
static tarn_status choose(tarn__beam *beam, int64_t group, const tarn__beam_candidate *best, int64_t count,
                          int64_t first, int64_t *continued) {
  const int64_t width = width_of(beam);
  tarn__beam_group *own = &beam->groups[group];
  *continued = 0;
  for (int64_t i = 0; i < count && *continued < width; i++) {
    const tarn__beam_candidate *candidate = &best[i];
    const bool may_finish = i < width && (own->finished < width || beam->options.late_stop);
    bool stop = false;
    if (candidate->id == beam->options.eos) {
      if (may_finish) finish_with_eos(beam, group, candidate);
      continue;
    }
    if (beam->stop.stops)
      TARN_TRY(beam->stop.stops(beam->stop.user, beam, beam->running[candidate->from].last, candidate->id, &stop));
    if (stop) {
      if (may_finish)
        finish(beam, group, add_token(beam, candidate), beam->step + 1, candidate->sum, likelihood_of(beam, candidate));
      continue;
    }
    beam->next[first + (*continued)++] = (tarn__beam_running){add_token(beam, candidate), candidate->from,
                                                              candidate->sum, likelihood_of(beam, candidate)};
  }
  return TARN_STATUS_OK;
}

// --- phrases ---------------------------------------------------------------------------------------------------------

// Behind the progress of the hypotheses of both steps: the most tokens of each phrase that any hypothesis had, and the
// progress of the one that is put together.
static int32_t *furthest(const tarn__beam *beam, const tarn__forced *forced) {
  return beam->progress + 2 * beam->options.beam * forced->count;
}
static int32_t *spare(const tarn__beam *beam, const tarn__forced *forced) {
  return furthest(beam, forced) + forced->count;
}

tarn_status tarn__beam_force(tarn__beam *beam, const tarn__forced *forced, const int32_t *before, int64_t count) {
  const size_t width = (size_t)beam->options.beam, phrases = (size_t)forced->count, banks = (size_t)forced->tokens + 1;
  TARN_TRY(tarn__grow(&beam->progress, &beam->progress_capacity, (2 * width + 2) * phrases, sizeof *beam->progress));
  for (int64_t i = 0; i < forced->count; i++) beam->progress[i] = 0;
  for (int64_t i = 0; i < count; i++) tarn__forced_advance(forced, beam->progress, beam->progress, before[i]);
  memcpy(furthest(beam, forced), beam->progress, phrases * sizeof *beam->progress);
  const int64_t need = tarn__forced_need(forced, beam->progress);
  TARN_REQUIRE(need <= beam->max_length, DATA,
               "the forced text \"%.40s\"%s needs %lld tokens, and the translation has at most %lld", forced->texts[0],
               forced->count > 1 ? ", with the others," : "", (long long)need, (long long)beam->max_length);
  TARN_TRY(tarn__grow(&beam->banks, &beam->bank_capacity, banks, sizeof *beam->banks));
  TARN_TRY(tarn__grow(&beam->heap, &beam->heap_capacity, (2 * banks + 1) * width, sizeof *beam->heap));
  beam->forced = forced;
  return TARN_STATUS_OK;
}

// Offers a continuation to its bank, unless there is no room left for the phrases that it lacks.
static tarn_status offer_banks(tarn__beam *beam, int64_t from, int32_t id, float value, float own) {
  const tarn__forced *forced = beam->forced;
  TARN_REQUIRE(value == value, NUMERIC, "a log-probability is not a number");
  if (!tarn__beam_allows(beam, id) || value == -INFINITY) return TARN_STATUS_OK;
  const tarn__beam_candidate candidate = {beam->running[from].sum + (double)value, (int32_t)from, id, own};
  int32_t *next = spare(beam, forced), *most = furthest(beam, forced);
  if (id == beam->options.eos) {
    if (tarn__forced_need(forced, tarn__beam_progress(beam, from)) == 0)
      heap_offer(&beam->banks[forced->tokens], candidate);
    return TARN_STATUS_OK;
  }
  const int64_t bank = tarn__forced_advance(forced, next, tarn__beam_progress(beam, from), id);
  for (int64_t i = 0; i < forced->count; i++) most[i] = next[i] > most[i] ? next[i] : most[i];
  if (tarn__forced_need(forced, next) < beam->max_length - beam->step) heap_offer(&beam->banks[bank], candidate);
  return TARN_STATUS_OK;
}

static bool among(const int32_t *ids, int64_t count, int32_t id) {
  for (int64_t i = 0; i < count && ids[i] >= 0; i++)
    if (ids[i] == id) return true;
  return false;
}

static tarn_status offer_row(tarn__beam *beam, const step *s, int64_t from) {
  const int64_t choices = tarn__beam_choices(&beam->options), end = s->count, wanted = beam->wanted.count;
  const int32_t *ids = s->ids + from * end, *more = beam->wanted.ids + from * wanted;
  const float *row = s->values + from * (end + 1), *own = s->own + from * (end + 1);
  const float *row_more = beam->wanted.values + from * (wanted + 1), *own_more = row_more;
  if (beam->wanted.own) own_more = beam->wanted.own + from * (wanted + 1);
  if (beam->step >= beam->max_length) return offer_banks(beam, from, beam->options.eos, row[end], own[end]);
  for (int64_t i = 0; i < choices && ids[i] >= 0; i++) TARN_TRY(offer_banks(beam, from, ids[i], row[i], own[i]));
  if (!among(ids, choices, beam->options.eos)) TARN_TRY(offer_banks(beam, from, beam->options.eos, row[end], own[end]));
  for (int64_t i = 0; i < wanted && more[i] >= 0; i++)
    if (!among(ids, choices, more[i])) TARN_TRY(offer_banks(beam, from, more[i], row_more[i], own_more[i]));
  return TARN_STATUS_OK;
}

// Finishes the hypotheses that end among the best of the fullest bank, which keeps the others.
static void finish_bank(tarn__beam *beam, tarn__beam_heap *bank) {
  const int64_t width = beam->options.beam, count = bank->count;
  bank->count = 0;
  for (int64_t i = 0; i < count; i++) {
    const bool may_finish = i < width && (beam->groups[0].finished < width || beam->options.late_stop);
    if (bank->items[i].id != beam->options.eos)
      bank->items[bank->count++] = bank->items[i];
    else if (may_finish)
      finish_with_eos(beam, 0, &bank->items[i]);
  }
}

// Deals the places of the next step to the banks, and puts who has one into `dealt` in the order of their sums. Returns
// how many.
static int64_t deal(const tarn__beam *beam, tarn__beam_candidate *dealt) {
  const int64_t width = beam->options.beam;
  int64_t taken = 0;
  for (int64_t turn = 0; turn < 2 * width; turn++)
    for (int64_t b = beam->forced->tokens; b >= 0 && taken < width; b--)
      if (turn < beam->banks[b].count) dealt[taken++] = beam->banks[b].items[turn];
  qsort(dealt, (size_t)taken, sizeof *dealt, compare_candidates);
  return taken;
}

// A step of the only group.
static tarn_status advance_forced(tarn__beam *beam, const step *s) {
  const tarn__forced *forced = beam->forced;
  const int64_t width = beam->options.beam, banks = forced->tokens + 1;
  for (int64_t b = 0; b < banks; b++) beam->banks[b] = (tarn__beam_heap){beam->heap + 2 * width * b, 0, 2 * width};
  for (int64_t i = 0; i < beam->running_count; i++) TARN_TRY(offer_row(beam, s, i));
  for (int64_t b = 0; b < banks; b++) {
    tarn__beam_heap *bank = &beam->banks[b];
    qsort(bank->items, (size_t)bank->count, sizeof *bank->items, compare_candidates);
  }
  finish_bank(beam, &beam->banks[forced->tokens]);
  tarn__beam_candidate *dealt = beam->heap + 2 * width * banks;
  beam->groups[0].running = deal(beam, dealt);
  int32_t *next = beam->progress + width * forced->count;
  for (int64_t i = 0; i < beam->groups[0].running; i++) {
    tarn__forced_advance(forced, next + i * forced->count, tarn__beam_progress(beam, dealt[i].from), dealt[i].id);
    beam->next[i] =
        (tarn__beam_running){add_token(beam, &dealt[i]), dealt[i].from, dealt[i].sum, likelihood_of(beam, &dealt[i])};
  }
  memcpy(beam->progress, next, (size_t)(beam->groups[0].running * forced->count) * sizeof *next);
  return TARN_STATUS_OK;
}

// Why nothing is left to continue or to finish: names a phrase that no hypothesis completed.
static tarn_status nothing_left(const tarn__beam *beam) {
  const tarn__forced *forced = beam->forced;
  TARN_REQUIRE(forced, NUMERIC, "no token has a finite log-probability");
  for (int64_t i = 0; i < forced->count; i++)
    TARN_REQUIRE(furthest(beam, forced)[i] == forced->phrases[i].length, DATA,
                 "the forced text \"%.40s\" cannot be written: its tokens are forbidden there", forced->texts[i]);
  return tarn__fail(TARN_STATUS_DATA,
                    "the forced text \"%.40s\" cannot be written together with the other ones: its "
                    "tokens are forbidden there",
                    forced->texts[0]);
}

// A step of one group, whose new hypotheses go to next[first] and behind.
static tarn_status advance_group(tarn__beam *beam, int64_t group, const step *s, int64_t first) {
  tarn__beam_group *own = &beam->groups[group];
  const int64_t width = width_of(beam);
  tarn__beam_heap h = {beam->heap, 0, 2 * width};
  for (int64_t i = own->first; i < own->first + own->running; i++) TARN_TRY(scan_row(&h, beam, s, (int32_t)i));
  qsort(h.items, (size_t)h.count, sizeof *h.items, compare_candidates);
  own->first = first;
  return choose(beam, group, h.items, h.count, first, &own->running);
}

// After the step: finishes what is at the maximum length of an open end, and sees whether the group is done.
static void end_step(tarn__beam *beam, int64_t group) {
  tarn__beam_group *own = &beam->groups[group];
  const tarn__beam_running *running = beam->next + own->first;
  if (beam->options.open_end && beam->step == beam->max_length) {
    for (int64_t i = 0; i < own->running; i++)
      finish(beam, group, running[i].last, beam->step, running[i].sum, running[i].likelihood);
    own->running = 0;
  }
  if (beam->options.late_stop) sort_group(beam, group);
  own->done = (own->finished >= width_of(beam) && !may_improve(beam, group, running, own->running)) || !own->running;
  if (own->done) sort_group(beam, group);
}

// Puts the finished hypotheses of all groups together, best first.
static void gather(tarn__beam *beam) {
  const int64_t groups = tarn__beam_groups(&beam->options);
  beam->finished_count = beam->groups[0].finished;
  for (int64_t g = 1; g < groups; g++)
    for (int64_t i = 0; i < beam->groups[g].finished; i++)
      beam->finished[beam->finished_count++] = finished_of(beam, g)[i];
  beam->finished_count = sort_finished(beam->finished, beam->finished_count, beam->options.beam);
}

tarn_status tarn__beam_advance(tarn__beam *beam, const tarn__beam_rows *rows) {
  const size_t width = (size_t)beam->options.beam;
  const int64_t groups = tarn__beam_groups(&beam->options);
  TARN_REQUIRE(beam->token_count < (size_t)INT32_MAX - 2 * width, DATA, "a hypothesis is too long");
  TARN_TRY(tarn__grow(&beam->tokens, &beam->token_capacity, beam->token_count + 2 * width, sizeof *beam->tokens));
  step s = {
      .ids = rows->ids, .values = rows->values, .own = rows->own ? rows->own : rows->values, .count = rows->count};
  const size_t first_new = beam->token_count;
  int64_t count = 0;
  for (int64_t g = 0; g < groups; g++) {
    if (beam->groups[g].done) continue;
    s.chosen = beam->tokens + first_new;
    s.chosen_count = (int64_t)(beam->token_count - first_new);
    TARN_TRY(beam->forced ? advance_forced(beam, &s) : advance_group(beam, g, &s, count));
    count += beam->groups[g].running;
  }
  beam->step++;
  beam->running_count = 0;
  beam->done = true;
  for (int64_t g = 0; g < groups; g++) {
    tarn__beam_group *group = &beam->groups[g];
    if (group->done) continue;
    end_step(beam, g);
    beam->done = beam->done && group->done;
    const int64_t from = group->first;
    group->first = beam->running_count;
    if (group->done) group->running = 0;
    for (int64_t i = 0; i < group->running; i++) beam->running[beam->running_count++] = beam->next[from + i];
  }
  if (!beam->done) return TARN_STATUS_OK;
  gather(beam);
  return beam->finished_count ? TARN_STATUS_OK : nothing_left(beam);
}

void tarn__beam_tokens(const tarn__beam *beam, int32_t last, int64_t count, int32_t *ids) {
  for (int32_t token = last; token >= 0 && count > 0; token = beam->tokens[token].parent)
    ids[--count] = beam->tokens[token].id;
}

void tarn__beam_copy(const tarn__beam *beam, int64_t place, int32_t *ids, float *log_probabilities) {
  const tarn__beam_finished *hypothesis = &beam->finished[place];
  int64_t at = hypothesis->length;
  if (hypothesis->ended) {
    ids[--at] = beam->options.eos;
    log_probabilities[at] = hypothesis->eos;
  }
  for (int32_t token = hypothesis->last; token >= 0; token = beam->tokens[token].parent) {
    at--;
    ids[at] = beam->tokens[token].id;
    log_probabilities[at] = beam->tokens[token].log_probability;
  }
}
