// What the module of an MPI offers (mpi_module.c): the few calls that communicator `mpi` is made of (comm_mpi.c). Open
// MPI and MPICH differ in their binary interfaces, so the calls are compiled once for each and loaded when they are
// asked for; a program that never asks needs neither. Plain C on both sides: nothing of the library is called back.
//
// Every rank makes the same calls in the same order with the same sizes; a rank that cannot go on says so in the status
// word that each of the library's calls begins with (comm_mpi.c), so no call is ever left waiting; one that waits for a
// rank that is lost gives up, and from then on every one fails. MPI may still read and write the memory of a call that
// was given up: gather and broadcast hand it memory of the module, for the others see `leave`. Calls come from one
// thread at a time, beats from another one. A call that fails in MPI returns MPI's message, in memory of the module;
// NULL: it went well.
#ifndef TARN_COMM_MPI_MODULE_H
#define TARN_COMM_MPI_MODULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Both sides must mean the same by it: raised with each change of the structure.
enum { TARN__MPI_INTERFACE = 5 };

typedef struct tarn__mpi_module {
  int interface;        // TARN__MPI_INTERFACE
  const char *library;  // "Open MPI 4.1.4", for messages
  // Initialises MPI for the whole process, the first time, and joins all processes that were started together.
  const char *(*join)(int *rank, int *size);
  // Ends a communicator of join. MPI itself is ended as the process exits. Returns whether MPI is done with what
  // exchange, spread and beat were given; if not, because a call was given up, that memory must stay until the process
  // ends.
  bool (*leave)(void);
  // all [size, bytes] <- own [bytes] of each rank, in their order.
  const char *(*gather)(void *all, const void *own, size_t bytes);
  // The bytes of rank `root` are everyone's.
  const char *(*broadcast)(int root, void *data, size_t bytes);
  // What begins at r * stride of `out`, bytes[r] long, goes to rank r. This one, `me`, gets bytes[me] of each of the
  // others: those of rank s at in + s * bytes[me].
  const char *(*exchange)(void *in, const void *out, const int64_t *bytes, size_t stride, int me);
  // The bytes[r] of each rank r are everyone's, at in + r * stride; those of this one are at `own`.
  const char *(*spread)(void *in, const void *own, const int64_t *bytes, size_t stride, int me);
  // From now on calls that wait give up as soon as *lost is not 0; NULL: none does. Once one has, MPI is never ended,
  // because its end waits for all ranks.
  void (*heed)(const atomic_int *lost);
  // Small messages beside the calls: sends own [TARN__MPI_BEAT] (NULL: nothing) to a rank, unless the one before is
  // still on its way (`sent`: whether it did), and copies the newest that has come from there to newest
  // [TARN__MPI_BEAT]; `came`: whether one did. `room` [room_bytes] is of this pair of ranks, zero at first.
  const char *(*beat)(void *room, int rank, const void *own, bool *sent, void *newest, bool *came);
  // Ends the beats of a pair; the last one that was sent still arrives.
  void (*end_beats)(void *room);
  size_t room_bytes;
  // Whether this thread gives its processor away at once while it waits in the calls above.
  void (*patient)(bool is);
} tarn__mpi_module;

enum { TARN__MPI_BEAT = 32 };  // bytes

// The one name that a module exports.
#define TARN__MPI_SYMBOL "tarn_mpi_module"

#endif
