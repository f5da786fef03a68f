// The runs of a sweep: some at a time, each first a training and then a test, as processes that are looked after.
//
// What a run has reached is only ever read from its directory, which the training keeps whole at every moment. So there
// is no state of the sweep itself that a kill could lose.
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "sweep/spec.h"

// Seconds between two looks at the processes and at the logs.
static const double LOOK = 0.05;
static const double LOOK_AT_LOGS = 1.0;
// Seconds to wait for the lock of a run that a process of a killed sweep still holds.
static const double WAIT_FOR_LOCK = 20.0;

typedef struct job {
  pid_t pid;  // 0: no process
  tarn_sweep_run *run;
  bool testing;
  int64_t log_offset;
  double begun, seconds_before;  // on the clock, and of training time
} job;

typedef struct state {
  tarn_sweep *sweep;
  const tarn_sweep_options *options;
  job *jobs;             // [parallel]
  size_t next;           // of the runs, the next to look at
  bool stopping;         // processes were asked to stop
  bool refused;          // a run was stopped by somebody else
  sig_atomic_t saves;    // of options->save, what was passed on
  double wall, trained;  // seconds that runs took here, and training time among them
} state;

static bool is_done(const tarn_sweep_run *run) { return run->state == TARN_SWEEP_FINISHED; }

// Seconds on the wall for each of training, with validation, start-up and tests: of the runs that are over here, and,
// as long as there is none, of those at work, whose training time is that of their last line of the log.
static double overhead_of(const state *s) {
  double wall = s->wall, trained = s->trained;
  for (int64_t i = 0; trained <= 0 && i < s->sweep->parallel; i++) {
    const job *j = &s->jobs[i];
    if (!j->pid || j->testing || !(j->run->seconds > j->seconds_before)) continue;
    wall += tarn__seconds() - j->begun;
    trained += j->run->seconds - j->seconds_before;
  }
  return trained > 0 ? wall / trained : 1.0;
}

// Training time is known from the budget, or from the runs that are over.
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
  const tarn_sweep *sweep = s->sweep;
  tarn_sweep_event event = {.kind = kind, .run = run, .count = sweep->run_count};
  if (!s->options->on_event) return;
  for (size_t i = 0; i < sweep->run_count; i++) {
    event.done += is_done(&sweep->runs[i]);
    event.failed += sweep->runs[i].state == TARN_SWEEP_FAILED;
  }
  for (int64_t i = 0; i < sweep->parallel; i++) event.running += s->jobs[i].pid != 0;
  event.seconds_left = seconds_left(s);
  s->options->on_event(s->options->user, &event);
}

static void pause_for(double seconds) {
  struct timespec time = {(time_t)seconds, (long)(fmod(seconds, 1.0) * 1e9)};
  nanosleep(&time, NULL);
}

// A process of a sweep that was killed a moment ago may still be on its way out.
static tarn_status wait_for_lock(const tarn_sweep_run *run) {
  char path[PATH_MAX];
  int fd = -1;
  TARN_TRY(tarn__path_join(path, run->path, "lock"));
  double until = tarn__seconds() + WAIT_FOR_LOCK;
  tarn_status status;
  while ((status = tarn__lock(&fd, path)) == TARN_STATUS_BUSY && tarn__seconds() < until) pause_for(LOOK);
  tarn__unlock(&fd);
  return status;
}

// A run directory with a configuration is all that `tarn train --resume` needs, for a new run and for one that goes on.
static tarn_status prepare(tarn_sweep *sweep, const tarn_sweep_run *run) {
  char path[PATH_MAX];
  tarn_config *config;
  char *text = NULL;
  TARN_TRY(tarn__mkdir(run->path));
  TARN_TRY(tarn__path_join(path, run->path, "config.yaml"));
  if (!tarn__file_exists(path)) {
    TARN_TRY(tarn__sweep_config(sweep, &config, &sweep->memory->edits[run->variant], run->seed));
    tarn_status status = tarn_config_write(config, &text);
    if (status == TARN_STATUS_OK) status = tarn__file_write(path, text, strlen(text));
    tarn_config_text_close(&text);
    tarn_config_close(&config);
    TARN_TRY(status);
  }
  return wait_for_lock(run);
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
  // What a sweep trains is described by its user: no limits for files of strangers (tarn/limits.h).
  static const char memory[] = "--max-memory=0", operations[] = "--max-operations=0";
  const char *choice = tarn_checkpoint_choice_name(sweep->test_checkpoint);
  const char *which = sweep->test_checkpoint == TARN_CHECKPOINT_CHOICE_AUTO ? NULL : "--checkpoint";
  const char *train[] = {"tarn", "train", "--resume", j->run->path, "--quiet", memory, operations, NULL};
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
  TARN_TRY(tarn__path_join(errors, j->run->path, "errors.txt"));
  return tarn__child_start(&j->pid, program, j->testing ? test : train, errors);
}

static tarn_status start(state *s, job *j, tarn_sweep_run *run) {
  TARN_TRY(tarn__sweep_forget_failure(s->sweep, run));
  bool testing = run->state == TARN_SWEEP_TRAINED;
  *j = (job){.run = run, .testing = testing, .begun = tarn__seconds(), .seconds_before = run->seconds};
  TARN_TRY(prepare(s->sweep, run));
  TARN_TRY(start_process(s, j));
  if (!testing) run->state = TARN_SWEEP_BEGUN;
  run->message = NULL;
  tell(s, testing ? TARN_SWEEP_EVENT_TRAINED : TARN_SWEEP_EVENT_STARTED, run);
  return TARN_STATUS_OK;
}

static void drop_errors(const tarn_sweep_run *run) {
  char errors[PATH_MAX];
  if (tarn__path_join(errors, run->path, "errors.txt") == TARN_STATUS_OK) unlink(errors);
}

// Takes over a run of another sweep; where that does not work out, it is trained after all.
static tarn_status reuse(state *s, tarn_sweep_run *run) {
  tarn_status status = tarn__sweep_reuse(s->sweep, run);
  run->reuse = NULL;
  if (status == TARN_STATUS_OK) tell(s, TARN_SWEEP_EVENT_REUSED, run);
  if (status != TARN_STATUS_IO) return status;
  tarn__log(TARN_LOG_WARNING, "%s: the run is not reused", tarn_error_message());
  s->next--;
  return TARN_STATUS_OK;
}

// Gives every free place the next run that has something to do, or copies one: between two copies processes and `stop`
// are looked at.
static tarn_status fill_places(state *s) {
  for (int64_t i = 0; i < s->sweep->parallel; i++) {
    while (s->jobs[i].pid == 0 && s->next < s->sweep->run_count) {
      tarn_sweep_run *run = &s->sweep->memory->runs[s->next++];
      // A sweep that was killed as the run's process ended had no time to drop its messages.
      if (is_done(run)) drop_errors(run);
      if (run->state == TARN_SWEEP_WAITING && run->reuse) return reuse(s, run);
      bool skip = is_done(run) || (run->state == TARN_SWEEP_FAILED && !s->options->retry_failed);
      if (skip)
        tell(s, TARN_SWEEP_EVENT_SKIPPED, run);
      else
        TARN_TRY(start(s, &s->jobs[i], run));
    }
  }
  return TARN_STATUS_OK;
}

static tarn_status fail_run(state *s, const job *j, int wait_status) {
  char errors[PATH_MAX];
  char message[1000];
  tarn_sweep_run *run = j->run;
  TARN_TRY(tarn__path_join(errors, run->path, "errors.txt"));
  tarn__child_message(message, sizeof message, errors, wait_status);
  // A training may have written down itself why it failed; a test that fails leaves the training as it is.
  if (run->state != TARN_SWEEP_FAILED) TARN_TRY(tarn__sweep_write_failure(run, j->testing, message));
  if (!run->message) TARN_TRY(tarn__sweep_text(s->sweep, &run->message, "%s", message));
  run->state = TARN_SWEEP_FAILED;
  tell(s, TARN_SWEEP_EVENT_FAILED, run);
  return TARN_STATUS_OK;
}

static bool was_stopped(int wait_status) {
  int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 0;
  int number = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : code - 128;
  return number == SIGINT || number == SIGTERM || number == SIGHUP;
}

// A process has ended.
static tarn_status settle(state *s, job *j, int wait_status) {
  tarn_sweep_run *run = j->run;
  j->pid = 0;
  TARN_TRY(tarn__sweep_look(s->sweep, run));
  if (was_stopped(wait_status)) {
    s->refused = true;
    tell(s, TARN_SWEEP_EVENT_STOPPED, run);
    return TARN_STATUS_OK;
  }
  bool trained = run->state == TARN_SWEEP_TRAINED || run->state == TARN_SWEEP_FINISHED;
  bool good = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
  // A test writes its scores last and whole, so where they are it is done however its process ended.
  if (j->testing ? !is_done(run) : !good || !trained) return fail_run(s, j, wait_status);
  drop_errors(run);
  s->wall += tarn__seconds() - j->begun;
  s->trained += run->seconds - j->seconds_before;
  if (is_done(run)) {
    tell(s, TARN_SWEEP_EVENT_FINISHED, run);
    return TARN_STATUS_OK;
  }
  if (s->stopping) return TARN_STATUS_OK;
  return start(s, j, run);  // its test
}

static tarn_status look_at_processes(state *s, size_t *running) {
  *running = 0;
  for (int64_t i = 0; i < s->sweep->parallel; i++) {
    job *j = &s->jobs[i];
    int wait_status;
    if (j->pid == 0) continue;
    pid_t ended = waitpid(j->pid, &wait_status, WNOHANG);
    // Where the caller ignores SIGCHLD nobody learns how a process ended; its directory tells what became of the run.
    if (ended < 0 && errno == ECHILD) wait_status = s->stopping ? SIGTERM : 0;
    if (ended == j->pid || (ended < 0 && errno == ECHILD)) TARN_TRY(settle(s, j, wait_status));
    *running += j->pid != 0;
  }
  return TARN_STATUS_OK;
}

static void look_at_logs(state *s) {
  for (int64_t i = 0; i < s->sweep->parallel; i++) {
    job *j = &s->jobs[i];
    if (j->pid && !j->testing && tarn__sweep_read_log(s->sweep, j->run, &j->log_offset))
      tell(s, TARN_SWEEP_EVENT_PROGRESS, j->run);
  }
}

static void signal_all(const state *s, int number) {
  for (int64_t i = 0; i < s->sweep->parallel; i++)
    if (s->jobs[i].pid) kill(s->jobs[i].pid, number);
}

// Tests have nothing to save, and pass the signal over.
static void save_all(state *s) {
  const volatile sig_atomic_t *save = s->options->save;
  if (!save || *save == s->saves) return;
  s->saves = *save;
  for (int64_t i = 0; i < s->sweep->parallel; i++)
    if (s->jobs[i].pid && !s->jobs[i].testing) kill(s->jobs[i].pid, SIGUSR1);
}

static tarn_status loop(state *s) {
  double logs_at = tarn__seconds();
  size_t running = 1;
  while (running > 0 || (!s->stopping && s->next < s->sweep->run_count)) {
    const volatile sig_atomic_t *stop = s->options->stop;
    if (stop && *stop && !s->stopping) {
      s->stopping = true;
      signal_all(s, SIGTERM);
    }
    save_all(s);
    if (!s->stopping) TARN_TRY(fill_places(s));
    TARN_TRY(look_at_processes(s, &running));
    if (running == 0) continue;
    pause_for(LOOK);
    if (tarn__seconds() - logs_at < LOOK_AT_LOGS) continue;
    logs_at = tarn__seconds();
    look_at_logs(s);
  }
  TARN_REQUIRE(!s->stopping, INTERRUPTED, "stopped, all is saved; go on with: tarn sweep --output %s",
               s->sweep->folder);
  TARN_REQUIRE(!s->refused, INTERRUPTED,
               "a run was stopped from outside, all is saved; go on with: tarn sweep --output %s", s->sweep->folder);
  return TARN_STATUS_OK;
}

// A sweep that cannot go on stops what it has started.
static void end_processes(const state *s) {
  signal_all(s, SIGTERM);
  for (int64_t i = 0; i < s->sweep->parallel; i++)
    while (s->jobs[i].pid && waitpid(s->jobs[i].pid, NULL, 0) < 0 && errno == EINTR) continue;
}

static tarn_status run_locked(tarn_sweep *sweep, const tarn_sweep_options *options) {
  void *memory;
  state s = {.sweep = sweep, .options = options};
  // Since the sweep was opened another one may have worked here.
  TARN_TRY(tarn__sweep_check_folder(sweep));
  for (size_t i = 0; i < sweep->run_count; i++) {
    TARN_TRY(tarn__sweep_look(sweep, &sweep->memory->runs[i]));
    TARN_TRY(tarn__sweep_drop_partial(sweep, &sweep->memory->runs[i]));
  }
  TARN_TRY(tarn__sweep_write_files(sweep));
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, (size_t)sweep->parallel, sizeof *s.jobs));
  s.jobs = memory;
  tarn_status status = loop(&s);
  if (status != TARN_STATUS_OK) end_processes(&s);
  tarn__free(s.jobs);
  return status;
}

tarn_status tarn_sweep_run_all(tarn_sweep *sweep, const tarn_sweep_options *options) {
  char path[PATH_MAX];
  int lock = -1;
  TARN_REQUIRE(sweep->folder, USAGE, "a sweep needs a folder for its runs");
  TARN_TRY(tarn__mkdir(sweep->folder));
  TARN_TRY(tarn__path_join(path, sweep->folder, "lock"));
  TARN_TRY(tarn__lock(&lock, path));
  tarn_status status = run_locked(sweep, options);
  tarn__unlock(&lock);
  return status;
}
