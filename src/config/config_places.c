// Checks of parts against their place.
#include <stdio.h>

#include "config/config_part.h"
#include "task/task.h"

static tarn_status fail_at(const tarn__part_site *site, const char *key, const char *text) {
  return tarn__yaml_fail_key(site->root, key, text);
}

// Resolves the parts among options, each followed by those that are keys of it. Keys of an entry are below its own key,
// or next to it.
static tarn_status resolve(const tarn__part_site *site, const tarn__option *options, int count, const void *structure) {
  for (int i = 0; i < count; i++) {
    if (options[i].type != TARN__OPTION_PART) continue;
    const tarn_part_use *use = (const tarn_part_use *)(const void *)((const char *)structure + options[i].offset);
    if (!use->part) continue;
    char path[112];
    tarn__part_site below = *site;
    snprintf(path, sizeof path, "%.70s.%.40s", site->path, options[i].name);
    if (!options[i].beside) below.path = path;
    if (use->part->resolve) TARN_TRY(use->part->resolve(&below, use->keys));
    TARN_TRY(resolve(&below, use->part->options, use->part->option_count, use->keys));
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__parts_resolve_model(const tarn_config *config, const tarn__yaml_node *root) {
  const tarn__section *section = tarn__config_section(TARN__SECTION_MODEL);
  const tarn__part_site site = {.model = &config->model, .path = section->path, .fail = fail_at, .root = root};
  return resolve(&site, section->options, section->count, &config->model);
}

tarn_status tarn__parts_resolve_kind(const tarn_config *config, const tarn_kind *kind, const tarn__yaml_node *root) {
  const tarn__section *section = tarn__config_section(TARN__SECTION_KINDS);
  char path[64];
  snprintf(path, sizeof path, "kinds.%s", kind->name);
  const tarn__part_site site = {.model = &config->model,
                                .kind = kind,
                                .in_encoder = tarn__stack_has(&config->encoder, config, kind) ||
                                              (tarn__task_reads_whole(tarn__config_task(config)) &&
                                               tarn__stack_has(&config->decoder, config, kind)),
                                .attends = tarn__config_crosses(config, kind),
                                .path = path,
                                .fail = fail_at,
                                .root = root};
  return resolve(&site, section->options, section->count, kind);
}

// A decoder must not see the tokens that it predicts.
static tarn_status check_decoder(const tarn_config *config, const tarn__yaml_node *root) {
  char words[TARN__PART_LIST];
  if (tarn__task_reads_whole(tarn__config_task(config))) return TARN_STATUS_OK;
  for (int32_t i = 0; i < config->decoder.count; i++) {
    const tarn_kind *kind = &config->kinds[config->decoder.layers[i].kind];
    if (tarn__mixer_of(kind)->causal) continue;
    return tarn__yaml_fail(tarn__yaml_nearest(root, "decoder.layers"),
                           "decoder.layers: layer %d is of kind %s, whose mixer %s reads later tokens too; it can "
                           "stand in the encoder only; in a decoder there are %s",
                           (int)i + 1, kind->name, kind->mixer.part->word,
                           tarn__part_list(words, TARN__TABLE_MIXER, tarn__part_is_causal, NULL));
  }
  return TARN_STATUS_OK;
}

// The lowest layer of the decoder that cannot decode token by token, or NULL.
static const tarn_kind *undecodable(const tarn_config *config) {
  if (tarn__task_reads_whole(tarn__config_task(config))) return NULL;
  for (int32_t i = 0; i < config->decoder.count; i++) {
    const tarn_kind *kind = &config->kinds[config->decoder.layers[i].kind];
    if (!tarn__mixer_of(kind)->decodes) return kind;
  }
  return NULL;
}

tarn_status tarn__config_check_decoding(const tarn_config *config) {
  char words[TARN__PART_LIST];
  const tarn_kind *kind = undecodable(config);
  if (!kind) return TARN_STATUS_OK;
  return tarn__fail(TARN_STATUS_USAGE,
                    "%s: kinds.%s.mixer: %s has no form for decoding token by token; mixers that have one are %s",
                    config->name, kind->name, kind->mixer.part->word,
                    tarn__part_list(words, TARN__TABLE_MIXER, tarn__part_decodes, NULL));
}

static bool compares_pairs(const tarn__part *part, const void *user) {
  (void)user;
  return ((const tarn__mixer_entry *)(const void *)part)->pairs;
}

// A scheme that only rotates queries and keys, or adds to their scores, would have no effect without any. Layers
// removed by layers_to_keep are included: a model stays valid when it is pruned.
static tarn_status check_compared(const tarn_config *config, const tarn__yaml_node *root) {
  const tarn_stack *stacks[] = {&config->encoder, &config->decoder};
  char words[TARN__PART_LIST];
  const tarn__position_entry *position = tarn__position_of(&config->model.positions);
  if (!position->turn && !position->bias && !position->biases && !position->relative) return TARN_STATUS_OK;
  for (int s = 0; s < 2; s++)
    for (int32_t i = 0; i < stacks[s]->depth; i++)
      if (tarn__mixer_of(&config->kinds[stacks[s]->pattern[i].kind])->pairs) return TARN_STATUS_OK;
  return tarn__yaml_fail(tarn__yaml_nearest(root, "model.positions"),
                         "model.positions: %s %s queries and keys, and no layer has any; mixers that have them: %s",
                         position->part.word, position->turn ? "turns" : "adds to the scores of",
                         tarn__part_list(words, TARN__TABLE_MIXER, compares_pairs, NULL));
}

bool tarn__config_biases(const tarn_config *config, tarn__stack_id id, int64_t *heads, bool *trained) {
  const tarn_stack *stack = tarn__config_stack(config, id);
  *heads = 0;
  *trained = false;
  for (int32_t i = 0; tarn__position_of(&config->model.positions)->declare_biases && i < stack->depth; i++) {
    const tarn_kind *kind = &config->kinds[stack->pattern[i].kind];
    const tarn__mixer_entry *mixer = tarn__mixer_of(kind);
    if (!mixer->pairs || !mixer->heads) continue;
    if (*heads == 0) *heads = mixer->heads(kind->mixer.keys);
    *trained |= kind->frozen != TARN_FROZEN_YES;
  }
  return *heads > 0;
}

// Layers that share a table of per-head biases must have the same number of heads.
static tarn_status check_shared(const tarn_config *config, const tarn__yaml_node *root, tarn__stack_id id) {
  const tarn_stack *stack = tarn__config_stack(config, id);
  const char *word = config->model.positions.part->word;
  int64_t heads;
  bool trained;
  char key[128];
  if (!tarn__config_biases(config, id, &heads, &trained)) return TARN_STATUS_OK;
  for (int32_t i = 0; i < stack->depth; i++) {
    const tarn_kind *kind = &config->kinds[stack->pattern[i].kind];
    const tarn__mixer_entry *mixer = tarn__mixer_of(kind);
    if (!mixer->pairs || (mixer->heads && mixer->heads(kind->mixer.keys) == heads)) continue;
    snprintf(key, sizeof key, "kinds.%s.%s", kind->name, mixer->heads ? "heads" : "mixer");
    if (!mixer->heads)
      return tarn__yaml_fail(tarn__yaml_nearest(root, key), "%s: %s cannot add the biases of model.positions %s", key,
                             mixer->part.word, word);
    return tarn__yaml_fail(tarn__yaml_nearest(root, key),
                           "%s: there are %lld, but with model.positions %s all layers of the %s share biases by head, "
                           "and the first of them has %lld",
                           key, (long long)mixer->heads(kind->mixer.keys), word, tarn__stack_name(id),
                           (long long)heads);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__parts_check_places(const tarn_config *config, const tarn__yaml_node *root) {
  TARN_TRY(check_decoder(config, root));
  TARN_TRY(check_compared(config, root));
  for (int id = 0; id < TARN__STACKS; id++) TARN_TRY(check_shared(config, root, (tarn__stack_id)id));
  return config->valid.bleu ? tarn__parts_check_bleu(config, root, "valid") : TARN_STATUS_OK;
}

tarn_status tarn__parts_check_bleu(const tarn_config *config, const tarn__yaml_node *root, const char *path) {
  char key[192];
  const tarn_kind *kind = undecodable(config);
  if (!kind) return TARN_STATUS_OK;
  snprintf(key, sizeof key, "%s.bleu", path);
  return tarn__yaml_fail(tarn__yaml_nearest(root, key),
                         "%s: the mixer %s of kind %s has no form for decoding token by token; set it to no", key,
                         kind->mixer.part->word, kind->name);
}
