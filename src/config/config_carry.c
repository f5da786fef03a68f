#include "config/config_carry.h"

#include <stdio.h>

#include "parts/block.h"
#include "task/task.h"

tarn_status tarn__config_check_carry(const tarn_config *config, const tarn__yaml_node *root) {
  static const char key[] = "train.carry_state";
  char text[TARN__TASK_TEXT + 96];
  const tarn__task *task = tarn__config_task(config);
  // The task whose sets of sentences can be one long text.
  if (!(task->uses >> TARN__USE_CONTINUE_TEXT & 1u)) {
    snprintf(text, sizeof text, "states are carried through the text of a language model; this is %s", task->model);
    return tarn__yaml_fail_key(root, key, text);
  }
  bool any = false;
  for (int32_t i = 0; i < config->decoder.count && !any; i++)
    any = tarn__mixer_of(&config->kinds[config->decoder.layers[i].kind])->sequential;
  if (!any)
    return tarn__yaml_fail_key(root, key,
                               "no layer has a state to carry: none of the decoder is recurrent (mixer gru, lstm or "
                               "esn), and all others see their window alone; leave it out");
  if (config->decoder.layerdrop > 0)
    return tarn__yaml_fail_key(root, "decoder.layerdrop",
                               "train.carry_state needs every layer in every step, to read on from its state; set it "
                               "to 0");
  return TARN_STATUS_OK;
}
