#include "decode/decoder.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "config/config_part.h"
#include "decode/decoder_state.h"
#include "graph/profile.h"
#include "task/task.h"

static tarn_status open_caches(tarn__decoder *d) {
  const tarn_stack *stack = &d->model->config->decoder;
  const int64_t d_model = d->model->config->model.d_model;
  const size_t size = tarn__dtype_size(d->model->dtype);
  size_t source[TARN_CONFIG_LAYERS], self[TARN__SIGHTS][TARN_CONFIG_LAYERS] = {{0}};
  for (int l = 0; l < stack->count; l++) {
    const tarn__layer_weights *weights = d->model->decoder.layers[l].weights;
    source[l] = size * (size_t)tarn__layer_cross_width(weights);
    self[d->model->decoder.layers[l].sight][l] = tarn__dtype_size(tarn__layer_cache_dtype(weights, d->model->dtype)) *
                                                 (size_t)tarn__layer_cache_width(weights, d_model);
  }
  TARN_TRY(tarn__caches_open(&d->source, d->model->device, d->stream, stack->count, source, &d->region));
  for (int i = 0; i < TARN__SIGHTS; i++)
    TARN_TRY(tarn__caches_open(&d->sights[i].caches, d->model->device, d->stream, stack->count, self[i], &d->region));
  return TARN_STATUS_OK;
}

// Determines what the layers see of earlier tokens.
static void look_back(tarn__decoder *d) {
  for (int i = 0; i < TARN__SIGHTS; i++) d->sights[i].most = d->model->sights[i];
  for (int l = 0; l < d->model->decoder.count; l++) {
    const tarn__layer_weights *weights = d->model->decoder.layers[l].weights;
    d->sequential |= tarn__mixer_of(weights->kind)->sequential;
  }
}

static tarn_status open_all(tarn__decoder *d) {
  const int64_t beam = d->options.search.beam;
  d->most_rows = d->options.max_tokens < TARN__DECODER_ROWS ? d->options.max_tokens : TARN__DECODER_ROWS;
  if (tarn__next_whole(d, NULL)) d->most_rows = tarn__next_fit(d);
  d->most = d->most_rows > beam ? d->most_rows / beam : 1;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)d->most, sizeof *d->slots));
  d->slots = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)d->most, sizeof *d->order));
  d->order = memory;
  for (int64_t i = 0; i < d->most; i++) d->order[i] = (int32_t)i;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)d->model->decoder.count, sizeof *d->cross));
  d->cross = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)d->model->decoder.count, sizeof *d->self_cache));
  d->self_cache = memory;
  look_back(d);
  TARN_TRY(tarn__device_stream_open(d->model->device, &d->stream));
  return open_caches(d);
}

tarn_status tarn__decoder_open(tarn__decoder **decoder, const tarn__model *model, const tarn__decoder_options *options,
                               int threads) {
  *decoder = NULL;
  void *memory;
  TARN_TRY(tarn__config_check_decoding(model->config));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn__decoder)));
  tarn__decoder *d = memory;
  d->options = *options;
  d->model = model;
  d->threads = threads;
  d->region = tarn__workspace_region(model->device);
  tarn_status status = open_all(d);
  if (status != TARN_STATUS_OK) {
    tarn__decoder_close(&d);
    return status;
  }
  *decoder = d;
  return TARN_STATUS_OK;
}

tarn__item_options tarn__decoder_item(const tarn__decoder_options *o) {
  tarn__item_options own = {.search = o->search,
                            .processing = o->processing,
                            .stops = o->stops,
                            .max_len_a = o->max_len_a,
                            .max_len_b = o->max_len_b,
                            .n_best = o->n_best};
  if (o->sampling) own.sampling = *o->sampling;
  return own;
}

void tarn__decoder_close(tarn__decoder **decoder) {
  tarn__decoder *d = *decoder;
  if (!d) return;
  tarn__id_list *all[] = {&d->source_ids, &d->source_positions, &d->source_offsets, &d->seen,      &d->ids,
                          &d->positions,  &d->source_range,     &d->predicted,      &d->drawn_ids, &d->draws,
                          &d->begin,      &d->so_far,           &d->row_numbers,    &d->wanted};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) tarn__free(all[i]->data);
  for (int64_t i = 0; d->slots && i < d->most; i++) tarn__beam_close(&d->slots[i].beam);
  tarn__free(d->slots);
  tarn__free(d->order);
  tarn__free(d->cross);
  tarn__free(d->self_cache);
  tarn__free(d->drawn_values);
  tarn__logit_edits_close(&d->edits);
  tarn__continuation_close(&d->continuation);
  tarn__caches_close(&d->source);
  for (int i = 0; i < TARN__SIGHTS; i++) {
    tarn__caches_close(&d->sights[i].caches);
    tarn__free(d->sights[i].past.data);
    tarn__free(d->sights[i].history.data);
    tarn__free(d->sights[i].ranges.data);
  }
  tarn__graph_close(&d->encode);
  tarn__graph_close(&d->step);
  tarn__workspace_free(&d->encode_workspace, &d->region);
  tarn__workspace_free(&d->step_workspace, &d->region);
  tarn__region_close(&d->region);
  tarn__device_stream_close(d->model->device, d->stream);
  tarn__arena_close(&d->results);
  tarn__free(d);
  *decoder = NULL;
}

void tarn__decoder_lend(tarn__decoder *d, void *memory, size_t bytes) {
  tarn__caches_drop(&d->source);
  for (int i = 0; i < TARN__SIGHTS; i++) tarn__caches_drop(&d->sights[i].caches);
  tarn__workspace_free(&d->encode_workspace, &d->region);
  tarn__workspace_free(&d->step_workspace, &d->region);
  tarn__region_lend(&d->region, memory, bytes);
}

void tarn__decoder_seat(tarn__decoder *decoder, int place, int threads) {
  decoder->place = place;
  decoder->threads = threads;
}

tarn__at_work tarn__decoder_at_work(const tarn__decoder *decoder) {
  return (tarn__at_work){decoder->active, decoder->active > 0 ? decoder->width : 0};
}

void tarn__decoder_reset(tarn__decoder *decoder) { tarn__arena_reset(&decoder->results); }

void tarn__decoder_add_stats(const tarn__decoder *decoder, tarn__decoder_stats *stats) {
  stats->sentences += decoder->stats.sentences;
  stats->source_tokens += decoder->stats.source_tokens;
  stats->target_tokens += decoder->stats.target_tokens;
  stats->steps += decoder->stats.steps;
  stats->rows += decoder->stats.rows;
  stats->seen += decoder->stats.seen;
}

static tarn_status run_graph(tarn__decoder *d, tarn__graph *graph, tarn__workspace *space, double begin) {
  const tarn__exec exec = {.threads = d->threads, .profile = d->options.profile, .stream = d->stream};
  return tarn__workspace_run(space, &d->region, graph, &exec, begin);
}

// Samples of a prompt are adjacent in the queue; those that are taken before the next step share one reading of it.
static int32_t reader_of(const tarn__decoder *d, int64_t place) {
  if (!d->options.sampling || place == 0) return -1;
  const tarn__slot *before = &d->slots[d->order[place - 1]], *s = &d->slots[d->order[place]];
  if (before->read > 0) return -1;
  if (before->item.ids != s->item.ids || before->item.length != s->item.length) return -1;
  return before->reader >= 0 ? before->reader : d->order[place - 1];
}

// The most hypotheses of the active items, with those of one more.
static int64_t room_with(const tarn__decoder *d, int64_t active, const tarn__item *item) {
  bool whole = tarn__next_whole(d, item);
  for (int64_t a = 0; a < active && !whole; a++) whole = tarn__next_whole(d, &d->slots[d->order[a]].item);
  return whole ? tarn__next_fit(d) : d->most_rows;
}

// Whether the next item can share the reading of the prompt of the last one before place `end`.
static bool follows(const tarn__decoder *d, tarn__queue *queue, int64_t end) {
  if (!queue->feed || end == 0) return false;
  const tarn__slot *before = &d->slots[d->order[end - 1]];
  // The searches of those that were just taken have not begun.
  return (end > d->active || before->read == 0) && tarn__queue_follows(queue, &before->item);
}

// Moves items from the queue into free slots after the active ones, within the budgets of tokens and of hypotheses,
// which only a single item may exceed. Returns their number.
static int64_t take(tarn__decoder *d, tarn__queue *queue) {
  int64_t taken = 0, tokens = d->source_tokens, width = d->width;
  pthread_mutex_lock(&queue->lock);
  for (;;) {
    const tarn__at_work at_work = {d->active + taken, width};
    if (!follows(d, queue, at_work.items)) {
      if (tarn__queue_has_share(queue, &at_work)) break;
      if (queue->feed && !tarn__queue_turn(queue, d->place, &at_work)) break;
    }
    const tarn__item *item = tarn__queue_peek(queue);
    if (!item) break;
    const int64_t own = item->own ? item->own->search.beam : d->options.search.beam;
    if (at_work.items == d->most || (tokens > 0 && tokens + item->length > d->options.max_tokens) ||
        (width > 0 && width + own > room_with(d, at_work.items, item))) {
      queue->refused = true;
      break;
    }
    tarn__slot *s = &d->slots[d->order[d->active + taken++]];
    s->item = *item;
    s->open = queue->feed != NULL;
    tokens += item->length;
    width += own;
    tarn__queue_take(queue);
  }
  if (queue->feed) queue->at_work[d->place] = (tarn__at_work){d->active + taken, width};
  pthread_mutex_unlock(&queue->lock);
  return taken;
}

// Makes room for `rows` more rows in the caches of the source.
static tarn_status reserve_source(tarn__decoder *d, int64_t rows) {
  TARN_TRY(tarn__id_list_room(&d->seen, d->source_tokens));
  int64_t count = 0;
  for (int64_t a = 0; a < d->active; a++) {
    const tarn__slot *s = &d->slots[d->order[a]];
    for (int64_t i = 0; i < s->item.length; i++) d->seen.data[count++] = s->source_row + (int32_t)i;
  }
  TARN_TRY(tarn__caches_reserve(&d->source, rows, d->seen.data, (size_t)count));
  // The rows of a sentence stay together and in order.
  count = 0;
  for (int64_t a = 0; a < d->active; a++) {
    tarn__slot *s = &d->slots[d->order[a]];
    s->source_row = d->seen.data[count];
    count += s->item.length;
  }
  return TARN_STATUS_OK;
}

// Encodes the first `count` sentences after the active ones and appends their keys and values to the caches.
static tarn_status encode(tarn__decoder *d, int64_t count) {
  int64_t rows = 0, longest = 0;
  for (int64_t i = 0; i < count; i++) rows += d->slots[d->order[d->active + i]].item.length;
  TARN_TRY(tarn__id_list_room(&d->source_ids, rows));
  TARN_TRY(tarn__id_list_room(&d->source_positions, rows));
  TARN_TRY(tarn__id_list_room(&d->source_offsets, count + 1));
  TARN_TRY(reserve_source(d, rows));
  int32_t *offsets = d->source_offsets.data;
  offsets[0] = 0;
  for (int64_t i = 0; i < count; i++) {
    tarn__slot *s = &d->slots[d->order[d->active + i]];
    memcpy(d->source_ids.data + offsets[i], s->item.ids, (size_t)s->item.length * sizeof(int32_t));
    s->source_row = (int32_t)d->source.used + offsets[i];
    offsets[i + 1] = offsets[i] + (int32_t)s->item.length;
    if (s->item.length > longest) longest = s->item.length;
  }
  tarn__packed_positions(d->source_positions.data, offsets, count);
  tarn__packed source = {.sentences = count,
                         .rows = rows,
                         .longest = longest,
                         .ids = d->source_ids.data,
                         .positions = d->source_positions.data,
                         .offsets = offsets};
  double begin = tarn__profile_clock(d->options.profile);
  tarn__model_begin(d->model, &d->encode, false, d->threads);
  tarn__model_build_encode(d->model, &d->encode, &source, d->cross);
  TARN_TRY(run_graph(d, &d->encode, &d->encode_workspace, begin));
  const tarn__device *device = d->model->device;
  for (int l = 0; l < d->model->decoder.count; l++) {
    const size_t row = d->source.row_bytes[l];
    if (row > 0)
      TARN_TRY(device->type->copy(device, d->stream, (char *)d->source.rows[l] + (size_t)d->source.used * row,
                                  d->cross[l]->data, (size_t)rows * row));
  }
  d->source.used += rows;
  return TARN_STATUS_OK;
}

bool tarn__decoder_translates(const tarn__decoder *d) {
  return tarn__config_task(d->model->config)->uses >> TARN__USE_TRANSLATE & 1u;
}

// Whether its one stack reads the source, all of which sees itself, before the target.
static bool reads_prefix(const tarn__decoder *d) { return tarn__config_task(d->model->config)->stacks[0].prefix; }

static int64_t greatest_length(const tarn__decoder *d, const tarn__item *item) {
  const int64_t tokens = item->length;
  const double more = item->own ? item->own->max_len_a : d->options.max_len_a;
  const int64_t least = item->own ? item->own->max_len_b : d->options.max_len_b;
  if (!tarn__decoder_translates(d)) {
    const int64_t fit = tarn__model_longest(d->model) - tokens;
    return least < fit ? least : fit;
  }
  int64_t most = d->model->config->model.max_length - 1;
  double wanted = more * (double)tokens + (double)least;
  most = wanted < (double)most ? (int64_t)wanted : most;
  return most > item->prefix_length ? most - item->prefix_length : 0;
}

// Messages about phrases name the line.
static tarn_status name_line(const tarn__slot *s, tarn_status status) {
  return status == TARN_STATUS_DATA && s->item.forced
             ? tarn__fail_prefix(status, "line %lld: ", (long long)s->item.forced->line)
             : status;
}

static tarn_status force(tarn__slot *s) {
  return name_line(s, tarn__beam_force(&s->beam, s->item.forced, s->item.prefix, s->item.prefix_length));
}

// An item of a feed fails alone.
static void give_up(tarn__queue *queue, tarn__slot *s, tarn_status status) {
  s->open = false;
  tarn__queue_done(queue, &s->item, status, NULL);
}

static tarn_status begin(tarn__decoder *d, tarn__slot *s) {
  s->read = 0;
  TARN_TRY(tarn__beam_start(&s->beam, tarn__slot_search(d, s), greatest_length(d, &s->item)));
  if (s->item.forced) TARN_TRY(force(s));
  tarn__next_begin(d, s);
  return TARN_STATUS_OK;
}

// Begins the searches of the items that were taken. Those that cannot begin lose their slots. Returns how many have.
static tarn_status begin_all(tarn__decoder *d, tarn__queue *queue, int64_t taken, int64_t *begun) {
  *begun = 0;
  for (int64_t i = 0; i < taken; i++) {
    int32_t *const at = &d->order[d->active + i], *const to = &d->order[d->active + *begun], number = *at;
    const tarn_status status = begin(d, &d->slots[number]);
    if (status != TARN_STATUS_OK && !queue->feed) return status;
    if (status != TARN_STATUS_OK) {
      give_up(queue, &d->slots[number], status);
      continue;
    }
    *at = *to;
    *to = number;
    ++*begun;
  }
  return TARN_STATUS_OK;
}

// Takes new items once a quarter of the slots is free, which makes encoding them together worthwhile; those of a feed,
// for which somebody waits, at once.
static tarn_status refill(tarn__decoder *d, tarn__queue *queue) {
  if (!queue->feed && d->active > d->most * 3 / 4) return TARN_STATUS_OK;
  int64_t taken, fresh;
  do {  // where none of them can begin, the queue may hold another that had no room beside them
    taken = take(d, queue);
    TARN_TRY(begin_all(d, queue, taken, &fresh));
  } while (taken > 0 && fresh == 0);
  if (fresh == 0) return TARN_STATUS_OK;
  if (d->model->encoder.count > 0) TARN_TRY(encode(d, fresh));
  for (int64_t i = 0; i < fresh; i++) {
    tarn__slot *s = &d->slots[d->order[d->active]];
    s->reader = reader_of(d, d->active);
    d->source_tokens += s->item.length;
    d->width += s->beam.options.beam;
    d->stats.source_tokens += s->item.length;
    d->active++;
  }
  return TARN_STATUS_OK;
}

// The number of tokens at the beginning of a hypothesis: the end of sentence or that of model.decoder_start, followed,
// in a language model, by the prompt, else by the target's prefix; where the target continues the source, that is
// first.
static int64_t beginning(const tarn__decoder *d, const tarn__slot *s) {
  const int64_t tail = tarn__decoder_translates(d) ? s->item.prefix_length : s->item.length;
  return 1 + tail + (reads_prefix(d) ? s->item.length : 0);
}

static bool begins(const tarn__decoder *d, const tarn__slot *s) { return s->read < beginning(d, s); }

static bool waits(const tarn__slot *s) { return s->reader >= 0; }

// The number of tokens of a hypothesis that the model has processed.
static int64_t tokens_before(const tarn__slot *s) { return s->read + (s->beam.step > 0 ? s->beam.step - 1 : 0); }

// The number of their cache rows that its next token sees.
static int64_t past_of(const tarn__sight *of, const tarn__slot *s) {
  const int64_t tokens = tokens_before(s);
  return tokens < of->most - 1 ? tokens : of->most - 1;
}

// The number of hypotheses that see the past, each with its own list of rows.
static int64_t hypotheses_of(const tarn__decoder *d, const tarn__slot *s) {
  if (waits(s)) return 0;
  return begins(d, s) ? 1 : s->beam.running_count;
}

static int64_t rows_of(const tarn__decoder *d, const tarn__slot *s, int64_t at_work) {
  if (!begins(d, s)) return s->beam.running_count;
  const int64_t left = beginning(d, s) - s->read, room = TARN__DECODER_ROWS / at_work;
  if (reads_prefix(d)) return left;  // its rows see each other, so they are in one step
  if (d->sequential || room < 1) return 1;
  return left < room ? left : room;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

// Determines the size of the step and makes room for it.
static tarn_status measure_step(tarn__decoder *d) {
  int64_t past[TARN__SIGHTS] = {0}, at_work = 0;
  d->rows = d->longest = d->positions_end = 0;
  for (int i = 0; i < TARN__SIGHTS; i++) d->sights[i].history_count = 0;
  for (int64_t a = 0; a < d->active; a++) at_work += !waits(&d->slots[d->order[a]]);
  for (int64_t a = 0; a < d->active; a++) {
    tarn__slot *s = &d->slots[d->order[a]];
    if (waits(s)) continue;
    const int64_t hypotheses = hypotheses_of(d, s);
    s->rows = rows_of(d, s, at_work);
    s->first_row = d->rows;
    d->rows += s->rows;
    const int64_t fresh = s->rows / hypotheses;  // tokens of one hypothesis
    for (int i = 0; i < TARN__SIGHTS; i++) {
      tarn__sight *of = &d->sights[i];
      if (of->most == 0) continue;
      const int64_t before = past_of(of, s);
      past[i] += hypotheses * before;
      of->history_count += hypotheses * before + s->rows;
      d->longest = larger(d->longest, before + fresh < of->most ? before + fresh : of->most);
    }
    d->positions_end = larger(d->positions_end, tokens_before(s) + fresh);
    if (tarn__decoder_translates(d)) d->longest = larger(d->longest, s->item.length);
  }
  TARN_REQUIRE(d->sights[TARN__FAR].history_count < INT32_MAX, MEMORY, "too many hypotheses are decoded together: %lld",
               (long long)d->rows);
  TARN_TRY(tarn__id_list_room(&d->ids, d->rows));
  TARN_TRY(tarn__id_list_room(&d->positions, d->rows));
  TARN_TRY(tarn__id_list_room(&d->predicted, d->rows));
  TARN_TRY(tarn__id_list_room(&d->source_range, 2 * d->rows));
  for (int i = 0; i < TARN__SIGHTS; i++) {
    tarn__sight *of = &d->sights[i];
    if (of->most == 0) continue;
    TARN_TRY(tarn__id_list_room(&of->history, of->history_count));
    TARN_TRY(tarn__id_list_room(&of->past, of->history_count));
    TARN_TRY(tarn__id_list_room(&of->ranges, 2 * d->rows));
    TARN_TRY(tarn__caches_reserve(&of->caches, d->rows, of->past.data, (size_t)past[i]));
  }
  return TARN_STATUS_OK;
}

// Write positions in the lists of a step.
typedef struct cursor {
  const int32_t *past[TARN__SIGHTS];
  int64_t history[TARN__SIGHTS], row;
} cursor;

// Fills in the rows that `count` tokens of one hypothesis see in one group of layers; each of the first `prefix` sees
// all of these.
static void fill_sight(tarn__decoder *d, int which, const tarn__slot *s, cursor *at, int64_t count, int64_t prefix) {
  tarn__sight *of = &d->sights[which];
  const int64_t begin = at->history[which], before = past_of(of, s);
  int32_t *history = of->history.data + begin;
  memcpy(history, at->past[which], (size_t)before * sizeof *history);
  at->past[which] += before;
  for (int64_t k = 0; k < count; k++) {
    const int64_t row = at->row + k, end = k < prefix ? prefix : before + k + 1;
    const int64_t sees = end < of->most ? end : of->most;
    history[before + k] = (int32_t)(of->caches.used + row);
    of->ranges.data[2 * row] = (int32_t)(begin + end - sees);
    of->ranges.data[2 * row + 1] = (int32_t)(begin + end);
    if (which == TARN__FAR) d->stats.seen += sees;
  }
  at->history[which] += before + count;
}

// Fills in the rows of tokens `first` .. `first` + count - 1 of one hypothesis of a slot.
static void fill_hypothesis(tarn__decoder *d, const tarn__slot *s, cursor *at, int64_t first, const int32_t *ids,
                            int64_t count) {
  const int64_t prefix = reads_prefix(d) && begins(d, s) ? s->item.length : 0;
  for (int i = 0; i < TARN__SIGHTS; i++)
    if (d->sights[i].most > 0) fill_sight(d, i, s, at, count, prefix);
  for (int64_t k = 0; k < count; k++, at->row++) {
    d->ids.data[at->row] = ids[k];
    d->positions.data[at->row] = (int32_t)(first + k);
    d->source_range.data[2 * at->row] = s->source_row;
    d->source_range.data[2 * at->row + 1] = s->source_row + (int32_t)s->item.length;
  }
}

// Fills in the next rows of the beginning.
static tarn_status fill_beginning(tarn__decoder *d, const tarn__slot *s, cursor *at) {
  TARN_TRY(tarn__id_list_room(&d->begin, s->rows));
  int32_t *ids = d->begin.data;
  const int64_t told = d->model->config->model.decoder_start;
  const int32_t start = told >= 0 ? (int32_t)told : d->options.search.eos;
  const int64_t first = reads_prefix(d) ? s->item.length : 0;  // where the start stands
  const int32_t *tail = tarn__decoder_translates(d) ? s->item.prefix : s->item.ids;
  for (int64_t k = 0; k < s->rows; k++) {
    const int64_t token = s->read + k;
    ids[k] = token == first ? start : token < first ? s->item.ids[token] : tail[token - first - 1];
  }
  fill_hypothesis(d, s, at, s->read, ids, s->rows);
  return TARN_STATUS_OK;
}

// Fills in the rows of a step: the last tokens, and the cache rows and source rows that they see.
static tarn_status fill_step(tarn__decoder *d) {
  TARN_TRY(measure_step(d));
  cursor at = {.row = 0};
  for (int i = 0; i < TARN__SIGHTS; i++) at.past[i] = d->sights[i].past.data;
  d->predicted_count = 0;
  for (int64_t a = 0; a < d->active; a++) {
    tarn__slot *s = &d->slots[d->order[a]];
    if (waits(s)) {  // its reader comes before it
      const tarn__slot *reader = &d->slots[s->reader];
      s->first_row = reader->first_row, s->rows = reader->rows, s->first_top = reader->first_top;
      continue;
    }
    s->first_top = s->first_choice = d->predicted_count;
    if (begins(d, s)) {
      TARN_TRY(fill_beginning(d, s, &at));
      if (s->read + s->rows == beginning(d, s))
        d->predicted.data[d->predicted_count++] = (int32_t)at.row - 1;
      else
        s->first_top = s->first_choice = -1;
      continue;
    }
    for (int64_t i = 0; i < s->beam.running_count; i++) {
      const int32_t last = tarn__beam_last(&s->beam, i);
      d->predicted.data[d->predicted_count++] = (int32_t)at.row;
      fill_hypothesis(d, s, &at, tokens_before(s), &last, 1);
    }
  }
  return TARN_STATUS_OK;
}

// Finds or draws the best continuations of the rows that need a next token.
static tarn_status run_step(tarn__decoder *d) {
  tarn__model_step step = {.rows = d->rows,
                           .ids = d->ids.data,
                           .positions = d->positions.data,
                           .self_cache = d->self_cache,
                           .longest = d->longest,
                           .positions_end = d->positions_end,
                           .cross_cache = d->source.rows,
                           .source_rows = d->source.capacity,
                           .source_ranges = d->source_range.data};
  tarn__next_request(d, &step);
  for (int l = 0; l < d->model->decoder.count; l++)
    d->self_cache[l] = d->sights[d->model->decoder.layers[l].sight].caches.rows[l];
  for (int i = 0; i < TARN__SIGHTS; i++) {
    const tarn__sight *of = &d->sights[i];
    step.histories[i] = (tarn__model_history){of->history.data, of->ranges.data, of->history_count, of->caches.capacity,
                                              of->caches.used};
  }
  double begin = tarn__profile_clock(d->options.profile);
  tarn__model_begin(d->model, &d->step, false, d->threads);
  const tarn__next next = tarn__model_build_step(d->model, &d->step, &step);
  TARN_TRY(run_graph(d, &d->step, &d->step_workspace, begin));
  TARN_TRY(tarn__next_read(d, &next));
  for (int i = 0; i < TARN__SIGHTS; i++)
    if (d->sights[i].most > 0) d->sights[i].caches.used += d->rows;
  d->stats.steps++;
  d->stats.rows += d->rows;
  return TARN_STATUS_OK;
}

// Copies the best hypotheses of a finished sentence to the results.
static tarn_status keep_results(tarn__decoder *d, const tarn__slot *s, tarn__translation *translation) {
  const tarn__beam *beam = &s->beam;
  const int64_t n_best = s->item.own ? s->item.own->n_best : d->options.n_best;
  int64_t count = beam->finished_count < n_best ? beam->finished_count : n_best;
  void *memory;
  TARN_TRY(tarn__arena_alloc(&d->results, &memory, (size_t)count, sizeof(tarn__hypothesis)));
  tarn__hypothesis *hypotheses = memory;
  for (int64_t i = 0; i < count; i++) {
    const tarn__beam_finished *finished = &beam->finished[i];
    TARN_TRY(tarn__arena_alloc(&d->results, &memory, (size_t)finished->length, sizeof(int32_t) + sizeof(float)));
    int32_t *ids = memory;
    float *log_probabilities = (float *)(void *)(ids + finished->length);
    tarn__beam_copy(beam, i, ids, log_probabilities);
    hypotheses[i] =
        (tarn__hypothesis){ids, log_probabilities, finished->length, finished->likelihood, finished->score, NULL};
  }
  d->stats.sentences++;
  d->stats.target_tokens += hypotheses[0].length;
  *translation = (tarn__translation){hypotheses, count};
  return TARN_STATUS_OK;
}

// Tells the listener of an item its token.
static tarn_status tell(const tarn__decoder *d, tarn__queue *queue, const tarn__slot *s) {
  const tarn__listener *listener = s->item.own ? &s->item.own->listener : NULL;
  if (!listener || !listener->hear) return TARN_STATUS_OK;
  pthread_mutex_lock(&queue->lock);
  const tarn_status status = tarn__next_tell(d, s, listener);
  pthread_mutex_unlock(&queue->lock);
  return status;
}

// Advances the search of a slot, and tells its token.
static tarn_status advance_slot(tarn__decoder *d, tarn__queue *queue, tarn__slot *s, const tarn__beam_rows *all) {
  const int64_t count = all->count, at = s->first_choice;
  const tarn__beam_rows rows = {all->ids + at * count, all->values + at * (count + 1),
                                all->own ? all->own + at * (count + 1) : NULL, count};
  s->reader = -1;
  if (s->item.forced) tarn__next_want(d, s);
  TARN_TRY(name_line(s, tarn__beam_advance(&s->beam, &rows)));
  return tell(d, queue, s);
}

// Advances every search, or its position in the beginning. Returns in `past` the number of past rows that each group of
// layers will see in the next step.
static tarn_status choose(tarn__decoder *d, tarn__queue *queue, int64_t past[TARN__SIGHTS]) {
  tarn__beam_rows all;
  TARN_TRY(tarn__next_choices(d, &all));
  for (int i = 0; i < TARN__SIGHTS; i++) past[i] = 0;
  for (int64_t a = 0; a < d->active; a++) {
    tarn__slot *s = &d->slots[d->order[a]];
    if (begins(d, s)) s->read += s->rows;
    if (s->first_top >= 0) {
      const tarn_status status = advance_slot(d, queue, s, &all);
      if (status != TARN_STATUS_OK && !queue->feed) return status;
      if (status != TARN_STATUS_OK) {
        s->beam.done = true;
        give_up(queue, s, status);
      }
    }
    for (int i = 0; i < TARN__SIGHTS && !s->beam.done; i++)
      if (d->sights[i].most > 0) past[i] += hypotheses_of(d, s) * past_of(&d->sights[i], s);
  }
  return TARN_STATUS_OK;
}

// Gives a hypothesis of the next step the history of the row it continues.
static void keep_past(tarn__decoder *d, int64_t past[TARN__SIGHTS], const tarn__slot *s, int64_t row) {
  for (int i = 0; i < TARN__SIGHTS; i++) {
    tarn__sight *of = &d->sights[i];
    if (of->most == 0) continue;
    const int64_t count = past_of(of, s);
    const int32_t *end = of->history.data + of->ranges.data[2 * row + 1];
    memcpy(of->past.data + past[i], end - count, (size_t)count * sizeof *end);
    past[i] += count;
  }
}

// Gives the result of a finished item to the feed.
static tarn_status give_result(tarn__decoder *d, tarn__queue *queue, tarn__slot *s) {
  tarn__translation result;
  if (!s->open) return TARN_STATUS_OK;
  tarn__arena_reset(&d->results);
  const tarn_status status = keep_results(d, s, &result);
  s->open = false;
  tarn__queue_done(queue, &s->item, status, status == TARN_STATUS_OK ? &result : NULL);
  return TARN_STATUS_OK;
}

// Advances every search, frees the slots of finished ones, and gives each continuing hypothesis the history of the one
// it continues.
static tarn_status advance(tarn__decoder *d, tarn__queue *queue, tarn__translation *results) {
  int64_t kept = 0, past[TARN__SIGHTS] = {0}, wanted[TARN__SIGHTS];
  TARN_TRY(choose(d, queue, wanted));
  for (int i = 0; i < TARN__SIGHTS; i++) TARN_TRY(tarn__id_list_room(&d->sights[i].past, wanted[i]));
  for (int64_t a = 0; a < d->active; a++) {
    const int32_t number = d->order[a];
    tarn__slot *s = &d->slots[number];
    if (s->beam.done) {
      d->source_tokens -= s->item.length;
      d->width -= s->beam.options.beam;
      TARN_TRY(queue->feed ? give_result(d, queue, s) : keep_results(d, s, &results[s->item.index]));
      continue;
    }
    if (s->beam.step <= 1) {  // all hypotheses continue the last row of the beginning
      const int64_t hypotheses = hypotheses_of(d, s);
      for (int64_t i = 0; i < hypotheses; i++) keep_past(d, past, s, s->first_row + s->rows - 1);
    } else {
      for (int64_t i = 0; i < s->beam.running_count; i++) keep_past(d, past, s, s->first_row + s->beam.running[i].from);
    }
    d->order[a] = d->order[kept];
    d->order[kept++] = number;
  }
  d->active = kept;
  return TARN_STATUS_OK;
}

// The weight of active items: their number plus their tokens.
static int64_t weight_of(const tarn__decoder *d) { return d->source_tokens + d->active; }

static tarn_status run_all(tarn__decoder *d, tarn__queue *queue, tarn__translation *results) {
  tarn_profile *profile = d->options.profile;
  // The model's weights and the lent memory are written on the default stream.
  TARN_TRY(tarn__device_synchronise(d->model->device));
  if (!queue->feed) d->active = 0;  // after a failure
  if (d->active == 0) {
    d->source_tokens = d->width = 0;
    tarn__caches_reset(&d->source);
    for (int i = 0; i < TARN__SIGHTS; i++) tarn__caches_reset(&d->sights[i].caches);
  }
  for (;;) {
    double unit_begin = tarn__profile_clock(profile);
    TARN_TRY(refill(d, queue));
    if (d->active == 0 && queue->feed && tarn__queue_wait(queue)) continue;
    const tarn__at_work at_work = tarn__decoder_at_work(d);
    if (d->active == 0 || (queue->feed && tarn__queue_leaves(queue, &at_work))) return TARN_STATUS_OK;
    double begin = tarn__profile_clock(profile);
    TARN_TRY(fill_step(d));
    TARN_TRY(tarn__next_prepare(d));
    TARN_TRY(tarn__profile_work(profile, "rows of the step", begin));
    TARN_TRY(run_step(d));
    begin = tarn__profile_clock(profile);
    const int64_t weight = weight_of(d);
    TARN_TRY(advance(d, queue, results));
    tarn__queue_finish(queue, weight - weight_of(d));
    TARN_TRY(tarn__profile_work(profile, "beam search", begin));
    TARN_TRY(tarn__profile_unit(profile, "step", unit_begin));
  }
}

// After a failure of the decoder: all items that it has of a feed fail.
static void fail_all(tarn__decoder *d, tarn__queue *queue, tarn_status status) {
  for (int64_t i = 0; i < d->most; i++)
    if (d->slots[i].open) give_up(queue, &d->slots[i], status);
  d->active = 0;
  tarn__queue_fail(queue, status);
}

tarn_status tarn__decoder_run(tarn__decoder *decoder, tarn__queue *queue, tarn__translation *results) {
  tarn_status status = run_all(decoder, queue, results);
  if (status != TARN_STATUS_OK && queue->feed)
    fail_all(decoder, queue, status);
  else if (status != TARN_STATUS_OK)
    tarn__queue_stop(queue);
  return status;
}
