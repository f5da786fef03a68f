#include "config/yaml_tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/yaml_events.h"

// A description needs a few hundred values; more is a mistake or an attack.
enum { MOST_NODES = 10000 };

// One run of the parser over one text.
typedef struct reader {
  tarn__yaml *tree;
  tarn__yaml_events events;
} reader;

static tarn_status fail_at(const char *origin, int line, const char *text) {
  return tarn__yaml_events_fail(TARN_STATUS_USAGE, origin, line, text);
}

tarn_status tarn__yaml_fail(const tarn__yaml_node *node, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return fail_at(node->origin, node->line, text);
}

tarn_status tarn__yaml_fail_key(const tarn__yaml_node *root, const char *key, const char *text) {
  return tarn__yaml_fail(tarn__yaml_nearest(root, key), "%s: %s", key, text);
}

const char *tarn__yaml_show(char shown[TARN__YAML_SHOWN], const char *text) {
  size_t n = strnlen(text, TARN__YAML_SHOWN - 4);
  bool cut = text[n] != 0;
  // Truncating within a UTF-8 sequence would make the message invalid.
  while (cut && n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) n--;
  memcpy(shown, text, n);
  strcpy(shown + n, cut ? "..." : "");
  return shown;
}

static tarn_status new_node(tarn__yaml *tree, tarn__yaml_node **node, tarn__yaml_type type, const char *origin,
                            int line) {
  void *memory;
  if (++tree->count > MOST_NODES) return fail_at(origin, line, "more than 10000 values");
  TARN_TRY(tarn__arena_alloc(&tree->arena, &memory, 1, sizeof **node));
  *node = memory;
  (*node)->type = type;
  (*node)->origin = origin;
  (*node)->line = line;
  return TARN_STATUS_OK;
}

static void append(tarn__yaml_node *parent, tarn__yaml_node *child) {
  if (parent->last) {
    parent->last->next = child;
  } else {
    parent->first = child;
  }
  parent->last = child;
}

static tarn_status read_node(reader *r, tarn__yaml_node **out, const yaml_event_t *event, int depth);

// Reads an event and the node that it begins; NULL if the event ends the enclosing list or map.
static tarn_status read_next(reader *r, tarn__yaml_node **out, int depth) {
  yaml_event_t event;
  *out = NULL;
  TARN_TRY(tarn__yaml_events_next(&r->events, &event));
  tarn_status status = TARN_STATUS_OK;
  if (event.type != YAML_SEQUENCE_END_EVENT && event.type != YAML_MAPPING_END_EVENT) {
    status = read_node(r, out, &event, depth);
  }
  yaml_event_delete(&event);
  return status;
}

static tarn_status read_map(reader *r, tarn__yaml_node *map, int depth) {
  for (;;) {
    tarn__yaml_node *key;
    tarn__yaml_node *value;
    char shown[TARN__YAML_SHOWN];
    TARN_TRY(read_next(r, &key, depth + 1));
    if (!key) return TARN_STATUS_OK;
    if (key->type != TARN__YAML_SCALAR) return tarn__yaml_fail(key, "a key must be one word");
    if (tarn__yaml_get(map, key->text)) {
      return tarn__yaml_fail(key, "key \"%s\" is given twice", tarn__yaml_show(shown, key->text));
    }
    TARN_TRY(read_next(r, &value, depth + 1));
    if (!value) return tarn__yaml_fail(key, "key \"%s\" has no value", tarn__yaml_show(shown, key->text));
    value->key = key->text;
    value->line = key->line;
    append(map, value);
  }
}

static tarn_status read_list(reader *r, tarn__yaml_node *list, int depth) {
  for (;;) {
    tarn__yaml_node *item;
    TARN_TRY(read_next(r, &item, depth + 1));
    if (!item) return TARN_STATUS_OK;
    append(list, item);
  }
}

static tarn_status read_node(reader *r, tarn__yaml_node **out, const yaml_event_t *event, int depth) {
  const char *origin = r->events.origin;
  const int line = tarn__yaml_events_line(&r->events, event);
  TARN_TRY(tarn__yaml_events_check(&r->events, event, depth));
  switch (event->type) {
    case YAML_SCALAR_EVENT: {
      char *text;
      TARN_TRY(tarn__arena_strdup(&r->tree->arena, &text, (const char *)event->data.scalar.value));
      TARN_TRY(new_node(r->tree, out, TARN__YAML_SCALAR, origin, line));
      (*out)->text = text;
      (*out)->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
      return TARN_STATUS_OK;
    }
    case YAML_SEQUENCE_START_EVENT:
      TARN_TRY(new_node(r->tree, out, TARN__YAML_LIST, origin, line));
      return read_list(r, *out, depth);
    case YAML_MAPPING_START_EVENT:
      TARN_TRY(new_node(r->tree, out, TARN__YAML_MAP, origin, line));
      return read_map(r, *out, depth);
    default:
      return tarn__fail(TARN_STATUS_INTERNAL, "%s: unexpected YAML event", origin);
  }
}

// Reads the single document.
static tarn_status read_document(reader *r, tarn__yaml_node **root) {
  yaml_event_t event;
  bool none;
  TARN_TRY(tarn__yaml_events_begin(&r->events, &event, &none));
  if (none) return TARN_STATUS_OK;
  const tarn_status status = read_node(r, root, &event, 0);
  yaml_event_delete(&event);
  TARN_TRY(status);
  return tarn__yaml_events_end(&r->events);
}

tarn_status tarn__yaml_parse(tarn__yaml *tree, tarn__yaml_node **root, const char *origin, bool lines, const char *text,
                             size_t size) {
  reader r = {.tree = tree, .events = {.lines = lines, .mistaken = TARN_STATUS_USAGE}};
  char *copy;
  *root = NULL;
  TARN_TRY(tarn__arena_strdup(&tree->arena, &copy, origin));
  r.events.origin = copy;
  TARN_TRY(tarn__yaml_events_open(&r.events, text, size));
  tarn_status status = read_document(&r, root);
  tarn__yaml_events_close(&r.events);
  if (status != TARN_STATUS_OK || *root) return status;
  TARN_TRY(new_node(tree, root, TARN__YAML_SCALAR, copy, lines ? 1 : 0));
  (*root)->text = "";
  return TARN_STATUS_OK;
}

tarn_status tarn__yaml_copy(tarn__yaml *tree, tarn__yaml_node **out, const tarn__yaml_node *node) {
  char *text;
  TARN_TRY(tarn__arena_strdup(&tree->arena, &text, node->origin));
  TARN_TRY(new_node(tree, out, node->type, text, node->line));
  tarn__yaml_node *copy = *out;
  copy->quoted = node->quoted;
  if (node->key) {
    TARN_TRY(tarn__arena_strdup(&tree->arena, &text, node->key));
    copy->key = text;
  }
  if (node->text) {
    TARN_TRY(tarn__arena_strdup(&tree->arena, &text, node->text));
    copy->text = text;
  }
  for (const tarn__yaml_node *child = node->first; child; child = child->next) {
    tarn__yaml_node *piece;
    TARN_TRY(tarn__yaml_copy(tree, &piece, child));
    append(copy, piece);
  }
  return TARN_STATUS_OK;
}

void tarn__yaml_close(tarn__yaml *tree) { tarn__arena_close(&tree->arena); }

bool tarn__yaml_is_empty(const tarn__yaml_node *node) {
  if (!node) return true;
  if (node->type != TARN__YAML_SCALAR || node->quoted) return false;
  return node->text[0] == 0 || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0;
}

tarn__yaml_node *tarn__yaml_get(const tarn__yaml_node *map, const char *key) {
  if (!map || map->type != TARN__YAML_MAP) return NULL;
  for (tarn__yaml_node *entry = map->first; entry; entry = entry->next) {
    if (strcmp(entry->key, key) == 0) return entry;
  }
  return NULL;
}

void tarn__yaml_remove(tarn__yaml_node *map, const char *key) {
  tarn__yaml_node *before = NULL;
  if (!map || map->type != TARN__YAML_MAP) return;
  for (tarn__yaml_node *entry = map->first; entry; before = entry, entry = entry->next) {
    if (strcmp(entry->key, key) != 0) continue;
    if (before) {
      before->next = entry->next;
    } else {
      map->first = entry->next;
    }
    if (map->last == entry) map->last = before;
    return;
  }
}

tarn_status tarn__yaml_wrap(tarn__yaml *tree, tarn__yaml_node *scalar, const char *key) {
  tarn__yaml_node *inner = NULL;
  char *copy;
  TARN_TRY(tarn__arena_strdup(&tree->arena, &copy, key));
  TARN_TRY(new_node(tree, &inner, TARN__YAML_SCALAR, scalar->origin, scalar->line));
  inner->key = copy;
  inner->text = scalar->text;
  inner->quoted = scalar->quoted;
  scalar->type = TARN__YAML_MAP;
  scalar->text = NULL;
  append(scalar, inner);
  return TARN_STATUS_OK;
}

// Copies the first word of a dotted path into `word` and returns the rest after the dot, or NULL at the last word. A
// word that is empty or too long is returned as "".
static const char *split(char word[64], const char *path) {
  size_t n = strcspn(path, ".");
  bool fits = n < 64;
  if (fits) memcpy(word, path, n);
  word[fits ? n : 0] = 0;
  return path[n] == '.' ? path + n + 1 : NULL;
}

tarn_status tarn__yaml_set(tarn__yaml *tree, tarn__yaml_node *root, const char *path, tarn__yaml_node *value) {
  tarn__yaml_node *map = root;
  for (;;) {
    char word[64];
    char *key;
    path = split(word, path);
    if (word[0] == 0) return tarn__yaml_fail(value, "a key is words with dots between them, such as train.lr");
    if (tarn__yaml_is_empty(map)) map->type = TARN__YAML_MAP;
    if (map->type != TARN__YAML_MAP) {
      return tarn__yaml_fail(value, "%s has no keys below it", map->key ? map->key : "the file");
    }
    if (!path) {
      TARN_TRY(tarn__arena_strdup(&tree->arena, &key, word));
      tarn__yaml_remove(map, key);
      value->key = key;
      append(map, value);
      return TARN_STATUS_OK;
    }
    tarn__yaml_node *next = tarn__yaml_get(map, word);
    if (!next) {
      TARN_TRY(tarn__arena_strdup(&tree->arena, &key, word));
      TARN_TRY(new_node(tree, &next, TARN__YAML_MAP, value->origin, value->line));
      next->key = key;
      append(map, next);
    }
    map = next;
  }
}

const tarn__yaml_node *tarn__yaml_nearest(const tarn__yaml_node *root, const char *path) {
  while (path) {
    char word[64];
    path = split(word, path);
    const tarn__yaml_node *next = tarn__yaml_get(root, word);
    if (!next) break;
    root = next;
  }
  return root;
}

const tarn__yaml_node *tarn__yaml_find(const tarn__yaml_node *root, const char *path) {
  while (path && root) {
    char word[64];
    path = split(word, path);
    root = tarn__yaml_get(root, word);
  }
  return root;
}
