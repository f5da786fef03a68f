#include "tarn/work_queue.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/threads.h"

typedef struct entry {
  void *item;
  int64_t cost;
} entry;

struct tarn_work_queue {
  tarn_work_queue_options options;
  pthread_mutex_t lock;  // of all that follows
  pthread_cond_t changed;
  entry *entries;  // [capacity], in the order of their arrival
  size_t count;
  size_t expected;  // items of the last batch
  int64_t passed;   // items that joined the current batch although an older one waited that could not
  bool stopped, started;
  // The thread's own.
  pthread_t thread;
  bool running;
  void **batch;           // [capacity]
  tarn__failure failure;  // of options.start
};

void tarn_work_queue_default(tarn_work_queue_options *options) {
  *options = (tarn_work_queue_options){.capacity = 1024, .max_cost = 16384, .max_items = 256, .wait = 0.003};
}

static struct timespec after(double seconds) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  const long whole = (long)seconds;
  time.tv_sec += whole;
  time.tv_nsec += (long)((seconds - (double)whole) * 1e9);
  if (time.tv_nsec >= 1000000000L) {
    time.tv_sec++;
    time.tv_nsec -= 1000000000L;
  }
  return time;
}

// Whether the items that wait make a batch that need not wait for more.
static bool is_enough(const tarn_work_queue *q) {
  int64_t cost = 0;
  if (q->stopped || q->count >= q->expected || q->count >= (size_t)q->options.max_items) return true;
  // The sum may be more than there are numbers for.
  for (size_t i = 0; i < q->count; i++) {
    if (q->entries[i].cost >= q->options.max_cost - cost) return true;
    cost += q->entries[i].cost;
  }
  return false;
}

// Takes the items of the next batch out of those that wait, of which there is at least one.
static size_t take_batch(tarn_work_queue *q) {
  const tarn_work_queue_options *o = &q->options;
  size_t taken = 0, left = 0;
  int64_t cost = 0;
  bool full = false;
  for (size_t i = 0; i < q->count; i++) {
    const entry e = q->entries[i];
    const bool fits = taken == 0 || (!full && (!o->together || o->together(o->user, q->batch[0], e.item)));
    // What does not fit for its cost alone ends the batch, so that a costly item is not passed by others again and
    // again.
    if (fits && taken > 0 && (e.cost > o->max_cost - cost || taken == (size_t)o->max_items)) full = true;
    if (!fits || full) {
      q->entries[left++] = e;
      continue;
    }
    q->batch[taken++] = e.item;
    cost = e.cost > INT64_MAX - cost ? INT64_MAX : cost + e.cost;
  }
  q->count = left;
  q->expected = taken + left;
  q->passed = 0;
  return taken;
}

// Waits for a batch and takes it. 0: the queue was stopped, and nothing waits.
static size_t next_batch(tarn_work_queue *q) {
  size_t taken = 0;
  pthread_mutex_lock(&q->lock);
  while (q->count == 0 && !q->stopped) pthread_cond_wait(&q->changed, &q->lock);
  if (!is_enough(q)) {
    const struct timespec end = after(q->options.wait);
    while (!is_enough(q) && pthread_cond_timedwait(&q->changed, &q->lock, &end) == 0) continue;
  }
  if (q->count > 0) taken = take_batch(q);
  pthread_mutex_unlock(&q->lock);
  return taken;
}

static void *work(void *user) {
  tarn_work_queue *q = user;
  if (q->options.start) tarn__failure_note(&q->failure, q->options.start(q->options.user));
  pthread_mutex_lock(&q->lock);
  q->started = true;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
  if (q->failure.status != TARN_STATUS_OK) return NULL;
  for (size_t count; (count = next_batch(q)) > 0;) q->options.work(q->options.user, q->batch, count);
  return NULL;
}

static tarn_status check_options(const tarn_work_queue_options *o) {
  TARN_REQUIRE(o->work, USAGE, "a queue needs a function `work`");
  TARN_REQUIRE(o->capacity >= 1 && o->capacity <= 1000000, USAGE, "the capacity must be from 1 to 1000000, not %lld",
               (long long)o->capacity);
  TARN_REQUIRE(o->max_cost >= 1, USAGE, "the greatest cost of a batch must be 1 or more, not %lld",
               (long long)o->max_cost);
  TARN_REQUIRE(o->max_items >= 1, USAGE, "the most items of a batch must be 1 or more, not %lld",
               (long long)o->max_items);
  TARN_REQUIRE(o->wait >= 0.0 && o->wait <= 10.0, USAGE, "a batch waits from 0 to 10 seconds, not %g", o->wait);
  return TARN_STATUS_OK;
}

// Signals are the caller's, but for those that a fault of its own raises.
static tarn_status start_thread(tarn_work_queue *q) {
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, SIGBUS);
  sigdelset(&all, SIGSEGV);
  sigdelset(&all, SIGFPE);
  sigdelset(&all, SIGILL);
  int error = pthread_sigmask(SIG_SETMASK, &all, &before);
  if (error == 0) {
    error = pthread_create(&q->thread, NULL, work, q);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
  }
  TARN_REQUIRE(error == 0, IO, "cannot start a thread: %s", strerror(error));
  q->running = true;
  return TARN_STATUS_OK;
}

static tarn_status open_all(tarn_work_queue *q) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)q->options.capacity, sizeof *q->entries));
  q->entries = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)q->options.capacity, sizeof *q->batch));
  q->batch = memory;
  TARN_TRY(start_thread(q));
  pthread_mutex_lock(&q->lock);
  while (!q->started) pthread_cond_wait(&q->changed, &q->lock);
  pthread_mutex_unlock(&q->lock);
  return tarn__failure_raise(&q->failure);
}

tarn_status tarn_work_queue_open(tarn_work_queue **queue, const tarn_work_queue_options *options) {
  pthread_condattr_t clock;
  void *memory;
  *queue = NULL;
  TARN_TRY(check_options(options));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn_work_queue)));
  tarn_work_queue *q = memory;
  q->options = *options;
  pthread_mutex_init(&q->lock, NULL);
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&q->changed, &clock);
  pthread_condattr_destroy(&clock);
  const tarn_status status = open_all(q);
  if (status != TARN_STATUS_OK) {
    tarn_work_queue_close(&q);
    return status;
  }
  *queue = q;
  return TARN_STATUS_OK;
}

bool tarn_work_queue_add(tarn_work_queue *queue, void *item, int64_t cost) {
  pthread_mutex_lock(&queue->lock);
  const bool taken = !queue->stopped && queue->count < (size_t)queue->options.capacity;
  if (taken) queue->entries[queue->count++] = (entry){item, cost > 0 ? cost : 0};
  if (taken) pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
  return taken;
}

void *tarn_work_queue_join(tarn_work_queue *queue, const void *first) {
  const tarn_work_queue_options *o = &queue->options;
  void *joined = NULL;
  pthread_mutex_lock(&queue->lock);
  size_t at = 0;
  while (at < queue->count && o->together && !o->together(o->user, first, queue->entries[at].item)) at++;
  if (at < queue->count && (at == 0 || queue->passed < o->max_items)) {
    joined = queue->entries[at].item;
    queue->passed += at > 0;
    queue->count--;
    memmove(queue->entries + at, queue->entries + at + 1, (queue->count - at) * sizeof *queue->entries);
  }
  pthread_mutex_unlock(&queue->lock);
  return joined;
}

int64_t tarn_work_queue_waiting(const tarn_work_queue *queue) {
  tarn_work_queue *q = (tarn_work_queue *)(uintptr_t)queue;  // a lock is no part of what a queue is to its caller
  pthread_mutex_lock(&q->lock);
  const int64_t waiting = (int64_t)q->count;
  pthread_mutex_unlock(&q->lock);
  return waiting;
}

void tarn_work_queue_stop(tarn_work_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  queue->stopped = true;
  pthread_cond_broadcast(&queue->changed);
  pthread_mutex_unlock(&queue->lock);
}

void tarn_work_queue_finish(tarn_work_queue *queue) {
  if (!queue->running) return;
  tarn_work_queue_stop(queue);
  pthread_join(queue->thread, NULL);
  queue->running = false;
}

void tarn_work_queue_close(tarn_work_queue **queue) {
  tarn_work_queue *q = *queue;
  if (!q) return;
  tarn_work_queue_finish(q);
  pthread_cond_destroy(&q->changed);
  pthread_mutex_destroy(&q->lock);
  tarn__free(q->entries);
  tarn__free(q->batch);
  tarn__free(q);
  *queue = NULL;
}
