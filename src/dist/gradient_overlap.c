#include "dist/gradient_overlap.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "device/transfer.h"

struct tarn__gradient_overlap {
  tarn__gradient_sum *sum;
  tarn__gradient_gate gate;
  bool running;
  double waited;  // the communicator's waiting time before, in seconds
  pthread_t thread;
  pthread_mutex_t lock;  // of what follows
  pthread_cond_t changed;
  size_t nodes;  // finished nodes
  bool over;     // all have finished, or the thread must end
  bool stopped;  // the latter
  // The thread's outcome.
  tarn_status status;
  char line[1024];
};

// Called by the thread: whether nodes [0, nodes) have run.
static bool wait_for(void *user, size_t nodes) {
  tarn__gradient_overlap *o = user;
  pthread_mutex_lock(&o->lock);
  while (o->nodes < nodes && !o->over) pthread_cond_wait(&o->changed, &o->lock);
  const bool go_on = !o->stopped;
  pthread_mutex_unlock(&o->lock);
  return go_on;
}

bool tarn__gradient_overlap_possible(const tarn__model *model) {
  return model->helper_count == 0 && tarn__device_is_host(model->device);
}

tarn_status tarn__gradient_overlap_open(tarn__gradient_overlap **overlap, tarn__gradient_sum *sum) {
  *overlap = NULL;
  const tarn__model *model = sum->model;
  if (sum->comm->size == 1 || !sum->comm->apart || !tarn__gradient_overlap_possible(model)) return TARN_STATUS_OK;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **overlap + model->param_count * sizeof(size_t)));
  *overlap = memory;
  **overlap = (tarn__gradient_overlap){.sum = sum};
  (*overlap)->gate = (tarn__gradient_gate){.wait = wait_for, .user = memory, .last = (size_t *)(void *)(*overlap + 1)};
  pthread_mutex_init(&(*overlap)->lock, NULL);
  pthread_cond_init(&(*overlap)->changed, NULL);
  return TARN_STATUS_OK;
}

void tarn__gradient_overlap_close(tarn__gradient_overlap **overlap) {
  if (!*overlap) return;
  tarn__gradient_overlap_stop(*overlap);
  pthread_cond_destroy(&(*overlap)->changed);
  pthread_mutex_destroy(&(*overlap)->lock);
  tarn__free(*overlap);
  *overlap = NULL;
}

static void *run(void *user) {
  tarn__gradient_overlap *o = user;
  tarn__comm_patient(o->sum->comm, true);
  o->status = tarn__gradient_sum_through(o->sum, &o->gate);
  tarn__comm_patient(o->sum->comm, false);
  if (o->status != TARN_STATUS_OK) snprintf(o->line, sizeof o->line, "%s", tarn_error_message());
  return NULL;
}

// The number of the last node that adds to each gradient, from 1; 0: none.
static void find_last(const tarn__gradient_overlap *o, const tarn__graph *graph) {
  const tarn__model *model = o->sum->model;
  for (size_t i = 0; i < model->param_count; i++) {
    o->gate.last[i] = 0;
    model->params[i]->training.last = i;
  }
  for (size_t n = 0; n < graph->node_count; n++)
    for (int k = 0; k < TARN__MAX_PARAM_GRADS; k++)
      if (graph->nodes[n]->dparam[k]) o->gate.last[graph->nodes[n]->dparam[k]->training.last] = n + 1;
}

tarn_status tarn__gradient_overlap_begin(void *overlap, const tarn__graph *graph) {
  tarn__gradient_overlap *o = overlap;
  find_last(o, graph);
  tarn__gradient_sum_begin(o->sum, &o->gate);
  o->waited = o->sum->comm->traffic.waited;
  o->nodes = 0;
  o->over = o->stopped = false;
  o->status = TARN_STATUS_OK;
  // Signals except SIGBUS (base/map.h) are left to the training thread.
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, SIGBUS);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(&o->thread, NULL, run, o);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  TARN_REQUIRE(failed == 0, MEMORY, "a thread for the sums over ranks cannot be started");
  o->running = true;
  return TARN_STATUS_OK;
}

void tarn__gradient_overlap_ran(void *overlap, size_t nodes) {
  tarn__gradient_overlap *o = overlap;
  pthread_mutex_lock(&o->lock);
  o->nodes = nodes;
  pthread_cond_signal(&o->changed);
  pthread_mutex_unlock(&o->lock);
}

static void end(tarn__gradient_overlap *o, bool stops) {
  pthread_mutex_lock(&o->lock);
  o->over = true;
  o->stopped = stops;
  pthread_cond_signal(&o->changed);
  pthread_mutex_unlock(&o->lock);
  pthread_join(o->thread, NULL);
  o->running = false;
}

tarn_status tarn__gradient_overlap_finish(tarn__gradient_overlap *o) {
  if (!o->running) return tarn__gradient_sum_run(o->sum);
  double *waited = &o->sum->comm->traffic.waited;
  const double begun = tarn__seconds();
  end(o, false);
  const double seconds = tarn__seconds() - begun;
  if (*waited - o->waited > seconds) *waited = o->waited + seconds;
  return o->status == TARN_STATUS_OK ? TARN_STATUS_OK : tarn__fail(o->status, "%s", o->line);
}

void tarn__gradient_overlap_stop(tarn__gradient_overlap *o) {
  if (o && o->running) end(o, true);
}
