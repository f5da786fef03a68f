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

static tarn_status put_sweep(text *t, const tarn_recipe *recipe) {
  const tarn__yaml_node *root = recipe->memory->root, *threads = tarn__yaml_get(root, "threads");
  char line[192];
  int64_t count = 0;
  if (!tarn__sweep_is_name(recipe->name))
    return tarn__fail(TARN_STATUS_USAGE, "\"%s\" is no name of a recipe: letters, digits, _ - + and .", recipe->name);
  snprintf(line, sizeof line, "# Made by tarn recipe.\nname: %s\nbase: %s\nbaseline: %s\nparallel: 1\nseeds: [",
           recipe->name, TARN_RECIPE_MODEL, recipe->name);
  TARN_TRY(put(t, line));
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
  snprintf(line, sizeof line, "variants:\n  %s: {}\n", recipe->name);
  return put(t, line);
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
  tarn_status status = put_sweep(&t, recipe);
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
    TARN_TRY(value_of(recipe, entry, &value));
    TARN_TRY(tarn__recipe_text(recipe, &changes[used++], "%s=%s", entry->key, value ? value : ""));
  }
  for (size_t i = 0; i < recipe->change_count; i++) changes[used++] = recipe->change[i];
  *out = changes;
  *count = used;
  return TARN_STATUS_OK;
}

// A path under which the description can be read although no file has it yet.
static tarn_status show_text(char path[64], int *fd, const char *model) {
  *fd = memfd_create("model.yaml", MFD_CLOEXEC);
  TARN_REQUIRE(*fd >= 0, IO, "cannot hold the description in memory: %s", strerror(errno));
  TARN_REQUIRE(tarn__write_all(*fd, model, strlen(model)), IO, "cannot hold the description in memory: %s",
               strerror(errno));
  snprintf(path, 64, "/proc/self/fd/%d", *fd);
  return TARN_STATUS_OK;
}

static tarn_status predict(const tarn_recipe *recipe, tarn_plan *plan, tarn_duration *duration, const char *run,
                           const tarn_train_options *training) {
  const bool prepared = tarn__file_exists(TARN__RECIPE_STATE) && tarn__file_exists(TARN_RECIPE_SWEEP);
  const int64_t tokens = prepared ? 0 : recipe->memory->vocabulary;
  const tarn_plan_options wanted = {.source_vocab = tokens, .target_vocab = tokens};
  tarn_config *config;
  TARN_TRY(tarn_config_parse(&config, recipe->model, recipe->model_text, strlen(recipe->model_text),
                             training->overrides, training->override_count));
  tarn_status status = tarn_plan_make(plan, config, &wanted);
  tarn_config_close(&config);
  if (status == TARN_STATUS_OK && duration) status = tarn_train_duration(duration, training, plan, run);
  return status;
}

tarn_status tarn_recipe_plan(const tarn_recipe *recipe, tarn_plan *plan, tarn_duration *duration, const char *run) {
  char path[64];
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
