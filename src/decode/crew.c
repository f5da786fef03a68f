#include "decode/crew.h"

#include <omp.h>

#include "base/memory.h"
#include "base/threads.h"
#include "base/work.h"

enum {
  // With fewer items per decoder, one decoder that uses all threads is faster.
  LEAST_ITEMS = 8,
  // But not those of a feed by a model of up to so many parameters: its steps are so short that threads, which share
  // the processors with those of a server, would wait for each other longer than they compute.
  SMALL_MODEL = 1 << 24,
  // The weights of larger models do not stay in a processor's caches. With fewer rows per decoder, reading the weights
  // takes longer than multiplying by them, so threads share a step and read them once. Measured with two threads alone.
  LEAST_ROWS = 64
};

tarn_status tarn__crew_open(tarn__crew *crew, const tarn__model *model, const tarn__decoder_options *options,
                            int threads) {
  const tarn__engine *engine = tarn__engine_of(model->config);
  *crew = (tarn__crew){.model = model, .options = *options, .threads = threads, .engine = engine};
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)threads, sizeof *crew->apart));
  crew->apart = memory;
  for (int draws = 0; draws < 2; draws++) {
    TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)threads, sizeof *crew->fed[draws]));
    crew->fed[draws] = memory;
  }
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)threads, sizeof *crew->at_work));
  crew->at_work = memory;
  return engine->open(&crew->together, model, options, threads);
}

void tarn__crew_close(tarn__crew *crew) {
  if (crew->together) crew->engine->close(&crew->together);
  for (int i = 0; crew->apart && i < crew->threads; i++)
    if (crew->apart[i]) crew->engine->close(&crew->apart[i]);
  for (int draws = 0; draws < 2; draws++) {
    for (int i = 0; crew->fed[draws] && i < crew->threads; i++) tarn__decoder_close(&crew->fed[draws][i]);
    tarn__free(crew->fed[draws]);
  }
  tarn__free(crew->at_work);
  tarn__free(crew->apart);
  tarn__free(crew->dealt);
  *crew = (tarn__crew){0};
}

void tarn__crew_get_stats(const tarn__crew *crew, tarn__decoder_stats *stats) {
  *stats = (tarn__decoder_stats){0};
  crew->engine->add_stats(crew->together, stats);
  for (int i = 0; i < crew->threads; i++)
    if (crew->apart[i]) crew->engine->add_stats(crew->apart[i], stats);
  for (int draws = 0; draws < 2; draws++)
    for (int i = 0; i < crew->threads; i++)
      if (crew->fed[draws][i]) tarn__decoder_add_stats(crew->fed[draws][i], stats);
}

void tarn__crew_reset(tarn__crew *crew) {
  crew->engine->reset(crew->together);
  for (int i = 0; i < crew->threads; i++)
    if (crew->apart[i]) crew->engine->reset(crew->apart[i]);
}

// Lends all memory to the common decoder, or a part to each of the others: the two are never active at the same time.
static void lend_to(tarn__crew *crew, void *decoder, int thread) {
  size_t part = crew->lent_bytes / (size_t)crew->threads & ~(size_t)63;
  if (decoder == crew->together)
    crew->engine->lend(decoder, crew->lent, crew->lent_bytes);
  else
    crew->engine->lend(decoder, crew->lent ? crew->lent + part * (size_t)thread : NULL, part);
}

void tarn__crew_lend(tarn__crew *crew, void *memory, size_t bytes) {
  crew->lent = memory;
  crew->lent_bytes = bytes;
  lend_to(crew, crew->together, 0);
  for (int i = 0; i < crew->threads; i++)
    if (crew->apart[i]) lend_to(crew, crew->apart[i], i);
}

static tarn_status run_apart(tarn__crew *crew, tarn__queue *queue, tarn__translation *results) {
  for (int i = 0; i < crew->threads; i++) {
    if (crew->apart[i]) continue;
    TARN_TRY(crew->engine->open(&crew->apart[i], crew->model, &crew->options, 1));
    lend_to(crew, crew->apart[i], i);
  }
  tarn__failure failure = {0};
#pragma omp parallel for num_threads(crew->threads) schedule(static, 1)
  for (int i = 0; i < crew->threads; i++)
    tarn__failure_note(&failure, crew->engine->run(crew->apart[i], queue, results));
  return tarn__failure_raise(&failure);
}

// Deals items like cards when each decoder takes its whole share at once: they are sorted by length, and a decoder with
// the longest ones would take far longer than the others.
static tarn_status deal(tarn__crew *crew, const tarn__item **items, int64_t count) {
  TARN_TRY(tarn__grow(&crew->dealt, &crew->dealt_room, (size_t)count, sizeof *crew->dealt));
  int64_t at = 0;
  for (int64_t thread = 0; thread < crew->threads; thread++)
    for (int64_t i = thread; i < count; i += crew->threads) crew->dealt[at++] = (*items)[i];
  *items = crew->dealt;
  return TARN_STATUS_OK;
}

static bool is_small(const tarn__model *model) {
  int64_t parameters = 0;
  for (size_t i = 0; i < model->param_count; i++) parameters += model->params[i]->rows * model->params[i]->cols;
  return parameters <= SMALL_MODEL;
}

static bool has_int4(const tarn__model *model) {
  for (size_t i = 0; i < model->param_count; i++)
    if (model->params[i]->decoding.rounding == TARN__ROUNDING_INT4) return true;
  return false;
}

// Rows that each decoder must have, or one decoder with all threads is faster. Products in INT4 take more operations
// for fewer bytes, so that reading the weights once saves less than threads lose that wait for each other: 16 texts on
// two threads were 6 to 18 % slower with one decoder.
static int64_t least_rows(const tarn__model *model) {
  return is_small(model) ? 1 : has_int4(model) ? LEAST_ITEMS : LEAST_ROWS;
}

int tarn__crew_decoders(const tarn__model *model, int64_t items, int64_t rows, int threads) {
  const int64_t least = least_rows(model) * threads;
  if (items < (int64_t)LEAST_ITEMS * threads) return 1;
  // One decoder has no more rows in a step, however many there are in all.
  return rows >= (least < TARN__DECODER_ROWS ? least : TARN__DECODER_ROWS) ? threads : 1;
}

tarn_status tarn__crew_run(tarn__crew *crew, const tarn__item *items, int64_t count, tarn__translation *results) {
  // A profile belongs to a single thread.
  const int64_t each = count > 0 ? crew->engine->rows(&crew->options, items[0].length) : 0;
  const bool apart = !crew->options.profile && tarn__crew_decoders(crew->model, count, count * each, crew->threads) > 1;
  const int64_t share = apart ? (count + crew->threads - 1) / crew->threads : count;
  // Samples of one prompt stay adjacent, so that a decoder reads the prompt once for all of them. The first item is the
  // longest.
  if (apart && !crew->options.sampling && share * each <= TARN__DECODER_ROWS) TARN_TRY(deal(crew, &items, count));
  tarn__queue queue = {.lock = PTHREAD_MUTEX_INITIALIZER,
                       .items = items,
                       .count = count,
                       .share = {.items = share},
                       .divides = apart,
                       .work = tarn__work_at_hand()};
  for (int64_t i = 0; i < count; i++) queue.weight += (double)items[i].length + 1;
  return apart ? run_apart(crew, &queue, results) : crew->engine->run(crew->together, &queue, results);
}

// Opens a decoder whose items have options of their own, beside the end of sentence and the banned tokens.
static tarn_status open_fed(tarn__crew *crew, bool draws, int number) {
  static const tarn__sampling any = {.temperature = 1.0, .top_p = 1.0, .typical_p = 1.0};
  tarn__decoder_options own = crew->options;
  if (crew->fed[draws][number]) return TARN_STATUS_OK;
  own.search.beam = own.search.groups = own.n_best = 1;
  own.sampling = draws ? &any : NULL;
  own.processing = NULL;
  own.stops = NULL;
  own.forced = false;
  return tarn__decoder_open(&crew->fed[draws][number], crew->model, &own, crew->threads);
}

// What a single decoder has of a feed at most.
static tarn__at_work share_of(const tarn__crew *crew) {
  const int64_t items = is_small(crew->model) ? 1 : LEAST_ITEMS;
  return (tarn__at_work){items * crew->threads, least_rows(crew->model) * crew->threads};
}

// The decoder that uses all threads runs until nothing is left, or it has its share, or no room, and more wait.
static tarn_status feed_one(tarn__crew *crew, tarn__decoder *decoder, tarn__queue *queue) {
  tarn__decoder_seat(decoder, 0, crew->threads);
  queue->decoders = 1;
  queue->idle = 0;
  return tarn__decoder_run(decoder, queue, NULL);
}

// All decoders, each on its own thread, run until at most one has anything left. OpenMP may give fewer threads than
// were asked for (OMP_THREAD_LIMIT, OMP_DYNAMIC, within another parallel region); the first one, alone at work, gets
// one of them.
static tarn_status feed_apart(tarn__crew *crew, bool draws, tarn__queue *queue) {
  for (int i = 0; i < crew->threads; i++) {
    tarn__decoder_seat(crew->fed[draws][i], i, 1);
    crew->at_work[i] = tarn__decoder_at_work(crew->fed[draws][i]);
  }
  tarn__failure failure = {0};
  queue->idle = 0;
  queue->over = false;
#pragma omp parallel num_threads(crew->threads)
  {
#pragma omp single
    queue->decoders = omp_get_num_threads();
    tarn__failure_note(&failure, tarn__decoder_run(crew->fed[draws][omp_get_thread_num()], queue, NULL));
  }
  return tarn__failure_raise(&failure);
}

// Puts a decoder with items at work first. False: there is none.
static bool put_busy_first(tarn__crew *crew, bool draws) {
  tarn__decoder **fed = crew->fed[draws];
  for (int i = 0; i < crew->threads; i++) {
    tarn__decoder *d = fed[i];
    if (!d || tarn__decoder_at_work(d).items == 0) continue;
    fed[i] = fed[0];
    fed[0] = d;
    return true;
  }
  return false;
}

// Opens the other decoders. False: there is no memory for them, and the first one goes on alone.
static bool open_others(tarn__crew *crew, bool draws) {
  for (int i = 1; i < crew->threads; i++)
    if (open_fed(crew, draws, i) != TARN_STATUS_OK) return false;
  return true;
}

tarn_status tarn__crew_feed(tarn__crew *crew, bool draws, const tarn__feed *feed) {
  TARN_REQUIRE(crew->engine == &tarn__token_engine, USAGE,
               "only models that write token by token take texts into a running batch");
  // A profile belongs to a single thread.
  bool divides = crew->threads > 1 && !crew->options.profile && !feed->whole;
  TARN_TRY(open_fed(crew, draws, 0));
  const tarn__at_work share = share_of(crew);
  tarn__queue queue = {.lock = PTHREAD_MUTEX_INITIALIZER,
                       .changed = PTHREAD_COND_INITIALIZER,
                       .weight = 1.0,
                       .feed = feed,
                       .at_work = crew->at_work,
                       .parts = divides ? crew->threads : 1,
                       .share = share,
                       .few = {share.items / 2, share.hypotheses / 2}};
  tarn__failure failure = {0};
  do {
    // After a failure, what other decoders have at work is completed.
    queue.divides = divides && !queue.closed;
    tarn__failure_note(&failure, feed_one(crew, crew->fed[draws][0], &queue));
    queue.divides = false;
    if (tarn__decoder_at_work(crew->fed[draws][0]).items == 0) continue;
    divides = open_others(crew, draws);
    if (divides) tarn__failure_note(&failure, feed_apart(crew, draws, &queue));
  } while (put_busy_first(crew, draws) || queue.holds);
  return tarn__failure_raise(&failure);
}
