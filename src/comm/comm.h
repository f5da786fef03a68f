// Ranks: the processes, or threads, that train one model together. A communicator is an entry of a table (comm.c) with
// its name and how its ranks speak to each other; nobody else knows which one it is. `self` is one rank.
//
// What a training asks of a communicator:
//   - A call of one rank is answered when all ranks have made the same call in the same order. Sums are the same bits
//     on every rank, and the same bits for the same number of ranks: they are added in an order that depends on nothing
//     else.
//   - A rank that cannot go on says so with tarn__comm_fail(). From then on every call fails on every rank with its
//     status and its line, a call that waits included, so nobody waits for somebody who has left. A call that all had
//     made is not taken back.
#ifndef TARN_COMM_COMM_H
#define TARN_COMM_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct tarn__comm tarn__comm;

typedef struct tarn__comm_kind {
  const char *name;
  tarn_status (*open)(tarn__comm **comm);
  void (*close)(tarn__comm *comm);
  tarn_status (*sum)(tarn__comm *comm, float *values, int64_t count);
  tarn_status (*sum_doubles)(tarn__comm *comm, double *values, int64_t count);
  tarn_status (*gather)(tarn__comm *comm, void *all, const void *own, size_t bytes);
  tarn_status (*broadcast)(tarn__comm *comm, void *data, size_t bytes);
  tarn_status (*barrier)(tarn__comm *comm);
  void (*fail)(tarn__comm *comm, tarn_status status, const char *line);
} tarn__comm_kind;

// An entry puts its own state behind this.
struct tarn__comm {
  const tarn__comm_kind *kind;
  int rank, size;  // this one's, from 0; how many there are
  bool failed;     // a call has failed, because another rank or the way to it did
};

// One rank alone.
extern const tarn__comm_kind tarn__comm_self;

// Opens the communicator of that name. Fails with USAGE, and names the nearest one, if it is not built in.
tarn_status tarn__comm_open(tarn__comm **comm, const char *name) TARN_CHECKED;
void tarn__comm_close(tarn__comm **comm);

// Adds up the arrays of all ranks, element by element: each has the sums.
tarn_status tarn__comm_sum(tarn__comm *comm, float *values, int64_t count) TARN_CHECKED;
tarn_status tarn__comm_sum_doubles(tarn__comm *comm, double *values, int64_t count) TARN_CHECKED;
// Whether it is so on any rank.
tarn_status tarn__comm_any(tarn__comm *comm, bool *is) TARN_CHECKED;
// The bytes of all ranks, in their order: all [size, bytes].
tarn_status tarn__comm_gather(tarn__comm *comm, void *all, const void *own, size_t bytes) TARN_CHECKED;
// Rank 0's bytes are everyone's.
tarn_status tarn__comm_broadcast(tarn__comm *comm, void *data, size_t bytes) TARN_CHECKED;
// Waits until all ranks are here.
tarn_status tarn__comm_barrier(tarn__comm *comm) TARN_CHECKED;
// This rank leaves with `status`, which is not OK, and the line of its last failure. The first failure stays. Lines of
// other ranks than 0 say which one it was.
void tarn__comm_fail(tarn__comm *comm, tarn_status status);

#endif
