#include "train/freeze.h"

#include <string.h>

#include "base/memory.h"
#include "model/config_freeze.h"

static void stop(const tarn__model *model, const char *name) {
  for (size_t i = 0; i < model->param_count; i++) {
    tarn__param *param = model->params[i];
    if (param->trained && tarn__freeze_covers(name, param->name)) param->stopped = true;
  }
}

void tarn__freeze_apply(const tarn__model *model, int64_t update) {
  const tarn_config_train *train = &model->config->train;
  for (int64_t i = 0; i < train->freeze_count; i++)
    if (train->freeze[i].at <= update) stop(model, train->freeze[i].layers);
}

static bool is_due(const tarn_config_train *train, const char *part, int64_t update) {
  for (int64_t i = 0; i < train->freeze_count; i++)
    if (train->freeze[i].at == update && tarn__freeze_covers(train->freeze[i].layers, part)) return true;
  return false;
}

tarn_status tarn__freeze_due(char **names, const tarn_config *config, int64_t update) {
  char *text = NULL;
  size_t used = 0;
  size_t capacity = 0;
  int at = 0;
  tarn__freeze_part part;
  tarn_status status = TARN_STATUS_OK;
  while (status == TARN_STATUS_OK && tarn__freeze_next(config, &at, &part)) {
    if (!part.trained || !is_due(&config->train, part.name, update)) continue;
    size_t length = strlen(part.name);
    status = tarn__grow(&text, &capacity, used + length + 2, 1);
    if (status != TARN_STATUS_OK) break;
    if (used) text[used++] = ' ';
    memcpy(text + used, part.name, length + 1);
    used += length;
  }
  if (status != TARN_STATUS_OK) {
    tarn__free(text);
    text = NULL;
  }
  *names = text;
  return status;
}
