// A description as JSON: its canonical YAML, value by value.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "config/yaml_tree.h"
#include "tarn/config.h"

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

// Reading lets no control characters into a text, so that two characters need an escape.
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

// Whether a plain scalar is a number as JSON writes it.
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

// As deep as the YAML was read, which bounds it.
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

tarn_status tarn_config_write_json(const tarn_config *config, char **text) {
  tarn__yaml tree = {0};
  tarn__yaml_node *root;
  writer w = {0};
  char *yaml;
  *text = NULL;
  TARN_TRY(tarn_config_write(config, &yaml));
  tarn_status status = tarn__yaml_parse(&tree, &root, "the description", false, yaml, strlen(yaml));
  if (status == TARN_STATUS_OK) status = put_node(&w, root);
  tarn_config_text_close(&yaml);
  tarn__yaml_close(&tree);
  if (status != TARN_STATUS_OK) tarn__free(w.text);
  *text = status == TARN_STATUS_OK ? w.text : NULL;
  return status;
}
