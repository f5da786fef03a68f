// The file with the number of timeouts of the jobs of a run, next to its directory.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "run/names.h"
#include "sweep/spec.h"

tarn_status tarn__sweep_jobs_note(char path[PATH_MAX], const tarn_sweep *sweep, const tarn_sweep_run *run) {
  TARN_REQUIRE(snprintf(path, PATH_MAX, "%s/%s/" TARN__SWEEP_SEED_REQUEUED, sweep->folder,
                        sweep->variants[run->variant].name, (long long)run->seed) < PATH_MAX,
               IO, "%s: the path is too long", sweep->folder);
  return TARN_STATUS_OK;
}

tarn_status tarn__sweep_forget_jobs(const tarn_sweep *sweep, const tarn_sweep_run *run) {
  char path[PATH_MAX];
  TARN_TRY(tarn__sweep_jobs_note(path, sweep, run));
  TARN_REQUIRE(unlink(path) == 0 || errno == ENOENT, IO, "%s: cannot remove: %s", path, strerror(errno));
  return TARN_STATUS_OK;
}
