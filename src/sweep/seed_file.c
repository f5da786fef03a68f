// The files next to the directory of a run (run/names.h).
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "run/names.h"
#include "sweep/spec.h"

tarn_status tarn__sweep_seed_file(char path[PATH_MAX], const tarn_sweep *sweep, const tarn_sweep_run *run,
                                  const char *word) {
  const int length = snprintf(path, PATH_MAX, "%s/%s/" TARN__SWEEP_SEED_FILE, sweep->folder,
                              sweep->variants[run->variant].name, (long long)run->seed, word);
  TARN_REQUIRE(length < PATH_MAX, IO, "%s: the path is too long", sweep->folder);
  return TARN_STATUS_OK;
}

tarn_status tarn__sweep_forget_jobs(const tarn_sweep *sweep, const tarn_sweep_run *run) {
  char path[PATH_MAX];
  TARN_TRY(tarn__sweep_seed_file(path, sweep, run, TARN__SWEEP_REQUEUED));
  TARN_REQUIRE(unlink(path) == 0 || errno == ENOENT, IO, "%s: cannot remove: %s", path, strerror(errno));
  return TARN_STATUS_OK;
}
