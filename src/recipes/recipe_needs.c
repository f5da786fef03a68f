// The files that a recipe needs: where they may be, and where they are.
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "recipes/recipe_spec.h"
#include "sweep/spec.h"
#include "tarn/text.h"
#include "text/tokenizer_json.h"

enum { MOST_NEEDS = 64, MOST_CHOICES = 16, MOST_FILES = 4096 };

// Files of one folder.
typedef struct names {
  char **items;
  size_t count, capacity;
  bool full;  // there are more
} names;

static void close_names(names *n) {
  for (size_t i = 0; i < n->count; i++) tarn__free(n->items[i]);
  tarn__free(n->items);
}

static tarn_status add_name(names *n, const char *name) {
  TARN_TRY(tarn__grow(&n->items, &n->capacity, n->count + 1, sizeof *n->items));
  TARN_TRY(tarn__strdup(&n->items[n->count], name));
  n->count++;
  return TARN_STATUS_OK;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

// The files in a folder whose names match a pattern, sorted; none if it cannot be read.
static tarn_status list_names(names *n, const char *folder, const char *pattern) {
  tarn_status status = TARN_STATUS_OK;
  DIR *dir = opendir(*folder ? folder : ".");
  if (!dir) return TARN_STATUS_OK;
  for (const struct dirent *entry; status == TARN_STATUS_OK && !n->full && (entry = readdir(dir));) {
    struct stat info;
    if (entry->d_name[0] == '.' || fnmatch(pattern, entry->d_name, 0) != 0) continue;
    if (fstatat(dirfd(dir), entry->d_name, &info, 0) != 0 || !S_ISREG(info.st_mode)) continue;
    n->full = n->count == MOST_FILES;
    if (!n->full) status = add_name(n, entry->d_name);
  }
  closedir(dir);
  if (n->count > 1) qsort(n->items, n->count, sizeof *n->items, by_name);
  return status;
}

// The folder of a choice below a data folder, and the name or pattern in it.
static tarn_status place_of(char folder[PATH_MAX], const char **last, const char *data, const char *choice) {
  char below[PATH_MAX];
  const char *slash = strrchr(choice, '/');
  *last = slash ? slash + 1 : choice;
  snprintf(below, sizeof below, "%.*s", slash ? (int)(slash - choice) : 0, choice);
  return tarn__path_join(folder, *below || !*data ? data : "", *below || !*data ? below : data);
}

// Two other names could have the same one in the list of data.
static bool is_text(const char *name) {
  char repaired[3 * NAME_MAX + 1];
  tarn_text_repair(repaired, name);
  return strcmp(repaired, name) == 0;
}

static tarn_status take_files(tarn_recipe *recipe, tarn_recipe_need *need, const char *folder, const char *choice,
                              const names *n) {
  void *memory;
  TARN_TRY(tarn__arena_alloc(&recipe->memory->arena, &memory, 2 * n->count, sizeof(char *)));
  const char **files = memory, **links = files + n->count, *slash = strrchr(choice, '/');
  const int below = slash ? (int)(slash + 1 - choice) : 0;
  for (size_t i = 0; i < n->count; i++) {
    char path[PATH_MAX], real[PATH_MAX];
    TARN_REQUIRE(is_text(n->items[i]), USAGE, "data.%s: the name of a file in %s is not valid UTF-8", need->name,
                 *folder ? folder : ".");
    TARN_TRY(tarn__path_join(path, folder, n->items[i]));
    TARN_TRY(tarn__recipe_text(recipe, &files[i], "%s", realpath(path, real) ? real : path));
    TARN_TRY(tarn__recipe_text(recipe, &links[i], TARN_RECIPE_INPUTS "/%.*s%s", below, choice, n->items[i]));
  }
  char settings[PATH_MAX];
  TARN_TRY(tarn__path_join(settings, folder, TARN__TOKENIZER_SETTINGS));
  recipe->memory->settings[need - recipe->memory->needs] = tarn__file_exists(settings);
  need->files = files;
  need->links = links;
  need->file_count = n->count;
  return TARN_STATUS_OK;
}

static tarn_status find_choice(tarn_recipe *recipe, tarn_recipe_need *need, const char *data, const char *choice) {
  char folder[PATH_MAX];
  const char *last;
  names n = {0};
  TARN_TRY(place_of(folder, &last, data, choice));
  tarn_status status = list_names(&n, folder, last);
  if (status == TARN_STATUS_OK && n.full)
    status =
        tarn__fail(TARN_STATUS_USAGE, "data.%s: %s has more than %d files %s", need->name, folder, MOST_FILES, last);
  if (status == TARN_STATUS_OK && n.count > 0) status = take_files(recipe, need, folder, choice, &n);
  close_names(&n);
  return status;
}

// In the first folder that has any of the choices, so that files of two folders are not mixed.
static tarn_status find_files(tarn_recipe *recipe, tarn_recipe_need *need, const tarn__yaml_node *const *choices,
                              size_t count) {
  const tarn_recipe_options *o = recipe->memory->options;
  for (size_t i = 0; i < o->data_count; i++)
    for (size_t k = 0; k < count && need->file_count == 0; k++)
      TARN_TRY(find_choice(recipe, need, o->data[i], choices[k]->text));
  return TARN_STATUS_OK;
}

// An existing file that may be the one meant.
static tarn_status find_near(tarn_recipe *recipe, tarn_recipe_need *need, const char *choice) {
  const tarn_recipe_options *o = recipe->memory->options;
  tarn_status status = TARN_STATUS_OK;
  for (size_t i = 0; i < o->data_count && !need->near && status == TARN_STATUS_OK; i++) {
    char folder[PATH_MAX];
    const char *last;
    names n = {0};
    TARN_TRY(place_of(folder, &last, o->data[i], choice));
    status = list_names(&n, folder, "*");
    const char *near = n.count > 0 ? tarn_text_nearest(last, (const char *const *)n.items, n.count) : NULL;
    if (status == TARN_STATUS_OK && near) status = tarn__recipe_text(recipe, &need->near, "%s/%s", folder, near);
    close_names(&n);
  }
  return status;
}

// Whether a part of a path is hidden, ".", or empty: the links to the data have none of these.
static bool has_odd_part(const char *path) {
  for (const char *part = path; part; part = strchr(part, '/')) {
    part += *part == '/';
    if (*part == '.' || *part == '/' || *part == '\0') return true;
  }
  return false;
}

static tarn_status check_choice(const tarn__yaml_node *node, const char *key) {
  char shown[TARN__YAML_SHOWN];
  if (node->type != TARN__YAML_SCALAR || tarn__yaml_is_empty(node))
    return tarn__yaml_fail(node, "data.%s: expected a path below the data folder, or a list of such paths", key);
  if (!tarn__recipe_is_below(node->text))
    return tarn__yaml_fail(node, "data.%s: \"%s\" is no path below the data folder", key,
                           tarn__yaml_show(shown, node->text));
  if (has_odd_part(node->text))
    return tarn__yaml_fail(node, "data.%s: \"%s\" has a part that is hidden, \".\" or empty", key,
                           tarn__yaml_show(shown, node->text));
  const char *slash = strrchr(node->text, '/'), *star = strpbrk(node->text, "*?[");
  if (star && slash && star < slash)
    return tarn__yaml_fail(node, "data.%s: only the last part of a path may have *, not \"%s\"", key,
                           tarn__yaml_show(shown, node->text));
  return TARN_STATUS_OK;
}

static tarn_status read_need(tarn_recipe *recipe, tarn_recipe_need *need, const tarn__yaml_node *entry) {
  const tarn__yaml_node *choices[MOST_CHOICES];
  char text[1024] = "";
  size_t count = 0, used = 0;
  if (strspn(entry->key, "abcdefghijklmnopqrstuvwxyz0123456789_.-") != strlen(entry->key) || !*entry->key)
    return tarn__yaml_fail(entry, "data: a name has small letters, digits, . _ and -");
  need->name = entry->key;
  if (entry->type != TARN__YAML_LIST) choices[count++] = entry;
  for (const tarn__yaml_node *item = entry->first; item && entry->type == TARN__YAML_LIST; item = item->next) {
    if (count == MOST_CHOICES) return tarn__yaml_fail(item, "data.%s: more than %d paths", entry->key, MOST_CHOICES);
    choices[count++] = item;
  }
  if (count == 0) return tarn__yaml_fail(entry, "data.%s: expected at least one path", entry->key);
  for (size_t i = 0; i < count; i++) {
    TARN_TRY(check_choice(choices[i], entry->key));
    if (used < sizeof text)
      used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                               i == 0           ? ""
                               : i + 1 == count ? " or "
                                                : ", ",
                               choices[i]->text);
  }
  TARN_TRY(find_files(recipe, need, choices, count));
  for (size_t i = 0; i < count && need->file_count == 0 && !need->near; i++)
    TARN_TRY(find_near(recipe, need, choices[i]->text));
  if (need->file_count == 0) {
    void *memory;
    TARN_TRY(tarn__arena_alloc(&recipe->memory->arena, &memory, 1, sizeof(char *)));
    const char **placeholder = memory;
    TARN_TRY(tarn__recipe_text(recipe, placeholder, TARN_RECIPE_INPUTS "/%s", choices[0]->text));
    need->links = placeholder;  // for the commands that are shown
  }
  recipe->missing += need->file_count == 0;
  return tarn__recipe_text(recipe, &need->choices, "%s", text);
}

static tarn_status check_folders(const tarn_recipe_options *o) {
  for (size_t i = 0; i < o->data_count; i++) {
    struct stat info;
    TARN_REQUIRE(stat(*o->data[i] ? o->data[i] : ".", &info) == 0 && S_ISDIR(info.st_mode), USAGE,
                 "data: there is no folder %s", o->data[i]);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__recipe_read_needs(tarn_recipe *recipe) {
  struct tarn__recipe_memory *m = recipe->memory;
  TARN_TRY(check_folders(m->options));
  const tarn__yaml_node *map = tarn__yaml_get(m->root, "data");
  void *memory;
  if (tarn__yaml_is_empty(map)) return TARN_STATUS_OK;
  if (map->type != TARN__YAML_MAP)
    return tarn__yaml_fail(map, "data: expected a name for each file needed, with its path");
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, MOST_NEEDS, sizeof *m->needs));
  m->needs = memory;
  TARN_TRY(tarn__arena_alloc(&m->arena, &memory, MOST_NEEDS, sizeof *m->settings));
  m->settings = memory;
  recipe->needs = m->needs;
  for (const tarn__yaml_node *entry = map->first; entry; entry = entry->next) {
    if (recipe->need_count == MOST_NEEDS) return tarn__yaml_fail(entry, "data: more than %d names", MOST_NEEDS);
    TARN_TRY(read_need(recipe, &m->needs[recipe->need_count], entry));
    recipe->need_count++;
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__recipe_resolve(const tarn_recipe *recipe, const tarn__yaml_node *node, const char *text,
                                 const char *const **files, size_t *count) {
  const char *known[MOST_NEEDS];
  char name[128];
  const size_t length = strlen(text + 1);
  const bool folder = length > 0 && text[length] == '/';
  snprintf(name, sizeof name, "%.*s", (int)(length - folder), text + 1);
  for (size_t i = 0; i < recipe->need_count; i++) {
    const tarn_recipe_need *need = &recipe->needs[i];
    known[i] = need->name;
    if (strcmp(need->name, name) != 0) continue;
    *files = need->links;
    *count = need->file_count > 0 ? need->file_count : 1;
    if (!folder) return TARN_STATUS_OK;
    void *memory;
    TARN_TRY(tarn__arena_alloc(&recipe->memory->arena, &memory, 1, sizeof(char *)));
    const char **path = memory;
    *files = path;
    *count = 1;
    return tarn__recipe_text(recipe, path, "%.*s", (int)(strrchr(need->links[0], '/') - need->links[0]),
                             need->links[0]);
  }
  return tarn__sweep_unknown_word(node, "name of data", name, known, recipe->need_count);
}

tarn_status tarn__recipe_path(const tarn_recipe *recipe, const tarn__yaml_node *node, const char *text,
                              const char **path) {
  char shown[TARN__YAML_SHOWN];
  if (*text == '$') {
    const char *const *files;
    size_t count;
    TARN_TRY(tarn__recipe_resolve(recipe, node, text, &files, &count));
    if (count != 1) return tarn__yaml_fail(node, "\"%s\" is %zu files, and one is expected", text, count);
    *path = files[0];
    return TARN_STATUS_OK;
  }
  if (!tarn__recipe_is_below(text))
    return tarn__yaml_fail(node, "\"%s\" is neither the $NAME of data nor a path below the output folder",
                           tarn__yaml_show(shown, text));
  *path = text;
  return TARN_STATUS_OK;
}
