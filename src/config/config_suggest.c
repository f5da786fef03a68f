#include "config/config_suggest.h"

#include <stdio.h>
#include <string.h>

#include "config/config_part.h"
#include "parts/table/part_table.h"
#include "tarn/text.h"

// An entry of a map and its position, so that it can be removed and reinserted.
typedef struct place {
  tarn__yaml_node *map, *before, *node, *last;
} place;

static bool find_place(place *at, const tarn__suggest *s) {
  tarn__yaml_node *map = s->root;
  if (s->map[0]) map = (tarn__yaml_node *)(void *)(uintptr_t)tarn__yaml_find(s->root, s->map);
  *at = (place){.map = map};
  if (!map || map->type != TARN__YAML_MAP) return false;
  at->last = map->last;
  for (at->node = map->first; at->node && strcmp(at->node->key, s->key) != 0; at->node = at->node->next)
    at->before = at->node;
  return at->node != NULL;
}

static void put_back(const place *at, tarn__yaml_node *next) {
  if (at->before)
    at->before->next = at->node;
  else
    at->map->first = at->node;
  at->node->next = next;
  at->map->last = at->last;
}

static void ask(tarn__suggest *s, tarn__trial *trial) {
  *trial = (tarn__trial){0};
  s->read(trial, s->reader);
  const bool told = trial->status == TARN_STATUS_OK || trial->status == TARN_STATUS_USAGE ||
                    trial->status == TARN_STATUS_DATA || trial->status == TARN_STATUS_IO;
  if (!told && s->status == TARN_STATUS_OK) s->status = trial->status;
}

// The result of reading without the key.
static void ask_without(tarn__suggest *s, tarn__trial *trial, const place *at) {
  tarn__yaml_node *next = at->node->next;
  tarn__yaml_remove(at->map, s->key);
  ask(s, trial);
  put_back(at, next);
}

// If both readings end in the same error, that is a different mistake. A key whose value cannot be read is still the
// right one if no other is nearer, and so is one that a later error does not mention.
static bool accepts(tarn__suggest *s, const tarn__trial *with, const tarn__trial *without, const char *path,
                    const char *word) {
  if (s->status != TARN_STATUS_OK) return false;
  if (with->status == TARN_STATUS_OK || strcmp(with->message, without->message) == 0) return true;
  if (!with->resolving) return !with->unknown && !s->farther;
  return !strstr(with->message, path) && !strstr(with->message, word);
}

static void path_of(char path[TARN__NEAR_PATH], const char *map, const char *key) {
  snprintf(path, TARN__NEAR_PATH, "%.62s%s%.63s", map, map[0] ? "." : "", key);
}

static bool takes_word(tarn__suggest *s, const place *at, const char *word) {
  tarn__trial with, without;
  char path[TARN__NEAR_PATH];
  tarn__yaml_node *node = at->node;
  const char *written = node->text;
  path_of(path, s->map, s->key);
  node->text = word;
  ask(s, &with);
  node->text = written;
  ask_without(s, &without, at);
  return accepts(s, &with, &without, path, word);
}

static const char *nearest_word(tarn__suggest *s, const place *at, const char *given, const char **words,
                                size_t count) {
  const char *near;
  while ((near = tarn_text_nearest(given, words, count)) != NULL && s->status == TARN_STATUS_OK) {
    if (takes_word(s, at, near)) return near;
    for (size_t i = 0; i < count; i++)
      if (words[i] == near) words[i] = words[--count];
  }
  const size_t length = strlen(given);
  for (size_t i = 0; i < count && length >= 3; i++)
    if (strncmp(words[i], given, length) == 0 && takes_word(s, at, words[i])) return words[i];
  return NULL;
}

const char *tarn__suggest_word(tarn__suggest *s, const tarn__option *option, const char *given) {
  enum { MOST = 128 };
  const char *words[MOST];
  size_t count = 0;
  place at;
  const tarn__part *part;
  const bool is_part = option->type == TARN__OPTION_PART;
  if (!find_place(&at, s) || at.node->type != TARN__YAML_SCALAR) return NULL;
  for (int i = 0; is_part && (part = tarn__part_at(option->table, i)) != NULL && count < MOST; i++) {
    if (tarn__part_listed(part->also, given) && takes_word(s, &at, part->word)) return part->word;
    words[count++] = part->word;
  }
  for (int i = 0; !is_part && i < option->word_count && count < MOST; i++) words[count++] = option->words[i].word;
  return nearest_word(s, &at, given, words, count);
}

// An override from the command line has no line, and a sweep's variant comes from another file: both replace a value of
// the description.
static bool replaces(const place *at, const tarn__yaml_node *other) {
  return at->node->line == 0 || strcmp(at->node->origin, other->origin) != 0;
}

// The result of reading with the value of the key in place of that of another one.
static void ask_replaced(tarn__suggest *s, tarn__trial *trial, const place *at, tarn__yaml_node *other) {
  const tarn__yaml_node saved = *other;
  other->type = at->node->type;
  other->text = at->node->text;
  other->quoted = at->node->quoted;
  other->first = at->node->first;
  other->last = at->node->last;
  tarn__yaml_node *next = at->node->next;
  tarn__yaml_remove(at->map, s->key);
  ask(s, trial);
  put_back(at, next);
  tarn__yaml_node *follows = other->next;
  *other = saved;
  other->next = follows;
}

// A map with both keys would be rejected for a duplicate key.
bool tarn__suggest_fits(tarn__suggest *s, const char *name) {
  place at;
  tarn__trial with, without;
  char path[TARN__NEAR_PATH];
  if (!find_place(&at, s)) return true;
  tarn__yaml_node *other = tarn__yaml_get(at.map, name);
  if (other && !replaces(&at, other)) return false;
  path_of(path, s->map, name);
  if (other) {
    ask_replaced(s, &with, &at, other);
  } else {
    at.node->key = name;
    ask(s, &with);
    at.node->key = s->key;
  }
  ask_without(s, &without, &at);
  return accepts(s, &with, &without, path, name);
}

const char *tarn__suggest_key(tarn__suggest *s, const char **candidates, size_t count) {
  const char *near;
  while ((near = tarn_text_nearest(s->key, candidates, count)) != NULL && s->status == TARN_STATUS_OK) {
    if (tarn__suggest_fits(s, near)) return near;
    s->farther = true;
    for (size_t i = 0; i < count; i++)
      if (candidates[i] == near) candidates[i--] = candidates[--count];
  }
  return NULL;
}

// A key below a user-defined name belongs to the current map if that has such a name; else to any.
static const char *with_name(char own[TARN__NEAR_PATH], const char *path, const char *map) {
  const char *name = strstr(path, ".NAME");
  const size_t length = name ? (size_t)(name - path) : 0;
  if (!name) return path;
  if (strncmp(map, path, length) != 0 || map[length] != '.') return NULL;
  const size_t own_length = length + 1 + strcspn(map + length + 1, ".");
  snprintf(own, TARN__NEAR_PATH, "%.*s%.63s", (int)own_length, map, name + strlen(".NAME"));
  return own;
}

bool tarn__suggest_moves(void *user, const char *named) {
  tarn__suggest *s = user;
  char own[TARN__NEAR_PATH];
  const char *path = with_name(own, named, s->map);
  place at;
  tarn__trial with, without;
  char map[TARN__NEAR_PATH];
  if (!path || !find_place(&at, s)) return true;
  const tarn__yaml_node *there = tarn__yaml_find(s->root, path);
  if (!tarn__yaml_is_empty(there) && !replaces(&at, there)) return false;
  tarn__yaml_node *next = at.node->next;
  ask_without(s, &without, &at);
  tarn__yaml_remove(at.map, s->key);
  tarn_status status = tarn__parts_open(s->tree, s->root, path);
  if (status == TARN_STATUS_OK) status = tarn__yaml_set(s->tree, s->root, path, at.node);
  const bool moved = status == TARN_STATUS_OK;
  if (moved) ask(s, &with);
  snprintf(map, sizeof map, "%s", path);
  char *last = strrchr(map, '.');
  *last = 0;
  if (moved) tarn__yaml_remove((tarn__yaml_node *)(void *)(uintptr_t)tarn__yaml_find(s->root, map), last + 1);
  at.node->key = s->key;
  put_back(&at, next);
  if (!moved && status != TARN_STATUS_USAGE) s->status = status;
  return moved && accepts(s, &with, &without, path, last + 1);
}
