// The interface of an MPI module (mpi_module.c): the few calls that communicator `mpi` needs (comm_mpi.c). Open MPI and
// MPICH differ in their binary interfaces, so the calls are compiled once for each and loaded on demand. Plain C on
// both sides, without callbacks into the library.
//
// Every rank makes the same calls in the same order with the same sizes; a rank that cannot continue says so in the
// status word at the beginning of each call of the library (comm_mpi.c), so no call is left waiting; a call that waits
// for a lost rank gives up, and from then on every call fails. MPI may still access the memory of an abandoned call:
// gather and broadcast use memory of the module, for the others see `leave`. Calls come from one thread at a time,
// heartbeats from another one. A call that fails in MPI returns MPI's message, in memory of the module; NULL: success.
#ifndef TARN_COMM_MPI_MODULE_H
#define TARN_COMM_MPI_MODULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Version of the structure, raised with each change.
enum { TARN__MPI_INTERFACE = 5 };

typedef struct tarn__mpi_module {
  int interface;        // TARN__MPI_INTERFACE
  const char *library;  // "Open MPI 4.1.4", for messages
  // Initialises MPI for the whole process, the first time, and joins all processes started together.
  const char *(*join)(int *rank, int *size);
  // Ends a communicator of join. MPI itself is finalised at process exit. Returns whether MPI is done with the memory
  // passed to exchange, spread and beat; if not, because a call was abandoned, that memory must stay until the process
  // ends.
  bool (*leave)(void);
  // all [size, bytes] <- own [bytes] of each rank, in order.
  const char *(*gather)(void *all, const void *own, size_t bytes);
  // Copies the bytes of rank `root` to all.
  const char *(*broadcast)(int root, void *data, size_t bytes);
  // Sends bytes[r] bytes from `out` + r * stride to rank r. This rank, `me`, gets bytes[me] from each other rank: those
  // of rank s at in + s * bytes[me].
  const char *(*exchange)(void *in, const void *out, const int64_t *bytes, size_t stride, int me);
  // Copies the bytes[r] bytes of each rank r to all, at in + r * stride; those of this rank are at `own`.
  const char *(*spread)(void *in, const void *own, const int64_t *bytes, size_t stride, int me);
  // From now on waiting calls give up as soon as *lost is not 0; NULL: never. After that MPI is not finalised, because
  // that waits for all ranks.
  void (*heed)(const atomic_int *lost);
  // Heartbeats, independent of the calls: sends own [TARN__MPI_BEAT] (NULL: nothing) to a rank, unless the previous one
  // is still in transit (`sent`: whether it was sent), and copies the newest received one to newest [TARN__MPI_BEAT];
  // `came`: whether there was one. `room` [room_bytes] belongs to this pair of ranks, initially zero.
  const char *(*beat)(void *room, int rank, const void *own, bool *sent, void *newest, bool *came);
  // Ends the heartbeats of a pair; the last one sent still arrives.
  void (*end_beats)(void *room);
  size_t room_bytes;
  // Whether this thread yields its processor at once while it waits in the calls above.
  void (*patient)(bool is);
} tarn__mpi_module;

enum { TARN__MPI_BEAT = 32 };  // bytes

// The only symbol that a module exports.
#define TARN__MPI_SYMBOL "tarn_mpi_module"

#endif
