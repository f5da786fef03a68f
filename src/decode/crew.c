#include "decode/crew.h"

#include "base/memory.h"
#include "base/threads.h"
#include "base/work.h"

// With fewer items per decoder, one decoder that uses all threads is faster.
enum { LEAST_ITEMS = 8 };

tarn_status tarn__crew_open(tarn__crew *crew, const tarn__model *model, const tarn__decoder_options *options,
                            int threads) {
  const tarn__engine *engine = tarn__engine_of(model->config);
  *crew = (tarn__crew){.model = model, .options = *options, .threads = threads, .engine = engine};
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)threads, sizeof *crew->apart));
  crew->apart = memory;
  return engine->open(&crew->together, model, options, threads);
}

void tarn__crew_close(tarn__crew *crew) {
  if (crew->together) crew->engine->close(&crew->together);
  for (int i = 0; crew->apart && i < crew->threads; i++)
    if (crew->apart[i]) crew->engine->close(&crew->apart[i]);
  for (int draws = 0; draws < 2; draws++) tarn__decoder_close(&crew->fed[draws]);
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
    if (crew->fed[draws]) tarn__decoder_add_stats(crew->fed[draws], stats);
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

int tarn__crew_decoders(int64_t items, int threads) { return items >= (int64_t)LEAST_ITEMS * threads ? threads : 1; }

tarn_status tarn__crew_run(tarn__crew *crew, const tarn__item *items, int64_t count, tarn__translation *results) {
  // A profile belongs to a single thread.
  const bool apart = !crew->options.profile && tarn__crew_decoders(count, crew->threads) > 1;
  const int64_t share = apart ? (count + crew->threads - 1) / crew->threads : count;
  // Samples of one prompt stay adjacent, so that a decoder reads the prompt once for all of them. The first item is the
  // longest.
  if (apart && !crew->options.sampling &&
      share * crew->engine->rows(&crew->options, items[0].length) <= TARN__DECODER_ROWS)
    TARN_TRY(deal(crew, &items, count));
  tarn__queue queue = {
      .lock = PTHREAD_MUTEX_INITIALIZER, .items = items, .count = count, .share = share, .work = tarn__work_at_hand()};
  for (int64_t i = 0; i < count; i++) queue.weight += (double)items[i].length + 1;
  return apart ? run_apart(crew, &queue, results) : crew->engine->run(crew->together, &queue, results);
}

// A decoder whose items have options of their own, beside the end of sentence and the banned tokens.
static tarn_status open_fed(tarn__crew *crew, bool draws) {
  static const tarn__sampling any = {.temperature = 1.0, .top_p = 1.0, .typical_p = 1.0};
  tarn__decoder_options own = crew->options;
  own.search.beam = own.search.groups = own.n_best = 1;
  own.sampling = draws ? &any : NULL;
  own.processing = NULL;
  own.stops = NULL;
  own.forced = false;
  return tarn__decoder_open(&crew->fed[draws], crew->model, &own, crew->threads);
}

tarn_status tarn__crew_feed(tarn__crew *crew, bool draws, const tarn__feed *feed) {
  TARN_REQUIRE(crew->engine == &tarn__token_engine, USAGE,
               "only models that write token by token take texts into a running batch");
  if (!crew->fed[draws]) TARN_TRY(open_fed(crew, draws));
  tarn__queue queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .share = INT64_MAX, .weight = 1.0, .feed = feed};
  return tarn__decoder_run(crew->fed[draws], &queue, NULL);
}
