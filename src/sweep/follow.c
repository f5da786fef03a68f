// A sweep with Slurm jobs as runs: submits the runs without a job, and follows them until all are over.
//
// The progress of a run is read from its directory, and Slurm lists the jobs, always in this order: first Slurm, then
// the directories. So a run that is not over and has no job was lost, and this process may be killed at any time: the
// next one finds the jobs by their names (submissions.h). A run submitted twice by accident is trained once: the tasks
// take its lock, and the second one finds it finished.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "sweep/slurm.h"
#include "sweep/submissions.h"

static const double INTERVAL = 10.0, PAUSE = 0.1;
// Consecutive polls without a job after which a run is lost: a requeued job may seem to have ended between two states,
// and network file systems show new files late.
enum { LOOKS_WITHOUT_JOB = 2 };
// Consecutive jobs of a run that may end without progress, and attempts to query Slurm at the start.
enum { MOST_TRIES = 3, MOST_ASKED = 3 };

typedef struct follower {
  bool over;    // finished, failed, or cancelled
  bool wanted;  // to be submitted
  bool cancelled;
  int missing;   // consecutive polls without a job
  int tries;     // consecutive jobs without progress
  int64_t from;  // the update at the last submission
  int64_t log_offset;
  char job[48];  // the lost job, for a single report
} follower;

typedef struct state {
  tarn_sweep *sweep;
  const tarn_sweep_options *options;
  tarn__submissions list;
  follower *runs;  // [runs]
  bool *alive;     // [runs]
  size_t *chosen;  // [runs]
  bool silent;     // Slurm does not answer; reported
} state;

static void tell(const state *s, tarn_sweep_event_kind kind, size_t run) {
  tarn_sweep_event event = {.kind = kind, .run = &s->sweep->runs[run], .seconds_left = -1};
  for (size_t i = 0; i < s->sweep->run_count; i++) {
    const char *text = s->sweep->runs[i].job_state;
    event.running += s->alive[i] && text && strcmp(text, "RUNNING") == 0;
  }
  tarn__sweep_tell(s->sweep, s->options, &event);
}

static bool is_stopped(const state *s) { return s->options->stop && *s->options->stop; }

// Waits for the next poll; signals and a cancel mark end the wait early.
static void wait_a_while(const state *s) {
  const double until = tarn__seconds() + (s->options->interval > 0 ? s->options->interval : INTERVAL);
  while (tarn__seconds() < until && !is_stopped(s) && !tarn__submissions_are_cancelled(s->sweep))
    tarn__sweep_pause(fmin(PAUSE, fmax(until - tarn__seconds(), 0.001)));
}

// Nothing is submitted before Slurm has answered once, because it may already have all jobs.
static tarn_status ask_first(state *s) {
  tarn_status status = TARN_STATUS_OK;
  for (int i = 0; i < MOST_ASKED; i++) {
    if (i > 0) tarn__sweep_pause(1.0);
    status = tarn__submissions_ask(&s->list, s->sweep, s->alive);
    if (status != TARN_STATUS_IO || is_stopped(s)) break;
  }
  TARN_REQUIRE(status != TARN_STATUS_IO || !is_stopped(s), INTERRUPTED, "stopped before anything was submitted");
  return status;
}

// A controller that restarts is unreachable for a while; jobs continue meanwhile. *answered: it was reachable.
static tarn_status ask_again(state *s, bool *answered) {
  tarn_status status = tarn__submissions_ask(&s->list, s->sweep, s->alive);
  *answered = status == TARN_STATUS_OK;
  if (status != TARN_STATUS_IO) {
    if (s->silent) tarn__log(TARN_LOG_INFO, "Slurm answers again");
    s->silent = false;
    return status;
  }
  if (is_stopped(s)) return TARN_STATUS_OK;  // Ctrl-C also ends squeue
  if (!s->silent) tarn__log(TARN_LOG_WARNING, "%s; asked again until it answers", tarn_error_message());
  s->silent = true;
  return TARN_STATUS_OK;
}

// Copies a run of another sweep, which needs no job.
static tarn_status take_reuse(state *s, size_t index) {
  tarn_sweep_run *run = &s->sweep->memory->runs[index];
  int lock = -1;
  bool done = false;
  tarn_status status = tarn__sweep_lock_run(s->sweep, run, &lock);
  if (status == TARN_STATUS_BUSY) return TARN_STATUS_OK;
  if (status == TARN_STATUS_OK) status = tarn__sweep_look(s->sweep, run);
  if (status == TARN_STATUS_OK && run->state == TARN_SWEEP_WAITING) {
    status = tarn__sweep_drop_partial(s->sweep, run);
    if (status == TARN_STATUS_OK) status = tarn__sweep_try_reuse(s->sweep, run, &done);
  }
  tarn__unlock(&lock);
  TARN_TRY(status);
  if (done) tell(s, TARN_SWEEP_EVENT_REUSED, index);
  return TARN_STATUS_OK;
}

static tarn_status refuse_cancelled(const state *s) {
  return tarn__fail(
      TARN_STATUS_INTERRUPTED,
      "the jobs were cancelled, and save their state; go on with: tarn sweep --launcher slurm --output %s",
      s->sweep->folder);
}

// Determines which runs to submit at the start, and which are over.
static tarn_status begin(state *s) {
  for (size_t i = 0; i < s->sweep->run_count; i++) {
    tarn_sweep_run *run = &s->sweep->memory->runs[i];
    follower *f = &s->runs[i];
    if (!s->alive[i] && run->state == TARN_SWEEP_WAITING && run->reuse) TARN_TRY(take_reuse(s, i));
    f->over = run->state == TARN_SWEEP_FINISHED ||
              (run->state == TARN_SWEEP_FAILED && !s->options->retry_failed && !s->alive[i]);
    f->wanted = !f->over && !s->alive[i];
    f->from = run->update;
    if (f->over) tell(s, TARN_SWEEP_EVENT_SKIPPED, i);
  }
  return TARN_STATUS_OK;
}

// Submits the wanted runs, as arrays of limited length.
static tarn_status submit(state *s) {
  size_t count = 0;
  for (size_t i = 0; i < s->sweep->run_count; i++)
    if (s->runs[i].wanted) s->chosen[count++] = i;
  for (size_t first = 0; first < count; first += TARN__SUBMISSION_RUNS) {
    const size_t n = count - first < TARN__SUBMISSION_RUNS ? count - first : TARN__SUBMISSION_RUNS;
    TARN_TRY(tarn__submissions_add(&s->list, s->sweep, s->options, s->chosen + first, n));
    // A cancelling process first writes the mark and then queries Slurm: either it missed the jobs, or it cancels them.
    if (tarn__submissions_are_cancelled(s->sweep)) {
      TARN_TRY(tarn__slurm_cancel(s->list.items[s->list.count - 1].name));
      return refuse_cancelled(s);
    }
    for (size_t i = first; i < first + n; i++) {
      follower *f = &s->runs[s->chosen[i]];
      f->wanted = false;
      f->missing = 0;
      f->from = s->sweep->runs[s->chosen[i]].update;
    }
  }
  bool answered;
  if (count > 0) TARN_TRY(ask_again(s, &answered));  // the job numbers, for display
  for (size_t i = 0; i < count; i++) tell(s, TARN_SWEEP_EVENT_SUBMITTED, s->chosen[i]);
  return TARN_STATUS_OK;
}

// Changes to a run since the last poll, seen late by this machine or made by another process, must not be overwritten.
// *goes_on: the run is over, or has progressed and is submitted again.
static tarn_status look_under_lock(state *s, size_t index, bool *goes_on) {
  tarn_sweep_run *run = &s->sweep->memory->runs[index];
  follower *f = &s->runs[index];
  const tarn_sweep_state before = run->state;
  TARN_TRY(tarn__sweep_look(s->sweep, run));
  f->over = run->state == TARN_SWEEP_FINISHED || (run->state == TARN_SWEEP_FAILED && before != TARN_SWEEP_FAILED);
  f->wanted = !f->over && (run->update > f->from || (run->state == TARN_SWEEP_TRAINED && before != run->state));
  *goes_on = f->over || f->wanted;
  if (f->wanted) f->tries = 0;
  if (f->over) tell(s, run->state == TARN_SWEEP_FINISHED ? TARN_SWEEP_EVENT_FINISHED : TARN_SWEEP_EVENT_FAILED, index);
  return TARN_STATUS_OK;
}

static tarn_status give_up(state *s, size_t index) {
  tarn_sweep_run *run = &s->sweep->memory->runs[index];
  char message[200];
  int lock = -1;
  snprintf(message, sizeof message, "its job ended %d times without progress (%.80s)", MOST_TRIES,
           run->job_state ? run->job_state : "Slurm does not know it any more");
  tarn_status status = tarn__sweep_lock_run(s->sweep, run, &lock);
  if (status == TARN_STATUS_BUSY) {  // another process is working on it
    s->runs[index].tries = s->runs[index].missing = 0;
    return TARN_STATUS_OK;
  }
  TARN_TRY(status);
  bool goes_on = false;
  status = look_under_lock(s, index, &goes_on);
  if (goes_on || status != TARN_STATUS_OK) {
    tarn__unlock(&lock);
    return status;
  }
  status = tarn__sweep_prepare(s->sweep, run);
  if (status == TARN_STATUS_OK) status = tarn__sweep_write_failure(run, run->state == TARN_SWEEP_TRAINED, message);
  tarn__unlock(&lock);
  TARN_TRY(status);
  TARN_TRY(tarn__sweep_set_text(s->sweep, &run->message, message));
  run->state = TARN_SWEEP_FAILED;
  s->runs[index].over = true;
  tell(s, TARN_SWEEP_EVENT_FAILED, index);
  return TARN_STATUS_OK;
}

// Handles a run that is not over and has no job.
static tarn_status lose(state *s, size_t index) {
  const tarn_sweep_run *run = &s->sweep->runs[index];
  follower *f = &s->runs[index];
  if (++f->missing < LOOKS_WITHOUT_JOB) return TARN_STATUS_OK;
  tell(s, TARN_SWEEP_EVENT_LOST, index);
  f->cancelled = run->job_state && strcmp(run->job_state, "CANCELLED") == 0;
  f->over = f->cancelled;
  if (f->cancelled) return TARN_STATUS_OK;
  f->tries = run->update > f->from ? 0 : f->tries + 1;
  if (f->tries >= MOST_TRIES) return give_up(s, index);
  f->wanted = true;
  return TARN_STATUS_OK;
}

static bool is_over(tarn_sweep_state run) { return run == TARN_SWEEP_FINISHED || run == TARN_SWEEP_FAILED; }

// Updates a run after a poll. `answered`: Slurm has listed the jobs.
static tarn_status look_at(state *s, size_t index, bool answered) {
  tarn_sweep_run *run = &s->sweep->memory->runs[index];
  follower *f = &s->runs[index];
  const tarn_sweep_state before = run->state;
  const int64_t offset = f->log_offset;
  TARN_TRY(tarn__sweep_look_again(s->sweep, run, &f->log_offset));
  // An earlier failure stays on disk until the job that retries starts.
  const bool retried = run->state == TARN_SWEEP_FAILED && before == TARN_SWEEP_FAILED && s->alive[index];
  if (before == TARN_SWEEP_WAITING && run->state != before) tell(s, TARN_SWEEP_EVENT_STARTED, index);
  if (run->state != before && run->state == TARN_SWEEP_TRAINED) tell(s, TARN_SWEEP_EVENT_TRAINED, index);
  if (run->state == TARN_SWEEP_BEGUN && before == run->state && f->log_offset != offset)
    tell(s, TARN_SWEEP_EVENT_PROGRESS, index);
  if (is_over(run->state) && !retried) {
    f->over = true;
    tell(s, run->state == TARN_SWEEP_FINISHED ? TARN_SWEEP_EVENT_FINISHED : TARN_SWEEP_EVENT_FAILED, index);
    return TARN_STATUS_OK;
  }
  if (s->alive[index]) f->missing = 0;
  return answered && !s->alive[index] ? lose(s, index) : TARN_STATUS_OK;
}

static tarn_status look(state *s, bool *left) {
  bool answered;
  TARN_TRY(ask_again(s, &answered));
  if (tarn__submissions_are_cancelled(s->sweep)) return refuse_cancelled(s);
  *left = false;
  for (size_t i = 0; i < s->sweep->run_count; i++) {
    if (!s->runs[i].over) TARN_TRY(look_at(s, i, answered));
    *left = *left || !s->runs[i].over;
  }
  return submit(s);
}

static tarn_status follow(state *s) {
  bool left = true;
  TARN_TRY(ask_first(s));
  tarn__submissions_prune(&s->list, s->sweep);
  TARN_TRY(tarn__submissions_mark(s->sweep, false));
  TARN_TRY(begin(s));
  TARN_TRY(submit(s));
  if (s->options->detach) return TARN_STATUS_OK;
  while (left) {
    TARN_TRY(look(s, &left));
    if (!left) break;
    if (is_stopped(s))
      return tarn__fail(
          TARN_STATUS_INTERRUPTED,
          "not followed any more; the jobs go on: tarn sweep --launcher slurm --output %s attaches to them, "
          "--cancel ends them",
          s->sweep->folder);
    wait_a_while(s);
  }
  bool answered;
  TARN_TRY(ask_again(s, &answered));
  if (answered) tarn__submissions_prune(&s->list, s->sweep);
  size_t cancelled = 0;
  for (size_t i = 0; i < s->sweep->run_count; i++) cancelled += s->runs[i].cancelled;
  TARN_REQUIRE(cancelled == 0, INTERRUPTED,
               "the jobs of %zu runs were cancelled; submit them again with: tarn sweep --launcher slurm --output %s",
               cancelled, s->sweep->folder);
  return TARN_STATUS_OK;
}

tarn_status tarn__sweep_follow(tarn_sweep *sweep, const tarn_sweep_options *options) {
  void *memory;
  state s = {.sweep = sweep, .options = options};
  tarn_status status = tarn__submissions_read(&s.list, sweep);
  if (status == TARN_STATUS_OK) status = tarn__alloc(&memory, TARN__MEMORY_OTHER, sweep->run_count, sizeof *s.runs);
  if (status == TARN_STATUS_OK) s.runs = memory;
  if (status == TARN_STATUS_OK) status = tarn__alloc(&memory, TARN__MEMORY_OTHER, sweep->run_count, sizeof *s.alive);
  if (status == TARN_STATUS_OK) s.alive = memory;
  if (status == TARN_STATUS_OK) status = tarn__alloc(&memory, TARN__MEMORY_OTHER, sweep->run_count, sizeof *s.chosen);
  if (status == TARN_STATUS_OK) s.chosen = memory;
  if (status == TARN_STATUS_OK) status = follow(&s);
  tarn__free(s.chosen);
  tarn__free(s.alive);
  tarn__free(s.runs);
  tarn__submissions_close(&s.list);
  return status;
}

// If Slurm is missing or does not answer, the locks of the runs prevent two processes from training the same one.
tarn_status tarn__sweep_check_jobs(tarn_sweep *sweep) {
  tarn__submissions list;
  tarn_status status = tarn__submissions_read(&list, sweep);
  const char *job = NULL;
  if (status == TARN_STATUS_OK && list.count > 0) {
    status = tarn__submissions_ask(&list, sweep, NULL);
    if (status == TARN_STATUS_OK)
      for (size_t i = 0; i < list.count; i++) job = list.items[i].alive ? list.items[i].name : job;
    else if (status == TARN_STATUS_IO || status == TARN_STATUS_UNSUPPORTED)
      tarn__log(TARN_LOG_WARNING, "%s: whether Slurm still has jobs of this sweep is not known", tarn_error_message());
    if (status == TARN_STATUS_IO || status == TARN_STATUS_UNSUPPORTED) status = TARN_STATUS_OK;
  }
  if (status == TARN_STATUS_OK && job)
    status = tarn__fail(TARN_STATUS_BUSY,
                        "%s: Slurm has jobs of this sweep (%s): --launcher slurm attaches to them, --cancel ends them",
                        sweep->folder, job);
  tarn__submissions_close(&list);
  return status;
}

tarn_status tarn_sweep_look(tarn_sweep *sweep) {
  tarn__submissions list;
  TARN_REQUIRE(sweep->folder, USAGE, "a sweep needs a folder for its runs");
  tarn_status status = tarn__submissions_read(&list, sweep);
  if (status == TARN_STATUS_OK) {
    status = tarn__submissions_ask(&list, sweep, NULL);
    const bool silent = status == TARN_STATUS_IO || status == TARN_STATUS_UNSUPPORTED;
    // A sweep may be followed for days, so only changes are reported.
    if (silent && !sweep->memory->silent)
      tarn__log(TARN_LOG_WARNING, "%s: the states of the jobs are not known", tarn_error_message());
    if (status == TARN_STATUS_OK && sweep->memory->silent) tarn__log(TARN_LOG_INFO, "Slurm answers again");
    sweep->memory->silent = silent;
    if (silent) {
      for (size_t i = 0; i < sweep->run_count; i++)
        sweep->memory->runs[i].job = sweep->memory->runs[i].job_state = NULL;
      status = TARN_STATUS_OK;
    }
  }
  tarn__submissions_close(&list);
  for (size_t i = 0; i < sweep->run_count && status == TARN_STATUS_OK; i++)
    status = tarn__sweep_look_again(sweep, &sweep->memory->runs[i], &sweep->memory->offsets[i]);
  return status;
}

// Reads the list of submissions again and queries their jobs.
static tarn_status read_and_ask(tarn__submissions *list, tarn_sweep *sweep, bool *alive) {
  tarn__submissions_close(list);
  TARN_TRY(tarn__submissions_read(list, sweep));
  return tarn__submissions_ask(list, sweep, alive);
}

tarn_status tarn_sweep_cancel(tarn_sweep *sweep, size_t *count) {
  tarn__submissions list = {0};
  void *memory;
  *count = 0;
  TARN_REQUIRE(sweep->folder, USAGE, "a sweep needs a folder for its runs");
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, sweep->run_count, sizeof(bool)));
  bool *alive = memory;
  tarn_status status = read_and_ask(&list, sweep, alive);
  // A follower must not submit the jobs again, and itself cancels those that it is just submitting (submit()). A list
  // without jobs may be from such a follower. Jobs submitted before the mark show up in the next query.
  if (status == TARN_STATUS_OK && list.count > 0) {
    status = tarn__submissions_mark(sweep, true);
    if (status == TARN_STATUS_OK) status = read_and_ask(&list, sweep, alive);
  }
  for (size_t i = 0; i < sweep->run_count && status == TARN_STATUS_OK; i++) {
    tarn_sweep_run *run = &sweep->memory->runs[i];
    *count += alive[i];
    if (!alive[i]) run->job = run->job_state = NULL;
  }
  for (size_t i = 0; i < list.count && status == TARN_STATUS_OK; i++)
    if (list.items[i].alive) status = tarn__slurm_cancel(list.items[i].name);
  tarn__submissions_close(&list);
  tarn__free(alive);
  return status;
}
