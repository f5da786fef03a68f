// What of a sweep was given to Slurm: the folder slurm/ beside the runs.
//
//   NAME.runs   the runs of one array job, a line each, VARIANT/seed-N: the first line is task 0. Written whole before
//               the job is submitted, whose name is NAME, so that whoever comes after a kill asks Slurm for it
//   NAME.sh     the script of the job
//   NAME-I.log  what task I said; it stays when the others go
//   options     the options of sbatch that the user gave last and Slurm took, a line each: for later jobs
//   cancelled   somebody has ended the jobs; who follows them stops
//
// NAME is tarn-SWEEP-TIME with the time in hexadecimal digits, so that names in their order are in that of time.
#ifndef TARN_SWEEP_SUBMISSIONS_H
#define TARN_SWEEP_SUBMISSIONS_H

#include "sweep/spec.h"

typedef struct tarn__submission {
  char name[96];
  size_t *runs;  // [count] of sweep->runs; SIZE_MAX: the sweep has it no more
  size_t count;
  bool alive;  // a task of it waits or runs; by tarn__submissions_ask()
} tarn__submission;

typedef struct tarn__submissions {
  tarn__submission *items;  // the oldest first
  size_t count, capacity;
} tarn__submissions;

// Reads what the folder holds; close it also after a failure.
tarn_status tarn__submissions_read(tarn__submissions *list, const tarn_sweep *sweep) TARN_CHECKED;
void tarn__submissions_close(tarn__submissions *list);
// Asks Slurm for the tasks of all submissions and writes them into the runs, whose `job` is NULL where there is none.
// alive[run] (may be NULL): a task that waits or runs has this run. Fails as tarn__slurm_list() does, and then nothing
// is changed.
tarn_status tarn__submissions_ask(tarn__submissions *list, tarn_sweep *sweep, bool *alive) TARN_CHECKED;
// Submits runs, at most TARN__SUBMISSION_RUNS, as one array job, and adds it to the list.
enum { TARN__SUBMISSION_RUNS = 1000 };  // Slurm's MaxArraySize is 1001 unless a site says otherwise
tarn_status tarn__submissions_add(tarn__submissions *list, tarn_sweep *sweep, const tarn_sweep_options *options,
                                  const size_t *runs, size_t count) TARN_CHECKED;
// Removes list and script of the submissions of which nothing is alive.
void tarn__submissions_prune(tarn__submissions *list, const tarn_sweep *sweep);

// The mark of a cancelled sweep.
tarn_status tarn__submissions_mark(const tarn_sweep *sweep, bool cancelled) TARN_CHECKED;
bool tarn__submissions_are_cancelled(const tarn_sweep *sweep);

#endif
