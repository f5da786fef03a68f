// Writes a description as canonical YAML: every key, in the order of the option table, in a form that depends only on
// the values.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "config/config_options.h"
#include "config/config_part.h"
#include "config/config_write.h"
#include "task/task.h"

typedef struct writer {
  char *text;
  size_t used, capacity;
  tarn_status status;  // of the first failure
} writer;

static void put(writer *w, const char *text) {
  size_t n = strlen(text);
  if (w->status == TARN_STATUS_OK) w->status = tarn__grow(&w->text, &w->capacity, w->used + n + 1, 1);
  if (w->status != TARN_STATUS_OK) return;
  memcpy(w->text + w->used, text, n + 1);
  w->used += n;
}

static void put_line(writer *w, int indent, const char *key, const char *value) {
  for (int i = 0; i < indent; i++) put(w, " ");
  put(w, key);
  put(w, value[0] ? ": " : ":");
  put(w, value);
  put(w, "\n");
}

// Double quotes, with the two special characters escaped; the reader rejects control characters.
static void put_quoted(writer *w, int indent, const char *key, const char *text) {
  char one[2] = "";
  put(w, indent == 2 ? "  " : "    ");
  put(w, key);
  put(w, ": \"");
  for (; *text; text++) {
    one[0] = *text;
    if (*text == '"' || *text == '\\') put(w, "\\");
    put(w, one);
  }
  put(w, "\"\n");
}

static void put_integers(writer *w, const char *key, const void *field) {
  struct {
    const int64_t *values;
    int64_t count;
  } list;
  memcpy(&list, field, sizeof list);
  put(w, "  ");
  put(w, key);
  put(w, ": [");
  for (int64_t i = 0; i < list.count; i++) {
    char number[32];
    snprintf(number, sizeof number, "%s%" PRId64, i ? ", " : "", list.values[i]);
    put(w, number);
  }
  put(w, "]\n");
}

// The reader has checked that these are names of layers, so they need no quotes.
static void put_freeze(writer *w, const char *key, const void *field) {
  struct {
    const tarn_freeze *entries;
    int64_t count;
  } list;
  memcpy(&list, field, sizeof list);
  put(w, "  ");
  put(w, key);
  put(w, ": {");
  for (int64_t i = 0; i < list.count; i++) {
    char number[32];
    snprintf(number, sizeof number, ": %" PRId64, list.entries[i].at);
    put(w, i ? ", " : "");
    put(w, list.entries[i].layers);
    put(w, number);
  }
  put(w, "}\n");
}

static const char *word_of(writer *w, const tarn__option *option, const void *field) {
  int value;
  memcpy(&value, field, sizeof value);
  for (int i = 0; i < option->word_count; i++) {
    if (option->words[i].value == value) return option->words[i].word;
  }
  w->status = tarn__fail(TARN_STATUS_INTERNAL, "%s has the value %d, which no word names", option->name, value);
  return "";
}

static void put_option(writer *w, int indent, const tarn__option *option, const void *section,
                       const tarn_config_model *model);

// A part: one word or number if its other keys have their defaults, else a map.
static void put_part(writer *w, int indent, const tarn__option *option, const tarn_part_use *use,
                     const tarn_config_model *model) {
  char number[32];
  const bool plain = option->beside || tarn__part_is_plain(option, use, model);
  if (plain && option->number) {
    const tarn__option *key = use->part ? tarn__part_option(use->part, option->number) : NULL;
    snprintf(number, sizeof number, "%" PRId64, key ? *(const int64_t *)((const char *)use->keys + key->offset) : 0);
    put_line(w, indent, option->name, number);
    return;
  }
  put_line(w, indent, option->name, plain ? use->part->word : "");
  if (!plain) put_line(w, indent + 2, "type", use->part->word);
  for (int i = 0; (!plain || option->beside) && i < use->part->option_count; i++)
    put_option(w, plain ? indent : indent + 2, &use->part->options[i], use->keys, model);
}

static void put_option(writer *w, int indent, const tarn__option *option, const void *section,
                       const tarn_config_model *model) {
  const void *field = (const char *)section + option->offset;
  char text[TARN__REAL_TEXT];
  if (option->later && tarn__option_is_default(option, field, model)) return;
  switch (option->type) {
    case TARN__OPTION_BOOL:
      put_line(w, indent, option->name, *(const bool *)field ? "yes" : "no");
      return;
    case TARN__OPTION_INTEGER:
      snprintf(text, sizeof text, "%" PRId64, *(const int64_t *)field);
      put_line(w, indent, option->name, text);
      return;
    case TARN__OPTION_REAL:
      tarn__real_text(text, *(const double *)field);
      put_line(w, indent, option->name, text);
      return;
    case TARN__OPTION_WORD:
      put_line(w, indent, option->name, word_of(w, option, field));
      return;
    case TARN__OPTION_TEXT:
      if (*(const char *const *)field) put_quoted(w, indent, option->name, *(const char *const *)field);
      return;
    case TARN__OPTION_INTEGERS:
      put_integers(w, option->name, field);
      return;
    case TARN__OPTION_FREEZE:
      put_freeze(w, option->name, field);
      return;
    case TARN__OPTION_PART:
      put_part(w, indent, option, field, model);
      return;
    case TARN__OPTION_PATTERN:
      return;  // put_stack()
  }
}

static void put_section(writer *w, tarn__section_id id, const tarn_config *config) {
  const tarn__section *section = tarn__config_section(id);
  const bool translation = id == TARN__SECTION_VALID || id == TARN__SECTION_TRANSLATE;
  put_line(w, 0, section->path, "");
  for (int i = 0; i < section->count; i++) {
    char text[2 * TARN__TASK_TEXT];
    // Keys about another kind of decoding have no effect.
    if (translation && !tarn__decoding_has(text, tarn__config_task(config), section->options[i].name)) continue;
    put_option(w, 2, &section->options[i], (const char *)config + section->offset, &config->model);
  }
}

// Only for a kind with backskipping; it has no effect for others.
static void put_backskip(writer *w, const tarn_backskip *backskip, const tarn_config_model *model) {
  const tarn__section *section = tarn__config_section(TARN__SECTION_KINDS_BACKSKIP);
  if (backskip->method == TARN_BACKSKIP_NONE) return;
  put_line(w, 4, "backskip", "");
  for (int i = 0; i < section->count; i++) put_option(w, 6, &section->options[i], backskip, model);
}

// `training`: includes keys that only training needs.
static void put_kind(writer *w, const tarn_kind *kind, const tarn_config_model *model, bool training) {
  const tarn__section *section = tarn__config_section(TARN__SECTION_KINDS);
  put_line(w, 2, kind->name, "");
  for (int i = 0; i < section->count; i++) put_option(w, 4, &section->options[i], kind, model);
  if (training) put_backskip(w, &kind->backskip, model);
}

static void put_stack(writer *w, tarn__section_id id, const tarn_stack *stack, const tarn_config *config) {
  const tarn__section *section = tarn__config_section(id);
  char pattern[TARN__PATTERN_TEXT];
  if (w->status == TARN_STATUS_OK) {
    w->status = tarn__pattern_write(pattern, stack->pattern, stack->depth, config->kinds);
  }
  if (w->status != TARN_STATUS_OK) return;
  put_line(w, 0, section->path, "");
  put_line(w, 2, "layers", pattern);
  for (int i = 0; i < section->count; i++) put_option(w, 2, &section->options[i], stack, &config->model);
}

// Omitted without sets, so that the text of descriptions that predate sets is unchanged.
static void put_sets(writer *w, const tarn_config *config) {
  const tarn__section *section = tarn__config_section(TARN__SECTION_SETS);
  if (config->set_count == 0) return;
  put_line(w, 0, section->path, "");
  for (int32_t s = 0; s < config->set_count; s++) {
    put_line(w, 2, config->sets[s].name, "");
    for (int i = 0; i < section->count; i++) put_option(w, 4, &section->options[i], &config->sets[s], &config->model);
  }
}

static bool uses(const tarn_stack *stack, int32_t kind) {
  for (int32_t i = 0; i < stack->depth; i++) {
    if (stack->pattern[i].kind == kind) return true;
  }
  return false;
}

// The properties that do not follow from its stacks.
static void put_task(writer *w, const tarn_config *config) {
  const tarn__section *section = tarn__config_section(TARN__SECTION_MODEL);
  if (tarn__config_task(config) == tarn__task_usual(config->model.architecture)) return;
  for (int i = 0; i < section->count; i++)
    if (strcmp(section->options[i].name, "task") == 0)
      put_line(w, 2, "task", word_of(w, &section->options[i], &config->model.task));
}

static void put_model(writer *w, const tarn_config *config, bool used_only) {
  put_section(w, TARN__SECTION_MODEL, config);
  put_task(w, config);
  static const tarn__section_id sections[TARN__STACKS] = {
      [TARN__STACK_ENCODER] = TARN__SECTION_ENCODER, [TARN__STACK_DECODER] = TARN__SECTION_DECODER};
  const tarn__task *task = tarn__config_task(config);
  for (int s = 0; s < task->stack_count; s++) {
    const tarn__stack_id id = task->stacks[s].id;
    put_stack(w, sections[id], tarn__config_stack(config, id), config);
  }
  if (task->sections >> TARN__TASK_LEVENSHTEIN & 1u) put_section(w, TARN__SECTION_LEVENSHTEIN, config);
  if (task->sections >> TARN__TASK_HEAD & 1u) put_section(w, TARN__SECTION_HEAD, config);
  if (task->sections >> TARN__TASK_IMAGE & 1u) put_section(w, TARN__SECTION_IMAGE, config);
  put_line(w, 0, "kinds", "");
  for (int32_t i = 0; i < config->kind_count; i++) {
    if (!used_only || uses(&config->encoder, i) || uses(&config->decoder, i))
      put_kind(w, &config->kinds[i], &config->model, !used_only);
  }
}

static tarn_status finish(writer *w, char **text) {
  if (w->status != TARN_STATUS_OK) {
    tarn__free(w->text);
    w->text = NULL;
  }
  *text = w->text;
  return w->status;
}

tarn_status tarn_config_write(const tarn_config *config, char **text) {
  writer w = {0};
  put_model(&w, config, false);
  put_section(&w, TARN__SECTION_DATA, config);
  if (tarn__config_task(config)->sections >> TARN__TASK_MASKING & 1u) put_section(&w, TARN__SECTION_MASKING, config);
  put_section(&w, TARN__SECTION_TRAIN, config);
  put_section(&w, TARN__SECTION_VALID, config);
  put_sets(&w, config);
  if (config->dynamics.input) put_section(&w, TARN__SECTION_DYNAMICS, config);
  put_section(&w, TARN__SECTION_TRANSLATE, config);
  return finish(&w, text);
}

tarn_status tarn__config_write_model(const tarn_config *config, char **text) {
  writer w = {0};
  put_model(&w, config, true);
  return finish(&w, text);
}

tarn_status tarn__config_pattern(const tarn_config *config, const tarn_stack *stack, char **text) {
  char pattern[TARN__PATTERN_TEXT];
  *text = NULL;
  TARN_TRY(tarn__pattern_write(pattern, stack->layers, stack->count, config->kinds));
  return tarn__strdup(text, pattern);
}

void tarn_config_text_close(char **text) {
  tarn__free(*text);
  *text = NULL;
}

tarn_status tarn__config_model_hash(const tarn_config *config, char hash[TARN_CONFIG_HASH]) {
  char *text;
  TARN_TRY(tarn__config_write_model(config, &text));
  tarn__hash(hash, text, strlen(text));
  tarn_config_text_close(&text);
  return TARN_STATUS_OK;
}
