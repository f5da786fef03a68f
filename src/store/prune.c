#include "store/prune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"

enum { OVERRIDE_TEXT = 64 + 5 * TARN_CONFIG_LAYERS };

// The present layers of a stack's whole pattern.
static void mark_present(bool *present, const tarn_stack *stack) {
  for (int32_t i = 0; i < stack->depth; i++) present[i] = stack->keep_count == 0;
  for (int64_t i = 0; i < stack->keep_count; i++) present[stack->layers_to_keep[i] - 1] = true;
}

// Reads "1,3,5" into flags.
static tarn_status read_list(bool *keep, const tarn_stack *stack, const char *name, const bool *present,
                             const char *text) {
  const char *at = text;
  for (;;) {
    size_t digits = strspn(at, "0123456789");
    TARN_REQUIRE(digits > 0 && (at[digits] == ',' || at[digits] == 0), USAGE,
                 "layers to keep are depths from 1 with commas between them, such as 1,3,5, not \"%.60s\"", text);
    long depth = digits < 6 ? strtol(at, NULL, 10) : 0;
    TARN_REQUIRE(depth >= 1 && depth <= stack->depth, USAGE, "there is no layer %.*s: the %s has layers 1 to %d",
                 (int)(digits < 20 ? digits : 20), at, name, (int)stack->depth);
    TARN_REQUIRE(present[depth - 1], USAGE, "layer %ld of the %s was left out before", depth, name);
    keep[depth - 1] = true;
    if (at[digits] == 0) return TARN_STATUS_OK;
    at += digits + 1;
  }
}

static void write_override(char text[OVERRIDE_TEXT], const char *name, const bool *keep, int32_t depth) {
  size_t used = (size_t)snprintf(text, OVERRIDE_TEXT, "%s.layers_to_keep=[", name);
  const char *comma = "";
  for (int32_t i = 0; i < depth; i++) {
    if (!keep[i]) continue;
    used += (size_t)snprintf(text + used, OVERRIDE_TEXT - used, "%s%d", comma, (int)i + 1);
    comma = ",";
  }
  snprintf(text + used, OVERRIDE_TEXT - used, "]");
}

// Writes the override for one stack; an empty text if it stays unchanged.
static tarn_status prune_stack(char text[OVERRIDE_TEXT], const tarn_stack *stack, const char *name, const char *list,
                               double rate) {
  bool present[TARN_CONFIG_LAYERS] = {false};
  bool keep[TARN_CONFIG_LAYERS] = {false};
  text[0] = 0;
  mark_present(present, stack);
  if (list) {
    TARN_TRY(read_list(keep, stack, name, present, list));
  } else if (rate > 0) {
    int32_t every = (int32_t)fmin(floor(1.0 / rate), TARN_CONFIG_LAYERS + 1);
    for (int32_t i = 0; i < stack->depth; i++) keep[i] = present[i] && (i + 1) % every != 0;
  } else {
    return TARN_STATUS_OK;
  }
  int32_t left = 0;
  for (int32_t i = 0; i < stack->depth; i++) left += keep[i];
  TARN_REQUIRE(left > 0 || stack->depth == 0, USAGE, "no layer of the %s would be left", name);
  if (left < stack->count) write_override(text, name, keep, stack->depth);
  return TARN_STATUS_OK;
}

static int32_t trained_layers(const tarn_config *config, const tarn_stack *stack) {
  int32_t count = 0;
  for (int32_t i = 0; i < stack->count; i++) count += config->kinds[stack->layers[i].kind].frozen == TARN_FROZEN_NO;
  return count;
}

// A rate drops layers at regular distances, so with alternating layers perhaps all trained ones.
static void warn_of_untrained(const tarn_stack *before, const tarn_config *whole, const tarn_stack *after,
                              const tarn_config *pruned, const char *name) {
  if (trained_layers(whole, before) > 0 && trained_layers(pruned, after) == 0)
    tarn__log(TARN_LOG_WARNING, "no trained layer of the %s is left", name);
}

tarn_status tarn__prune_config(tarn_config **config, const char *text, const tarn_prune *prune) {
  char overrides[2][OVERRIDE_TEXT];
  // Only a training has a cache, whose data may be gone.
  const char *given[3] = {"train.cache_frozen=no"};
  size_t count = 1;
  TARN_REQUIRE(prune->rate >= 0 && prune->rate <= 0.5, USAGE, "the rate of pruning is 0 to 0.5, not %g", prune->rate);
  const tarn_config *c = *config;
  TARN_TRY(prune_stack(overrides[0], &c->encoder, "encoder", prune->encoder_layers_to_keep, prune->rate));
  TARN_TRY(prune_stack(overrides[1], &c->decoder, "decoder", prune->decoder_layers_to_keep, prune->rate));
  for (int i = 0; i < 2; i++)
    if (overrides[i][0]) given[count++] = overrides[i];
  if (count == 1) return TARN_STATUS_OK;
  tarn_config *pruned;
  TARN_TRY(tarn_config_parse(&pruned, c->name, text, strlen(text), given, count));
  warn_of_untrained(&c->encoder, c, &pruned->encoder, pruned, "encoder");
  warn_of_untrained(&c->decoder, c, &pruned->decoder, pruned, "decoder");
  tarn_config_close(config);
  *config = pruned;
  return TARN_STATUS_OK;
}
