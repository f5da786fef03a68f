#include "data/shard_ids.h"

#include <omp.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/threads.h"
#include "base/work.h"

static const double SECONDS_UNTOLD = 5;
enum { AHEAD = 8 };         // pieces that are read ahead
enum { SMALL = 64 << 20 };  // bytes of ids that are checked so fast that no progress is reported

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// A piece of the ids of a shard.
typedef struct piece {
  int64_t number;
  int shard;
  size_t begin, size;
} piece;

// A fault in the ids of a shard.
typedef struct fault {
  bool found;
  int64_t pair;
  int32_t id, vocabulary;  // the id that is too large; vocabulary 0: an end of sentence is wrong
} fault;

typedef struct check {
  const tarn__shard *shards;
  const tarn__shard_opening *openings;
  int count;
  const char *path;
  tarn__work work;
  pthread_mutex_t lock;   // guards the next four
  pthread_cond_t turned;  // `turn` has changed
  piece next;             // the next to take
  int64_t turn;           // the number of the piece to hash next
  bool failed;
  // Owned by the thread whose turn it is.
  tarn__hasher *own, *whole;  // of the current shard, and of all
  fault first;                // of the current shard
  size_t size, done;          // bytes of all
  double told;
  int bad;
  tarn__failure failure;
} check;

// The only position other than the last where an end of sentence must be: before a second sentence. -1: none.
static int64_t first_end(const tarn__shard *s, int64_t k) {
  if (!s->segments || s->offsets[k] + s->segments[k] == s->offsets[k + 1]) return -1;
  return s->offsets[k] + s->segments[k] - 1;
}

// The largest of some ids, and the number of ends of sentence among them.
static int64_t scan(const tarn__shard *s, int64_t from, int64_t to, uint32_t eos, uint32_t *largest) {
  uint32_t most = 0;
  int32_t ends = 0;  // of at most a piece of tokens
  if (s->id_bytes == 2) {
    const uint16_t *ids = (const uint16_t *)(const void *)s->ids;
    for (int64_t i = from; i < to; i++) {
      most = ids[i] > most ? ids[i] : most;
      ends += ids[i] == eos;
    }
  } else {
    const uint32_t *ids = (const uint32_t *)(const void *)s->ids;
    for (int64_t i = from; i < to; i++) {
      most = ids[i] > most ? ids[i] : most;
      ends += ids[i] == eos;
    }
  }
  *largest = most;
  return ends;
}

// Checks the tokens from .. to - 1 of sentence k.
static void check_tokens(fault *f, const tarn__shard *s, int64_t k, int64_t from, int64_t to) {
  const bool target = tarn__shard_is_target(s, k);
  const int32_t size = target ? s->target_vocab_size : s->source_vocab_size;
  const int32_t eos = target ? s->target_eos : s->source_eos;
  const int64_t last = s->offsets[k + 1] - 1, first = first_end(s, k);
  uint32_t largest;
  const int64_t ends = scan(s, from, to, (uint32_t)eos, &largest);
  int64_t wanted = 0;
  bool good = true;
  if (last < to) wanted++, good = tarn__shard_id(s, last) == eos;
  if (first >= from && first < to) wanted++, good = good && tarn__shard_id(s, first) == eos;
  if (largest < (uint32_t)size && (s->continues || (good && (s->packed || ends == wanted)))) return;
  *f = (fault){.found = true, .pair = s->text ? k : k / 2};
  if (largest < (uint32_t)size) return;
  f->vocabulary = size;
  f->id = largest > INT32_MAX ? INT32_MAX : (int32_t)largest;
}

static int64_t sentence_of(const tarn__shard *s, int64_t token) {
  int64_t low = 0, high = s->pairs * (s->text ? 1 : 2);  // it is one of low .. high - 1
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    if (s->offsets[middle] <= token)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// The first fault in a piece. Any bytes are an image.
static fault check_piece(const tarn__shard *s, const piece *p) {
  fault f = {0};
  if (s->image.height) return f;
  const int64_t begin = (int64_t)p->begin / s->id_bytes, end = begin + (int64_t)p->size / s->id_bytes;
  for (int64_t k = sentence_of(s, begin), at = begin; at < end && !f.found; k++) {
    const int64_t to = smaller(end, s->offsets[k + 1]);
    check_tokens(&f, s, k, at, to);
    at = larger(at, to);
  }
  return f;
}

// Called with the lock held.
static bool take(check *c, piece *p) {
  if (c->failed || c->next.shard == c->count) return false;
  const size_t left = c->openings[c->next.shard].ids_size - c->next.begin;
  c->next.size = left < TARN__MAP_PIECE ? left : TARN__MAP_PIECE;
  *p = c->next;
  c->next.number++;
  c->next.begin += p->size;
  if (c->next.begin == c->openings[p->shard].ids_size) {
    c->next.shard++;
    c->next.begin = 0;
  }
  return true;
}

// Asks the system to read ahead some pieces.
static void read_ahead(const check *c, const piece *p) {
  int shard = p->shard;
  size_t at = p->begin + (size_t)AHEAD * TARN__MAP_PIECE;
  while (shard < c->count && at >= c->openings[shard].ids_size) at -= c->openings[shard++].ids_size;
  if (shard < c->count) tarn__map_expect(&c->shards[shard].map, c->shards[shard].ids + at, TARN__MAP_PIECE);
}

static tarn_status judge(const check *c, int shard) {
  char stored[TARN__HASH_TEXT] = "", text[TARN__HASH_TEXT];
  const fault *f = &c->first;
  memcpy(stored, c->openings[shard].header.ids_hash, TARN__SHARD_HASH);
  tarn__hasher_text(text, c->own, "", 0);
  TARN_REQUIRE(tarn__hash_same(stored, text), DATA,
               "damaged shard: its contents do not have the hash they should have");
  TARN_REQUIRE(!f->found || f->vocabulary == 0, DATA, "damaged shard: pair %lld has token %d of a vocabulary of %d",
               (long long)f->pair, f->id, f->vocabulary);
  TARN_REQUIRE(!f->found, DATA, "damaged shard: pair %lld has no or a wrong end of sentence", (long long)f->pair);
  return TARN_STATUS_OK;
}

static void tell(check *c) {
  const double share = (double)c->done / (double)c->size, now = tarn__seconds();
  if (c->size >= SMALL) tarn__work_at(&c->work, (double)c->done, share);
  if (now - c->told < SECONDS_UNTOLD) return;
  c->told = now;
  tarn__log(TARN_LOG_INFO, "%s: checking it, %.0f %% of %.1f GB", c->path, 100.0 * share, (double)c->size / 1e9);
}

// Processes a piece in its turn. Returns whether it has no fault.
static bool add(check *c, const piece *p, const fault *f) {
  const tarn__shard *s = &c->shards[p->shard];
  if (p->begin == 0) c->first = (fault){0};
  if (p->begin == 0) tarn__hasher_restart(c->own);
  if (!c->first.found) c->first = *f;
  tarn__hasher_add(c->own, s->ids + p->begin, p->size);
  if (c->whole) tarn__hasher_add(c->whole, s->ids + p->begin, p->size);
  tarn__map_release_part(&s->map, s->ids + p->begin, p->size);
  c->done += p->size;
  if (omp_get_thread_num() == 0) tell(c);  // reports come from the caller's thread
  if (p->begin + p->size < c->openings[p->shard].ids_size) return true;
  tarn__map_release(&s->map);
  c->bad = p->shard;
  tarn__failure_note(&c->failure, tarn__shard_explain(s, judge(c, p->shard)));
  return c->failure.status == TARN_STATUS_OK;
}

// Pieces are checked in parallel but hashed in order, so the fault reported is always the first.
static void work(check *c) {
  piece p;
  pthread_mutex_lock(&c->lock);
  while (take(c, &p)) {
    pthread_mutex_unlock(&c->lock);
    read_ahead(c, &p);
    const fault f = check_piece(&c->shards[p.shard], &p);
    pthread_mutex_lock(&c->lock);
    while (c->turn != p.number && !c->failed) pthread_cond_wait(&c->turned, &c->lock);
    if (c->failed) break;
    pthread_mutex_unlock(&c->lock);
    const bool well = add(c, &p, &f);
    pthread_mutex_lock(&c->lock);
    c->failed = !well;
    c->turn++;
    pthread_cond_broadcast(&c->turned);
  }
  pthread_mutex_unlock(&c->lock);
}

static void run(check *c) {
  const size_t pieces = c->size / TARN__MAP_PIECE;
  int threads = pieces < 2 ? 1 : tarn__threads();
  if ((size_t)threads > pieces) threads = pieces < 1 ? 1 : (int)pieces;
  c->told = tarn__seconds();
  if (c->size >= SMALL) tarn__work_begin(&c->work, "checking data", "bytes");
  pthread_mutex_init(&c->lock, NULL);
  pthread_cond_init(&c->turned, NULL);
#pragma omp parallel num_threads(threads) if (threads > 1)
  work(c);
  pthread_cond_destroy(&c->turned);
  pthread_mutex_destroy(&c->lock);
  if (c->size >= SMALL) tarn__work_end(&c->work);
}

tarn_status tarn__shard_check_ids(const tarn__shard *shards, int count, const tarn__shard_opening *openings,
                                  const char *path, char whole[TARN__HASH_TEXT], int *bad) {
  check c = {.shards = shards, .openings = openings, .count = count, .path = path};
  for (int i = 0; i < count; i++) c.size += openings[i].ids_size;
  TARN_TRY(tarn__hasher_open(&c.own));
  tarn_status status = whole ? tarn__hasher_open(&c.whole) : TARN_STATUS_OK;
  if (status == TARN_STATUS_OK) {
    run(&c);
    *bad = c.bad;
    status = tarn__failure_raise(&c.failure);
  }
  if (status == TARN_STATUS_OK && whole) tarn__hasher_text(whole, c.whole, "", 0);
  tarn__hasher_close(&c.own);
  tarn__hasher_close(&c.whole);
  return status;
}
