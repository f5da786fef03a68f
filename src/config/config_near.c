// Keys that were written in the wrong place.
#include "config/config_near.h"

#include <stdio.h>
#include <string.h>

#include "config/config_options.h"
#include "parts/table/part_table.h"

// Whether a key has this name, or with `also` is called this by another program.
static bool is_called(const tarn__option *option, const char *name, bool also) {
  return also ? tarn__part_listed(option->also, name) : strcmp(option->name, name) == 0;
}

// Searches the keys of a map, then those of its possible parts.
static bool find_below(char path[TARN__NEAR_PATH], const char *map, const tarn__option *options, int count,
                       const char *name, bool also) {
  char below[TARN__NEAR_PATH];
  const tarn__part *part;
  for (int i = 0; i < count; i++) {
    if (!is_called(&options[i], name, also)) continue;
    snprintf(path, TARN__NEAR_PATH, "%.60s.%.60s", map, options[i].name);
    return true;
  }
  for (int i = 0; i < count; i++) {
    if (options[i].type != TARN__OPTION_PART) continue;
    snprintf(below, sizeof below, "%.60s.%.60s", map, options[i].name);
    for (int n = 0; (part = tarn__part_at(options[i].table, n)) != NULL; n++)
      if (find_below(path, options[i].beside ? map : below, part->options, part->option_count, name, also)) return true;
  }
  return false;
}

static bool find_in(char path[TARN__NEAR_PATH], const tarn__section *section, const char *name, bool also) {
  static const char *const named[] = {"kinds", "sets"};
  char map[TARN__NEAR_PATH];
  const bool has_name = strcmp(section->path, named[0]) == 0 || strcmp(section->path, named[1]) == 0;
  snprintf(map, sizeof map, "%.40s%s", section->path, has_name ? ".NAME" : "");
  return find_below(path, map, section->options, section->count, name, also);
}

static bool find(char path[TARN__NEAR_PATH], const char *name, const char *from, bool also,
                 bool (*takes)(void *user, const char *path), void *user) {
  const size_t n = strcspn(from, ".");
  for (int elsewhere = 0; elsewhere < 2; elsewhere++)
    for (int id = 0; id < TARN__SECTION_COUNT; id++) {
      const tarn__section *section = tarn__config_section((tarn__section_id)id);
      const bool here =
          n > 0 && strncmp(section->path, from, n) == 0 && (section->path[n] == 0 || section->path[n] == '.');
      if (here != elsewhere && find_in(path, section, name, also) && takes(user, path)) return true;
    }
  return false;
}

bool tarn__key_elsewhere(char path[TARN__NEAR_PATH], const char *name, const char *from,
                         bool (*takes)(void *user, const char *path), void *user) {
  return find(path, name, from, false, takes, user);
}

bool tarn__key_called(char path[TARN__NEAR_PATH], const char *name, const char *from,
                      bool (*takes)(void *user, const char *path), void *user) {
  return find(path, name, from, true, takes, user);
}

const char *tarn__key_map(char path[TARN__NEAR_PATH]) {
  *strrchr(path, '.') = 0;
  char *name = strrchr(path, '.');
  if (name && strcmp(name, ".NAME") == 0) *name = 0;
  return path;
}
