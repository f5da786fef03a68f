#include "decode/refine.h"

#include <string.h>

#include "base/memory.h"
#include "config/config_part.h"
#include "graph/profile.h"

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

tarn_status tarn__refiner_check(const tarn__translator_options *options, const char *use) {
  TARN_REQUIRE(!options->processing && options->samples == 0 && options->groups == 1, USAGE,
               "penalties, banned texts, groups and samples are for models that translate token by token");
  TARN_REQUIRE(options->iterations >= 1 && options->iterations <= 1024, USAGE,
               "iterations must be from 1 to 1024, not %lld", (long long)options->iterations);
  TARN_REQUIRE(options->mask >= 0, USAGE, "the vocabulary of the target has no <mask>, %s", use);
  return TARN_STATUS_OK;
}

tarn_status tarn__refiner_open(tarn__refiner *r, const tarn__model *model, const tarn__decoder_options *options,
                               int threads) {
  *r = (tarn__refiner){
      .options = *options, .model = model, .threads = threads, .region = tarn__workspace_region(model->device)};
  // No group has more sentences than rows.
  r->room = options->max_tokens < TARN__DECODER_ROWS ? options->max_tokens : TARN__DECODER_ROWS;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)r->room, sizeof *r->items));
  r->items = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)model->decoder.count, sizeof *r->cross));
  r->cross = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)model->decoder.count, sizeof *r->cross_cache));
  r->cross_cache = memory;
  return tarn__device_stream_open(model->device, &r->stream);
}

void tarn__refiner_close(tarn__refiner *r) {
  tarn__id_list *all[] = {&r->source_ids,       &r->source_positions, &r->source_offsets, &r->target_ids,
                          &r->target_positions, &r->target_offsets,   &r->readers};
  if (!r->model) return;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) tarn__free(all[i]->data);
  tarn__graph_close(&r->encode);
  tarn__graph_close(&r->step);
  tarn__workspace_free(&r->encode_workspace, &r->region);
  tarn__workspace_free(&r->step_workspace, &r->region);
  tarn__region_close(&r->region);
  tarn__device_stream_close(r->model->device, r->stream);
  tarn__arena_close(&r->results);
  tarn__free(r->items);
  tarn__free(r->cross);
  tarn__free(r->cross_cache);
  *r = (tarn__refiner){0};
}

void tarn__refiner_lend(tarn__refiner *r, void *memory, size_t bytes) {
  tarn__workspace_free(&r->encode_workspace, &r->region);
  tarn__workspace_free(&r->step_workspace, &r->region);
  tarn__region_lend(&r->region, memory, bytes);
}

void tarn__refiner_add_stats(const tarn__refiner *r, tarn__decoder_stats *stats) {
  stats->sentences += r->stats.sentences;
  stats->source_tokens += r->stats.source_tokens;
  stats->target_tokens += r->stats.target_tokens;
  stats->steps += r->stats.steps;
  stats->rows += r->stats.rows;
  stats->seen += r->stats.seen;
  stats->iterations += r->stats.iterations;
}

tarn_status tarn__refiner_begin(tarn__refiner *r) { return tarn__device_synchronise(r->model->device); }

tarn_status tarn__refiner_take(tarn__refiner *r, tarn__queue *queue, int64_t candidates) {
  int64_t rows = 0;
  r->group_begin = tarn__profile_clock(r->options.profile);
  r->count = 0;
  pthread_mutex_lock(&queue->lock);
  while (queue->next < queue->count && r->count < r->room && r->count < queue->share.items) {
    const tarn__item *item = &queue->items[queue->next];
    const bool fits =
        rows + item->length <= r->options.max_tokens && (rows + item->length) * candidates <= TARN__DECODER_ROWS;
    if (r->count > 0 && !fits) break;
    r->items[r->count++] = *item;
    rows += item->length;
    queue->next++;
  }
  pthread_mutex_unlock(&queue->lock);
  return TARN_STATUS_OK;
}

static tarn_status pack_source(tarn__refiner *r) {
  int64_t rows = 0, longest = 0;
  for (int64_t s = 0; s < r->count; s++) rows += r->items[s].length;
  TARN_TRY(tarn__id_list_room(&r->source_ids, rows));
  TARN_TRY(tarn__id_list_room(&r->source_positions, rows));
  TARN_TRY(tarn__id_list_room(&r->source_offsets, r->count + 1));
  int32_t *offsets = r->source_offsets.data;
  offsets[0] = 0;
  for (int64_t s = 0; s < r->count; s++) {
    const tarn__item *item = &r->items[s];
    memcpy(r->source_ids.data + offsets[s], item->ids, (size_t)item->length * sizeof *item->ids);
    offsets[s + 1] = offsets[s] + (int32_t)item->length;
    if (item->length > longest) longest = item->length;
  }
  tarn__packed_positions(r->source_positions.data, offsets, r->count);
  r->source = (tarn__packed){.sentences = r->count,
                             .rows = rows,
                             .longest = longest,
                             .ids = r->source_ids.data,
                             .positions = r->source_positions.data,
                             .offsets = offsets};
  r->stats.source_tokens += rows;
  return TARN_STATUS_OK;
}

tarn__tensor *tarn__refiner_encode(tarn__refiner *r) {
  const tarn_status status = pack_source(r);
  r->begin = tarn__profile_clock(r->options.profile);
  tarn__model_begin(r->model, &r->encode, false, r->threads);
  r->encode.status = status;
  return tarn__model_build_encode(r->model, &r->encode, &r->source, r->cross);
}

static tarn_status run_graph(tarn__refiner *r, tarn__workspace *space, tarn__graph *graph, double begin) {
  const tarn__exec exec = {.threads = r->threads, .profile = r->options.profile, .stream = r->stream};
  return tarn__workspace_run(space, &r->region, graph, &exec, begin);
}

tarn_status tarn__refiner_encoded(tarn__refiner *r) {
  TARN_TRY(run_graph(r, &r->encode_workspace, &r->encode, r->begin));
  for (int l = 0; l < r->model->decoder.count; l++) r->cross_cache[l] = r->cross[l] ? r->cross[l]->data : NULL;
  return TARN_STATUS_OK;
}

int64_t tarn__refiner_chunk(const tarn__refiner *r, const int32_t *lengths, const int32_t *first, int64_t begin) {
  int64_t end = begin, rows = 0;
  while (end < first[r->count] && (end == begin || rows + lengths[end] <= TARN__DECODER_ROWS)) rows += lengths[end++];
  return end;
}

tarn_status tarn__refiner_lay(tarn__refiner *r, const int32_t *lengths, const int32_t *first, int64_t begin,
                              int64_t end) {
  const int64_t sentences = end - begin;
  int64_t rows = 0, longest = 0;
  for (int64_t i = begin; i < end; i++) {
    rows += lengths[i];
    if (lengths[i] > longest) longest = lengths[i];
  }
  TARN_TRY(tarn__id_list_room(&r->target_ids, rows));
  TARN_TRY(tarn__id_list_room(&r->target_positions, rows));
  TARN_TRY(tarn__id_list_room(&r->target_offsets, sentences + 1));
  TARN_TRY(tarn__id_list_room(&r->readers, r->count + 1));
  int32_t *offsets = r->target_offsets.data;
  offsets[0] = 0;
  for (int64_t i = 0; i < sentences; i++) offsets[i + 1] = offsets[i] + lengths[begin + i];
  // No row attends to a source sentence whose target sentences are all in other chunks.
  for (int64_t s = 0; s <= r->count; s++)
    r->readers.data[s] = offsets[first[s] < begin ? 0 : smaller(first[s], end) - begin];
  tarn__packed_positions(r->target_positions.data, offsets, sentences);
  r->ids = r->target_ids.data;
  r->target = (tarn__packed){.sentences = sentences,
                             .rows = rows,
                             .longest = longest,
                             .ids = r->ids,
                             .positions = r->target_positions.data,
                             .offsets = offsets};
  return TARN_STATUS_OK;
}

tarn__tensor *tarn__refiner_step(tarn__refiner *r) {
  const tarn__model_whole whole = {
      .target = r->target, .readers = r->readers.data, .source = r->source, .cross_cache = r->cross_cache};
  r->begin = tarn__profile_clock(r->options.profile);
  tarn__model_begin(r->model, &r->step, false, r->threads);
  return tarn__model_build_whole(r->model, &r->step, &whole);
}

tarn_status tarn__refiner_stepped(tarn__refiner *r) {
  TARN_TRY(run_graph(r, &r->step_workspace, &r->step, r->begin));
  r->stats.steps++;
  r->stats.rows += r->target.rows;
  for (int64_t i = 0; i < r->target.sentences; i++) {
    const int64_t rows = r->target.offsets[i + 1] - r->target.offsets[i];
    r->stats.seen += rows * rows;
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__refiner_keep(tarn__refiner *r, tarn__translation *result, const tarn__refined *best, int64_t count) {
  void *memory;
  TARN_TRY(tarn__arena_alloc(&r->results, &memory, (size_t)count, sizeof(tarn__hypothesis)));
  tarn__hypothesis *hypotheses = memory;
  for (int64_t i = 0; i < count; i++) {
    const size_t length = (size_t)best[i].length;
    TARN_TRY(tarn__arena_alloc(&r->results, &memory, length + 1, sizeof(int32_t) + sizeof(float)));
    int32_t *ids = memory;
    float *values = (float *)(void *)(ids + length + 1);
    double sum = 0;
    for (size_t k = 0; k < length; k++) sum += (double)best[i].log_probabilities[k];
    memcpy(ids, best[i].ids, length * sizeof *ids);
    memcpy(values, best[i].log_probabilities, length * sizeof *values);
    ids[length] = r->options.search.eos;
    values[length] = 0;
    hypotheses[i] = (tarn__hypothesis){ids, values, best[i].length + 1, sum, best[i].score, NULL};
  }
  r->stats.sentences++;
  r->stats.target_tokens += hypotheses[0].length;
  *result = (tarn__translation){hypotheses, count};
  return TARN_STATUS_OK;
}

tarn_status tarn__refiner_finish(tarn__refiner *r, tarn__queue *queue) {
  tarn__queue_finish(queue, r->source.rows + r->count);
  return tarn__profile_unit(r->options.profile, "group", r->group_begin);
}

static tarn_status plan_step(size_t *bytes, const tarn__model *model, int64_t sentences, int64_t rows,
                             int64_t source_rows) {
  void *offsets;
  TARN_TRY(tarn__alloc(&offsets, TARN__MEMORY_OTHER, (size_t)sentences + 1, 2 * sizeof(int32_t)));
  int32_t *target = offsets, *source = target + sentences + 1;
  for (int64_t s = 0; s <= sentences; s++) {
    target[s] = (int32_t)(rows * s / sentences);
    source[s] = (int32_t)(source_rows * s / sentences);
  }
  // The candidates of a sentence count as one target sentence, which takes no less memory.
  const tarn__model_whole whole = {
      .target = {.sentences = sentences, .rows = rows, .longest = rows / sentences + 1, .offsets = target},
      .readers = target,
      .source = {
          .sentences = sentences, .rows = source_rows, .longest = source_rows / sentences + 1, .offsets = source}};
  tarn__graph graph = {0};
  tarn__model_begin(model, &graph, false, 1);
  tarn__model_build_top(model, &graph, tarn__model_build_whole(model, &graph, &whole), NULL, rows, 1, 0);
  const tarn_status status = tarn__graph_plan(&graph);
  *bytes = graph.workspace_bytes;
  tarn__graph_close(&graph);
  tarn__free(offsets);
  return status;
}

tarn_status tarn__refiner_plan(size_t *bytes, const tarn__model *model, const tarn__translator_options *options,
                               int64_t candidates, double length, int64_t all) {
  const double most = (double)smaller(options->max_tokens, TARN__DECODER_ROWS / candidates);
  int64_t sentences = length < most ? (int64_t)(most / (length > 1 ? length : 1)) : 1;
  sentences = smaller(sentences > 1 ? sentences : 1, all);
  const int64_t source_rows = (int64_t)((double)sentences * length) + 1;
  // A sentence alone may be longer than a group, and a target sentence alone longer than a chunk: an untrained model
  // makes translations of any length.
  const int64_t longest = model->config->model.max_length;
  size_t encode, encode_one, step, step_one;
  TARN_TRY(tarn__engine_plan_encode(&encode, model, sentences, source_rows));
  TARN_TRY(tarn__engine_plan_encode(&encode_one, model, 1, longest));
  TARN_TRY(plan_step(&step, model, sentences, TARN__DECODER_ROWS, source_rows));
  TARN_TRY(plan_step(&step_one, model, 1, longest, longest));
  *bytes = tarn__engine_room(larger(encode, encode_one)) + tarn__engine_room(larger(step, step_one));
  return TARN_STATUS_OK;
}
