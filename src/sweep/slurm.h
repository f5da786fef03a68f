// Slurm through its own programs: sbatch, squeue, scancel and scontrol, found on PATH.
#ifndef TARN_SWEEP_SLURM_H
#define TARN_SWEEP_SLURM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// A task of an array job as listed by squeue; ended ones are listed while Slurm remembers them (MinJobAge).
typedef struct tarn__slurm_task {
  char name[96];   // of the job
  int64_t index;   // in its array
  char id[64];     // "123_4"
  char state[32];  // "PENDING", ...
  char text[96];   // the state, with the reason if it is pending: "PENDING (Resources)"
  bool alive;      // pending, running or completing
} tarn__slurm_task;

// The environment variables SQUEUE_*, SCANCEL_* and SCONTROL_*, and those SBATCH_* that would make a job differ from
// what the sweep assumes, are not passed on.
//
// All calls fail with UNSUPPORTED if the program is not on PATH, and with IO and the last line of its output if it
// fails.

// Lists the tasks of all jobs with one of these names ("a,b"), in the order of squeue. The caller frees *tasks.
tarn_status tarn__slurm_list(tarn__slurm_task **tasks, size_t *count, const char *names) TARN_CHECKED;
// Submits a script; arguments are those of sbatch, terminated by NULL. `id` gets the job number. A failure with IO does
// not imply that there is no job. USAGE: SBATCH_CLUSTERS names a cluster that the other programs do not query.
tarn_status tarn__slurm_submit(char id[64], const char *const *arguments) TARN_CHECKED;
// Cancels all pending and running jobs with a name.
tarn_status tarn__slurm_cancel(const char *name) TARN_CHECKED;
// Requeues a running job.
tarn_status tarn__slurm_requeue(const char *id) TARN_CHECKED;

#endif
