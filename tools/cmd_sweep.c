// tarn sweep: trainings of several variants and seeds, some at a time.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "json_output.h"
#include "progress_line.h"
#include "progress_show.h"
#include "stop_signal.h"
#include "tarn/measure.h"
#include "tarn/sweep.h"

static const cli_command COMMAND = {
    "sweep", "[SWEEP.yaml]", "Train and test several variants of a model with several seeds.",
    "Runs are processes of their own in DIR/VARIANT/seed-N. Finished ones are skipped, those that were stopped or\n"
    "killed go on from their last checkpoint, and those that failed are reported and left alone. Without SWEEP.yaml\n"
    "the sweep in DIR goes on. Ctrl-C (SIGINT), SIGTERM and SIGHUP have all runs save and stop, with exit code 128 +\n"
    "the signal's number; a second SIGINT or SIGTERM kills at once, which loses what came after the last checkpoints\n"
    "and nothing else. SIGUSR1 has the runs save and go on. The exit code is 1 if a run failed. docs/experiments.md\n"
    "describes the file and the folder."};

typedef struct view {
  const tarn_sweep *sweep;
  bool json, quiet, terminal;
  int code;       // of a failure to print
  time_t *shown;  // [runs] when a line of progress was printed last, for those who read no terminal
} view;

static void set_number(json_t *object, const char *key, double value) {
  if (!isnan(value)) json_object_set_new(object, key, json_real(value));
}

static json_t *run_json(const tarn_sweep *sweep, const tarn_sweep_run *run) {
  json_t *object = json_pack("{s:s, s:I, s:s, s:I, s:f}", "variant", sweep->variants[run->variant].name, "seed",
                             (json_int_t)run->seed, "state", tarn_sweep_state_name(run->state), "update",
                             (json_int_t)run->update, "seconds", run->seconds);
  if (run->path) json_object_set_new(object, "path", json_output_text(run->path));
  set_number(object, "loss", run->loss);
  for (int m = 0; m < TARN_METRIC_COUNT; m++) {
    const tarn_measure *measure = tarn_measure_of((tarn_metric)m);
    char key[32];
    snprintf(key, sizeof key, "valid_%s", measure->word);
    if (!measure->derived) set_number(object, key, run->valid[m]);
  }
  set_number(object, "test_bleu", run->test_bleu);
  set_number(object, "test_blimp", run->test_blimp);
  for (int m = 0; m < TARN_METRIC_COUNT; m++) {
    char key[32];
    snprintf(key, sizeof key, "test_%s", tarn_measure_of((tarn_metric)m)->word);
    set_number(object, key, run->test[m]);
  }
  if (run->message) json_object_set_new(object, "message", json_output_text(run->message));
  if (run->reuse) json_object_set_new(object, "reuse", json_output_text(run->reuse));
  return object;
}

static int print_json(json_t *object) {
  int code = json_output_print(&COMMAND, stdout, object, JSON_COMPACT | JSON_REAL_PRECISION(9));
  fflush(stdout);
  return code;
}

static const char *event_word(tarn_sweep_event_kind kind) {
  static const char *const words[] = {"skipped",  "started", "progress", "trained",
                                      "finished", "failed",  "stopped",  "reused"};
  return words[kind];
}

// What a run has reached, behind its name.
static void print_state(const tarn_sweep *sweep, const tarn_sweep_run *run) {
  char time[32];
  if (run->update > 0) printf("  update %lld, %s of training", (long long)run->update, cli_time(time, run->seconds));
  if (!isnan(run->loss)) printf(", loss %.3f", run->loss);
  const tarn_measure *measure = tarn_measure_of(sweep->variants[run->variant].config->valid.metric);
  if (!isnan(run->valid[measure->metric]))
    printf(", validation %s %.*f", measure->name, measure->digits, run->valid[measure->metric]);
  if (!isnan(run->test_bleu)) printf(", test BLEU %.2f", run->test_bleu);
  if (!isnan(run->test_blimp)) printf(", BLiMP %.2f %%", run->test_blimp);
  // The measure that chose the model, where the test has it.
  const bool chosen = !isnan(run->test[measure->metric]);
  for (int m = 0; m < TARN_METRIC_COUNT; m++) {
    const tarn_measure *test = tarn_measure_of((tarn_metric)m);
    if (!isnan(run->test[m]) && (!chosen || test == measure))
      printf(", test %s %.*f", test->name, test->digits, run->test[m]);
  }
}

// What matters least goes first where the window is narrow.
static void print_terminal(const view *v, const tarn_sweep_event *e) {
  const tarn_sweep_run *run = e->run;
  char parts[4][PROGRESS_PART];
  char left[32];
  snprintf(parts[0], sizeof parts[0], "%zu of %zu done, %zu running, %s left", e->done, e->count, e->running,
           cli_time(left, e->seconds_left));
  snprintf(parts[1], sizeof parts[1], "%s seed %lld", v->sweep->variants[run->variant].name, (long long)run->seed);
  snprintf(parts[2], sizeof parts[2], "update %lld", (long long)run->update);
  snprintf(parts[3], sizeof parts[3], "loss %.3f", run->loss);
  // A log that begins with the validation of the untrained model, or with what is frozen, has no loss yet.
  progress_line_show(parts, run->update == 0 ? 2 : isnan(run->loss) ? 3 : 4);
}

static void print_event(view *v, const tarn_sweep_event *e) {
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
  print_state(v->sweep, run);
  if (run->message) printf("  %s", run->message);
  printf("  [%zu of %zu done", e->done, e->count);
  if (e->failed) printf(", %zu failed", e->failed);
  printf(", %s left]\n", cli_time(left, e->seconds_left));
  fflush(stdout);
}

// Whether a log has grown is worth a line in a file or a pipe once a minute.
static bool too_early(const view *v, const tarn_sweep_event *e) {
  time_t *shown = &v->shown[e->run - v->sweep->runs];
  if (e->kind == TARN_SWEEP_EVENT_PROGRESS && !v->terminal && time(NULL) - *shown < 60) return true;
  *shown = time(NULL);
  return false;
}

static void on_event(void *user, const tarn_sweep_event *e) {
  view *v = user;
  if (v->quiet || too_early(v, e)) return;
  if (!v->json) {
    print_event(v, e);
    return;
  }
  json_t *object = run_json(v->sweep, e->run);
  json_object_set_new(object, "kind", json_string(event_word(e->kind)));
  if (e->seconds_left >= 0) json_object_set_new(object, "seconds_left", json_real(e->seconds_left));
  int code = print_json(object);
  if (code != CLI_OK) v->code = code;
}

static size_t count_state(const tarn_sweep *sweep, tarn_sweep_state state) {
  size_t count = 0;
  for (size_t i = 0; i < sweep->run_count; i++) count += sweep->runs[i].state == state;
  return count;
}

static double total_flops(const tarn_plan *p) { return p->forward_flops + p->backward_flops + p->recompute_flops; }

static void print_equalized(const tarn_sweep_variant *v) {
  if (v->equalize == TARN_SWEEP_EQUALIZE_NO) return;
  printf("%-20s equalized by %s: %.6g against the base's %.6g (%+.2f %%)", v->name,
         tarn_sweep_equalize_name(v->equalize), v->measure, v->base_measure,
         100 * (v->measure - v->base_measure) / v->base_measure);
  for (size_t i = 0; i < v->width_count; i++) printf("%s%s", i ? ", " : "; ", v->widths[i]);
  bool met = fabs(v->measure - v->base_measure) <= 0.01 * v->base_measure;
  if (v->width_count == 0) printf(met ? "; no width had to change" : "; no width changes it");
  if (!met) printf("; 1 %% CANNOT BE MET");
  printf("\n");
}

static int print_plan(const tarn_sweep *sweep) {
  char time[32];
  printf("%-20s %12s %12s %12s %10s %10s %10s\n", "variant", "trained", "frozen", "total", "MFLOP/tok", "memory MB",
         "~s/epoch");
  for (size_t i = 0; i < sweep->variant_count; i++) {
    const tarn_sweep_variant *v = &sweep->variants[i];
    const tarn_plan *p = &v->plan;
    char epoch[32] = "-";
    if (v->epoch_seconds > 0) snprintf(epoch, sizeof epoch, "%.*f", v->epoch_seconds < 10, v->epoch_seconds);
    printf("%-20s %12lld %12lld %12lld %10.2f %10.0f %10s%s\n", v->name, (long long)p->trained_parameters,
           (long long)p->frozen_parameters, (long long)(p->trained_parameters + p->frozen_parameters),
           total_flops(p) / 1e6, (double)p->total_bytes / 1e6, epoch, i == sweep->baseline ? "  baseline" : "");
  }
  for (size_t i = 0; i < sweep->variant_count; i++) print_equalized(&sweep->variants[i]);
  printf("\n");
  for (size_t i = 0; i < sweep->run_count; i++) {
    const tarn_sweep_run *run = &sweep->runs[i];
    printf("%-9s %s seed %lld", tarn_sweep_state_name(run->state), sweep->variants[run->variant].name,
           (long long)run->seed);
    print_state(sweep, run);
    if (run->message) printf("  %s", run->message);
    if (run->reuse) printf("  reused from %s", run->reuse);
    printf("\n");
  }
  size_t reused = 0;
  for (size_t i = 0; i < sweep->run_count; i++) reused += sweep->runs[i].reuse != NULL;
  size_t open = count_state(sweep, TARN_SWEEP_WAITING) + count_state(sweep, TARN_SWEEP_BEGUN) - reused;
  printf("\n%zu runs, %zu of them to be trained, %lld at a time with %lld threads each\n", sweep->run_count, open,
         (long long)sweep->parallel, (long long)sweep->threads);
  if (sweep->budget_seconds > 0) printf("budget %s of training each: at least ", cli_time(time, sweep->budget_seconds));
  double left = tarn_sweep_training_left(sweep, 0);
  if (left < 0)
    printf("there is no budget and no limit of updates or epochs, so the time is not known\n");
  else if (sweep->budget_seconds > 0)
    printf("%s more; validation, tests and start-up come on top\n", cli_time(time, left));
  else
    printf(
        "about %s of training more, by the operations and the speed of products here; validation, tests and "
        "start-up come on top\n",
        cli_time(time, left));
  return CLI_OK;
}

static json_t *variant_json(const tarn_sweep_variant *v) {
  const tarn_plan *p = &v->plan;
  json_t *object =
      json_pack("{s:s, s:I, s:I, s:f, s:I}", "name", v->name, "trained", (json_int_t)p->trained_parameters, "frozen",
                (json_int_t)p->frozen_parameters, "flops", total_flops(p), "planned_bytes", (json_int_t)p->total_bytes);
  if (v->epoch_seconds > 0) json_object_set_new(object, "epoch_seconds", json_real(v->epoch_seconds));
  if (v->run_seconds > 0) json_object_set_new(object, "run_seconds", json_real(v->run_seconds));
  if (v->equalize == TARN_SWEEP_EQUALIZE_NO) return object;
  json_t *widths = json_array();
  for (size_t i = 0; i < v->width_count; i++) json_array_append_new(widths, json_string(v->widths[i]));
  json_object_set_new(object, "equalize", json_string(tarn_sweep_equalize_name(v->equalize)));
  json_object_set_new(object, "value", json_real(v->measure));
  json_object_set_new(object, "base", json_real(v->base_measure));
  json_object_set_new(object, "widths", widths);
  return object;
}

static int print_plan_json(const tarn_sweep *sweep) {
  json_t *variants = json_array();
  json_t *runs = json_array();
  for (size_t i = 0; i < sweep->variant_count; i++) json_array_append_new(variants, variant_json(&sweep->variants[i]));
  for (size_t i = 0; i < sweep->run_count; i++) json_array_append_new(runs, run_json(sweep, &sweep->runs[i]));
  json_t *object = json_pack("{s:s, s:s, s:I, s:I, s:o, s:o}", "name", sweep->name, "baseline",
                             sweep->variants[sweep->baseline].name, "parallel", (json_int_t)sweep->parallel, "threads",
                             (json_int_t)sweep->threads, "variants", variants, "runs", runs);
  if (sweep->budget_seconds > 0) json_object_set_new(object, "budget_seconds", json_real(sweep->budget_seconds));
  double left = tarn_sweep_training_left(sweep, 0);
  if (left >= 0) json_object_set_new(object, "training_seconds", json_real(left));
  return print_json(object);
}

// The last lines, and the exit code.
static int print_end(const view *v) {
  const tarn_sweep *sweep = v->sweep;
  size_t failed = count_state(sweep, TARN_SWEEP_FAILED);
  if (!v->quiet && !v->json)
    printf("%zu of %zu runs are finished in %s\n", count_state(sweep, TARN_SWEEP_FINISHED), sweep->run_count,
           sweep->folder);
  if (failed == 0) return v->code;
  fflush(stdout);
  fprintf(stderr,
          "tarn %s: %zu of %zu runs failed; --retry-failed tries them again, trainings from their last checkpoints\n",
          COMMAND.name, failed, sweep->run_count);
  return CLI_FAILURE;
}

static int run(tarn_sweep_options *options, view *v, bool dry_run) {
  tarn_sweep *sweep;
  tarn_status status = tarn_sweep_open(&sweep, options);
  if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  v->sweep = sweep;
  v->shown = calloc(sweep->run_count, sizeof *v->shown);
  int code = v->shown ? CLI_OK : cli_no_memory(&COMMAND);
  if (dry_run) {
    status = tarn_sweep_estimate(sweep);
    if (status != TARN_STATUS_OK) code = cli_report(&COMMAND, status);
  }
  if (dry_run && status == TARN_STATUS_OK) {
    code = (v->json ? print_plan_json : print_plan)(sweep);
  } else if (!dry_run && v->shown) {
    stop_in_order(true);
    status = tarn_sweep_run_all(sweep, options);
    stop_in_order(false);
    progress_line_clear();
    code = status == TARN_STATUS_OK ? print_end(v) : cli_report(&COMMAND, status);
    if (status == TARN_STATUS_INTERRUPTED && stop_signal) code = 128 + (int)stop_signal;
  }
  free(v->shown);
  tarn_sweep_close(&sweep);
  return code;
}

int cmd_sweep(int argc, char **argv) {
  catch_stop_signals("tarn sweep: stopped before it began; nothing is lost\n");
  tarn_sweep_options options;
  tarn_sweep_default(&options);
  view v = {0};
  bool dry_run = false;
  cli_list files = {0};
  cli_list reuse = {0};
  const cli_option table[] = {
      {"output", CLI_TEXT, &options.folder, "DIR", "folder of the sweep; made if it does not exist", 0, 0},
      {"dry-run", CLI_FLAG, &dry_run, NULL, "check everything, print variants, sizes, runs and time, and stop", 0, 0},
      {"reuse", CLI_LIST, &reuse, "SWEEP",
       "folder of another sweep, to take its finished runs of the same settings; may be given several times", 0, 0},
      {"retry-failed", CLI_FLAG, &options.retry_failed, NULL,
       "try runs that failed again, trainings from their last checkpoint", 0, 0},
      {"json", CLI_FLAG, &v.json, NULL, "print JSON: one object for each event, or one for the dry run", 0, 0},
      {"quiet", CLI_FLAG, &v.quiet, NULL, "print nothing but failures", 0, 0},
      CLI_DEVICE_OPTION,
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &files, 0, 1);
  if (code < 0 && !options.folder && (!dry_run || !files.count)) code = cli_usage(&COMMAND, "--output DIR is missing");
  if (code < 0) {
    options.file = files.count ? files.items[0] : NULL;
    options.reuse = reuse.items;
    options.reuse_count = reuse.count;
    options.on_event = on_event;
    options.user = &v;
    options.stop = &stop_signal;
    options.save = &save_signal;
    const bool terminal = progress_line_stands_on(stdout);
    v.terminal = !v.json && terminal;
    progress_wanted.quiet = v.quiet || v.json;
    signal(SIGCHLD, SIG_DFL);  // ignored by whoever started this, it would hide how the runs' processes end
    code = run(&options, &v, dry_run);
  }
  cli_list_free(&files);
  cli_list_free(&reuse);
  return code;
}
