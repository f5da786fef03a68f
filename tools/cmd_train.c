// tarn train: trains, shows the progress, and summarises several seeds.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "colour.h"
#include "commands.h"
#include "json_output.h"
#include "limit_options.h"
#include "plan_output.h"
#include "profile_output.h"
#include "progress_line.h"
#include "progress_show.h"
#include "sharing_text.h"
#include "stop_signal.h"
#include "tarn/lab/dynamics.h"
#include "tarn/measure.h"
#include "tarn/process.h"
#include "tarn/train.h"

static const cli_command COMMAND = {
    "train", "CONFIG.yaml", "Train a model into a run directory, or go on with a training.",
    "tarn train CONFIG.yaml --run DIR starts, tarn train --resume DIR goes on from the last checkpoint with the same\n"
    "results as if it had never stopped. Ctrl-C (SIGINT), SIGTERM and SIGHUP (a dropped connection) finish the step,\n"
    "save and stop, with exit code 128 + the signal's number; a second SIGINT or SIGTERM kills at once. Under nohup\n"
    "SIGHUP is ignored. SIGUSR1 saves and goes on. On a terminal one line shows the progress; in a pipe every line of\n"
    "the log is printed. With --seeds 1,2,3 the runs are DIR/seed-1 and so on, and mean and standard deviation are\n"
    "printed at the end. docs/training.md describes the run directory."};

// The state of the event callback.
typedef struct view {
  bool json, quiet, terminal;
  bool told;  // a failure printed by rank 0
  double shown_at;
  int metric;  // the measure that selects the best model
} view;

// A derived measure is shown only if it selects the best model.
static bool is_told(const double *scores, int metric, int chosen) {
  return !isnan(scores[metric]) && (!tarn_measure_of(metric)->derived || metric == chosen);
}

// "12 min left"; a lower bound while the duration of a validation is unknown.
static const char *left_text(char text[PROGRESS_PART], const tarn_train_event *e) {
  char time[32];
  if (e->left_at_least && e->seconds_left <= 0) return "only validation left";
  snprintf(text, PROGRESS_PART, "%s%s left", e->left_at_least ? "at least " : "", cli_time(time, e->seconds_left));
  return text;
}

// On a terminal, one line that is rewritten and fits the window; the least important parts are dropped first.
static void print_terminal(const tarn_train_event *e) {
  char parts[5][PROGRESS_PART];
  if (isnan(e->loss)) return;  // no predictions: keep the current line
  snprintf(parts[0], sizeof parts[0], "update %lld", (long long)e->update);
  snprintf(parts[1], sizeof parts[1], "loss %.4f", e->loss);
  left_text(parts[2], e);
  snprintf(parts[3], sizeof parts[3], "%.0f tokens/s", e->tokens_per_second);
  snprintf(parts[4], sizeof parts[4], "lr %.3g", e->lr);
  progress_line_show(parts, 5);
}

static void print_step(const tarn_train_event *e) {
  char left[PROGRESS_PART];
  printf("update %lld  epoch %.2f  loss %.4f  nll %.4f  lr %.3g  norm %.3g  %.0f tokens/s  %s\n", (long long)e->update,
         e->epoch, e->loss, e->nll, e->lr, e->grad_norm, e->tokens_per_second, left_text(left, e));
  fflush(stdout);
}

static void print_validation(const view *v, const tarn_train_event *e) {
  printf("update %lld  epoch %.2f  %s", (long long)e->update, e->epoch,
         e->path  ? "validation of the average"
         : e->set ? e->set
                  : "validation");
  for (int m = 0; m < tarn_measure_count(); m++) {
    const tarn_measure *measure = tarn_measure_of(m);
    if (is_told(e->scores, m, v->metric)) printf("  %s %.*f", measure->name, measure->told_digits, e->scores[m]);
  }
  if (e->best) printf("  %s(best so far)%s", colour_on(stdout, COLOUR_GREEN), colour_on(stdout, COLOUR_NONE));
  printf("\n");
  fflush(stdout);
}

// A number of the line by name; NAN: not there.
static double number_of(const tarn_train_event *e, const char *name) {
  for (size_t i = 0; i < e->value_count; i++)
    if (strcmp(e->values[i].name, name) == 0) return e->values[i].value;
  return NAN;
}

static void print_exponents(const tarn_train_event *e) {
  printf("update %lld  epoch %.2f  ", (long long)e->update, e->epoch);
  if (isnan(number_of(e, "exponent")))
    printf("no exponents: perturbations vanish, or states are not finite\n");
  else
    printf("exponent %.4f (quartiles %.4f to %.4f of the sentences)\n", number_of(e, "exponent"),
           number_of(e, "exponent_lower"), number_of(e, "exponent_upper"));
  fflush(stdout);
}

static void on_event(void *user, const tarn_train_event *e) {
  view *v = user;
  if (v->quiet) return;
  if (v->json && e->line) {
    printf("%s\n", e->line);
    fflush(stdout);
  }
  if (v->json) return;
  switch (e->kind) {
    case TARN_TRAIN_EVENT_UPDATE:
      // The first update, and then ten times per second of training.
      if (!v->terminal || (e->seconds - v->shown_at < 0.1 && e->seconds >= v->shown_at)) break;
      v->shown_at = e->seconds;
      print_terminal(e);
      break;
    case TARN_TRAIN_EVENT_LOG:
      if (!v->terminal) print_step(e);
      break;
    case TARN_TRAIN_EVENT_VALID:
      progress_line_clear();
      print_validation(v, e);
      break;
    case TARN_TRAIN_EVENT_FREEZE:
      progress_line_clear();
      printf("update %lld  frozen from now on: %s\n", (long long)e->update, e->layers);
      fflush(stdout);
      break;
    case TARN_TRAIN_EVENT_DYNAMICS:
      progress_line_clear();
      print_exponents(e);
      break;
    case TARN_TRAIN_EVENT_SAVED:
      break;
  }
}

static void print_head(const tarn_train *train, const tarn_train_options *options) {
  const tarn_plan *p = tarn_train_plan(train);
  const double million = 1e6;
  char sharing[SHARING_TEXT];
  printf("parameters  %.2f M: %.2f M trained, %.2f M frozen%s\n",
         (double)(p->trained_parameters + p->frozen_parameters) / million, (double)p->trained_parameters / million,
         (double)p->frozen_parameters / million, sharing_text(sharing, p->shared_uses, p->shared_layers, true));
  printf(
      "memory      %.0f MB: parameters %.0f, gradients %.0f, optimiser %.0f, activations %.0f, workspace %.0f, other "
      "%.0f\n",
      (double)p->total_bytes / million, (double)(p->trained_bytes + p->frozen_bytes) / million,
      (double)p->gradient_bytes / million, (double)p->optimiser_bytes / million, (double)p->activation_bytes / million,
      (double)p->workspace_bytes / million, (double)(p->validation_bytes + p->program_bytes) / million);
  printf("run         %s, seed %lld, %s", options->run ? options->run : "(none)",
         (long long)tarn_config_seed(tarn_train_config(train)), p->precision == TARN_PRECISION_BF16 ? "bf16" : "fp32");
  if (p->fp32 != TARN_FP32_EXACT) printf(" by %s", tarn_fp32_name(p->fp32));
  if (tarn_train_update(train) > 0) printf(", from update %lld on", (long long)tarn_train_update(train));
  if (tarn_train_was_over(train)) printf(", where it had ended");
  if (tarn_train_ranks(train) > 1) printf(", %d ranks", tarn_train_ranks(train));
  printf("\n");
  fflush(stdout);
}

static const char *end_text(tarn_train_end end) {
  switch (end) {
    case TARN_TRAIN_END_UPDATES:
      return "train.max_updates";
    case TARN_TRAIN_END_EPOCHS:
      return "train.max_epochs";
    case TARN_TRAIN_END_MINUTES:
      return "train.max_minutes";
    case TARN_TRAIN_END_PATIENCE:
      return "train.patience";
    case TARN_TRAIN_END_PASS:
      return "the end of the data";
  }
  return "";
}

static int print_result_json(const tarn_train_result *r, int chosen, const tarn_plan *plan) {
  json_t *object = json_pack("{s:s, s:s, s:I, s:f, s:f, s:f, s:o}", "kind", "end", "reason", end_text(r->end), "step",
                             (json_int_t)r->update, "epoch", r->epoch, "time", r->seconds, "tokens_per_second",
                             r->tokens_per_second, "checkpoint", json_output_text(r->checkpoint));
  json_object_set_new(object, "planned_bytes", json_integer((json_int_t)plan->total_bytes));
  json_object_set_new(object, "peak_resident_bytes", json_integer((json_int_t)r->peak_bytes));
  json_object_set_new(object, "energy_source", json_output_text(r->cost.source));
  json_object_set_new(object, "joules", json_output_real(r->cost.joules));
  json_object_set_new(object, "epoch_joules", json_output_real(r->cost.epoch_joules));
  json_object_set_new(object, "best_joules", json_output_real(r->cost.best_joules));
  json_object_set_new(object, "co2_grams", json_output_real(r->cost.co2_grams));
  json_object_set_new(object, "operations", json_output_real(r->cost.operations));
  json_object_set_new(object, "token_operations", json_output_real(r->cost.token_operations));
  json_object_set_new(object, "best_operations", json_output_real(r->cost.best_operations));
  json_object_set_new(object, "moved_bytes", json_output_real(r->cost.moved_bytes));
  for (int m = 0; m < tarn_measure_count(); m++) {
    const tarn_measure *measure = tarn_measure_of(m);
    char key[32];
    snprintf(key, sizeof key, "valid_%s", measure->word);
    if (is_told(r->scores, m, chosen)) json_object_set_new(object, key, json_real(r->scores[m]));
  }
  if (r->best_update > 0) json_object_set_new(object, "best", json_real(r->best));
  if (r->best_update > 0) json_object_set_new(object, "best_step", json_integer(r->best_update));
  return json_output_print(&COMMAND, stdout, object, JSON_COMPACT | JSON_REAL_PRECISION(9));
}

static void print_cost(const tarn_cost *cost) {
  if (cost->source) {
    printf("energy      %.4g kJ (%s)", cost->joules / 1e3, cost->source);
    if (!isnan(cost->epoch_joules)) printf(", %.4g kJ an epoch", cost->epoch_joules / 1e3);
    if (!isnan(cost->best_joules)) printf(", %.4g kJ to the best", cost->best_joules / 1e3);
    if (!isnan(cost->co2_grams)) printf(", %.4g g of CO2", cost->co2_grams);
    printf("\n");
  }
  if (isnan(cost->operations)) return;
  printf("operations  %.4g, %.4g a token", cost->operations, cost->token_operations);
  if (!isnan(cost->best_operations)) printf(", %.4g to the best", cost->best_operations);
  printf("; %.4g GB moved\n", cost->moved_bytes / 1e9);
}

static void print_result(const tarn_train_result *r, int chosen, const tarn_plan *plan) {
  const tarn_measure *measure = tarn_measure_of(chosen);
  char time[32];
  cli_time(time, r->seconds);
  printf("done        %s reached at update %lld, epoch %.2f, after %s of training at %.0f tokens/s\n", end_text(r->end),
         (long long)r->update, r->epoch, time, r->tokens_per_second);
  if (r->best_update > 0)
    printf("best        %s %.*f at update %lld\n", measure->name, measure->told_digits, r->best,
           (long long)r->best_update);
  printf("memory      %.0f MB at the most, %.0f MB planned\n", (double)r->peak_bytes / 1e6,
         (double)plan->total_bytes / 1e6);
  print_cost(&r->cost);
  printf("checkpoint  %s (%s)\n", r->checkpoint, r->checkpoint_reason);
}

// Says that a resumed run is already over and nothing is trained; with --quiet, only if the user requested a change.
static void tell_over(const tarn_train *train, const tarn_train_options *options, bool quiet) {
  const char *run = options->run;
  tarn_train_end end;
  if ((quiet && options->override_count == 0) || !tarn_train_is_over(train, &end)) return;
  fprintf(stderr, "tarn train: %s is over: %s reached at update %lld, so nothing is left to train%s\n", run,
          end_text(end), (long long)tarn_train_update(train),
          end == TARN_TRAIN_END_PASS ? "" : "; --set changes limits");
}

// Runs one training. Returns -1 to continue with the next one, or the exit code.
static int run_one(const tarn_train_options *options, view *v, double *best, bool *has_best) {
  tarn_train *train;
  tarn_train_result result = {0};
  int printed = CLI_OK;
  tarn_status status = tarn_train_open(&train, options);
  // Only rank 0 prints.
  v->quiet = v->quiet || (train && tarn_train_rank(train) > 0);
  // Under mpirun a terminal is in fact a pipe to mpirun's own output.
  v->terminal = v->terminal && (!train || tarn_train_ranks(train) == 1);
  if (status == TARN_STATUS_OK) v->metric = tarn_config_metric(tarn_train_config(train));
  if (status == TARN_STATUS_OK && !v->json && !v->quiet) print_head(train, options);
  if (status == TARN_STATUS_OK) tell_over(train, options, v->quiet);
  if (status == TARN_STATUS_OK && options->plan_only && v->json && !v->quiet)
    printed = json_output_print(&COMMAND, stdout, plan_json(tarn_train_plan(train)), JSON_COMPACT);
  if (status == TARN_STATUS_OK && !options->plan_only) {
    stop_in_order(true);
    status = tarn_train_run(train, &result);
    stop_in_order(false);
    progress_line_clear();
    if (status == TARN_STATUS_OK && v->json && !v->quiet)
      printed = print_result_json(&result, v->metric, tarn_train_plan(train));
    if (status == TARN_STATUS_OK && !v->json && !v->quiet) print_result(&result, v->metric, tarn_train_plan(train));
    *best = result.best;
    *has_best = result.best_update > 0;
  }
  tarn_train_close(&train);
  if (status == TARN_STATUS_OK) return printed == CLI_OK ? -1 : printed;
  int code = v->told ? CLI_FAILURE : cli_report(&COMMAND, status);
  return status == TARN_STATUS_INTERRUPTED && stop_signal ? 128 + (int)stop_signal : code;
}

// Summarises the best values of all runs, which have the same measure.
static int print_summary(const double *values, size_t count, const view *v) {
  const tarn_measure *measure = tarn_measure_of(v->metric);
  const int digits = measure->told_digits;
  double mean = 0;
  double square = 0;
  for (size_t i = 0; i < count; i++) mean += values[i] / (double)count;
  for (size_t i = 0; i < count; i++) square += (values[i] - mean) * (values[i] - mean);
  const double deviation = count > 1 ? sqrt(square / (double)(count - 1)) : 0.0;  // a single run has no deviation
  if (v->json) {
    json_t *object = json_pack("{s:s, s:I, s:s, s:f}", "kind", "summary", "runs", (json_int_t)count, "measure",
                               measure->word, "best_mean", mean);
    if (count > 1) json_object_set_new(object, "best_sd", json_real(deviation));
    return json_output_print(&COMMAND, stdout, object, JSON_COMPACT | JSON_REAL_PRECISION(9));
  }
  if (count == 1) {
    printf("all seeds   best %s %.*f (of one run)\n", measure->name, digits, mean);
  } else {
    printf("all seeds   best %s %.*f ± %.*f (mean and standard deviation of %zu runs)\n", measure->name, digits, mean,
           digits, deviation, count);
  }
  return CLI_OK;
}

// Handles a signal that arrived after a run was over.
static int stopped_between(const tarn_train_list *list, size_t done) {
  fprintf(stderr, "tarn %s: stopped after %zu of %zu runs; go on with: tarn train --resume %s\n", COMMAND.name,
          done + 1, list->count, list->runs[done].folder);
  return 128 + (int)stop_signal;
}

static int run_all(const tarn_train_list *list, view *v) {
  double *values = calloc(list->count, sizeof *values);
  if (!values) return cli_no_memory(&COMMAND);
  size_t count = 0;
  int code = -1;
  for (size_t i = 0; i < list->count && code < 0; i++) {
    bool has_best = false;
    v->shown_at = -INFINITY;
    code = run_one(&list->runs[i], v, &values[count], &has_best);
    if (has_best) count++;
    if (list->runs[i].plan_only) break;  // the plan of every seed is the same
    if (code < 0 && stop_signal && i + 1 < list->count) code = stopped_between(list, i);
  }
  if (code < 0 && list->seeds && count > 0 && !v->quiet) code = print_summary(values, count, v);
  free(values);
  return code < 0 ? CLI_OK : code;
}

static int train(tarn_train_options *options, view *v, const char *profile) {
  tarn_train_list *list;
  const bool terminal = progress_line_stands_on(stdout);
  v->terminal = !v->json && terminal;
  progress_wanted.quiet = v->quiet || v->json;
  options->on_event = on_event;
  options->user = v;
  options->told = &v->told;
  options->stop = &stop_signal;
  options->save = &save_signal;
  tarn_dynamics_follow(options);
  if (profile) {
    tarn_status status = tarn_profile_open(&options->profile, TARN_PROFILE_TRACED);
    if (status != TARN_STATUS_OK) return cli_report(&COMMAND, status);
  }
  tarn_status status = tarn_train_list_open(&list, options);
  int code = status == TARN_STATUS_OK ? run_all(list, v) : v->told ? CLI_FAILURE : cli_report(&COMMAND, status);
  if (status == TARN_STATUS_OK && profile) {
    int written = profile_output(&COMMAND, options->profile, profile, v->quiet ? NULL : stdout, v->json);
    if (code == CLI_OK) code = written;
  }
  tarn_train_list_close(&list);
  tarn_profile_close(&options->profile);
  return code;
}

// --seeds is short for an override.
static int add_seeds(cli_list *overrides, char text[512], const char *seeds) {
  if (!seeds) return -1;
  int length = snprintf(text, 512, "train.seeds=[%s]", seeds);
  if (length >= 512 || strspn(seeds, "0123456789, ") != strlen(seeds))
    return cli_usage(&COMMAND, "--seeds takes whole numbers with commas between them, not \"%.100s\"", seeds);
  const char **items = realloc(overrides->items, (overrides->count + 1) * sizeof *items);
  if (!items) return cli_no_memory(&COMMAND);
  overrides->items = items;
  overrides->items[overrides->count++] = text;
  overrides->capacity = overrides->count;
  return -1;
}

int cmd_train(int argc, char **argv) {
  // A launcher kills the other ranks after one has reported the error.
  catch_stop_signals(tarn_ranks_started() > 1 ? "" : "tarn train: stopped before it trained; nothing is lost\n");
  tarn_train_options options;
  tarn_train_default(&options);
  const char *resume = NULL;
  const char *seeds = NULL;
  const char *profile = NULL;
  char seeds_text[512];
  int64_t threads = 0;
  view v = {0};
  cli_list overrides = {0};
  cli_list files = {0};
  limit_options limits = {0};
  const cli_option table[] = {
      {"run", CLI_TEXT, &options.run, "DIR", "run directory of a new training; made if it does not exist", 0, 0},
      {"resume", CLI_TEXT, &resume, "DIR", "go on with the training in this run directory", 0, 0},
      {"set", CLI_LIST, &overrides, "KEY=VALUE", "override a key of the configuration; may be repeated", 0, 0},
      {"seeds", CLI_TEXT, &seeds, "N,N,...", "one run for each seed, as train.seeds", 0, 0},
      {"threads", CLI_INT, &threads, "N", "threads; 0 takes train.threads", 0, 4096},
      CLI_DEVICE_OPTION,
      {"comm", CLI_TEXT, &options.comm, "NAME",
       "how ranks communicate: self (one rank), mpi, or nccl (mpi with a card for each rank; default: as the program "
       "was started)",
       0, 0},
      {"accept-log", CLI_FLAG, &options.accept_log, NULL,
       "with --resume: go on although log.jsonl lost lines or was changed, and mark the run", 0, 0},
      {"dry-run", CLI_FLAG, &options.plan_only, NULL, "check everything, print the plan and stop", 0, 0},
      {"json", CLI_FLAG, &v.json, NULL, "print the lines of the log as they are, and the result as JSON", 0, 0},
      {"profile", CLI_TEXT, &profile, "FILE", PROFILE_HELP, 0, 0},
      PROGRESS_OPTION,
      {"quiet", CLI_FLAG, &v.quiet, NULL, "print nothing but failures and warnings", 0, 0},
      LIMIT_OPTIONS(limits),
      {0}};
  cli_together(&options.comm);
  int code = cli_parse(&COMMAND, table, argc, argv, &files, 0, 1);
  if (code < 0) code = limit_options_set(&COMMAND, &limits);
  if (code < 0) code = add_seeds(&overrides, seeds_text, seeds);
  if (code < 0 && resume && (files.count || options.run || seeds))
    code = cli_usage(&COMMAND, "--resume DIR stands alone: the run directory holds its configuration");
  if (code < 0 && !resume && !files.count) code = cli_usage(&COMMAND, "CONFIG.yaml or --resume DIR is missing");
  if (code < 0 && !resume && !options.run && !options.plan_only) code = cli_usage(&COMMAND, "--run DIR is missing");
  if (code < 0 && options.accept_log && !resume)
    code = cli_usage(&COMMAND, "--accept-log is for a training that goes on: --resume DIR");
  if (code < 0 && profile && options.plan_only) code = cli_usage(&COMMAND, "--profile measures nothing in a dry run");
  if (code < 0) {
    options.config = resume ? NULL : files.items[0];
    options.resume = resume != NULL;
    if (resume) options.run = resume;
    options.overrides = overrides.items;
    options.override_count = overrides.count;
    options.threads = (int)threads;
    code = train(&options, &v, profile);
  }
  cli_list_free(&overrides);
  cli_list_free(&files);
  return code;
}
