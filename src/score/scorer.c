#include "score/scorer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/threads.h"
#include "base/work.h"
#include "score/scorer_share.h"
#include "task/task.h"

struct tarn__scorer {
  const tarn__model *model;
  int32_t start;  // the first token that a language model reads
  tarn__scorer_options options;
  void *packed;  // weights of products, in the memory of the device, as the workspace
  tarn__graph graph;
  void *workspace;
  size_t workspace_bytes;
  int64_t *order;  // of the sentences by length
  size_t order_capacity;
  // The current batch.
  int32_t *ids, *positions, *offsets, *rows, *targets;
  int32_t *segments;  // for a model with segments: zeros
  size_t ids_capacity, positions_capacity, offsets_capacity, rows_capacity, targets_capacity, segments_capacity;
  tarn__scorer_share shared;
};

void tarn__scorer_default(tarn__scorer_options *options) {
  *options = (tarn__scorer_options){.max_tokens = 4096, .mask = -1, .first = -1};
}

static tarn_status pack(tarn__scorer *s) {
  TARN_TRY(tarn__model_pack_check(s->model, s->options.rounding));
  size_t bytes = tarn__model_pack_bytes(s->model, s->options.rounding);
  TARN_TRY(tarn__device_allocate(s->model->device, &s->packed, TARN__MEMORY_OTHER, bytes, 1));
  return tarn__model_pack(s->model, s->packed, s->options.rounding, s->options.threads);
}

tarn_status tarn__scorer_open(tarn__scorer **scorer, const tarn__model *model, int32_t eos,
                              const tarn__scorer_options *options) {
  *scorer = NULL;
  TARN_TRY(tarn__task_require(model->config, TARN__USE_SCORE_TEXT, NULL));
  TARN_REQUIRE(options->max_tokens >= 1 && options->max_tokens <= 1 << 24, USAGE,
               "the tokens computed together are 1 to %d, not %lld", 1 << 24, (long long)options->max_tokens);
  const bool masked = (tarn__config_task(model->config)->sections >> TARN__TASK_MASKING & 1u) != 0;
  TARN_REQUIRE(masked == (options->mask >= 0), INTERNAL, "a mask is of a masked language model, which needs one");
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn__scorer)));
  tarn__scorer *s = memory;
  const int64_t start = model->config->model.decoder_start;
  *s = (tarn__scorer){.model = model, .start = start >= 0 ? (int32_t)start : eos, .options = *options};
  if (s->options.threads == 0) s->options.threads = tarn__threads();
  tarn_status status = tarn__scorer_share_open(&s->shared, options->comm);
  if (status == TARN_STATUS_OK) status = pack(s);
  if (status != TARN_STATUS_OK) {
    tarn__scorer_close(&s);
    return status;
  }
  *scorer = s;
  return TARN_STATUS_OK;
}

void tarn__scorer_close(tarn__scorer **scorer) {
  tarn__scorer *s = *scorer;
  if (!s) return;
  if (s->packed) {
    tarn__model_unpack(s->model);
    tarn__device_free(s->model->device, s->packed);
  }
  tarn__scorer_share_close(&s->shared);
  tarn__graph_close(&s->graph);
  if (s->workspace) tarn__device_free(s->model->device, s->workspace);
  tarn__free(s->order);
  tarn__free(s->ids);
  tarn__free(s->positions);
  tarn__free(s->offsets);
  tarn__free(s->rows);
  tarn__free(s->targets);
  tarn__free(s->segments);
  tarn__free(s);
  *scorer = NULL;
}

static tarn_status check_ids(const tarn__scorer *s, const tarn__scorer_sentence *sentence) {
  for (int64_t i = 0; i < sentence->length; i++)
    TARN_REQUIRE(sentence->ids[i] >= 0 && sentence->ids[i] < s->model->target_vocab, DATA,
                 "token %d is not in the vocabulary of %lld tokens", sentence->ids[i],
                 (long long)s->model->target_vocab);
  return TARN_STATUS_OK;
}

// Indices of the sentences by ascending length, stable: a counting sort would need short lengths, and sorting is cheap
// compared with scoring.
typedef struct key {
  int64_t length, number;
} key;

static int compare_keys(const void *a, const void *b) {
  const key *x = a, *y = b;
  if (x->length != y->length) return x->length < y->length ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}

static tarn_status sort_sentences(tarn__scorer *s, const tarn__scorer_sentence *sentences, int64_t count) {
  void *memory;
  TARN_TRY(tarn__grow(&s->order, &s->order_capacity, (size_t)count, sizeof *s->order));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)count, sizeof(key)));
  key *keys = memory;
  for (int64_t i = 0; i < count; i++) keys[i] = (key){sentences[i].length, i};
  qsort(keys, (size_t)count, sizeof *keys, compare_keys);
  for (int64_t i = 0; i < count; i++) s->order[i] = keys[i].number;
  tarn__free(keys);
  return TARN_STATUS_OK;
}

// The end of the batch of sentences from `first` of the order.
static int64_t batch_end(const tarn__scorer *s, const tarn__scorer_sentence *sentences, int64_t first, int64_t count) {
  int64_t tokens = 0;
  int64_t last = first;
  while (last < count && (last == first || tokens + sentences[s->order[last]].length <= s->options.max_tokens))
    tokens += sentences[s->order[last++]].length;
  return last;
}

// Packs a batch; *predicted: tokens to be predicted.
static tarn_status fill(tarn__scorer *s, tarn__packed *packed, int64_t *predicted,
                        const tarn__scorer_sentence *sentences, int64_t first, int64_t last) {
  size_t tokens = 0;
  for (int64_t i = first; i < last; i++) tokens += (size_t)sentences[s->order[i]].length;
  TARN_REQUIRE(tokens <= INT32_MAX, DATA, "a sentence of %zu tokens is too long", tokens);
  TARN_TRY(tarn__grow(&s->ids, &s->ids_capacity, tokens, sizeof *s->ids));
  TARN_TRY(tarn__grow(&s->positions, &s->positions_capacity, tokens, sizeof *s->positions));
  TARN_TRY(tarn__grow(&s->rows, &s->rows_capacity, tokens, sizeof *s->rows));
  TARN_TRY(tarn__grow(&s->targets, &s->targets_capacity, tokens, sizeof *s->targets));
  TARN_TRY(tarn__grow(&s->offsets, &s->offsets_capacity, (size_t)(last - first) + 1, sizeof *s->offsets));
  *packed = (tarn__packed){.ids = s->ids, .positions = s->positions, .offsets = s->offsets};
  s->offsets[0] = 0;
  *predicted = 0;
  for (int64_t i = first; i < last; i++) {
    const tarn__scorer_sentence *sentence = &sentences[s->order[i]];
    for (int64_t t = 0; t < sentence->length; t++) {
      int64_t row = packed->rows++;
      s->ids[row] = t > 0 ? sentence->ids[t - 1] : sentence->before ? *sentence->before : s->start;
      if (t < sentence->known) continue;
      s->rows[*predicted] = (int32_t)row;
      s->targets[(*predicted)++] = sentence->ids[t];
    }
    s->offsets[++packed->sentences] = (int32_t)packed->rows;
    packed->longest = sentence->length;  // lengths are ascending
  }
  tarn__packed_positions(s->positions, s->offsets, packed->sentences);
  return TARN_STATUS_OK;
}

static tarn_status make_room(tarn__scorer *s) {
  if (s->graph.workspace_bytes <= s->workspace_bytes) return TARN_STATUS_OK;
  const tarn__device *device = s->model->device;
  if (s->workspace) tarn__device_free(device, s->workspace);
  s->workspace = NULL;
  s->workspace_bytes = 0;
  TARN_TRY(tarn__device_allocate(device, &s->workspace, TARN__MEMORY_ACTIVATION, s->graph.workspace_bytes, 1));
  s->workspace_bytes = s->graph.workspace_bytes;
  return TARN_STATUS_OK;
}

// Losses of the packed batch, two equal numbers per prediction; `best` NULL: the most likely tokens are not wanted.
static tarn_status compute(tarn__scorer *s, const double **values, const int32_t **best, const tarn__packed *packed,
                           int64_t predicted) {
  tarn__model_begin(s->model, &s->graph, false, s->options.threads);
  tarn__top top;
  tarn__tensor *losses =
      tarn__model_build_scores(s->model, &s->graph, packed, s->rows, s->targets, predicted, best ? &top : NULL);
  TARN_TRY(tarn__graph_plan(&s->graph));
  TARN_TRY(make_room(s));
  tarn__graph_bind(&s->graph, s->workspace);
  tarn__exec exec = {.threads = s->options.threads};
  TARN_TRY(tarn__graph_run(&s->graph, &exec));
  void *read;
  TARN_TRY(tarn__graph_result(&s->graph, &read, losses));
  *values = read;
  for (int64_t i = 0; i < predicted; i++)
    TARN_REQUIRE(isfinite((*values)[2 * i + 1]), NUMERIC,
                 "the model gives a log-probability that is not a finite number");
  if (!best) return TARN_STATUS_OK;
  TARN_TRY(tarn__graph_result(&s->graph, &read, top.ids));
  *best = read;
  return TARN_STATUS_OK;
}

static tarn_status run_batch(tarn__scorer *s, const tarn__scorer_sentence *sentences, int64_t first, int64_t last) {
  tarn__packed packed;
  int64_t predicted = 0;
  const double *values;
  const int32_t *best = NULL;
  bool wanted = false;
  TARN_TRY(fill(s, &packed, &predicted, sentences, first, last));
  if (predicted == 0) return TARN_STATUS_OK;
  for (int64_t i = first; i < last; i++) wanted |= sentences[s->order[i]].best != NULL;
  TARN_TRY(compute(s, &values, wanted ? &best : NULL, &packed, predicted));
  int64_t next = 0;
  for (int64_t i = first; i < last; i++) {
    const tarn__scorer_sentence *sentence = &sentences[s->order[i]];
    for (int64_t t = sentence->known; t < sentence->length; t++, next++) {
      sentence->log_probabilities[t] = -values[2 * next + 1];
      if (sentence->best) sentence->best[t] = best[next];
    }
  }
  return TARN_STATUS_OK;
}

// --- masked language models

// A token of the sentence at place `sentence` of the order, and the copy of the sentence in which it is hidden.
typedef struct copy {
  int64_t sentence, token;
} copy;

// The next copy; sentences without a token have none.
static void next_copy(const tarn__scorer *s, copy *at, const tarn__scorer_sentence *sentences, int64_t count) {
  at->token++;
  while (at->sentence < count && at->token >= sentences[s->order[at->sentence]].length - 1)
    *at = (copy){at->sentence + 1, 0};
}

static tarn_status grow_copies(tarn__scorer *s, size_t rows, size_t copies) {
  TARN_REQUIRE(rows <= INT32_MAX, DATA, "a sentence of %zu tokens is too long", rows);
  TARN_TRY(tarn__grow(&s->ids, &s->ids_capacity, rows, sizeof *s->ids));
  TARN_TRY(tarn__grow(&s->positions, &s->positions_capacity, rows, sizeof *s->positions));
  TARN_TRY(tarn__grow(&s->rows, &s->rows_capacity, copies, sizeof *s->rows));
  TARN_TRY(tarn__grow(&s->targets, &s->targets_capacity, copies, sizeof *s->targets));
  TARN_TRY(tarn__grow(&s->offsets, &s->offsets_capacity, copies + 1, sizeof *s->offsets));
  if (s->model->config->model.segments == 0) return TARN_STATUS_OK;
  return tarn__grow(&s->segments, &s->segments_capacity, rows, sizeof *s->segments);
}

// Appends a copy of a sentence to a batch.
static void put_copy(tarn__scorer *s, tarn__packed *packed, const tarn__scorer_sentence *sentence, int64_t token) {
  const int64_t before = s->options.first >= 0;
  int32_t *ids = s->ids + packed->rows;
  if (before) ids[0] = s->options.first;
  memcpy(ids + before, sentence->ids, (size_t)sentence->length * sizeof *ids);
  ids[before + token] = s->options.mask;
  s->rows[packed->sentences] = (int32_t)(packed->rows + before + token);
  s->targets[packed->sentences] = sentence->ids[token];
  packed->rows += before + sentence->length;
  s->offsets[++packed->sentences] = (int32_t)packed->rows;
  packed->longest = before + sentence->length;  // lengths are ascending
}

// Computes a batch of copies, from *at on, which becomes the first of the next batch.
static tarn_status run_copies(tarn__scorer *s, copy *at, const tarn__scorer_sentence *sentences, int64_t count) {
  const int64_t before = s->options.first >= 0;
  tarn__packed packed = {0};
  const copy first = *at;
  s->offsets[0] = 0;
  while (at->sentence < count) {
    const tarn__scorer_sentence *sentence = &sentences[s->order[at->sentence]];
    const int64_t rows = packed.rows + before + sentence->length;
    if (packed.rows > 0 && rows > s->options.max_tokens) break;
    TARN_TRY(grow_copies(s, (size_t)rows, (size_t)packed.sentences + 1));
    put_copy(s, &packed, sentence, at->token);
    next_copy(s, at, sentences, count);
  }
  packed.ids = s->ids, packed.positions = s->positions, packed.offsets = s->offsets;
  if (s->model->config->model.segments > 0) {
    memset(s->segments, 0, (size_t)packed.rows * sizeof *s->segments);
    packed.segments = s->segments;
  }
  tarn__packed_positions(s->positions, s->offsets, packed.sentences);
  const double *values;
  TARN_TRY(compute(s, &values, NULL, &packed, packed.sentences));
  for (copy c = first; c.sentence != at->sentence || c.token != at->token; next_copy(s, &c, sentences, count))
    sentences[s->order[c.sentence]].log_probabilities[c.token] = -values[1], values += 2;
  return TARN_STATUS_OK;
}

static tarn_status run_masked(tarn__scorer *s, const tarn__scorer_sentence *sentences, int64_t count) {
  TARN_TRY(sort_sentences(s, sentences, count));
  TARN_TRY(grow_copies(s, 1, 1));
  double done = 0, all = 0;  // tokens of all copies
  for (int64_t i = 0; i < count; i++) {
    all += (double)sentences[i].length * (double)sentences[i].length;
    sentences[i].log_probabilities[sentences[i].length - 1] = 0.0;
  }
  copy at = {0, -1};
  next_copy(s, &at, sentences, count);
  while (at.sentence < count) {
    const int64_t before = at.sentence;
    TARN_TRY(run_copies(s, &at, sentences, count));
    for (int64_t i = before; i < at.sentence; i++)
      done += (double)sentences[s->order[i]].length * (double)sentences[s->order[i]].length;
    tarn__work_within(tarn__work_at_hand(), done / all);
  }
  return TARN_STATUS_OK;
}

static tarn_status run_plain(tarn__scorer *scorer, const tarn__scorer_sentence *sentences, int64_t count) {
  TARN_TRY(sort_sentences(scorer, sentences, count));
  double done = 0, all = 0;  // tokens
  for (int64_t i = 0; i < count; i++) all += (double)sentences[i].length;
  for (int64_t first = 0; first < count;) {
    int64_t last = batch_end(scorer, sentences, first, count);
    TARN_TRY(run_batch(scorer, sentences, first, last));
    for (; first < last; first++) done += (double)sentences[scorer->order[first]].length;
    tarn__work_within(tarn__work_at_hand(), done / all);
  }
  return TARN_STATUS_OK;
}

// Without other ranks. What was computed of a file that has changed is not a result.
static tarn_status run_alone(tarn__scorer *scorer, const tarn__scorer_sentence *sentences, int64_t count) {
  const bool masked = scorer->options.mask >= 0;
  const tarn__map *map = scorer->model->map;
  const tarn_status status = masked ? run_masked(scorer, sentences, count) : run_plain(scorer, sentences, count);
  return map ? tarn__map_judge(map, status) : status;
}

static tarn_status run_shared(tarn__scorer *scorer, const tarn__scorer_sentence *sentences, int64_t count, bool *more) {
  tarn__scorer_share *s = &scorer->shared;
  TARN_TRY(tarn__scorer_share_deal(s, sentences, count, more));
  if (!*more) return TARN_STATUS_OK;
  TARN_TRY(run_alone(scorer, s->sentences, s->count));
  return tarn__scorer_share_collect(s, sentences, count);
}

tarn_status tarn__scorer_run(tarn__scorer *scorer, const tarn__scorer_sentence *sentences, int64_t count) {
  bool more;
  for (int64_t i = 0; i < count; i++) TARN_TRY(check_ids(scorer, &sentences[i]));
  return scorer->shared.share.comm ? run_shared(scorer, sentences, count, &more) : run_alone(scorer, sentences, count);
}

tarn_status tarn__scorer_help(tarn__scorer *scorer) {
  for (bool more = true; more;) TARN_TRY(run_shared(scorer, NULL, 0, &more));
  return TARN_STATUS_OK;
}

tarn_status tarn__scorer_end(tarn__scorer *scorer) {
  return scorer->shared.share.comm ? tarn__share_end(&scorer->shared.share) : TARN_STATUS_OK;
}
