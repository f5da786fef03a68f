#include "dist/rank_use.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

// Minimum seconds of updates before a rank is called slow, and the share of them by which others must have waited
// longer.
static const double LEAST_SECONDS = 10, LEAST_SHARE = 0.2;

tarn_status tarn__rank_use_open(tarn__rank_use *use, tarn__comm *comm) {
  *use = (tarn__rank_use){.comm = comm, .slow = -1, .said = -1};
  if (comm->size == 1) return TARN_STATUS_OK;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 2 * (size_t)comm->size, sizeof *use->window));
  use->window = memory;
  use->whole = use->window + comm->size;
  for (int r = 0; r < 2 * comm->size; r++) use->window[r] = (tarn__rank_told){0};
  return TARN_STATUS_OK;
}

void tarn__rank_use_close(tarn__rank_use *use) {
  tarn__free(use->window);
  *use = (tarn__rank_use){0};
}

void tarn__rank_use_begin(tarn__rank_use *use) {
  if (!use->window) return;
  use->before = use->comm->traffic;
  use->begun = tarn__seconds();
}

void tarn__rank_use_end(tarn__rank_use *use, int64_t reduced) {
  if (!use->window) return;
  use->seconds += tarn__seconds() - use->begun;
  use->own.waited += use->comm->traffic.waited - use->before.waited;
  use->own.sent += use->comm->traffic.sent - use->before.sent;
  use->reduced = reduced;
}

int tarn__rank_use_slow(const double *waited, int ranks, double seconds) {
  if (seconds < LEAST_SECONDS) return -1;
  int least = 0;
  for (int r = 1; r < ranks; r++)
    if (waited[r] < waited[least]) least = r;
  for (int r = 0; r < ranks; r++)
    if (r != least && waited[r] - waited[least] <= LEAST_SHARE * seconds) return -1;
  return least;
}

static tarn_status find_slow(tarn__rank_use *use, double seconds) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)use->comm->size, sizeof(double)));
  double *waited = memory;
  for (int r = 0; r < use->comm->size; r++) waited[r] = use->window[r].waited;
  use->slow = tarn__rank_use_slow(waited, use->comm->size, seconds);
  tarn__free(memory);
  return TARN_STATUS_OK;
}

// Mean seconds that the others waited more than this rank.
static double waited_for(const tarn__rank_use *use, int rank) {
  double sum = 0.0;
  for (int r = 0; r < use->comm->size; r++) sum += use->window[r].waited - use->window[rank].waited;
  return sum / (use->comm->size - 1);
}

tarn_status tarn__rank_use_share(tarn__rank_use *use, int64_t update) {
  if (!use->window) return TARN_STATUS_OK;
  TARN_TRY(tarn__comm_gather(use->comm, use->window, &use->own, sizeof use->own));
  for (int r = 0; r < use->comm->size; r++) {
    use->whole[r].waited += use->window[r].waited;
    use->whole[r].sent += use->window[r].sent;
  }
  use->whole_seconds += use->seconds;
  TARN_TRY(find_slow(use, use->seconds));
  if (use->comm->rank == 0 && use->slow >= 0 && use->slow != use->said) {
    char rank[TARN__RANK_TEXT];
    tarn__log(TARN_LOG_WARNING, "%s is slow: until update %lld the others waited for it %.0f %% of the time",
              tarn__comm_rank_text(use->comm, use->slow, rank), (long long)update,
              100 * waited_for(use, use->slow) / use->seconds);
  }
  use->said = use->slow;
  use->seconds = 0.0;
  use->own = (tarn__rank_told){0};
  return TARN_STATUS_OK;
}

// Takes over `value` in any case.
static bool set(json_t *object, const char *key, json_t *value) { return json_object_set_new(object, key, value) == 0; }

bool tarn__rank_use_describe(const tarn__rank_use *use, json_t *object, bool whole) {
  if (!use->window) return true;
  const tarn__rank_told *told = whole ? use->whole : use->window;
  json_t *ranks = json_object(), *waited = json_array();
  int64_t sent = 0;
  bool done = ranks && waited;
  for (int r = 0; done && r < use->comm->size; r++) {
    done = json_array_append_new(waited, json_real(told[r].waited)) == 0;
    sent += told[r].sent;
  }
  done = done && set(ranks, "count", json_integer(use->comm->size)) &&
         set(ranks, "reduce_bytes", json_integer((json_int_t)use->reduced)) &&
         set(ranks, "sent_bytes", json_integer((json_int_t)sent));
  if (done && whole) done = set(ranks, "seconds", json_real(use->whole_seconds));
  if (done && !whole && use->slow >= 0) {
    char rank[TARN__RANK_TEXT];
    done = set(ranks, "slow", json_string(tarn__comm_rank_text(use->comm, use->slow, rank)));
  }
  if (done)
    done = set(ranks, "waited", waited);
  else
    json_decref(waited);
  if (done) return set(object, "ranks", ranks);
  json_decref(ranks);
  return false;
}
