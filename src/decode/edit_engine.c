// The Levenshtein Transformer's decoding as an engine (Gu et al. 2019, section 4): from empty sentences, iterations
// over all that still change, each of up to three passes of the decoder, one for each policy (draft.h). Of each answer
// the likeliest is taken; the log-probability of no placeholder is first lowered by placeholder_penalty.
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "decode/draft.h"
#include "decode/refine.h"
#include "ops/ops.h"
#include "task/edit_heads.h"

// Words of which one is always allowed: the end of sentence, padding, the placeholder, what begins a sentence and the
// unknown token may not be.
enum { BEST = 6 };

typedef struct engine {
  tarn__refiner refiner;
  tarn__draft *drafts;  // [refiner.room]
  int64_t longest;      // rows of a target sentence
  int32_t first_token;
  // Those in a pass: the rows of each and the first of each source sentence, as for tarn__refiner_lay(), and their
  // numbers.
  tarn__id_list lengths, first, numbers;
  int64_t count;
  tarn__id_list rows;     // what a policy reads
  tarn__id_list answers;  // what it chose
  float *values;          // log-probabilities of words
  size_t values_room;
} engine;

static tarn_status check(const tarn__translator_options *options) {
  TARN_TRY(tarn__refiner_check(options, "the placeholder of a Levenshtein Transformer"));
  TARN_REQUIRE(options->placeholder_penalty >= 0 && options->placeholder_penalty <= 100, USAGE,
               "placeholder-penalty must be from 0 to 100, not %g", options->placeholder_penalty);
  TARN_REQUIRE(options->n_best == 1, USAGE,
               "n-best must be 1, not %lld: a Levenshtein Transformer edits one translation",
               (long long)options->n_best);
  return TARN_STATUS_OK;
}

static void close_engine(void **own) {
  engine *e = *own;
  tarn__id_list *all[] = {&e->lengths, &e->first, &e->numbers, &e->rows, &e->answers};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) tarn__free(all[i]->data);
  for (int64_t i = 0; e->drafts && i < e->refiner.room; i++) tarn__draft_close(&e->drafts[i]);
  tarn__free(e->drafts);
  tarn__free(e->values);
  tarn__refiner_close(&e->refiner);
  tarn__free(e);
  *own = NULL;
}

static tarn_status take_memory(engine *e) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)e->refiner.room, sizeof *e->drafts));
  e->drafts = memory;
  return TARN_STATUS_OK;
}

static tarn_status open_engine(void **own, const tarn__model *model, const tarn__decoder_options *options,
                               int threads) {
  TARN_TRY(tarn__alloc(own, TARN__MEMORY_OTHER, 1, sizeof(engine)));
  engine *e = *own;
  const int64_t start = model->config->model.decoder_start;
  e->first_token = start >= 0 ? (int32_t)start : options->search.eos;
  e->longest = model->config->model.max_length;
  tarn_status status = tarn__refiner_open(&e->refiner, model, options, threads);
  if (status == TARN_STATUS_OK) status = take_memory(e);
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

typedef enum policy { DELETE, INSERT, FILL } policy;

static bool takes_part(const tarn__draft *draft, policy what) {
  return !draft->done && (what == INSERT || (what == DELETE ? draft->length > 2 : draft->holes > 0));
}

// Lays out the sentences that a policy is asked about, from sentence *next of the group on, as many as are a chunk
// (refine.h), and lists the rows that it reads. Sets their number and moves *next behind them. e->count 0: none is
// left, and nothing is laid out.
static tarn_status lay(engine *e, policy what, int64_t *next, int64_t *answers) {
  tarn__refiner *r = &e->refiner;
  int64_t rows = 0, listed = 0;
  TARN_TRY(tarn__id_list_room(&e->lengths, r->count));
  TARN_TRY(tarn__id_list_room(&e->numbers, r->count));
  TARN_TRY(tarn__id_list_room(&e->first, r->count + 1));
  e->count = 0;
  for (int64_t s = 0; s < *next; s++) e->first.data[s] = 0;
  for (; *next < r->count; (*next)++) {
    const int64_t s = *next;
    e->first.data[s] = (int32_t)e->count;
    if (!takes_part(&e->drafts[s], what)) continue;
    if (e->count > 0 && rows + e->drafts[s].length > TARN__DECODER_ROWS) break;
    e->numbers.data[e->count] = (int32_t)s;
    e->lengths.data[e->count++] = (int32_t)e->drafts[s].length;
    rows += e->drafts[s].length;
  }
  for (int64_t s = *next; s <= r->count; s++) e->first.data[s] = (int32_t)e->count;
  *answers = 0;
  if (e->count == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__refiner_lay(r, e->lengths.data, e->first.data, 0, e->count));
  TARN_TRY(tarn__id_list_room(&e->rows, 2 * rows));
  TARN_TRY(tarn__id_list_room(&e->answers, rows));
  TARN_TRY(tarn__grow(&e->values, &e->values_room, (size_t)rows, sizeof *e->values));
  for (int64_t i = 0; i < e->count; i++) {
    const tarn__draft *draft = &e->drafts[e->numbers.data[i]];
    const int32_t begin = r->target.offsets[i];
    memcpy(r->ids + begin, draft->ids, (size_t)draft->length * sizeof *draft->ids);
    for (int64_t k = 0; what == FILL && k < draft->length; k++)
      if (draft->ids[k] == r->options.mask) e->rows.data[listed++] = begin + (int32_t)k;
  }
  if (what == DELETE) listed = tarn__edit_inner_rows(e->rows.data, r->target.offsets, e->count);
  if (what == INSERT) listed = tarn__edit_pair_rows(e->rows.data, r->target.offsets, e->count) / 2;
  *answers = listed;
  return TARN_STATUS_OK;
}

// Runs the decoder over the sentences laid out, and the policy's output layer.
static tarn_status ask(engine *e, policy what, int64_t answers, int64_t best, int32_t **ids, float **values) {
  tarn__refiner *r = &e->refiner;
  const tarn__task_weights *weights = &r->model->weights;
  tarn__tensor *states = tarn__refiner_step(r);
  tarn__top top;
  if (what == FILL) {
    top = tarn__model_build_top(r->model, &r->step, states, e->rows.data, answers, best, r->options.search.eos);
  } else {
    const int64_t count = what == INSERT ? 2 * answers : answers;
    tarn__tensor *rows = tarn__graph_input(&r->step, count, e->rows.data, "rows of a policy");
    tarn__tensor *x =
        what == INSERT ? tarn__placeholder_input(&r->step, states, rows) : tarn__deletion_input(&r->step, states, rows);
    top = tarn__output_top(&r->step, x, what == INSERT ? weights->placeholders : weights->deletion, NULL, best, 0);
    top.values->keep = top.values->result = top.ids->keep = top.ids->result = true;
  }
  TARN_TRY(tarn__refiner_stepped(r));
  TARN_TRY(tarn__workspace_top(&r->step, &top, ids, values));
  for (int64_t i = 0; i < answers; i++)
    TARN_REQUIRE((*ids)[i * best] >= 0 && !isnan((*values)[i * (best + 1)]), NUMERIC,
                 "no edit can be chosen: log-probabilities are not numbers");
  return TARN_STATUS_OK;
}

// Each asks about a chunk from sentence *next on, and moves it.
static tarn_status delete_tokens(engine *e, int64_t *next) {
  int64_t answers;
  int32_t *ids;
  float *values;
  TARN_TRY(lay(e, DELETE, next, &answers));
  if (e->count == 0) return TARN_STATUS_OK;
  TARN_TRY(ask(e, DELETE, answers, 1, &ids, &values));
  for (int64_t i = 0; i < e->count; i++) {
    tarn__draft *draft = &e->drafts[e->numbers.data[i]];
    const int64_t inner = draft->length - 2;
    tarn__draft_delete(draft, ids);
    ids += inner;
  }
  return TARN_STATUS_OK;
}

static tarn_status insert_placeholders(engine *e, int64_t *next) {
  tarn__refiner *r = &e->refiner;
  enum { TWO = 2 };
  int64_t answers, at = 0;
  int32_t *ids;
  float *values;
  TARN_TRY(lay(e, INSERT, next, &answers));
  if (e->count == 0) return TARN_STATUS_OK;
  TARN_TRY(ask(e, INSERT, answers, TWO, &ids, &values));
  for (int64_t i = 0; i < answers; i++) {
    const float *likely = values + i * (TWO + 1);
    // The first is none; the last value is that of none as well.
    const bool other = ids[i * TWO] == 0 && likely[1] > likely[0] - (float)r->options.placeholder_penalty;
    e->answers.data[i] = ids[i * TWO + other];
  }
  for (int64_t i = 0; i < e->count; i++) {
    tarn__draft *draft = &e->drafts[e->numbers.data[i]];
    const int64_t gaps = draft->length - 1;
    TARN_TRY(tarn__draft_insert(draft, e->answers.data + at, r->options.mask, e->longest));
    at += gaps;
  }
  return TARN_STATUS_OK;
}

static bool allowed(const engine *e, int32_t id) {
  const tarn__decoder_options *options = &e->refiner.options;
  if (id < 0 || id == options->search.eos || id == options->mask || id == e->first_token) return false;
  for (int i = 0; i < options->search.banned_count; i++)
    if (options->search.banned[i] == id) return false;
  return true;
}

static tarn_status fill_placeholders(engine *e, int64_t *next) {
  tarn__refiner *r = &e->refiner;
  const int64_t best = BEST < r->model->target_vocab ? BEST : r->model->target_vocab;
  int64_t answers, at = 0;
  int32_t *ids;
  float *values;
  TARN_TRY(lay(e, FILL, next, &answers));
  if (e->count == 0) return TARN_STATUS_OK;
  TARN_TRY(ask(e, FILL, answers, best, &ids, &values));
  for (int64_t i = 0; i < answers; i++) {
    int64_t k = 0;
    while (k < best && !allowed(e, ids[i * best + k])) k++;
    TARN_REQUIRE(k < best, NUMERIC, "no word can be chosen: log-probabilities are not numbers");
    e->answers.data[i] = ids[i * best + k];
    e->values[i] = values[i * (best + 1) + k];
  }
  for (int64_t i = 0; i < e->count; i++) {
    tarn__draft *draft = &e->drafts[e->numbers.data[i]];
    const int64_t holes = draft->holes;
    tarn__draft_fill(draft, r->options.mask, e->answers.data + at, e->values + at);
    at += holes;
  }
  return TARN_STATUS_OK;
}

// An iteration over all sentences of the group that are not done; *going: some still are not.
static tarn_status iterate(engine *e, bool *going) {
  tarn__refiner *r = &e->refiner;
  for (int64_t s = 0; s < r->count; s++)
    if (!e->drafts[s].done) TARN_TRY(tarn__draft_iterate(&e->drafts[s]));
  for (int64_t next = 0; next < r->count;) TARN_TRY(delete_tokens(e, &next));
  for (int64_t next = 0; next < r->count;) TARN_TRY(insert_placeholders(e, &next));
  for (int64_t next = 0; next < r->count;) TARN_TRY(fill_placeholders(e, &next));
  *going = false;
  for (int64_t s = 0; s < r->count; s++) {
    if (e->drafts[s].done) continue;
    tarn__draft_judge(&e->drafts[s], r->options.iterations);
    r->stats.iterations++;
    *going |= !e->drafts[s].done;
  }
  return TARN_STATUS_OK;
}

static tarn_status keep_all(engine *e, tarn__translation *results) {
  tarn__refiner *r = &e->refiner;
  for (int64_t s = 0; s < r->count; s++) {
    const tarn__draft *draft = &e->drafts[s];
    const int64_t length = draft->length - 2;
    double sum = 0;
    for (int64_t i = 1; i <= length; i++) sum += (double)draft->values[i];
    const tarn__refined best = {draft->ids + 1, draft->values + 1, length, length > 0 ? sum / (double)length : 0.0};
    TARN_TRY(tarn__refiner_keep(r, &results[r->items[s].index], &best, 1));
  }
  return TARN_STATUS_OK;
}

static tarn_status run_all(engine *e, tarn__queue *queue, tarn__translation *results) {
  tarn__refiner *r = &e->refiner;
  TARN_TRY(tarn__refiner_begin(r));
  for (;;) {
    TARN_TRY(tarn__refiner_take(r, queue, 1));
    if (r->count == 0) return TARN_STATUS_OK;
    tarn__refiner_encode(r);
    TARN_TRY(tarn__refiner_encoded(r));
    for (int64_t s = 0; s < r->count; s++)
      TARN_TRY(tarn__draft_begin(&e->drafts[s], e->first_token, r->options.search.eos));
    for (bool going = true; going;) TARN_TRY(iterate(e, &going));
    TARN_TRY(keep_all(e, results));
    TARN_TRY(tarn__refiner_finish(r, queue));
  }
}

static tarn_status run(void *own, tarn__queue *queue, tarn__translation *results) {
  const tarn_status status = run_all(own, queue, results);
  if (status != TARN_STATUS_OK) tarn__queue_stop(queue);
  return status;
}

static int64_t rows_of(const tarn__decoder_options *options, int64_t length) {
  (void)options;
  return length;
}

static tarn_status plan(size_t *bytes, const tarn__model *model, const tarn__translator_options *options, double length,
                        int64_t sentences) {
  return tarn__refiner_plan(bytes, model, options, 1, length, sentences);
}

const tarn__engine tarn__edit_engine = {.check = check,
                                        .open = open_engine,
                                        .close = close_engine,
                                        .lend = lend,
                                        .reset = reset,
                                        .run = run,
                                        .add_stats = add_stats,
                                        .rows = rows_of,
                                        .plan = plan};
