#include "decode/beam.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

tarn_status tarn__beam_start(tarn__beam *beam, const tarn__beam_options *options, int64_t max_length) {
  beam->options = *options;
  beam->max_length = max_length;
  beam->step = 0;
  beam->token_count = 0;
  beam->finished_count = 0;
  beam->running_count = 0;
  beam->done = false;
  size_t width = (size_t)options->beam;
  TARN_TRY(tarn__grow(&beam->running, &beam->running_capacity, width, sizeof *beam->running));
  // Hypotheses still running at the maximum length are finished too, in addition to the others.
  TARN_TRY(tarn__grow(&beam->finished, &beam->finished_capacity, 2 * width, sizeof *beam->finished));
  TARN_TRY(tarn__grow(&beam->heap, &beam->heap_capacity, 2 * width, sizeof *beam->heap));
  beam->running[0] = (tarn__beam_running){.last = -1, .from = 0, .sum = 0};
  beam->running_count = 1;
  return TARN_STATUS_OK;
}

void tarn__beam_close(tarn__beam *beam) {
  tarn__free(beam->tokens);
  tarn__free(beam->running);
  tarn__free(beam->finished);
  tarn__free(beam->heap);
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

// The best candidates so far; the worst of them is at the root.
typedef struct heap {
  tarn__beam_candidate *items;
  int64_t count, limit;
} heap;

static void heap_sink(heap *h, tarn__beam_candidate item) {
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

static void heap_offer(heap *h, tarn__beam_candidate item) {
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

// Offers the continuations of one hypothesis, best first, until no other can be among the best.
static tarn_status scan_row(heap *h, const tarn__beam *beam, int32_t from, const int32_t *ids, const float *row) {
  const int64_t choices = tarn__beam_choices(&beam->options);
  const int32_t eos = beam->options.eos;
  const double sum = beam->running[from].sum;
  TARN_REQUIRE(row[choices] == row[choices], NUMERIC, "a log-probability is not a number");
  // At the maximum length the end of sentence is the only continuation, however unlikely.
  if (!beam->options.open_end && beam->step >= beam->max_length) {
    if (row[choices] > -INFINITY)
      heap_offer(h, (tarn__beam_candidate){sum + (double)row[choices], from, eos, row[choices]});
    return TARN_STATUS_OK;
  }
  for (int64_t i = 0; i < choices && ids[i] >= 0; i++) {
    TARN_REQUIRE(row[i] == row[i], NUMERIC, "a log-probability is not a number");
    if (!tarn__beam_allows(beam, ids[i])) continue;
    tarn__beam_candidate candidate = {sum + (double)row[i], from, ids[i], row[i]};
    if (h->count == h->limit && candidate.sum < h->items[0].sum) break;
    heap_offer(h, candidate);
  }
  return TARN_STATUS_OK;
}

static void finish(tarn__beam *beam, int32_t last, int64_t length, double sum) {
  beam->finished[beam->finished_count++] = (tarn__beam_finished){
      .last = last, .length = length, .sum = sum, .score = sum / pow((double)length, beam->options.length_penalty)};
}

static void finish_with_eos(tarn__beam *beam, const tarn__beam_candidate *candidate) {
  tarn__beam_finished *finished = &beam->finished[beam->finished_count];
  finish(beam, beam->running[candidate->from].last, beam->step + 1, candidate->sum);
  finished->ended = true;
  finished->eos = candidate->log_probability;
}

// Insertion sort: stable, so equal scores stay in the order of finishing.
static void sort_finished(tarn__beam *beam) {
  for (int64_t i = 1; i < beam->finished_count; i++) {
    tarn__beam_finished item = beam->finished[i];
    int64_t j = i;
    for (; j > 0 && beam->finished[j - 1].score < item.score; j--) beam->finished[j] = beam->finished[j - 1];
    beam->finished[j] = item;
  }
  if (beam->finished_count > beam->options.beam) beam->finished_count = beam->options.beam;
}

// Finishes the running hypotheses at the maximum length of an open end.
static void finish_running(tarn__beam *beam) {
  for (int64_t i = 0; i < beam->running_count; i++)
    finish(beam, beam->running[i].last, beam->step, beam->running[i].sum);
  beam->running_count = 0;
}

// Whether the search continues although `beam` hypotheses (sorted) are finished.
static bool may_improve(const tarn__beam *beam) {
  if (!beam->options.late_stop || beam->running_count == 0) return false;
  const double length = pow((double)beam->step, beam->options.length_penalty);
  return beam->running[0].sum / length > beam->finished[beam->finished_count - 1].score;
}

tarn_status tarn__beam_advance(tarn__beam *beam, const int32_t *ids, const float *log_probabilities) {
  const int64_t width = beam->options.beam, choices = tarn__beam_choices(&beam->options);
  heap h = {beam->heap, 0, 2 * width};
  for (int64_t i = 0; i < beam->running_count; i++)
    TARN_TRY(scan_row(&h, beam, (int32_t)i, ids + i * choices, log_probabilities + i * (choices + 1)));
  qsort(h.items, (size_t)h.count, sizeof *h.items, compare_candidates);
  TARN_REQUIRE(beam->token_count < (size_t)INT32_MAX - (size_t)width, DATA, "a hypothesis is too long");
  TARN_TRY(tarn__grow(&beam->tokens, &beam->token_capacity, beam->token_count + (size_t)width, sizeof *beam->tokens));
  size_t first_new = beam->token_count;
  for (int64_t i = 0; i < h.count && beam->token_count - first_new < (size_t)width; i++) {
    const tarn__beam_candidate *candidate = &h.items[i];
    if (candidate->id == beam->options.eos) {
      if (i < width && (beam->finished_count < width || beam->options.late_stop)) finish_with_eos(beam, candidate);
      continue;
    }
    beam->tokens[beam->token_count++] =
        (tarn__beam_token){candidate->id, beam->running[candidate->from].last, candidate->log_probability};
    // Sum and origin are kept in the candidates, at the front, until the running hypotheses are no longer needed.
    h.items[beam->token_count - first_new - 1] = *candidate;
  }
  beam->running_count = (int64_t)(beam->token_count - first_new);
  for (int64_t i = 0; i < beam->running_count; i++)
    beam->running[i] = (tarn__beam_running){(int32_t)(first_new + (size_t)i), h.items[i].from, h.items[i].sum};
  beam->step++;
  if (beam->options.open_end && beam->step == beam->max_length) finish_running(beam);
  if (beam->options.late_stop) sort_finished(beam);
  beam->done = (beam->finished_count >= width && !may_improve(beam)) || beam->running_count == 0;
  TARN_REQUIRE(!beam->done || beam->finished_count, NUMERIC, "no token has a finite log-probability");
  if (beam->done) sort_finished(beam);
  return TARN_STATUS_OK;
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
