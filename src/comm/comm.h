// Ranks: the processes, or threads, that train one model together. A communicator is an entry of a table (comm.c) with
// its name and its functions; no other code knows which one is in use. `self` is one rank.
//
// Requirements on a communicator:
//   - A call of one rank completes when all ranks have made the same call in the same order. Sums have the same bits on
//     every rank, and for every run with the same number of ranks: the order of additions depends on nothing else.
//   - A rank that cannot continue calls tarn__comm_fail(). From then on every call fails on every rank with its status
//     and message, including calls that wait, so no rank waits for one that has left. Calls that all ranks have made
//     stay completed.
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

// Traffic so far, of one rank. The payload of a call is its array, counted once, in the format in which it is sent, by
// whatever route. One rank sends nothing.
typedef struct tarn__comm_traffic {
  int64_t summed, gathered;  // bytes of payload: of sums, and of gathered arrays
  int64_t sent;              // all bytes that this rank has sent to others
  double waited;             // seconds spent waiting until the last rank had made the same calls
} tarn__comm_traffic;

// Consecutive elements to be summed or gathered, in the host's memory.
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

// The position of comm_sums.c in the elements of a rank.
typedef struct tarn__comm_walk {
  tarn__comm_span whole;  // consecutive elements
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
  // The next two send from `room`, the send buffer, and are not called with one rank. In the room of rank s the bytes
  // for r begin at r * stride, bytes[me] long: this rank reads them at pieces[s], for every s but its own.
  tarn_status (*exchange)(tarn__comm *comm, const int64_t *bytes, size_t stride);
  // In the room of rank s its part begins at s * stride, bytes[s] long: this rank reads it at pieces[s], even its own.
  tarn_status (*spread)(tarn__comm *comm, const int64_t *bytes, size_t stride);
  tarn_status (*sum_doubles)(tarn__comm *comm, double *values, int64_t count);
  tarn_status (*gather)(tarn__comm *comm, void *all, const void *own, size_t bytes);
  tarn_status (*broadcast)(tarn__comm *comm, int root, void *data, size_t bytes);
  tarn_status (*barrier)(tarn__comm *comm);
  void (*patient)(tarn__comm *comm, bool is);  // may be NULL
  bool (*fail)(tarn__comm *comm, tarn_status status, const char *line);
} tarn__comm_kind;

// An entry appends its own state.
struct tarn__comm {
  const tarn__comm_kind *kind;
  int rank, size;               // this rank, from 0; number of ranks
  const tarn__member *members;  // [size], for messages; NULL if all ranks are one process
  tarn__watch *watch;           // monitors the others; NULL: none
  bool apart;                   // ranks communicate over a link, which is busy while their processors are not
  bool failed;                  // a call has failed, because of another rank or the link to it
  tarn__comm_traffic traffic;
  // With several ranks. The contents of a room, and the data at `pieces`, stay valid until the next call but one of
  // exchange or spread has begun, while others read it: these two alternate between the rooms.
  void *room[2];        // send buffers,
  size_t room_bytes;    // equal on all ranks
  int turn;             // the room of the next call
  const void **pieces;  // [size]
  // [size] each, for comm_sums.c.
  int64_t *counts, *bytes;
  tarn__comm_walk *walks;
};

// Records the outcome of a call; for the files of this folder.
static inline tarn_status tarn__comm_note(tarn__comm *comm, tarn_status status) {
  tarn__watch_leave(comm->watch);
  comm->failed = comm->failed || status != TARN_STATUS_OK;
  return status;
}

// Whether it sums in the memory of a device, without a copy in host memory.
static inline bool tarn__comm_reaches(const tarn__comm *comm, const tarn__device *device) {
  return comm->kind->reaches && comm->kind->reaches(comm, device);
}

// A single rank; the processes that mpirun or srun started together; these with a card each.
extern const tarn__comm_kind tarn__comm_self, tarn__comm_mpi, tarn__comm_nccl;

// Opens the communicator of that name; NULL: mpi if the process was started together with others (launcher.h), else
// self. Fails with USAGE, naming the nearest one, if it is not built in, and if mpi and the launcher do not fit
// together; with UNSUPPORTED if the module of the MPI cannot be loaded; with IO if MPI fails.
tarn_status tarn__comm_open(tarn__comm **comm, const char *name) TARN_CHECKED;
void tarn__comm_close(tarn__comm **comm);

// The beginning of a rank's part in an array of `count` elements divided evenly at cache lines; that of `size` is
// `count`.
int64_t tarn__comm_part(int64_t count, int size, int rank);

// Sums the arrays of all ranks, element by element; every rank gets the sums. The second one chooses the transfer
// format: in BF16 values are rounded to nearest, added in fp32, and the sums are rounded again, equally on all ranks.
// One rank rounds nothing. Values are in the host's memory, here and below.
tarn_status tarn__comm_sum(tarn__comm *comm, float *values, int64_t count) TARN_CHECKED;
tarn_status tarn__comm_sum_as(tarn__comm *comm, float *values, int64_t count, tarn_precision travel) TARN_CHECKED;
// The two halves of a sum. Rank r owns the elements [first[r], first[r + 1]), possibly none; `first` is equal on all
// ranks. After the first half it has their sums, and the others' elements unchanged; after the second all ranks have
// all parts, with elements of `size` bytes.
tarn_status tarn__comm_reduce_scatter(tarn__comm *comm, float *values, const int64_t *first,
                                      tarn_precision travel) TARN_CHECKED;
tarn_status tarn__comm_all_gather(tarn__comm *comm, void *values, const int64_t *first, size_t element) TARN_CHECKED;
// The first half, or with `gathers` both, of scattered floats: first the numbers[0] spans of rank 0, then those of rank
// 1, and so on. Ranks have equally many elements, at different addresses. With a `place` that is not the host, the sums
// are made in the order of its stream; `values` may then be NULL if the communicator reaches the device's memory.
tarn_status tarn__comm_sum_spans(tarn__comm *comm, const tarn__comm_place *place, const tarn__comm_span *spans,
                                 const int64_t *numbers, tarn_precision travel, bool gathers) TARN_CHECKED;
tarn_status tarn__comm_sum_doubles(tarn__comm *comm, double *values, int64_t count) TARN_CHECKED;
// Whether *is holds on any rank.
tarn_status tarn__comm_any(tarn__comm *comm, bool *is) TARN_CHECKED;
// The bytes of all ranks, in order: all [size, bytes].
tarn_status tarn__comm_gather(tarn__comm *comm, void *all, const void *own, size_t bytes) TARN_CHECKED;
// Copies the bytes of rank 0, or of rank `root`, to all.
tarn_status tarn__comm_broadcast(tarn__comm *comm, void *data, size_t bytes) TARN_CHECKED;
tarn_status tarn__comm_broadcast_from(tarn__comm *comm, int root, void *data, size_t bytes) TARN_CHECKED;
// "rank 2 on node3", or "rank 2" if all ranks are one process.
enum { TARN__RANK_TEXT = 96 };
const char *tarn__comm_rank_text(const tarn__comm *comm, int rank, char text[TARN__RANK_TEXT]);
// How to continue after the loss of a rank ("tarn train --resume RUN"), for the message. Copied.
void tarn__comm_go_on(tarn__comm *comm, const char *text);
// Whether calls of this thread yield the processor while they wait, which takes a little longer. Initially not.
void tarn__comm_patient(tarn__comm *comm, bool is);
// Waits for all ranks.
tarn_status tarn__comm_barrier(tarn__comm *comm) TARN_CHECKED;
// This rank leaves with `status`, which is not OK, and the message of its last failure. The first failure stays.
// Messages of ranks other than 0 name rank and host. Returns whether another rank prints the message, so this one need
// not: rank 0, if it has received this failure or the first one, or the rank that detected a lost one.
bool tarn__comm_fail(tarn__comm *comm, tarn_status status);

#endif
