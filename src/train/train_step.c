// One optimiser step: gradients of the batches of an update, their norm, the update.
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "graph/profile.h"
#include "optim/schedule.h"
#include "train/trainer.h"

// Takes the next batch, which the loader has prepared during the previous one.
static tarn_status take_batch(const tarn_train *t, const tarn__loaded **loaded) {
  double begin = tarn__profile_clock(t->profile);
  *loaded = tarn__loader_next(t->loader);
  TARN_TRY(tarn__profile_work(t->profile, "waiting for batches", begin));
  return tarn__profile_beside(t->profile, "preparing a batch", (*loaded)->begin, (*loaded)->end);
}

// Masks are random, so an update with a few short sentences may have no predictions on any rank. Then it changes
// nothing, and no graph is run: a model that updates in the backward pass would decay its weights and apply its
// moments.
static tarn_status train_on(tarn_train *t, const tarn__loaded *loaded, int64_t batches) {
  if (loaded->predictions == 0) return TARN_STATUS_OK;
  t->batch = loaded->number;
  t->stepper.grad_scale = 1.0 / (double)loaded->predictions;
  t->stepper.follower = loaded->last ? t->overlap : NULL;
  return tarn__stepper_train(&t->stepper, NULL, &loaded->batch, batches + loaded->number);
}

// Sums over ranks; a single rank leaves the sums in place.
static tarn_status sum_ranks(tarn_train *t, int64_t *source_tokens) {
  double loss = 0.0, watched = 0.0;
  const bool several = t->comm->size > 1;
  if (several) {
    TARN_TRY(tarn__numbers_get(&t->numbers));
    loss = t->numbers.now.loss;
    watched = t->numbers.now.watched;
  }
  TARN_TRY(tarn__train_sum(t, &loss, &watched, source_tokens));
  return several ? tarn__numbers_set_loss(&t->numbers, loss, watched) : TARN_STATUS_OK;
}

// Computes the gradients of all batches; adds their loss to the numbers of the update, and sets *next to the position
// after them. The loss is the mean over the target tokens of the whole update, whose number is known before the first
// batch. Random numbers of a batch depend on its number among those of all ranks.
static tarn_status add_gradients(tarn_train *t, tarn__progress *next, const tarn__loaded **last) {
  int64_t source_tokens = 0;
  TARN_TRY(tarn__features_before_batches(&t->features, next->index == 0));
  do {
    TARN_TRY(take_batch(t, last));
    const tarn__batch *batch = &(*last)->batch;
    if (batch->target.sentences == 0) break;
    // An update in the backward pass requires a check of the data first; there is only one batch.
    if (t->model->updates_at_once) TARN_TRY(tarn__train_check_data(t));
    TARN_TRY(train_on(t, *last, next->batches));
    if (!t->model->updates_at_once) TARN_TRY(tarn__train_check_data(t));
    // Tokens read but not predicted count as source tokens, also for masked models.
    source_tokens += batch->source.rows + batch->target.rows - batch->predictions;
  } while (!(*last)->last);
  TARN_TRY(sum_ranks(t, &source_tokens));
  TARN_TRY(tarn__features_after_gradients(&t->features));
  next->batches += (*last)->batches;
  next->source_tokens += source_tokens;
  next->window_source += source_tokens;
  next->target_tokens += (*last)->predictions;
  next->window_target += (*last)->predictions;
  next->epoch = (*last)->next_epoch;
  next->index = (*last)->next_index;
  return TARN_STATUS_OK;
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

// Computes the gradient norms of the model and of its helpers.
static tarn_status find_norms(tarn_train *t, double bytes) {
  double begin = tarn__profile_clock(t->profile);
  const tarn__device *device = t->model->device;
  tarn__step_numbers *numbers = t->numbers.there;
  if (t->comm->size > 1) {
    double norm, helpers;
    TARN_TRY(tarn__optim_share_norms(&t->optim, &norm, &helpers, numbers, t->threads));
    TARN_TRY(tarn__numbers_set_norms(&t->numbers, norm, helpers));
  } else {
    TARN_TRY(tarn__param_table_refresh(device, &t->params));
    TARN_TRY(device->type->grad_norm(device, &numbers->norm, &t->params, t->threads));
    TARN_TRY(tarn__param_table_refresh(device, &t->helpers));
    TARN_TRY(device->type->grad_norm(device, &numbers->helpers, &t->helpers, t->threads));
  }
  return tarn__profile_moving(t->profile, "norm of the gradients", begin, bytes);
}

// Exchanges the updated weights with the other ranks.
static tarn_status share_weights(tarn_train *t) {
  if (!t->optim.shares) return TARN_STATUS_OK;
  const double begin = tarn__profile_clock(t->profile);
  TARN_TRY(tarn__optim_share_weights(&t->optim));
  return tarn__profile_work(t->profile, "weights over ranks", begin);
}

static tarn_status decide(tarn_train *t, int64_t step) {
  const tarn__device *device = t->model->device;
  const tarn__step_rule rule = {
      .update = step, .clip_norm = t->config->train.clip_norm, .at_once = t->model->updates_at_once};
  t->numbers.unread = true;
  return device->type->decide(device, t->numbers.there, &rule);
}

// Nothing is changed unless the loss and the norms are finite and not too large. If the backward pass has already
// updated, training ends all the same: the weights are lost, the last checkpoint is not.
static tarn_status optimise(tarn_train *t, int64_t step, double rate) {
  const tarn_config_train *config = &t->config->train;
  if (t->model->updates_at_once) return decide(t, step);
  tarn__param_table *table = t->optim.shares ? &t->optim.table : &t->params;
  double gradients;
  if (t->optim.shares) tarn__optim_parts_refresh(&t->optim.parts);
  const double bytes = tarn__adam_bytes(table->params, t->model->param_count, &gradients);
  t->stepper.moved_bytes += gradients + bytes;
  TARN_TRY(find_norms(t, gradients));
  TARN_TRY(decide(t, step));
  const tarn__adam_options options = options_of(config, rate);
  const double begin = tarn__profile_clock(t->profile);
  TARN_TRY(tarn__adam_step(t->model->device, table, &options, step, 0.0, t->numbers.there, t->threads));
  TARN_TRY(tarn__features_optimise(&t->features, step));
  if (t->profile) TARN_TRY(tarn__device_synchronise(t->model->device));
  TARN_TRY(tarn__profile_moving(t->profile, "optimiser", begin, bytes));
  return share_weights(t);
}

// Fills in the event, as far as known, and checks whether the update succeeded.
static tarn_status judge(tarn_train *t, tarn__progress *next, tarn__train_update_result *result, double predictions) {
  const bool due = !t->numbers.late || (next->update + 1) % t->config->train.log_every == 0;
  if (!due) return TARN_STATUS_OK;
  TARN_TRY(tarn__numbers_take(t, next));
  result->loss = t->numbers.now.loss / predictions;
  result->nll = t->numbers.now.watched / predictions;
  result->norm = t->numbers.now.norm;
  return tarn__train_check_loss(t, next->update + 1, result->nll);
}

tarn_status tarn__train_step(tarn_train *t, tarn__train_update_result *result) {
  double begin = tarn__seconds();
  double start = tarn__train_clock(t);
  tarn__cost_begin(t);
  tarn__rank_use_begin(&t->rank_use);
  tarn__progress next = t->progress;
  const tarn__loaded *last = NULL;
  for (size_t i = 0; i < t->model->param_count; i++) t->model->params[i]->training.grad_written = false;
  t->stepper.update = next.update + 1;
  TARN_TRY(tarn__features_before_update(&t->features, next.update + 1));
  result->rate = tarn__schedule_rate(&t->config->train, next.update + 1);
  const tarn__adam_options options = options_of(&t->config->train, result->rate);
  tarn__adam_factors factors;
  tarn__adam_factors_set(&factors, &options, next.update + 1, 1.0);
  t->stepper.factors = &factors;
  TARN_TRY(tarn__numbers_begin(t));
  tarn_status status = add_gradients(t, &next, &last);
  tarn__gradient_overlap_stop(t->overlap);  // after a failure nothing else may communicate with the other ranks in the
                                            // meantime
  t->stepper.factors = NULL;
  TARN_TRY(status);
  // An update without predictions has no loss and leaves everything unchanged.
  const double predictions = (double)last->predictions;
  result->loss = result->nll = NAN;
  result->norm = predictions > 0 ? NAN : 0.0;
  if (predictions > 0) {
    TARN_TRY(optimise(t, next.update + 1, result->rate));
    TARN_TRY(judge(t, &next, result, predictions));
    TARN_TRY(tarn__features_optimised(&t->features));
  }
  next.update++;
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
