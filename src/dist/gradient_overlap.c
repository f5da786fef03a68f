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
  tarn__device_stream *stream;  // of the sums
  tarn__device_event *ran;      // the newest node that completed a gradient; the sums come after it
  size_t nodes;                 // finished nodes, or nodes that the device has been given
  bool over;                    // all have finished, or the thread must end
  bool stopped;                 // the latter
  // The thread's outcome.
  tarn_status status;
  char line[1024];
};

// Called by the thread: whether nodes [0, nodes) have run.
static bool wait_for(void *user, size_t nodes) {
  tarn__gradient_overlap *o = user;
  pthread_mutex_lock(&o->lock);
  while (o->nodes < nodes && !o->over) pthread_cond_wait(&o->changed, &o->lock);
  bool go_on = !o->stopped;
  if (go_on) o->status = tarn__device_stream_await(o->sum->model->device, o->stream, o->ran);
  go_on = go_on && o->status == TARN_STATUS_OK;
  pthread_mutex_unlock(&o->lock);
  return go_on;
}

bool tarn__gradient_overlap_possible(const tarn__model *model) { return model->helper_count == 0; }

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
  TARN_TRY(tarn__device_stream_open(model->device, &(*overlap)->stream));
  return tarn__device_event_open(model->device, &(*overlap)->ran);
}

void tarn__gradient_overlap_close(tarn__gradient_overlap **overlap) {
  if (!*overlap) return;
  tarn__gradient_overlap_stop(*overlap);
  tarn__device_event_close((*overlap)->sum->model->device, (*overlap)->ran);
  tarn__device_stream_close((*overlap)->sum->model->device, (*overlap)->stream);
  pthread_cond_destroy(&(*overlap)->changed);
  pthread_mutex_destroy(&(*overlap)->lock);
  tarn__free(*overlap);
  *overlap = NULL;
}

static void *run(void *user) {
  tarn__gradient_overlap *o = user;
  tarn__comm_patient(o->sum->comm, true);
  tarn_status status = tarn__gradient_sum_through(o->sum, &o->gate);
  tarn__comm_patient(o->sum->comm, false);
  // The optimiser, on another stream, finds the sums.
  if (status == TARN_STATUS_OK) status = tarn__device_stream_synchronise(o->sum->model->device, o->stream);
  if (o->status == TARN_STATUS_OK) o->status = status;
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
  o->sum->stream = o->stream;
  o->status = TARN_STATUS_OK;
  // The sums come after the gradients of earlier batches.
  TARN_TRY(tarn__device_event_record(graph->device, o->ran, NULL));
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

// Whether a gradient is whole with the node of this number, from 1.
static bool completes(const tarn__gradient_overlap *o, size_t number) {
  bool is = false;
  for (size_t i = 0; i < o->sum->model->param_count && !is; i++) is = o->gate.last[i] == number;
  return is;
}

tarn_status tarn__gradient_overlap_ran(void *overlap, size_t nodes) {
  tarn__gradient_overlap *o = overlap;
  const bool records = o->ran && completes(o, nodes);
  pthread_mutex_lock(&o->lock);
  tarn_status status = TARN_STATUS_OK;
  if (records) status = tarn__device_event_record(o->sum->model->device, o->ran, NULL);
  o->nodes = nodes;
  pthread_cond_signal(&o->changed);
  pthread_mutex_unlock(&o->lock);
  return status;
}

static void end(tarn__gradient_overlap *o, bool stops) {
  pthread_mutex_lock(&o->lock);
  o->over = true;
  o->stopped = stops;
  pthread_cond_signal(&o->changed);
  pthread_mutex_unlock(&o->lock);
  pthread_join(o->thread, NULL);
  o->running = false;
  o->sum->stream = NULL;
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
