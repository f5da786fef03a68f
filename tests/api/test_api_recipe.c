// Recipes: tarn/lab/recipes.h. Their steps are processes of the program.
#include "api.h"
#include "sandbox.h"

#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tarn/lab/recipes.h"

static const char text[] =
    "task: series\nsummary: a test\ndata: { rows: [none.csv, rows.csv] }\n"
    "prepare:\n  - split: { every: 1, output: made/all.csv, files: $rows }\n"
    "each_seed:\n"
    "  - series train: { rows: 40, units: 5, warmup: 5, seed: \"{seed}\", output: \"runs/{seed}\", files: made/all.csv "
    "}\n"
    "  - series forecast: { steps: 5, json: \"runs/{seed}.json\", files: [\"runs/{seed}\", made/all.csv] }\n"
    "score: nrmse\nseeds: 2\nexpected: { mean: 1, deviation: 2, seeds: 3, from: nowhere, minutes: 4 }\n";
static const char model[] =
    "task: translation\nsummary: a test\nvocabulary: 50\nmodel: multi30k/full.yaml\nscore: valid.bleu\n";

static int open_all(void **state) {
  char rows[4096] = "x\n";
  if (sandbox_open(state) != 0) return -1;
  for (int i = 0; i < 60; i++) snprintf(rows + strlen(rows), 32, "%.6f\n", sin(0.3 * i) + 0.1 * cos(1.7 * i));
  sandbox_write("rows.csv", rows, strlen(rows));
  sandbox_write("own.yaml", text, strlen(text));
  sandbox_write("model.yaml", model, strlen(model));
  sandbox_write("bad.yaml", "task: x\nsumary: y\n", 18);
  return 0;
}

static tarn_recipe *opened(const char *name, const char *const *data) {
  tarn_recipe *recipe;
  tarn_recipe_options options;
  tarn_recipe_default(&options);
  options.recipe = name;
  options.data = data;
  options.data_count = data != NULL;
  works(tarn_recipe_open(&recipe, &options));
  return recipe;
}

static void use_tarn_recipe_name(void) {
  assert_string_equal(tarn_recipe_name(0), "babylm");
  size_t count = 0;
  while (tarn_recipe_name(count)) count++;
  assert_in_range(count, 8, 100);
  assert_null(tarn_recipe_name(count + 1));
}

static void use_tarn_recipe_default(void) {
  tarn_recipe_options options;
  memset(&options, 0xff, sizeof options);
  tarn_recipe_default(&options);
  assert_true(!options.recipe && !options.data && !options.set && options.seeds == 0);
}

static void use_tarn_recipe_open(void) {
  static const char *const here[] = {"."}, *const change[] = {"a=b"};
  tarn_recipe *recipe = opened("./own.yaml", here);
  tarn_recipe_options options;
  assert_string_equal(recipe->name, "own");
  assert_int_equal(recipe->missing, 0);
  assert_int_equal(recipe->step_count, 5);
  assert_int_equal(recipe->steps[3].seed, 2);
  assert_string_equal(recipe->steps[4].output, "runs/2.json");
  assert_true(recipe->expected == 1 && recipe->deviation == 2 && recipe->expected_seeds == 3 && recipe->minutes == 4);
  tarn_recipe_close(&recipe);
  recipe = opened("./own.yaml", NULL);
  assert_int_equal(recipe->missing, 1);
  assert_string_equal(recipe->needs[0].choices, "none.csv or rows.csv");
  tarn_recipe_close(&recipe);
  tarn_recipe_default(&options);
  refuses(tarn_recipe_open(&recipe, &options), TARN_STATUS_USAGE, "the name or the file of a recipe is needed");
  options.recipe = "bad.yaml";
  refuses(tarn_recipe_open(&recipe, &options), TARN_STATUS_USAGE, "bad.yaml:2: unknown key \"sumary\"");
  options.recipe = "./missing.yaml";
  refuses(tarn_recipe_open(&recipe, &options), TARN_STATUS_IO, "missing.yaml: cannot read");
  options.recipe = "esn-serie";
  refuses(tarn_recipe_open(&recipe, &options), TARN_STATUS_USAGE, "did you mean esn-series?");
  options.recipe = "own.yaml";
  options.set = change;
  options.set_count = 1;
  refuses(tarn_recipe_open(&recipe, &options), TARN_STATUS_USAGE, "no description whose keys could be set");
  options.seeds = -1;
  refuses(tarn_recipe_open(&recipe, &options), TARN_STATUS_USAGE, "seeds: 1 to 1000, not -1");
}

static void use_tarn_recipe_close(void) {
  tarn_recipe *recipe = NULL;
  tarn_recipe_close(&recipe);
  recipe = opened("multi30k", NULL);
  tarn_recipe_close(&recipe);
  assert_null(recipe);
}

static void use_tarn_recipe_plan(void) {
  tarn_plan plan;
  tarn_recipe *recipe = opened("./model.yaml", NULL);
  works(tarn_recipe_plan(recipe, &plan, NULL, NULL));
  assert_true(plan.trained_parameters > 1000000);
  tarn_plan_close(&plan);
  tarn_recipe_close(&recipe);
  recipe = opened("./own.yaml", NULL);
  refuses(tarn_recipe_plan(recipe, &plan, NULL, NULL), TARN_STATUS_UNSUPPORTED, "has no description");
  tarn_recipe_close(&recipe);
}

typedef struct counts {
  int events[3];
} counts;

static void count_step(void *user, tarn_recipe_event_kind kind, size_t step, double seconds) {
  ((counts *)user)->events[kind]++;
  assert_true(step < 5 && seconds >= 0);
}

static void use_tarn_recipe_prepare(void) {
  static const char *const here[] = {".."};
  counts seen = {{0}};
  volatile sig_atomic_t stop = 1;
  tarn_recipe_running running = {.program = TARN_PROGRAM, .on_step = count_step, .user = &seen, .stop = &stop};
  mkdir("work", 0777);
  assert_int_equal(chdir("work"), 0);
  tarn_recipe *recipe = opened("../own.yaml", NULL);
  refuses(tarn_recipe_prepare(recipe, &running), TARN_STATUS_USAGE, "data: rows is missing: none.csv or rows.csv");
  tarn_recipe_close(&recipe);
  recipe = opened("../own.yaml", here);
  sandbox_write("mine", "x", 1);
  refuses(tarn_recipe_prepare(recipe, &running), TARN_STATUS_USAGE, "this folder has other files (mine)");
  unlink("mine");
  running.only_check = true;
  works(tarn_recipe_prepare(recipe, &running));
  assert_int_equal(access(".recipe.lock", F_OK), -1);
  running.only_check = false;
  refuses(tarn_recipe_prepare(recipe, &running), TARN_STATUS_INTERRUPTED, "stopped by request");
  stop = 0;
  works(tarn_recipe_prepare(recipe, &running));
  assert_int_equal(seen.events[TARN_RECIPE_EVENT_FINISHED], 5);
  assert_int_equal(seen.events[TARN_RECIPE_EVENT_SKIPPED], 0);
  works(tarn_recipe_prepare(recipe, &running));
  assert_int_equal(seen.events[TARN_RECIPE_EVENT_SKIPPED], 5);
  assert_int_equal(access(TARN_RECIPE_COPY, F_OK), 0);
  sandbox_write("../rows.csv", "x\n1\n", 4);
  refuses(tarn_recipe_prepare(recipe, &running), TARN_STATUS_USAGE, "from other data");
  sandbox_write("prepared.json", "[", 1);
  refuses(tarn_recipe_prepare(recipe, &running), TARN_STATUS_DATA, "prepared.json is damaged");
  sandbox_write("prepared.json", "{\"steps\": [], \"seeds\": 3}", 25);
  refuses(tarn_recipe_prepare(recipe, &running), TARN_STATUS_USAGE, "this folder has the seeds 1 to 3");
  sandbox_write("prepared.json", "{\"steps\": []}", 13);
  refuses(tarn_recipe_prepare(recipe, &running), TARN_STATUS_DATA, "step 2, tarn series: ");
  running.program = "/nowhere/tarn";
  refuses(tarn_recipe_prepare(recipe, &running), TARN_STATUS_DATA, "could not be started");
  tarn_recipe_close(&recipe);
  assert_int_equal(chdir(".."), 0);
}

static void use_tarn_recipe_is_prepared(void) {
  static const char *const here[] = {".."};
  const tarn_recipe_running running = {.program = TARN_PROGRAM};
  mkdir("prepared", 0777);
  assert_int_equal(chdir("prepared"), 0);
  tarn_recipe *recipe = opened("../own.yaml", here);
  assert_false(tarn_recipe_is_prepared(recipe));
  works(tarn_recipe_prepare(recipe, &running));
  assert_true(tarn_recipe_is_prepared(recipe));
  assert_string_equal(recipe->needs[0].links[0], TARN_RECIPE_INPUTS "/rows.csv");
  assert_int_equal(unlink(TARN_RECIPE_INPUTS "/rows.csv"), 0);
  assert_false(tarn_recipe_is_prepared(recipe));
  tarn_recipe_close(&recipe);
  assert_int_equal(chdir(".."), 0);
}

static void use_tarn_recipe_score(void) {
  tarn_recipe_result result;
  tarn_recipe *recipe = opened("./own.yaml", NULL);
  mkdir("runs", 0777);
  unlink("runs/2.json");
  sandbox_write("runs/1.json", "{\"nrmse\": 2.5}", 14);
  works(tarn_recipe_score(&result, recipe, NULL));
  assert_true(result.count == 1 && result.seeds[0] == 1 && result.mean == 2.5 && isnan(result.deviation));
  assert_true(result.known && result.within);
  assert_int_equal(access(TARN_RECIPE_SCORE, F_OK), 0);
  sandbox_write("runs/1.json", "{\"nrmse\": 100}", 14);
  works(tarn_recipe_score(&result, recipe, NULL));
  assert_true(result.known && !result.within);
  sandbox_write("runs/1.json", "{}", 2);
  refuses(tarn_recipe_score(&result, recipe, NULL), TARN_STATUS_DATA, "there is no number \"nrmse\"");
  tarn_recipe_close(&recipe);
  recipe = opened("multi30k", NULL);
  refuses(tarn_recipe_score(&result, recipe, NULL), TARN_STATUS_USAGE, "has the scores of its sweep");
  tarn_recipe_close(&recipe);
}

static void use_tarn_recipe_interval(void) {
  double low, high;
  tarn_recipe *recipe = opened("./own.yaml", NULL);
  // Student's t of two degrees of freedom at 0.05 is 4.302653.
  assert_true(tarn_recipe_interval(&low, &high, recipe, 1));
  assert_true(fabs(high - 1 - 4.302653 * 2 * sqrt(1.0 / 3 + 1)) < 1e-5 && fabs(low + high - 2) < 1e-9);
  assert_false(tarn_recipe_interval(&low, &high, recipe, 0));
  tarn_recipe_close(&recipe);
  recipe = opened("wmt-like", NULL);
  assert_false(tarn_recipe_interval(&low, &high, recipe, 1));
  assert_true(isnan(low) && isnan(high));
  tarn_recipe_close(&recipe);
}

int main(void) {
  static const char *const headers[] = {"lab/recipes.h", NULL};
  static const api_use uses[] = {
      USE(tarn_recipe_name),    USE(tarn_recipe_default), USE(tarn_recipe_open),
      USE(tarn_recipe_close),   USE(tarn_recipe_plan),    USE(tarn_recipe_is_prepared),
      USE(tarn_recipe_prepare), USE(tarn_recipe_score),   USE(tarn_recipe_interval),
  };
  return api_main(headers, uses, sizeof uses / sizeof *uses, open_all, sandbox_close);
}
