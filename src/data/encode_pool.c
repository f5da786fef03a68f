#include "data/encode_pool.h"

#include <pthread.h>
#include <signal.h>

#include "base/memory.h"

struct tarn__encode_pool {
  pthread_mutex_t lock;            // guards all fields below
  pthread_cond_t added, done;      // a job waits, or the pool closes; a job is done
  tarn__encode_job *first, *last;  // the queue of waiting jobs
  bool stopped;
  pthread_t *threads;  // [started]
  int started;
};

static tarn__encode_job *take(tarn__encode_pool *p) {
  tarn__encode_job *job = p->first;
  p->first = job->next;
  if (!p->first) p->last = NULL;
  job->state = TARN__JOB_RUNS;
  return job;
}

// Called with the lock held; releases it while the job runs.
static void run_first(tarn__encode_pool *p) {
  tarn__encode_job *job = take(p);
  pthread_mutex_unlock(&p->lock);
  job->run(job->user);
  pthread_mutex_lock(&p->lock);
  job->state = TARN__JOB_DONE;
  pthread_cond_broadcast(&p->done);
}

static void *work(void *user) {
  tarn__encode_pool *p = user;
  pthread_mutex_lock(&p->lock);
  while (!p->stopped) {
    if (p->first)
      run_first(p);
    else
      pthread_cond_wait(&p->added, &p->lock);
  }
  pthread_mutex_unlock(&p->lock);
  return NULL;
}

// The threads block all signals except those of their own faults.
static void start_threads(tarn__encode_pool *p, int count) {
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, SIGBUS);
  sigdelset(&all, SIGSEGV);
  sigdelset(&all, SIGFPE);
  sigdelset(&all, SIGILL);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return;
  while (p->started < count && pthread_create(&p->threads[p->started], NULL, work, p) == 0) p->started++;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

tarn_status tarn__encode_pool_open(tarn__encode_pool **pool, int threads) {
  void *memory;
  *pool = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **pool));
  tarn__encode_pool *p = memory;
  const tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)threads, sizeof *p->threads);
  if (status != TARN_STATUS_OK) {
    tarn__free(p);
    return status;
  }
  p->threads = memory;
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->added, NULL);
  pthread_cond_init(&p->done, NULL);
  start_threads(p, threads - 1);
  *pool = p;
  return TARN_STATUS_OK;
}

void tarn__encode_pool_close(tarn__encode_pool **pool) {
  tarn__encode_pool *p = *pool;
  if (!p) return;
  pthread_mutex_lock(&p->lock);
  p->stopped = true;
  pthread_cond_broadcast(&p->added);
  pthread_mutex_unlock(&p->lock);
  for (int t = 0; t < p->started; t++) pthread_join(p->threads[t], NULL);
  pthread_cond_destroy(&p->done);
  pthread_cond_destroy(&p->added);
  pthread_mutex_destroy(&p->lock);
  tarn__free(p->threads);
  tarn__free(p);
  *pool = NULL;
}

void tarn__encode_pool_add(tarn__encode_pool *p, tarn__encode_job *job) {
  pthread_mutex_lock(&p->lock);
  job->next = NULL;
  job->state = TARN__JOB_WAITS;
  if (p->last)
    p->last->next = job;
  else
    p->first = job;
  p->last = job;
  pthread_cond_signal(&p->added);
  pthread_mutex_unlock(&p->lock);
}

void tarn__encode_pool_wait(tarn__encode_pool *p, tarn__encode_job *job) {
  pthread_mutex_lock(&p->lock);
  while (job->state != TARN__JOB_DONE) {
    if (p->first)
      run_first(p);
    else
      pthread_cond_wait(&p->done, &p->lock);
  }
  pthread_mutex_unlock(&p->lock);
}

void tarn__encode_pool_cancel(tarn__encode_pool *p, tarn__encode_job *job) {
  pthread_mutex_lock(&p->lock);
  if (job->state == TARN__JOB_WAITS) {
    tarn__encode_job *before = NULL;
    for (tarn__encode_job *at = p->first; at != job; at = at->next) before = at;
    if (before)
      before->next = job->next;
    else
      p->first = job->next;
    if (p->last == job) p->last = before;
    job->state = TARN__JOB_NONE;
  }
  while (job->state == TARN__JOB_RUNS) pthread_cond_wait(&p->done, &p->lock);
  pthread_mutex_unlock(&p->lock);
}
