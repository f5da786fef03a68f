// The scores of a recipe's runs, beside those that are expected.
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_io.h"
#include "recipes/recipe_spec.h"
#include "significance/student.h"
#include "tarn/measure.h"

bool tarn_recipe_interval(double *low, double *high, const tarn_recipe *recipe, size_t count) {
  const double n = (double)recipe->expected_seeds, m = (double)count;
  *low = *high = NAN;
  if (recipe->expected_seeds < 2 || count == 0) return false;
  const double half = tarn__student_quantile(0.05, n - 1) * recipe->deviation * sqrt(1 / n + 1 / m);
  *low = recipe->expected - half;
  *high = recipe->expected + half;
  return true;
}

static void add(tarn_recipe_result *result, int64_t seed, double value) {
  if (isnan(value) || result->count == TARN_RECIPE_SEEDS) return;
  result->seeds[result->count] = seed;
  result->values[result->count++] = value;
}

static tarn_status take_sweep(tarn_recipe_result *result, const tarn_recipe *recipe, const tarn_sweep *sweep) {
  const tarn_measure *measure = tarn_measure_find(recipe->score);
  for (size_t i = 0; i < sweep->run_count; i++) {
    const tarn_sweep_run *run = &sweep->runs[i];
    if (run->state != TARN_SWEEP_FINISHED) continue;
    const bool bleu = strcmp(recipe->score, "bleu") == 0 && sweep->test_source;
    const double value = recipe->validation                    ? run->valid[measure->number]
                         : bleu                                ? run->test_bleu
                         : strcmp(recipe->score, "blimp") == 0 ? run->test_blimp
                                                               : run->test[measure->number];
    TARN_REQUIRE(!isnan(value), USAGE, "the run %s has no score %s.%s", run->path,
                 recipe->validation ? "valid" : "test", recipe->score);
    add(result, run->seed, value);
  }
  return TARN_STATUS_OK;
}

// The last step of a seed prints its score.
static tarn_status take_steps(tarn_recipe_result *result, const tarn_recipe *recipe) {
  for (size_t i = 0; i < recipe->step_count; i++) {
    const tarn_recipe_step *step = &recipe->steps[i];
    const bool last = i + 1 == recipe->step_count || recipe->steps[i + 1].seed != step->seed;
    if (step->seed == 0 || !last || !step->output || !tarn__file_exists(step->output)) continue;
    json_t *object;
    TARN_TRY(tarn__json_file(&object, step->output, 0, NULL));
    const json_t *value = json_object_get(object, recipe->score);
    const double number = json_is_number(value) ? json_number_value(value) : NAN;
    json_decref(object);
    TARN_REQUIRE(!isnan(number), DATA, "%s: there is no number \"%s\"", step->output, recipe->score);
    add(result, step->seed, number);
  }
  return TARN_STATUS_OK;
}

static void summarize(tarn_recipe_result *result, const tarn_recipe *recipe) {
  double sum = 0, squares = 0;
  const double n = (double)result->count;
  if (result->count == 0) return;
  for (size_t i = 0; i < result->count; i++) sum += result->values[i];
  result->mean = sum / n;
  for (size_t i = 0; i < result->count; i++) squares += pow(result->values[i] - result->mean, 2);
  result->deviation = result->count > 1 ? sqrt(squares / (n - 1)) : NAN;
  result->known = tarn_recipe_interval(&result->low, &result->high, recipe, result->count);
  result->within = result->known && result->mean >= result->low && result->mean <= result->high;
}

// --- score.json

static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static json_t *values_json(const tarn_recipe_result *result) {
  json_t *values = json_object();
  for (size_t i = 0; values && i < result->count; i++) {
    char seed[32];
    snprintf(seed, sizeof seed, "%lld", (long long)result->seeds[i]);
    if (json_object_set_new(values, seed, number(result->values[i])) == 0) continue;
    json_decref(values);
    return NULL;
  }
  return values;
}

static json_t *changes_json(const tarn_recipe *recipe) {
  json_t *changes = json_array();
  for (size_t i = 0; changes && i < recipe->change_count; i++) {
    if (json_array_append_new(changes, json_string(recipe->change[i])) == 0) continue;
    json_decref(changes);
    return NULL;
  }
  return changes;
}

static tarn_status write_score(const tarn_recipe_result *result, const tarn_recipe *recipe) {
  json_t *expected = recipe->expected_seeds == 0
                         ? json_null()
                         : json_pack("{s:o, s:o, s:I, s:o, s:o}", "mean", number(recipe->expected), "deviation",
                                     number(recipe->deviation), "seeds", (json_int_t)recipe->expected_seeds, "low",
                                     number(result->low), "high", number(result->high));
  json_t *object = json_pack(
      "{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "recipe", recipe->name, "score", recipe->score, "values",
      values_json(result), "mean", number(result->mean), "deviation", number(result->deviation), "expected", expected,
      "within", result->known ? json_boolean(result->within) : json_null(), "changed", changes_json(recipe));
  char *text = tarn__json_dump(object, JSON_INDENT(2));
  json_decref(object);
  TARN_REQUIRE(text, MEMORY, "not enough memory for %s", TARN_RECIPE_SCORE);
  const tarn_status status = tarn__file_write(TARN_RECIPE_SCORE, text, strlen(text));
  free(text);
  return status;
}

tarn_status tarn_recipe_score(tarn_recipe_result *result, const tarn_recipe *recipe, const tarn_sweep *sweep) {
  *result = (tarn_recipe_result){.mean = NAN, .deviation = NAN, .low = NAN, .high = NAN};
  TARN_REQUIRE(!recipe->model == !sweep, USAGE, "a recipe with a description has the scores of its sweep");
  TARN_TRY(sweep ? take_sweep(result, recipe, sweep) : take_steps(result, recipe));
  summarize(result, recipe);
  return write_score(result, recipe);
}
