// The steps of a recipe: commands of the program, of which a recipe may name those below with these options.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipes/recipe_spec.h"
#include "sweep/spec.h"
#include "text/tokenizer_json.h"

enum { MOST_WORDS = 1000, MOST_STEPS = 10000, MOST_OPTIONS = 24, MOST_MADE = 4 };

typedef enum kind {
  VALUE,    // a number or a word
  FLAG,     // yes or no
  INPUT,    // a file that is read
  OUTPUT,   // a file that is written
  TEXT,     // a file, or with a table one of its columns
  INPUTS,   // arguments: files that are read
  WORD,     // an argument
  CAPTURED  // a file for what the command prints as JSON
} kind;

typedef struct option {
  const char *name;
  kind kind;
} option;

typedef struct verb {
  const char *name;
  size_t arguments;              // how many it has; 0: any number
  option options[MOST_OPTIONS];  // ends with an entry without a name
} verb;

static const verb verbs[] = {
    {"corpus", 0, {{"sentences", VALUE}, {"held-out", VALUE}, {"seed", VALUE}, {"output", OUTPUT}}},
    {"sentences",
     0,
     {{"language", VALUE}, {"wrapped", FLAG}, {"documents", FLAG}, {"output", OUTPUT}, {"files", INPUTS}}},
    {"split",
     1,
     {{"every", VALUE},
      {"first", VALUE},
      {"header", VALUE},
      {"from", VALUE},
      {"bytes", VALUE},
      {"exact", FLAG},
      {"rest", OUTPUT},
      {"output", OUTPUT},
      {"files", INPUTS}}},
    {"vocab",
     0,
     {{"type", VALUE},
      {"size", VALUE},
      {"lowercase", FLAG},
      {"mask-symbols", FLAG},
      {"sentences", VALUE},
      {"minimum-count", VALUE},
      {"character-coverage", VALUE},
      {"import-gpt2", INPUT},
      {"import-tokenizer", INPUT},
      {"import-wordpiece", INPUT},
      {"output", OUTPUT},
      {"files", INPUTS}}},
    {"prepare",
     0,
     {{"vocab", INPUT},
      {"target-vocab", INPUT},
      {"source", INPUT},
      {"target", INPUT},
      {"table", INPUT},
      {"text", TEXT},
      {"pair", VALUE},
      {"labels", TEXT},
      {"labels-from", INPUT},
      {"numbers", FLAG},
      {"per-word", FLAG},
      {"header", FLAG},
      {"min-tokens", VALUE},
      {"max-tokens", VALUE},
      {"overlong", VALUE},
      {"stream", VALUE},
      {"pack", VALUE},
      {"output", OUTPUT}}},
    {"series generate",
     1,
     {{"system", WORD},
      {"rows", VALUE},
      {"discard", VALUE},
      {"dt", VALUE},
      {"substeps", VALUE},
      {"tau", VALUE},
      {"output", OUTPUT}}},
    {"series train",
     1,
     {{"rows", VALUE},
      {"warmup", VALUE},
      {"raw", FLAG},
      {"units", VALUE},
      {"sr", VALUE},
      {"lr", VALUE},
      {"input-scaling", VALUE},
      {"bias-scaling", VALUE},
      {"input-connectivity", VALUE},
      {"rc-connectivity", VALUE},
      {"activation", VALUE},
      {"ridge", VALUE},
      {"seed", VALUE},
      {"output", OUTPUT},
      {"files", INPUTS}}},
    {"series forecast",
     2,
     {{"from", VALUE},
      {"steps", VALUE},
      {"starts", VALUE},
      {"one-step", FLAG},
      {"threshold", VALUE},
      {"dt", VALUE},
      {"lyapunov", VALUE},
      {"output", OUTPUT},
      {"json", CAPTURED},
      {"files", INPUTS}}},
};
enum { VERBS = sizeof verbs / sizeof *verbs };

// A step while it is read.
typedef struct writing {
  tarn_recipe *recipe;
  const verb *verb;
  const tarn__yaml_node *map;
  int64_t seed;
  const char *words[MOST_WORDS], *arguments[MOST_WORDS];
  const char *made[MOST_MADE];
  size_t word_count, argument_count, made_count;
  const char *output;
} writing;

static tarn_status add(writing *w, const tarn__yaml_node *node, const char *word) {
  if (w->word_count + w->argument_count == MOST_WORDS)
    return tarn__yaml_fail(node, "the step has more than %d words", MOST_WORDS);
  w->words[w->word_count++] = word;
  return TARN_STATUS_OK;
}

static tarn_status add_argument(writing *w, const tarn__yaml_node *node, const char *word) {
  if (w->word_count + w->argument_count == MOST_WORDS)
    return tarn__yaml_fail(node, "the step has more than %d words", MOST_WORDS);
  w->arguments[w->argument_count++] = word;
  return TARN_STATUS_OK;
}

// A scalar with {seed} replaced.
static tarn_status take_text(writing *w, const tarn__yaml_node *node, const char *key, const char **text) {
  static const char mark[] = "{seed}";
  if (node->type != TARN__YAML_SCALAR || tarn__yaml_is_empty(node) || !*node->text)
    return tarn__yaml_fail(node, "%s: expected one value", key);
  const char *at = strstr(node->text, mark);
  *text = node->text;
  if (!at) return TARN_STATUS_OK;
  if (w->seed == 0) return tarn__yaml_fail(node, "%s: the preparation is for all seeds and has no {seed}", key);
  if (strstr(at + 1, mark)) return tarn__yaml_fail(node, "%s: {seed} stands there twice", key);
  return tarn__recipe_text(w->recipe, text, "%.*s%lld%s", (int)(at - node->text), node->text, (long long)w->seed,
                           at + sizeof mark - 1);
}

static tarn_status take_flag(writing *w, const tarn__yaml_node *node, const char *option_word) {
  const char *text = node->type == TARN__YAML_SCALAR ? node->text : "";
  if (strcmp(text, "yes") == 0 || strcmp(text, "true") == 0) return add(w, node, option_word);
  if (strcmp(text, "no") == 0 || strcmp(text, "false") == 0) return TARN_STATUS_OK;
  return tarn__yaml_fail(node, "%s: expected yes or no", node->key);
}

// Whether a file may be written: no part of its path is hidden, and it is none of those that this program keeps there.
static bool is_free(const tarn_recipe *recipe, const char *path) {
  const size_t length = strcspn(path, "/");
  for (const char *const *own = tarn__recipe_own; *own && (recipe->model || own[1]); own++)
    if (strlen(*own) == length && strncmp(*own, path, length) == 0) return false;
  for (const char *part = path; part; part = strchr(part, '/')) {
    part += *part == '/';
    if (*part == '.' || *part == '/' || *part == '\0') return false;
  }
  return true;
}

// A path below the current folder, which no need's name is.
static tarn_status take_output(writing *w, const tarn__yaml_node *node, const char **path) {
  char shown[TARN__YAML_SHOWN];
  TARN_TRY(take_text(w, node, node->key, path));
  if (**path == '$' || !tarn__recipe_is_below(*path))
    return tarn__yaml_fail(node, "%s: \"%s\" is no path below the output folder", node->key,
                           tarn__yaml_show(shown, *path));
  if (!is_free(w->recipe, *path))
    return tarn__yaml_fail(node, "%s: \"%s\" is no path for a step: hidden, or kept for tarn recipe", node->key,
                           tarn__yaml_show(shown, *path));
  if (w->seed > 0 && !strstr(node->text, "{seed}"))
    return tarn__yaml_fail(node, "%s: \"%s\" needs {seed}, or all seeds would write one file", node->key,
                           tarn__yaml_show(shown, *path));
  if (w->made_count == MOST_MADE) return tarn__yaml_fail(node, "%s: the step writes too many files", node->key);
  w->made[w->made_count++] = *path;
  return TARN_STATUS_OK;
}

static tarn_status take_input(writing *w, const tarn__yaml_node *node, const char *key) {
  const char *text;
  TARN_TRY(take_text(w, node, key, &text));
  if (*text != '$') {
    const char *path;
    TARN_TRY(tarn__recipe_path(w->recipe, node, text, &path));
    return add_argument(w, node, path);
  }
  const char *const *files;
  size_t count;
  TARN_TRY(tarn__recipe_resolve(w->recipe, node, text, &files, &count));
  for (size_t i = 0; i < count; i++) TARN_TRY(add_argument(w, node, files[i]));
  return TARN_STATUS_OK;
}

static tarn_status take_inputs(writing *w, const tarn__yaml_node *node) {
  if (node->type != TARN__YAML_LIST) return take_input(w, node, node->key);
  for (const tarn__yaml_node *item = node->first; item; item = item->next) TARN_TRY(take_input(w, item, node->key));
  return TARN_STATUS_OK;
}

// The length of the folder of a need's links.
static size_t folder_of(const tarn_recipe_need *need) {
  return (size_t)(strrchr(need->links[0], '/') - need->links[0]);
}

// Whether a path is the first file of a need, or their folder.
static bool is_of(const tarn_recipe_need *need, const char *path) {
  const size_t length = folder_of(need);
  return strcmp(path, need->links[0]) == 0 || (strlen(path) == length && strncmp(path, need->links[0], length) == 0);
}

static bool has_file(const tarn_recipe *recipe, const tarn_recipe_need *beside, const char *name) {
  const size_t length = folder_of(beside) + 1;
  for (size_t i = 0; i < recipe->need_count; i++) {
    const tarn_recipe_need *need = &recipe->needs[i];
    for (size_t k = 0; k < need->file_count; k++)
      if (strncmp(need->links[k], beside->links[0], length) == 0 && strcmp(need->links[k] + length, name) == 0)
        return true;
  }
  return false;
}

// Some imports read the settings of a tokenizer beside its file, and make another vocabulary without them. Among the
// links these are found only if `data` names them.
static tarn_status check_settings(const writing *w, const tarn__yaml_node *node, const char *path) {
  const tarn_recipe *recipe = w->recipe;
  if (strcmp(node->key, "import-tokenizer") != 0 && strcmp(node->key, "import-wordpiece") != 0) return TARN_STATUS_OK;
  for (size_t i = 0; i < recipe->need_count; i++) {
    const tarn_recipe_need *need = &recipe->needs[i];
    const bool beside = need->file_count > 0 && recipe->memory->settings[i] && is_of(need, path);
    if (beside && !has_file(recipe, need, TARN__TOKENIZER_SETTINGS))
      return tarn__yaml_fail(node, "%s: beside %s is %s, which changes the vocabulary: data needs a name for it too",
                             node->key, node->text, TARN__TOKENIZER_SETTINGS);
  }
  return TARN_STATUS_OK;
}

static tarn_status take_option(writing *w, const option *o, const tarn__yaml_node *node) {
  const char *word, *value;
  char shown[TARN__YAML_SHOWN];
  TARN_TRY(tarn__recipe_text(w->recipe, &word, "--%s", o->name));
  switch (o->kind) {
    case FLAG:
      return take_flag(w, node, word);
    case INPUTS:
      return take_inputs(w, node);
    case WORD:
      TARN_TRY(take_text(w, node, node->key, &value));
      if (*value == '-') return tarn__yaml_fail(node, "%s: \"%s\" is no word", o->name, tarn__yaml_show(shown, value));
      return add_argument(w, node, value);
    case CAPTURED:
      TARN_TRY(take_output(w, node, &w->output));
      return add(w, node, word);
    case OUTPUT:
      TARN_TRY(take_output(w, node, &value));
      break;
    case INPUT:
    case TEXT:
      TARN_TRY(take_text(w, node, node->key, &value));
      if (o->kind == INPUT || !tarn__yaml_get(w->map, "table"))
        TARN_TRY(tarn__recipe_path(w->recipe, node, value, &value));
      TARN_TRY(check_settings(w, node, value));
      break;
    case VALUE:
      TARN_TRY(take_text(w, node, node->key, &value));
      break;
  }
  TARN_TRY(add(w, node, word));
  return add(w, node, value);
}

static tarn_status find_option(const writing *w, const tarn__yaml_node *entry, const option **found) {
  const char *names[MOST_OPTIONS];
  char what[64];
  size_t count = 0;
  for (const option *o = w->verb->options; o->name; o++) {
    names[count++] = o->name;
    *found = o;
    if (strcmp(o->name, entry->key) == 0) return TARN_STATUS_OK;
  }
  snprintf(what, sizeof what, "option in %s", w->verb->name);
  return tarn__sweep_unknown_word(entry, what, entry->key, names, count);
}

static tarn_status find_verb(const tarn__yaml_node *entry, const verb **found) {
  const char *names[VERBS];
  for (size_t i = 0; i < VERBS; i++) {
    names[i] = verbs[i].name;
    *found = &verbs[i];
    if (strcmp(names[i], entry->key) == 0) return TARN_STATUS_OK;
  }
  return tarn__sweep_unknown_word(entry, "step", entry->key, names, VERBS);
}

static tarn_status keep(writing *w, const tarn__yaml_node *entry) {
  struct tarn__recipe_memory *m = w->recipe->memory;
  void *memory;
  if (w->recipe->step_count == MOST_STEPS) return tarn__yaml_fail(entry, "more than %d steps", MOST_STEPS);
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, w->word_count + w->argument_count, sizeof(char *)));
  const char **words = memory;
  memcpy(words, w->words, w->word_count * sizeof *words);
  memcpy(words + w->word_count, w->arguments, w->argument_count * sizeof *words);
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, w->made_count, sizeof(char *)));
  const char **made = memory;
  memcpy(made, w->made, w->made_count * sizeof *made);
  TARN_TRY(tarn__grow(&m->steps, &m->step_capacity, w->recipe->step_count + 1, sizeof *m->steps));
  m->steps[w->recipe->step_count++] = (tarn_recipe_step){.words = words,
                                                         .word_count = w->word_count + w->argument_count,
                                                         .made = made,
                                                         .made_count = w->made_count,
                                                         .output = w->output,
                                                         .seed = w->seed};
  w->recipe->steps = m->steps;
  return TARN_STATUS_OK;
}

static tarn_status read_step(tarn_recipe *recipe, const tarn__yaml_node *item, int64_t seed) {
  writing w = {.recipe = recipe, .seed = seed};
  const tarn__yaml_node *entry = item->type == TARN__YAML_MAP ? item->first : NULL;
  if (!entry || entry->next)
    return tarn__yaml_fail(item, "a step is one command with its options, such as vocab: { size: 8000, ... }");
  TARN_TRY(find_verb(entry, &w.verb));
  if (entry->type != TARN__YAML_MAP) return tarn__yaml_fail(entry, "%s: expected its options", entry->key);
  w.map = entry;
  const char *space = strchr(w.verb->name, ' ');
  const char *first;
  TARN_TRY(tarn__recipe_text(recipe, &first, "%.*s", space ? (int)(space - w.verb->name) : INT_MAX, w.verb->name));
  TARN_TRY(add(&w, entry, first));
  if (space) TARN_TRY(add(&w, entry, space + 1));
  for (const tarn__yaml_node *node = entry->first; node; node = node->next) {
    const option *found = NULL;
    TARN_TRY(find_option(&w, node, &found));
    TARN_TRY(take_option(&w, found, node));
  }
  if (w.verb->arguments > 0 && w.argument_count != w.verb->arguments)
    return tarn__yaml_fail(entry, "%s: expected %zu of its arguments, not %zu", w.verb->name, w.verb->arguments,
                           w.argument_count);
  return keep(&w, entry);
}

tarn_status tarn__recipe_read_steps(tarn_recipe *recipe, const char *key, int64_t seed) {
  const tarn__yaml_node *list = tarn__yaml_get(recipe->memory->root, key);
  if (tarn__yaml_is_empty(list)) return TARN_STATUS_OK;
  if (list->type != TARN__YAML_LIST) return tarn__yaml_fail(list, "%s: expected a list of steps", key);
  for (const tarn__yaml_node *item = list->first; item; item = item->next) TARN_TRY(read_step(recipe, item, seed));
  return TARN_STATUS_OK;
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

tarn_status tarn__recipe_check_made(const tarn_recipe *recipe, const tarn__yaml_node *node) {
  void *memory;
  char shown[TARN__YAML_SHOWN];
  size_t count = 0, used = 0;
  for (size_t i = 0; i < recipe->step_count; i++) count += recipe->steps[i].made_count;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count + 1, sizeof(char *)));
  const char **made = memory;
  for (size_t i = 0; i < recipe->step_count; i++)
    for (size_t k = 0; k < recipe->steps[i].made_count; k++) made[used++] = recipe->steps[i].made[k];
  qsort(made, used, sizeof *made, by_text);
  const char *twice = NULL;
  for (size_t i = 0; i + 1 < used && !twice; i++)
    if (strcmp(made[i], made[i + 1]) == 0) twice = made[i];
  tarn__free(memory);
  return twice ? tarn__yaml_fail(node, "\"%s\" is written twice", tarn__yaml_show(shown, twice)) : TARN_STATUS_OK;
}
