// Reads YAML text and overrides into a tarn_config: each map of the file is read by its section of the option table.
#include "config/config_read.h"
#include "run/names.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "config/architecture.h"
#include "config/config_near.h"
#include "config/config_part.h"
#include "config/config_suggest.h"
#include "run/file_kind.h"
#include "tarn/text.h"
#include "task/task.h"

enum { LARGEST_FILE = 1 << 20, PATH_TEXT = 160 };

#define TOO_LARGE "%s: larger than 1 MiB, so it is no description of a model"

typedef struct reader {
  tarn_config *config;
  tarn__arena *arena;  // of the config
  tarn__yaml *tree;    // these two belong to the config, which keeps them for messages
  tarn__yaml_node *root;
  tarn__trial *trial;  // set for a trial reading that tests a suggestion, else NULL
} reader;

static void try_reading(tarn__trial *trial, void *user);

static tarn__suggest suggest_for(reader *r, const char *map, const char *key) {
  return (tarn__suggest){.read = try_reading, .reader = r, .tree = r->tree, .root = r->root, .map = map, .key = key};
}

// Prepends "file:line: path: " to the recorded line.
static tarn_status fail_in(tarn_status status, const tarn__yaml_node *node, const char *path, const char *name) {
  const char *dot = name[0] ? "." : "";
  if (status == TARN_STATUS_OK || status == TARN_STATUS_MEMORY) return status;
  if (node->line > 0) return tarn__fail_prefix(status, "%s:%d: %s%s%s: ", node->origin, node->line, path, dot, name);
  return tarn__fail_prefix(status, "%s: %s%s%s: ", node->origin, path, dot, name);
}

enum { CANDIDATES = 512 };

typedef struct candidates {
  const char *names[CANDIDATES];
  size_t count;
} candidates;

// The key among options that another program calls by this name and that would be accepted; adds the others to the
// candidates.
static const char *add_options(candidates *all, tarn__suggest *s, const tarn__option *options, int count) {
  for (int i = 0; i < count; i++) {
    if (tarn__part_listed(options[i].also, s->key) && tarn__suggest_fits(s, options[i].name)) return options[i].name;
    if (all->count < CANDIDATES) all->names[all->count++] = options[i].name;
  }
  return NULL;
}

static const char *near_key(tarn__suggest *s, const tarn__section *section, const char *extra,
                            const tarn__part *beside) {
  candidates all = {.count = 0};
  const char *meant = add_options(&all, s, section->options, section->count);
  if (!meant && beside) meant = add_options(&all, s, beside->options, beside->option_count);
  if (meant) return meant;
  if (extra && all.count < CANDIDATES) all.names[all.count++] = extra;
  return tarn__suggest_key(s, all.names, all.count);
}

static tarn_status unknown_key(reader *r, const tarn__yaml_node *node, const char *path, const tarn__section *section,
                               const char *extra, const tarn__part *beside) {
  char shown[TARN__YAML_SHOWN], found[TARN__NEAR_PATH];
  tarn__suggest s = suggest_for(r, path, node->key);
  tarn__yaml_show(shown, node->key);
  if (r->trial) {
    r->trial->unknown = true;
    return tarn__yaml_fail(node, "unknown key \"%s\" in %s", shown, path);
  }
  const char *near = near_key(&s, section, extra, beside);
  const bool elsewhere = !near && tarn__key_elsewhere(found, node->key, path, tarn__suggest_moves, &s);
  if (!near && !elsewhere && tarn__key_called(found, node->key, path, tarn__suggest_moves, &s)) near = found;
  TARN_TRY(s.status);
  if (elsewhere)
    return tarn__yaml_fail(node, "unknown key \"%s\" in %s; there is one in %s", shown, path, tarn__key_map(found));
  if (near) return tarn__yaml_fail(node, "unknown key \"%s\" in %s; did you mean \"%s\"?", shown, path, near);
  return tarn__yaml_fail(node, "unknown key \"%s\" in %s", shown, path);
}

// Whether an entry of the table has the key.
static bool is_foreign(const tarn__option *option, const char *key) {
  char words[TARN__PART_LIST];
  return tarn__part_list(words, option->table, tarn__part_has_key, key)[0] != 0;
}

// Fails for a key that other entries of the table have, but not the current part.
static tarn_status refuse_foreign(const reader *r, const tarn__yaml_node *node, const char *path,
                                  const tarn__option *option, const tarn__part *part) {
  char words[TARN__PART_LIST];
  const char *noun = tarn__part_noun(option->table);
  if (!is_foreign(option, node->key)) return TARN_STATUS_OK;
  if (r->trial) r->trial->unknown = true;
  tarn__part_list(words, option->table, tarn__part_has_key, node->key);
  return tarn__yaml_fail(node, "%s.%s: %s%s %s has no %s; there is one with %s", path, node->key,
                         option->beside ? "a layer with " : "", noun, part->word, node->key, words);
}

static tarn_status read_integers(reader *r, const tarn__option *option, void *section, const tarn__yaml_node *node) {
  void *memory;
  int64_t count = 0;
  TARN_REQUIRE(node->type == TARN__YAML_LIST, USAGE, "expected a list such as [1, 2, 3]");
  for (const tarn__yaml_node *item = node->first; item; item = item->next) count++;
  TARN_REQUIRE(count <= TARN_CONFIG_SEEDS, USAGE, "more than %d numbers", (int)TARN_CONFIG_SEEDS);
  TARN_TRY(tarn__arena_alloc(r->arena, &memory, (size_t)count, sizeof(int64_t)));
  int64_t *values = memory;
  int64_t i = 0;
  for (const tarn__yaml_node *item = node->first; item; item = item->next, i++) {
    TARN_REQUIRE(item->type == TARN__YAML_SCALAR, USAGE, "expected a list of integers");
    TARN_TRY(tarn__option_integer(option, &values[i], item->text));
    for (int64_t j = 0; j < i; j++) TARN_REQUIRE(values[j] != values[i], USAGE, "%s is given twice", item->text);
  }
  struct {
    const int64_t *values;
    int64_t count;
  } field = {values, count};
  memcpy((char *)section + option->offset, &field, sizeof field);
  return TARN_STATUS_OK;
}

static tarn_status read_freeze(reader *r, const tarn__option *option, void *section, const tarn__yaml_node *node) {
  void *memory;
  int64_t count = 0;
  TARN_REQUIRE(node->type == TARN__YAML_MAP, USAGE, "expected layers and updates, such as { encoder.layer1: 1000 }");
  for (const tarn__yaml_node *item = node->first; item; item = item->next) count++;
  TARN_TRY(tarn__arena_alloc(r->arena, &memory, (size_t)count, sizeof(tarn_freeze)));
  tarn_freeze *entries = memory;
  int64_t i = 0;
  for (const tarn__yaml_node *item = node->first; item; item = item->next, i++) {
    char *name;
    char shown[TARN__YAML_SHOWN];
    tarn__yaml_show(shown, item->key);
    TARN_REQUIRE(item->type == TARN__YAML_SCALAR, USAGE, "%s: expected the number of an update", shown);
    tarn_status status = tarn__option_integer(option, &entries[i].at, item->text);
    if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "%s: ", shown);
    TARN_TRY(tarn__arena_strdup(r->arena, &name, item->key));
    entries[i].layers = name;
  }
  struct {
    const tarn_freeze *entries;
    int64_t count;
  } field = {entries, count};
  memcpy((char *)section + option->offset, &field, sizeof field);
  return TARN_STATUS_OK;
}

static tarn_status read_value(reader *r, const tarn__option *option, void *section, const tarn__yaml_node *node) {
  if (option->type == TARN__OPTION_INTEGERS) return read_integers(r, option, section, node);
  if (option->type == TARN__OPTION_FREEZE) return read_freeze(r, option, section, node);
  TARN_REQUIRE(node->type == TARN__YAML_SCALAR, USAGE, "expected one value, not a %s",
               node->type == TARN__YAML_LIST ? "list" : "map");
  return tarn__option_set(option, section, node->text, r->arena);
}

// Adds the word that was probably meant to the message about an unknown word.
static tarn_status add_word(reader *r, tarn_status status, const tarn__option *option, const char *map, const char *key,
                            const tarn__yaml_node *node) {
  char line[640];
  const bool part = option->type == TARN__OPTION_PART;
  const bool word = part ? tarn__part_is_word(option, node->text) : option->type == TARN__OPTION_WORD;
  if (status != TARN_STATUS_USAGE || r->trial || !word) return status;
  snprintf(line, sizeof line, "%s", tarn_error_message());
  tarn__suggest s = suggest_for(r, map, key);
  const char *near = tarn__suggest_word(&s, option, tarn__config_bare_word(option, node->text));
  TARN_TRY(s.status);
  if (!near) return tarn__fail(status, "%s", line);
  return tarn__fail(status, "%s; did you mean \"%s\"?", line, near);
}

static const tarn__option *find_option(const tarn__section *section, const char *name) {
  for (int i = 0; i < section->count; i++) {
    if (strcmp(section->options[i].name, name) == 0) return &section->options[i];
  }
  return NULL;
}

static tarn_status expect_map(const tarn__yaml_node *node, const char *path) {
  if (tarn__yaml_is_empty(node) || node->type == TARN__YAML_MAP) return TARN_STATUS_OK;
  return fail_in(tarn__fail(TARN_STATUS_USAGE, "expected keys and values"), node, path, "");
}

// Reads the entry named by the key `type` of a part's map, with the defaults of its keys; the default entry if it is
// absent.
static tarn_status read_type(reader *r, const tarn__option *option, tarn_part_use *use, const tarn__yaml_node *map,
                             const char *path) {
  const tarn__yaml_node *type = tarn__yaml_get(map, "type");
  tarn__option words = *option;
  words.number = NULL;
  if (tarn__yaml_is_empty(type)) return tarn__part_begin(use, use->part, &r->config->model, r->arena);
  tarn_status status = type->type == TARN__YAML_SCALAR
                           ? tarn__part_set(&words, use, type->text, &r->config->model, r->arena)
                           : tarn__fail(TARN_STATUS_USAGE, "expected a word");
  if (type->type == TARN__YAML_SCALAR) status = add_word(r, status, &words, path, "type", type);
  return fail_in(status, type, path, "type");
}

static tarn_status read_option(reader *r, const tarn__option *option, void *fields, const tarn__yaml_node *node,
                               const char *path);

// Reads a part, initialised to its default, from a word or number, or a map.
static tarn_status read_part(reader *r, const tarn__option *option, tarn_part_use *use, const tarn__yaml_node *node,
                             const char *above) {
  char path[PATH_TEXT + TARN_CONFIG_KIND_NAME];
  if (node->type == TARN__YAML_SCALAR) {
    const tarn_status status = tarn__part_set(option, use, node->text, &r->config->model, r->arena);
    return fail_in(add_word(r, status, option, above, option->name, node), node, above, option->name);
  }
  if (node->type == TARN__YAML_LIST || option->beside)
    return fail_in(
        tarn__fail(TARN_STATUS_USAGE, "expected one value, not a %s", node->type == TARN__YAML_LIST ? "list" : "map"),
        node, above, option->name);
  snprintf(path, sizeof path, "%s.%s", above, option->name);
  TARN_TRY(read_type(r, option, use, node, path));
  const tarn__section keys = {path, use->part->options, use->part->option_count, 0};
  for (const tarn__yaml_node *entry = node->first; entry; entry = entry->next) {
    const tarn__option *key = find_option(&keys, entry->key);
    if (strcmp(entry->key, "type") == 0 || (key && tarn__yaml_is_empty(entry))) continue;
    if (!key) TARN_TRY(refuse_foreign(r, entry, path, option, use->part));
    if (!key) return unknown_key(r, entry, path, &keys, "type", NULL);
    TARN_TRY(read_option(r, key, use->keys, entry, path));
  }
  return TARN_STATUS_OK;
}

static tarn_status read_option(reader *r, const tarn__option *option, void *fields, const tarn__yaml_node *node,
                               const char *path) {
  if (option->type == TARN__OPTION_PART)
    return read_part(r, option, (tarn_part_use *)(void *)((char *)fields + option->offset), node, path);
  const tarn_status status = read_value(r, option, fields, node);
  return fail_in(node->type == TARN__YAML_SCALAR ? add_word(r, status, option, path, option->name, node) : status, node,
                 path, option->name);
}

// The part whose keys are next to a key of this section: its option and its use; read before the others.
typedef struct beside {
  const tarn__option *option;
  tarn_part_use *use;
} beside;

static tarn_status set_defaults(reader *r, const tarn__section *section, void *fields, const tarn__yaml_node *node,
                                const char *path, beside *part) {
  *part = (beside){NULL, NULL};
  for (int i = 0; i < section->count; i++) {
    const tarn__option *option = &section->options[i];
    tarn__option_unset(option, fields);
    if (option->type == TARN__OPTION_PART) {
      tarn_part_use *use = (tarn_part_use *)(void *)((char *)fields + option->offset);
      const tarn__yaml_node *given = option->beside ? tarn__yaml_get(node, option->name) : NULL;
      TARN_TRY(tarn__part_set_default(option, use, &r->config->model, r->arena));
      if (!tarn__yaml_is_empty(given)) TARN_TRY(read_part(r, option, use, given, path));
      if (option->beside) *part = (beside){option, use};
    } else if (option->value) {
      TARN_TRY(tarn__option_set(option, fields, option->value, r->arena));
    }
  }
  return TARN_STATUS_OK;
}

// Sets a section's defaults, then reads its map if there is one. PATTERN options and the key `extra` are accepted here
// but read by the caller.
static tarn_status read_section(reader *r, tarn__section_id id, const char *path, void *fields,
                                const tarn__yaml_node *node, const char *extra) {
  const tarn__section *section = tarn__config_section(id);
  beside part;
  TARN_TRY(expect_map(node, path));
  TARN_TRY(set_defaults(r, section, fields, node, path, &part));
  for (const tarn__yaml_node *entry = node ? node->first : NULL; entry; entry = entry->next) {
    const tarn__option *option = find_option(section, entry->key);
    void *structure = fields;
    if (!option && extra && strcmp(extra, entry->key) == 0) continue;
    if (!option && part.option) {
      option = tarn__part_option(part.use->part, entry->key);
      structure = part.use->keys;
      if (!option && !tarn__yaml_is_empty(entry)) TARN_TRY(refuse_foreign(r, entry, path, part.option, part.use->part));
      if (!option && is_foreign(part.option, entry->key)) continue;
    }
    if (!option) return unknown_key(r, entry, path, section, extra, part.option ? part.use->part : NULL);
    if (option->type == TARN__OPTION_PATTERN || option->beside || tarn__yaml_is_empty(entry)) continue;
    TARN_TRY(read_option(r, option, structure, entry, path));
  }
  return TARN_STATUS_OK;
}

static bool is_kind_name(const char *name) {
  size_t letters = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_");
  return letters > 0 && letters < TARN_CONFIG_KIND_NAME && name[letters] == 0;
}

static tarn_status read_kind(reader *r, const tarn__yaml_node *node) {
  char shown[TARN__YAML_SHOWN];
  char path[PATH_TEXT];
  if (!is_kind_name(node->key)) {
    return tarn__yaml_fail(node,
                           "kinds: \"%s\" is not a name of a kind: at most %d letters and underscores (digits name "
                           "sets, in patterns)",
                           tarn__yaml_show(shown, node->key), TARN_CONFIG_KIND_NAME - 1);
  }
  if (strcmp(node->key, "layer") == 0) {
    return tarn__yaml_fail(node, "kinds: the name \"layer\" is taken: bare uses are called layer1, layer2, ...");
  }
  if (strcmp(node->key, "null") == 0) {
    return tarn__yaml_fail(node,
                           "kinds: the name \"null\" is taken: in YAML it stands for nothing, so \"layers: null\" "
                           "has no layers");
  }
  if (r->config->kind_count == TARN_CONFIG_KINDS) {
    return tarn__yaml_fail(node, "more than %d kinds", (int)TARN_CONFIG_KINDS);
  }
  tarn_kind *kind = &r->config->kinds[r->config->kind_count++];
  snprintf(kind->name, sizeof kind->name, "%s", node->key);
  snprintf(path, sizeof path, "kinds.%s", node->key);
  TARN_TRY(read_section(r, TARN__SECTION_KINDS, path, kind, node, "backskip"));
  snprintf(path, sizeof path, "kinds.%s.backskip", node->key);
  return read_section(r, TARN__SECTION_KINDS_BACKSKIP, path, &kind->backskip, tarn__yaml_get(node, "backskip"), NULL);
}

static tarn_status read_kinds(reader *r) {
  const tarn__yaml_node *kinds = tarn__yaml_get(r->root, "kinds");
  void *memory;
  TARN_TRY(expect_map(kinds, "kinds"));
  TARN_TRY(tarn__arena_alloc(r->arena, &memory, TARN_CONFIG_KINDS, sizeof *r->config->kinds));
  r->config->kinds = memory;
  for (const tarn__yaml_node *entry = kinds ? kinds->first : NULL; entry; entry = entry->next) {
    TARN_TRY(read_kind(r, entry));
  }
  return TARN_STATUS_OK;
}

// Reads `place` and converts it to a pattern.
static tarn_status read_place(reader *r, tarn__section_id id, char pattern[TARN__PATTERN_TEXT], const char **reservoir,
                              const tarn__yaml_node *node) {
  const char *path = tarn__config_section(id)->path;
  tarn__placement place = {0};
  TARN_TRY(read_section(r, id, path, &place, node, NULL));
  bool whole =
      !tarn__yaml_is_empty(tarn__yaml_get(node, "reservoirs")) && !tarn__yaml_is_empty(tarn__yaml_get(node, "of"));
  if (!whole) {
    return fail_in(tarn__fail(TARN_STATUS_USAGE, "both reservoirs and of are needed, as in { reservoirs: 3, of: 8 }"),
                   node, path, "");
  }
  *reservoir = place.reservoirs > 0 ? place.reservoir : NULL;
  return fail_in(tarn__place_pattern(pattern, &place), node, path, "");
}

// Removes the layers of the pattern that layers_to_keep does not list.
static tarn_status keep_layers(reader *r, tarn_stack *stack) {
  void *memory;
  stack->layers = stack->pattern;
  stack->count = stack->depth;
  if (stack->keep_count == 0) return TARN_STATUS_OK;
  bool kept[TARN_CONFIG_LAYERS] = {false};
  for (int64_t i = 0; i < stack->keep_count; i++) {
    int64_t depth = stack->layers_to_keep[i];
    TARN_REQUIRE(depth <= stack->depth, USAGE, "layers_to_keep names layer %lld of a pattern of %d layers",
                 (long long)depth, (int)stack->depth);
    kept[depth - 1] = true;
  }
  TARN_TRY(tarn__arena_alloc(r->arena, &memory, (size_t)stack->keep_count, sizeof *stack->layers));
  stack->layers = memory;
  stack->count = 0;
  for (int32_t i = 0; i < stack->depth; i++) {
    if (!kept[i]) continue;
    tarn_layer *layer = &stack->layers[stack->count];
    *layer = stack->pattern[i];
    layer->first = 0;
    while (layer->first < stack->count && strcmp(stack->layers[layer->first].set, layer->set) != 0) layer->first++;
    stack->count++;
  }
  return TARN_STATUS_OK;
}

// Kinds in a decoder must not see later tokens.
static bool is_causal(const tarn_kind *kind) { return tarn__mixer_of(kind)->causal; }

static tarn_status read_layers(reader *r, tarn_stack *stack, const char *pattern) {
  bool (*fits)(const tarn_kind *kind) = stack == &r->config->decoder ? is_causal : NULL;
  void *memory;
  TARN_TRY(tarn__arena_alloc(r->arena, &memory, TARN_CONFIG_LAYERS, sizeof *stack->pattern));
  stack->pattern = memory;
  TARN_TRY(tarn__pattern_parse(stack->pattern, &stack->depth, pattern, r->config->kinds, r->config->kind_count, fits));
  return keep_layers(r, stack);
}

// Reads the encoder or the decoder; `place` is the id of the section of its `place` key.
static tarn_status read_stack(reader *r, tarn__section_id id, tarn__section_id place_id, tarn_stack *stack) {
  const char *path = tarn__config_section(id)->path;
  const tarn__yaml_node *node = tarn__yaml_get(r->root, path);
  if (tarn__yaml_is_empty(node)) return TARN_STATUS_OK;  // the task determines which stacks are required
  TARN_TRY(read_section(r, id, path, stack, node, "place"));
  const tarn__yaml_node *layers = tarn__yaml_get(node, "layers");
  const tarn__yaml_node *place = tarn__yaml_get(node, "place");
  bool by_place = !tarn__yaml_is_empty(place);
  if (tarn__yaml_is_empty(layers) == !by_place) {
    return tarn__yaml_fail(node, "%s: give either layers or place", path);
  }
  char pattern[TARN__PATTERN_TEXT];
  if (by_place) {
    TARN_TRY(read_place(r, place_id, pattern, &stack->reservoir, place));
    return fail_in(read_layers(r, stack, pattern), place, path, "place");
  }
  if (layers->type != TARN__YAML_SCALAR) {
    return fail_in(tarn__fail(TARN_STATUS_USAGE, "expected a pattern such as (R L)*4"), layers, path, "layers");
  }
  return fail_in(read_layers(r, stack, layers->text), layers, path, "layers");
}

static tarn_status unknown_section(reader *r, const tarn__yaml_node *entry, const char **names, size_t count) {
  char shown[TARN__YAML_SHOWN], found[TARN__NEAR_PATH];
  tarn__suggest s = suggest_for(r, "", entry->key);
  tarn__yaml_show(shown, entry->key);
  if (r->trial) {
    r->trial->unknown = true;
    return tarn__yaml_fail(entry, "unknown section \"%s\"", shown);
  }
  const bool elsewhere = tarn__key_elsewhere(found, entry->key, "", tarn__suggest_moves, &s);
  const char *near = elsewhere ? NULL : tarn__suggest_key(&s, names, count);
  if (!elsewhere && !near && tarn__key_called(found, entry->key, "", tarn__suggest_moves, &s)) near = found;
  TARN_TRY(s.status);
  if (elsewhere)
    return tarn__yaml_fail(entry, "unknown section \"%s\"; it is a key of %s", shown, tarn__key_map(found));
  if (near) return tarn__yaml_fail(entry, "unknown section \"%s\"; did you mean \"%s\"?", shown, near);
  return tarn__yaml_fail(entry, "unknown section \"%s\"", shown);
}

static tarn_status check_top(reader *r) {
  const char *names[TARN__SECTION_COUNT];
  size_t count = 0;
  if (!tarn__yaml_is_empty(r->root) && r->root->type != TARN__YAML_MAP) {
    return tarn__yaml_fail(r->root, "expected keys such as model, encoder, decoder and kinds");
  }
  for (int id = 0; id < TARN__SECTION_COUNT; id++) {
    const char *path = tarn__config_section((tarn__section_id)id)->path;
    if (!strchr(path, '.')) names[count++] = path;
  }
  for (const tarn__yaml_node *entry = r->root->first; entry; entry = entry->next) {
    size_t i = 0;
    while (i < count && strcmp(names[i], entry->key) != 0) i++;
    if (i == count) return unknown_section(r, entry, names, count);
  }
  return TARN_STATUS_OK;
}

// Inserts a value into the tree; `layers` and `place` of a stack replace each other.
static tarn_status put_value(reader *r, const char *path, tarn__yaml_node *value) {
  static const char *const stacks[] = {"encoder", "decoder"};
  for (int i = 0; i < 2; i++) {
    size_t n = strlen(stacks[i]);
    if (strncmp(path, stacks[i], n) != 0 || path[n] != '.') continue;
    tarn__yaml_node *stack = tarn__yaml_get(r->root, stacks[i]);
    if (strcmp(path + n + 1, "layers") == 0) tarn__yaml_remove(stack, "place");
    if (strncmp(path + n + 1, "place", 5) == 0) tarn__yaml_remove(stack, "layers");
  }
  TARN_TRY(tarn__parts_open(r->tree, r->root, path));
  return tarn__yaml_set(r->tree, r->root, path, value);
}

// Applies "key=value" to the tree.
static tarn_status apply_override(reader *r, const char *text) {
  const char *equals = strchr(text, '=');
  char origin[PATH_TEXT];
  char *path;
  void *memory;
  tarn__yaml_node *value;
  snprintf(origin, sizeof origin, "--set %.96s%s", text, strlen(text) > 96 ? "..." : "");
  TARN_REQUIRE(equals, USAGE, "%s: expected key=value, such as train.lr=0.001", origin);
  TARN_TRY(tarn__arena_alloc(r->arena, &memory, (size_t)(equals - text) + 1, 1));
  path = memory;
  memcpy(path, text, (size_t)(equals - text));
  TARN_TRY(tarn__yaml_parse(r->tree, &value, origin, false, equals + 1, strlen(equals + 1)));
  return put_value(r, path, value);
}

// Applies a change of either form.
static tarn_status apply_edit(reader *r, const tarn__config_edit *edit) {
  tarn__yaml_node *value;
  if (edit->text) return apply_override(r, edit->text);
  TARN_TRY(tarn__yaml_copy(r->tree, &value, edit->value));
  return put_value(r, edit->path, value);
}

// Words that are kinds of log lines, or could be mistaken for them.
static bool is_set_name(const char *name) {
  static const char *const taken[] = {"train",    "valid",  "average",      "freeze",
                                      "backskip", "scored", "log_accepted", "dynamics"};
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
    if (strcmp(name, taken[i]) == 0) return false;
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const size_t length = strlen(name);
  return length < TARN_CONFIG_KIND_NAME && strspn(name, letters) > 0 &&
         length == strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
}

// Whether a set may have BLEU depends on the task; without it keys about translations have no effect.
static tarn_status check_set(const tarn_config *config, const tarn_config_scored_set *set, const tarn__yaml_node *root,
                             const tarn__yaml_node *node, const char *path) {
  const tarn__task *task = tarn__config_task(config);
  if (!set->data) return tarn__yaml_fail(node, "%s.data is missing", path);
  const bool translates = tarn__task_has(task, TARN__METRIC_BLEU);
  if (translates && set->bleu) return tarn__parts_check_bleu(config, root, path);
  const char *key = set->bleu ? "bleu" : set->reference ? "reference" : set->max_sentences > 0 ? "max_sentences" : NULL;
  const tarn__yaml_node *at = key ? tarn__yaml_get(node, key) : NULL;
  if (!at) return TARN_STATUS_OK;
  if (!translates) return tarn__yaml_fail(at, "%s.%s: %s does not translate", path, key, task->model);
  return tarn__yaml_fail(at, "%s.%s is for translations, and %s.bleu is no", path, key, path);
}

static tarn_status read_set(reader *r, tarn_config_scored_set *set, const tarn__yaml_node *node) {
  char shown[TARN__YAML_SHOWN];
  char path[PATH_TEXT];
  if (!is_set_name(node->key))
    return tarn__yaml_fail(node,
                           "sets: \"%s\" is not a name of a set: at most %d letters, digits and underscores, from a "
                           "letter on, and no word that lines of the log begin with",
                           tarn__yaml_show(shown, node->key), TARN_CONFIG_KIND_NAME - 1);
  snprintf(set->name, sizeof set->name, "%s", node->key);
  snprintf(path, sizeof path, "sets.%s", node->key);
  TARN_TRY(read_section(r, TARN__SECTION_SETS, path, set, node, NULL));
  if (tarn__yaml_is_empty(tarn__yaml_get(node, "every"))) set->every = r->config->valid.every;
  if (tarn__yaml_is_empty(tarn__yaml_get(node, "bleu"))) set->bleu = r->config->valid.bleu;
  return check_set(r->config, set, r->root, node, path);
}

// Defaults of a set depend on valid and on the task, which are known by now.
static tarn_status read_sets(reader *r) {
  const tarn__yaml_node *sets = tarn__yaml_get(r->root, "sets");
  tarn_config *config = r->config;
  void *memory;
  TARN_TRY(expect_map(sets, "sets"));
  TARN_TRY(tarn__arena_alloc(r->arena, &memory, TARN_CONFIG_SETS, sizeof *config->sets));
  config->sets = memory;
  for (const tarn__yaml_node *entry = sets ? sets->first : NULL; entry; entry = entry->next) {
    if (tarn__yaml_is_empty(entry)) continue;
    if (config->set_count == TARN_CONFIG_SETS)
      return tarn__yaml_fail(entry, "more than %d sets", (int)TARN_CONFIG_SETS);
    TARN_TRY(read_set(r, &config->sets[config->set_count++], entry));
  }
  return TARN_STATUS_OK;
}

static tarn_status read_tree(reader *r) {
  tarn_config *config = r->config;
  static const tarn__section_id plain[] = {TARN__SECTION_MODEL,   TARN__SECTION_DATA,      TARN__SECTION_MASKING,
                                           TARN__SECTION_HEAD,    TARN__SECTION_IMAGE,     TARN__SECTION_TRAIN,
                                           TARN__SECTION_VALID,   TARN__SECTION_TRANSLATE, TARN__SECTION_LEVENSHTEIN,
                                           TARN__SECTION_DYNAMICS};
  TARN_TRY(check_top(r));
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
    const tarn__section *section = tarn__config_section(plain[i]);
    TARN_TRY(read_section(r, plain[i], section->path, (char *)config + section->offset,
                          tarn__yaml_get(r->root, section->path), NULL));
  }
  TARN_TRY(read_kinds(r));
  TARN_TRY(read_stack(r, TARN__SECTION_ENCODER, TARN__SECTION_ENCODER_PLACE, &config->encoder));
  TARN_TRY(read_stack(r, TARN__SECTION_DECODER, TARN__SECTION_DECODER_PLACE, &config->decoder));
  if (r->trial) r->trial->resolving = true;
  TARN_TRY(tarn__config_resolve_architecture(config, r->root));
  TARN_TRY(tarn__config_resolve(config, r->root));
  return read_sets(r);
}

static tarn_status read_all(reader *r, const char *name, const char *text, size_t size, const tarn__config_edit *edits,
                            size_t count) {
  char *copy;
  TARN_REQUIRE(size <= LARGEST_FILE, USAGE, TOO_LARGE, name);
  TARN_TRY(tarn__arena_strdup(r->arena, &copy, name));
  r->config->name = copy;
  TARN_TRY(tarn__yaml_parse(r->tree, &r->root, name, true, text, size));
  TARN_TRY(check_top(r));
  for (size_t i = 0; i < count; i++) TARN_TRY(apply_edit(r, &edits[i]));
  return read_tree(r);
}

static tarn_status open_config(tarn_config **config) {
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof **config));
  *config = memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof *(*config)->memory));
  (*config)->memory = memory;
  return TARN_STATUS_OK;
}

static void try_reading(tarn__trial *trial, void *user) {
  const reader *asks = user;
  reader r = {.tree = asks->tree, .root = asks->root, .trial = trial};
  trial->status = open_config(&r.config);
  if (trial->status == TARN_STATUS_OK) {
    r.arena = &r.config->memory->arena;
    r.config->name = asks->config->name;
    trial->status = read_tree(&r);
  }
  snprintf(trial->message, sizeof trial->message, "%s", trial->status == TARN_STATUS_OK ? "" : tarn_error_message());
  tarn_config_close(&r.config);
}

tarn_status tarn__config_parse_edited(tarn_config **out, const char *name, const char *text, size_t size,
                                      const tarn__config_edit *edits, size_t count) {
  reader r = {0};
  *out = NULL;
  tarn_status status = open_config(&r.config);
  if (status == TARN_STATUS_OK) {
    r.arena = &r.config->memory->arena;
    r.tree = &r.config->memory->tree;
    status = read_all(&r, name, text, size, edits, count);
    r.config->memory->root = r.root;
  }
  if (status != TARN_STATUS_OK) tarn_config_close(&r.config);
  *out = r.config;
  return status;
}

tarn_status tarn_config_parse(tarn_config **out, const char *name, const char *text, size_t size,
                              const char *const *overrides, size_t count) {
  void *memory;
  *out = NULL;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, count, sizeof(tarn__config_edit)));
  tarn__config_edit *edits = memory;
  for (size_t i = 0; i < count; i++) edits[i].text = overrides[i];
  tarn_status status = tarn__config_parse_edited(out, name, text, size, edits, count);
  tarn__free(edits);
  return status;
}

static tarn_status read_file(tarn_config **out, const char *path, const char *const *overrides, size_t count) {
  struct stat info;
  char *text;
  size_t size;
  bool known = stat(path, &info) == 0;  // otherwise reading reports the reason
  TARN_REQUIRE(!known || !S_ISCHR(info.st_mode), USAGE, "%s: a device, not a file", path);
  TARN_REQUIRE(!known || info.st_size <= LARGEST_FILE, USAGE, TOO_LARGE, path);
  TARN_TRY(tarn__file_read(path, &text, &size));
  tarn_status status = tarn_config_parse(out, path, text, size, overrides, count);
  tarn__free(text);
  return status;
}

tarn_status tarn_config_read(tarn_config **out, const char *path, const char *const *overrides, size_t count) {
  char file[PATH_MAX];
  *out = NULL;
  TARN_REQUIRE(path, USAGE, "a description is needed: a file, or a run directory");
  // A run directory stands for the configuration in it.
  TARN_TRY(tarn__path_join(file, path, TARN__RUN_CONFIG));
  const bool run = tarn__file_kind_at(path) == TARN__FILE_KIND_RUN;
  tarn_status status = read_file(out, run ? file : path, overrides, count);
  // With overrides the error may be in these.
  return status == TARN_STATUS_OK ? status : tarn__file_kind_explain(status, path, TARN__FILE_KIND_CONFIG);
}

void tarn_config_close(tarn_config **config) {
  if (!*config) return;
  if ((*config)->memory) {
    tarn__yaml_close(&(*config)->memory->tree);
    tarn__arena_close(&(*config)->memory->arena);
  }
  tarn__free((*config)->memory);
  tarn__free(*config);
  *config = NULL;
}
