// Parts as values of keys.
#include "config/config_part.h"

#include <stdio.h>
#include <string.h>

#include "config/config_word.h"

const tarn__option *tarn__part_option(const tarn__part *part, const char *name) {
  for (int i = 0; i < part->option_count; i++)
    if (strcmp(part->options[i].name, name) == 0) return &part->options[i];
  return NULL;
}

tarn_status tarn__part_begin(tarn_part_use *use, const tarn__part *part, const tarn_config_model *model,
                             tarn__arena *arena) {
  *use = (tarn_part_use){.part = part};
  if (part->size == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__arena_alloc(arena, &use->keys, 1, part->size));
  for (int i = 0; i < part->option_count; i++) {
    const tarn__option *option = &part->options[i];
    tarn__option_unset(option, use->keys);
    if (option->type == TARN__OPTION_PART) {
      tarn_part_use *below = (tarn_part_use *)(void *)((char *)use->keys + option->offset);
      TARN_TRY(tarn__part_set_default(option, below, model, arena));
    } else if (option->value) {
      TARN_TRY(tarn__option_set(option, use->keys, option->value, arena));
    }
  }
  return TARN_STATUS_OK;
}

static tarn_status unknown_word(const tarn__option *option, const char *text) {
  tarn__known_words known = {0};
  const tarn__part *part;
  for (int i = 0; (part = tarn__part_at(option->table, i)) != NULL; i++) tarn__known_add(&known, part->word);
  return tarn__known_fail(&known, option->number ? "neither a number nor" : "not", text);
}

static bool is_number_text(const tarn__option *option, const char *text) {
  return option->number && (text[0] == 0 || strchr("+-.0123456789", text[0]));
}

bool tarn__part_is_word(const tarn__option *option, const char *text) {
  return !is_number_text(option, text) && !tarn__part_find(option->table, text);
}

tarn_status tarn__part_set(const tarn__option *option, tarn_part_use *use, const char *text,
                           const tarn_config_model *model, tarn__arena *arena) {
  const bool number = is_number_text(option, text);
  const tarn__part *part = number ? tarn__part_at(option->table, 0) : tarn__part_find(option->table, text);
  if (!part) return unknown_word(option, text);
  TARN_TRY(tarn__part_begin(use, part, model, arena));
  if (!number) return TARN_STATUS_OK;
  return tarn__option_set(tarn__part_option(part, option->number), use->keys, text, arena);
}

// The option named by the first word of the path, which is removed from it; NULL if there is none, or nothing follows.
static const tarn__option *next_option(const char **path, const tarn__option *options, int count) {
  const size_t n = strcspn(*path, ".");
  for (int i = 0; (*path)[n] == '.' && i < count; i++) {
    if (strlen(options[i].name) != n || strncmp(options[i].name, *path, n) != 0) continue;
    *path += n + 1;
    return &options[i];
  }
  return NULL;
}

tarn_status tarn__parts_open(tarn__yaml *tree, tarn__yaml_node *root, const char *path) {
  const tarn__section *section = tarn__config_section(TARN__SECTION_MODEL);
  const char *kinds = tarn__config_section(TARN__SECTION_KINDS)->path;
  const size_t n = strlen(kinds);
  char name[TARN_CONFIG_KIND_NAME];
  tarn__yaml_node *map = tarn__yaml_get(root, section->path);
  if (strncmp(path, kinds, n) == 0 && path[n] == '.') {
    const size_t length = strcspn(path + n + 1, ".");
    if (length >= sizeof name) return TARN_STATUS_OK;
    snprintf(name, sizeof name, "%.*s", (int)length, path + n + 1);
    section = tarn__config_section(TARN__SECTION_KINDS);
    map = tarn__yaml_get(tarn__yaml_get(root, kinds), name);
    path += n + 1 + length;
  } else {
    if (strncmp(path, section->path, strlen(section->path)) != 0) return TARN_STATUS_OK;
    path += strlen(section->path);
  }
  if (*path++ != '.') return TARN_STATUS_OK;
  const tarn__option *options = section->options, *option;
  int count = section->count;
  while ((option = next_option(&path, options, count)) != NULL && option->type == TARN__OPTION_PART &&
         !option->beside) {
    map = tarn__yaml_get(map, option->name);
    if (tarn__yaml_is_empty(map)) return TARN_STATUS_OK;
    if (map->type == TARN__YAML_SCALAR)
      TARN_TRY(tarn__yaml_wrap(tree, map, is_number_text(option, map->text) ? option->number : "type"));
    const tarn__yaml_node *type = tarn__yaml_get(map, "type");
    const tarn__part *part = type && type->text ? tarn__part_find(option->table, type->text) : NULL;
    if (!part) part = tarn__part_at(option->table, 0);
    options = part->options;
    count = part->option_count;
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__part_set_default(const tarn__option *option, tarn_part_use *use, const tarn_config_model *model,
                                   tarn__arena *arena) {
  if (!option->inherits && option->value) return tarn__part_set(option, use, option->value, model, arena);
  if (!option->inherits) return tarn__part_begin(use, tarn__part_at(option->table, 0), model, arena);
  memcpy(use, (const char *)model + option->inherits, sizeof *use);
  return TARN_STATUS_OK;
}

bool tarn__part_same(const tarn_part_use *use, const tarn_part_use *other) {
  if (use->part != other->part) return false;
  if (use->keys == other->keys) return true;
  for (int i = 0; i < use->part->option_count; i++) {
    const tarn__option *option = &use->part->options[i];
    if (!tarn__option_same(option, (const char *)use->keys + option->offset,
                           (const char *)other->keys + option->offset))
      return false;
  }
  return true;
}

bool tarn__option_same(const tarn__option *option, const void *field, const void *other) {
  switch (option->type) {
    case TARN__OPTION_BOOL:
      return *(const bool *)field == *(const bool *)other;
    case TARN__OPTION_REAL:
      return *(const double *)field == *(const double *)other;
    case TARN__OPTION_WORD:
      return memcmp(field, other, sizeof(int)) == 0;
    case TARN__OPTION_PART:
      return tarn__part_same(field, other);
    default:
      return *(const int64_t *)field == *(const int64_t *)other;
  }
}

// Whether all keys of a part but `except` (or NULL) have their defaults.
static bool has_defaults(const tarn_part_use *use, const char *except, const tarn_config_model *model) {
  for (int i = 0; use->part && i < use->part->option_count; i++) {
    const tarn__option *option = &use->part->options[i];
    if (except && strcmp(option->name, except) == 0) continue;
    if (!tarn__option_is_default(option, (const char *)use->keys + option->offset, model)) return false;
  }
  return true;
}

bool tarn__part_is_plain(const tarn__option *option, const tarn_part_use *use, const tarn_config_model *model) {
  if (!use->part) return true;
  if (option->number && use->part != tarn__part_at(option->table, 0)) return false;
  return has_defaults(use, option->number, model);
}

// Whether a number, word or boolean equals the one that `value` names.
static bool is_value(const tarn__option *option, const void *field, const char *value) {
  union {
    int64_t integer;
    double real;
    bool truth;
    int word;
  } plain = {0};
  tarn__option at_zero = *option;
  at_zero.offset = 0;
  return tarn__option_set(&at_zero, &plain, value, NULL) == TARN_STATUS_OK && tarn__option_same(option, field, &plain);
}

// Whether a part is the default: `value`, a word or a number, else the first entry. Nothing is allocated, so that a
// lack of memory cannot change the output.
static bool is_default_part(const tarn__option *option, const tarn_part_use *use, const tarn_config_model *model) {
  const tarn__part *first = tarn__part_at(option->table, 0);
  if (option->value && is_number_text(option, option->value)) {
    const tarn__option *key = tarn__part_option(first, option->number);
    return use->part == first && is_value(key, (const char *)use->keys + key->offset, option->value) &&
           has_defaults(use, option->number, model);
  }
  const bool same = option->value ? strcmp(use->part->word, option->value) == 0 : use->part == first;
  return same && has_defaults(use, NULL, model);
}

bool tarn__option_is_default(const tarn__option *option, const void *field, const tarn_config_model *model) {
  if (option->type == TARN__OPTION_PART && option->inherits)
    return tarn__part_same(field, (const tarn_part_use *)(const void *)((const char *)model + option->inherits));
  if (option->type == TARN__OPTION_PART) return is_default_part(option, field, model);
  if (option->type == TARN__OPTION_INTEGERS) {
    int64_t count;
    memcpy(&count, (const char *)field + sizeof(const int64_t *), sizeof count);
    return count == 0;
  }
  // Without `value` it is derived, and a value derived later carries no information.
  return !option->value || is_value(option, field, option->value);
}

const char *tarn__part_word(const tarn_part_use *use) { return use->part ? use->part->word : ""; }

static double number_of(const tarn__option *option, const void *structure) {
  const void *field = (const char *)structure + option->offset;
  int word;
  switch (option->type) {
    case TARN__OPTION_BOOL:
      return *(const bool *)field;
    case TARN__OPTION_INTEGER:
      return (double)*(const int64_t *)field;
    case TARN__OPTION_WORD:
      memcpy(&word, field, sizeof word);
      return word;
    default:
      return *(const double *)field;
  }
}

static bool is_number(const tarn__option *option) {
  return option->type == TARN__OPTION_BOOL || option->type == TARN__OPTION_INTEGER || option->type == TARN__OPTION_REAL;
}

// The part of a kind that the beginning of `key` names, and the rest of the key.
static const tarn_part_use *part_of(const tarn_kind *kind, const char **key) {
  const tarn__section *section = tarn__config_section(TARN__SECTION_KINDS);
  for (int i = 0; i < section->count; i++) {
    const tarn__option *option = &section->options[i];
    const size_t n = strlen(option->name);
    if (option->type != TARN__OPTION_PART || strncmp(*key, option->name, n) != 0 || (*key)[n] != '.') continue;
    *key += n + 1;
    return (const tarn_part_use *)(const void *)((const char *)kind + option->offset);
  }
  return &kind->mixer;
}

bool tarn__part_number(const tarn_part_use *use, const char *key, double *value) {
  const tarn__option *option = use->part ? tarn__part_option(use->part, key) : NULL;
  *value = 0;
  if (!option || !is_number(option)) return false;
  *value = number_of(option, use->keys);
  return true;
}

bool tarn__kind_number(const tarn_kind *kind, const char *key, double *value) {
  const tarn__section *section = tarn__config_section(TARN__SECTION_KINDS);
  *value = 0;
  for (int i = 0; i < section->count; i++) {
    const tarn__option *option = &section->options[i];
    if (strcmp(option->name, key) != 0 || !is_number(option)) continue;
    *value = number_of(option, kind);
    return true;
  }
  const tarn_part_use *use = part_of(kind, &key);
  return tarn__part_number(use, key, value);
}

const tarn_part_use *tarn__kind_part(const tarn_kind *kind, const char *key) {
  const tarn_part_use *use = part_of(kind, &key);
  const tarn__option *option = use->part ? tarn__part_option(use->part, key) : NULL;
  if (!option || option->type != TARN__OPTION_PART) return NULL;
  return (const tarn_part_use *)(const void *)((const char *)use->keys + option->offset);
}

const char *tarn__kind_channel_word(const tarn_kind *kind) {
  return kind->channel.part ? kind->channel.part->word : "nothing";
}

// Writes PREFIX and the key, below which the keys of parts are, into `key`.
static bool find_random(char key[TARN__KIND_KEY], const char *prefix, const tarn__option *options, int count,
                        const void *structure, double *p) {
  char name[TARN__KIND_KEY];
  for (int i = 0; i < count; i++) {
    const tarn__option *option = &options[i];
    if (option->random) *p = number_of(option, structure);
    if (option->random && *p > 0) {
      snprintf(key, TARN__KIND_KEY, "%s%s", prefix, option->name);
      return true;
    }
    if (option->type != TARN__OPTION_PART) continue;
    const tarn_part_use *use = (const tarn_part_use *)(const void *)((const char *)structure + option->offset);
    snprintf(name, sizeof name, "%.40s%.20s.", prefix, option->name);
    if (use->part &&
        find_random(key, option->beside ? prefix : name, use->part->options, use->part->option_count, use->keys, p))
      return true;
  }
  return false;
}

bool tarn__kind_random(char key[TARN__KIND_KEY], const tarn_kind *kind, double *p) {
  const tarn__section *section = tarn__config_section(TARN__SECTION_KINDS);
  return find_random(key, "", section->options, section->count, kind, p);
}

bool tarn__positions_random(char key[TARN__KIND_KEY], const tarn_config *config, double *p) {
  const tarn_part_use *use = &config->model.positions;
  return find_random(key, "", use->part->options, use->part->option_count, use->keys, p);
}

// The option of kinds that a plain number sets to a width.
static const tarn__option *width_option(void) {
  const tarn__section *section = tarn__config_section(TARN__SECTION_KINDS);
  int i = 0;
  while (i < section->count && !section->options[i].number) i++;
  return i < section->count ? &section->options[i] : NULL;
}

const char *tarn__kind_width_name(void) { return width_option()->number; }

static const tarn_part_use *use_of(const tarn__option *option, const tarn_kind *kind) {
  return (const tarn_part_use *)(const void *)((const char *)kind + option->offset);
}

int64_t *tarn__kind_width(const tarn_kind *kind) {
  const tarn__option *option = width_option();
  const tarn_part_use *use = option ? use_of(option, kind) : NULL;
  const tarn__option *width = use && use->part ? tarn__part_option(use->part, option->number) : NULL;
  return width ? (int64_t *)(void *)((char *)use->keys + width->offset) : NULL;
}

void tarn__kind_width_key(char key[TARN__KIND_KEY], const tarn_kind *kind, const tarn_config_model *model) {
  const tarn__option *option = width_option();
  const bool plain = tarn__part_is_plain(option, use_of(option, kind), model);
  snprintf(key, TARN__KIND_KEY, "%s%s%s", option->name, plain ? "" : ".", plain ? "" : option->number);
}

const char *tarn__part_list(char list[TARN__PART_LIST], tarn__part_table table,
                            bool (*which)(const tarn__part *part, const void *user), const void *user) {
  const tarn__part *part, *last = NULL;
  size_t used = 0;
  list[0] = 0;
  for (int i = 0;; i++) {
    part = tarn__part_at(table, i);
    if (part && which && !which(part, user)) continue;
    if (last && used < TARN__PART_LIST)
      used += (size_t)snprintf(list + used, TARN__PART_LIST - used, "%s%s",
                               used == 0 ? ""
                               : part    ? ", "
                                         : " and ",
                               last->word);
    if (!part) return list;
    last = part;
  }
}

bool tarn__part_has_key(const tarn__part *part, const void *user) { return tarn__part_option(part, user) != NULL; }

bool tarn__part_is_causal(const tarn__part *part, const void *user) {
  (void)user;
  return ((const tarn__mixer_entry *)(const void *)part)->causal;
}

bool tarn__part_decodes(const tarn__part *part, const void *user) {
  (void)user;
  const tarn__mixer_entry *mixer = (const tarn__mixer_entry *)(const void *)part;
  return mixer->causal && mixer->decodes;
}
