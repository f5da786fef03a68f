#include "data/loader.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

enum { ROOMS = 2, STACK = 512 * 1024 };

struct tarn__loader {
  tarn__batcher *batcher;
  tarn__loader_share share;
  int64_t number;  // of the update's next batch, over all ranks; `batches` at the start of an update
  int64_t batches, predictions;
  tarn__batch_room rooms[ROOMS];
  tarn__loaded loaded[ROOMS];
  sem_t empty, full;  // empty rooms; rooms with a waiting batch
  atomic_bool stop;
  pthread_t thread;
  bool running;
  int next;     // the room that the caller receives next
  bool in_use;  // the caller has a batch
};

// A signal may interrupt the wait.
static void wait_for(sem_t *semaphore) {
  while (sem_wait(semaphore) != 0 && errno == EINTR) continue;
}

// Skips batches of the update up to number `end`, which other ranks compute.
static void skip(tarn__loader *l, int64_t end) {
  if (end > l->batches) end = l->batches;
  if (end > l->number) tarn__batcher_skip(l->batcher, end - l->number);
  l->number = end;
}

static void begin_update(tarn__loader *l) {
  int64_t epoch;
  int64_t index;
  tarn__batcher_position(l->batcher, &epoch, &index);
  const int64_t rest = tarn__batcher_batches(l->batcher) - index;
  const int64_t most = l->share.accumulate * l->share.ranks;
  l->batches = rest < most ? rest : most;
  l->predictions = tarn__batcher_predictions(l->batcher, l->batches);
  l->number = 0;
  skip(l, l->share.rank);
}

static void prepare(tarn__loader *l, tarn__loaded *loaded, const tarn__batch_room *room) {
  loaded->begin = tarn__seconds();
  if (l->number == l->batches) begin_update(l);
  loaded->batches = l->batches;
  loaded->predictions = l->predictions;
  loaded->number = l->number;
  loaded->batch = (tarn__batch){0};
  if (l->number < l->batches) {
    tarn__batcher_next_into(l->batcher, &loaded->batch, room);
    l->number++;
    skip(l, l->number + l->share.ranks - 1);
  }
  loaded->last = l->number == l->batches;
  tarn__batcher_position(l->batcher, &loaded->next_epoch, &loaded->next_index);
  loaded->next_batches = tarn__batcher_batches(l->batcher);
  loaded->end = tarn__seconds();
}

static void *work(void *user) {
  tarn__loader *l = user;
  for (int room = 0;; room = (room + 1) % ROOMS) {
    wait_for(&l->empty);
    if (atomic_load(&l->stop)) return NULL;
    prepare(l, &l->loaded[room], &l->rooms[room]);
    sem_post(&l->full);
  }
}

// Signals go to the training thread: their handlers ask it to stop. This thread leaves only the fault of reading a
// truncated file unblocked (base/map.h); if it were blocked, the system would end the process.
static int start_thread(tarn__loader *l) {
  sigset_t all;
  sigset_t before;
  pthread_attr_t attributes;
  int error = pthread_attr_init(&attributes);
  if (error != 0) return error;
  error = pthread_attr_setstacksize(&attributes, STACK);
  sigfillset(&all);
  sigdelset(&all, SIGBUS);
  if (error == 0) error = pthread_sigmask(SIG_SETMASK, &all, &before);
  if (error == 0) {
    error = pthread_create(&l->thread, &attributes, work, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
  }
  pthread_attr_destroy(&attributes);
  return error;
}

tarn_status tarn__loader_open(tarn__loader **loader, tarn__batcher *batcher, const tarn__loader_share *share) {
  *loader = NULL;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn__loader)));
  tarn__loader *l = memory;
  l->batcher = batcher;
  l->share = *share;
  sem_init(&l->empty, 0, ROOMS);
  sem_init(&l->full, 0, 0);
  tarn_status status = TARN_STATUS_OK;
  for (int r = 0; r < ROOMS && status == TARN_STATUS_OK; r++) status = tarn__batch_room_open(&l->rooms[r], batcher);
  if (status == TARN_STATUS_OK) {
    int error = start_thread(l);
    l->running = error == 0;
    if (error != 0)
      status =
          tarn__fail(TARN_STATUS_MEMORY, "the thread that prepares batches cannot be started: %s", strerror(error));
  }
  if (status != TARN_STATUS_OK) {
    tarn__loader_close(&l);
    return status;
  }
  *loader = l;
  return TARN_STATUS_OK;
}

void tarn__loader_close(tarn__loader **loader) {
  tarn__loader *l = *loader;
  if (!l) return;
  if (l->running) {
    atomic_store(&l->stop, true);
    sem_post(&l->empty);
    pthread_join(l->thread, NULL);
  }
  sem_destroy(&l->empty);
  sem_destroy(&l->full);
  for (int r = 0; r < ROOMS; r++) tarn__batch_room_close(&l->rooms[r]);
  tarn__free(l);
  *loader = NULL;
}

const tarn__loaded *tarn__loader_next(tarn__loader *l) {
  if (l->in_use) sem_post(&l->empty);
  l->in_use = true;
  wait_for(&l->full);
  const tarn__loaded *loaded = &l->loaded[l->next];
  l->next = (l->next + 1) % ROOMS;
  return loaded;
}
