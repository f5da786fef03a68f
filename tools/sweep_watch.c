#include "sweep_watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "colour.h"
#include "json_output.h"
#include "sweep_output.h"
#include "tarn/process.h"

// A training run whose log has not grown for this long may be abandoned.
static const double SILENT = 120.0;

// The last reported state of a run.
typedef struct told {
  bool any;
  tarn_sweep_state state;
  char job[64], job_state[100];
} told;

// The last warning, shown as a line of the table, which would otherwise overwrite it. Kept until Slurm answers again,
// as these warnings are about Slurm.
static char warning[300];
static void keep_warning(void *user, tarn_log_level level, const char *text) {
  (void)user;
  if (level >= TARN_LOG_WARNING)
    snprintf(warning, sizeof warning, "%s", text);
  else if (strcmp(text, "Slurm answers again") == 0)
    *warning = '\0';
}

static bool is_over(const tarn_sweep_run *run) {
  return run->state == TARN_SWEEP_FINISHED || run->state == TARN_SWEEP_FAILED;
}

static void print_run(const tarn_sweep *sweep, const tarn_sweep_run *run) {
  char time[32];
  printf("%-9s %s seed %lld", tarn_sweep_state_name(run->state), sweep->variants[run->variant].name,
         (long long)run->seed);
  sweep_print_state(sweep, run);
  if (run->job && !is_over(run)) printf("  job %s %s", run->job, run->job_state);
  if (run->state == TARN_SWEEP_BEGUN && run->idle > SILENT) printf("  silent for %s", cli_time(time, run->idle));
  if (run->message) printf("  %s", run->message);
  printf("\n");
}

static void print_sums(const tarn_sweep *sweep) {
  size_t count[TARN_SWEEP_FAILED + 1] = {0};
  for (size_t i = 0; i < sweep->run_count; i++) count[sweep->runs[i].state]++;
  printf("%zu of %zu done", count[TARN_SWEEP_FINISHED], sweep->run_count);
  for (int s = 0; s <= TARN_SWEEP_FAILED; s++)
    if (s != TARN_SWEEP_FINISHED && count[s]) printf(", %zu %s", count[s], tarn_sweep_state_name((tarn_sweep_state)s));
  printf("\n");
}

static size_t rows_of_window(void) {
  struct winsize size;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 4 ? size.ws_row : 24;
}

// If the window is too small for all runs, finished ones are dropped first. Lines do not wrap.
static void redraw(const tarn_sweep *sweep) {
  const size_t room = rows_of_window() - 3 - (*warning != '\0');
  size_t shown = 0;
  printf("\033[?7l\033[H\033[2J");
  print_sums(sweep);
  if (*warning) printf("%s\n", warning);
  for (int over = 0; over < 2; over++) {
    for (size_t i = 0; i < sweep->run_count; i++) {
      const bool first = !is_over(&sweep->runs[i]) || sweep->runs[i].state == TARN_SWEEP_FAILED;
      const bool now = sweep->run_count <= room ? over == 0 : first == (over == 0);
      if (now && shown < room) print_run(sweep, &sweep->runs[i]), shown++;
    }
  }
  if (shown < sweep->run_count) printf("... and %zu more\n", sweep->run_count - shown);
  printf("\033[?7h");
}

// Reports the runs whose state has changed.
static void print_changes(const tarn_sweep *sweep, told *before) {
  bool any = false;
  for (size_t i = 0; i < sweep->run_count; i++) {
    const tarn_sweep_run *run = &sweep->runs[i];
    told now = {.any = true, .state = run->state};
    snprintf(now.job, sizeof now.job, "%s", run->job ? run->job : "");
    snprintf(now.job_state, sizeof now.job_state, "%s", run->job_state ? run->job_state : "");
    const bool same = before[i].any && before[i].state == now.state && strcmp(before[i].job, now.job) == 0 &&
                      strcmp(before[i].job_state, now.job_state) == 0;
    if (same || (before[i].any && is_over(run) && before[i].state == run->state)) continue;
    before[i] = now;
    print_run(sweep, run);
    any = true;
  }
  if (any) print_sums(sweep);
}

static int print_json(const cli_command *command, const tarn_sweep *sweep) {
  json_t *runs = json_array();
  for (size_t i = 0; i < sweep->run_count; i++) json_array_append_new(runs, sweep_run_json(sweep, &sweep->runs[i]));
  json_t *object = json_pack("{s:s, s:o}", "name", sweep->name, "runs", runs);
  return json_output_print(command, stdout, object, JSON_COMPACT | JSON_REAL_PRECISION(9));
}

static void pause_for(double seconds) {
  const struct timespec time = {(time_t)seconds, (long)(fmod(seconds, 1.0) * 1e9)};
  nanosleep(&time, NULL);
}

int sweep_watch(const cli_command *command, tarn_sweep *sweep, double seconds, bool json) {
  told *before = calloc(sweep->run_count, sizeof *before);
  if (!before) return cli_no_memory(command);
  const bool terminal = !json && colour_is_terminal(stdout);
  if (terminal) tarn_log_set(keep_warning, NULL);
  int code = CLI_OK;
  for (bool left = true; left && code == CLI_OK;) {
    const tarn_status status = tarn_sweep_look(sweep);
    if (status != TARN_STATUS_OK) {
      code = cli_report(command, status);
      break;
    }
    if (json)
      code = print_json(command, sweep);
    else if (terminal)
      redraw(sweep);
    else
      print_changes(sweep, before);
    fflush(stdout);
    left = false;
    for (size_t i = 0; i < sweep->run_count; i++) left = left || !is_over(&sweep->runs[i]);
    if (left) pause_for(seconds);
  }
  if (terminal) cli_show_messages();
  free(before);
  return code;
}
