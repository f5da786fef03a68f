// What holds for the whole process in which the library runs: who receives its messages and its progress, the devices,
// the other ranks, the limits of models from files, and faults of mapped files.
#ifndef TARN_PROCESS_H
#define TARN_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Messages that the library wants a person to see: progress, warnings. Nothing is printed unless the caller prints it.

// FAILURE: a rank is lost (docs/ranks.md). One rank reports it at once; on all ranks the functions that wait for the
// lost one then fail.
typedef enum tarn_log_level { TARN_LOG_INFO, TARN_LOG_WARNING, TARN_LOG_FAILURE } tarn_log_level;

// Receives one message without a newline. The text is valid during the call only. Called from the thread that
// called into the library and, where several ranks work together, also from the one that watches the other ranks.
typedef void (*tarn_log_fn)(void *user, tarn_log_level level, const char *text);

// Sets the receiver for the whole process (default: none, messages are dropped). Not thread-safe; call it first.
TARN_API void tarn_log_set(tarn_log_fn fn, void *user);

// Progress of long work: reading, training a vocabulary, scoring, translating, validating, computing frozen weights,
// writing a model. The library shows nothing by itself; it reports to the receiver that the caller sets.

// One report. The texts are valid during the call.
typedef struct tarn_progress {
  const char *what;  // the work, in English: "translating"
  const char *unit;  // what is counted, in the plural: "sentences"
  double done;       // how many of them so far
  double share;      // of the work, 0 .. 1; NAN where its end is not known (text from a pipe)
  double seconds;    // since the work began
  bool over;         // this is the last report of this work, which need not be complete: it may have failed
} tarn_progress;

// Receives a report: at most ten times a second, and one at the end if there was one before. Short work is reported as
// well; a program that shows progress may wait for `seconds` to grow. Called from any thread that does the work, but
// never from two at once. Must not call the library.
typedef void (*tarn_progress_fn)(void *user, const tarn_progress *progress);

// Sets the receiver for work that the calling thread asks for from now on (default and NULL: none). Each thread of a
// program has its own receiver, as it has its own error message. Training reports through its own events
// (tarn/train.h); its validations are reported here as well.
TARN_API void tarn_progress_set(tarn_progress_fn fn, void *user);

// The devices that models compute on, as built into the library, by name. "cpu" uses the best instruction set of the
// processor; "reference" is plain C, slow, for comparison.

// Chooses the device of all models opened from now on. NULL, the initial state, takes the one that the environment
// variable TARN_DEVICE names or, if it is not set, the first that computes in the model's precision. Fails with USAGE
// for an unknown name; the message gives the nearest one and all that there are. Opening a model in a precision that
// the device does not support then fails with UNSUPPORTED. Must not be called while models are opened.
TARN_API tarn_status tarn_device_set(const char *name) TARN_CHECKED;

// The names, numbered from 0; NULL after the last.
TARN_API const char *tarn_device_name(size_t index);

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

// What a model from a file may cost before it runs. A frozen layer is a line of text in a file and any amount of memory
// and time in a model: a checkpoint of a few kilobytes can ask for a matrix of gigabytes that takes hours to compute.
//
// So opening a model (tarn/translate.h, tarn/lm.h, tarn/lm.h, tarn_checkpoint_export() and so on, and a
// training's train.init_from) counts first what its frozen values take, and refuses with TARN_STATUS_MEMORY or
// TARN_STATUS_DATA what goes beyond the limits. Trained values are in the file, whose size bounds them. The limits do
// not hold for a training of a description: tarn_train_open() compares its plan with the memory there is, and resuming
// a run computes what its description says.

typedef struct tarn_limits {
  // Steps of arithmetic that computing the frozen values of one model may take; a processor does about one to five in a
  // nanosecond, draws of random numbers count as several. 0: no limit. [TARN_LIMITS_OPERATIONS]
  double max_operations;
  // Bytes that the computed values of one model may take, together with what computing them takes meanwhile. 0: no
  // limit but the memory that is available. [TARN_LIMITS_MEMORY]
  double max_memory;
  // Called while the frozen values of `file` are computed: how many of the operations are done. From 1e10 operations on
  // it is called at the start, with 0, and then about once a second at most; with fewer, not before two seconds have
  // passed. If anything was told, it is called at the end with all of them. Calls do not overlap, but come from any
  // thread. NULL: only the reports of progress. [NULL]
  void (*on_progress)(void *user, const char *file, double done, double operations);
  void *user;
} tarn_limits;

#define TARN_LIMITS_OPERATIONS 1e12
#define TARN_LIMITS_MEMORY 4e9

TARN_API void tarn_limits_default(tarn_limits *limits);
// Sets the limits of the whole process, as a copy (default: those of tarn_limits_default()). Not thread-safe; call it
// before models are opened.
TARN_API void tarn_limits_set(const tarn_limits *limits);

// Files that are read through memory maps: data (tarn/data.h), checkpoints, caches of a training. Model files in bf16
// and INT8 stay mapped, and must stay as they are, for as long as a translator or the states of a model are open.
//
// When such a file is cut off or overwritten while it is read (`cp new.tarn train.tarn`), or its disk fails, the system
// raises SIGBUS, which ends a process. A library does not install handlers for the whole process, so a program that
// wants one clear line instead passes the fault to the library:
//
//   static void on_bus(int number, siginfo_t *info, void *context) {
//     if (!tarn_mapped_fault(info->si_addr)) signal(SIGBUS, SIG_DFL);  // repeats the access, which ends the process
//   }
//   sigaction(SIGBUS, &(struct sigaction){.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO}, NULL);
//
// Nothing that was computed after the fault is used: the call of the library that reads the file fails with
// TARN_STATUS_IO and names the file, a training saves the state from before the update it was making, and no output is
// put in its place. Without a handler a file that changed is noticed by its size and time, unless a fault ends the
// process first.

// For handlers of SIGBUS: safe in a signal handler and on every thread. If the address lies in a file that the library
// has mapped, puts zeros in place of the rest of the file, notes that the file is lost, and returns true: the access
// may be repeated. Returns false, and does nothing, for every other address.
TARN_API bool tarn_mapped_fault(const void *address);

#ifdef __cplusplus
}
#endif
#endif
