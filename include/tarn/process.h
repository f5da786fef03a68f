// Process-wide settings: receivers of messages and progress, devices, ranks, limits of models from files, and faults of
// mapped files.
#ifndef TARN_PROCESS_H
#define TARN_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Messages of the library to the user: progress and warnings. Nothing is printed unless the caller prints it.

// FAILURE: a rank is lost (docs/ranks.md). One rank reports it at once; then the functions that wait for the lost rank
// fail on all ranks.
typedef enum tarn_log_level { TARN_LOG_INFO, TARN_LOG_WARNING, TARN_LOG_FAILURE } tarn_log_level;

// Receives one message, without a newline. The text is valid during the call only. Called from the thread that called
// the library and, with several ranks, also from the thread that monitors the other ranks.
typedef void (*tarn_log_fn)(void *user, tarn_log_level level, const char *text);

// Sets the receiver for the whole process (default: none, messages are dropped). Not thread-safe; call it first.
TARN_API void tarn_log_set(tarn_log_fn fn, void *user);

// Progress of long work: reading, training a vocabulary, scoring, translating, validating, computing frozen weights,
// writing a model. The library displays nothing; it reports to the receiver set by the caller.

// One report. The texts are valid during the call.
typedef struct tarn_progress {
  const char *what;  // the work, in English: "translating"
  const char *unit;  // the unit of `done`, in the plural: "sentences"
  double done;       // units completed so far
  double share;      // of the work, 0 .. 1; NAN if its total is unknown (text from a pipe)
  double seconds;    // since the start of the work
  bool over;         // last report of this work; it need not be complete: it may have failed
} tarn_progress;

// Receives a report: at most ten per second, and a last one at the end if there was one before. Short work is reported
// as well; a program that displays progress may wait for `seconds` to grow. Called from any thread that does the work,
// but never from two at once. Must not call the library.
typedef void (*tarn_progress_fn)(void *user, const tarn_progress *progress);

// Sets the receiver for later work started by the calling thread (default and NULL: none). Each thread of a program has
// its own receiver, just as it has its own error message. Training reports through its own events (tarn/train.h); its
// validations are reported here as well.
TARN_API void tarn_progress_set(tarn_progress_fn fn, void *user);

// The devices built into the library, by name. "cpu" uses the best instruction set of the processor; "reference" is
// plain C, slow, for comparison.

// Selects the device for all models opened later. NULL, the initial state: the device named by the environment variable
// TARN_DEVICE or, if it is not set, the first that computes in the model's precision. Fails with USAGE for an unknown
// name; the message gives the nearest one and lists all. Opening a model in a precision that the device does not
// support fails with UNSUPPORTED. Must not be called while models are opened.
TARN_API tarn_status tarn_device_set(const char *name) TARN_CHECKED;

// The names, by index from 0; NULL past the last.
TARN_API const char *tarn_device_name(size_t index);

// Ranks: the processes that mpirun or srun started together (docs/ranks.md), when they share some work. Each rank opens
// a tarn_ranks, passes it to the objects that do the work (`ranks` in the options of translators, language models,
// classifiers and tests), and makes the same calls with the same arguments. Rank 0 reads the input, gets the results,
// and calls its sinks; the others compute their part and return when rank 0 has finished. The results equal those of
// one rank.
//
// A rank that cannot continue calls tarn_ranks_leave(), as the others would wait for it otherwise; their calls then
// fail with the same status. Training handles its ranks itself (tarn/train.h).
//
// Opening the first communicator on MPI initialises MPI for the whole process: the module of that MPI registers
// MPI_Finalize() with atexit() and stays loaded. A program that has called MPI_Init_thread() itself must call
// MPI_Finalize() itself, except after the loss of a rank: MPI_Finalize() would wait for it forever, so the program must
// exit without it.

// The number of processes that mpirun or srun started together, this one included, according to the environment; 1:
// started alone.
TARN_API int tarn_ranks_started(void);

typedef struct tarn_ranks tarn_ranks;

// `comm` names the communicator: "self", this process alone, or "mpi". NULL: mpi if this process was started together
// with others, else self. Fails with USAGE (unknown communicator, or one that does not fit how the process was
// started), UNSUPPORTED (the module of the MPI cannot be loaded), IO or MEMORY.
TARN_API tarn_status tarn_ranks_open(tarn_ranks **ranks, const char *comm) TARN_CHECKED;
TARN_API void tarn_ranks_close(tarn_ranks **ranks);

// The rank of this process, from 0, and the number of ranks. NULL stands for a single process: 0 of 1.
TARN_API int tarn_ranks_rank(const tarn_ranks *ranks);
TARN_API int tarn_ranks_count(const tarn_ranks *ranks);

// This rank leaves with `status`, which must not be OK, and a message (NULL: that of its last failure). Waits until the
// others receive it, in their next call. Returns true if another rank prints the message, so this one need not.
TARN_API bool tarn_ranks_leave(tarn_ranks *ranks, tarn_status status, const char *line);
// Waits for all ranks (a barrier). If a rank has failed, fails with its status.
TARN_API tarn_status tarn_ranks_meet(tarn_ranks *ranks) TARN_CHECKED;

// Ends all processes started together with this one when it cannot start the common work: its options are wrong, or a
// file is missing. It joins the others in place of the function that it does not reach, reports the failure, and
// leaves; that function then fails on each of the others, with this rank, its host and `line` as the message. `comm`:
// as in tarn_train_options. `status` must not be OK. Returns true if another rank prints the message. Otherwise this
// one has to print tarn_error_message(), which names rank and host if there are several processes that it could not
// join. In a process that was started alone, does nothing and returns false.
TARN_API bool tarn_ranks_fail(const char *comm, tarn_status status, const char *line);

// The last call of a process that could not join the others (tarn_ranks_open() or the training function has failed).
// MPICH's launcher would make the others wait for it forever, so it is asked to end all processes that it has started,
// this one included; everything must be written before. Waits up to four seconds for the launcher. Does nothing with
// other launchers, or without a failure. The library does not call this itself, because only the program knows when it
// exits.
TARN_API void tarn_ranks_abandon(void);

// Limits on the cost of a model from a file. A frozen layer is a line of text in a file but may need any amount of
// memory and time in a model: a checkpoint of a few kilobytes can demand a matrix of gigabytes that takes hours to
// compute.
//
// Therefore opening a model (tarn/translate.h, tarn/lm.h, tarn_checkpoint_export() and so on, and train.init_from of a
// training) first estimates the cost of its frozen values, and refuses models beyond the limits with TARN_STATUS_MEMORY
// or TARN_STATUS_DATA. Trained values are in the file, whose size bounds them. The limits do not apply to a training of
// a description: tarn_train_open() compares its plan with the available memory, and resuming a run computes what its
// description specifies.

typedef struct tarn_limits {
  // Limit on the arithmetic steps for the frozen values of one model; a processor does about one to five per
  // nanosecond, and a random draw counts as several. 0: no limit. [TARN_LIMITS_OPERATIONS]
  double max_operations;
  // Limit on the bytes of the computed values of one model, together with the memory used to compute them. 0: no limit
  // but the available memory. [TARN_LIMITS_MEMORY]
  double max_memory;
  // Called while the frozen values of `file` are computed, with the number of operations done. From 1e10 operations on
  // it is called at the start, with 0, and then at most about once per second; with fewer, only after two seconds. If
  // it was called at all, it is called at the end with the total. Calls do not overlap, but come from any thread. NULL:
  // only the progress reports. [NULL]
  void (*on_progress)(void *user, const char *file, double done, double operations);
  void *user;
} tarn_limits;

#define TARN_LIMITS_OPERATIONS 1e12
#define TARN_LIMITS_MEMORY 4e9

TARN_API void tarn_limits_default(tarn_limits *limits);
// Sets the limits for the whole process, as a copy (default: those of tarn_limits_default()). Not thread-safe; call it
// before opening models.
TARN_API void tarn_limits_set(const tarn_limits *limits);

// Files read through memory maps: data (tarn/data.h), checkpoints, caches of a training. Model files in bf16, INT8
// and INT4 stay mapped, and must not change, while what uses them is open: a translator, a language model or its
// generator, a classifier, the states of a model.
//
// If such a file is truncated or overwritten while it is read (`cp new.tarn train.tarn`), or its disk fails, the system
// raises SIGBUS, which ends the process. A library must not install process-wide handlers, so a program that wants an
// error message instead passes the fault to the library:
//
//   static void on_bus(int number, siginfo_t *info, void *context) {
//     if (!tarn_mapped_fault(info->si_addr)) signal(SIGBUS, SIG_DFL);  // repeats the access, which ends the process
//   }
//   sigaction(SIGBUS, &(struct sigaction){.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO}, NULL);
//
// No result computed after the fault is used: the library call that reads the file fails with TARN_STATUS_IO and names
// the file, a training saves the state from before the current update, and no output file is committed. Without a
// handler, a changed file is detected by its size and time, unless a fault ends the process first.

// For SIGBUS handlers: safe in a signal handler and on every thread. If the address is in a file mapped by the library,
// maps zeros over the rest of the file, marks the file as lost, and returns true: the access may be repeated. For any
// other address, does nothing and returns false.
TARN_API bool tarn_mapped_fault(const void *address);

#ifdef __cplusplus
}
#endif
#endif
