// A queue, for the files that share it: queue_open.c, queue_check.c, queue_body.c, queue_twins.c, queue_state.c,
// queue_run.c, queue_commit.c.
#ifndef TARN_SWEEP_QUEUE_MEMORY_H
#define TARN_SWEEP_QUEUE_MEMORY_H

#include <limits.h>
#include <sys/types.h>

#include "base/hash.h"
#include "base/memory.h"
#include "sweep/queue_choose.h"
#include "sweep/spec.h"
#include "tarn/lab/queue.h"

enum { TARN__QUEUE_TEXT = 512 };

// A folder of records, its sweep, and what is known of its runs.
typedef struct tarn__queue_sweep {
  tarn_queue_sweep *public;
  tarn_sweep *outline;                       // of the description; NULL: it cannot be read
  char *file;                                // the description, as an absolute path
  char *runs;                                // OUTPUT/NAME/runs
  tarn__queue_state *states;                 // (variants, seeds)
  double *seconds;                           // (variants, seeds) left
  tarn_sequential_verdict *verdicts;         // (variants)
  bool *unaffordable;                        // (variants)
  bool *retried;                             // (variants, seeds) runs that this queue has begun
  uint64_t *keys;                            // (variants, seeds) of description, seed and test; 0: none is like it
  uint64_t *files;                           // (variants) of the files for validation and test; 0: not all are there
  bool *bodies;                              // (variants, seeds) other runs begin with their weights
  bool *recorded;                            // (variants, seeds) finished by this version, and tested if they are
  char (*data)[TARN__HASH_TEXT];             // (variants) of the training data, by the records; "": not known
  const struct tarn__queue_sweep **sources;  // (variants, seeds) whose records have the run; NULL: none has
  tarn_queue_comparison *comparisons;
  char (*words)[TARN__QUEUE_TEXT];  // (comparisons)
  double *forecast;                 // (variants) seconds of a run before any is recorded; 0: not known
  uint64_t seen;                    // of the records when they were read
  int64_t running;                  // runs at work
  int failures;                     // in a row
  bool unrecorded;                  // runs are over that could not be recorded yet
  double unread_since;              // on the clock: the records cannot be read; 0: they can
  char awaited[PATH_MAX];           // tarn_queue_sweep.awaited
  int lock;
} tarn__queue_sweep;

// A process that does a run.
typedef struct tarn__queue_job {
  pid_t pid;  // 0: none
  size_t sweep, variant, seed;
  double begun, seconds_before;  // on the clock; of training time
} tarn__queue_job;

struct tarn__queue_memory {
  tarn_queue public;
  tarn_queue_options options;
  tarn__arena arena;
  tarn_queue_sweep *views;
  tarn__queue_sweep *sweeps;
  tarn__queue_lane *lanes;
  tarn__queue_job *jobs;  // (places)
  size_t places;
  int cores;
  double until;          // on the clock; INFINITY: no budget
  double wall, trained;  // seconds of the runs done here, and of their training
  char reason[2 * TARN__QUEUE_TEXT];
  bool stopping, signalled;
  sig_atomic_t saves;
};

void tarn__queue_tell(const struct tarn__queue_memory *q, tarn_queue_event_kind kind, size_t sweep, const char *variant,
                      int64_t seed, const char *text);
// Nothing more is done for a sweep: for this reason, which it has from now on.
tarn_status tarn__queue_leave(struct tarn__queue_memory *q, size_t sweep, const char *reason) TARN_CHECKED;
// A path below the working folder of a sweep.
tarn_status tarn__queue_path(char path[PATH_MAX], const tarn__queue_sweep *sweep, const char *name) TARN_CHECKED;

// queue_check.c: whether the data of a sweep are there, and what its trainings will take. Else it has a problem.
tarn_status tarn__queue_check(struct tarn__queue_memory *q, size_t sweep) TARN_CHECKED;

// queue_body.c: which runs others begin with, when all sweeps are open; and which wait for another training, as things
// stand.
tarn_status tarn__queue_take_bodies(struct tarn__queue_memory *q) TARN_CHECKED;
tarn_status tarn__queue_await(struct tarn__queue_memory *q, size_t sweep) TARN_CHECKED;

// queue_twins.c: what identifies the runs of a sweep; and which ones others record, or have at work, as things stand.
tarn_status tarn__queue_take_keys(tarn__queue_sweep *sweep) TARN_CHECKED;
tarn_status tarn__queue_twins(struct tarn__queue_memory *q, size_t sweep) TARN_CHECKED;

// queue_state.c: reads the records of a sweep, if they have changed, and tells what follows for its comparisons.
tarn_status tarn__queue_read(struct tarn__queue_memory *q, size_t sweep, bool tell) TARN_CHECKED;
// What the budget still allows, and the next run.
tarn_status tarn__queue_next(struct tarn__queue_memory *q, tarn__queue_pick *pick, bool *found) TARN_CHECKED;

// queue_commit.c: commits the records of a sweep to git, and tells whether it could be done.
tarn_status tarn__queue_commit(struct tarn__queue_memory *q, size_t sweep, const char *what) TARN_CHECKED;

#endif
