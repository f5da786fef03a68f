#include "config/architecture.h"

#include "base/status.h"
#include "task/task.h"

static const char KEY[] = "model.architecture";

tarn_status tarn__config_check_architecture(const tarn_config *config, const tarn__yaml_node *root) {
  const tarn_architecture architecture = config->model.architecture;
  if (architecture == TARN_ARCHITECTURE_COUNT || tarn__task_of(architecture)) return TARN_STATUS_OK;
  return tarn__yaml_fail_key(root, KEY, "nothing is learnt by an encoder alone yet; choose encoder-decoder or decoder");
}

tarn_status tarn__config_resolve_architecture(tarn_config *config, const tarn__yaml_node *root) {
  tarn_architecture *architecture = &config->model.architecture;
  unsigned stacks = 0;
  for (int id = 0; id < TARN__STACKS; id++)
    stacks |= tarn__config_stack(config, (tarn__stack_id)id)->count > 0 ? 1u << id : 0;
  const tarn__task *found = tarn__task_with(stacks);
  if (!found) {
    const char *missing = tarn__stack_name(tarn__task_missing(stacks));
    const tarn__yaml_node *section = tarn__yaml_get(root, missing);
    return tarn__yaml_fail(section ? section : root, "%s.layers is missing", missing);
  }
  if (*architecture == TARN_ARCHITECTURE_COUNT) *architecture = found->architecture;
  return found->architecture == *architecture ? TARN_STATUS_OK
                                              : tarn__yaml_fail_key(root, KEY, tarn__config_task(config)->other_stacks);
}
