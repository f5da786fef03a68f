// One optimiser step: gradients of the batches of an update, their norm, the update.
#include <math.h>

#include "base/clock.h"
#include "graph/profile.h"
#include "train/schedule.h"
#include "train/trainer.h"

// Batches of the next update: train.accumulate, but an update never reaches into the next epoch.
static int64_t batches_of_update(const tarn_train *t) {
  int64_t left = tarn__batcher_batches(t->batcher) - t->progress.index;
  return left < t->config->train.accumulate ? left : t->config->train.accumulate;
}

// The loss is the mean over the target tokens of the whole update, so they are counted before the first batch.
static tarn_status count_targets(tarn_train *t, int64_t batches, int64_t *tokens) {
  *tokens = 0;
  for (int64_t b = 0; b < batches; b++) {
    tarn__batch batch;
    tarn__batcher_next(t->batcher, &batch);
    *tokens += batch.target_rows;
  }
  return tarn__batcher_seek(t->batcher, t->progress.epoch, t->progress.index);
}

static tarn_status fail_numeric(const tarn_train *t, const char *what) {
  const tarn__progress *p = &t->progress;
  return tarn__fail(TARN_STATUS_NUMERIC,
                    "%s is not a finite number at update %lld; the last good checkpoint is %s. A lower train.lr, a "
                    "longer train.warmup or train.clip_norm can help",
                    what, (long long)p->update + 1, t->dir.last);
}

// Gradients of all batches; their sums are added to *next.
static tarn_status add_gradients(tarn_train *t, tarn__progress *next, int64_t batches, tarn__stepper_loss *sum,
                                 int64_t *targets) {
  tarn__batch batch;
  *sum = (tarn__stepper_loss){0};
  *targets = 0;
  if (batches > 1) TARN_TRY(count_targets(t, batches, targets));
  for (int64_t b = 0; b < batches; b++) {
    tarn__stepper_loss loss;
    double begin = tarn__profile_clock(t->profile);
    tarn__batcher_next(t->batcher, &batch);
    TARN_TRY(tarn__profile_work(t->profile, "batches", begin));
    if (batches == 1) *targets = batch.target_rows;
    t->stepper.grad_scale = 1.0 / (double)*targets;
    TARN_TRY(tarn__stepper_train(&t->stepper, &loss, &batch, next->batches++));
    if (!isfinite(loss.loss)) return fail_numeric(t, "the loss");
    sum->loss += loss.loss;
    sum->nll += loss.nll;
    next->source_tokens += batch.source_rows;
    next->window_source += batch.source_rows;
  }
  next->target_tokens += *targets;
  next->window_target += *targets;
  return TARN_STATUS_OK;
}

// Scale of the gradients: train.clip_norm as PyTorch's clip_grad_norm_() applies it.
static double clip_factor(double norm, double limit) {
  if (limit <= 0) return 1.0;
  double factor = limit / (norm + 1e-6);
  return factor < 1.0 ? factor : 1.0;
}

// Nothing is changed unless the norm is finite.
static tarn_status optimise(tarn_train *t, int64_t step, double rate, double *norm) {
  const tarn_config_train *config = &t->config->train;
  tarn__param *const *params = t->model->params;
  double begin = tarn__profile_clock(t->profile);
  *norm = tarn__grad_norm(params, t->model->param_count, t->threads);
  TARN_TRY(tarn__profile_work(t->profile, "norm of the gradients", begin));
  if (!isfinite(*norm)) return fail_numeric(t, "the norm of the gradients");
  tarn__adam_options options = {.learning_rate = rate,
                                .beta1 = config->beta1,
                                .beta2 = config->beta2,
                                .epsilon = config->eps,
                                .weight_decay = config->weight_decay,
                                .decoupled = config->optimiser == TARN_OPTIMISER_ADAMW};
  begin = tarn__profile_clock(t->profile);
  tarn__adam_step(params, t->model->param_count, &options, step, clip_factor(*norm, config->clip_norm), t->threads);
  return tarn__profile_work(t->profile, "optimiser", begin);
}

tarn_status tarn__train_step(tarn_train *t, tarn__train_update_result *result) {
  double begin = tarn__seconds();
  tarn__progress next = t->progress;
  tarn__stepper_loss sum;
  int64_t targets;
  for (size_t i = 0; i < t->model->param_count; i++) t->model->params[i]->grad_written = false;
  TARN_TRY(add_gradients(t, &next, batches_of_update(t), &sum, &targets));
  result->rate = tarn__schedule_rate(&t->config->train, next.update + 1);
  TARN_TRY(optimise(t, next.update + 1, result->rate, &result->norm));
  tarn__batcher_position(t->batcher, &next.epoch, &next.index);
  next.update++;
  next.loss_sum += sum.loss;
  next.nll_sum += sum.nll;
  next.norm_sum += result->norm;
  next.window_updates++;
  double seconds = tarn__seconds() - begin;
  next.seconds += seconds;
  next.window_seconds += seconds;
  t->progress = next;
  TARN_TRY(tarn__profile_unit(t->profile, "update", begin));
  result->loss = sum.loss / (double)targets;
  result->nll = sum.nll / (double)targets;
  return TARN_STATUS_OK;
}
