// Forms: what of a variant is frozen or left out, and what else it changes.
#include <stdio.h>
#include <string.h>

#include "advice/advice_kinds.h"
#include "config/config_word.h"
#include "config/config_write.h"
#include "parts/block.h"

static const tarn_kind *kind_of(const tarn_config *config, const tarn_stack *stack, int32_t layer) {
  return &config->kinds[stack->layers[layer].kind];
}

static int32_t frozen_layers(const tarn_config *config, const tarn_stack *stack) {
  int32_t count = 0;
  for (int32_t i = 0; i < stack->count; i++) count += kind_of(config, stack, i)->frozen != TARN_FROZEN_NO;
  return count;
}

int32_t tarn__advice_partly(const tarn_stack *stack, const tarn_config *config) {
  int32_t count = 0;
  for (int32_t i = 0; i < stack->count; i++) {
    const tarn_kind *kind = kind_of(config, stack, i);
    const tarn__mixer_entry *mixer = tarn__mixer_of(kind);
    count += kind->frozen == TARN_FROZEN_NO && mixer->partly_frozen && mixer->partly_frozen(kind->mixer.keys);
  }
  return count;
}

static bool freezes_in_training(const tarn_config *config) {
  return config->train.freeze_count > 0 || config->train.autofreeze > 0;
}

bool tarn__advice_freezes(const tarn_config *config) {
  const tarn_stack *const stacks[] = {&config->encoder, &config->decoder};
  for (int s = 0; s < 2; s++)
    if (frozen_layers(config, stacks[s]) + tarn__advice_partly(stacks[s], config) > 0) return true;
  return config->model.frozen_embeddings != TARN_FROZEN_EMBEDDINGS_NONE || freezes_in_training(config);
}

bool tarn__advice_is_form(const tarn_config *config, const tarn_config *base) {
  const tarn_stack *const own[] = {&config->encoder, &config->decoder}, *const other[] = {&base->encoder,
                                                                                          &base->decoder};
  bool fewer = false;
  if (tarn__advice_freezes(config)) return true;
  for (int s = 0; s < 2; s++) {
    if (own[s]->count > other[s]->count || (own[s]->count == 0) != (other[s]->count == 0)) return false;
    fewer = fewer || own[s]->count < other[s]->count;
  }
  return fewer;
}

tarn_status tarn__advice_same_stack(bool *same, const tarn_config *a, const tarn_stack *in_a, const tarn_config *b,
                                    const tarn_stack *in_b) {
  char *one, *other;
  *same = in_a->count == 0 && in_b->count == 0;
  if (in_a->count != in_b->count || in_a->count == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__config_pattern(a, in_a, &one));
  const tarn_status status = tarn__config_pattern(b, in_b, &other);
  if (status == TARN_STATUS_OK) {
    *same = strcmp(one, other) == 0;
    tarn_config_text_close(&other);
  }
  tarn_config_text_close(&one);
  return status;
}

// --- what is frozen

// Keys in which a frozen kind differs from the trained layers beside it, apart from being frozen and from how its first
// values are drawn.
typedef struct kind_keys {
  tarn__buffer *out;
  const char *name;  // before the first key; NULL: there is only one kind
} kind_keys;

static tarn_status add_key(void *user, const char *key, const tarn__yaml_node *value, const tarn__yaml_node *base) {
  kind_keys *k = user;
  (void)base;
  if (!value || strcmp(key, "frozen") == 0 || strcmp(key, "init") == 0) return TARN_STATUS_OK;
  tarn__buffer_format(k->out, ", %s%s%s ", k->name ? k->name : "", k->name ? ": " : "", key);
  k->name = NULL;
  tarn__advice_value(k->out, value);
  return TARN_STATUS_OK;
}

static tarn_status add_kinds(tarn__buffer *out, const tarn__advice_pair *pair, const tarn_stack *stack) {
  const tarn_kind *trained = NULL;
  uint64_t frozen = 0;  // a bit a kind: there are at most 64
  for (int32_t i = 0; i < stack->count; i++) {
    const tarn_kind *kind = kind_of(pair->config, stack, i);
    if (kind->frozen != TARN_FROZEN_NO)
      frozen |= (uint64_t)1 << stack->layers[i].kind;
    else if (!trained)
      trained = kind;
  }
  for (int32_t k = 0; k < pair->config->kind_count && trained; k++) {
    const char *name = pair->config->kinds[k].name;
    kind_keys keys = {out, (frozen & (frozen - 1)) != 0 ? name : NULL};
    if ((frozen >> k & 1) == 0) continue;
    // Told whatever the trained layers have: their default is not that of frozen ones.
    if (pair->config->kinds[k].init != TARN_INIT_ORTHOGONAL) {
      tarn__buffer_format(out, ", %s%sinit %s", keys.name ? name : "", keys.name ? ": " : "",
                          tarn__config_word("kinds.NAME.init", (int)pair->config->kinds[k].init));
      keys.name = NULL;
    }
    TARN_TRY(tarn__advice_compare(tarn__advice_kind_node(&pair->tree, name),
                                  tarn__advice_kind_node(&pair->tree, trained->name), add_key, &keys));
  }
  return TARN_STATUS_OK;
}

static void begin(tarn__buffer *out) {
  if (out->used) tarn__buffer_add(out, "; ");
}

static tarn_status add_stack(tarn__buffer *out, const tarn__advice_pair *pair, const tarn_stack *stack,
                             const tarn_stack *base, const char *name) {
  char *pattern;
  const int32_t frozen = frozen_layers(pair->config, stack), partly = tarn__advice_partly(stack, pair->config);
  const int32_t fewer = base->count - stack->count;
  int32_t matrices = 0;
  for (int32_t i = 0; i < stack->count; i++)
    matrices += kind_of(pair->config, stack, i)->frozen == TARN_FROZEN_MATRICES;
  if (stack->count == 0 || (frozen == 0 && partly == 0 && fewer <= 0)) return TARN_STATUS_OK;
  TARN_TRY(tarn__config_pattern(pair->config, stack, &pattern));
  begin(out);
  if (frozen > 0)
    tarn__buffer_format(out, "%s%d of %d %s layers frozen", matrices == frozen ? "matrices of " : "", frozen,
                        stack->count, name);
  if (partly > 0)
    tarn__buffer_format(out, "%s%d of %d %s layers frozen in part", frozen > 0 ? ", " : "", partly, stack->count, name);
  if (fewer > 0)
    tarn__buffer_format(out, "%s%d of %d %s layers left out", frozen + partly > 0 ? ", " : "", fewer, base->count,
                        name);
  tarn__buffer_format(out, ": %s", pattern);
  tarn_config_text_close(&pattern);
  return frozen > 0 ? add_kinds(out, pair, stack) : TARN_STATUS_OK;
}

static tarn_status add_rest(tarn__buffer *out, const tarn__advice_pair *pair) {
  const tarn_config *c = pair->config;
  if (c->model.frozen_embeddings != TARN_FROZEN_EMBEDDINGS_NONE) {
    begin(out);
    tarn__buffer_format(out, "embeddings frozen: %s",
                        tarn__config_word("model.frozen_embeddings", (int)c->model.frozen_embeddings));
  }
  if (c->train.freeze_count > 0) {
    begin(out);
    tarn__buffer_add(out, "frozen during the training: ");
    tarn__advice_value(out, tarn__yaml_find(pair->tree.root, "train.freeze"));
  }
  if (c->train.autofreeze > 0) {
    begin(out);
    tarn__buffer_add(out, "encoder layers frozen by AutoFreeze");
  }
  return TARN_STATUS_OK;
}

// --- what else is changed

typedef struct others {
  const tarn__advice_pair *pair;
  tarn__buffer out;
} others;

static bool uses(const tarn_config *config, const char *kind, bool trained_only) {
  const tarn_stack *const stacks[] = {&config->encoder, &config->decoder};
  for (int s = 0; s < 2; s++)
    for (int32_t i = 0; i < stacks[s]->count; i++) {
      const tarn_kind *k = kind_of(config, stacks[s], i);
      if (strcmp(k->name, kind) == 0 && (k->frozen == TARN_FROZEN_NO || !trained_only)) return true;
    }
  return false;
}

// Keys that say what is frozen or left out, and those that are no part of a form.
static bool is_own(const tarn__advice_pair *pair, const char *key) {
  static const char *const own[] = {"encoder.layers",
                                    "decoder.layers",
                                    "encoder.layers_to_keep",
                                    "decoder.layers_to_keep",
                                    "train.seed",
                                    "train.seeds",
                                    "train.freeze",
                                    "train.autofreeze",
                                    "train.autofreeze_percentile",
                                    "train.cache_frozen",
                                    "model.frozen_embeddings"};
  char kind[TARN_CONFIG_KIND_NAME];
  for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
    const size_t length = strlen(own[i]);
    if (strncmp(key, own[i], length) == 0 && (key[length] == '.' || key[length] == '\0')) return true;
  }
  if (strncmp(key, "kinds.", 6) != 0) return false;
  snprintf(kind, sizeof kind, "%.*s", (int)strcspn(key + 6, "."), key + 6);
  return !uses(pair->config, kind, true);
}

// Whether the sweep has set the key to make sizes equal, or one below it.
static bool is_equalized(const tarn__advice_pair *pair, const char *key) {
  const size_t length = strlen(key);
  for (const char *at = pair->equalized; at; at = strstr(at, ", ")) {
    at += strncmp(at, ", ", 2) == 0 ? 2 : 0;
    if (strncmp(at, key, length) == 0 && at[length] == '=') return true;
  }
  return false;
}

// Whether the key, of a kind, comes with another mixer, which is told itself.
static tarn_status comes_with_mixer(bool *comes, const tarn__advice_pair *pair, const char *key) {
  char mixer[TARN_CONFIG_KIND_NAME + 16];
  const char *last = strncmp(key, "kinds.", 6) == 0 ? strchr(key + 6, '.') : NULL;
  *comes = false;
  if (!last || tarn__advice_is_general(last + 1)) return TARN_STATUS_OK;
  snprintf(mixer, sizeof mixer, "%.*s.mixer", (int)(last - key), key);
  bool same;
  TARN_TRY(
      tarn__advice_same(&same, tarn__yaml_find(pair->tree.root, mixer), tarn__yaml_find(pair->base_tree.root, mixer)));
  *comes = !same;
  return TARN_STATUS_OK;
}

// Of a map only its name is told: it may be long.
static tarn_status add_other(void *user, const char *key, const tarn__yaml_node *value, const tarn__yaml_node *base) {
  others *o = user;
  bool comes;
  (void)base;
  if (is_own(o->pair, key) || is_equalized(o->pair, key)) return TARN_STATUS_OK;
  TARN_TRY(comes_with_mixer(&comes, o->pair, key));
  if (comes) return TARN_STATUS_OK;
  tarn__buffer_format(&o->out, "%s%s", o->out.used ? ", " : "", key);
  if (!value || value->type != TARN__YAML_SCALAR) return TARN_STATUS_OK;
  tarn__buffer_add(&o->out, "=");
  tarn__advice_value(&o->out, value);
  return TARN_STATUS_OK;
}

static int32_t shared_trained(const tarn_config *config, const tarn_stack *stack) {
  int32_t count = 0;
  for (int32_t i = 0; i < stack->count; i++)
    count += stack->layers[i].first != i && kind_of(config, stack, i)->frozen == TARN_FROZEN_NO;
  return count;
}

// Layers that were added, of other kinds, or with other sharing.
static tarn_status add_other_layers(others *o, const tarn_stack *stack, const tarn_stack *base, const char *name) {
  const tarn_config *config = o->pair->config;
  char *pattern;
  bool other = stack->count > base->count || shared_trained(config, stack) != shared_trained(o->pair->base, base);
  for (int32_t i = 0; i < stack->count && !other; i++) {
    const tarn_kind *kind = kind_of(config, stack, i);
    other = kind->frozen == TARN_FROZEN_NO && !uses(o->pair->base, kind->name, false);
  }
  if (!other) return TARN_STATUS_OK;
  TARN_TRY(tarn__config_pattern(config, stack, &pattern));
  tarn__buffer_format(&o->out, "%s%s.layers=%s", o->out.used ? ", " : "", name, pattern);
  tarn_config_text_close(&pattern);
  return TARN_STATUS_OK;
}

tarn_status tarn__advice_describe(tarn_advice_form *form, struct tarn__advice_memory *m,
                                  const tarn__advice_pair *pair) {
  const tarn_config *c = pair->config, *b = pair->base;
  tarn__buffer what = {0};
  others o = {.pair = pair};
  form->freezes = tarn__advice_freezes(c);
  tarn_status status = add_stack(&what, pair, &c->encoder, &b->encoder, "encoder");
  if (status == TARN_STATUS_OK) status = add_stack(&what, pair, &c->decoder, &b->decoder, "decoder");
  if (status == TARN_STATUS_OK) status = add_rest(&what, pair);
  if (status == TARN_STATUS_OK) status = tarn__advice_keep(&form->what, m, &what);
  tarn__buffer_close(&what);
  if (status == TARN_STATUS_OK) status = add_other_layers(&o, &c->encoder, &b->encoder, "encoder");
  if (status == TARN_STATUS_OK) status = add_other_layers(&o, &c->decoder, &b->decoder, "decoder");
  if (status == TARN_STATUS_OK) status = tarn__advice_compare(pair->tree.root, pair->base_tree.root, add_other, &o);
  if (status == TARN_STATUS_OK) status = tarn__advice_keep(&form->also, m, &o.out);
  tarn__buffer_close(&o.out);
  return status;
}
