#include "advice/advice_kinds.h"

#include <stdio.h>
#include <string.h>

#include "parts/block.h"
#include "run/run_file.h"

static bool is_taken(const char *name, const tarn__advice_kinds *kinds, const tarn_config *given) {
  for (int32_t k = 0; k < given->kind_count; k++)
    if (strcmp(given->kinds[k].name, name) == 0) return true;
  for (size_t k = 0; k < kinds->count; k++)
    if (strcmp(kinds->items[k].name, name) == 0) return true;
  return false;
}

tarn_status tarn__advice_kind_find(const tarn__advice_kind **out, tarn__advice_kinds *kinds, const tarn_config *given,
                                   const tarn__advice_kind *wanted) {
  for (size_t k = 0; k < kinds->count; k++) {
    *out = &kinds->items[k];
    if ((*out)->frozen == wanted->frozen && (*out)->trained == wanted->trained && (*out)->given == wanted->given)
      return TARN_STATUS_OK;
  }
  TARN_REQUIRE(kinds->count < TARN__ADVICE_KINDS, DATA, "a form has at most %d kinds of frozen layers",
               TARN__ADVICE_KINDS);
  tarn__advice_kind new_kind = *wanted;
  // R, as reservoirs are called, RR and so on. Names of kinds are letters.
  for (size_t length = 1; length < sizeof new_kind.name; length++) {
    memset(new_kind.name, 'R', length);
    new_kind.name[length] = '\0';
    if (!is_taken(new_kind.name, kinds, given)) break;
  }
  TARN_REQUIRE(!is_taken(new_kind.name, kinds, given), DATA, "no name is left for a kind of frozen layers");
  kinds->items[kinds->count] = new_kind;
  *out = &kinds->items[kinds->count++];
  return TARN_STATUS_OK;
}

static tarn_status set_key(tarn__advice_map *map, struct tarn__advice_memory *m, const char *key,
                           const tarn__yaml_node *value) {
  size_t i = 0;
  tarn__buffer text = {0};
  char *copy;
  while (i < map->count && strcmp(map->keys[i], key) != 0) i++;
  if (!value) {  // the key is not one of the new kind
    if (i == map->count) return TARN_STATUS_OK;
    map->count--;
    memmove(&map->keys[i], &map->keys[i + 1], (map->count - i) * sizeof *map->keys);
    memmove(&map->values[i], &map->values[i + 1], (map->count - i) * sizeof *map->values);
    return TARN_STATUS_OK;
  }
  TARN_REQUIRE(i < TARN__ADVICE_KEYS, DATA, "a kind has at most %d keys", TARN__ADVICE_KEYS);
  TARN_TRY(tarn__arena_strdup(&m->arena, &copy, key));
  map->keys[i] = copy;
  if (i == map->count) map->count++;
  tarn__advice_value(&text, value);
  TARN_TRY(tarn__advice_keep(&map->values[i], m, &text));
  if (!map->values[i]) map->values[i] = "";
  return TARN_STATUS_OK;
}

// Sizes belong to a model; all else says what a layer is.
static bool is_size(const char *key) {
  return strcmp(key, "ffn") == 0 || strcmp(key, "heads") == 0 || strcmp(key, "head_width") == 0;
}

static bool is_nothing(const tarn__yaml_node *value) {
  return value->type == TARN__YAML_SCALAR && value->text && strcmp(value->text, "0") == 0;
}

bool tarn__advice_is_general(const char *key) {
  static const char *const general[] = {"mixer", "ffn",       "residual", "frozen",    "init",    "init_gain",
                                        "norm",  "norm_type", "gate",     "gate_init", "dropout", "backskip"};
  for (size_t i = 0; i < sizeof general / sizeof *general; i++)
    if (strcmp(key, general[i]) == 0) return true;
  return false;
}

// Whether the norm of the given layers and that of the record's frozen ones are what they are without being written:
// then so is the new kind's, which for a layer without a mixer is another one.
static bool has_own_norm(const struct tarn__advice_memory *m, const tarn__advice_pair *pair,
                         const tarn__advice_kind *kind) {
  const tarn_norm usual = tarn__mixer_of(kind->frozen)->empty ? TARN_NORM_PRE : pair->config->model.norm;
  return kind->given->norm != m->config->model.norm || kind->frozen->norm != usual;
}

static tarn_status obstruct(const char **obstacle, struct tarn__advice_memory *m, const tarn__advice_kind *kind,
                            const char *key) {
  return tarn__arena_print(obstacle, &m->arena,
                           "in the record its frozen layers have another \"%s\" than its trained "
                           "ones (kinds.%s and kinds.%s)",
                           key, kind->frozen->name, kind->trained->name);
}

tarn_status tarn__advice_kind_map(tarn__advice_map *map, const char **obstacle, struct tarn__advice_memory *m,
                                  const tarn__advice_pair *pair, const tarn__advice_kind *kind) {
  const tarn__yaml_node *frozen = tarn__advice_kind_node(&pair->tree, kind->frozen->name);
  const tarn__yaml_node *trained = tarn__advice_kind_node(&pair->tree, kind->trained->name);
  const tarn__yaml_node *given = tarn__advice_kind_node(&m->tree, kind->given->name);
  bool same;
  *map = (tarn__advice_map){0};
  TARN_TRY(tarn__advice_same(&same, tarn__yaml_get(frozen, "mixer"), tarn__yaml_get(trained, "mixer")));
  for (const tarn__yaml_node *entry = given->first; entry; entry = entry->next)
    if ((same || tarn__advice_is_general(entry->key)) &&
        (strcmp(entry->key, "norm") != 0 || has_own_norm(m, pair, kind)))
      TARN_TRY(set_key(map, m, entry->key, entry));
  for (const tarn__yaml_node *entry = frozen->first; entry; entry = entry->next) {
    const tarn__yaml_node *other = tarn__yaml_get(trained, entry->key);
    TARN_TRY(tarn__advice_same(&same, entry, other));
    if (same) continue;
    if (other && is_size(entry->key) && !is_nothing(entry)) return obstruct(obstacle, m, kind, entry->key);
    TARN_TRY(set_key(map, m, entry->key, entry));
  }
  for (const tarn__yaml_node *entry = trained->first; entry; entry = entry->next)
    if (!tarn__yaml_get(frozen, entry->key)) TARN_TRY(set_key(map, m, entry->key, NULL));
  return TARN_STATUS_OK;
}

tarn_status tarn__advice_kind_text(const char **text, struct tarn__advice_memory *m, const tarn__advice_map *map,
                                   const char *name) {
  tarn__buffer out = {0};
  bool first = true;
  tarn__buffer_format(&out, "kinds.%s={", name);
  for (size_t i = 0; i < map->count; i++) {
    if (map->left[i]) continue;
    tarn__buffer_format(&out, "%s%s: %s", first ? " " : ", ", map->keys[i], map->values[i]);
    first = false;
  }
  tarn__buffer_add(&out, " }");
  return tarn__advice_keep(text, m, &out);
}
