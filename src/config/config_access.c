// Access of programs to a description: its canonical YAML as JSON, value by value, and the values of single keys.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/yaml_tree.h"
#include "description/description.h"
#include "tarn/text.h"

enum { KEY_TEXT = 128 };

typedef struct writer {
  char *text;
  size_t used, capacity;
} writer;

static tarn_status put(writer *w, const char *text, size_t length) {
  TARN_TRY(tarn__grow(&w->text, &w->capacity, w->used + length + 1, 1));
  memcpy(w->text + w->used, text, length);
  w->used += length;
  w->text[w->used] = '\0';
  return TARN_STATUS_OK;
}

// The reader rejects control characters in strings, so only two characters need an escape.
static tarn_status put_string(writer *w, const char *text) {
  TARN_TRY(put(w, "\"", 1));
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') TARN_TRY(put(w, "\\", 1));
    TARN_TRY(put(w, text, 1));
  }
  return put(w, "\"", 1);
}

static const char *past_digits(const char *text) {
  while (isdigit((unsigned char)*text)) text++;
  return text;
}

// Whether a plain scalar is a number in JSON syntax.
static bool is_number(const char *text) {
  if (*text == '-') text++;
  const char *end = *text == '0' ? text + 1 : past_digits(text);
  if (end == text) return false;
  if (*end == '.') {
    const char *fraction = end + 1;
    end = past_digits(fraction);
    if (end == fraction) return false;
  }
  if (*end == 'e' || *end == 'E') {
    const char *exponent = end[1] == '+' || end[1] == '-' ? end + 2 : end + 1;
    end = past_digits(exponent);
    if (end == exponent) return false;
  }
  return *end == '\0';
}

static tarn_status put_scalar(writer *w, const tarn__yaml_node *node) {
  if (tarn__yaml_is_empty(node)) return put(w, "null", 4);
  if (node->quoted) return put_string(w, node->text);
  if (strcmp(node->text, "yes") == 0) return put(w, "true", 4);
  if (strcmp(node->text, "no") == 0) return put(w, "false", 5);
  return is_number(node->text) ? put(w, node->text, strlen(node->text)) : put_string(w, node->text);
}

// The YAML reader limits the depth.
static tarn_status put_node(writer *w, const tarn__yaml_node *node) {
  if (node->type == TARN__YAML_SCALAR) return put_scalar(w, node);
  const bool map = node->type == TARN__YAML_MAP;
  TARN_TRY(put(w, map ? "{" : "[", 1));
  for (const tarn__yaml_node *child = node->first; child; child = child->next) {
    if (child != node->first) TARN_TRY(put(w, ", ", 2));
    if (map) {
      TARN_TRY(put_string(w, child->key));
      TARN_TRY(put(w, ": ", 2));
    }
    TARN_TRY(put_node(w, child));
  }
  return put(w, map ? "}" : "]", 1);
}

// The message names the nearest key of the same map.
static tarn_status refuse(const tarn__yaml_node *root, const char *key) {
  const char *last = strrchr(key, '.');
  const tarn__yaml_node *map = tarn__yaml_nearest(root, key);
  const char *names[64];
  char shown[TARN__YAML_SHOWN];
  size_t count = 0;
  if (map->type == TARN__YAML_MAP)
    for (const tarn__yaml_node *child = map->first; child && count < 64; child = child->next)
      names[count++] = child->key;
  const char *near = tarn_text_nearest(last ? last + 1 : key, names, count);
  tarn__yaml_show(shown, key);
  if (near)
    return tarn__fail(TARN_STATUS_USAGE, "the description has no key \"%s\"; did you mean \"%s\"?", shown, near);
  return tarn__fail(TARN_STATUS_USAGE, "the description has no key \"%s\"", shown);
}

// Whether the language has such a key. `key` may refer to a kind or a set of this description, which the documentation
// calls NAME.
static bool is_key(const tarn__yaml_node *root, const char *key) {
  char known[KEY_TEXT];
  const char *name = strchr(key, '.');
  const char *rest = name ? strchr(name + 1, '.') : NULL;
  const bool named = rest && (strncmp(key, "kinds.", 6) == 0 || strncmp(key, "sets.", 5) == 0);
  if (strlen(key) >= sizeof known) return false;
  if (named) {
    snprintf(known, sizeof known, "%.*s", (int)(rest - key), key);
    if (!tarn__yaml_find(root, known)) return false;
    snprintf(known, sizeof known, "%.*s.NAME%s", (int)(name - key), key, rest);
  } else {
    snprintf(known, sizeof known, "%s", key);
  }
  tarn_config_option option;
  for (size_t i = 0; tarn_config_option_at(i, &option); i++)
    if (strcmp(option.key, known) == 0) return true;
  return false;
}

// The description as a tree. tarn__yaml_close() also on failure.
static tarn_status open_tree(tarn__yaml *tree, tarn__yaml_node **root, const tarn_config *config) {
  char *yaml;
  TARN_TRY(tarn_config_write(config, &yaml));
  const tarn_status status = tarn__yaml_parse(tree, root, "the description", false, yaml, strlen(yaml));
  tarn_config_text_close(&yaml);
  return status;
}

// Closes the tree, and hands the text over unless `status` is a failure, which it returns.
static tarn_status end_text(tarn_status status, tarn__yaml *tree, writer *w, char **text) {
  tarn__yaml_close(tree);
  if (status != TARN_STATUS_OK) tarn__free(w->text);
  *text = status == TARN_STATUS_OK ? w->text : NULL;
  return status;
}

tarn_status tarn_config_get(const tarn_config *config, const char *key, char **text) {
  tarn__yaml tree = {0};
  tarn__yaml_node *root;
  writer w = {0};
  tarn_status status = open_tree(&tree, &root, config);
  if (status == TARN_STATUS_OK) {
    const tarn__yaml_node *node = tarn__yaml_find(root, key);
    if (!node)
      status = is_key(root, key) ? put(&w, "", 0) : refuse(root, key);
    else if (node->type == TARN__YAML_SCALAR)
      status = put(&w, node->text, strlen(node->text));
    else
      status = put_node(&w, node);
  }
  return end_text(status, &tree, &w, text);
}

tarn_status tarn_config_number(const tarn_config *config, const char *key, double *value) {
  char *text, *end, shown[TARN__YAML_SHOWN];
  *value = 0;
  TARN_TRY(tarn_config_get(config, key, &text));
  tarn_status status = TARN_STATUS_OK;
  if (is_number(text))
    *value = strtod(text, &end);
  else if (strcmp(text, "yes") == 0)
    *value = 1;
  else if (strcmp(text, "no") != 0)
    status = tarn__fail(TARN_STATUS_USAGE, "%s is \"%s\", which is no number", key, tarn__yaml_show(shown, text));
  tarn_config_text_close(&text);
  return status;
}

tarn_status tarn_config_set(tarn_config **config, const char *key, const char *value) {
  tarn_config *changed = NULL;
  char *text, *override = NULL;
  size_t size = strlen(key) + strlen(value) + 2;
  TARN_TRY(tarn_config_write(*config, &text));
  tarn_status status = tarn__alloc((void **)&override, TARN__MEMORY_OTHER, size, 1);
  if (status == TARN_STATUS_OK) {
    snprintf(override, size, "%s=%s", key, value);
    const char *const overrides[] = {override};
    status = tarn_config_parse(&changed, (*config)->name, text, strlen(text), overrides, 1);
  }
  tarn__free(override);
  tarn_config_text_close(&text);
  if (status != TARN_STATUS_OK) return status;
  tarn_config_close(config);
  *config = changed;
  return TARN_STATUS_OK;
}

int tarn_config_task(const tarn_config *config) { return config->model.task; }
int tarn_config_metric(const tarn_config *config) { return config->valid.metric; }
int64_t tarn_config_seed(const tarn_config *config) { return config->train.seed; }

tarn_status tarn_config_write_json(const tarn_config *config, char **text) {
  tarn__yaml tree = {0};
  tarn__yaml_node *root;
  writer w = {0};
  tarn_status status = open_tree(&tree, &root, config);
  if (status == TARN_STATUS_OK) status = put_node(&w, root);
  return end_text(status, &tree, &w, text);
}
