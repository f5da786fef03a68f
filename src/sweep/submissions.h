// The Slurm submissions of a sweep: the folder slurm/ in the sweep's folder.
//
//   NAME.runs   the runs of one array job, one per line, VARIANT/seed-N: the first line is task 0. Written completely
//               before the job, whose name is NAME, is submitted, so that after a kill the next process can query Slurm
//   NAME.sh     the script of the job
//   NAME-I.log  the output of task I; kept when the other files are removed
//   options     the sbatch options last given by the user and accepted by Slurm, one per line: for later jobs
//   cancelled   the jobs were cancelled; a process that follows them stops
//
// NAME is tarn-SWEEP-TIME with the time in hexadecimal digits, so names sort by time.
#ifndef TARN_SWEEP_SUBMISSIONS_H
#define TARN_SWEEP_SUBMISSIONS_H

#include "sweep/spec.h"

typedef struct tarn__submission {
  char name[96];
  size_t *runs;  // [count] of sweep->runs; SIZE_MAX: no longer in the sweep
  size_t count;
  bool alive;  // one of its tasks is pending or running; set by tarn__submissions_ask()
} tarn__submission;

typedef struct tarn__submissions {
  tarn__submission *items;  // oldest first
  size_t count, capacity;
} tarn__submissions;

// Reads the folder; close it even after a failure.
tarn_status tarn__submissions_read(tarn__submissions *list, const tarn_sweep *sweep) TARN_CHECKED;
void tarn__submissions_close(tarn__submissions *list);
// Queries Slurm for the tasks of all submissions and stores them in the runs; `job` is NULL if there is none.
// alive[run] (may be NULL): a pending or running task has this run. Fails like tarn__slurm_list(), changing nothing.
tarn_status tarn__submissions_ask(tarn__submissions *list, tarn_sweep *sweep, bool *alive) TARN_CHECKED;
// Submits runs, at most TARN__SUBMISSION_RUNS, as one array job, and adds it to the list.
enum { TARN__SUBMISSION_RUNS = 1000 };  // Slurm's MaxArraySize is 1001 by default
tarn_status tarn__submissions_add(tarn__submissions *list, tarn_sweep *sweep, const tarn_sweep_options *options,
                                  const size_t *runs, size_t count) TARN_CHECKED;
// Removes list and script of the submissions without live tasks.
void tarn__submissions_prune(tarn__submissions *list, const tarn_sweep *sweep);

// Writes the mark of a cancelled sweep.
tarn_status tarn__submissions_mark(const tarn_sweep *sweep, bool cancelled) TARN_CHECKED;
bool tarn__submissions_are_cancelled(const tarn_sweep *sweep);

#endif
