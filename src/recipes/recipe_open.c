// Opening of a recipe: its file, and all keys but those of data and steps.
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/small_file.h"
#include "recipes/recipe_spec.h"
#include "sweep/spec.h"
#include "tarn/measure.h"
#include "tarn/text.h"

enum { LARGEST_FILE = 1 << 20, MOST_RECIPES = 256 };

const char *tarn_recipe_name(size_t index) {
  for (const tarn__recipe_file *file = tarn__recipe_files; file->path; file++)
    if (file->recipe && index-- == 0) return file->recipe;
  return NULL;
}

void tarn_recipe_default(tarn_recipe_options *options) { *options = (tarn_recipe_options){0}; }

tarn_status tarn__recipe_text(const tarn_recipe *recipe, const char **out, const char *format, ...) {
  char text[PATH_MAX + 256];
  char *copy;
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  TARN_REQUIRE(length >= 0 && length < (int)sizeof text, USAGE, "a text of the recipe is too long: %.80s...", text);
  TARN_TRY(tarn__arena_strdup(&recipe->memory->arena, &copy, text));
  *out = copy;
  return TARN_STATUS_OK;
}

bool tarn__recipe_is_below(const char *path) {
  if (!*path || *path == '/' || *path == '-' || *path == '~') return false;
  for (const char *part = path; part; part = strchr(part, '/')) {
    part += *part == '/';
    const size_t length = strcspn(part, "/");
    if (length == 2 && part[0] == '.' && part[1] == '.') return false;
  }
  return true;
}

// --- the files

static bool is_path(const char *recipe) {
  const char *dot = strrchr(recipe, '.');
  return strchr(recipe, '/') || (dot && strcmp(dot, ".yaml") == 0);
}

static const char *built_in(const char *path) {
  for (const tarn__recipe_file *file = tarn__recipe_files; file->path; file++)
    if (strcmp(file->path, path) == 0) return file->text;
  return NULL;
}

static tarn_status unknown_recipe(const char *name) {
  const char *names[MOST_RECIPES];
  size_t count = 0;
  while (count < MOST_RECIPES && (names[count] = tarn_recipe_name(count)) != NULL) count++;
  const char *near = tarn_text_nearest(name, names, count);
  char shown[TARN__YAML_SHOWN];
  tarn__yaml_show(shown, name);
  TARN_REQUIRE(near, USAGE,
               "there is no recipe \"%s\" (tarn recipe list); a file is given by its path, such as ./%s.yaml", shown,
               shown);
  return tarn__fail(TARN_STATUS_USAGE, "there is no recipe \"%s\"; did you mean %s?", shown, near);
}

// A file of the user in the recipe's arena.
static tarn_status take_file(tarn_recipe *recipe, const char **out, const char *path, const char *what) {
  char *text = NULL, *copy = NULL;
  size_t size;
  TARN_TRY(tarn__small_file_read(path, &text, &size, LARGEST_FILE, what));
  tarn_status status = strlen(text) == size
                           ? tarn__arena_strdup(&recipe->memory->arena, &copy, text)
                           : tarn__fail(TARN_STATUS_DATA, "%s: it has a zero byte, so it is no text", path);
  tarn__free(text);
  *out = copy;
  return status;
}

// The text, the name and the origin for messages of a recipe.
static tarn_status take_recipe(tarn_recipe *recipe, const char **origin) {
  const char *given = recipe->memory->options->recipe;
  TARN_REQUIRE(given && *given, USAGE, "the name or the file of a recipe is needed");
  if (!is_path(given)) {
    for (const tarn__recipe_file *file = tarn__recipe_files; file->path; file++) {
      if (!file->recipe || strcmp(file->recipe, given) != 0) continue;
      recipe->text = file->text;
      recipe->name = file->recipe;
      *origin = file->path;
      return TARN_STATUS_OK;
    }
    return unknown_recipe(given);
  }
  *origin = given;
  TARN_TRY(take_file(recipe, &recipe->text, given, "a recipe"));
  const char *slash = strrchr(given, '/'), *name = slash ? slash + 1 : given, *dot = strrchr(name, '.');
  TARN_TRY(tarn__recipe_text(recipe, &recipe->name, "%.*s", dot && dot > name ? (int)(dot - name) : (int)strlen(name),
                             name));
  char shown[TARN__YAML_SHOWN];
  TARN_REQUIRE(tarn__sweep_is_name(recipe->name), USAGE, "\"%s\" is no name of a recipe: letters, digits, _ - + and .",
               tarn__yaml_show(shown, recipe->name));
  return TARN_STATUS_OK;
}

// Control characters, which a terminal would obey.
static bool has_controls(const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; c && *c; c++)
    if (*c < ' ' || *c == 127 || (*c == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0)) return true;
  return false;
}

static tarn_status check_characters(const tarn__yaml_node *node) {
  if (has_controls(node->key) || (node->type == TARN__YAML_SCALAR && has_controls(node->text)))
    return tarn__yaml_fail(node, "a text of a recipe is one line without control characters");
  for (const tarn__yaml_node *item = node->type == TARN__YAML_SCALAR ? NULL : node->first; item; item = item->next)
    TARN_TRY(check_characters(item));
  return TARN_STATUS_OK;
}

// A description next to the recipe, or one that is built in.
static tarn_status take_model(tarn_recipe *recipe, const char *origin) {
  const tarn__yaml_node *node = tarn__yaml_get(recipe->memory->root, "model");
  char shown[TARN__YAML_SHOWN];
  const char *path;
  TARN_TRY(tarn__sweep_read_text(recipe->memory->root, "model", &recipe->model));
  if (!recipe->model) return TARN_STATUS_OK;
  if (!tarn__recipe_is_below(recipe->model))
    return tarn__yaml_fail(node, "model: \"%s\" is no path below the recipe's folder",
                           tarn__yaml_show(shown, recipe->model));
  const char *slash = strrchr(origin, '/');
  TARN_TRY(tarn__recipe_text(recipe, &path, "%.*s%s", slash ? (int)(slash + 1 - origin) : 0, origin, recipe->model));
  recipe->model_text = built_in(recipe->model);
  if (is_path(recipe->memory->options->recipe) && (tarn__file_exists(path) || !recipe->model_text)) {
    const tarn_status status = take_file(recipe, &recipe->model_text, path, "a description");
    return status == TARN_STATUS_OK ? status : tarn__fail_prefix(status, "%s:%d: model: ", origin, node->line);
  }
  if (!recipe->model_text)
    return tarn__yaml_fail(node, "model: there is no description \"%s\"", tarn__yaml_show(shown, recipe->model));
  return TARN_STATUS_OK;
}

// --- numbers

static tarn_status read_real(const tarn__yaml_node *node, const char *key, double least, double *out) {
  const char *text = node->type == TARN__YAML_SCALAR ? node->text : "";
  char *end;
  *out = strtod(text, &end);
  if (!*text || *end || !isfinite(*out) || *out < least)
    return tarn__yaml_fail(node, least > -INFINITY ? "%s: expected a number from %g" : "%s: expected a number", key,
                           least);
  return TARN_STATUS_OK;
}

static tarn_status read_optional(const tarn__yaml_node *map, const char *key, double least, double *out) {
  const tarn__yaml_node *node = tarn__yaml_get(map, key);
  return tarn__yaml_is_empty(node) ? TARN_STATUS_OK : read_real(node, key, least, out);
}

static tarn_status read_count(const tarn__yaml_node *map, const char *key, int64_t most, int64_t *out) {
  const tarn__yaml_node *node = tarn__yaml_get(map, key);
  return tarn__yaml_is_empty(node) ? TARN_STATUS_OK : tarn__sweep_read_integer(node, key, 1, most, out);
}

// Mean and deviation of a list of scores, one a seed.
static tarn_status read_scores(tarn_recipe *recipe, const tarn__yaml_node *list) {
  double sum = 0, squares = 0;
  if (list->type != TARN__YAML_LIST || !list->first)
    return tarn__yaml_fail(list, "scores: expected a list with the score of each seed");
  for (const tarn__yaml_node *item = list->first; item; item = item->next) {
    double value;
    TARN_TRY(read_real(item, "scores", -INFINITY, &value));
    sum += value;
    recipe->expected_seeds++;
  }
  recipe->expected = sum / (double)recipe->expected_seeds;
  for (const tarn__yaml_node *item = list->first; item; item = item->next) {
    double value;
    TARN_TRY(read_real(item, "scores", -INFINITY, &value));
    squares += (value - recipe->expected) * (value - recipe->expected);
  }
  if (recipe->expected_seeds > 1) recipe->deviation = sqrt(squares / (double)(recipe->expected_seeds - 1));
  return TARN_STATUS_OK;
}

static tarn_status read_expected(tarn_recipe *recipe) {
  static const char *const names[] = {"scores", "mean", "deviation", "seeds", "from", "minutes"};
  const tarn__yaml_node *node = tarn__yaml_get(recipe->memory->root, "expected");
  recipe->expected = recipe->deviation = recipe->minutes = NAN;
  if (tarn__yaml_is_empty(node)) return TARN_STATUS_OK;
  if (node->type != TARN__YAML_MAP)
    return tarn__yaml_fail(node, "expected: expected scores, or mean, deviation and seeds, and from");
  TARN_TRY(tarn__sweep_check_keys(node, "key in expected", names, sizeof names / sizeof *names));
  TARN_TRY(tarn__sweep_read_text(node, "from", &recipe->measured));
  TARN_TRY(read_optional(node, "minutes", 0, &recipe->minutes));
  if (!recipe->measured) return tarn__yaml_fail(node, "expected.from: say where the figures come from");
  const tarn__yaml_node *scores = tarn__yaml_get(node, "scores"), *mean = tarn__yaml_get(node, "mean");
  const tarn__yaml_node *deviation = tarn__yaml_get(node, "deviation");
  if (!tarn__yaml_is_empty(scores)) {
    if (!tarn__yaml_is_empty(mean) || !tarn__yaml_is_empty(deviation) ||
        !tarn__yaml_is_empty(tarn__yaml_get(node, "seeds")))
      return tarn__yaml_fail(scores,
                             "expected.scores: mean, deviation and seeds follow from the scores; leave them out");
    return read_scores(recipe, scores);
  }
  if (tarn__yaml_is_empty(mean)) return tarn__yaml_fail(node, "expected: the scores or their mean is needed");
  TARN_TRY(read_real(mean, "mean", -INFINITY, &recipe->expected));
  recipe->expected_seeds = 1;
  TARN_TRY(read_count(node, "seeds", TARN_RECIPE_SEEDS, &recipe->expected_seeds));
  TARN_TRY(read_optional(node, "deviation", 0, &recipe->deviation));
  if (isnan(recipe->deviation) == (recipe->expected_seeds > 1))
    return tarn__yaml_fail(node, "expected: two or more seeds have a deviation, and one has none");
  return TARN_STATUS_OK;
}

// "test.accuracy", "valid.nll"; the key of a step's JSON without a description.
static tarn_status read_score(tarn_recipe *recipe) {
  const tarn__yaml_node *root = recipe->memory->root, *node = tarn__yaml_get(root, "score");
  TARN_TRY(tarn__sweep_read_text(root, "score", &recipe->score));
  if (!recipe->score) return tarn__yaml_fail(root, "score is missing: what the recipe is judged by, such as valid.nll");
  if (!recipe->model) return TARN_STATUS_OK;
  const bool test = strncmp(recipe->score, "test.", 5) == 0;
  recipe->validation = strncmp(recipe->score, "valid.", 6) == 0;
  if (!test && !recipe->validation)
    return tarn__yaml_fail(node, "score: expected a measure of the test or the validation, such as valid.nll");
  if (test && tarn__yaml_is_empty(tarn__yaml_get(root, "test")))
    return tarn__yaml_fail(node, "score: %s needs the key test, which says on what", recipe->score);
  recipe->score += test ? 5 : 6;
  const char *words[TARN_MEASURES + 1];
  size_t count = 0;
  for (int i = 0; i < tarn_measure_count(); i++) words[count++] = tarn_measure_of(i)->word;
  if (test) words[count++] = "blimp";
  for (size_t i = 0; i < count; i++)
    if (strcmp(words[i], recipe->score) == 0) return TARN_STATUS_OK;
  return tarn__sweep_unknown_word(node, "measure in score", recipe->score, words, count);
}

// --- the whole

static tarn_status read_steps(tarn_recipe *recipe) {
  const tarn__yaml_node *root = recipe->memory->root, *each = tarn__yaml_get(root, "each_seed");
  if (recipe->model && each)
    return tarn__yaml_fail(each, "each_seed: its steps stand in the place of a description; leave out one of the two");
  if (!recipe->model && tarn__yaml_is_empty(each))
    return tarn__yaml_fail(root, "model is missing: the description to train; or each_seed, the steps for a seed");
  TARN_TRY(tarn__recipe_read_steps(recipe, "prepare", 0));
  for (int64_t seed = 1; seed <= recipe->seeds && !recipe->model; seed++) {
    TARN_TRY(tarn__recipe_read_steps(recipe, "each_seed", seed));
    const tarn_recipe_step *last = recipe->step_count > 0 ? &recipe->steps[recipe->step_count - 1] : NULL;
    if (!last || last->seed != seed || !last->output)
      return tarn__yaml_fail(each, "each_seed: the last step has json: FILE, which has the score");
  }
  return tarn__recipe_check_made(recipe, each ? each : root);
}

static tarn_status read_all(tarn_recipe *recipe) {
  static const char *const names[] = {"task", "summary",    "size",    "data", "prepare", "each_seed", "model",
                                      "set",  "vocabulary", "threads", "test", "score",   "seeds",     "expected"};
  struct tarn__recipe_memory *m = recipe->memory;
  const tarn_recipe_options *o = m->options;
  const char *origin = NULL;
  TARN_TRY(take_recipe(recipe, &origin));
  TARN_TRY(tarn__yaml_parse(&m->tree, &m->root, origin, true, recipe->text, strlen(recipe->text)));
  if (m->root->type != TARN__YAML_MAP)
    return tarn__yaml_fail(m->root, "expected keys such as task, data, prepare, model and score");
  TARN_TRY(check_characters(m->root));
  TARN_TRY(tarn__sweep_check_keys(m->root, "key", names, sizeof names / sizeof *names));
  TARN_TRY(tarn__sweep_read_text(m->root, "task", &recipe->task));
  TARN_TRY(tarn__sweep_read_text(m->root, "summary", &recipe->summary));
  TARN_TRY(tarn__sweep_read_text(m->root, "size", &recipe->size));
  if (!recipe->task || !recipe->summary)
    return tarn__yaml_fail(m->root, "%s is missing: a few words about the recipe", recipe->task ? "summary" : "task");
  recipe->seeds = 1;
  TARN_TRY(read_count(m->root, "seeds", TARN_RECIPE_SEEDS, &recipe->seeds));
  TARN_TRY(read_count(m->root, "vocabulary", 100000000, &m->vocabulary));
  TARN_REQUIRE(o->seeds >= 0 && o->seeds <= TARN_RECIPE_SEEDS, USAGE, "seeds: 1 to %d, not %lld", TARN_RECIPE_SEEDS,
               (long long)o->seeds);
  if (o->seeds > 0) recipe->seeds = o->seeds;
  TARN_TRY(take_model(recipe, origin));
  TARN_REQUIRE(recipe->model || o->set_count == 0, USAGE,
               "%s: the recipe has no description whose keys could be set; change its steps in a copy of it", origin);
  TARN_TRY(read_score(recipe));
  TARN_TRY(read_expected(recipe));
  TARN_TRY(tarn__recipe_read_needs(recipe));
  TARN_TRY(read_steps(recipe));
  if (!recipe->model) return TARN_STATUS_OK;
  TARN_TRY(tarn__recipe_write_sweep(recipe));
  return tarn__recipe_check_description(recipe, origin);
}

static tarn_status take_changes(tarn_recipe *recipe) {
  const tarn_recipe_options *o = recipe->memory->options;
  void *memory;
  TARN_TRY(tarn__arena_alloc(&recipe->memory->arena, &memory, o->set_count, sizeof(char *)));
  const char **changes = memory;
  for (size_t i = 0; i < o->set_count; i++) {
    const char *equals = strchr(o->set[i], '=');
    TARN_REQUIRE(equals && !strchr(o->set[i], '\n'), USAGE, "a change is KEY=VALUE, not \"%s\"", o->set[i]);
    for (size_t k = 0; k < i; k++)
      TARN_REQUIRE(strncmp(o->set[k], o->set[i], (size_t)(equals + 1 - o->set[i])) != 0, USAGE, "%.*s is changed twice",
                   (int)(equals - o->set[i]), o->set[i]);
    TARN_TRY(tarn__recipe_text(recipe, &changes[i], "%s", o->set[i]));
  }
  recipe->change = changes;
  recipe->change_count = o->set_count;
  return TARN_STATUS_OK;
}

tarn_status tarn_recipe_open(tarn_recipe **recipe, const tarn_recipe_options *options) {
  void *memory;
  *recipe = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(tarn_recipe)));
  tarn_recipe *made = memory;
  tarn_status status = tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof *made->memory);
  if (status == TARN_STATUS_OK) {
    made->memory = memory;
    made->memory->options = options;
    status = take_changes(made);
  }
  if (status == TARN_STATUS_OK) status = read_all(made);
  if (made->memory) made->memory->options = NULL;
  if (status == TARN_STATUS_OK)
    *recipe = made;
  else
    tarn_recipe_close(&made);
  return status;
}

void tarn_recipe_close(tarn_recipe **recipe) {
  if (!*recipe) return;
  struct tarn__recipe_memory *m = (*recipe)->memory;
  if (m) {
    tarn__free(m->steps);
    tarn__yaml_close(&m->tree);
    tarn__arena_close(&m->arena);
  }
  tarn__free(m);
  tarn__free(*recipe);
  *recipe = NULL;
}
