// The sweep of a recipe's description, and its plan.
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/write_all.h"
#include "description/description.h"
#include "recipes/recipe_spec.h"
#include "sweep/spec.h"

typedef struct text {
  char *data;
  size_t used, capacity;
} text;

static tarn_status put(text *t, const char *piece) {
  const size_t length = strlen(piece);
  TARN_TRY(tarn__grow(&t->data, &t->capacity, t->used + length + 1, 1));
  memcpy(t->data + t->used, piece, length + 1);
  t->used += length;
  return TARN_STATUS_OK;
}

// As YAML in double quotes.
static tarn_status put_quoted(text *t, const char *value) {
  TARN_TRY(put(t, "\""));
  for (; *value; value++) {
    char piece[8] = {*value};
    if (*value == '"' || *value == '\\') snprintf(piece, sizeof piece, "\\%c", *value);
    if ((unsigned char)*value < ' ' || *value == 127) snprintf(piece, sizeof piece, "\\x%02x", (unsigned char)*value);
    TARN_TRY(put(t, piece));
  }
  return put(t, "\"");
}

// The value of a key of `set` or `test`, with $NAME replaced.
static tarn_status value_of(const tarn_recipe *recipe, const tarn__yaml_node *node, const char **value) {
  if (node->type != TARN__YAML_SCALAR)
    return tarn__yaml_fail(node, "%s: expected one value; write a key of a map as \"a.b\"", node->key);
  *value = node->text;
  return *node->text == '$' ? tarn__recipe_path(recipe, node, node->text, value) : TARN_STATUS_OK;
}

static tarn_status put_map(text *t, const tarn_recipe *recipe, const char *key, bool paths) {
  static const char *const files[] = {"source", "reference", "blimp", "labelled", "text"};
  const tarn__yaml_node *map = tarn__yaml_get(recipe->memory->root, key);
  if (tarn__yaml_is_empty(map)) return TARN_STATUS_OK;
  if (map->type != TARN__YAML_MAP) return tarn__yaml_fail(map, "%s: expected keys with their values", key);
  for (const tarn__yaml_node *entry = map->first; entry; entry = entry->next) {
    const char *value;
    TARN_TRY(value_of(recipe, entry, &value));
    for (size_t i = 0; paths && i < sizeof files / sizeof *files; i++)
      if (strcmp(files[i], entry->key) == 0) TARN_TRY(tarn__recipe_path(recipe, entry, entry->text, &value));
    TARN_TRY(put(t, "  "));
    TARN_TRY(put_quoted(t, entry->key));
    TARN_TRY(put(t, ": "));
    if (!tarn__yaml_is_empty(entry)) TARN_TRY(put_quoted(t, value));
    TARN_TRY(put(t, "\n"));
  }
  return TARN_STATUS_OK;
}

// With the description in the file `base`.
static tarn_status put_sweep(text *t, const tarn_recipe *recipe, const char *base) {
  const tarn__yaml_node *root = recipe->memory->root, *threads = tarn__yaml_get(root, "threads");
  char line[192];
  int64_t count = 0;
  // In quotes, since a recipe may be called null.
  TARN_TRY(put(t, "# Made by tarn recipe.\nname: "));
  TARN_TRY(put_quoted(t, recipe->name));
  TARN_TRY(put(t, "\nbase: "));
  TARN_TRY(put_quoted(t, base));
  TARN_TRY(put(t, "\nbaseline: "));
  TARN_TRY(put_quoted(t, recipe->name));
  TARN_TRY(put(t, "\nparallel: 1\nseeds: ["));
  for (int64_t seed = 1; seed <= recipe->seeds; seed++) {
    snprintf(line, sizeof line, "%s%lld", seed > 1 ? ", " : "", (long long)seed);
    TARN_TRY(put(t, line));
  }
  TARN_TRY(put(t, "]\n"));
  if (!tarn__yaml_is_empty(threads)) {
    TARN_TRY(tarn__sweep_read_integer(threads, "threads", 1, 4096, &count));
    snprintf(line, sizeof line, "threads: %lld\n", (long long)count);
    TARN_TRY(put(t, line));
  }
  TARN_TRY(put(t, "set:\n"));
  TARN_TRY(put_map(t, recipe, "set", false));
  for (size_t i = 0; i < recipe->change_count; i++) {
    const char *equals = strchr(recipe->change[i], '=');
    const char *key;
    TARN_TRY(tarn__recipe_text(recipe, &key, "%.*s", (int)(equals - recipe->change[i]), recipe->change[i]));
    TARN_TRY(put(t, "  "));
    TARN_TRY(put_quoted(t, key));
    TARN_TRY(put(t, ": "));
    TARN_TRY(put(t, equals + 1));  // any YAML, as with --set of other commands
    TARN_TRY(put(t, "\n"));
  }
  if (!tarn__yaml_is_empty(tarn__yaml_get(root, "test"))) TARN_TRY(put(t, "test:\n"));
  TARN_TRY(put_map(t, recipe, "test", true));
  TARN_TRY(put(t, "variants:\n  "));
  TARN_TRY(put_quoted(t, recipe->name));
  return put(t, ": {}\n");
}

// A key of `set` that the user has set too is left out, since YAML has each key once.
static void drop_changed(tarn_recipe *recipe) {
  tarn__yaml_node *set = tarn__yaml_get(recipe->memory->root, "set");
  for (size_t i = 0; i < recipe->change_count; i++) {
    char key[256];
    snprintf(key, sizeof key, "%.*s", (int)(strchr(recipe->change[i], '=') - recipe->change[i]), recipe->change[i]);
    if (set && set->type == TARN__YAML_MAP) tarn__yaml_remove(set, key);
  }
}

tarn_status tarn__recipe_write_sweep(tarn_recipe *recipe) {
  text t = {0};
  char *copy = NULL;
  drop_changed(recipe);
  tarn_status status = put_sweep(&t, recipe, TARN_RECIPE_MODEL);
  if (status == TARN_STATUS_OK) status = tarn__arena_strdup(&recipe->memory->arena, &copy, t.data);
  tarn__free(t.data);
  recipe->sweep_text = copy;
  return status;
}

// --- the plan

// The changes to the description, as "key=value".
static tarn_status list_changes(const tarn_recipe *recipe, const char *const **out, size_t *count) {
  const tarn__yaml_node *set = tarn__yaml_get(recipe->memory->root, "set");
  void *memory;
  size_t most = recipe->change_count, used = 0;
  for (const tarn__yaml_node *entry = set ? set->first : NULL; entry; entry = entry->next) most++;
  TARN_TRY(tarn__arena_alloc(&recipe->memory->arena, &memory, most, sizeof(char *)));
  const char **changes = memory;
  for (const tarn__yaml_node *entry = set ? set->first : NULL; entry; entry = entry->next) {
    const char *value;
    text quoted = {0};
    TARN_TRY(value_of(recipe, entry, &value));
    tarn_status status = put(&quoted, "");
    if (status == TARN_STATUS_OK && !tarn__yaml_is_empty(entry)) status = put_quoted(&quoted, value);
    if (status == TARN_STATUS_OK)
      status = tarn__recipe_text(recipe, &changes[used++], "%s=%s", entry->key, quoted.data);
    tarn__free(quoted.data);
    TARN_TRY(status);
  }
  for (size_t i = 0; i < recipe->change_count; i++) changes[used++] = recipe->change[i];
  *out = changes;
  *count = used;
  return TARN_STATUS_OK;
}

// A path under which a text can be read although no file has it yet.
enum { SHOWN_PATH = 64 };
static tarn_status show_text(char path[SHOWN_PATH], int *fd, const char *model) {
  *fd = memfd_create(TARN_RECIPE_MODEL, MFD_CLOEXEC);
  TARN_REQUIRE(*fd >= 0, IO, "cannot hold the description in memory: %s", strerror(errno));
  TARN_REQUIRE(tarn__write_all(*fd, model, strlen(model)), IO, "cannot hold the description in memory: %s",
               strerror(errno));
  snprintf(path, SHOWN_PATH, "/proc/self/fd/%d", *fd);
  return TARN_STATUS_OK;
}

// What a message about such a path says behind it: "LINE: ...".
static const char *without_path(const char *message, const char *path) {
  const size_t length = strlen(path);
  return strncmp(message, path, length) == 0 && message[length] == ':' ? message + length + 1 : message;
}

typedef struct shown_sweep {
  char model[SHOWN_PATH], sweep[SHOWN_PATH];
  int model_fd, sweep_fd;
} shown_sweep;

static void hide(const shown_sweep *s) {
  if (s->model_fd >= 0) close(s->model_fd);
  if (s->sweep_fd >= 0) close(s->sweep_fd);
}

// The caller hides it, even after a failure.
static tarn_status show_sweep(shown_sweep *s, const tarn_recipe *recipe) {
  text t = {0};
  s->model_fd = s->sweep_fd = -1;
  TARN_TRY(show_text(s->model, &s->model_fd, recipe->model_text));
  tarn_status status = put_sweep(&t, recipe, s->model);
  if (status == TARN_STATUS_OK) status = show_text(s->sweep, &s->sweep_fd, t.data);
  tarn__free(t.data);
  return status;
}

static tarn_status fail_sweep(const tarn_recipe *recipe, tarn_status status, const char *origin, const char *path) {
  const char *message;
  TARN_TRY(tarn__recipe_text(recipe, &message, "%s", without_path(tarn_error_message(), path)));
  return tarn__fail(status, "%s: in its %s: %s", origin, TARN_RECIPE_SWEEP, message);
}

// Whether a file of the description is one that the recipe may name: below the folder, where the links to the data are
// too, or given by --set.
static bool may_read(const tarn_recipe *recipe, const char *path) {
  if (!path || tarn__recipe_is_below(path)) return true;
  for (size_t i = 0; i < recipe->change_count; i++)
    if (strstr(strchr(recipe->change[i], '='), path)) return true;
  return false;
}

static tarn_status check_paths(const tarn_recipe *recipe, const tarn_config *config, const char *origin) {
  static const char refusal[] = "%s: %s: \"%s\" is not below the output folder; a file of data is named by $NAME";
  const struct {
    const char *key, *path;
  } paths[] = {{"data.vocab", config->data.vocab},
               {"data.target_vocab", config->data.target_vocab},
               {"data.train", config->data.train},
               {"data.valid", config->data.valid},
               {"data.valid_reference", config->data.valid_reference},
               {"dynamics.input", config->dynamics.input},
               {"train.init_from", config->train.init_from}};
  char shown[TARN__YAML_SHOWN];
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
    TARN_REQUIRE(may_read(recipe, paths[i].path), USAGE, refusal, origin, paths[i].key,
                 tarn__yaml_show(shown, paths[i].path));
  for (int32_t i = 0; i < config->set_count; i++) {
    const tarn_config_scored_set *set = &config->sets[i];
    TARN_REQUIRE(may_read(recipe, set->data), USAGE, refusal, origin, "sets", tarn__yaml_show(shown, set->data));
    TARN_REQUIRE(may_read(recipe, set->reference), USAGE, refusal, origin, "sets",
                 tarn__yaml_show(shown, set->reference));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__recipe_check_description(const tarn_recipe *recipe, const char *origin) {
  const char *const *changes;
  size_t count;
  tarn_config *config;
  tarn_sweep *sweep = NULL;
  shown_sweep s;
  TARN_TRY(list_changes(recipe, &changes, &count));
  // By itself first, since these messages name the description.
  TARN_TRY(tarn_config_parse(&config, recipe->model, recipe->model_text, strlen(recipe->model_text), changes, count));
  tarn_config_close(&config);
  tarn_status status = show_sweep(&s, recipe);
  if (status == TARN_STATUS_OK) {
    status = tarn__sweep_outline(&sweep, s.sweep, NULL);
    if (status != TARN_STATUS_OK) status = fail_sweep(recipe, status, origin, s.sweep);
  }
  hide(&s);
  // What the trainings will read: the same texts as they see them.
  if (status == TARN_STATUS_OK) status = check_paths(recipe, sweep->variants[0].config, origin);
  if (sweep) tarn_sweep_close(&sweep);
  return status;
}

static bool has_text(const char *path, const char *wanted) {
  char *found;
  size_t size;
  if (!tarn__file_exists(path) || tarn__file_read(path, &found, &size) != TARN_STATUS_OK) return false;
  const bool same = size == strlen(wanted) && memcmp(found, wanted, size) == 0;
  tarn__free(found);
  return same;
}

tarn_status tarn__recipe_check_runs(const tarn_recipe *recipe) {
  tarn_sweep *sweep = NULL;
  shown_sweep s;
  if (!recipe->model || !tarn__file_exists(TARN_RECIPE_RUNS)) return TARN_STATUS_OK;
  if (has_text(TARN_RECIPE_SWEEP, recipe->sweep_text) && has_text(TARN_RECIPE_MODEL, recipe->model_text))
    return TARN_STATUS_OK;
  tarn_status status = show_sweep(&s, recipe);
  if (status == TARN_STATUS_OK) {
    tarn_sweep_options options;
    tarn_sweep_default(&options);
    options.file = s.sweep;
    options.folder = TARN_RECIPE_RUNS;
    status = tarn_sweep_open(&sweep, &options);
    if (status != TARN_STATUS_OK) status = fail_sweep(recipe, status, recipe->name, s.sweep);
  }
  hide(&s);
  if (sweep) tarn_sweep_close(&sweep);
  return status;
}

static tarn_status predict(const tarn_recipe *recipe, tarn_plan *plan, tarn_duration *duration, const char *run,
                           const tarn_train_options *training) {
  const bool prepared = run && tarn_recipe_is_prepared(recipe);
  const int64_t tokens = prepared ? 0 : recipe->memory->vocabulary;
  TARN_REQUIRE(prepared || tokens > 0, UNSUPPORTED,
               "the recipe %s has no key vocabulary, so memory and time are predicted when the data are prepared",
               recipe->name);
  const tarn_plan_options wanted = {.source_vocab = tokens, .target_vocab = tokens};
  tarn_config *config;
  TARN_TRY(tarn_config_parse(&config, recipe->model, recipe->model_text, strlen(recipe->model_text),
                             training->overrides, training->override_count));
  tarn_status status = tarn_plan_make(plan, config, &wanted);
  tarn_config_close(&config);
  if (status == TARN_STATUS_OK && duration) {
    status = tarn_train_duration(duration, training, plan, prepared ? run : NULL);
    if (status != TARN_STATUS_OK) tarn_plan_close(plan);
  }
  return status;
}

tarn_status tarn_recipe_plan(const tarn_recipe *recipe, tarn_plan *plan, tarn_duration *duration, const char *run) {
  char path[SHOWN_PATH];
  int fd = -1;
  *plan = (tarn_plan){0};
  TARN_REQUIRE(recipe->model, UNSUPPORTED, "the recipe %s has no description, so memory and time are not predicted",
               recipe->name);
  tarn_train_options training;
  tarn_train_default(&training);
  TARN_TRY(list_changes(recipe, &training.overrides, &training.override_count));
  tarn_status status = show_text(path, &fd, recipe->model_text);
  training.config = path;
  if (status == TARN_STATUS_OK) status = predict(recipe, plan, duration, run, &training);
  if (fd >= 0) close(fd);
  return status;
}
