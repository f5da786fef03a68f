// The registry: a line per entry.
#include <stdio.h>
#include <string.h>

#include "task/task.h"

static const tarn__task *const tasks[] = {&tarn__task_translation, &tarn__task_language_model};
enum { TASKS = sizeof tasks / sizeof *tasks };

const tarn__task *tarn__task_of(tarn_architecture architecture) {
  for (int i = 0; i < TASKS; i++)
    if (tasks[i]->architecture == architecture) return tasks[i];
  return NULL;
}

bool tarn__task_has(const tarn__task *task, tarn_metric metric) { return (task->measures >> metric & 1u) != 0; }

tarn_status tarn__task_require(const tarn_config *config, tarn__use use, const char *path) {
  static const char *const verbs[] = {[TARN__USE_TRANSLATE] = "translate",
                                      [TARN__USE_SCORE_TEXT] = "score single sentences",
                                      [TARN__USE_CONTINUE_TEXT] = "continue text"};
  const tarn__task *task = tarn__config_task(config), *other = task;
  if (task->uses >> use & 1u) return TARN_STATUS_OK;
  TARN_REQUIRE(path, USAGE, "%s does not %s", task->model, verbs[use]);
  for (int i = 0; i < TASKS; i++)
    if (tasks[i]->uses >> use & 1u) other = tasks[i];
  return tarn__fail(TARN_STATUS_USAGE, "%s: %s does not %s; only %s do", path, task->model, verbs[use], other->models);
}

tarn_status tarn__task_check_metric(const tarn__task *task, tarn_metric metric, const tarn__task_keys *keys) {
  char text[256];
  if (tarn__task_has(task, metric)) return TARN_STATUS_OK;
  int used = snprintf(text, sizeof text, "%s has no %s; its measures are", task->model, tarn_measure_of(metric)->word);
  const char *separator = " ";
  for (int m = 0; m < TARN_METRIC_COUNT; m++) {
    if (!tarn__task_has(task, (tarn_metric)m)) continue;
    used += snprintf(text + used, sizeof text - (size_t)used, "%s%s", separator, tarn_measure_of((tarn_metric)m)->word);
    separator = ", ";
  }
  return keys->fail(keys->root, "valid.metric", text);
}
