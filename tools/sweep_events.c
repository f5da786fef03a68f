#include "sweep_events.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "json_output.h"
#include "progress_line.h"
#include "sweep_output.h"

int sweep_view_json(const sweep_view *view, json_t *object) {
  int code = json_output_print(view->command, stdout, object, JSON_COMPACT | JSON_REAL_PRECISION(9));
  fflush(stdout);
  return code;
}

static const char *event_word(tarn_sweep_event_kind kind) {
  static const char *const words[] = {"skipped", "started", "progress", "trained",   "finished",
                                      "failed",  "stopped", "reused",   "submitted", "lost"};
  return words[kind];
}

// In a narrow window the least important parts are dropped first.
static void print_terminal(const sweep_view *v, const tarn_sweep_event *e) {
  const tarn_sweep_run *run = e->run;
  char parts[4][PROGRESS_PART];
  char left[32];
  snprintf(parts[0], sizeof parts[0], "%zu of %zu done, %zu running, %s left", e->done, e->count, e->running,
           cli_time(left, e->seconds_left));
  snprintf(parts[1], sizeof parts[1], "%s seed %lld", v->sweep->variants[run->variant].name, (long long)run->seed);
  snprintf(parts[2], sizeof parts[2], "update %lld", (long long)run->update);
  snprintf(parts[3], sizeof parts[3], "loss %.3f", run->loss);
  // A log that starts with the validation of the untrained model, or with frozen layers, has no loss yet.
  progress_line_show(parts, run->update == 0 ? 2 : isnan(run->loss) ? 3 : 4);
}

static void print_event(sweep_view *v, const tarn_sweep_event *e) {
  const tarn_sweep_run *run = e->run;
  char left[32];
  bool progress = e->kind == TARN_SWEEP_EVENT_PROGRESS;
  if (progress && v->terminal) {
    print_terminal(v, e);
    return;
  }
  progress_line_clear();
  printf("%-9s %s seed %lld", progress ? "running" : event_word(e->kind), v->sweep->variants[run->variant].name,
         (long long)run->seed);
  sweep_print_state(v->sweep, run);
  if (run->job && (e->kind == TARN_SWEEP_EVENT_SUBMITTED || e->kind == TARN_SWEEP_EVENT_LOST))
    printf("  job %s %s", run->job, run->job_state);
  if (run->message) printf("  %s", run->message);
  printf("  [%zu of %zu done", e->done, e->count);
  if (e->failed) printf(", %zu failed", e->failed);
  if (e->running > 0 && e->seconds_left < 0) printf(", %zu running", e->running);
  if (e->seconds_left >= 0 || !v->elsewhere) printf(", %s left", cli_time(left, e->seconds_left));
  printf("]\n");
  fflush(stdout);
}

// In a file or a pipe, growth of a log is reported at most once a minute.
static bool too_early(const sweep_view *v, const tarn_sweep_event *e) {
  time_t *shown = &v->shown[e->run - v->sweep->runs];
  if (e->kind == TARN_SWEEP_EVENT_PROGRESS && !v->terminal && time(NULL) - *shown < 60) return true;
  *shown = time(NULL);
  return false;
}

void sweep_view_event(void *user, const tarn_sweep_event *e) {
  sweep_view *v = user;
  if (v->quiet || too_early(v, e)) return;
  if (!v->json) {
    print_event(v, e);
    return;
  }
  json_t *object = sweep_run_json(v->sweep, e->run);
  json_object_set_new(object, "kind", json_string(event_word(e->kind)));
  if (e->seconds_left >= 0) json_object_set_new(object, "seconds_left", json_real(e->seconds_left));
  int code = sweep_view_json(v, object);
  if (code != CLI_OK) v->code = code;
}
