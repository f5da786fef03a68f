// Monitors the other ranks while this one computes or waits: a separate thread notices at once when a process of the
// same machine dies, and by heartbeats between rank 0 and each other rank when one on another machine is silent,
// because it was halted, its machine is down or the link is cut. Waiting calls then end: no MPI reports a missing rank
// by itself.
//
// Once per turn, rank 0 and each other rank exchange heartbeats (a star: as many messages as ranks).
// Silence is counted in turns of the watch's thread, so that a job that was halted as a whole (by a batch system, or by
// closing a laptop) does not take all ranks for dead when it continues.
//
// A rank that is alive but late is not lost: a long validation, a slow disk. Rank 0 then warns which rank it waits for.
#ifndef TARN_COMM_WATCH_H
#define TARN_COMM_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// The process of a rank.
typedef struct tarn__member {
  char host[64];   // for messages
  uint64_t place;  // equal for processes that can see each other by id; 0: unknown
  int64_t pid;     // there
} tarn__member;

// This process. A container is a separate place.
void tarn__member_here(tarn__member *member);

// The contents of a heartbeat.
typedef struct tarn__beat {
  int64_t begun;    // calls begun by the rank
  int64_t waits;    // 1 while it is in a call
  int64_t lost;     // 1 + a rank known to be lost; 0 for none
  int64_t leaving;  // 1 when it closes the communicator and sends no more
} tarn__beat;

typedef struct tarn__watch_setup {
  int rank, size;
  const tarn__member *members;  // [size]; the caller's, as long as the watch
  double turn;                  // seconds between heartbeats
  double patience;              // seconds of silence after which a rank is lost; 0: never
  // Sends `own` (NULL: nothing) to a rank, if the previous one has been sent (`sent`: whether it did), and receives
  // from it: `newest` is the last heartbeat, `came` whether there was one. Called only by the watch's thread. Returns
  // an error message; NULL: none.
  const char *(*beat)(void *user, int rank, const tarn__beat *own, bool *sent, tarn__beat *newest, bool *came);
  void *user;
  // The caller's, initially 0: becomes 1 + the lost rank, for waiting calls to check.
  atomic_int *lost;
} tarn__watch_setup;

typedef struct tarn__watch tarn__watch;

tarn_status tarn__watch_open(tarn__watch **watch, const tarn__watch_setup *setup) TARN_CHECKED;
// Announces to the others that this rank leaves, unless one is lost.
void tarn__watch_close(tarn__watch **watch);

// Marks the beginning and the end of a call in which ranks wait for each other. Accept NULL.
void tarn__watch_enter(tarn__watch *watch);
void tarn__watch_leave(tarn__watch *watch);
// How to continue, for the message about a lost rank: "tarn train --resume RUN". Copied.
void tarn__watch_go_on(tarn__watch *watch, const char *text);
// The message about the lost rank; NULL as long as none is. Only one rank has passed it to the receiver of messages
// (tarn/process.h, TARN_LOG_FAILURE); the others stay silent.
const char *tarn__watch_line(const tarn__watch *watch);
// The same for a process that can no longer reach the others: waits until the lost rank is known, or as long as that
// would take.
const char *tarn__watch_await(const tarn__watch *watch);

#endif
