#include "config/config_funnel.h"

#include <stdio.h>

#include "task/task.h"

static const char POOL[] = "encoder.pool_after", UPSAMPLE[] = "encoder.upsample_after";

static tarn_status check_depths(const tarn_stack *stack, const tarn__yaml_node *root) {
  char text[160];
  int64_t last = 0;
  for (int64_t i = 0; i < stack->pool_count; i++) {
    const int64_t depth = stack->pool_after[i];
    snprintf(text, sizeof text, "layers 1 to %d of %d, ascending, are expected, not %lld", (int)stack->count - 1,
             (int)stack->count, (long long)depth);
    if (depth <= last || depth >= stack->count) return tarn__yaml_fail_key(root, POOL, text);
    last = depth;
  }
  snprintf(text, sizeof text, "a layer above the last pooling, %lld to %d, is expected, not %lld", (long long)last + 1,
           (int)stack->count, (long long)stack->upsample_after);
  if (stack->upsample_after > 0 && (stack->upsample_after <= last || stack->upsample_after > stack->count))
    return tarn__yaml_fail_key(root, UPSAMPLE, text);
  return TARN_STATUS_OK;
}

static tarn_status check_others(const tarn_config *config, const tarn__yaml_node *root) {
  const tarn_stack *stack = &config->encoder;
  if (stack->keep_count > 0)
    return tarn__yaml_fail_key(root, "encoder.layers_to_keep",
                               "would move the layers that encoder.pool_after names; leave one of the keys out");
  if (stack->step_embeddings || stack->act_threshold > 0)
    return tarn__yaml_fail_key(root, POOL, "the steps of a Universal Transformer are of equal rows; leave it out");
  if (config->decoder.transparent_attention)
    return tarn__yaml_fail_key(root, POOL,
                               "decoder.transparent_attention adds up the outputs of all layers of the encoder, and "
                               "those behind a pooling have other rows");
  if (config->train.cache_frozen)
    return tarn__yaml_fail_key(root, "train.cache_frozen",
                               "its outputs are those of tokens, and encoder.pool_after pools them; set it to no");
  return TARN_STATUS_OK;
}

tarn_status tarn__config_check_funnel(const tarn_config *config, const tarn__yaml_node *root) {
  const tarn_stack *stack = &config->encoder;
  const tarn__task *task = tarn__config_task(config);
  char text[TARN__TASK_TEXT + 128];
  if (config->decoder.pool_count > 0)
    return tarn__yaml_fail_key(root, "decoder.pool_after",
                               "a pooled row would see the token behind it; rows are pooled in an encoder only");
  if (config->decoder.upsample_after > 0)
    return tarn__yaml_fail_key(root, "decoder.upsample_after", "rows are pooled in an encoder only; leave it out");
  if (stack->pool_count == 0 && stack->upsample_after == 0) return TARN_STATUS_OK;
  if (stack->pool_count == 0)
    return tarn__yaml_fail_key(root, UPSAMPLE, "no rows are pooled; set encoder.pool_after, or leave it out");
  TARN_TRY(check_depths(stack, root));
  TARN_TRY(check_others(config, root));
  if (stack->upsample_after > 0 || task->labelled == TARN__LABELLED_SENTENCES) return TARN_STATUS_OK;
  snprintf(text, sizeof text,
           "%s needs a row for every token behind the encoder; set %s to a layer above the last pooling", task->model,
           UPSAMPLE);
  return tarn__yaml_fail_key(root, POOL, text);
}
