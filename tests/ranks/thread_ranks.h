// A communicator for tests: its ranks are threads of one process. Whoever waits too long fails, and with that all do,
// so that a test that would hang ends with a line.
#ifndef TARN_TESTS_THREAD_RANKS_H
#define TARN_TESTS_THREAD_RANKS_H

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "comm/comm.h"

enum { MOST_RANKS = 4, PATIENCE_SECONDS = 120 };

// What the ranks share.
typedef struct rank_hub {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int size, arrived;
  int64_t meetings;    // that all have come to
  tarn_status status;  // of the first failure
  char line[1024];
  struct {
    const char *call;
    void *data;
    size_t amount;
  } posts[MOST_RANKS];
} rank_hub;

typedef struct rank_comm {
  tarn__comm comm;
  rank_hub *hub;
} rank_comm;

static inline void hub_note(rank_hub *hub, tarn_status status, const char *line) {
  if (hub->status != TARN_STATUS_OK) return;
  hub->status = status;
  snprintf(hub->line, sizeof hub->line, "%s", line);
  pthread_cond_broadcast(&hub->changed);
}

// Waits for all. A meeting that all have come to stands, whatever fails after it.
static inline tarn_status hub_meet(rank_hub *hub) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += PATIENCE_SECONDS;
  pthread_mutex_lock(&hub->lock);
  const int64_t mine = hub->meetings;
  if (hub->status == TARN_STATUS_OK && ++hub->arrived == hub->size) {
    hub->arrived = 0;
    hub->meetings++;
    pthread_cond_broadcast(&hub->changed);
  }
  while (hub->meetings == mine && hub->status == TARN_STATUS_OK)
    if (pthread_cond_timedwait(&hub->changed, &hub->lock, &until) == ETIMEDOUT)
      hub_note(hub, TARN_STATUS_INTERNAL, "a rank has not come");
  const bool met = hub->meetings != mine;
  pthread_mutex_unlock(&hub->lock);
  return met ? TARN_STATUS_OK : tarn__fail(hub->status, "%s", hub->line);
}

// All bring something to one call, and look what the others have. It stays until they meet again.
static inline tarn_status hub_post(tarn__comm *comm, const char *call, void *data, size_t amount) {
  rank_hub *hub = ((rank_comm *)comm)->hub;
  hub->posts[comm->rank].call = call;
  hub->posts[comm->rank].data = data;
  hub->posts[comm->rank].amount = amount;
  TARN_TRY(hub_meet(hub));
  for (int r = 0; r < comm->size; r++)
    TARN_REQUIRE(strcmp(hub->posts[r].call, call) == 0 && hub->posts[r].amount == amount, INTERNAL,
                 "rank %d calls %s of %zu, rank %d %s of %zu", comm->rank, call, amount, r, hub->posts[r].call,
                 hub->posts[r].amount);
  return TARN_STATUS_OK;
}

// Each rank adds up its share of the elements, in the order of the ranks, and writes the sums to all.
#define RANK_SUM(name, type)                                                       \
  static inline tarn_status name(tarn__comm *comm, type *values, int64_t count) {  \
    rank_hub *hub = ((rank_comm *)comm)->hub;                                      \
    TARN_TRY(hub_post(comm, #name, values, (size_t)count));                        \
    const int64_t end = count * (comm->rank + 1) / comm->size;                     \
    for (int64_t i = count * comm->rank / comm->size; i < end; i++) {              \
      type sum = ((type *)hub->posts[0].data)[i];                                  \
      for (int r = 1; r < comm->size; r++) sum += ((type *)hub->posts[r].data)[i]; \
      for (int r = 0; r < comm->size; r++) ((type *)hub->posts[r].data)[i] = sum;  \
    }                                                                              \
    return hub_meet(hub);                                                          \
  }
RANK_SUM(rank_sum, float)
RANK_SUM(rank_sum_doubles, double)

static inline tarn_status rank_gather(tarn__comm *comm, void *all, const void *own, size_t bytes) {
  rank_hub *hub = ((rank_comm *)comm)->hub;
  TARN_TRY(hub_post(comm, "gather", (void *)(uintptr_t)own, bytes));
  for (int r = 0; r < comm->size; r++) memcpy((char *)all + (size_t)r * bytes, hub->posts[r].data, bytes);
  return hub_meet(hub);
}

static inline tarn_status rank_broadcast(tarn__comm *comm, void *data, size_t bytes) {
  rank_hub *hub = ((rank_comm *)comm)->hub;
  TARN_TRY(hub_post(comm, "broadcast", data, bytes));
  if (comm->rank > 0) memcpy(data, hub->posts[0].data, bytes);
  return hub_meet(hub);
}

static inline tarn_status rank_barrier(tarn__comm *comm) {
  TARN_TRY(hub_post(comm, "barrier", NULL, 0));
  return hub_meet(((rank_comm *)comm)->hub);
}

static inline void rank_fail(tarn__comm *comm, tarn_status status, const char *line) {
  rank_hub *hub = ((rank_comm *)comm)->hub;
  pthread_mutex_lock(&hub->lock);
  hub_note(hub, status, line);
  pthread_mutex_unlock(&hub->lock);
}

// Opened and closed by the tests themselves.
static const tarn__comm_kind thread_ranks = {.name = "threads",
                                             .sum = rank_sum,
                                             .sum_doubles = rank_sum_doubles,
                                             .gather = rank_gather,
                                             .broadcast = rank_broadcast,
                                             .barrier = rank_barrier,
                                             .fail = rank_fail};

static inline void hub_open(rank_hub *hub, rank_comm comms[MOST_RANKS], int size) {
  *hub = (rank_hub){.size = size};
  pthread_mutex_init(&hub->lock, NULL);
  pthread_cond_init(&hub->changed, NULL);
  for (int r = 0; r < size && r < MOST_RANKS; r++)
    comms[r] = (rank_comm){{.kind = &thread_ranks, .rank = r, .size = size}, hub};
}

static inline void hub_close(rank_hub *hub) {
  pthread_cond_destroy(&hub->changed);
  pthread_mutex_destroy(&hub->lock);
}

#endif
