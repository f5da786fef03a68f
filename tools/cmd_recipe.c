// tarn recipe: experiments by name, from raw data to a score beside the one that is expected.
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "json_output.h"
#include "plan_output.h"
#include "progress_line.h"
#include "progress_show.h"
#include "recipe_output.h"
#include "stop_signal.h"
#include "sweep_events.h"
#include "tarn/lab/recipes.h"
#include "text_table.h"

static const cli_command COMMAND = {
    "recipe", "list|show|run ...", "Run an experiment by name, and see its score beside the expected one.",
    "tarn recipe list              what there is, with expected scores\n"
    "tarn recipe show NAME         a recipe, to be read, copied and changed\n"
    "tarn recipe run NAME          check its data, prepare them, train, test, compare\n\n"
    "Each has options of its own: tarn recipe run --help. NAME may be the path of a file (docs/recipes.md)."};
static const cli_command LIST = {"recipe list", "", "List the recipes with their tasks, data and expected scores.",
                                 "A score is the mean ± the standard deviation over seeds."};
static const cli_command SHOW = {"recipe show", "NAME|FILE.yaml", "Print a recipe, with the commands that it runs.",
                                 "The output is a recipe file itself, and what is added are comments: redirect it to a "
                                 "file, change that, and run it."};
static const cli_command RUN = {
    "recipe run", "NAME|FILE.yaml", "Prepare the data of a recipe, train, test, and compare the score.",
    "Says first which files of the data are missing, and what memory and time a run will take here. All files go into\n"
    "DIR, a new folder: the shards into DIR/data, the runs into DIR/runs, the score into DIR/score.json. The same\n"
    "command goes on where it was stopped or killed. Ctrl-C (SIGINT), SIGTERM and SIGHUP save and stop, with exit code "
    "128 + the signal's\n"
    "number. The exit code is 1 if data are missing or a run failed."};

// --- list

static void add_row(text_table *table, const tarn_recipe *recipe, const tarn_plan *plan) {
  char score[RECIPE_SCORE_TEXT], expected[RECIPE_EXPECTED_TEXT];
  text_table_row(table);
  text_table_cell(table, "%s", recipe->name);
  text_table_cell(table, "%s", recipe->task);
  text_table_cell(table, "%s", recipe->size ? recipe->size : "");
  text_table_cell(table, "%s", recipe_score_name(score, recipe));
  text_table_cell(table, "%s", recipe_expected(expected, recipe));
  if (plan)
    text_table_cell(table, "%.1f M", (double)(plan->trained_parameters + plan->frozen_parameters) / 1e6);
  else
    text_table_cell(table, "-");
}

static int list_one(text_table *table, json_t *all, const char *name) {
  tarn_recipe *recipe;
  tarn_recipe_options options;
  tarn_plan plan = {0};
  tarn_recipe_default(&options);
  options.recipe = name;
  tarn_status status = tarn_recipe_open(&recipe, &options);
  if (status != TARN_STATUS_OK) return cli_report(&LIST, status);
  if (recipe->model) status = tarn_recipe_plan(recipe, &plan, NULL, NULL);
  if (status == TARN_STATUS_OK && all) {
    json_t *object = recipe_json(recipe);
    if (recipe->model)
      json_object_set_new(object, "parameters", json_integer(plan.trained_parameters + plan.frozen_parameters));
    json_array_append_new(all, object);
  } else if (status == TARN_STATUS_OK) {
    add_row(table, recipe, recipe->model ? &plan : NULL);
  }
  const int code = status == TARN_STATUS_OK ? CLI_OK : cli_report(&LIST, status);
  tarn_plan_close(&plan);
  tarn_recipe_close(&recipe);
  return code;
}

static int list(int argc, char **argv) {
  static const char *const titles[] = {"name", "task", "data", "score", "expected", "parameters"};
  bool json = false;
  cli_list words = {0};
  const cli_option options[] = {{"json", CLI_FLAG, &json, NULL, "print the recipes as JSON", 0, 0}, {0}};
  int code = cli_parse(&LIST, options, argc, argv, &words, 0, 0);
  cli_list_free(&words);
  if (code >= 0) return code;
  text_table table = {.columns = sizeof titles / sizeof *titles};
  json_t *all = json ? json_array() : NULL;
  text_table_row(&table);
  for (size_t i = 0; i < sizeof titles / sizeof *titles; i++) text_table_cell(&table, "%s", titles[i]);
  code = CLI_OK;
  const char *name;
  for (size_t i = 0; code == CLI_OK && (name = tarn_recipe_name(i)); i++) code = list_one(&table, all, name);
  if (code != CLI_OK) {
    json_decref(all);
    free(table.cells);
    return code;
  }
  if (!json) return text_table_print(&table) ? CLI_OK : cli_no_memory(&LIST);
  free(table.cells);
  return json_output_print(&LIST, stdout, json_pack("{s:o}", "recipes", all), JSON_COMPACT);
}

// --- show

static void print_recipe(const tarn_recipe *recipe, const char *given) {
  char name[RECIPE_SCORE_TEXT], expected[RECIPE_EXPECTED_TEXT];
  fputs(recipe->text, stdout);
  printf("\n# %s expected: %s\n# It runs, in the output folder%s:\n", recipe_score_name(name, recipe),
         recipe_expected(expected, recipe), recipe->need_count > 0 ? ", where inputs/ has links to the data" : "");
  recipe_print_steps(stdout, recipe, "#   ");
  if (recipe->model) {
    fputs("# The description: tarn recipe show", stdout);
    recipe_print_word(stdout, given);
    fputs(" --model\n", stdout);
  }
}

static int show(int argc, char **argv) {
  bool json = false, model = false;
  cli_list names = {0}, data = {0};
  tarn_recipe *recipe = NULL;
  tarn_recipe_options options;
  tarn_recipe_default(&options);
  const cli_option table[] = {
      {"data", CLI_LIST, &data, "DIR",
       "folder with the data: the commands then have the names found there; may be repeated", 0, 0},
      {"model", CLI_FLAG, &model, NULL, "print the description of the model instead", 0, 0},
      {"json", CLI_FLAG, &json, NULL, "print what is needed and done as JSON", 0, 0},
      {0}};
  int code = cli_parse(&SHOW, table, argc, argv, &names, 1, 1);
  if (code < 0) {
    options.recipe = names.items[0];
    options.data = data.items;
    options.data_count = data.count;
    const tarn_status status = tarn_recipe_open(&recipe, &options);
    code = status == TARN_STATUS_OK ? CLI_OK : cli_report(&SHOW, status);
    if (code == CLI_OK && model && !recipe->model)
      code = cli_usage(&SHOW, "%s has no description: it trains by its steps", recipe->name);
    else if (code == CLI_OK && model)
      fputs(recipe->model_text, stdout);
    else if (code == CLI_OK && json)
      code = json_output_print(&SHOW, stdout, recipe_json(recipe), JSON_COMPACT);
    else if (code == CLI_OK)
      print_recipe(recipe, options.recipe);
  }
  tarn_recipe_close(&recipe);
  cli_list_free(&names);
  cli_list_free(&data);
  return code;
}

// --- run

typedef struct running {
  tarn_recipe_options options;
  cli_list data, set;
  const char *output;
  bool dry_run, retry_failed, json, quiet;
  bool entered;  // the output folder
  tarn_recipe *recipe;
} running;

static bool tells(const running *r) { return !r->json && !r->quiet; }

static void print_forecast(const tarn_plan *plan, const tarn_duration *duration) {
  const size_t available = tarn_memory_available();
  printf("memory of a run: %.0f MB; %.2f M parameters, %.2f M of them frozen", (double)plan->total_bytes / 1e6,
         (double)(plan->trained_parameters + plan->frozen_parameters) / 1e6, (double)plan->frozen_parameters / 1e6);
  if (available > 0 && plan->total_bytes > available) printf("; ONLY %.0f MB ARE FREE", (double)available / 1e6);
  if (duration->seconds < 0)
    printf("\ntime of a run: known when the data are prepared\n");
  else
    plan_print_duration(duration);
}

// Memory and time of a run here; with a log, that of the run so far. As text, or with the recipe as JSON.
static int forecast(const running *r) {
  tarn_plan plan = {0};
  tarn_duration duration;
  char run[128];
  tarn_status status = TARN_STATUS_UNSUPPORTED;
  const bool wanted = r->recipe->model && r->recipe->missing == 0;
  if (!tells(r) && !(r->json && r->dry_run)) return CLI_OK;
  snprintf(run, sizeof run, "%s/%s/seed-1", TARN_RECIPE_RUNS, r->recipe->name);
  if (wanted) status = tarn_recipe_plan(r->recipe, &plan, &duration, r->entered ? run : NULL);
  const bool known = status == TARN_STATUS_OK;
  int code = known || status == TARN_STATUS_UNSUPPORTED ? CLI_OK : cli_report(&RUN, status);
  if (code == CLI_OK && r->json) {
    json_t *object = recipe_json(r->recipe);
    json_object_set_new(object, "memory", known ? plan_json(&plan) : json_null());
    json_object_set_new(object, "time", known ? plan_duration_json(&duration) : json_null());
    code = json_output_print(&RUN, stdout, object, JSON_COMPACT);
  } else if (known) {
    print_forecast(&plan, &duration);
  } else if (code == CLI_OK && wanted) {
    printf("memory and time of a run: known when the data are prepared; the recipe has no key vocabulary\n");
  }
  fflush(stdout);
  tarn_plan_close(&plan);
  return code;
}

static void on_step(void *user, tarn_recipe_event_kind kind, size_t step, double seconds) {
  const running *r = user;
  char time[32];
  if (!tells(r)) return;
  if (kind == TARN_RECIPE_EVENT_FINISHED) {
    printf("  %s\n", cli_time(time, seconds));
  } else {
    printf("step %zu of %zu: tarn %s", step + 1, r->recipe->step_count, r->recipe->steps[step].words[0]);
    if (r->recipe->steps[step].seed > 0) printf(" (seed %lld)", (long long)r->recipe->steps[step].seed);
    if (kind == TARN_RECIPE_EVENT_SKIPPED) printf("  done before\n");
  }
  fflush(stdout);
}

static int interrupted(tarn_status status) {
  const int code = cli_report(&RUN, status);
  return status == TARN_STATUS_INTERRUPTED && stop_signal ? 128 + (int)stop_signal : code;
}

static int prepare(running *r, bool only_check) {
  const tarn_recipe_running how = {.on_step = on_step, .user = r, .stop = &stop_signal, .only_check = only_check};
  stop_in_order(true);
  const tarn_status status = tarn_recipe_prepare(r->recipe, &how);
  stop_in_order(false);
  if (status == TARN_STATUS_OK) return CLI_OK;
  if (tells(r) && !only_check) printf("\n");
  fflush(stdout);
  return interrupted(status);
}

static int finish(const running *r, const tarn_sweep *sweep) {
  tarn_recipe_result result;
  const tarn_status status = tarn_recipe_score(&result, r->recipe, sweep);
  if (status != TARN_STATUS_OK) return cli_report(&RUN, status);
  if (r->json) return json_output_print(&RUN, stdout, json_load_file(TARN_RECIPE_SCORE, 0, NULL), JSON_COMPACT);
  if (!r->quiet) recipe_print_result(r->recipe, &result);
  return CLI_OK;
}

static int run_sweep(const running *r, tarn_sweep *sweep, tarn_sweep_options *options, sweep_view *view) {
  view->sweep = sweep;
  view->shown = calloc(sweep->run_count, sizeof *view->shown);
  if (!view->shown) return cli_no_memory(&RUN);
  stop_in_order(true);
  const tarn_status status = tarn_sweep_run_all(sweep, options);
  stop_in_order(false);
  progress_line_clear();
  free(view->shown);
  if (status != TARN_STATUS_OK) return interrupted(status);
  size_t failed = 0;
  for (size_t i = 0; i < sweep->run_count; i++) failed += sweep->runs[i].state == TARN_SWEEP_FAILED;
  const int code = finish(r, sweep);
  if (failed == 0 || code != CLI_OK) return code;
  fflush(stdout);
  fprintf(stderr, "tarn %s: %zu of %zu runs failed; --retry-failed tries them again\n", RUN.name, failed,
          sweep->run_count);
  return CLI_FAILURE;
}

// Trains and tests what the description says, as a sweep of one variant.
static int train(const running *r) {
  tarn_sweep *sweep;
  tarn_sweep_options options;
  sweep_view view = {.command = &RUN, .quiet = !tells(r), .terminal = tells(r) && progress_line_stands_on(stdout)};
  tarn_sweep_default(&options);
  options.file = TARN_RECIPE_SWEEP;
  options.folder = TARN_RECIPE_RUNS;
  options.retry_failed = r->retry_failed;
  options.on_event = sweep_view_event;
  options.user = &view;
  options.stop = &stop_signal;
  options.save = &save_signal;
  const tarn_status status = tarn_sweep_open(&sweep, &options);
  if (status != TARN_STATUS_OK) return cli_report(&RUN, status);
  const int code = run_sweep(r, sweep, &options, &view);
  tarn_sweep_close(&sweep);
  return code;
}

static int report_missing(const running *r) {
  const tarn_recipe *recipe = r->recipe;
  if (recipe->missing == 0) return CLI_OK;
  fflush(stdout);
  fprintf(stderr, "tarn %s: %s: %zu of %s missing; --data names the folder that holds them\n", RUN.name, recipe->name,
          recipe->missing, CLI_COUNT((int64_t)recipe->need_count, "file"));
  return CLI_FAILURE;
}

static int announce(const running *r) {
  const tarn_recipe *recipe = r->recipe;
  if (!r->quiet && !r->json) {
    printf("%s: %s\n%s\n", recipe->name, recipe->task, recipe->summary);
    recipe_print_data(recipe);
    if (r->dry_run) {
      printf("commands%s:\n", recipe->need_count > 0 ? " (inputs/ has links to the data)" : "");
      recipe_print_steps(stdout, recipe, "  ");
    }
    recipe_print_expected(recipe);
  }
  if (recipe->missing > 0 && r->json && r->dry_run) {
    const int code = forecast(r);
    if (code != CLI_OK) return code;
  }
  return report_missing(r);
}

// Makes a folder and puts its name on disk: otherwise a loss of power could take it away with all that is in it.
static void make_folder(const char *path) {
  char parent[4096];
  const char *slash = strrchr(path, '/');
  if (mkdir(path, 0777) != 0) return;  // chdir() tells whether it is there
  snprintf(parent, sizeof parent, "%.*s", slash ? (int)(slash + 1 - path) : 1, slash ? path : ".");
  const int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  (void)fsync(fd);  // as far as the file system can
  close(fd);
}

static int enter(running *r) {
  const char *folder = r->output;
  const bool make = !r->dry_run;
  char path[4096];
  if (snprintf(path, sizeof path, "%s", folder) >= (int)sizeof path)
    return cli_usage(&RUN, "--output: the path is too long: %.80s...", folder);
  if (make) {
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
      *slash = '\0';
      make_folder(path);
      *slash = '/';
    }
    make_folder(path);
  }
  r->entered = chdir(folder) == 0;
  if (r->entered || (!make && errno == ENOENT)) return CLI_OK;
  fprintf(stderr, "tarn %s: --output: %s: %s\n", RUN.name, folder, strerror(errno));
  return CLI_FAILURE;
}

static int run_recipe(running *r) {
  const tarn_status status = tarn_recipe_open(&r->recipe, &r->options);
  if (status != TARN_STATUS_OK) return cli_report(&RUN, status);
  int code = announce(r);
  if (code != CLI_OK) return code;
  code = enter(r);
  if (code == CLI_OK && r->entered) code = prepare(r, true);
  if (code != CLI_OK) return code;
  // Behind a preparation the data are known, and a run that has begun has its log.
  const bool prepared = r->entered && tarn_recipe_is_prepared(r->recipe);
  code = forecast(r);
  if (code != CLI_OK || r->dry_run) return code;
  code = prepare(r, false);
  if (code != CLI_OK) return code;
  if (!r->recipe->model) return finish(r, NULL);
  if (!prepared) code = forecast(r);
  return code == CLI_OK ? train(r) : code;
}

static int run(int argc, char **argv) {
  catch_stop_signals("tarn recipe run: stopped before it began; nothing is lost\n");
  running r = {0};
  cli_list names = {0};
  tarn_recipe_default(&r.options);
  const cli_option table[] = {
      {"data", CLI_LIST, &r.data, "DIR", "folder with the data; may be repeated: the first that has a file is taken", 0,
       0},
      {"output", CLI_TEXT, &r.output, "DIR", "folder for everything that is made; needed", 0, 0},
      {"set", CLI_LIST, &r.set, "KEY=VALUE", "change a key of the description; may be repeated", 0, 0},
      {"seeds", CLI_INT, &r.options.seeds, "N", "train with the seeds 1 to N; 0: as many as the recipe says", 0,
       TARN_RECIPE_SEEDS},
      {"dry-run", CLI_FLAG, &r.dry_run, NULL, "check the data, print the commands, memory and time, and stop", 0, 0},
      {"retry-failed", CLI_FLAG, &r.retry_failed, NULL, "try runs that failed again", 0, 0},
      {"json", CLI_FLAG, &r.json, NULL, "print the result, or what a dry run finds, as JSON", 0, 0},
      {"quiet", CLI_FLAG, &r.quiet, NULL, "print nothing but failures", 0, 0},
      CLI_DEVICE_OPTION,
      {0}};
  int code = cli_parse(&RUN, table, argc, argv, &names, 1, 1);
  if (code < 0 && (!r.output || !*r.output)) code = cli_usage(&RUN, "--output DIR is missing");
  if (code < 0) {
    r.options.recipe = names.items[0];
    r.options.data = r.data.items;
    r.options.data_count = r.data.count;
    r.options.set = r.set.items;
    r.options.set_count = r.set.count;
    progress_wanted.quiet = true;  // of the forecast, which takes seconds
    signal(SIGCHLD, SIG_DFL);      // if inherited as ignored, it would hide the exit status of processes
    code = run_recipe(&r);
  }
  tarn_recipe_close(&r.recipe);
  cli_list_free(&names);
  cli_list_free(&r.data);
  cli_list_free(&r.set);
  return code;
}

int cmd_recipe(int argc, char **argv) {
  static const cli_step steps[] = {{"list", list}, {"show", show}, {"run", run}};
  return cli_choose(&COMMAND, steps, sizeof steps / sizeof *steps, argc, argv);
}
