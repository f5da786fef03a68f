// One optimiser step: gradients of the batches of an update, their norm, the update.
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "graph/profile.h"
#include "optim/schedule.h"
#include "train/trainer.h"

static const char NOT_FINITE[] = "not a finite number";

// The optimiser squares gradients in fp32. A larger one would make the second moment of its weight infinite, and the
// weight would never move again.
static const double LARGEST_GRADIENT = 1e18;

// The next batch, which the loader has prepared while the one before was computed.
static tarn_status take_batch(const tarn_train *t, const tarn__loaded **loaded) {
  double begin = tarn__profile_clock(t->profile);
  *loaded = tarn__loader_next(t->loader);
  TARN_TRY(tarn__profile_work(t->profile, "waiting for batches", begin));
  return tarn__profile_beside(t->profile, "preparing a batch", (*loaded)->begin, (*loaded)->end);
}

// Masks are drawn, so an update of a few short sentences may predict nothing on any rank; then it changes nothing, and
// no graph is run, in which a model that updates at once would decay its weights and follow its moments.
static tarn_status train_on(tarn_train *t, tarn__stepper_loss *loss, const tarn__loaded *loaded, int64_t batches) {
  *loss = (tarn__stepper_loss){0};
  if (loaded->predictions == 0) return TARN_STATUS_OK;
  t->batch = loaded->number;
  t->stepper.grad_scale = 1.0 / (double)loaded->predictions;
  t->stepper.follower = loaded->last ? t->overlap : NULL;
  return tarn__stepper_train(&t->stepper, loss, &loaded->batch, batches + loaded->number);
}

// Gradients of all batches; their sums and the position behind them go into *next. The loss is the mean over the target
// tokens of the whole update, which are known before its first batch. What is random in a batch depends on its number
// among those of all ranks.
static tarn_status add_gradients(tarn_train *t, tarn__progress *next, tarn__stepper_loss *sum,
                                 const tarn__loaded **last) {
  *sum = (tarn__stepper_loss){0};
  int64_t source_tokens = 0;
  TARN_TRY(tarn__features_before_batches(&t->features, next->index == 0));
  do {
    tarn__stepper_loss loss;
    TARN_TRY(take_batch(t, last));
    const tarn__batch *batch = &(*last)->batch;
    if (batch->target.sentences == 0) break;
    // Who updates at once must know before that the data were there; the batch has all of them.
    if (t->model->updates_at_once) TARN_TRY(tarn__train_check_data(t));
    TARN_TRY(train_on(t, &loss, *last, next->batches));
    if (!t->model->updates_at_once) TARN_TRY(tarn__train_check_data(t));
    sum->loss += loss.loss;
    sum->watched += loss.watched;
    // What is read and not predicted counts as a source, of masked models too.
    source_tokens += batch->source.rows + batch->target.rows - batch->predictions;
  } while (!(*last)->last);
  TARN_TRY(tarn__train_sum(t, &sum->loss, &sum->watched, &source_tokens));
  TARN_TRY(tarn__features_after_gradients(&t->features));
  if (!isfinite(sum->loss)) return tarn__train_fail(t, next->update + 1, "the loss", NOT_FINITE);
  next->batches += (*last)->batches;
  next->source_tokens += source_tokens;
  next->window_source += source_tokens;
  next->target_tokens += (*last)->predictions;
  next->window_target += (*last)->predictions;
  next->epoch = (*last)->next_epoch;
  next->index = (*last)->next_index;
  return TARN_STATUS_OK;
}

// Scale of the gradients: train.clip_norm as PyTorch's clip_grad_norm_() applies it.
static double clip_factor(double norm, double limit) {
  if (limit <= 0) return 1.0;
  double factor = limit / (norm + 1e-6);
  return factor < 1.0 ? factor : 1.0;
}

// Whether the optimiser can do with gradients of this norm, clipped by `factor`.
static tarn_status check_norm(const tarn_train *t, const char *what, double norm, double factor) {
  if (!isfinite(norm)) return tarn__train_fail(t, t->progress.update + 1, what, NOT_FINITE);
  if (norm * factor < LARGEST_GRADIENT) return TARN_STATUS_OK;
  char is[96];
  snprintf(is, sizeof is, "%.3g (expected less than %g, whose square fp32 holds)", norm * factor, LARGEST_GRADIENT);
  return tarn__train_fail(t, t->progress.update + 1, what, is);
}

static tarn__adam_options options_of(const tarn_config_train *config, double rate) {
  return (tarn__adam_options){.learning_rate = rate,
                              .beta1 = config->beta1,
                              .beta2 = config->beta2,
                              .epsilon = config->eps,
                              .weight_decay = config->weight_decay,
                              .decoupled = config->optimiser == TARN_OPTIMISER_ADAMW,
                              .seed = (uint64_t)config->seed};
}

// The norms of the gradients, of the model and of its helpers.
static tarn_status find_norms(tarn_train *t, double *norm, double *helpers, double bytes) {
  double begin = tarn__profile_clock(t->profile);
  if (t->comm->size > 1) {
    TARN_TRY(tarn__optim_share_norms(&t->optim, norm, helpers, t->threads));
  } else {
    *norm = t->model->device->grad_norm(t->model->params, t->model->param_count, t->threads);
    *helpers = t->model->device->grad_norm(t->model->helpers, t->model->helper_count, t->threads);
  }
  return tarn__profile_moving(t->profile, "norm of the gradients", begin, bytes);
}

// Sends what this rank has updated to the others, and takes what they have.
static tarn_status share_weights(tarn_train *t) {
  if (!t->optim.shares) return TARN_STATUS_OK;
  const double begin = tarn__profile_clock(t->profile);
  TARN_TRY(tarn__optim_share_weights(&t->optim));
  return tarn__profile_work(t->profile, "weights over ranks", begin);
}

// Nothing is changed unless the norms are finite and not too large. Where the backward pass has updated already, a norm
// that is not ends the training all the same: the weights are lost, the last checkpoint is not.
static tarn_status optimise(tarn_train *t, int64_t step, double rate, double *norm) {
  const tarn_config_train *config = &t->config->train;
  if (t->model->updates_at_once) {
    TARN_TRY(t->model->device->synchronise());
    *norm = sqrt(t->stepper.squares);
    return check_norm(t, "the norm of the gradients", *norm, 1.0);
  }
  tarn__param *const *params = t->optim.shares ? t->optim.parts.list : t->model->params;
  double gradients, helpers;
  if (t->optim.shares) tarn__optim_parts_refresh(&t->optim.parts);
  const double bytes = tarn__adam_bytes(params, t->model->param_count, &gradients);
  t->stepper.moved_bytes += gradients + bytes;
  TARN_TRY(find_norms(t, norm, &helpers, gradients));
  const double factor = clip_factor(*norm, config->clip_norm);
  TARN_TRY(check_norm(t, "the norm of the gradients", *norm, factor));
  TARN_TRY(check_norm(t, "the norm of the gradients of " TARN__HELPERS, helpers, 1.0));
  const tarn__adam_options options = options_of(config, rate);
  const double begin = tarn__profile_clock(t->profile);
  tarn__adam_step(t->model->device, params, t->model->param_count, &options, step, factor, t->threads);
  tarn__features_optimise(&t->features, step);
  TARN_TRY(t->model->device->synchronise());
  TARN_TRY(tarn__profile_moving(t->profile, "optimiser", begin, bytes));
  return share_weights(t);
}

tarn_status tarn__train_step(tarn_train *t, tarn__train_update_result *result) {
  double begin = tarn__seconds();
  double start = tarn__train_clock(t);
  tarn__cost_begin(t);
  tarn__rank_use_begin(&t->rank_use);
  tarn__progress next = t->progress;
  tarn__stepper_loss sum;
  const tarn__loaded *last = NULL;
  for (size_t i = 0; i < t->model->param_count; i++) t->model->params[i]->training.grad_written = false;
  t->stepper.update = next.update + 1;
  TARN_TRY(tarn__features_before_update(&t->features, next.update + 1));
  result->rate = tarn__schedule_rate(&t->config->train, next.update + 1);
  const tarn__adam_options options = options_of(&t->config->train, result->rate);
  tarn__adam_factors factors;
  tarn__adam_factors_set(&factors, &options, next.update + 1, 1.0);
  t->stepper.factors = &factors;
  tarn_status status = add_gradients(t, &next, &sum, &last);
  tarn__gradient_overlap_stop(t->overlap);  // where that has failed: nobody else may speak to the others meanwhile
  t->stepper.factors = NULL;
  TARN_TRY(status);
  // An update that predicts nothing has no loss, and leaves all as it was.
  const double predictions = (double)last->predictions;
  result->loss = predictions > 0 ? sum.loss / predictions : NAN;
  result->nll = predictions > 0 ? sum.watched / predictions : NAN;
  result->norm = 0.0;
  if (predictions > 0) {
    TARN_TRY(tarn__train_check_loss(t, next.update + 1, result->nll));
    TARN_TRY(optimise(t, next.update + 1, result->rate, &result->norm));
    tarn__features_optimised(&t->features);
  }
  next.update++;
  next.loss_sum += sum.loss;
  next.nll_sum += sum.watched;
  next.norm_sum += result->norm;
  next.window_updates++;
  double seconds = tarn__train_clock(t) - start;
  next.seconds += seconds;
  next.window_seconds += seconds;
  tarn__cost_end(t, &next, true);
  tarn__rank_use_end(&t->rank_use, t->gradient_sum.payload);
  t->progress = next;
  tarn__features_advance(&t->features);
  t->epoch_batches = last->next_batches;
  return tarn__profile_unit(t->profile, "update", begin);
}
