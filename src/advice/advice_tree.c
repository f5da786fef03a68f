#include "advice/advice_tree.h"

#include <stdio.h>
#include <string.h>

enum { KEY_TEXT = 256 };

tarn_status tarn__advice_tree_open(tarn__advice_tree *tree, const tarn_config *config) {
  char *text;
  TARN_TRY(tarn_config_write(config, &text));
  const tarn_status status = tarn__yaml_parse(&tree->yaml, &tree->root, "the description", false, text, strlen(text));
  tarn_config_text_close(&text);
  return status;
}

void tarn__advice_tree_close(tarn__advice_tree *tree) { tarn__yaml_close(&tree->yaml); }

const tarn__yaml_node *tarn__advice_kind_node(const tarn__advice_tree *tree, const char *name) {
  return tarn__yaml_get(tarn__yaml_get(tree->root, "kinds"), name);
}

static void put_scalar(tarn__buffer *out, const tarn__yaml_node *node) {
  if (!node->quoted) {
    tarn__buffer_add(out, node->text);
    return;
  }
  tarn__buffer_add(out, "\"");
  for (const char *c = node->text; *c; c++) {
    if (*c == '"' || *c == '\\') tarn__buffer_add(out, "\\");
    tarn__buffer_put(out, c, 1);
  }
  tarn__buffer_add(out, "\"");
}

// The YAML reader limits the depth.
void tarn__advice_value(tarn__buffer *out, const tarn__yaml_node *value) {
  if (!value) return;
  if (value->type == TARN__YAML_SCALAR) {
    put_scalar(out, value);
    return;
  }
  const bool map = value->type == TARN__YAML_MAP;
  tarn__buffer_add(out, map ? "{" : "[");
  for (const tarn__yaml_node *child = value->first; child; child = child->next) {
    tarn__buffer_add(out, child == value->first ? map ? " " : "" : ", ");
    if (map) tarn__buffer_format(out, "%s: ", child->key);
    tarn__advice_value(out, child);
  }
  tarn__buffer_add(out, map ? value->first ? " }" : "}" : "]");
}

tarn_status tarn__advice_same(bool *same, const tarn__yaml_node *a, const tarn__yaml_node *b) {
  tarn__buffer one = {0}, other = {0};
  *same = !a && !b;
  if (!a || !b) return TARN_STATUS_OK;
  tarn__advice_value(&one, a);
  tarn__advice_value(&other, b);
  const tarn_status status = one.status != TARN_STATUS_OK ? one.status : other.status;
  if (status == TARN_STATUS_OK)
    *same = one.used == other.used && (one.used == 0 || memcmp(one.data, other.data, one.used) == 0);
  tarn__buffer_close(&one);
  tarn__buffer_close(&other);
  return status;
}

typedef struct walk {
  tarn__advice_differs *told;
  void *user;
} walk;

static tarn_status compare(const walk *w, const char *key, const tarn__yaml_node *value, const tarn__yaml_node *base);

// The entries of `map`, each with that of `other`; of those that both have only if `both`.
static tarn_status enter(const walk *w, const char *key, const tarn__yaml_node *map, const tarn__yaml_node *other,
                         bool both) {
  char below[KEY_TEXT];
  for (const tarn__yaml_node *child = map->first; child; child = child->next) {
    const tarn__yaml_node *found = tarn__yaml_get(other, child->key);
    const int length = snprintf(below, sizeof below, "%s%s%s", key, *key ? "." : "", child->key);
    TARN_REQUIRE(length < (int)sizeof below, DATA, "the key %.40s... is too long", below);
    if (both)
      TARN_TRY(compare(w, below, child, found));
    else if (!found)
      TARN_TRY(w->told(w->user, below, NULL, child));
  }
  return TARN_STATUS_OK;
}

static tarn_status compare(const walk *w, const char *key, const tarn__yaml_node *value, const tarn__yaml_node *base) {
  bool same;
  if (base && value->type == TARN__YAML_MAP && base->type == TARN__YAML_MAP) {
    TARN_TRY(enter(w, key, value, base, true));
    return enter(w, key, base, value, false);
  }
  TARN_TRY(tarn__advice_same(&same, value, base));
  return same ? TARN_STATUS_OK : w->told(w->user, key, value, base);
}

tarn_status tarn__advice_compare(const tarn__yaml_node *tree, const tarn__yaml_node *base, tarn__advice_differs *told,
                                 void *user) {
  const walk w = {told, user};
  return compare(&w, "", tree, base);
}
