#include "config/config_steps.h"

#include <stdio.h>
#include <string.h>

#include "task/task.h"

static bool repeats_every(const tarn_stack *stack, int period) {
  if (stack->count % period != 0) return false;
  for (int32_t i = period; i < stack->count; i++)
    if (strcmp(stack->layers[i].set, stack->layers[i - period].set) != 0) return false;
  return true;
}

int tarn__config_step_layers(const tarn_stack *stack) {
  for (int period = 1; period < stack->count; period++)
    if (repeats_every(stack, period)) return period;
  return 0;
}

static tarn_status check_stack(const tarn_config *config, tarn__stack_id id, const tarn__yaml_node *root) {
  const tarn_stack *stack = tarn__config_stack(config, id);
  const char *name = tarn__stack_name(id), *word = stack->step_embeddings ? "step_embeddings" : "act_threshold";
  char key[64], text[224];
  snprintf(key, sizeof key, "%s.act_loss_weight", name);
  // Its default may stand there, as in a resolved description.
  if (stack->act_threshold == 0 && stack->act_loss_weight != 0.01 && !tarn__yaml_is_empty(tarn__yaml_find(root, key)))
    return tarn__yaml_fail_key(root, key,
                               "weighs the steps that rows run with act_threshold, which is 0; leave it out");
  if (!stack->step_embeddings && stack->act_threshold == 0) return TARN_STATUS_OK;
  snprintf(key, sizeof key, "%s.%s", name, word);
  if (tarn__config_step_layers(stack) == 0) {
    snprintf(text, sizeof text,
             "the layers of %s.layers are no steps: name one sequence of sets several times, as in L1*6 or (A1 B1)*3",
             name);
    return tarn__yaml_fail_key(root, key, text);
  }
  if (stack->step_embeddings && config->model.d_model % 2 != 0)
    return tarn__yaml_fail_key(root, key, "its sinusoids need an even model.d_model");
  if (stack->act_threshold > 0 && config->train.cache_frozen)
    return tarn__yaml_fail_key(
        root, "train.cache_frozen",
        "with act_threshold the output of the encoder is a sum over all its steps; set it to no");
  return TARN_STATUS_OK;
}

tarn_status tarn__config_check_steps(const tarn_config *config, const tarn__yaml_node *root) {
  TARN_TRY(check_stack(config, TARN__STACK_ENCODER, root));
  return check_stack(config, TARN__STACK_DECODER, root);
}
