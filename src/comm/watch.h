// Looks after the other ranks while this one computes or waits: a thread beside the training sees at once when a
// process of the same machine dies, and by the beats between rank 0 and each other rank when one of another machine is
// silent, because it was stopped, its machine is gone or the link to it is cut. Whatever waits for others then ends: no
// MPI says by itself that a rank is missing.
//
// Once a turn, rank 0 and each other rank send each other a beat (a star: as many messages as ranks).
// Silence is counted in turns of the watch's own thread, so that a job that was halted as a whole (by a batch system,
// or with a laptop's lid) does not take everyone for dead when it goes on.
//
// A rank that lives but does not come is not lost: a long validation, a slow disk. Rank 0 then says by a warning for
// whom it waits.
#ifndef TARN_COMM_WATCH_H
#define TARN_COMM_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Which process a rank is.
typedef struct tarn__member {
  char host[64];   // for messages
  uint64_t place;  // equal for processes that can see each other by their numbers; 0: nobody knows
  int64_t pid;     // there
} tarn__member;

// This process. A container of its own is a place of its own.
void tarn__member_here(tarn__member *member);

// What a beat tells.
typedef struct tarn__beat {
  int64_t begun;    // calls that the rank has begun
  int64_t waits;    // 1 while it is in one
  int64_t lost;     // 1 + the rank that it knows to be lost; 0 for none
  int64_t leaving;  // 1 when it closes the communicator and sends no more
} tarn__beat;

typedef struct tarn__watch_setup {
  int rank, size;
  const tarn__member *members;  // [size]; the caller's, as long as the watch
  double turn;                  // seconds from one beat to the next
  double patience;              // seconds of silence after which a rank is lost; 0: nobody is
  // Sends `own` (NULL: nothing) to a rank, if what was sent before has left, which `sent` says, and takes what has come
  // from it: `newest` is the last beat, `came` whether there was one. Called by the watch's thread alone. Returns what
  // went wrong; NULL: nothing.
  const char *(*beat)(void *user, int rank, const tarn__beat *own, bool *sent, tarn__beat *newest, bool *came);
  void *user;
  // The caller's, 0 at first: becomes 1 + the rank that is lost, for those who wait to look at.
  atomic_int *lost;
} tarn__watch_setup;

typedef struct tarn__watch tarn__watch;

tarn_status tarn__watch_open(tarn__watch **watch, const tarn__watch_setup *setup) TARN_CHECKED;
// Tells the others that this rank leaves, unless one is lost.
void tarn__watch_close(tarn__watch **watch);

// A call begins, and has ended, in which the ranks wait for each other. NULL: nobody watches.
void tarn__watch_enter(tarn__watch *watch);
void tarn__watch_leave(tarn__watch *watch);
// How to go on, for the line that says that a rank is lost: "tarn train --resume RUN". Copied.
void tarn__watch_go_on(tarn__watch *watch, const char *text);
// The line of the lost rank; NULL as long as none is. One rank alone has said it to the receiver of messages
// (tarn/process.h, TARN_LOG_FAILURE), the others are to be silent.
const char *tarn__watch_line(const tarn__watch *watch);
// The same, of a process that has no way to the others any more: waits until it is known who is lost, or for so long
// that it would be.
const char *tarn__watch_await(const tarn__watch *watch);

#endif
