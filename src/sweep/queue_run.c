// Runs a queue: processes of `tarn sweep --only`, each of which trains and tests a run and keeps its folder consistent
// at any moment. What is over is recorded at once. The queue itself has no state that a kill could lose.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "run/names.h"
#include "sweep/queue_memory.h"
#include "tarn/lab/record.h"

enum { MOST_FAILURES = 3 };
static const double LOOK = 0.05;
// Seconds between attempts to record where another process does.
static const double LOOK_AT_BUSY = 1.0;

static const char *program_of(const struct tarn__queue_memory *q) {
  return q->options.program ? q->options.program : "/proc/self/exe";
}

static tarn_status errors_of(char path[PATH_MAX], const struct tarn__queue_memory *q, const tarn__queue_job *j) {
  const tarn__queue_sweep *s = &q->sweeps[j->sweep];
  TARN_REQUIRE(snprintf(path, PATH_MAX, "%s/%s." TARN__RUN_SEED "%lld." TARN__RUN_ERRORS, s->public->work,
                        s->outline->variants[j->variant].name, (long long)s->outline->seeds[j->seed]) < PATH_MAX,
               IO, "%s: the path is too long", s->public->work);
  return TARN_STATUS_OK;
}

// The run of a job, from its directory.
static tarn_status look_at_run(struct tarn__queue_memory *q, const tarn__queue_job *j, tarn_sweep_run *run,
                               char path[PATH_MAX]) {
  const tarn__queue_sweep *s = &q->sweeps[j->sweep];
  int64_t offset = 0;
  *run = (tarn_sweep_run){.variant = j->variant, .seed = s->outline->seeds[j->seed], .path = path};
  TARN_REQUIRE(snprintf(path, PATH_MAX, "%s/" TARN__RUN_SEED_PATH, s->runs, s->outline->variants[j->variant].name,
                        (long long)run->seed) < PATH_MAX,
               IO, "%s: the path is too long", s->runs);
  return tarn__sweep_look_again(s->outline, run, &offset);
}

static tarn_status start(struct tarn__queue_memory *q, const tarn__queue_pick *pick) {
  tarn__queue_job *j = q->jobs;
  tarn__queue_sweep *s = &q->sweeps[pick->lane];
  char only[TARN_SWEEP_NAME + 32], errors[PATH_MAX], path[PATH_MAX];
  tarn_sweep_run run;
  while (j->pid) j++;
  const size_t index = pick->variant * s->outline->seed_count + pick->seed;
  *j = (tarn__queue_job){.sweep = pick->lane, .variant = pick->variant, .seed = pick->seed, .begun = tarn__seconds()};
  TARN_TRY(look_at_run(q, j, &run, path));
  j->seconds_before = run.seconds;
  const char *variant = s->outline->variants[j->variant].name;
  const int64_t seed = s->outline->seeds[j->seed];
  snprintf(only, sizeof only, TARN__RUN_SEED_PATH, variant, (long long)seed);
  char records[PATH_MAX];
  const char *arguments[] = {"tarn", "sweep",   s->file, "--output", "runs", "--only",
                             only,   "--quiet", NULL,    NULL,       NULL,   NULL};
  size_t count = 8;
  if (q->options.retry_failed) arguments[count++] = "--retry-failed";
  if (s->sources[index] && realpath(s->sources[index]->public->folder, records)) {
    arguments[count++] = "--reuse";
    arguments[count++] = records;
  }
  TARN_TRY(errors_of(errors, q, j));
  const tarn__child child = {
      .program = program_of(q), .arguments = arguments, .folder = s->public->work, .errors = errors};
  TARN_TRY(tarn__child_start(&j->pid, &child));
  s->states[index] = TARN__QUEUE_RUNNING;
  s->retried[index] = true;
  s->running++;
  tarn__queue_tell(q, TARN_QUEUE_EVENT_STARTED, pick->lane, variant, seed, q->reason);
  return TARN_STATUS_OK;
}

// Takes all runs that are over in the sweep's folder into its records.
static tarn_status record(struct tarn__queue_memory *q, size_t index, const char *what) {
  tarn__queue_sweep *s = &q->sweeps[index];
  tarn_record_summary summary;
  char path[PATH_MAX];
  TARN_TRY(tarn__path_join(path, s->runs, TARN__SWEEP_JSON));
  if (!tarn__file_exists(path)) return TARN_STATUS_OK;
  const tarn_status status = tarn_record(&summary, s->runs, s->public->folder);
  // Another process records here, or a file of a run at work was read while it changed.
  s->unrecorded = status == TARN_STATUS_BUSY || (status == TARN_STATUS_DATA && s->running > 0);
  if (s->unrecorded) return TARN_STATUS_OK;
  if (status == TARN_STATUS_MEMORY) return status;
  if (status != TARN_STATUS_OK) return tarn__queue_leave(q, index, tarn_error_message());
  if (!q->options.commit || summary.added == 0) return TARN_STATUS_OK;
  char all[TARN_SWEEP_NAME + 64];
  if (summary.added == 1)
    snprintf(all, sizeof all, "%s", what);
  else
    snprintf(all, sizeof all, "%zu runs", summary.added);
  return tarn__queue_commit(q, index, all);
}

static tarn_status fail_run(struct tarn__queue_memory *q, const tarn__queue_job *j, const char *message) {
  tarn__queue_sweep *s = &q->sweeps[j->sweep];
  char text[TARN__QUEUE_TEXT + 1000];
  tarn__queue_tell(q, TARN_QUEUE_EVENT_FAILED, j->sweep, s->outline->variants[j->variant].name,
                   s->outline->seeds[j->seed], message);
  if (++s->failures < MOST_FAILURES) return TARN_STATUS_OK;
  snprintf(text, sizeof text, "%s: three runs in a row have failed, the last one so: %s", s->public->folder, message);
  return tarn__queue_leave(q, j->sweep, text);
}

static bool is_copy(const char *run) {
  char path[PATH_MAX];
  return tarn__path_join(path, run, TARN__RUN_REUSED) == TARN_STATUS_OK && tarn__file_exists(path);
}

// The process of a run has ended: the run is over, or was stopped, or it could not be worked on.
static tarn_status settle(struct tarn__queue_memory *q, tarn__queue_job *j, int wait_status) {
  tarn__queue_sweep *s = &q->sweeps[j->sweep];
  char errors[PATH_MAX], path[PATH_MAX], message[1000], what[TARN_SWEEP_NAME + 32];
  tarn_sweep_run run;
  const tarn__queue_job job = *j;
  const char *variant = s->outline->variants[job.variant].name;
  j->pid = 0;
  s->running--;
  s->states[job.variant * s->outline->seed_count + job.seed] = TARN__QUEUE_READY;  // until its records are read again
  s->seen = 0;
  TARN_TRY(errors_of(errors, q, &job));
  TARN_TRY(look_at_run(q, &job, &run, path));
  tarn__child_message(message, sizeof message, errors, wait_status);
  unlink(errors);
  snprintf(what, sizeof what, TARN__RUN_SEED_PATH, variant, (long long)run.seed);
  if (run.state == TARN_SWEEP_FINISHED) {
    s->failures = 0;
    // What a queue takes beyond the trainings is known from those.
    if (!is_copy(path)) {
      q->wall += tarn__seconds() - job.begun;
      q->trained += run.seconds - job.seconds_before;
    }
    tarn__queue_tell(q, TARN_QUEUE_EVENT_FINISHED, job.sweep, variant, run.seed, "");
    return record(q, job.sweep, what);
  }
  if (tarn__child_was_stopped(wait_status)) {
    q->stopping = true;
    tarn__queue_tell(q, TARN_QUEUE_EVENT_STOPPED, job.sweep, variant, run.seed, "");
    return TARN_STATUS_OK;
  }
  // Its process was killed, or could not work on it: the run is not over, and is taken again.
  if (run.state != TARN_SWEEP_FAILED) return fail_run(q, &job, message);
  TARN_TRY(record(q, job.sweep, what));
  return fail_run(q, &job, run.message ? run.message : message);
}

static tarn_status look_at_processes(struct tarn__queue_memory *q, size_t *running) {
  *running = 0;
  for (size_t i = 0; i < q->places; i++) {
    tarn__queue_job *j = &q->jobs[i];
    int wait_status = 0;
    if (!j->pid) continue;
    const pid_t ended = waitpid(j->pid, &wait_status, WNOHANG);
    if (ended == j->pid || (ended < 0 && errno == ECHILD)) TARN_TRY(settle(q, j, wait_status));
    *running += j->pid != 0;
  }
  return TARN_STATUS_OK;
}

static void signal_all(const struct tarn__queue_memory *q, int number) {
  for (size_t i = 0; i < q->places; i++)
    if (q->jobs[i].pid > 0) kill(q->jobs[i].pid, number);
}

static void pass_signals(struct tarn__queue_memory *q) {
  const tarn_queue_options *o = &q->options;
  if (o->stop && *o->stop && !q->signalled) {
    q->stopping = q->signalled = true;
    signal_all(q, SIGHUP);
  }
  if (!o->save || *o->save == q->saves) return;
  q->saves = *o->save;
  signal_all(q, SIGUSR1);
}

// Takes runs as long as there are places.
static tarn_status fill_places(struct tarn__queue_memory *q, bool *any) {
  bool found = true;
  *any = false;
  // Records may have come from other machines.
  for (size_t i = 0; i < q->public.count; i++)
    if (q->sweeps[i].outline && q->sweeps[i].states && !q->views[i].problem) TARN_TRY(tarn__queue_read(q, i, true));
  while (found && !q->stopping) {
    tarn__queue_pick pick;
    TARN_TRY(tarn__queue_next(q, &pick, &found));
    if (!found) break;
    TARN_TRY(start(q, &pick));
    *any = true;
  }
  return TARN_STATUS_OK;
}

// The plan of looks is recorded as soon as a run works by it: before there is anything to see.
static tarn_status record_plan(struct tarn__queue_memory *q, size_t index) {
  const tarn__queue_sweep *s = &q->sweeps[index];
  char path[PATH_MAX];
  TARN_TRY(tarn__path_join(path, s->public->folder, TARN__SWEEP_JSON));
  return s->running == 0 || tarn__file_exists(path) ? TARN_STATUS_OK : record(q, index, "the plan");
}

// What could not be recorded, or read, before.
static tarn_status try_again(struct tarn__queue_memory *q, bool *left) {
  *left = false;
  for (size_t i = 0; i < q->public.count; i++) {
    tarn__queue_sweep *s = &q->sweeps[i];
    if (s->unrecorded && !q->views[i].problem) TARN_TRY(record(q, i, "finished runs"));
    if (!q->views[i].problem) TARN_TRY(record_plan(q, i));
    *left = *left || ((s->unrecorded || s->unread_since > 0) && !q->views[i].problem);
  }
  return TARN_STATUS_OK;
}

static tarn_status loop(struct tarn__queue_memory *q) {
  double busy_at = tarn__seconds() + LOOK_AT_BUSY;
  size_t running = 0;
  bool any = true, left = false;
  while (running > 0 || any || left) {
    any = false;
    pass_signals(q);
    const size_t before = running;
    TARN_TRY(look_at_processes(q, &running));
    if (!q->stopping && (running < before || (running == 0 && !left) || tarn__seconds() > busy_at)) {
      busy_at = tarn__seconds() + LOOK_AT_BUSY;
      TARN_TRY(fill_places(q, &any));
      TARN_TRY(try_again(q, &left));
    }
    if (q->stopping) left = false;
    if (any) running = 1;
    if (running > 0 || left) tarn__sweep_pause(LOOK);
  }
  TARN_REQUIRE(!q->stopping, INTERRUPTED, "stopped, all is saved; the same command goes on");
  return TARN_STATUS_OK;
}

// Only one queue works in a folder.
static tarn_status lock_all(struct tarn__queue_memory *q) {
  for (size_t i = 0; i < q->public.count; i++) {
    char path[PATH_MAX];
    if (q->views[i].problem) continue;
    TARN_TRY(tarn__queue_path(path, &q->sweeps[i], TARN__RUN_LOCK));
    const tarn_status status = tarn__lock(&q->sweeps[i].lock, path);
    if (status == TARN_STATUS_BUSY) {
      TARN_TRY(tarn__queue_leave(q, i, tarn_error_message()));
      continue;
    }
    TARN_TRY(status);
    TARN_TRY(record(q, i, "finished runs"));  // of a queue that was killed in between
  }
  return TARN_STATUS_OK;
}

// A queue that cannot go on stops its processes.
static void end_processes(struct tarn__queue_memory *q) {
  signal_all(q, SIGTERM);
  for (size_t i = 0; i < q->places; i++)
    while (q->jobs[i].pid && waitpid(q->jobs[i].pid, NULL, 0) < 0 && errno == EINTR) continue;
}

tarn_status tarn_queue_run(tarn_queue *queue) {
  struct tarn__queue_memory *q = queue->memory;
  tarn__queue_pick pick;
  bool found;
  if (q->options.budget > 0) q->until = tarn__seconds() + q->options.budget;
  tarn_status status = lock_all(q);
  if (status == TARN_STATUS_OK) status = loop(q);
  if (status != TARN_STATUS_OK) end_processes(q);
  for (size_t i = 0; i < q->public.count; i++) {
    if (status == TARN_STATUS_OK && q->options.commit && q->views[i].uncommitted)
      status = tarn__queue_commit(q, i, "finished runs");
    tarn__unlock(&q->sweeps[i].lock);
  }
  return status == TARN_STATUS_OK ? tarn__queue_next(q, &pick, &found) : status;
}
