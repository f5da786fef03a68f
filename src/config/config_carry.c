#include "config/config_carry.h"

#include <stdio.h>

#include "config/config_part.h"
#include "parts/block.h"
#include "task/task.h"

bool tarn__config_reads_tracks(const tarn_config *config) { return config->train.carry_state; }

// Layers of the stack must not have features that are redrawn.
static tarn_status check_redraw(const tarn_config *config, const tarn_stack *stack, const tarn__yaml_node *root,
                                const char *with) {
  char key[TARN_CONFIG_KIND_NAME + 32], text[160];
  for (int32_t i = 0; i < stack->count; i++) {
    const tarn_kind *kind = &config->kinds[stack->layers[i].kind];
    double redraw;
    if (!tarn__kind_number(kind, "redraw", &redraw) || redraw <= 0) continue;
    snprintf(key, sizeof key, "kinds.%s.redraw", kind->name);
    snprintf(text, sizeof text, "must be 0 with %s", with);
    return tarn__yaml_fail_key(root, key, text);
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__config_check_average(const tarn_config *config, const tarn__yaml_node *root) {
  static const char with[] = "train.average, whose checkpoints would have learnt for other features each";
  if (config->train.average < 2) return TARN_STATUS_OK;
  TARN_TRY(check_redraw(config, &config->encoder, root, with));
  return check_redraw(config, &config->decoder, root, with);
}

tarn_status tarn__config_check_carry(const tarn_config *config, const tarn__yaml_node *root) {
  static const char key[] = "train.carry_state";
  char text[TARN__TASK_TEXT + 96];
  const tarn__task *task = tarn__config_task(config);
  // Only this task has sets that can be one long text.
  if (!(task->uses >> TARN__USE_CONTINUE_TEXT & 1u)) {
    snprintf(text, sizeof text, "states are carried through the text of a language model; this is %s", task->model);
    return tarn__yaml_fail_key(root, key, text);
  }
  bool any = false;
  for (int32_t i = 0; i < config->decoder.count && !any; i++)
    any = tarn__mixer_of(&config->kinds[config->decoder.layers[i].kind])->sequential;
  if (!any)
    return tarn__yaml_fail_key(root, key,
                               "no layer has a state to carry: the decoder has no recurrent layer (mixer gru, lstm, "
                               "esn, linear_attention or performer); leave this key out");
  TARN_TRY(check_redraw(config, &config->decoder, root,
                        "train.carry_state, whose states are sums of the features that they were made with"));
  if (config->decoder.layerdrop > 0)
    return tarn__yaml_fail_key(root, "decoder.layerdrop",
                               "must be 0 with train.carry_state, which needs the states of all layers from every "
                               "step");
  return TARN_STATUS_OK;
}
