// A communicator for tests: its ranks are threads of one process. A rank that waits too long fails, and so do all
// others, so a test that would hang ends with a message.
#ifndef TARN_TESTS_THREAD_RANKS_H
#define TARN_TESTS_THREAD_RANKS_H

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "comm/comm.h"

enum { MOST_RANKS = 4, PATIENCE_SECONDS = 120, RANK_ROOM = 1 << 14 };

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
  // Rooms are small, so that arrays travel in rounds.
  _Alignas(64) char rooms[2][RANK_ROOM], inbox[RANK_ROOM];
  const void *pieces[MOST_RANKS];
  int64_t counts[MOST_RANKS], bytes[MOST_RANKS];
  tarn__comm_walk walks[MOST_RANKS];
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
  const double begun = tarn__seconds();
  TARN_TRY(hub_meet(hub));
  comm->traffic.waited += tarn__seconds() - begun;
  for (int r = 0; r < comm->size; r++)
    TARN_REQUIRE(strcmp(hub->posts[r].call, call) == 0 && hub->posts[r].amount == amount, INTERNAL,
                 "rank %d calls %s of %zu, rank %d %s of %zu", comm->rank, call, amount, r, hub->posts[r].call,
                 hub->posts[r].amount);
  return TARN_STATUS_OK;
}

// What is in the rooms of others is read between two meetings, and copied, so that who comes first need not wait.
static inline tarn_status rank_take(tarn__comm *comm, const char *call, const int64_t *bytes, size_t stride, bool all) {
  rank_comm *own = (rank_comm *)comm;
  TARN_TRY(hub_post(comm, call, comm->room[comm->turn], stride));
  for (int r = 0; r < comm->size; r++) {
    const size_t from = stride * (size_t)(all ? r : comm->rank);
    memcpy(own->inbox + (size_t)r * stride, (const char *)own->hub->posts[r].data + from,
           (size_t)bytes[all ? r : comm->rank]);
    comm->pieces[r] = own->inbox + (size_t)r * stride;
  }
  return hub_meet(own->hub);
}

static inline tarn_status rank_exchange(tarn__comm *comm, const int64_t *bytes, size_t stride) {
  return rank_take(comm, "exchange", bytes, stride, false);
}

static inline tarn_status rank_spread(tarn__comm *comm, const int64_t *bytes, size_t stride) {
  return rank_take(comm, "spread", bytes, stride, true);
}

// Each rank adds up its share of the elements, in the order of the ranks, and writes the sums to all.
static inline tarn_status rank_sum_doubles(tarn__comm *comm, double *values, int64_t count) {
  rank_hub *hub = ((rank_comm *)comm)->hub;
  TARN_TRY(hub_post(comm, "sum", values, (size_t)count));
  const int64_t end = count * (comm->rank + 1) / comm->size;
  for (int64_t i = count * comm->rank / comm->size; i < end; i++) {
    double sum = ((double *)hub->posts[0].data)[i];
    for (int r = 1; r < comm->size; r++) sum += ((double *)hub->posts[r].data)[i];
    for (int r = 0; r < comm->size; r++) ((double *)hub->posts[r].data)[i] = sum;
  }
  return hub_meet(hub);
}

static inline tarn_status rank_gather(tarn__comm *comm, void *all, const void *own, size_t bytes) {
  rank_hub *hub = ((rank_comm *)comm)->hub;
  TARN_TRY(hub_post(comm, "gather", (void *)(uintptr_t)own, bytes));
  for (int r = 0; r < comm->size; r++) memcpy((char *)all + (size_t)r * bytes, hub->posts[r].data, bytes);
  return hub_meet(hub);
}

static inline tarn_status rank_broadcast(tarn__comm *comm, int root, void *data, size_t bytes) {
  rank_hub *hub = ((rank_comm *)comm)->hub;
  TARN_TRY(hub_post(comm, "broadcast", data, bytes));
  if (comm->rank != root) memcpy(data, hub->posts[root].data, bytes);
  return hub_meet(hub);
}

static inline tarn_status rank_barrier(tarn__comm *comm) {
  TARN_TRY(hub_post(comm, "barrier", NULL, 0));
  return hub_meet(((rank_comm *)comm)->hub);
}

static inline bool rank_fail(tarn__comm *comm, tarn_status status, const char *line) {
  rank_hub *hub = ((rank_comm *)comm)->hub;
  pthread_mutex_lock(&hub->lock);
  hub_note(hub, status, line);
  pthread_mutex_unlock(&hub->lock);
  return true;
}

// Opened and closed by the tests themselves.
static const tarn__comm_kind thread_ranks = {.name = "threads",
                                             .in_order = true,
                                             .exchange = rank_exchange,
                                             .spread = rank_spread,
                                             .sum_doubles = rank_sum_doubles,
                                             .gather = rank_gather,
                                             .broadcast = rank_broadcast,
                                             .barrier = rank_barrier,
                                             .fail = rank_fail};

static inline void hub_open(rank_hub *hub, rank_comm comms[MOST_RANKS], int size) {
  *hub = (rank_hub){.size = size};
  pthread_mutex_init(&hub->lock, NULL);
  pthread_cond_init(&hub->changed, NULL);
  for (int r = 0; r < size && r < MOST_RANKS; r++) {
    rank_comm *own = &comms[r];
    own->hub = hub;
    own->comm = (tarn__comm){.kind = &thread_ranks,
                             .rank = r,
                             .size = size,
                             .apart = size == 3,  // sums then begin before backward passes end
                             .room = {own->rooms[0], own->rooms[1]},
                             .room_bytes = RANK_ROOM,
                             .pieces = own->pieces,
                             .counts = own->counts,
                             .bytes = own->bytes,
                             .walks = own->walks};
  }
}

static inline void hub_close(rank_hub *hub) {
  pthread_cond_destroy(&hub->changed);
  pthread_mutex_destroy(&hub->lock);
}

#endif
