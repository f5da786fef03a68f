// Mask-predict as an engine: the lengths that the encoder's output makes likely, a target sentence for each, and
// iterations over all of them (mask_predict.h).
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "decode/mask_predict.h"
#include "decode/refine.h"
#include "task/lengths.h"

// Words of which one is always allowed: the end of sentence, padding, the mask and the unknown token may not be.
enum { BEST = 5 };

typedef struct engine {
  tarn__refiner refiner;
  // Target sentences: the rows of each, with the end of sentence, and the first of each source sentence.
  tarn__id_list lengths, first;
  tarn__id_list offsets;  // of their rows in the group, of which there are `rows`
  int64_t rows;
  tarn__id_list words;  // [rows] the tokens, as last predicted
  float *values;        // [rows] their log-probabilities
  size_t values_room;
  int64_t chunk;                 // the first row of the chunk that is in work
  tarn__id_list masked, places;  // the rows of the chunk to predict, ascending; of one sentence
  int64_t masked_count;
  tarn__refined *best;  // [target sentences of a source sentence]
  size_t best_room;
} engine;

static tarn_status check(const tarn__translator_options *options) {
  TARN_TRY(tarn__refiner_check(options, "which mask-predict fills in"));
  TARN_REQUIRE(options->length_beam >= 1 && options->length_beam <= 1024, USAGE,
               "length-beam must be from 1 to 1024, not %lld", (long long)options->length_beam);
  TARN_REQUIRE(options->n_best >= 1 && options->n_best <= options->length_beam, USAGE,
               "n-best must be from 1 to the length-beam of %lld, not %lld", (long long)options->length_beam,
               (long long)options->n_best);
  return TARN_STATUS_OK;
}

static void close_engine(void **own) {
  engine *e = *own;
  tarn__id_list *all[] = {&e->lengths, &e->first, &e->offsets, &e->words, &e->masked, &e->places};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) tarn__free(all[i]->data);
  tarn__free(e->values);
  tarn__free(e->best);
  tarn__refiner_close(&e->refiner);
  tarn__free(e);
  *own = NULL;
}

static tarn_status open_engine(void **own, const tarn__model *model, const tarn__decoder_options *options,
                               int threads) {
  TARN_TRY(tarn__alloc(own, TARN__MEMORY_OTHER, 1, sizeof(engine)));
  engine *e = *own;
  const tarn_status status = tarn__refiner_open(&e->refiner, model, options, threads);
  if (status != TARN_STATUS_OK) close_engine(own);
  return status;
}

static void lend(void *own, void *memory, size_t bytes) {
  tarn__refiner_lend(&((engine *)own)->refiner, memory, bytes);
}

static void reset(void *own) { tarn__arena_reset(&((engine *)own)->refiner.results); }

static void add_stats(const void *own, tarn__decoder_stats *stats) {
  tarn__refiner_add_stats(&((const engine *)own)->refiner, stats);
}

// Encodes the group and sets the lengths of its target sentences, the likeliest first.
static tarn_status choose_lengths(engine *e) {
  tarn__refiner *r = &e->refiner;
  const tarn__decoder_options *o = &r->options;
  const int64_t classes = r->model->weights.lengths->rows;
  const int64_t best = o->length_beam + 1 < classes ? o->length_beam + 1 : classes;  // one may be the length 0
  int32_t *ids;
  float *values;
  tarn__tensor *states = tarn__refiner_encode(r);
  const tarn__top top = tarn__lengths_top(&r->encode, states, &r->source, &r->model->weights, best);
  TARN_TRY(tarn__refiner_encoded(r));
  TARN_TRY(tarn__workspace_top(&r->encode, &top, &ids, &values));
  TARN_TRY(tarn__id_list_room(&e->lengths, r->count * o->length_beam));
  TARN_TRY(tarn__id_list_room(&e->first, r->count + 1));
  int32_t count = 0;
  for (int64_t s = 0; s < r->count; s++) {
    e->first.data[s] = count;
    TARN_REQUIRE(!isnan(values[s * (best + 1)]), NUMERIC, "the log-probability of a length is not a number");
    for (int64_t k = 0; k < best && count - e->first.data[s] < o->length_beam; k++) {
      const int32_t length = ids[s * best + k];
      if (length > 0) e->lengths.data[count++] = length + 1;  // with the end of sentence
    }
  }
  e->first.data[r->count] = count;
  return TARN_STATUS_OK;
}

// Makes room for the target sentences of the group: all of them masks, with ends of sentences.
static tarn_status lay_group(engine *e) {
  const tarn__decoder_options *o = &e->refiner.options;
  const int64_t sentences = e->first.data[e->refiner.count];
  TARN_TRY(tarn__id_list_room(&e->offsets, sentences + 1));
  e->rows = 0;
  for (int64_t i = 0; i < sentences; i++) {
    e->offsets.data[i] = (int32_t)e->rows;
    e->rows += e->lengths.data[i];
    TARN_REQUIRE(e->rows < INT32_MAX, MEMORY, "the translations of %lld sentences together are too long",
                 (long long)e->refiner.count);
  }
  e->offsets.data[sentences] = (int32_t)e->rows;
  TARN_TRY(tarn__id_list_room(&e->words, e->rows));
  TARN_TRY(tarn__grow(&e->values, &e->values_room, (size_t)e->rows, sizeof *e->values));
  TARN_TRY(tarn__grow(&e->best, &e->best_room, (size_t)o->length_beam, sizeof *e->best));
  for (int64_t i = 0; i < e->rows; i++) e->words.data[i] = o->mask, e->values[i] = 0;
  for (int64_t i = 0; i < sentences; i++) e->words.data[e->offsets.data[i + 1] - 1] = o->search.eos;
  return TARN_STATUS_OK;
}

static tarn_status lay_chunk(engine *e, int64_t begin, int64_t end) {
  tarn__refiner *r = &e->refiner;
  e->chunk = e->offsets.data[begin];
  TARN_TRY(tarn__refiner_lay(r, e->lengths.data, e->first.data, begin, end));
  TARN_TRY(tarn__id_list_room(&e->masked, r->target.rows));
  return tarn__id_list_room(&e->places, r->target.longest);
}

// Sets the input of an iteration: masks in the places of the least likely tokens.
static void put_masks(engine *e, int64_t iteration) {
  tarn__refiner *r = &e->refiner;
  e->masked_count = 0;
  memcpy(r->ids, e->words.data + e->chunk, (size_t)r->target.rows * sizeof *r->ids);
  for (int64_t i = 0; i < r->target.sentences; i++) {
    const int32_t begin = r->target.offsets[i];
    const int64_t length = r->target.offsets[i + 1] - begin - 1;
    const int64_t count = tarn__mask_predict_count(length, iteration, r->options.iterations);
    tarn__mask_predict_places(e->places.data, e->values + e->chunk + begin, length, count);
    for (int64_t k = 0; k < count; k++) {
      const int32_t row = begin + e->places.data[k];
      r->ids[row] = r->options.mask;
      e->masked.data[e->masked_count++] = row;
    }
  }
}

static bool allowed(const tarn__decoder_options *options, int32_t id) {
  if (id < 0 || id == options->search.eos || id == options->mask) return false;
  for (int i = 0; i < options->search.banned_count; i++)
    if (options->search.banned[i] == id) return false;
  return true;
}

static tarn_status predict(engine *e) {
  tarn__refiner *r = &e->refiner;
  const int64_t best = BEST < r->model->target_vocab ? BEST : r->model->target_vocab;
  int32_t *ids;
  float *values;
  tarn__tensor *states = tarn__refiner_step(r);
  const tarn__top top =
      tarn__model_build_top(r->model, &r->step, states, e->masked.data, e->masked_count, best, r->options.search.eos);
  TARN_TRY(tarn__refiner_stepped(r));
  TARN_TRY(tarn__workspace_top(&r->step, &top, &ids, &values));
  for (int64_t m = 0; m < e->masked_count; m++, ids += best, values += best + 1) {
    int64_t k = 0;
    while (k < best && !allowed(&r->options, ids[k])) k++;
    TARN_REQUIRE(k < best && !isnan(values[k]), NUMERIC, "no word can be chosen: log-probabilities are not numbers");
    e->words.data[e->chunk + e->masked.data[m]] = ids[k];
    e->values[e->chunk + e->masked.data[m]] = values[k];
  }
  return TARN_STATUS_OK;
}

// Ranks the target sentences of each source sentence; of equal scores the likelier length comes first.
static tarn_status keep_best(engine *e, tarn__translation *results) {
  tarn__refiner *r = &e->refiner;
  for (int64_t s = 0; s < r->count; s++) {
    int64_t count = 0;
    for (int32_t i = e->first.data[s]; i < e->first.data[s + 1]; i++) {
      const int32_t begin = e->offsets.data[i];
      const int64_t length = e->lengths.data[i] - 1;
      const tarn__refined one = {e->words.data + begin, e->values + begin, length,
                                 tarn__mask_predict_score(e->values + begin, length)};
      int64_t at = count++;
      for (; at > 0 && e->best[at - 1].score < one.score; at--) e->best[at] = e->best[at - 1];
      e->best[at] = one;
    }
    if (count > r->options.n_best) count = r->options.n_best;
    TARN_TRY(tarn__refiner_keep(r, &results[r->items[s].index], e->best, count));
  }
  return TARN_STATUS_OK;
}

static tarn_status run_all(engine *e, tarn__queue *queue, tarn__translation *results) {
  tarn__refiner *r = &e->refiner;
  TARN_TRY(tarn__refiner_begin(r));
  for (;;) {
    TARN_TRY(tarn__refiner_take(r, queue, r->options.length_beam));
    if (r->count == 0) return TARN_STATUS_OK;
    TARN_TRY(choose_lengths(e));
    TARN_TRY(lay_group(e));
    const int64_t sentences = e->first.data[r->count];
    for (int64_t begin = 0, end; begin < sentences; begin = end) {
      end = tarn__refiner_chunk(r, e->lengths.data, e->first.data, begin);
      TARN_TRY(lay_chunk(e, begin, end));
      for (int64_t t = 0; t < r->options.iterations; t++) {
        put_masks(e, t);
        TARN_TRY(predict(e));
      }
    }
    r->stats.iterations += r->count * r->options.iterations;
    TARN_TRY(keep_best(e, results));
    TARN_TRY(tarn__refiner_finish(r, queue));
  }
}

static tarn_status run(void *own, tarn__queue *queue, tarn__translation *results) {
  const tarn_status status = run_all(own, queue, results);
  if (status != TARN_STATUS_OK) tarn__queue_stop(queue);
  return status;
}

// A translation is taken to be as long as its source, as in tarn__refiner_take().
static int64_t rows_of(const tarn__decoder_options *options, int64_t length) { return length * options->length_beam; }

static tarn_status plan(size_t *bytes, const tarn__model *model, const tarn__translator_options *options, double length,
                        int64_t sentences) {
  return tarn__refiner_plan(bytes, model, options, options->length_beam, length, sentences);
}

const tarn__engine tarn__mask_engine = {.check = check,
                                        .open = open_engine,
                                        .close = close_engine,
                                        .lend = lend,
                                        .reset = reset,
                                        .run = run,
                                        .add_stats = add_stats,
                                        .rows = rows_of,
                                        .plan = plan};
