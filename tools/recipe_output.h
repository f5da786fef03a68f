// Output of tarn recipe, as text and as JSON.
#ifndef TARN_TOOLS_RECIPE_OUTPUT_H
#define TARN_TOOLS_RECIPE_OUTPUT_H

#include <jansson.h>
#include <stdio.h>

#include "tarn/lab/recipes.h"

// "test BLEU", "validation loss", "nrmse".
enum { RECIPE_SCORE_TEXT = 96, RECIPE_EXPECTED_TEXT = 160 };
const char *recipe_score_name(char text[RECIPE_SCORE_TEXT], const tarn_recipe *recipe);
// "42.38 ± 0.03 (3 seeds)", "5.48 (1 seed)" or "not measured".
const char *recipe_expected(char text[RECIPE_EXPECTED_TEXT], const tarn_recipe *recipe);

// The files needed, where each is or what is missing.
void recipe_print_data(const tarn_recipe *recipe);
// A space and a word as a shell takes it.
void recipe_print_word(FILE *file, const char *word);
// The commands as typed in a shell, each after `before`.
void recipe_print_steps(FILE *file, const tarn_recipe *recipe, const char *before);
// The expected score, with its interval for the runs to come.
void recipe_print_expected(const tarn_recipe *recipe);
// The scores of the runs beside it.
void recipe_print_result(const tarn_recipe *recipe, const tarn_recipe_result *result);

// NULL if memory runs out. The caller releases it.
json_t *recipe_json(const tarn_recipe *recipe);

#endif
