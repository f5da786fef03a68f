// The file of a recipe, with its description and data: an archive of recipe.yaml and other files. Whatever it says, no
// step leaves the folder.
#include <string.h>

#include "fuzz/fuzz.h"
#include "tarn/lab/recipes.h"

void fuzz_prepare(void) {}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const folders[] = {"in"}, *const changes[] = {"train.lr=1"};
  tarn_recipe *recipe;
  tarn_recipe_options options;
  double low, high;
  if (fuzz_unpack("in", data, size) == 0) return 0;
  tarn_recipe_default(&options);
  options.recipe = "in/recipe.yaml";
  options.data = folders;
  options.data_count = 1;
  options.set = changes;
  options.set_count = size % 2;
  options.seeds = (int64_t)(size / 2 % 3);
  if (!fuzz_good(tarn_recipe_open(&recipe, &options))) return 0;
  for (size_t i = 0; i < recipe->step_count; i++) {
    const tarn_recipe_step *step = &recipe->steps[i];
    FUZZ_REQUIRE(step->word_count > 0 && step->seed >= 0 && step->seed <= recipe->seeds);
    for (size_t k = 0; k < step->made_count; k++)
      FUZZ_REQUIRE(step->made[k][0] != '/' && step->made[k][0] != '-' && strncmp(step->made[k], "../", 3) != 0 &&
                   !strstr(step->made[k], "/../"));
  }
  FUZZ_REQUIRE(!recipe->model == !recipe->sweep_text && recipe->missing <= recipe->need_count);
  (void)tarn_recipe_interval(&low, &high, recipe, 1);
  tarn_recipe_close(&recipe);
  return 0;
}
