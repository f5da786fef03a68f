// Failures that end training.
#include <stdio.h>

#include "parts/block.h"
#include "task/task.h"
#include "train/trainer.h"

// After this many updates a large loss is no longer due to a bad start.
enum { WARM = 100 };

// Advice from the mixer of one of the model's layers about divergence; NULL: none.
static const char *advice(const tarn_config *config) {
  for (int id = 0; id < TARN__STACKS; id++) {
    const tarn_stack *stack = tarn__config_stack(config, (tarn__stack_id)id);
    for (int32_t i = 0; i < stack->count; i++) {
      const char *explodes = tarn__mixer_of(&config->kinds[stack->layers[i].kind])->explodes;
      if (explodes) return explodes;
    }
  }
  return NULL;
}

tarn_status tarn__train_fail(const tarn_train *t, int64_t update, const char *what, const char *is) {
  const bool best = t->progress.best_update > 0;
  const char *also = advice(t->config);
  return tarn__fail(
      TARN_STATUS_NUMERIC,
      "%s is %s at update %lld; the last checkpoint is %s%s%s. A lower train.lr, a longer train.warmup or "
      "train.clip_norm can help%s%s",
      what, is, (long long)update, t->dir.last, best ? ", the best " : "", best ? t->dir.best : "", also ? "; " : "",
      also ? also : "");
}

static bool diverged(const tarn_train *t, char is[TARN__TASK_TEXT], double watched) {
  return tarn__config_task(t->config)->diverged(is, watched, t->model->target_vocab);
}

double tarn__train_watched(const tarn_train *t) {
  return t->session.validation.scores[tarn__config_task(t->config)->watched];
}

bool tarn__train_has_diverged(const tarn_train *t, double watched) {
  char is[TARN__TASK_TEXT];
  return diverged(t, is, watched);
}

tarn_status tarn__train_check_diverged(const tarn_train *t, int64_t update, const char *what, double watched) {
  char is[TARN__TASK_TEXT], text[96];
  if (!diverged(t, is, watched)) return TARN_STATUS_OK;
  snprintf(text, sizeof text, "the training has diverged: the %s", what);
  return tarn__train_fail(t, update, text, is);
}

tarn_status tarn__train_check_loss(const tarn_train *t, int64_t update, double watched) {
  return update <= WARM ? TARN_STATUS_OK : tarn__train_check_diverged(t, update, "loss", watched);
}
