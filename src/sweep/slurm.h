// Slurm, by its own programs: sbatch, squeue, scancel and scontrol, as they are on PATH.
#ifndef TARN_SWEEP_SLURM_H
#define TARN_SWEEP_SLURM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// A task of an array job as squeue lists it, ended ones too for as long as Slurm remembers them (MinJobAge).
typedef struct tarn__slurm_task {
  char name[96];   // of the job
  int64_t index;   // in its array
  char id[64];     // "123_4"
  char state[32];  // "PENDING", ...
  char text[96];   // the state, with the reason of one that waits: "PENDING (Resources)"
  bool alive;      // it waits, runs, or is about to end
} tarn__slurm_task;

// The variables SQUEUE_*, SCANCEL_* and SCONTROL_* of the environment, and those SBATCH_* that would make a job another
// one than the sweep takes it for, are not passed on.
//
// All calls fail with UNSUPPORTED where the program is not on PATH, and with IO and the last line that it said where it
// fails.

// The tasks of all jobs that have one of these names ("a,b"), in the order of squeue. The caller frees *tasks.
tarn_status tarn__slurm_list(tarn__slurm_task **tasks, size_t *count, const char *names) TARN_CHECKED;
// Submits a script; arguments are those of sbatch, NULL behind the last. `id` gets the number of the job. A failure
// with IO does not say that there is no job. USAGE: SBATCH_CLUSTERS names a cluster that the other programs do not ask.
tarn_status tarn__slurm_submit(char id[64], const char *const *arguments) TARN_CHECKED;
// Ends all jobs of a name that wait or run.
tarn_status tarn__slurm_cancel(const char *name) TARN_CHECKED;
// Puts a job that runs back into the queue.
tarn_status tarn__slurm_requeue(const char *id) TARN_CHECKED;

#endif
