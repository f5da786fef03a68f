// Recipes: experiments by name, from raw data to a score beside the one that is expected.
//
//   tarn_recipe *recipe;
//   tarn_recipe_options options;
//   tarn_recipe_default(&options);
//   options.recipe = "multi30k", options.data = &folder, options.data_count = 1;
//   status = tarn_recipe_open(&recipe, &options);
//   ... recipe->missing is 0 ...
//   status = tarn_recipe_prepare(recipe, &running);                 // in the current folder
//   ... tarn_sweep_open() of TARN_RECIPE_SWEEP in TARN_RECIPE_RUNS, tarn_sweep_run_all() ...
//   status = tarn_recipe_score(&score, recipe, sweep);
//
// A recipe is a file of YAML that only says what is done (docs/recipes.md): which files are needed, which commands of
// the program prepare them, the description that is trained, how it is tested and what the score has been. Its commands
// are a fixed list; what they, the description and the test read are the files needed or lies below the current folder,
// and all outputs lie below it; nothing is passed to a shell. Links in the folders of the data are followed.
#ifndef TARN_LAB_RECIPES_H
#define TARN_LAB_RECIPES_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/lab/forecast.h"
#include "tarn/lab/sweep.h"
#include "tarn/plan.h"
#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

// Files that tarn_recipe_prepare() writes into the current folder: the recipe and its description, the sweep of the
// description, and the folder that its runs belong to.
#define TARN_RECIPE_COPY "recipe.yaml"
#define TARN_RECIPE_MODEL "model.yaml"
#define TARN_RECIPE_SWEEP "sweep.yaml"
#define TARN_RECIPE_RUNS "runs"
// Its folder of links to the data: commands, description and test name them by these, as inputs/train.de, so that all
// of them stay the same when the data are moved.
#define TARN_RECIPE_INPUTS "inputs"
// The result, by tarn_recipe_score():
//   {"recipe", "score", "values": {SEED: value}, "mean", "deviation", "expected": {"mean", "deviation", "seeds", "low",
//    "high"}, "within", "changed": [KEY=VALUE]}
// What is unknown is null; without a finished run there are no values. `tarn recipe run --json` prints the same.
#define TARN_RECIPE_SCORE "score.json"

enum { TARN_RECIPE_SEEDS = 1000 };

typedef struct tarn_recipe_options {
  const char *recipe;       // the name of a built-in recipe, or the path of a file: one with a slash, or ending with
                            // .yaml
  const char *const *data;  // (data_count) folders that are searched for the files needed, in this order
  size_t data_count;
  const char *const *set;  // (set_count) "key=value": changes to the description, each key once
  size_t set_count;
  int64_t seeds;  // runs, with the seeds 1 to `seeds`; 0 (default): as many as the recipe says
} tarn_recipe_options;

// Files that a recipe needs.
typedef struct tarn_recipe_need {
  const char *name;          // by which steps name it
  const char *choices;       // "train.de or train.de.gz": paths below a data folder, of which one must exist
  const char *const *files;  // (file_count) found, without links in their paths, sorted; several for a choice with *
  size_t file_count;         // 0: missing
  const char *const *links;  // (file_count, 1 if missing) TARN_RECIPE_INPUTS/ and the path below the data folder
  const char *near;          // of a missing one, an existing file of a similar name; NULL: none
} tarn_recipe_need;

// A command of the program.
typedef struct tarn_recipe_step {
  const char *const *words;  // (word_count) "vocab", "--size", "10000", ..., "inputs/train.de"
  size_t word_count;
  const char *const *made;  // (made_count) files and prefixes of files that it writes, below the current folder
  size_t made_count;
  const char *output;  // one of them, that what it prints goes to; NULL: none
  int64_t seed;        // of a run; 0: of the preparation
} tarn_recipe_step;

typedef struct tarn_recipe {
  const char *name, *task, *summary;
  const char *text;        // of its file
  const char *model;       // the description's name; NULL: the recipe trains by its steps (echo state networks)
  const char *model_text;  // and its text; NULL without
  const char *sweep_text;  // of the sweep of the description; NULL without
  const char *size;        // of the data, in words; NULL: not given
  const tarn_recipe_need *needs;
  size_t need_count;
  size_t missing;  // needs without files
  const tarn_recipe_step *steps;
  size_t step_count;
  int64_t seeds;  // runs
  // The score: "bleu", "blimp", or a measure (tarn/measure.h), of the test or of the validation; or, of a recipe that
  // trains by its steps, a key of the JSON that the last step of each seed prints.
  const char *score;
  bool validation;
  // The expected score: mean and standard deviation (NAN for one seed) over so many seeds; 0 seeds: not measured.
  double expected, deviation;
  int64_t expected_seeds;
  const char *measured;       // where the figures come from; NULL: not measured
  double minutes;             // that a run took there; NAN: unknown
  const char *const *change;  // (change_count) the options' `set`
  size_t change_count;
  struct tarn__recipe_memory *memory;
} tarn_recipe;

// The names of the built-in recipes, in order; NULL behind the last.
TARN_API const char *tarn_recipe_name(size_t index);

TARN_API void tarn_recipe_default(tarn_recipe_options *options);

// Reads and checks a recipe, and looks for its files. Fails with USAGE: an unknown name (the nearest is named), key,
// command or option, a path that leaves the folder, a description or a test that cannot be, ...; the message names the
// file, and line and key where they are known; or a folder of data that does not exist; and with IO or DATA if the file
// cannot be read. Missing data are no failure: see `missing`.
TARN_API tarn_status tarn_recipe_open(tarn_recipe **recipe, const tarn_recipe_options *options) TARN_CHECKED;
TARN_API void tarn_recipe_close(tarn_recipe **recipe);

// Predicts memory and time of a run of its description: before the preparation, for a vocabulary of the size that the
// recipe names and by operations; behind it, in the folder of the preparation, from the data, by updates on them or the
// log of `run` like tarn_train_duration(). With `run` NULL the current folder is not looked at. The plan is closed by
// tarn_plan_close(). Fails with UNSUPPORTED for a recipe without a description, and before the preparation for one
// without the size of its vocabulary; and like tarn_plan_make() and tarn_train_duration().
TARN_API tarn_status tarn_recipe_plan(const tarn_recipe *recipe, tarn_plan *plan, tarn_duration *duration,
                                      const char *run) TARN_CHECKED;

typedef enum tarn_recipe_event_kind {
  TARN_RECIPE_EVENT_SKIPPED,  // the step was done before
  TARN_RECIPE_EVENT_STARTED,
  TARN_RECIPE_EVENT_FINISHED
} tarn_recipe_event_kind;

typedef struct tarn_recipe_running {
  const char *program;  // with the commands; NULL: this program (default)
  void (*on_step)(void *user, tarn_recipe_event_kind kind, size_t step, double seconds);  // NULL: never
  void *user;
  const volatile sig_atomic_t *stop;  // not 0: ends the step that runs, and returns INTERRUPTED. NULL: never
  bool only_check;                    // only sees whether the folder and the data are right, and makes nothing
} tarn_recipe_running;

// Runs the steps in the current folder, each as a process that dies with the calling thread; the folders of their files
// are created. Steps that are done there are skipped: which these are is in prepared.json, replaced after every step; a
// step that was interrupted begins again. Then writes the other files named above. Fails with USAGE (missing data; the
// folder has files and no prepared.json; a step would replace data; other steps, other data, more seeds or other
// settings were used in this folder before), BUSY (another process prepares here), DATA (a step failed; the message is
// the step's), INTERRUPTED, IO. After USAGE nothing has changed but links to data that
// were moved.
TARN_API tarn_status tarn_recipe_prepare(const tarn_recipe *recipe, const tarn_recipe_running *running) TARN_CHECKED;

// Whether the current folder has all that the steps make of these data, and its links lead to them.
TARN_API bool tarn_recipe_is_prepared(const tarn_recipe *recipe);

typedef struct tarn_recipe_result {
  int64_t seeds[TARN_RECIPE_SEEDS];
  double values[TARN_RECIPE_SEEDS];
  size_t count;            // runs with a score
  double mean, deviation;  // NAN: no run; less than two
  // The interval in which the mean of as many new runs lies with a probability of 95 %, for scores that are normally
  // distributed: with n measured and m new runs expected ± t(n - 1) deviation sqrt(1 / n + 1 / m). NAN: unknown, as
  // with less than two seeds measured.
  double low, high;
  bool known, within;  // there is an interval, and the mean lies in it
} tarn_recipe_result;

// Collects the scores of the runs in the current folder, those of `sweep` (NULL for a recipe without a description),
// and writes TARN_RECIPE_SCORE. Fails with DATA (a step's JSON
// without the score), USAGE (the sweep has no such score), IO or MEMORY.
TARN_API tarn_status tarn_recipe_score(tarn_recipe_result *result, const tarn_recipe *recipe,
                                       const tarn_sweep *sweep) TARN_CHECKED;
// The interval of a result for `count` new runs. False, and NAN: unknown.
TARN_API bool tarn_recipe_interval(double *low, double *high, const tarn_recipe *recipe, size_t count);

#ifdef __cplusplus
}
#endif
#endif
