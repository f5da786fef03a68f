#include "config/config_transparent.h"

#include <stdio.h>

#include "task/task.h"

// Whether some layer of the decoder has cross-attention.
static bool attends(const tarn_config *config) {
  const tarn__task_stack *what = tarn__task_stack_of(tarn__config_task(config), TARN__STACK_DECODER);
  for (int32_t i = 0; what && what->attends && i < config->decoder.count; i++)
    if (tarn__mixer_of(&config->kinds[config->decoder.layers[i].kind])->attends) return true;
  return false;
}

tarn_status tarn__config_check_transparent(const tarn_config *config, const tarn__yaml_node *root) {
  static const char key[] = "decoder.transparent_attention";
  if (config->encoder.transparent_attention)
    return tarn__yaml_fail_key(root, "encoder.transparent_attention",
                               "is of the decoder, whose layers attend to those of the encoder; move it there");
  if (!config->decoder.transparent_attention) return TARN_STATUS_OK;
  if (!attends(config))
    return tarn__yaml_fail_key(root, key, "no layer of the decoder attends to an encoder; leave it out");
  if (config->train.cache_frozen)
    return tarn__yaml_fail_key(root, "train.cache_frozen",
                               "with decoder.transparent_attention the outputs of all layers of the encoder are read; "
                               "set it to no");
  return TARN_STATUS_OK;
}
