#include "config/architecture.h"

#include <stdio.h>

#include "base/status.h"
#include "task/task.h"

// The requested task must be one for the stacks present.
static tarn_status resolve_task(tarn_config *config, const tarn__yaml_node *root, const tarn__task *usual) {
  int *task = &config->model.task;
  char text[256];
  if (*task == TARN__LEARNS_COUNT) *task = (int)usual->task;
  if (tarn__config_task(config)) return TARN_STATUS_OK;
  int used = snprintf(text, sizeof text, "%s is learnt by", tarn_task_word(*task));
  const tarn__task *other;
  const char *separator = "";
  for (int i = 0; (other = tarn__task_at(i)) != NULL; i++)
    if ((int)other->task == *task) {
      used += snprintf(text + used, sizeof text - (size_t)used, "%s %s", separator,
                       tarn__architecture_text(other->architecture));
      separator = " or";
    }
  snprintf(text + used, sizeof text - (size_t)used, "; this is %s", tarn__architecture_text(usual->architecture));
  return tarn__yaml_fail_key(root, "model.task", text);
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
  if (found->architecture != *architecture)
    return tarn__yaml_fail_key(root, "model.architecture", tarn__task_usual(*architecture)->other_stacks);
  return resolve_task(config, root, found);
}
