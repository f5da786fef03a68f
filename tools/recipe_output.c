#include "recipe_output.h"

#include <math.h>
#include <string.h>

#include "cli.h"
#include "json_output.h"
#include "tarn/measure.h"

static const tarn_measure *measure_of(const tarn_recipe *recipe) {
  return recipe->model ? tarn_measure_find(recipe->score) : NULL;
}

const char *recipe_score_name(char text[RECIPE_SCORE_TEXT], const tarn_recipe *recipe) {
  const tarn_measure *measure = measure_of(recipe);
  const char *name = measure ? measure->name : strcmp(recipe->score, "blimp") == 0 ? "BLiMP" : recipe->score;
  snprintf(text, RECIPE_SCORE_TEXT, "%s%s", !recipe->model ? "" : recipe->validation ? "validation " : "test ", name);
  return text;
}

// A score with the decimals of its measure, or of a share of 1.
static const char *score_text(char text[48], const tarn_recipe *recipe, double value) {
  const tarn_measure *measure = measure_of(recipe);
  if (measure)
    snprintf(text, 48, "%.*f", measure->digits, value);
  else if (recipe->model)
    snprintf(text, 48, "%.2f", value);
  else
    snprintf(text, 48, "%.3g", value);
  return text;
}
#define SCORE(recipe, value) score_text((char[48]){0}, recipe, value)

const char *recipe_expected(char text[RECIPE_EXPECTED_TEXT], const tarn_recipe *recipe) {
  if (recipe->expected_seeds == 0)
    snprintf(text, RECIPE_EXPECTED_TEXT, "not measured");
  else if (recipe->expected_seeds == 1)
    snprintf(text, RECIPE_EXPECTED_TEXT, "%s (1 seed)", SCORE(recipe, recipe->expected));
  else
    snprintf(text, RECIPE_EXPECTED_TEXT, "%s ± %s (%lld seeds)", SCORE(recipe, recipe->expected),
             SCORE(recipe, recipe->deviation), (long long)recipe->expected_seeds);
  return text;
}

void recipe_print_data(const tarn_recipe *recipe) {
  printf("data:\n");
  if (recipe->need_count == 0) printf("  none; it is made\n");
  for (size_t i = 0; i < recipe->need_count; i++) {
    const tarn_recipe_need *need = &recipe->needs[i];
    if (need->file_count == 1)
      printf("  %-12s %s\n", need->name, need->files[0]);
    else if (need->file_count > 1)
      printf("  %-12s %s and %zu more\n", need->name, need->files[0], need->file_count - 1);
    else
      printf("  %-12s missing: %s%s%s\n", need->name, need->choices, need->near ? "; there is " : "",
             need->near ? need->near : "");
  }
}

void recipe_print_word(FILE *file, const char *word) {
  static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+./=:,%@";
  if (*word && strspn(word, plain) == strlen(word)) {
    fprintf(file, " %s", word);
    return;
  }
  fputs(" '", file);
  for (; *word; word++) fputs(*word == '\'' ? "'\\''" : (char[2]){*word, '\0'}, file);
  fputc('\'', file);
}

void recipe_print_steps(FILE *file, const tarn_recipe *recipe, const char *before) {
  for (size_t i = 0; i < recipe->step_count; i++) {
    const tarn_recipe_step *step = &recipe->steps[i];
    fprintf(file, "%starn", before);
    for (size_t k = 0; k < step->word_count; k++) recipe_print_word(file, step->words[k]);
    if (step->output) {
      fputs(" >", file);
      recipe_print_word(file, step->output);
    }
    fputc('\n', file);
  }
  if (recipe->model) fprintf(file, "%starn sweep %s --output %s\n", before, TARN_RECIPE_SWEEP, TARN_RECIPE_RUNS);
}

void recipe_print_expected(const tarn_recipe *recipe) {
  char name[RECIPE_SCORE_TEXT], text[RECIPE_EXPECTED_TEXT], time[32];
  double low, high;
  printf("expected %s: %s", recipe_score_name(name, recipe), recipe_expected(text, recipe));
  if (recipe->change_count > 0 && recipe->expected_seeds > 0) printf(" without --set");
  if (tarn_recipe_interval(&low, &high, recipe, (size_t)recipe->seeds))
    printf("; 95 %% interval of the mean of %s: %s to %s", CLI_COUNT(recipe->seeds, "run"), SCORE(recipe, low),
           SCORE(recipe, high));
  if (recipe->measured) printf("\n  from %s", recipe->measured);
  if (!isnan(recipe->minutes)) printf("; a run took %s there", cli_time(time, 60 * recipe->minutes));
  printf("\n");
}

void recipe_print_result(const tarn_recipe *recipe, const tarn_recipe_result *result) {
  char name[RECIPE_SCORE_TEXT];
  if (result->count == 0) {
    printf("no run is finished\n");
    return;
  }
  printf("%s: %s", recipe_score_name(name, recipe), SCORE(recipe, result->mean));
  if (result->count > 1) {
    printf(" ± %s over %zu seeds (", SCORE(recipe, result->deviation), result->count);
    for (size_t i = 0; i < result->count; i++) printf("%s%s", i ? ", " : "", SCORE(recipe, result->values[i]));
    printf(")");
  }
  if (recipe->expected_seeds == 0)
    printf("; expected: not measured\n");
  else if (!result->known)
    printf("; expected: %s (1 seed, so there is no interval)\n", SCORE(recipe, recipe->expected));
  else
    printf("; expected: %s to %s: %s\n", SCORE(recipe, result->low), SCORE(recipe, result->high),
           result->within ? "within" : "OUTSIDE");
  if (recipe->change_count > 0 && recipe->expected_seeds > 0)
    printf("the expected score is that of the recipe without --set\n");
}

// --- JSON

static json_t *needs_json(const tarn_recipe *recipe) {
  json_t *needs = json_object();
  for (size_t i = 0; i < recipe->need_count; i++) {
    const tarn_recipe_need *need = &recipe->needs[i];
    json_t *files = json_array(), *links = json_array();
    for (size_t k = 0; k < need->file_count; k++) {
      json_array_append_new(files, json_output_text(need->files[k]));
      json_array_append_new(links, json_output_text(need->links[k]));
    }
    json_object_set_new(needs, need->name,
                        json_pack("{s:s, s:o, s:o}", "choices", need->choices, "files", files, "links", links));
  }
  return needs;
}

static json_t *steps_json(const tarn_recipe *recipe) {
  json_t *steps = json_array();
  for (size_t i = 0; i < recipe->step_count; i++) {
    json_t *words = json_array();
    for (size_t k = 0; k < recipe->steps[i].word_count; k++)
      json_array_append_new(words, json_output_text(recipe->steps[i].words[k]));
    json_array_append_new(steps, words);
  }
  return steps;
}

static json_t *expected_json(const tarn_recipe *recipe) {
  if (recipe->expected_seeds == 0) return json_null();
  double low, high;
  tarn_recipe_interval(&low, &high, recipe, (size_t)recipe->seeds);
  return json_pack("{s:f, s:o, s:I, s:o, s:o, s:o}", "mean", recipe->expected, "deviation",
                   json_output_real(recipe->deviation), "seeds", (json_int_t)recipe->expected_seeds, "low",
                   json_output_real(low), "high", json_output_real(high), "minutes", json_output_real(recipe->minutes));
}

json_t *recipe_json(const tarn_recipe *recipe) {
  char score[RECIPE_SCORE_TEXT];
  return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:o}", "name", recipe->name, "task", recipe->task,
                   "summary", recipe->summary, "score", recipe_score_name(score, recipe), "model",
                   json_output_text(recipe->model), "data", needs_json(recipe), "steps", steps_json(recipe), "seeds",
                   (json_int_t)recipe->seeds, "expected", expected_json(recipe));
}
