// tarn sweep: trains several variants and seeds, several runs at a time.
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
#include "sweep_events.h"
#include "sweep_output.h"
#include "sweep_queue.h"
#include "sweep_watch.h"
#include "tarn/lab/queue.h"
#include "tarn/lab/sweep.h"

static const cli_command COMMAND = {
    "sweep", "[SWEEP.yaml | --queue FOLDER...]", "Train and test several variants of a model with several seeds.",
    "Runs are processes of their own in DIR/VARIANT/seed-N. Finished ones are skipped, those that were stopped or\n"
    "killed go on from their last checkpoint, and those that failed are reported and left alone. Without SWEEP.yaml\n"
    "the sweep in DIR goes on. Ctrl-C (SIGINT), SIGTERM and SIGHUP have all runs save and stop, with exit code 128 +\n"
    "the signal's number; a second SIGINT or SIGTERM kills at once, which loses what came after the last checkpoints\n"
    "and nothing else. SIGUSR1 has the runs save and go on. The exit code is 1 if a run failed.\n"
    "--launcher slurm submits the runs as jobs and follows them: when it is ended the jobs go on, and the next one\n"
    "attaches to them. mpirun -n 4 tarn sweep --launcher mpi deals the runs to four processes.\n"
    "--queue takes folders of records (tarn record) whose sweeps have the key sequential, and runs what\n"
    "reduces the variance of open comparisons most for its cost, until all are decided or cannot be; each run is\n"
    "recorded when it is over. Data and runs of FOLDER are in DIR/NAME, with the folder's name. docs/experiments.md\n"
    "describes the file, the folder, the launchers and the queue."};

// Options for actions other than running the sweep, and those of the queue.
typedef struct wish {
  bool dry_run, watch, cancel, queue, commit;
  const char *budget, *share;
} wish;

typedef sweep_view view;

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
  for (size_t i = 0; i < v->adjusted_count; i++) printf("%s%s", i ? ", " : "; ", v->adjusted[i]);
  if (v->adjusted_count == 0) printf("; %s unchanged", tarn_sweep_trade_name(v->trade));
  if (v->bound) printf("; 1 %% CANNOT BE MET: %s", v->bound);
  printf("\n");
}

static int print_plan(const view *shown) {
  const tarn_sweep *sweep = shown->sweep;
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
    sweep_print_state(sweep, run);
    if (run->message) printf("  %s", run->message);
    if (run->reuse) printf("  reused from %s", run->reuse);
    printf("\n");
  }
  size_t reused = 0;
  for (size_t i = 0; i < sweep->run_count; i++) reused += sweep->runs[i].reuse != NULL;
  size_t open = count_state(sweep, TARN_SWEEP_WAITING) + count_state(sweep, TARN_SWEEP_BEGUN) - reused;
  printf("\n%zu runs, %zu of them to be trained, %lld at a time with %s each\n", sweep->run_count, open,
         (long long)sweep->parallel, CLI_COUNT(sweep->threads, "thread"));
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
  json_t *adjusted = json_array();
  for (size_t i = 0; i < v->adjusted_count; i++) json_array_append_new(adjusted, json_string(v->adjusted[i]));
  json_object_set_new(object, "equalize", json_string(tarn_sweep_equalize_name(v->equalize)));
  json_object_set_new(object, "value", json_real(v->measure));
  json_object_set_new(object, "base", json_real(v->base_measure));
  json_object_set_new(object, "change", json_string(tarn_sweep_trade_name(v->trade)));
  json_object_set_new(object, "adjusted", adjusted);
  json_object_set_new(object, "bound", v->bound ? json_string(v->bound) : json_null());
  return object;
}

static int print_plan_json(const view *v) {
  const tarn_sweep *sweep = v->sweep;
  json_t *variants = json_array();
  json_t *runs = json_array();
  for (size_t i = 0; i < sweep->variant_count; i++) json_array_append_new(variants, variant_json(&sweep->variants[i]));
  for (size_t i = 0; i < sweep->run_count; i++) json_array_append_new(runs, sweep_run_json(sweep, &sweep->runs[i]));
  json_t *object = json_pack("{s:s, s:s, s:I, s:I, s:o, s:o}", "name", sweep->name, "baseline",
                             sweep->variants[sweep->baseline].name, "parallel", (json_int_t)sweep->parallel, "threads",
                             (json_int_t)sweep->threads, "variants", variants, "runs", runs);
  if (sweep->budget_seconds > 0) json_object_set_new(object, "budget_seconds", json_real(sweep->budget_seconds));
  double left = tarn_sweep_training_left(sweep, 0);
  if (left >= 0) json_object_set_new(object, "training_seconds", json_real(left));
  return sweep_view_json(v, object);
}

static int print_failures(size_t failed, size_t count) {
  if (failed == 0) return CLI_OK;
  fflush(stdout);
  fprintf(stderr,
          "tarn %s: %zu of %zu runs failed; --retry-failed tries them again, trainings from their last checkpoints\n",
          COMMAND.name, failed, count);
  return CLI_FAILURE;
}

// The report on a single run given by name.
static const tarn_sweep_run *find_run(const view *v) {
  const char *end = strrchr(v->only, '/');
  for (size_t i = 0; i < v->sweep->run_count; i++) {
    const tarn_sweep_run *run = &v->sweep->runs[i];
    const size_t length = strlen(run->path), wanted = strlen(v->only);
    if (end && length > wanted && strcmp(run->path + length - wanted, v->only) == 0) return run;
  }
  return NULL;
}

// The last lines, and the exit code.
static int print_end(const view *v) {
  const tarn_sweep *sweep = v->sweep;
  if (v->only) {
    const tarn_sweep_run *run = find_run(v);
    return run && run->state == TARN_SWEEP_FAILED ? print_failures(1, 1) : v->code;
  }
  if (sweep->rank > 0) return v->code;
  const size_t done = count_state(sweep, TARN_SWEEP_FINISHED), left = sweep->run_count - done;
  if (!v->quiet && !v->json) {
    printf("%zu of %zu runs are finished in %s\n", done, sweep->run_count, sweep->folder);
    if (v->elsewhere && left == 0) printf("compare them with: tarn compare %s\n", sweep->folder);
    if (sweep->sequential.max_seeds > (int64_t)sweep->first_seeds && left == 0)
      printf(
          "further seeds by the sequential design, up to %lld: tarn record %s --output RECORDS/%s, then\n"
          "tarn sweep --queue RECORDS/%s --output DIR\n",
          (long long)sweep->sequential.max_seeds, sweep->folder, sweep->name, sweep->name);
  }
  const int code = print_failures(count_state(sweep, TARN_SWEEP_FAILED), sweep->run_count);
  return code != CLI_OK ? code : v->code;
}

static int cancel(tarn_sweep *sweep, const view *v) {
  size_t count;
  const tarn_status status = tarn_sweep_cancel(sweep, &count);
  if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  for (size_t i = 0; i < sweep->run_count && !v->quiet; i++) {
    const tarn_sweep_run *run = &sweep->runs[i];
    if (!run->job) continue;
    if (v->json) {
      const int code = sweep_view_json(v, sweep_run_json(sweep, run));
      if (code != CLI_OK) return code;
    } else {
      printf("cancelled %s seed %lld  job %s %s\n", sweep->variants[run->variant].name, (long long)run->seed, run->job,
             run->job_state);
    }
  }
  if (v->quiet || v->json) return CLI_OK;
  if (count == 0)
    printf("no job of this sweep waits or runs\n");
  else
    printf("%s cancelled; runs that had begun save their state\n", CLI_COUNT((int64_t)count, "job"));
  return CLI_OK;
}

static int run_all(tarn_sweep *sweep, const tarn_sweep_options *options, const view *v) {
  stop_in_order(true);
  const tarn_status status = tarn_sweep_run_all(sweep, options);
  stop_in_order(false);
  progress_line_clear();
  if (status == TARN_STATUS_INTERRUPTED && stop_signal) {
    cli_report(&COMMAND, status);
    return 128 + (int)stop_signal;
  }
  if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  if (!options->detach) return print_end(v);
  if (!v->quiet && !v->json)
    printf("the jobs are in Slurm: tarn sweep --output %s --watch shows them\n", sweep->folder);
  return CLI_OK;
}

static int run(tarn_sweep_options *options, view *v, const wish *wished) {
  tarn_sweep *sweep;
  tarn_status status = tarn_sweep_open(&sweep, options);
  if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  v->sweep = sweep;
  v->shown = calloc(sweep->run_count, sizeof *v->shown);
  int code = v->shown ? CLI_OK : cli_no_memory(&COMMAND);
  if (wished->cancel) {
    code = cancel(sweep, v);
  } else if (wished->watch) {
    catch_stop_signals("tarn sweep: not watched any more; nothing was changed\n");
    code = sweep_watch(&COMMAND, sweep, options->interval > 0 ? options->interval : 10, v->json);
    if (code == CLI_OK) code = print_end(v);
  } else if (wished->dry_run) {
    status = tarn_sweep_estimate(sweep);
    code = status == TARN_STATUS_OK ? (v->json ? print_plan_json : print_plan)(v) : cli_report(&COMMAND, status);
  } else if (v->shown) {
    code = run_all(sweep, options, v);
  }
  free(v->shown);
  tarn_sweep_close(&sweep);
  return code;
}

// Refuses options of other launchers, and combinations of options. Returns -1, or the exit code.
static int check_options(const tarn_sweep_options *o, const wish *w) {
  const bool slurm = o->launcher == TARN_SWEEP_LAUNCHER_SLURM;
  const struct {
    const char *name;
    bool given;
  } own[] = {{"partition", o->partition}, {"account", o->account},         {"time", o->time},
             {"sbatch", o->sbatch_count}, {"most-jobs", o->most_jobs > 0}, {"detach", o->detach}};
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (own[i].given && (!slurm || o->only || w->dry_run || w->watch || w->cancel))
      return cli_usage(&COMMAND, "--%s is for --launcher slurm, when it submits", own[i].name);
  if (w->queue && (w->watch || w->cancel || o->only || o->reuse_count || o->interval > 0 ||
                   o->launcher != TARN_SWEEP_LAUNCHER_LOCAL))
    return cli_usage(&COMMAND, "--queue runs here what it chooses, without --%s",
                     w->watch          ? "watch"
                     : w->cancel       ? "cancel"
                     : o->only         ? "only"
                     : o->reuse_count  ? "reuse"
                     : o->interval > 0 ? "interval"
                                       : "launcher");
  if (!w->queue && (w->commit || w->budget || w->share))
    return cli_usage(&COMMAND, "--%s is for --queue", w->commit ? "commit" : w->budget ? "budget" : "share");
  if (w->dry_run + w->watch + w->cancel > 1)
    return cli_usage(&COMMAND, "only one of --dry-run, --watch and --cancel can be done");
  if ((w->watch || w->cancel) && o->only)
    return cli_usage(&COMMAND, "--only is no part of --watch or --cancel, which are for all runs");
  if (o->only && o->launcher == TARN_SWEEP_LAUNCHER_MPI)
    return cli_usage(&COMMAND, "--only is one run, and --launcher mpi deals many");
  return -1;
}

// "1/2"
static bool take_share(tarn_queue_options *options, const char *text) {
  int share = 0, shares = 0, length = 0;
  if (sscanf(text, "%4d/%4d%n", &share, &shares, &length) != 2 || text[length] || share < 1 || share > shares)
    return false;
  options->share = share;
  options->shares = shares;
  return true;
}

static int queue(const cli_list *folders, const tarn_sweep_options *o, const wish *w, const view *v) {
  tarn_queue_options options;
  tarn_queue_default(&options);
  options.folders = folders->items;
  options.count = folders->count;
  options.output = o->folder;
  options.commit = w->commit;
  options.retry_failed = o->retry_failed;
  options.stop = o->stop;
  options.save = o->save;
  if (folders->count == 0) return cli_usage(&COMMAND, "--queue needs folders of records, such as results/*");
  if (w->budget && !tarn_sweep_time_parse(&options.budget, w->budget))
    return cli_usage(&COMMAND, "--budget: expected a time above 0 with its unit, such as 10 min or 1.5 h, not \"%s\"",
                     w->budget);
  if (w->share && !take_share(&options, w->share))
    return cli_usage(&COMMAND, "--share: expected I/N with I from 1 to N, such as 1/2, not \"%s\"", w->share);
  return sweep_queue(&COMMAND, &options, w->dry_run, v->json, v->quiet);
}

static int take_launcher(tarn_sweep_options *options, const char *word) {
  int place = 0;
  const char *launchers[TARN_SWEEP_LAUNCHER_COUNT];
  for (int i = 0; i < TARN_SWEEP_LAUNCHER_COUNT; i++) launchers[i] = tarn_sweep_launcher_name((tarn_sweep_launcher)i);
  const int code = cli_word(&COMMAND, &place, "--launcher", word, launchers, TARN_SWEEP_LAUNCHER_COUNT);
  options->launcher = (tarn_sweep_launcher)place;
  return code;
}

int cmd_sweep(int argc, char **argv) {
  catch_stop_signals("tarn sweep: stopped before it began; nothing is lost\n");
  tarn_sweep_options options;
  tarn_sweep_default(&options);
  view v = {.command = &COMMAND};
  wish wished = {0};
  cli_list files = {0}, reuse = {0}, sbatch = {0};
  const char *launcher = "local";
  int64_t most_jobs = CLI_NO_INT;
  const cli_option table[] = {
      {"output", CLI_TEXT, &options.folder, "DIR", "folder of the sweep; made if it does not exist", 0, 0},
      {"dry-run", CLI_FLAG, &wished.dry_run, NULL, "check everything, print variants, sizes, runs and time, and stop",
       0, 0},
      {"reuse", CLI_LIST, &reuse, "SWEEP",
       "folder of another sweep, to take its finished runs of the same settings; may be given several times", 0, 0},
      {"retry-failed", CLI_FLAG, &options.retry_failed, NULL,
       "try runs that failed again, trainings from their last checkpoint", 0, 0},
      {"launcher", CLI_TEXT, &launcher, "NAME", "who starts the runs: local, slurm or mpi", 0, 0},
      {"only", CLI_TEXT, &options.only, "VARIANT/seed-N", "do this run alone", 0, 0},
      {"partition", CLI_TEXT, &options.partition, "NAME", "Slurm's partition", 0, 0},
      {"account", CLI_TEXT, &options.account, "NAME", "Slurm's account", 0, 0},
      {"time", CLI_TEXT, &options.time, "TIME",
       "time limit of a job, as sbatch takes it; a run that needs longer goes on in the next one", 0, 0},
      {"sbatch", CLI_LIST, &sbatch, "OPTION",
       "further option of sbatch, such as --sbatch=--nice=100; may be given several times", 0, 0},
      {"most-jobs", CLI_INT, &most_jobs, "N",
       "with --launcher slurm, how many of its jobs may run at a time (default all)", 1, 1e6},
      {"detach", CLI_FLAG, &options.detach, NULL, "submit the jobs and do not follow them", 0, 0},
      {"watch", CLI_FLAG, &wished.watch, NULL, "show the states of all runs, whoever works on them, until all are over",
       0, 0},
      {"cancel", CLI_FLAG, &wished.cancel, NULL, "end the sweep's jobs in Slurm; those that run save their state", 0,
       0},
      {"interval", CLI_REAL, &options.interval, "SECONDS",
       "with --launcher slurm or --watch, time between two looks at jobs and runs; 0: 10 s", 0, 86400},
      {"queue", CLI_FLAG, &wished.queue, NULL,
       "take folders of records instead of SWEEP.yaml, and run what reduces the variance of their open comparisons "
       "most for its cost",
       0, 0},
      {"budget", CLI_TEXT, &wished.budget, "TIME",
       "with --queue, time it may take, such as \"90 min\" or \"8 h\"; it starts nothing that would end later", 0, 0},
      {"share", CLI_TEXT, &wished.share, "I/N",
       "with --queue, on machine I of N that share the folders: take only every Nth run", 0, 0},
      {"commit", CLI_FLAG, &wished.commit, NULL, "with --queue, commit a folder to git when a run is recorded in it", 0,
       0},
      {"json", CLI_FLAG, &v.json, NULL, "print JSON: one object for each event or look, or one for the dry run", 0, 0},
      {"quiet", CLI_FLAG, &v.quiet, NULL, "print nothing but failures", 0, 0},
      CLI_DEVICE_OPTION,
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &files, 0, 100000);
  if (code < 0) code = take_launcher(&options, launcher);
  options.sbatch = sbatch.items;
  options.sbatch_count = sbatch.count;
  options.most_jobs = most_jobs == CLI_NO_INT ? 0 : most_jobs;
  options.reuse = reuse.items;
  options.reuse_count = reuse.count;
  if (code < 0) code = check_options(&options, &wished);
  if (code < 0 && !wished.queue && files.count > 1)
    code = cli_usage(&COMMAND, "unexpected argument \"%s\"", files.items[1]);
  if (code < 0 && !options.folder && (wished.queue || !wished.dry_run || !files.count))
    code = cli_usage(&COMMAND, "--output DIR is missing");
  if (code < 0) {
    options.file = files.count ? files.items[0] : NULL;
    options.on_event = sweep_view_event;
    options.user = &v;
    options.stop = &stop_signal;
    options.save = &save_signal;
    // Several processes cannot share a progress line.
    const bool terminal = options.launcher != TARN_SWEEP_LAUNCHER_MPI && progress_line_stands_on(stdout);
    v.terminal = !v.json && terminal;
    v.elsewhere = options.launcher != TARN_SWEEP_LAUNCHER_LOCAL || wished.watch;
    v.only = options.only;
    progress_wanted.quiet = v.quiet || v.json;
    signal(SIGCHLD, SIG_DFL);  // if inherited as ignored, it would hide the exit status of the runs' processes
    code = wished.queue ? queue(&files, &options, &wished, &v) : run(&options, &v, &wished);
  }
  cli_list_free(&files);
  cli_list_free(&reuse);
  cli_list_free(&sbatch);
  return code;
}
