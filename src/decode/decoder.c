#include "decode/decoder.h"

#include <string.h>

#include "base/memory.h"
#include "decode/beam.h"
#include "decode/caches.h"
#include "graph/profile.h"

// Memory that a graph works in; grows, never shrinks.
typedef struct workspace {
  void *memory;
  size_t bytes;
} workspace;

// A growing array of numbers.
typedef struct numbers {
  int32_t *data;
  size_t capacity;
} numbers;

// A sentence in translation.
typedef struct slot {
  tarn__beam beam;
  tarn__item item;
  int32_t source_row;  // of its first token in the caches of the source
  int64_t first_row;   // of its hypotheses in this step
} slot;

struct tarn__decoder {
  tarn__translator_options options;
  const tarn__model *model;
  int32_t eos;
  int threads;
  tarn__translator_stats stats;
  tarn__region region;  // where the large blocks of memory come from
  tarn__arena results;  // what the translations point to

  slot *slots;     // [most]
  int32_t *order;  // [most] slots; the first `active` are in use, their hypotheses follow one another in this order
  int64_t most, active, source_tokens;  // source_tokens: of the active ones

  // Sentences that are encoded together, and the keys and values of the encoder's output, of all active sentences.
  tarn__graph encode;
  workspace encode_workspace;
  numbers source_ids, source_positions, source_offsets, seen;
  tarn__tensor **cross;  // [decoder layers]
  tarn__caches source;

  // A step.
  tarn__graph step;
  workspace step_workspace;
  tarn__caches caches;
  int64_t rows, history_count, longest;
  numbers ids, positions;        // [rows]
  numbers past;                  // cache rows of each hypothesis before the step, one hypothesis after the other
  numbers history;               // [history_count] the same with its own new row
  numbers ranges, source_range;  // [rows][2]
};

static tarn_status open_caches(tarn__decoder *d) {
  const tarn_stack *stack = &d->model->config->decoder;
  const int64_t d_model = d->model->config->model.d_model;
  const size_t size = tarn__dtype_size(d->model->dtype);
  size_t source[TARN_CONFIG_LAYERS], self[TARN_CONFIG_LAYERS];
  for (int l = 0; l < stack->count; l++) {
    const tarn__layer_weights *weights = d->model->decoder.layers[l].weights;
    source[l] = size * (size_t)tarn__layer_cross_width(weights, d_model);
    self[l] = size * (size_t)tarn__layer_cache_width(weights, d_model);
  }
  TARN_TRY(tarn__caches_open(&d->source, stack->count, source, &d->region));
  return tarn__caches_open(&d->caches, stack->count, self, &d->region);
}

static tarn_status open_all(tarn__decoder *d) {
  const int64_t rows = d->options.max_tokens < TARN__DECODER_ROWS ? d->options.max_tokens : TARN__DECODER_ROWS;
  d->most = rows > d->options.beam ? rows / d->options.beam : 1;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)d->most, sizeof *d->slots));
  d->slots = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)d->most, sizeof *d->order));
  d->order = memory;
  for (int64_t i = 0; i < d->most; i++) d->order[i] = (int32_t)i;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)d->model->decoder.count, sizeof *d->cross));
  d->cross = memory;
  return open_caches(d);
}

tarn_status tarn__decoder_open(tarn__decoder **decoder, const tarn__model *model, int32_t eos,
                               const tarn__translator_options *options, int threads) {
  *decoder = NULL;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn__decoder)));
  tarn__decoder *d = memory;
  d->options = *options;
  d->model = model;
  d->eos = eos;
  d->threads = threads;
  tarn_status status = open_all(d);
  if (status != TARN_STATUS_OK) {
    tarn__decoder_close(&d);
    return status;
  }
  *decoder = d;
  return TARN_STATUS_OK;
}

void tarn__decoder_close(tarn__decoder **decoder) {
  tarn__decoder *d = *decoder;
  if (!d) return;
  numbers *all[] = {&d->source_ids, &d->source_positions, &d->source_offsets, &d->seen,        &d->ids, &d->positions,
                    &d->past,       &d->history,          &d->ranges,         &d->source_range};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) tarn__free(all[i]->data);
  for (int64_t i = 0; d->slots && i < d->most; i++) tarn__beam_close(&d->slots[i].beam);
  tarn__free(d->slots);
  tarn__free(d->order);
  tarn__free(d->cross);
  tarn__caches_close(&d->source);
  tarn__caches_close(&d->caches);
  tarn__graph_close(&d->encode);
  tarn__graph_close(&d->step);
  tarn__region_free(&d->region, d->encode_workspace.memory);
  tarn__region_free(&d->region, d->step_workspace.memory);
  tarn__region_close(&d->region);
  tarn__arena_close(&d->results);
  tarn__free(d);
  *decoder = NULL;
}

void tarn__decoder_lend(tarn__decoder *d, void *memory, size_t bytes) {
  tarn__caches_drop(&d->source);
  tarn__caches_drop(&d->caches);
  tarn__region_free(&d->region, d->encode_workspace.memory);
  tarn__region_free(&d->region, d->step_workspace.memory);
  d->encode_workspace = d->step_workspace = (workspace){0};
  tarn__region_lend(&d->region, memory, bytes);
}

void tarn__decoder_reset(tarn__decoder *decoder) { tarn__arena_reset(&decoder->results); }

void tarn__decoder_add_stats(const tarn__decoder *decoder, tarn__translator_stats *stats) {
  stats->sentences += decoder->stats.sentences;
  stats->source_tokens += decoder->stats.source_tokens;
  stats->target_tokens += decoder->stats.target_tokens;
  stats->steps += decoder->stats.steps;
  stats->rows += decoder->stats.rows;
}

static tarn_status room(numbers *array, int64_t count) {
  return tarn__grow(&array->data, &array->capacity, (size_t)count, sizeof *array->data);
}

// Plans a finished graph, whose building began at `begin`, gives it memory and runs it.
static tarn_status run_graph(tarn__decoder *d, tarn__graph *graph, workspace *space, double begin) {
  TARN_TRY(tarn__graph_plan(graph));
  if (graph->workspace_bytes > space->bytes) {
    // A quarter more than needed, because the graphs grow little by little.
    size_t bytes;
    TARN_TRY(tarn__add_size(&bytes, graph->workspace_bytes, graph->workspace_bytes / 4));
    tarn__region_free(&d->region, space->memory);
    *space = (workspace){0};
    TARN_TRY(tarn__region_alloc(&d->region, &space->memory, TARN__MEMORY_ACTIVATION, bytes, 1));
    space->bytes = bytes;
  }
  tarn__graph_bind(graph, space->memory);
  TARN_TRY(tarn__profile_work(d->options.profile, "building and planning graphs", begin));
  tarn__exec exec = {.threads = d->threads, .profile = d->options.profile};
  return tarn__graph_run(graph, &exec);
}

// Takes sentences from the queue into free slots, behind the active ones; the token budget holds, but that a sentence
// alone may be longer. Returns how many.
static int64_t take(tarn__decoder *d, tarn__queue *queue) {
  int64_t taken = 0, tokens = d->source_tokens;
  pthread_mutex_lock(&queue->lock);
  while (queue->next < queue->count && d->active + taken < d->most) {
    const tarn__item *item = &queue->items[queue->next];
    if (tokens > 0 && tokens + item->length > d->options.max_tokens) break;
    d->slots[d->order[d->active + taken++]].item = *item;
    tokens += item->length;
    queue->next++;
  }
  pthread_mutex_unlock(&queue->lock);
  return taken;
}

// Makes room in the caches of the source for `rows` more.
static tarn_status reserve_source(tarn__decoder *d, int64_t rows) {
  TARN_TRY(room(&d->seen, d->source_tokens));
  int64_t count = 0;
  for (int64_t a = 0; a < d->active; a++) {
    const slot *s = &d->slots[d->order[a]];
    for (int64_t i = 0; i < s->item.length; i++) d->seen.data[count++] = s->source_row + (int32_t)i;
  }
  TARN_TRY(tarn__caches_reserve(&d->source, rows, d->seen.data, (size_t)count));
  // The rows of a sentence stay together and in order.
  count = 0;
  for (int64_t a = 0; a < d->active; a++) {
    slot *s = &d->slots[d->order[a]];
    s->source_row = d->seen.data[count];
    count += s->item.length;
  }
  return TARN_STATUS_OK;
}

// Encodes the first `count` sentences behind the active ones and appends their keys and values to the caches.
static tarn_status encode(tarn__decoder *d, int64_t count) {
  int64_t rows = 0, longest = 0;
  for (int64_t i = 0; i < count; i++) rows += d->slots[d->order[d->active + i]].item.length;
  TARN_TRY(room(&d->source_ids, rows));
  TARN_TRY(room(&d->source_positions, rows));
  TARN_TRY(room(&d->source_offsets, count + 1));
  TARN_TRY(reserve_source(d, rows));
  int32_t *offsets = d->source_offsets.data;
  offsets[0] = 0;
  for (int64_t i = 0; i < count; i++) {
    slot *s = &d->slots[d->order[d->active + i]];
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
  tarn__graph_begin(&d->encode, d->options.backend, d->model->dtype, false, d->threads);
  tarn__model_build_encode(d->model, &d->encode, &source, d->cross);
  TARN_TRY(run_graph(d, &d->encode, &d->encode_workspace, begin));
  for (int l = 0; l < d->model->decoder.count; l++) {
    const size_t row = d->source.row_bytes[l];
    if (row > 0)
      memcpy((char *)d->source.rows[l] + (size_t)d->source.used * row, d->cross[l]->data, (size_t)rows * row);
  }
  d->source.used += rows;
  d->stats.source_tokens += rows;
  return TARN_STATUS_OK;
}

static int64_t greatest_length(const tarn__decoder *d, int64_t source_tokens) {
  int64_t most = d->model->config->model.max_length - 1;
  double wanted = d->options.max_len_a * (double)source_tokens + (double)d->options.max_len_b;
  return wanted < (double)most ? (int64_t)wanted : most;
}

// Takes in new sentences when a quarter of the slots is free: then they are worth encoding together.
static tarn_status refill(tarn__decoder *d, tarn__queue *queue) {
  if (d->active > d->most * 3 / 4) return TARN_STATUS_OK;
  int64_t fresh = take(d, queue);
  if (fresh == 0) return TARN_STATUS_OK;
  TARN_TRY(encode(d, fresh));
  tarn__beam_options options = {.beam = d->options.beam, .length_penalty = d->options.length_penalty, .eos = d->eos};
  for (int64_t i = 0; i < fresh; i++) {
    slot *s = &d->slots[d->order[d->active]];
    TARN_TRY(tarn__beam_start(&s->beam, &options, greatest_length(d, s->item.length)));
    d->source_tokens += s->item.length;
    d->active++;
  }
  return TARN_STATUS_OK;
}

// Counts what the step will be, and makes room for it.
static tarn_status measure_step(tarn__decoder *d) {
  int64_t past = 0;
  d->rows = 0;
  d->longest = 0;
  for (int64_t a = 0; a < d->active; a++) {
    const slot *s = &d->slots[d->order[a]];
    d->rows += s->beam.running_count;
    past += s->beam.running_count * s->beam.step;
    if (s->beam.step + 1 > d->longest) d->longest = s->beam.step + 1;
    if (s->item.length > d->longest) d->longest = s->item.length;
  }
  d->history_count = past + d->rows;
  TARN_REQUIRE(d->history_count < INT32_MAX, MEMORY, "too many hypotheses are decoded together: %lld",
               (long long)d->rows);
  TARN_TRY(room(&d->ids, d->rows));
  TARN_TRY(room(&d->positions, d->rows));
  TARN_TRY(room(&d->history, d->history_count));
  TARN_TRY(room(&d->past, d->history_count));
  TARN_TRY(room(&d->ranges, 2 * d->rows));
  TARN_TRY(room(&d->source_range, 2 * d->rows));
  return tarn__caches_reserve(&d->caches, d->rows, d->past.data, (size_t)past);
}

// Writes down what the step's rows are: the last tokens, the cache rows and the source rows that they see.
static tarn_status fill_step(tarn__decoder *d) {
  TARN_TRY(measure_step(d));
  const int32_t *past = d->past.data;
  int32_t at = 0;
  int64_t row = 0;
  for (int64_t a = 0; a < d->active; a++) {
    slot *s = &d->slots[d->order[a]];
    s->first_row = row;
    for (int64_t i = 0; i < s->beam.running_count; i++, row++) {
      d->ids.data[row] = tarn__beam_last(&s->beam, i);
      d->positions.data[row] = (int32_t)s->beam.step;
      d->ranges.data[2 * row] = at;
      for (int64_t k = 0; k < s->beam.step; k++) d->history.data[at++] = *past++;
      d->history.data[at++] = (int32_t)(d->caches.used + row);
      d->ranges.data[2 * row + 1] = at;
      d->source_range.data[2 * row] = s->source_row;
      d->source_range.data[2 * row + 1] = s->source_row + (int32_t)s->item.length;
    }
  }
  return TARN_STATUS_OK;
}

// The reference in double gives doubles: makes floats of them in place.
static void narrow(void *data, size_t count) {
  const double *from = data;
  float *to = data;
  for (size_t i = 0; i < count; i++) {
    float value = (float)from[i];
    memcpy(&to[i], &value, sizeof value);
  }
}

static tarn_status run_step(tarn__decoder *d, tarn__top *top) {
  tarn__model_step step = {.rows = d->rows,
                           .ids = d->ids.data,
                           .positions = d->positions.data,
                           .self_cache = d->caches.rows,
                           .cache_rows = d->caches.capacity,
                           .first_row = d->caches.used,
                           .history = d->history.data,
                           .history_ranges = d->ranges.data,
                           .history_count = d->history_count,
                           .longest = d->longest,
                           .cross_cache = d->source.rows,
                           .source_rows = d->source.capacity,
                           .source_ranges = d->source_range.data,
                           .best = tarn__beam_choices(d->options.beam),
                           .eos = d->eos};
  double begin = tarn__profile_clock(d->options.profile);
  tarn__graph_begin(&d->step, d->options.backend, d->model->dtype, false, d->threads);
  *top = tarn__model_build_step(d->model, &d->step, &step);
  TARN_TRY(run_graph(d, &d->step, &d->step_workspace, begin));
  if (top->values->dtype == TARN__F64) narrow(top->values->data, (size_t)(top->values->rows * top->values->cols));
  d->caches.used += d->rows;
  d->stats.steps++;
  d->stats.rows += d->rows;
  return TARN_STATUS_OK;
}

// Copies the best hypotheses of a finished sentence to where the caller finds them.
static tarn_status keep_results(tarn__decoder *d, const tarn__beam *beam, tarn__translation *translation) {
  int64_t count = beam->finished_count < d->options.n_best ? beam->finished_count : d->options.n_best;
  void *memory;
  TARN_TRY(tarn__arena_alloc(&d->results, &memory, (size_t)count, sizeof(tarn__hypothesis)));
  tarn__hypothesis *hypotheses = memory;
  for (int64_t i = 0; i < count; i++) {
    const tarn__beam_finished *finished = &beam->finished[i];
    TARN_TRY(tarn__arena_alloc(&d->results, &memory, (size_t)finished->length, sizeof(int32_t) + sizeof(float)));
    int32_t *ids = memory;
    float *log_probabilities = (float *)(void *)(ids + finished->length);
    tarn__beam_copy(beam, i, ids, log_probabilities);
    hypotheses[i] = (tarn__hypothesis){ids, log_probabilities, finished->length, finished->sum, finished->score};
  }
  d->stats.sentences++;
  d->stats.target_tokens += hypotheses[0].length;
  *translation = (tarn__translation){hypotheses, count};
  return TARN_STATUS_OK;
}

// Lets every sentence choose how it goes on, frees the slots of those that are finished, and gives each hypothesis that
// runs on the history of the one it continues.
static tarn_status advance(tarn__decoder *d, const tarn__top *top, tarn__translation *translations) {
  int64_t kept = 0, past = 0, wanted = 0;
  for (int64_t a = 0; a < d->active; a++) {
    slot *s = &d->slots[d->order[a]];
    TARN_TRY(tarn__beam_advance(&s->beam, (const int32_t *)top->ids->data + s->first_row * top->ids->cols,
                                (const float *)top->values->data + s->first_row * top->values->cols));
    if (!s->beam.done) wanted += s->beam.running_count * s->beam.step;
  }
  TARN_TRY(room(&d->past, wanted));
  for (int64_t a = 0; a < d->active; a++) {
    const int32_t number = d->order[a];
    slot *s = &d->slots[number];
    if (s->beam.done) {
      TARN_TRY(keep_results(d, &s->beam, &translations[s->item.index]));
      d->source_tokens -= s->item.length;
      continue;
    }
    for (int64_t i = 0; i < s->beam.running_count; i++, past += s->beam.step) {
      const int32_t *history = d->history.data + d->ranges.data[2 * (s->first_row + s->beam.running[i].from)];
      memcpy(d->past.data + past, history, (size_t)s->beam.step * sizeof *history);
    }
    d->order[a] = d->order[kept];
    d->order[kept++] = number;
  }
  d->active = kept;
  return TARN_STATUS_OK;
}

static tarn_status run_all(tarn__decoder *d, tarn__queue *queue, tarn__translation *translations) {
  tarn_profile *profile = d->options.profile;
  d->active = 0;
  d->source_tokens = 0;
  tarn__caches_reset(&d->source);
  tarn__caches_reset(&d->caches);
  for (;;) {
    double unit_begin = tarn__profile_clock(profile);
    TARN_TRY(refill(d, queue));
    if (d->active == 0) return TARN_STATUS_OK;
    tarn__top top;
    double begin = tarn__profile_clock(profile);
    TARN_TRY(fill_step(d));
    TARN_TRY(tarn__profile_work(profile, "rows of the step", begin));
    TARN_TRY(run_step(d, &top));
    begin = tarn__profile_clock(profile);
    TARN_TRY(advance(d, &top, translations));
    TARN_TRY(tarn__profile_work(profile, "beam search", begin));
    TARN_TRY(tarn__profile_unit(profile, "step", unit_begin));
  }
}

tarn_status tarn__decoder_run(tarn__decoder *decoder, tarn__queue *queue, tarn__translation *translations) {
  tarn_status status = run_all(decoder, queue, translations);
  if (status != TARN_STATUS_OK) {
    pthread_mutex_lock(&queue->lock);
    queue->next = queue->count;
    pthread_mutex_unlock(&queue->lock);
  }
  return status;
}
