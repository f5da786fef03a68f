// Ranks: the processes, or threads, that train one model together. A communicator is an entry of a table (comm.c) with
// its name and how its ranks communicate; nobody else knows which one it is. `self` is one rank.
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
#include "comm/watch.h"
#include "device/transfer.h"
#include "tarn/config.h"

typedef struct tarn__comm tarn__comm;

// What has travelled so far, of one rank. The payload is what a call is asked to add or to hand round: its array,
// counted once, in the format that it travels in, whatever the way it takes. One rank sends nothing.
typedef struct tarn__comm_traffic {
  int64_t summed, gathered;  // bytes of payload: of sums, and of arrays whose parts were gathered
  int64_t sent;              // bytes that this rank has handed to others, everything counted
  double waited;             // seconds until the last rank had made the calls that this one had made
} tarn__comm_traffic;

// Elements in a row of what is summed or gathered, in the host's memory.
typedef struct tarn__comm_span {
  void *values;
  int64_t count;
  void *there;  // where they are in the memory of a device, of which `values` is to be a copy; NULL: only here
} tarn__comm_span;

// A device whose memory holds what is summed, and the stream that has written it and reads it next. NULL: the host.
typedef struct tarn__comm_place {
  const tarn__device *device;
  tarn__device_stream *stream;
} tarn__comm_place;

// Where comm_sums.c stands in the elements of a rank.
typedef struct tarn__comm_walk {
  tarn__comm_span whole;  // where they are in a row
  const tarn__comm_span *span;
  int64_t at;
} tarn__comm_walk;

typedef struct tarn__comm_kind {
  const char *name;
  // The values of sums are added in the order of the ranks. False: in another order, the same for the same number of
  // ranks.
  bool in_order;
  // Sums what lies in a device's memory, as tarn__comm_sum_spans(), and reads span.there alone. NULL, or false for the
  // device of a place: it sums in the host's memory.
  bool (*reaches)(const tarn__comm *comm, const tarn__device *device);
  tarn_status (*sum_there)(tarn__comm *comm, const tarn__comm_place *place, const tarn__comm_span *spans,
                           const int64_t *numbers, tarn_precision travel, bool gathers);
  tarn_status (*open)(tarn__comm **comm);
  void (*close)(tarn__comm *comm);
  // The next two send what lies in `room`, and are not called where there is one rank. In the room of rank s the bytes
  // for r begin at r * stride, bytes[me] long: pieces[s] is where this rank reads them, for every s but its own.
  tarn_status (*exchange)(tarn__comm *comm, const int64_t *bytes, size_t stride);
  // In the room of rank s its part begins at s * stride, bytes[s] long: pieces[s] is where this rank reads it, its own
  // too.
  tarn_status (*spread)(tarn__comm *comm, const int64_t *bytes, size_t stride);
  tarn_status (*sum_doubles)(tarn__comm *comm, double *values, int64_t count);
  tarn_status (*gather)(tarn__comm *comm, void *all, const void *own, size_t bytes);
  tarn_status (*broadcast)(tarn__comm *comm, int root, void *data, size_t bytes);
  tarn_status (*barrier)(tarn__comm *comm);
  void (*patient)(tarn__comm *comm, bool is);  // may be NULL
  bool (*fail)(tarn__comm *comm, tarn_status status, const char *line);
} tarn__comm_kind;

// An entry puts its own state behind this.
struct tarn__comm {
  const tarn__comm_kind *kind;
  int rank, size;               // this one's, from 0; how many there are
  const tarn__member *members;  // [size], for messages; NULL where all ranks are one process
  tarn__watch *watch;           // looks after the others; NULL: nobody does
  bool apart;                   // ranks reach each other over a link, which is busy while their processors are not
  bool failed;                  // a call has failed, because another rank or the way to it did
  tarn__comm_traffic traffic;
  // Of several ranks. What is in a room, and what `pieces` point to, stays until the next call but one of exchange or
  // spread has begun, though others read it: these two use the rooms in turn.
  void *room[2];        // memory that they send from,
  size_t room_bytes;    // equal on all ranks
  int turn;             // the room of the next one
  const void **pieces;  // [size]
  // [size] each, for comm_sums.c.
  int64_t *counts, *bytes;
  tarn__comm_walk *walks;
};

// What a call has come to: for the files of this folder.
static inline tarn_status tarn__comm_note(tarn__comm *comm, tarn_status status) {
  tarn__watch_leave(comm->watch);
  comm->failed = comm->failed || status != TARN_STATUS_OK;
  return status;
}

// One rank alone, and the processes that mpirun or srun started together.
extern const tarn__comm_kind tarn__comm_self, tarn__comm_mpi;

// Opens the communicator of that name; NULL: mpi where the process was started together with others (launcher.h), else
// self. Fails with USAGE, and names the nearest one, if it is not built in, and where mpi and the launcher do not fit
// together; with UNSUPPORTED if the module of the MPI cannot be loaded; with IO if MPI fails.
tarn_status tarn__comm_open(tarn__comm **comm, const char *name) TARN_CHECKED;
void tarn__comm_close(tarn__comm **comm);

// Where the part of a rank begins in an array of `count` elements that is cut evenly, a cache line at the finest; that
// of `size` is `count`.
int64_t tarn__comm_part(int64_t count, int size, int rank);

// Adds up the arrays of all ranks, element by element: each has the sums. The second says how values travel: in BF16
// they are rounded to the nearest, added in fp32, and the sums are rounded again, alike on all ranks. One rank rounds
// nothing. Values are in the host's memory, here and below.
tarn_status tarn__comm_sum(tarn__comm *comm, float *values, int64_t count) TARN_CHECKED;
tarn_status tarn__comm_sum_as(tarn__comm *comm, float *values, int64_t count, tarn_precision travel) TARN_CHECKED;
// The halves of it. Rank r has the elements [first[r], first[r + 1]), which are equal on all ranks; they may be none.
// After the first it has their sums, and the others' elements as they were; after the second all have all parts, of
// elements of so many bytes.
tarn_status tarn__comm_reduce_scatter(tarn__comm *comm, float *values, const int64_t *first,
                                      tarn_precision travel) TARN_CHECKED;
tarn_status tarn__comm_all_gather(tarn__comm *comm, void *values, const int64_t *first, size_t element) TARN_CHECKED;
// The first half, or with `gathers` both, of floats in many places: first the spans of rank 0, numbers[0] of them, then
// those of rank 1. Ranks have as many elements at other places. Where `place` is not the host, what lies there is
// summed there; it comes after all that was asked for on its stream, and what is asked for next comes after it.
tarn_status tarn__comm_sum_spans(tarn__comm *comm, const tarn__comm_place *place, const tarn__comm_span *spans,
                                 const int64_t *numbers, tarn_precision travel, bool gathers) TARN_CHECKED;
tarn_status tarn__comm_sum_doubles(tarn__comm *comm, double *values, int64_t count) TARN_CHECKED;
// Whether it is so on any rank.
tarn_status tarn__comm_any(tarn__comm *comm, bool *is) TARN_CHECKED;
// The bytes of all ranks, in their order: all [size, bytes].
tarn_status tarn__comm_gather(tarn__comm *comm, void *all, const void *own, size_t bytes) TARN_CHECKED;
// Rank 0's bytes are everyone's, or those of rank `root`.
tarn_status tarn__comm_broadcast(tarn__comm *comm, void *data, size_t bytes) TARN_CHECKED;
tarn_status tarn__comm_broadcast_from(tarn__comm *comm, int root, void *data, size_t bytes) TARN_CHECKED;
// "rank 2 on node3", and "rank 2" where all ranks are one process.
enum { TARN__RANK_TEXT = 96 };
const char *tarn__comm_rank_text(const tarn__comm *comm, int rank, char text[TARN__RANK_TEXT]);
// How to go on where a rank is lost ("tarn train --resume RUN"), for the line that says so. Copied.
void tarn__comm_go_on(tarn__comm *comm, const char *text);
// Whether calls of this thread leave the processor to others while they wait, which takes a little longer. Not at
// first.
void tarn__comm_patient(tarn__comm *comm, bool is);
// Waits until all ranks are here.
tarn_status tarn__comm_barrier(tarn__comm *comm) TARN_CHECKED;
// This rank leaves with `status`, which is not OK, and the line of its last failure. The first failure stays. Lines of
// other ranks than 0 say which one it was, and where it ran. Returns whether another one prints the line, so that this
// one need not: rank 0, where it has heard this failure or the first one, or whoever has seen that a rank is lost.
bool tarn__comm_fail(tarn__comm *comm, tarn_status status);

#endif
