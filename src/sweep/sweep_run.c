// Runs a sweep: several runs at a time, each a training and then a test, as monitored processes.
//
// The progress of a run is always read from its directory, which the training keeps consistent at any moment. So the
// sweep itself has no state that a kill could lose.
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "comm/launcher.h"
#include "run/names.h"
#include "sweep/slurm.h"
#include "sweep/spec.h"

// Seconds between two polls of the processes and of the logs.
static const double LOOK = 0.05;
static const double LOOK_AT_LOGS = 1.0;
// Seconds to wait for a run's lock still held by a process of a killed sweep.
static const double WAIT_FOR_LOCK = 20.0;
// Seconds between attempts on a run that another process works on, and how long a job waits for its run: longer than
// the claim of a crashed machine lasts (base/claim.h).
static const double LOOK_AT_BUSY = 1.0;
static const double WAIT_FOR_RUN = 90.0;

typedef struct job {
  pid_t pid;  // 0: no process
  tarn_sweep_run *run;
  bool testing;
  int lock;  // of the run
  int64_t log_offset;
  double begun, seconds_before;  // on the clock, and of training time
} job;

// This process's view of a run.
typedef struct place {
  bool over;       // nothing left to do here
  bool retry;      // failed before; to be retried
  bool before;     // was over before this process started
  bool told;       // reported as waiting for another process
  double look_at;  // time of the next attempt, when it was busy
} place;

typedef struct state {
  tarn_sweep *sweep;
  const tarn_sweep_options *options;
  job *jobs;        // [places]
  int64_t places;   // concurrent runs
  place *runs;      // [runs]
  int rank, ranks;  // of the processes that share the sweep
  double begun;
  double failed_until;   // on the clock: until then rank 0 may still clear failures
  bool stopping;         // processes were asked to stop
  bool refused;          // a run was stopped by another process
  bool copied;           // a run has just been copied
  sig_atomic_t saves;    // value of options->save already passed on
  double wall, trained;  // wall-clock seconds of runs here, and their training time
} state;

static bool is_done(const tarn_sweep_run *run) { return run->state == TARN_SWEEP_FINISHED; }

// Wall-clock seconds per training second, including validation, start-up and tests: over the runs finished here or,
// while there are none, over those running, whose training time is that of their last line of the log.
static double overhead_of(const state *s) {
  double wall = s->wall, trained = s->trained;
  for (int64_t i = 0; trained <= 0 && i < s->places; i++) {
    const job *j = &s->jobs[i];
    if (!j->pid || j->testing || !(j->run->seconds > j->seconds_before)) continue;
    wall += tarn__seconds() - j->begun;
    trained += j->run->seconds - j->seconds_before;
  }
  return trained > 0 ? wall / trained : 1.0;
}

// The total training time is known from the budget, or from finished runs.
static double seconds_left(const state *s) {
  const tarn_sweep *sweep = s->sweep;
  double each = sweep->budget_seconds;
  double overhead = overhead_of(s);
  size_t known = 0;
  double sum = 0;
  for (size_t i = 0; i < sweep->run_count; i++) {
    if (sweep->runs[i].state != TARN_SWEEP_FINISHED && sweep->runs[i].state != TARN_SWEEP_TRAINED) continue;
    known++;
    sum += sweep->runs[i].seconds;
  }
  if (each <= 0 && known == 0) return -1;
  if (each <= 0) each = sum / (double)known;
  return tarn_sweep_training_left(sweep, each) * overhead;
}

static void tell(const state *s, tarn_sweep_event_kind kind, const tarn_sweep_run *run) {
  tarn_sweep_event event = {.kind = kind, .run = run};
  for (int64_t i = 0; i < s->places; i++) event.running += s->jobs[i].pid != 0;
  // The progress of other processes is unknown.
  event.seconds_left = s->ranks == 1 && !s->options->only ? seconds_left(s) : -1;
  tarn__sweep_tell(s->sweep, s->options, &event);
}

void tarn__sweep_tell(const tarn_sweep *sweep, const tarn_sweep_options *options, tarn_sweep_event *event) {
  if (!options->on_event) return;
  event->count = sweep->run_count;
  for (size_t i = 0; i < sweep->run_count; i++) {
    event->done += is_done(&sweep->runs[i]);
    event->failed += sweep->runs[i].state == TARN_SWEEP_FAILED;
  }
  options->on_event(options->user, event);
}

void tarn__sweep_pause(double seconds) {
  struct timespec time = {(time_t)seconds, (long)(fmod(seconds, 1.0) * 1e9)};
  nanosleep(&time, NULL);
}

tarn_status tarn__sweep_lock_run(const tarn_sweep *sweep, const tarn_sweep_run *run, int *fd) {
  char path[PATH_MAX];
  TARN_TRY(tarn__sweep_seed_file(path, sweep, run, TARN__SWEEP_LOCK));
  TARN_TRY(tarn__mkdir_of_file(path));
  return tarn__lock(fd, path);
}

// A process of a sweep that was just killed may still be exiting.
static tarn_status wait_for_lock(const tarn_sweep_run *run) {
  char path[PATH_MAX];
  int fd = -1;
  TARN_TRY(tarn__path_join(path, run->path, TARN__RUN_LOCK));
  double until = tarn__seconds() + WAIT_FOR_LOCK;
  tarn_status status;
  while ((status = tarn__lock(&fd, path)) == TARN_STATUS_BUSY && tarn__seconds() < until) tarn__sweep_pause(LOOK);
  tarn__unlock(&fd);
  return status;
}

// A run directory with a configuration is enough for `tarn train --resume`, for new and interrupted runs.
tarn_status tarn__sweep_prepare(const tarn_sweep *sweep, const tarn_sweep_run *run) {
  char path[PATH_MAX];
  tarn_config *config;
  char *text = NULL;
  TARN_TRY(tarn__mkdir(run->path));
  TARN_TRY(tarn__path_join(path, run->path, TARN__RUN_CONFIG));
  if (tarn__file_exists(path)) return TARN_STATUS_OK;
  TARN_TRY(tarn__sweep_config(sweep, &config, &sweep->memory->edits[run->variant], run->seed));
  tarn_status status = tarn_config_write(config, &text);
  if (status == TARN_STATUS_OK) status = tarn__file_write(path, text, strlen(text));
  tarn_config_text_close(&text);
  tarn_config_close(&config);
  return status;
}

static tarn_status start_process(state *s, job *j) {
  const tarn_sweep *sweep = s->sweep;
  char threads[32];
  char beam[32];
  char window[32];
  char stride[32];
  char errors[PATH_MAX];
  const char *precision = tarn_translate_precision_name(sweep->test_precision);
  const char *program = s->options->program ? s->options->program : "/proc/self/exe";
  snprintf(threads, sizeof threads, "%lld", (long long)sweep->threads);
  snprintf(beam, sizeof beam, "%lld", (long long)sweep->test_beam);
  // The user wrote the sweep's descriptions, so there are no limits as for untrusted files (tarn/process.h).
  static const char memory[] = "--max-memory=0", operations[] = "--max-operations=0";
  const char *choice = tarn_checkpoint_choice_name(sweep->test_checkpoint);
  const char *which = sweep->test_checkpoint == TARN_CHECKPOINT_CHOICE_AUTO ? NULL : "--checkpoint";
  const char *train[] = {"tarn",       "train",   "--comm", "self",     "--resume",
                         j->run->path, "--quiet", memory,   operations, NULL};
  const char *translate[] = {"tarn",
                             "test",
                             j->run->path,
                             "--source",
                             sweep->test_source,
                             "--reference",
                             sweep->test_reference,
                             "--beam",
                             beam,
                             "--precision",
                             precision,
                             "--threads",
                             threads,
                             "--quiet",
                             memory,
                             operations,
                             which,
                             choice,
                             NULL};
  const char *pairs[] = {"tarn",        "test",     j->run->path, "--blimp", sweep->test_blimp,
                         "--precision", precision,  "--threads",  threads,   "--quiet",
                         memory,        operations, which,        choice,    NULL};
  const char *labelled[] = {"tarn",        "test",     j->run->path, "--labelled", sweep->test_labelled,
                            "--precision", precision,  "--threads",  threads,      "--quiet",
                            memory,        operations, which,        choice,       NULL};
  snprintf(window, sizeof window, "%lld", (long long)sweep->test_window);
  snprintf(stride, sizeof stride, "%lld", (long long)sweep->test_stride);
  const char *text[] = {"tarn",     "test",      j->run->path, "--text",  sweep->test_text,
                        "--window", window,      "--stride",   stride,    "--precision",
                        precision,  "--threads", threads,      "--quiet", memory,
                        operations, which,       choice,       NULL};
  const char *const *test = sweep->test_blimp      ? pairs
                            : sweep->test_labelled ? labelled
                            : sweep->test_text     ? text
                                                   : translate;
  TARN_TRY(tarn__path_join(errors, j->run->path, TARN__RUN_ERRORS));
  const tarn__child child = {.program = program, .arguments = j->testing ? test : train, .errors = errors};
  return tarn__child_start(&j->pid, &child);
}

static tarn_status start(state *s, job *j, tarn_sweep_run *run) {
  TARN_TRY(tarn__sweep_forget_failure(s->sweep, run));
  bool testing = run->state == TARN_SWEEP_TRAINED;
  const int lock = j->lock;
  *j = (job){.run = run, .testing = testing, .lock = lock, .begun = tarn__seconds(), .seconds_before = run->seconds};
  TARN_TRY(tarn__sweep_prepare(s->sweep, run));
  TARN_TRY(wait_for_lock(run));
  TARN_TRY(start_process(s, j));
  if (!testing) run->state = TARN_SWEEP_BEGUN;
  run->message = NULL;
  tell(s, testing ? TARN_SWEEP_EVENT_TRAINED : TARN_SWEEP_EVENT_STARTED, run);
  return TARN_STATUS_OK;
}

static void drop_errors(const tarn_sweep_run *run) {
  char errors[PATH_MAX];
  if (tarn__path_join(errors, run->path, TARN__RUN_ERRORS) == TARN_STATUS_OK) unlink(errors);
}

tarn_status tarn__sweep_try_reuse(tarn_sweep *sweep, tarn_sweep_run *run, bool *done) {
  tarn_status status = tarn__sweep_reuse(sweep, run);
  run->reuse = NULL;
  *done = status == TARN_STATUS_OK;
  if (status != TARN_STATUS_IO) return status;
  tarn__log(TARN_LOG_WARNING, "%s: the run is not reused", tarn_error_message());
  return TARN_STATUS_OK;
}

static void release(job *j) {
  j->pid = 0;
  tarn__unlock(&j->lock);
}

// A run has nothing left to do, and nothing was done here.
static void skip(state *s, tarn_sweep_run *run) {
  // A sweep that was killed when the run's process ended had no time to remove its messages.
  if (is_done(run)) drop_errors(run);
  place *p = &s->runs[run - s->sweep->runs];
  p->over = true;
  // Another process reports its own work itself.
  if (s->rank == 0 && p->before) tell(s, TARN_SWEEP_EVENT_SKIPPED, run);
}

// Another process works on the run. Only a job, which has nothing else to do, gives up.
static tarn_status wait_for_other(state *s, const tarn_sweep_run *run) {
  place *p = &s->runs[run - s->sweep->runs];
  const double now = tarn__seconds();
  if (s->options->only && s->begun > 0 && now - s->begun > WAIT_FOR_RUN) return TARN_STATUS_BUSY;
  if (!p->told && s->ranks == 1) tarn__log(TARN_LOG_INFO, "waiting: %s", tarn_error_message());
  p->told = true;
  p->look_at = now + LOOK_AT_BUSY;
  return TARN_STATUS_OK;
}

// Takes the lock of a run and starts what is left of it, or copies it. Processes and `stop` are checked between two
// copies.
static tarn_status take_run(state *s, job *j, tarn_sweep_run *run) {
  place *p = &s->runs[run - s->sweep->runs];
  bool reused = false;
  *j = (job){.lock = -1};
  tarn_status status = tarn__sweep_lock_run(s->sweep, run, &j->lock);
  if (status == TARN_STATUS_BUSY) return wait_for_other(s, run);
  TARN_TRY(status);
  TARN_TRY(tarn__sweep_look(s->sweep, run));
  if (is_done(run) || (run->state == TARN_SWEEP_FAILED && !p->retry)) {
    skip(s, run);
    release(j);
    return TARN_STATUS_OK;
  }
  TARN_TRY(tarn__sweep_drop_partial(s->sweep, run));
  if (run->state == TARN_SWEEP_WAITING && run->reuse) {
    TARN_TRY(tarn__sweep_try_reuse(s->sweep, run, &reused));
    s->copied = true;
    p->over = reused;
    if (reused) tell(s, TARN_SWEEP_EVENT_REUSED, run);
    release(j);
    return TARN_STATUS_OK;
  }
  p->over = true;  // in all cases
  return start(s, j, run);
}

// The next run for a free slot, in order; NULL: none now.
static tarn_sweep_run *next_run(state *s) {
  const double now = tarn__seconds();
  for (size_t i = 0; i < s->sweep->run_count; i++) {
    tarn_sweep_run *run = &s->sweep->memory->runs[i];
    if (s->runs[i].over || now < s->runs[i].look_at) continue;
    if (!is_done(run) && !(run->state == TARN_SWEEP_FAILED && !s->runs[i].retry)) return run;
    if (!is_done(run) && now < s->failed_until) continue;
    skip(s, run);
  }
  if (s->begun == 0) s->begun = now;  // all have been checked once
  return NULL;
}

// Fills every free slot with the next run that has work left.
static tarn_status fill_places(state *s) {
  s->copied = false;
  for (int64_t i = 0; i < s->places; i++) {
    tarn_sweep_run *run;
    while (s->jobs[i].pid == 0 && !s->copied && (run = next_run(s))) {
      tarn_status status = take_run(s, &s->jobs[i], run);
      if (s->jobs[i].pid == 0) tarn__unlock(&s->jobs[i].lock);
      TARN_TRY(status);
    }
  }
  return TARN_STATUS_OK;
}

static tarn_status fail_run(state *s, const job *j, int wait_status) {
  char errors[PATH_MAX];
  char message[1000];
  tarn_sweep_run *run = j->run;
  TARN_TRY(tarn__path_join(errors, run->path, TARN__RUN_ERRORS));
  tarn__child_message(message, sizeof message, errors, wait_status);
  // A training may have recorded its failure itself; a failed test does not affect the training.
  if (run->state != TARN_SWEEP_FAILED) TARN_TRY(tarn__sweep_write_failure(run, j->testing, message));
  if (!run->message) TARN_TRY(tarn__sweep_text(s->sweep, &run->message, "%s", message));
  run->state = TARN_SWEEP_FAILED;
  tell(s, TARN_SWEEP_EVENT_FAILED, run);
  return TARN_STATUS_OK;
}

// Handles the end of a process. *next: start the run's test.
static tarn_status judge(state *s, const job *j, int wait_status, bool *next) {
  tarn_sweep_run *run = j->run;
  TARN_TRY(tarn__sweep_look(s->sweep, run));
  if (tarn__child_was_stopped(wait_status)) {
    s->refused = true;
    tell(s, TARN_SWEEP_EVENT_STOPPED, run);
    return TARN_STATUS_OK;
  }
  bool trained = run->state == TARN_SWEEP_TRAINED || run->state == TARN_SWEEP_FINISHED;
  bool good = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
  bool failed = j->testing ? !is_done(run) : !good || !trained;
  // A job loses its training to whatever kills jobs; the sweep counts how often.
  if (failed && s->options->launcher == TARN_SWEEP_LAUNCHER_SLURM && WIFSIGNALED(wait_status))
    return tarn__fail(TARN_STATUS_IO, "%s: its process was ended by signal %d (%s)", run->path, WTERMSIG(wait_status),
                      strsignal(WTERMSIG(wait_status)));
  // A test writes its scores last and atomically, so if they exist it succeeded, however its process ended.
  if (failed) return fail_run(s, j, wait_status);
  drop_errors(run);
  s->wall += tarn__seconds() - j->begun;
  s->trained += run->seconds - j->seconds_before;
  if (is_done(run)) tell(s, TARN_SWEEP_EVENT_FINISHED, run);
  *next = !is_done(run) && !s->stopping;
  return TARN_STATUS_OK;
}

static tarn_status settle(state *s, job *j, int wait_status) {
  bool next = false;
  j->pid = 0;
  tarn_status status = judge(s, j, wait_status, &next);
  if (status == TARN_STATUS_OK && next) status = start(s, j, j->run);
  if (j->pid == 0) release(j);
  return status;
}

static tarn_status look_at_processes(state *s, size_t *running) {
  *running = 0;
  for (int64_t i = 0; i < s->places; i++) {
    job *j = &s->jobs[i];
    int wait_status;
    if (j->pid == 0) continue;
    pid_t ended = waitpid(j->pid, &wait_status, WNOHANG);
    // If the caller ignores SIGCHLD, the exit status is lost; the directory shows the result of the run.
    if (ended < 0 && errno == ECHILD) wait_status = s->stopping ? SIGTERM : 0;
    if (ended == j->pid || (ended < 0 && errno == ECHILD)) TARN_TRY(settle(s, j, wait_status));
    *running += j->pid != 0;
  }
  return TARN_STATUS_OK;
}

static void look_at_logs(state *s) {
  for (int64_t i = 0; i < s->places; i++) {
    job *j = &s->jobs[i];
    if (j->pid && !j->testing && tarn__sweep_read_log(s->sweep, j->run, &j->log_offset))
      tell(s, TARN_SWEEP_EVENT_PROGRESS, j->run);
  }
}

// Runs that had failed, and whose failure rank 0 may have cleared meanwhile.
static tarn_status look_at_failures(const state *s) {
  const double now = tarn__seconds();
  for (size_t i = 0; i < s->sweep->run_count && now < s->failed_until; i++) {
    tarn_sweep_run *run = &s->sweep->memory->runs[i];
    if (!s->runs[i].over && run->state == TARN_SWEEP_FAILED) TARN_TRY(tarn__sweep_look(s->sweep, run));
  }
  return TARN_STATUS_OK;
}

static void signal_all(const state *s, int number) {
  for (int64_t i = 0; i < s->places; i++)
    if (s->jobs[i].pid > 0) kill(s->jobs[i].pid, number);
}

// Tests have nothing to save, and ignore the signal.
static void save_all(state *s) {
  const volatile sig_atomic_t *save = s->options->save;
  if (!save || *save == s->saves) return;
  s->saves = *save;
  for (int64_t i = 0; i < s->places; i++)
    if (s->jobs[i].pid > 0 && !s->jobs[i].testing) kill(s->jobs[i].pid, SIGUSR1);
}

static bool is_left(const state *s) {
  for (size_t i = 0; i < s->sweep->run_count; i++)
    if (!s->runs[i].over) return true;
  return false;
}

static tarn_status loop(state *s) {
  double logs_at = tarn__seconds();
  size_t running = 1;
  while (running > 0 || (!s->stopping && is_left(s))) {
    const volatile sig_atomic_t *stop = s->options->stop;
    if (stop && *stop && !s->stopping) {
      s->stopping = true;
      // Slurm signals jobs as well, and a second SIGTERM would kill at once.
      signal_all(s, SIGHUP);
    }
    save_all(s);
    if (!s->stopping) TARN_TRY(fill_places(s));
    TARN_TRY(look_at_processes(s, &running));
    if (running == 0 && (s->stopping || s->copied || !is_left(s))) continue;
    tarn__sweep_pause(LOOK);
    if (tarn__seconds() - logs_at < LOOK_AT_LOGS) continue;
    logs_at = tarn__seconds();
    look_at_logs(s);
    TARN_TRY(look_at_failures(s));
  }
  TARN_REQUIRE(!s->stopping, INTERRUPTED, "stopped, all is saved; go on with: tarn sweep --output %s",
               s->sweep->folder);
  TARN_REQUIRE(!s->refused, INTERRUPTED,
               "a run was stopped from outside, all is saved; go on with: tarn sweep --output %s", s->sweep->folder);
  return TARN_STATUS_OK;
}

// A sweep that cannot continue stops its processes.
static void end_processes(const state *s) {
  signal_all(s, SIGTERM);
  for (int64_t i = 0; i < s->places; i++)
    while (s->jobs[i].pid && waitpid(s->jobs[i].pid, NULL, 0) < 0 && errno == EINTR) continue;
}

// Selects the runs to do here. With several ranks, rank 0 decides what is retried (forget_failures()).
static tarn_status choose_runs(state *s) {
  const tarn_sweep *sweep = s->sweep;
  bool found = false;
  for (size_t i = 0; i < sweep->run_count; i++) {
    const tarn_sweep_run *run = &sweep->runs[i];
    char name[TARN_SWEEP_NAME + 32];
    snprintf(name, sizeof name, TARN__RUN_SEED_PATH, sweep->variants[run->variant].name, (long long)run->seed);
    const bool wanted = !s->options->only || strcmp(s->options->only, name) == 0;
    found = found || wanted;
    s->runs[i].before = is_done(run) || run->state == TARN_SWEEP_FAILED;
    s->runs[i].over = !wanted;
    s->runs[i].retry = s->options->retry_failed && run->state == TARN_SWEEP_FAILED && s->rank == 0;
  }
  if (s->options->retry_failed && s->rank > 0) s->failed_until = tarn__seconds() + WAIT_FOR_RUN;
  TARN_REQUIRE(found, USAGE, "%s is no run of this sweep: VARIANT/seed-N, such as %s/seed-%lld", s->options->only,
               sweep->variants[0].name, (long long)sweep->seeds[0]);
  return TARN_STATUS_OK;
}

static tarn_status run_here(tarn_sweep *sweep, const tarn_sweep_options *options, int rank, int ranks) {
  void *memory;
  tarn__launcher_leave();  // child processes are not ranks
  state s = {.sweep = sweep, .options = options, .rank = rank, .ranks = ranks, .places = 1};
  if (options->launcher == TARN_SWEEP_LAUNCHER_LOCAL && !options->only) s.places = sweep->parallel;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)s.places, sizeof *s.jobs));
  s.jobs = memory;
  for (int64_t i = 0; i < s.places; i++) s.jobs[i].lock = -1;
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, sweep->run_count, sizeof *s.runs);
  s.runs = status == TARN_STATUS_OK ? memory : NULL;
  if (status == TARN_STATUS_OK) status = choose_runs(&s);
  if (status == TARN_STATUS_OK) status = loop(&s);
  if (status != TARN_STATUS_OK) end_processes(&s);
  for (int64_t i = 0; i < s.places; i++) tarn__unlock(&s.jobs[i].lock);
  tarn__free(s.runs);
  tarn__free(s.jobs);
  return status;
}

static bool is_stopped(const tarn_sweep_options *options) { return options->stop && *options->stop; }

// Another sweep may have worked here since this one was opened.
static tarn_status write_folder(tarn_sweep *sweep) {
  TARN_TRY(tarn__sweep_check_folder(sweep));
  for (size_t i = 0; i < sweep->run_count; i++) TARN_TRY(tarn__sweep_look(sweep, &sweep->memory->runs[i]));
  return tarn__sweep_write_files(sweep);
}

// The ranks write the same files, in turn.
static tarn_status write_in_turn(tarn_sweep *sweep, const tarn_sweep_options *options, const char *path) {
  int lock = -1;
  const double until = tarn__seconds() + WAIT_FOR_RUN;
  tarn_status status;
  while ((status = tarn__lock(&lock, path)) == TARN_STATUS_BUSY && tarn__seconds() < until && !is_stopped(options))
    tarn__sweep_pause(LOOK);
  TARN_TRY(status);
  status = write_folder(sweep);
  tarn__unlock(&lock);
  return status;
}

// Rank 0 could not tell later which failures are old and which are from retries. So it clears the old ones first, and a
// run that fails afterwards is over for all ranks. The others wait a while for this. Rank 0 itself retries a run that
// is in use now.
static tarn_status forget_failures(tarn_sweep *sweep) {
  for (size_t i = 0; i < sweep->run_count; i++) {
    tarn_sweep_run *run = &sweep->memory->runs[i];
    int lock = -1;
    if (run->state != TARN_SWEEP_FAILED) continue;
    tarn_status status = tarn__sweep_lock_run(sweep, run, &lock);
    if (status == TARN_STATUS_BUSY) continue;
    if (status == TARN_STATUS_OK) status = tarn__sweep_forget_failure(sweep, run);
    tarn__unlock(&lock);
    TARN_TRY(status);
  }
  return TARN_STATUS_OK;
}

static tarn_status run_as_rank(tarn_sweep *sweep, const tarn_sweep_options *options, const char *lock) {
  const tarn__launcher found = tarn__launcher_find();
  TARN_REQUIRE(found.size > 1, USAGE,
               "--launcher mpi: this process was started alone; start several: mpirun -n 4 tarn sweep ...");
  sweep->rank = found.rank;
  TARN_TRY(write_in_turn(sweep, options, lock));
  if (options->retry_failed && found.rank == 0) TARN_TRY(forget_failures(sweep));
  return run_here(sweep, options, found.rank, found.size);
}

// The Slurm job of this process, NULL: none. A task of an array needs its index: SLURM_JOB_ID alone, for one of the
// tasks also the number of the array, would requeue all tasks.
static const char *own_job(char id[64]) {
  const char *number = getenv("SLURM_JOB_ID"), *array = getenv("SLURM_ARRAY_JOB_ID");
  const char *task = getenv("SLURM_ARRAY_TASK_ID");
  if (array && task)
    snprintf(id, 64, "%s_%s", array, task);
  else if (number)
    snprintf(id, 64, "%s", number);
  return number || (array && task) ? id : NULL;
}

// A single run: of a job, or requested by the user.
static tarn_status run_one(tarn_sweep *sweep, const tarn_sweep_options *options, const char *lock) {
  const bool is_job = options->launcher == TARN_SWEEP_LAUNCHER_SLURM;
  if (options->file) TARN_TRY(write_in_turn(sweep, options, lock));
  tarn_status status = run_here(sweep, options, 0, 1);
  // --signal=B:HUP@... (follow.c): the job's time is nearly over, and everything is saved.
  char id[64];
  const char *own = is_job ? own_job(id) : NULL;
  if (own && status == TARN_STATUS_INTERRUPTED && options->stop && *options->stop == SIGHUP) {
    bool again;
    if (tarn__sweep_may_requeue(sweep, options, &again) != TARN_STATUS_OK) {
      tarn__log(TARN_LOG_WARNING, "%s: whether the job has made progress is not known", tarn_error_message());
      again = true;  // a run must not end because it cannot be counted
    }
    if (!again) return TARN_STATUS_OK;  // it has failed
    TARN_TRY(tarn__slurm_requeue(own));
    return tarn__fail(TARN_STATUS_INTERRUPTED, "the time of the job is nearly over: all is saved, and it waits again");
  }
  return status;
}

tarn_status tarn_sweep_run_all(tarn_sweep *sweep, const tarn_sweep_options *options) {
  char path[PATH_MAX];
  int lock = -1;
  TARN_REQUIRE(sweep->folder, USAGE, "a sweep needs a folder for its runs");
  TARN_REQUIRE(tarn_sweep_launcher_name(options->launcher), USAGE, "an unknown launcher");
  TARN_TRY(tarn__mkdir(sweep->folder));
  TARN_TRY(tarn__path_join(path, sweep->folder, TARN__RUN_LOCK));
  if (options->only) return run_one(sweep, options, path);
  if (options->launcher == TARN_SWEEP_LAUNCHER_MPI) return run_as_rank(sweep, options, path);
  const bool slurm = options->launcher == TARN_SWEEP_LAUNCHER_SLURM;
  TARN_TRY(tarn__lock(&lock, path));
  tarn_status status = slurm ? TARN_STATUS_OK : tarn__sweep_check_jobs(sweep);
  if (status == TARN_STATUS_OK) status = write_folder(sweep);
  if (status == TARN_STATUS_OK) status = slurm ? tarn__sweep_follow(sweep, options) : run_here(sweep, options, 0, 1);
  tarn__unlock(&lock);
  return status;
}
