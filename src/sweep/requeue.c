// Jobs that ran out of time before their run was over: limits how often in a row they may be requeued without progress.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "run/names.h"
#include "store/checkpoint.h"
#include "sweep/spec.h"

enum { MOST_WITHOUT_PROGRESS = 3 };

// The starting point of the next job. Without a checkpoint it is update 0, as with a checkpoint before the first
// update.
typedef struct position {
  int64_t update;
  int trained;
} position;

// Read from the checkpoint, because a log has a line only every train.log_every updates. Of a large one only the
// header: the job has little time left.
static tarn_status find_position(position *at, const tarn_sweep_run *run) {
  char path[PATH_MAX];
  *at = (position){.update = 0, .trained = run->state == TARN_SWEEP_TRAINED};
  TARN_TRY(tarn__path_join(path, run->path, TARN__CHECKPOINT_LAST));
  if (at->trained || !tarn__file_exists(path)) return TARN_STATUS_OK;
  return tarn__checkpoint_update(&at->update, path);
}

// The number of consecutive jobs without progress, this one included. Without a record of the last one it is only known
// if the run has made no update.
static tarn_status count_jobs(int *jobs, const char *path, const position *at) {
  char *text;
  size_t size;
  position before = {.update = 0};
  long long update = 0;
  *jobs = 0;
  if (tarn__file_exists(path)) {
    TARN_TRY(tarn__file_read(path, &text, &size));
    if (sscanf(text, "%d %lld %d", jobs, &update, &before.trained) != 3) *jobs = 0;
    before.update = update;
    tarn__free(text);
  }
  *jobs = before.update == at->update && before.trained == at->trained ? *jobs + 1 : 0;
  return TARN_STATUS_OK;
}

static tarn_status decide(tarn_sweep *sweep, tarn_sweep_run *run, bool *again) {
  char path[PATH_MAX], text[200];
  position at;
  int jobs;
  TARN_TRY(tarn__sweep_look(sweep, run));
  if (run->state == TARN_SWEEP_FINISHED || run->state == TARN_SWEEP_FAILED) return TARN_STATUS_OK;
  TARN_TRY(find_position(&at, run));
  TARN_TRY(tarn__sweep_seed_file(path, sweep, run, TARN__SWEEP_REQUEUED));
  TARN_TRY(count_jobs(&jobs, path, &at));
  *again = jobs < MOST_WITHOUT_PROGRESS;
  if (*again) {
    const int length = snprintf(text, sizeof text, "%d %lld %d\n", jobs, (long long)at.update, at.trained);
    return tarn__file_write(path, text, (size_t)length);
  }
  snprintf(text, sizeof text, "the time of its job was over %d times without progress: it needs a longer --time",
           MOST_WITHOUT_PROGRESS);
  TARN_TRY(tarn__sweep_prepare(sweep, run));
  TARN_TRY(tarn__sweep_write_failure(run, at.trained, text));
  TARN_TRY(tarn__sweep_forget_jobs(sweep, run));
  return tarn__sweep_look(sweep, run);
}

tarn_status tarn__sweep_may_requeue(tarn_sweep *sweep, const tarn_sweep_options *options, bool *again) {
  char path[PATH_MAX];
  int lock = -1;
  *again = false;
  for (size_t i = 0; i < sweep->run_count; i++) {
    tarn_sweep_run *run = &sweep->memory->runs[i];
    const char *variant = sweep->variants[run->variant].name;
    TARN_REQUIRE(snprintf(path, sizeof path, TARN__RUN_SEED_PATH, variant, (long long)run->seed) < (int)sizeof path, IO,
                 "%s: the path is too long", variant);
    if (strcmp(path, options->only) != 0) continue;
    TARN_TRY(tarn__sweep_lock_run(sweep, run, &lock));
    const tarn_status status = decide(sweep, run, again);
    tarn__unlock(&lock);
    tarn_sweep_event event = {.kind = TARN_SWEEP_EVENT_FAILED, .run = run, .seconds_left = -1};
    if (status == TARN_STATUS_OK && run->state == TARN_SWEEP_FAILED) tarn__sweep_tell(sweep, options, &event);
    return status;
  }
  return TARN_STATUS_OK;
}
