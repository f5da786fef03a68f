// Ranks: the processes that mpirun or srun started together (docs/ranks.md), where they share a piece of work. Each of
// them opens a tarn_ranks, gives it to what it opens for the work (`ranks` in the options of translators, language
// models, classifiers and tests), and makes the same calls with the same arguments. Rank 0 reads the input and has the
// results, and only its sinks are called; the others compute their part and return when rank 0 has finished. Results
// are those of one rank.
//
// A rank that cannot go on says so with tarn_ranks_leave(), because the others would wait for it otherwise; their calls
// then fail as its call did. Training handles its ranks itself (tarn/train.h).
//
// The first communicator that is opened on MPI initialises MPI for the whole process: the module of that MPI registers
// MPI_Finalize() with atexit() and stays loaded. A program that has called MPI_Init_thread() itself ends MPI itself,
// but not after a rank was lost: MPI_Finalize() would wait for it forever, and the program must end without.
#ifndef TARN_RANKS_H
#define TARN_RANKS_H

#include <stdbool.h>

#include "tarn/export.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// The number of processes that mpirun or srun started together, this one included, according to its environment; 1: it
// was started alone.
TARN_API int tarn_ranks_started(void);

typedef struct tarn_ranks tarn_ranks;

// `comm` names the communicator: "self", this process alone, or "mpi". NULL: mpi where this process was started
// together with others, else self. Fails with USAGE (no such communicator, or it does not fit how the process was
// started), UNSUPPORTED (the module of the MPI cannot be loaded), IO or MEMORY.
TARN_API tarn_status tarn_ranks_open(tarn_ranks **ranks, const char *comm) TARN_CHECKED;
TARN_API void tarn_ranks_close(tarn_ranks **ranks);

// This process's number, from 0, and the number of ranks. NULL stands for a process that is alone: 0 of 1.
TARN_API int tarn_ranks_rank(const tarn_ranks *ranks);
TARN_API int tarn_ranks_count(const tarn_ranks *ranks);

// This rank leaves with `status`, which must not be OK, and a line (NULL: that of its last failure). Waits until the
// others hear of it, in their next call. Returns true if another rank prints that line, so that this one need not.
TARN_API bool tarn_ranks_leave(tarn_ranks *ranks, tarn_status status, const char *line);
// Waits until all ranks are here (a barrier). Fails as the rank that failed did.
TARN_API tarn_status tarn_ranks_meet(tarn_ranks *ranks) TARN_CHECKED;

// Ends all processes that were started together with this one, because it cannot begin what the others do: its options
// are wrong, or a file is missing. It joins them as the function that it does not reach would have done, reports the
// failure, and leaves; that function then fails on each of the others, with this rank, its host and `line` as the
// message. `comm`: as in tarn_train_options. `status` must not be OK. Returns true if another rank prints the message.
// If not, this one has to print tarn_error_message(), which names rank and host where there are several processes that
// it could not join. In a process that was started alone, does nothing and returns false.
TARN_API bool tarn_ranks_fail(const char *comm, tarn_status status, const char *line);

// To be called last, before a process ends that could not join the others (tarn_ranks_open() or the function that
// trains has failed): the launcher of MPICH would have them wait for it forever, and is asked to end all processes that
// it has started, this one included. So everything must be written before. Waits up to four seconds for the launcher.
// With other launchers, or where nothing has failed, does nothing. The library does not do so by itself, because only
// the program knows that it ends.
TARN_API void tarn_ranks_abandon(void);

#ifdef __cplusplus
}
#endif
#endif
