#include "decode/translate.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/threads.h"
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

struct tarn__translator {
  tarn__translator_options options;
  const tarn__model *model;
  int32_t eos;
  int threads;
  tarn__translator_stats stats;
  tarn__arena results;  // what the translations of the last run point to

  // The batch: its sentences packed, and what the encoder computed for them.
  tarn__graph encode;
  workspace encode_workspace;
  numbers source_ids, source_positions, source_offsets;
  tarn__tensor **cross;  // [decoder layers]
  void **cross_data;
  void **self_data;  // [decoder layers], NULL for layers without attention
  int64_t longest_source;

  // Its hypotheses. Row r of a step is one running hypothesis; active sentences follow one another, and the running
  // hypotheses of a sentence too.
  tarn__graph step;
  workspace step_workspace;
  tarn__caches caches;
  tarn__beam *beams;  // [batch capacity]
  size_t beam_capacity;
  numbers active;                // sentences of the batch that are not finished
  numbers first_rows;            // [active] the first row of each
  numbers ids, positions;        // [rows]
  numbers past;                  // [rows][step] cache rows of each hypothesis before the step
  numbers history;               // [rows][step + 1] with its own new row
  numbers ranges, source_range;  // [rows][2]
};

void tarn__translator_default(tarn__translator_options *options) {
  *options = (tarn__translator_options){.beam = 5,
                                        .length_penalty = 1.0,
                                        .max_len_a = 1.2,
                                        .max_len_b = 10,
                                        .max_tokens = 4096,
                                        .n_best = 1,
                                        .threads = 0,
                                        .backend = TARN__CPU};
}

void tarn__translator_from_config(tarn__translator_options *options, const tarn_config *config) {
  tarn__translator_default(options);
  options->beam = config->translate.beam;
  options->length_penalty = config->translate.length_penalty;
  options->max_len_a = config->translate.max_len_a;
  options->max_len_b = config->translate.max_len_b;
  options->max_tokens = config->translate.max_tokens;
}

static tarn_status check_options(const tarn__translator_options *options, const tarn__model *model, int32_t eos) {
  TARN_REQUIRE(options->beam >= 1 && options->beam <= 1024, USAGE, "beam must be from 1 to 1024, not %lld",
               (long long)options->beam);
  TARN_REQUIRE(options->n_best >= 1 && options->n_best <= options->beam, USAGE,
               "n-best must be from 1 to the beam of %lld, not %lld", (long long)options->beam,
               (long long)options->n_best);
  TARN_REQUIRE(options->length_penalty >= -100 && options->length_penalty <= 100, USAGE,
               "length penalty must be from -100 to 100, not %g", options->length_penalty);
  TARN_REQUIRE(options->max_len_a >= 0 && options->max_len_a <= 1e6 && options->max_len_b >= 0 &&
                   options->max_len_b <= (int64_t)1 << 30,
               USAGE, "the greatest length %g * source tokens + %lld is out of range", options->max_len_a,
               (long long)options->max_len_b);
  TARN_REQUIRE(options->max_tokens >= 1 && options->max_tokens <= 1 << 24, USAGE,
               "max-tokens must be from 1 to 16777216, not %lld", (long long)options->max_tokens);
  TARN_REQUIRE(model->dtype != TARN__F64 || options->backend == TARN__REFERENCE, USAGE,
               "double precision needs the reference backend");
  TARN_REQUIRE(eos >= 0 && eos < model->target_vocab, DATA, "the end of sentence %d is outside the vocabulary", eos);
  return TARN_STATUS_OK;
}

static bool has_caches(const tarn__model *model, int layer) {
  return model->decoder.layers[layer].weights->mixer->caches;
}

tarn_status tarn__translator_open(tarn__translator **translator, const tarn__model *model, int32_t eos,
                                  const tarn__translator_options *options) {
  *translator = NULL;
  TARN_TRY(check_options(options, model, eos));
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn__translator)));
  tarn__translator *t = memory;
  t->options = *options;
  t->model = model;
  t->eos = eos;
  t->threads = options->threads > 0 ? options->threads : tarn__threads();
  size_t layers = (size_t)model->decoder.count;
  int with_attention = 0;
  for (int l = 0; l < model->decoder.count; l++) with_attention += has_caches(model, l);
  size_t row_bytes = 2 * (size_t)model->config->model.d_model * tarn__dtype_size(model->dtype);
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, 2 * layers, sizeof(void *));
  t->cross_data = memory;
  t->self_data = t->cross_data ? t->cross_data + layers : NULL;
  if (status == TARN_STATUS_OK) {
    status = tarn__alloc(&memory, TARN__MEMORY_OTHER, layers, sizeof *t->cross);
    t->cross = memory;
  }
  if (status == TARN_STATUS_OK) status = tarn__caches_open(&t->caches, with_attention, row_bytes);
  if (status != TARN_STATUS_OK) {
    tarn__translator_close(&t);
    return status;
  }
  *translator = t;
  return TARN_STATUS_OK;
}

void tarn__translator_close(tarn__translator **translator) {
  tarn__translator *t = *translator;
  if (!t) return;
  numbers *all[] = {&t->source_ids,  &t->source_positions, &t->source_offsets, &t->active,  &t->first_rows,
                    &t->ids,         &t->positions,        &t->past,           &t->history, &t->ranges,
                    &t->source_range};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) tarn__free(all[i]->data);
  for (size_t i = 0; i < t->beam_capacity; i++) tarn__beam_close(&t->beams[i]);
  tarn__free(t->beams);
  tarn__free(t->cross);
  tarn__free(t->cross_data);
  tarn__caches_close(&t->caches);
  tarn__graph_close(&t->encode);
  tarn__graph_close(&t->step);
  tarn__free(t->encode_workspace.memory);
  tarn__free(t->step_workspace.memory);
  tarn__arena_close(&t->results);
  tarn__free(t);
  *translator = NULL;
}

void tarn__translator_get_stats(const tarn__translator *translator, tarn__translator_stats *stats) {
  *stats = translator->stats;
}

static tarn_status room(numbers *array, size_t rows, size_t cols) {
  size_t count;
  TARN_TRY(tarn__mul_size(&count, rows, cols));
  return tarn__grow(&array->data, &array->capacity, count, sizeof *array->data);
}

// Plans a finished graph, whose building began at `begin`, gives it memory and runs it.
static tarn_status run_graph(const tarn__translator *t, tarn__graph *graph, workspace *space, double begin) {
  TARN_TRY(tarn__graph_plan(graph));
  if (graph->workspace_bytes > space->bytes) {
    // A quarter more than needed, because the graphs of a batch grow little by little.
    size_t bytes;
    TARN_TRY(tarn__add_size(&bytes, graph->workspace_bytes, graph->workspace_bytes / 4));
    tarn__free(space->memory);
    *space = (workspace){0};
    TARN_TRY(tarn__alloc(&space->memory, TARN__MEMORY_ACTIVATION, bytes, 1));
    space->bytes = bytes;
  }
  tarn__graph_bind(graph, space->memory);
  TARN_TRY(tarn__profile_work(t->options.profile, "building and planning graphs", begin));
  tarn__exec exec = {.threads = t->threads, .profile = t->options.profile};
  return tarn__graph_run(graph, &exec);
}

// A sentence of the input.
typedef struct item {
  const int32_t *ids;
  int64_t length, index;
} item;

static int longest_first(const void *a, const void *b) {
  const item *x = a;
  const item *y = b;
  if (x->length != y->length) return x->length < y->length ? 1 : -1;
  return (x->index > y->index) - (x->index < y->index);
}

static tarn_status check_sentence(const tarn__translator *t, const item *sentence) {
  int64_t longest = t->model->config->model.max_length;
  TARN_REQUIRE(sentence->length >= 1 && sentence->length <= longest, DATA,
               "sentence %lld has %lld tokens, and the model takes 1 to %lld", (long long)sentence->index + 1,
               (long long)sentence->length, (long long)longest);
  for (int64_t i = 0; i < sentence->length; i++)
    TARN_REQUIRE(sentence->ids[i] >= 0 && sentence->ids[i] < t->model->source_vocab, DATA,
                 "sentence %lld has the token %d, which is outside the vocabulary", (long long)sentence->index + 1,
                 sentence->ids[i]);
  return TARN_STATUS_OK;
}

static int64_t greatest_length(const tarn__translator *t, int64_t source_tokens) {
  int64_t most = t->model->config->model.max_length - 1;
  double wanted = t->options.max_len_a * (double)source_tokens + (double)t->options.max_len_b;
  return wanted < (double)most ? (int64_t)wanted : most;
}

static tarn_status encode_batch(tarn__translator *t, const item *items, int64_t count) {
  int64_t rows = 0;
  for (int64_t s = 0; s < count; s++) rows += items[s].length;
  TARN_TRY(room(&t->source_ids, (size_t)rows, 1));
  TARN_TRY(room(&t->source_positions, (size_t)rows, 1));
  TARN_TRY(room(&t->source_offsets, (size_t)count + 1, 1));
  t->source_offsets.data[0] = 0;
  t->longest_source = 0;
  for (int64_t s = 0; s < count; s++) {
    int32_t offset = t->source_offsets.data[s];
    memcpy(t->source_ids.data + offset, items[s].ids, (size_t)items[s].length * sizeof(int32_t));
    t->source_offsets.data[s + 1] = offset + (int32_t)items[s].length;
    if (items[s].length > t->longest_source) t->longest_source = items[s].length;
  }
  tarn__packed_positions(t->source_positions.data, t->source_offsets.data, count);
  tarn__packed source = {.sentences = count,
                         .rows = rows,
                         .longest = t->longest_source,
                         .ids = t->source_ids.data,
                         .positions = t->source_positions.data,
                         .offsets = t->source_offsets.data};
  double begin = tarn__profile_clock(t->options.profile);
  tarn__graph_begin(&t->encode, t->options.backend, t->model->dtype, false, t->threads);
  tarn__model_build_encode(t->model, &t->encode, &source, t->cross);
  TARN_TRY(run_graph(t, &t->encode, &t->encode_workspace, begin));
  for (int l = 0; l < t->model->decoder.count; l++) t->cross_data[l] = t->cross[l] ? t->cross[l]->data : NULL;
  t->stats.source_tokens += rows;
  return TARN_STATUS_OK;
}

static tarn_status start_beams(tarn__translator *t, const item *items, int64_t count) {
  TARN_TRY(tarn__grow(&t->beams, &t->beam_capacity, (size_t)count, sizeof *t->beams));
  TARN_TRY(room(&t->active, (size_t)count, 1));
  TARN_TRY(room(&t->first_rows, (size_t)count, 1));
  tarn__beam_options options = {.beam = t->options.beam, .length_penalty = t->options.length_penalty, .eos = t->eos};
  for (int64_t s = 0; s < count; s++) {
    TARN_TRY(tarn__beam_start(&t->beams[s], &options, greatest_length(t, items[s].length)));
    t->active.data[s] = (int32_t)s;
  }
  tarn__caches_reset(&t->caches);
  return TARN_STATUS_OK;
}

// Writes down what the step's rows are: the last tokens, the cache rows and the source rows that they see.
static tarn_status fill_step(tarn__translator *t, int64_t active, int64_t rows, int64_t place) {
  size_t cols = (size_t)place + 1;
  TARN_TRY(room(&t->ids, (size_t)rows, 1));
  TARN_TRY(room(&t->positions, (size_t)rows, 1));
  TARN_TRY(room(&t->history, (size_t)rows, cols));
  TARN_TRY(room(&t->ranges, (size_t)rows, 2));
  TARN_TRY(room(&t->source_range, (size_t)rows, 2));
  TARN_REQUIRE((size_t)rows <= INT32_MAX / cols, MEMORY, "too many hypotheses are decoded together: %lld",
               (long long)rows);
  TARN_TRY(tarn__caches_reserve(&t->caches, rows, t->past.data, (size_t)rows * (size_t)place));
  int64_t row = 0;
  for (int64_t a = 0; a < active; a++) {
    int32_t sentence = t->active.data[a];
    const tarn__beam *beam = &t->beams[sentence];
    t->first_rows.data[a] = (int32_t)row;
    for (int64_t i = 0; i < beam->running_count; i++, row++) {
      t->ids.data[row] = tarn__beam_last(beam, i);
      t->positions.data[row] = (int32_t)place;
      int32_t *history = t->history.data + (size_t)row * cols;
      if (place > 0) memcpy(history, t->past.data + row * place, (size_t)place * sizeof *history);
      history[place] = (int32_t)(t->caches.used + row);
      t->ranges.data[2 * row] = (int32_t)((size_t)row * cols);
      t->ranges.data[2 * row + 1] = (int32_t)((size_t)(row + 1) * cols);
      t->source_range.data[2 * row] = t->source_offsets.data[sentence];
      t->source_range.data[2 * row + 1] = t->source_offsets.data[sentence + 1];
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

static tarn_status run_step(tarn__translator *t, int64_t rows, int64_t place, int64_t sentences, tarn__top *top) {
  int64_t seen = place + 1;
  int cache = 0;
  for (int l = 0; l < t->model->decoder.count; l++)
    t->self_data[l] = has_caches(t->model, l) ? t->caches.rows[cache++] : NULL;
  tarn__model_step step = {.rows = rows,
                           .ids = t->ids.data,
                           .positions = t->positions.data,
                           .self_cache = t->self_data,
                           .cache_rows = t->caches.capacity,
                           .first_row = t->caches.used,
                           .history = t->history.data,
                           .history_ranges = t->ranges.data,
                           .history_count = rows * seen,
                           .longest = seen > t->longest_source ? seen : t->longest_source,
                           .cross_cache = t->cross_data,
                           .source_rows = t->source_offsets.data[sentences],
                           .source_ranges = t->source_range.data,
                           .best = tarn__beam_choices(t->options.beam),
                           .eos = t->eos};
  double begin = tarn__profile_clock(t->options.profile);
  tarn__graph_begin(&t->step, t->options.backend, t->model->dtype, false, t->threads);
  *top = tarn__model_build_step(t->model, &t->step, &step);
  TARN_TRY(run_graph(t, &t->step, &t->step_workspace, begin));
  if (top->values->dtype == TARN__F64) narrow(top->values->data, (size_t)(top->values->rows * top->values->cols));
  t->caches.used += rows;
  t->stats.steps++;
  t->stats.rows += rows;
  return TARN_STATUS_OK;
}

// Lets every active sentence choose how it goes on.
static tarn_status advance_beams(tarn__translator *t, int64_t active, const tarn__top *top) {
  const int32_t *ids = top->ids->data;
  const float *log_probabilities = top->values->data;
  for (int64_t a = 0; a < active; a++) {
    int64_t row = t->first_rows.data[a];
    TARN_TRY(tarn__beam_advance(&t->beams[t->active.data[a]], ids + row * top->ids->cols,
                                log_probabilities + row * top->values->cols));
  }
  return TARN_STATUS_OK;
}

// Copies the best hypotheses of a finished sentence to where the caller finds them.
static tarn_status keep_results(tarn__translator *t, const tarn__beam *beam, tarn__translation *translation) {
  int64_t count = beam->finished_count < t->options.n_best ? beam->finished_count : t->options.n_best;
  void *memory;
  TARN_TRY(tarn__arena_alloc(&t->results, &memory, (size_t)count, sizeof(tarn__hypothesis)));
  tarn__hypothesis *hypotheses = memory;
  for (int64_t i = 0; i < count; i++) {
    const tarn__beam_finished *finished = &beam->finished[i];
    TARN_TRY(tarn__arena_alloc(&t->results, &memory, (size_t)finished->length, sizeof(int32_t) + sizeof(float)));
    int32_t *ids = memory;
    float *log_probabilities = (float *)(void *)(ids + finished->length);
    tarn__beam_copy(beam, i, ids, log_probabilities);
    hypotheses[i] = (tarn__hypothesis){ids, log_probabilities, finished->length, finished->sum, finished->score};
  }
  t->stats.target_tokens += hypotheses[0].length;
  *translation = (tarn__translation){hypotheses, count};
  return TARN_STATUS_OK;
}

// Takes finished sentences out of the batch and gives each hypothesis that goes on the history of the one it continues.
// Returns the number of rows of the next step in *rows.
static tarn_status settle(tarn__translator *t, int64_t *active, int64_t *rows, int64_t place, const item *items,
                          tarn__translation *translations) {
  size_t cols = (size_t)place + 1;
  int64_t next_rows = 0;
  for (int64_t a = 0; a < *active; a++)
    if (!t->beams[t->active.data[a]].done) next_rows += t->beams[t->active.data[a]].running_count;
  TARN_TRY(room(&t->past, (size_t)next_rows, cols));
  int64_t kept = 0, row = 0;
  for (int64_t a = 0; a < *active; a++) {
    int32_t sentence = t->active.data[a];
    const tarn__beam *beam = &t->beams[sentence];
    if (beam->done) {
      TARN_TRY(keep_results(t, beam, &translations[items[sentence].index]));
      continue;
    }
    for (int64_t i = 0; i < beam->running_count; i++, row++) {
      int64_t from = t->first_rows.data[a] + beam->running[i].from;
      memcpy(t->past.data + (size_t)row * cols, t->history.data + (size_t)from * cols, cols * sizeof(int32_t));
    }
    t->active.data[kept++] = sentence;
  }
  *active = kept;
  *rows = next_rows;
  return TARN_STATUS_OK;
}

static tarn_status translate_batch(tarn__translator *t, const item *items, int64_t count,
                                   tarn__translation *translations) {
  tarn_profile *profile = t->options.profile;
  double batch_begin = tarn__profile_clock(profile);
  TARN_TRY(encode_batch(t, items, count));
  TARN_TRY(start_beams(t, items, count));
  int64_t active = count;
  int64_t rows = count;
  for (int64_t place = 0; active > 0; place++) {
    tarn__top top;
    double begin = tarn__profile_clock(profile);
    TARN_TRY(fill_step(t, active, rows, place));
    TARN_TRY(tarn__profile_work(profile, "rows of the step", begin));
    TARN_TRY(run_step(t, rows, place, count, &top));
    begin = tarn__profile_clock(profile);
    TARN_TRY(advance_beams(t, active, &top));
    TARN_TRY(settle(t, &active, &rows, place, items, translations));
    TARN_TRY(tarn__profile_work(profile, "beam search", begin));
  }
  t->stats.sentences += count;
  return tarn__profile_unit(profile, "batch", batch_begin);
}

static tarn_status translate_items(tarn__translator *t, item *items, int64_t sentences,
                                   tarn__translation *translations) {
  for (int64_t s = 0; s < sentences; s++) TARN_TRY(check_sentence(t, &items[s]));
  qsort(items, (size_t)sentences, sizeof *items, longest_first);
  for (int64_t begin = 0; begin < sentences;) {
    int64_t tokens = items[begin].length;
    int64_t end = begin + 1;
    while (end < sentences && tokens + items[end].length <= t->options.max_tokens &&
           (end + 1 - begin) * t->options.beam <= t->options.max_tokens)
      tokens += items[end++].length;
    TARN_TRY(translate_batch(t, items + begin, end - begin, translations));
    begin = end;
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__translator_run(tarn__translator *translator, tarn__translation *translations, const int32_t *ids,
                                 const int64_t *offsets, int64_t sentences) {
  tarn__arena_reset(&translator->results);
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)sentences, sizeof(item)));
  item *items = memory;
  for (int64_t s = 0; s < sentences; s++) items[s] = (item){ids + offsets[s], offsets[s + 1] - offsets[s], s};
  tarn_status status = translate_items(translator, items, sentences, translations);
  tarn__free(items);
  return status;
}
