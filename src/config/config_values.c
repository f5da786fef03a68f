// Values of single options: from text into a field, and the descriptions of types, ranges and defaults.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/config_options.h"
#include "config/config_word.h"
#include "config/yaml_tree.h"
#include "parts/table/part_table.h"
#include "tarn/measure.h"
#include "tarn/text.h"
#include "text/utf8.h"

static void *field_of(const tarn__option *option, void *section) { return (char *)section + option->offset; }

void tarn__real_text(char text[TARN__REAL_TEXT], double value) {
  if (value == floor(value) && fabs(value) < 1e15) {
    snprintf(text, TARN__REAL_TEXT, "%.0f", value + 0.0);
    return;
  }
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(text, TARN__REAL_TEXT, "%.*g", digits, value);
    if (strtod(text, NULL) == value) return;
  }
}

static void range_text(char text[80], const tarn__option *option) {
  char least[TARN__REAL_TEXT];
  char most[TARN__REAL_TEXT];
  tarn__real_text(least, option->least);
  tarn__real_text(most, option->most);
  if (option->type != TARN__OPTION_REAL) {
    snprintf(text, 80, "%.0f .. %.0f", option->least, option->most);
  } else {
    snprintf(text, 80, "%s %s x %s %s", least, option->open_least ? "<" : "<=", option->open_most ? "<" : "<=", most);
  }
}

static bool in_range(const tarn__option *option, double value) {
  bool above = option->open_least ? value > option->least : value >= option->least;
  bool below = option->open_most ? value < option->most : value <= option->most;
  return above && below;
}

static tarn_status check_range(const tarn__option *option, double value, const char *text) {
  char range[80];
  char shown[TARN__YAML_SHOWN];
  if (in_range(option, value)) return TARN_STATUS_OK;
  range_text(range, option);
  return tarn__fail(TARN_STATUS_USAGE, "%s is out of range (%s)", tarn__yaml_show(shown, text), range);
}

tarn_status tarn__option_integer(const tarn__option *option, int64_t *out, const char *text) {
  char shown[TARN__YAML_SHOWN];
  int64_t value;
  // A number too large for the type saturates and is then out of range.
  TARN_REQUIRE(tarn_text_integer(&value, text), USAGE, "\"%s\" is not an integer", tarn__yaml_show(shown, text));
  TARN_TRY(check_range(option, (double)value, text));
  *out = value;
  return TARN_STATUS_OK;
}

static tarn_status set_real(const tarn__option *option, double *out, const char *text) {
  char shown[TARN__YAML_SHOWN];
  char *end;
  // The characters are checked first because strtod() also reads hexadecimal numbers, infinities and NaN.
  bool plain = text[0] != 0 && strspn(text, "0123456789+-.eE") == strlen(text);
  double value = plain ? strtod(text, &end) : 0;
  TARN_REQUIRE(plain && *end == 0, USAGE, "\"%s\" is not a number", tarn__yaml_show(shown, text));
  TARN_TRY(check_range(option, value, text));
  *out = value;
  return TARN_STATUS_OK;
}

// "yes" or "no" if the text is a boolean of YAML 1.1, else NULL.
static const char *truth(const char *text) {
  static const char *const words[] = {"no", "yes", "false", "true", "off", "on"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcasecmp(text, words[i]) == 0) return words[i % 2];
  return NULL;
}

static tarn_status set_bool(bool *out, const char *text) {
  char shown[TARN__YAML_SHOWN];
  const char *word = truth(text);
  if (word) {
    *out = *word == 'y';
    return TARN_STATUS_OK;
  }
  return tarn__fail(TARN_STATUS_USAGE, "\"%s\" is neither yes nor no", tarn__yaml_show(shown, text));
}

const char *tarn__config_bare_word(const tarn__option *option, const char *text) {
  char head[16];
  const size_t length = option->before ? strlen(option->before) : 0;
  if (length == 0 || length >= sizeof head || strlen(text) <= length) return text;
  memcpy(head, text, length);
  head[length] = '\0';
  return tarn_measure_same_name(option->before, head) ? text + length : text;
}

static tarn_status set_word(const tarn__option *option, void *field, const char *text) {
  const char *word = truth(text);
  text = tarn__config_bare_word(option, text);
  tarn__known_words known = {0};
  for (int i = 0; i < option->word_count; i++) {
    const char *name = option->words[i].word;
    if (strcmp(name, text) == 0 || (word && strcmp(name, word) == 0)) {
      memcpy(field, &option->words[i].value, sizeof(int));
      return TARN_STATUS_OK;
    }
    tarn__known_add(&known, name);
  }
  return tarn__known_fail(&known, "not", text);
}

static tarn_status set_text(const char **out, const char *text, tarn__arena *arena) {
  char *copy;
  int32_t code;
  TARN_REQUIRE(text[0] != 0, USAGE, "an empty text");
  // Such text could not be written to a YAML file and read back.
  TARN_REQUIRE(tarn__utf8_line(&code, text, strlen(text)) == strlen(text), USAGE, "control characters in a text");
  TARN_TRY(tarn__arena_strdup(arena, &copy, text));
  *out = copy;
  return TARN_STATUS_OK;
}

tarn_status tarn__option_set(const tarn__option *option, void *section, const char *text, tarn__arena *arena) {
  void *field = field_of(option, section);
  switch (option->type) {
    case TARN__OPTION_BOOL:
      return set_bool(field, text);
    case TARN__OPTION_INTEGER:
      return tarn__option_integer(option, field, text);
    case TARN__OPTION_REAL:
      return set_real(option, field, text);
    case TARN__OPTION_WORD:
      return set_word(option, field, text);
    case TARN__OPTION_TEXT:
      return set_text(field, text, arena);
    case TARN__OPTION_INTEGERS:
    case TARN__OPTION_FREEZE:
    case TARN__OPTION_PATTERN:
    case TARN__OPTION_PART:
      break;
  }
  return tarn__fail(TARN_STATUS_INTERNAL, "option %s has no plain value", option->name);
}

void tarn__option_unset(const tarn__option *option, void *section) {
  void *field = field_of(option, section);
  if (option->type == TARN__OPTION_WORD) memcpy(field, &option->word_count, sizeof(int));
  if (option->type == TARN__OPTION_INTEGER) *(int64_t *)field = 0;
  if (option->type == TARN__OPTION_REAL) *(double *)field = (double)NAN;
  if (option->type == TARN__OPTION_TEXT) *(const char **)field = NULL;
  if (option->type == TARN__OPTION_PART) *(tarn_part_use *)field = (tarn_part_use){NULL, NULL};
}

static const char *type_text(const tarn__option *option) {
  switch (option->type) {
    case TARN__OPTION_BOOL:
      return "yes or no";
    case TARN__OPTION_INTEGER:
      return "integer";
    case TARN__OPTION_REAL:
      return "number";
    case TARN__OPTION_WORD:
      return "word";
    case TARN__OPTION_PART:
      return option->beside ? "word" : option->number ? "integer or map" : "word or map";
    case TARN__OPTION_TEXT:
      return "text";
    case TARN__OPTION_INTEGERS:
      return "list of integers";
    case TARN__OPTION_FREEZE:
      return "map of layers to integers";
    case TARN__OPTION_PATTERN:
      break;
  }
  return "pattern";
}

// The search for an option by number: `left` options precede it.
typedef struct search {
  size_t left;
  tarn_config_option *found;
} search;

static size_t word_count(const tarn__option *option) {
  if (option->type != TARN__OPTION_PART) return (size_t)option->word_count;
  size_t count = 0;
  while (tarn__part_at(option->table, (int)count)) count++;
  return count;
}

static void describe(tarn_config_option *out, const char *path, const char *owner, const tarn__option *option) {
  const char *value = option->value ? option->value : option->derived;
  if (!value && option->type == TARN__OPTION_PART) value = tarn__part_at(option->table, 0)->word;
  *out = (tarn_config_option){.type = type_text(option),
                              .unit = option->unit ? option->unit : "",
                              .help = option->help,
                              .word_count = word_count(option),
                              .source = option};
  snprintf(out->key, sizeof out->key, "%s.%s", path, option->name);
  snprintf(out->part, sizeof out->part, "%s", owner);
  snprintf(out->value, sizeof out->value, "%s", value ? value : "");
  if (option->most > option->least) range_text(out->range, option);
}

// How many options a table and those of its possible parts have.
static size_t options_of(const tarn__option *options, int count) {
  size_t all = (size_t)count;
  for (int i = 0; i < count; i++) {
    const tarn__part *part;
    if (options[i].type != TARN__OPTION_PART) continue;
    for (int n = 0; (part = tarn__part_at(options[i].table, n)) != NULL; n++)
      all += options_of(part->options, part->option_count);
  }
  return all;
}

// Searches the keys of a table of options, then those of its possible parts.
static bool find_option(search *s, const char *path, const char *owner, const tarn__option *options, int count) {
  if (s->left < (size_t)count) {
    describe(s->found, path, owner, &options[s->left]);
    return true;
  }
  s->left -= (size_t)count;
  for (int i = 0; i < count; i++) {
    const tarn__option *option = &options[i];
    const tarn__part *part;
    if (option->type != TARN__OPTION_PART) continue;
    for (int n = 0; (part = tarn__part_at(option->table, n)) != NULL; n++) {
      char below[64], name[48];
      // Only the part that has it is spelt out: whoever lists all options asks for each of them.
      const size_t inside = options_of(part->options, part->option_count);
      if (s->left >= inside) {
        s->left -= inside;
        continue;
      }
      snprintf(below, sizeof below, "%s%s%s", path, option->beside ? "" : ".", option->beside ? "" : option->name);
      snprintf(name, sizeof name, "%s %s", tarn__part_noun(option->table), part->word);
      if (find_option(s, below, name, part->options, part->option_count)) return true;
    }
  }
  return false;
}

bool tarn_config_option_at(size_t index, tarn_config_option *option) {
  search s = {index, option};
  for (int id = 0; id < TARN__SECTION_COUNT; id++) {
    const tarn__section *section = tarn__config_section((tarn__section_id)id);
    const bool named = id == TARN__SECTION_KINDS || id == TARN__SECTION_SETS;
    const size_t inside = options_of(section->options, section->count);
    if (s.left >= inside) {
      s.left -= inside;
      continue;
    }
    char path[48];
    snprintf(path, sizeof path, "%s%s", section->path, named ? ".NAME" : "");
    if (find_option(&s, path, "", section->options, section->count)) return true;
  }
  return false;
}

bool tarn_config_option_word(const tarn_config_option *option, size_t index, tarn_config_word *word) {
  const tarn__option *source = option->source;
  if (index >= option->word_count) return false;
  if (source->type != TARN__OPTION_PART) {
    *word = source->words[index];
    return true;
  }
  const tarn__part *part = tarn__part_at(source->table, (int)index);
  *word = (tarn_config_word){part->word, part->text, (int)index};
  return true;
}
