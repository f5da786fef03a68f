#include "config/config_share.h"

#include <stdio.h>
#include <string.h>

#include "config/pattern.h"

static bool has_set(const tarn_layer *layers, int32_t count, const char *set) {
  for (int32_t i = 0; i < count; i++)
    if (strcmp(layers[i].set, set) == 0) return true;
  return false;
}

int32_t tarn__config_shared_layer(const tarn_config *config, const tarn_layer *layer) {
  const tarn_stack *encoder = &config->encoder;
  if (!config->model.share_stacks || tarn__pattern_is_bare(layer->set)) return -1;
  for (int32_t i = 0; i < encoder->count; i++)
    if (strcmp(encoder->layers[i].set, layer->set) == 0) return i;
  return -1;
}

tarn_status tarn__config_check_share(const tarn_config *config, const tarn__yaml_node *root) {
  static const char key[] = "model.share_stacks";
  const tarn_stack *encoder = &config->encoder, *decoder = &config->decoder;
  char text[256];
  bool any = false;
  if (!config->model.share_stacks) return TARN_STATUS_OK;
  if (encoder->count == 0 || decoder->count == 0)
    return tarn__yaml_fail_key(root, key, "there is one stack; set it to no");
  for (int32_t i = 0; i < decoder->depth; i++) {
    const char *set = decoder->pattern[i].set;
    if (tarn__pattern_is_bare(set) || !has_set(encoder->pattern, encoder->depth, set)) continue;
    any = true;
    if (!has_set(decoder->layers, decoder->count, set) || has_set(encoder->layers, encoder->count, set)) continue;
    snprintf(text, sizeof text, "leaves out %s, whose weights the decoder shares (model.share_stacks)", set);
    return tarn__yaml_fail_key(root, "encoder.layers_to_keep", text);
  }
  if (!any)
    return tarn__yaml_fail_key(root, key,
                               "encoder and decoder name no set in common, such as L1 in the patterns of both");
  if (config->train.autofreeze > 0)
    return tarn__yaml_fail_key(root, "train.autofreeze",
                               "freezes layers of the encoder, and the decoder shares some (model.share_stacks)");
  return TARN_STATUS_OK;
}
