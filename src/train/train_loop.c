// The loop: validate, save, stop or step. All actions are decided from the progress alone, before each step, so
// resuming at any step gives the same run as training without interruption.
#include <float.h>
#include <math.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "config/config_word.h"
#include "graph/profile.h"
#include "optim/schedule.h"
#include "task/task.h"
#include "train/trainer.h"

// Seconds until `last` is written if nothing else requires a checkpoint.
static const double AUTOSAVE = 600.0;

static double rate_of(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0.0; }

// The watched measure is an nll only for tasks that have one.
static double nll_of(const tarn_train *t, double watched) {
  return tarn__config_task(t->config)->watched == TARN__METRIC_NLL ? watched : NAN;
}

// Adds the watched measure by name, and values derived from it; nothing if it is the loss.
static bool add_watched(json_t *record, const tarn__task *task, double watched) {
  const char *word = tarn__config_word("valid.metric", (int)task->watched);
  if (task->watched == TARN__METRIC_LOSS) return true;
  if (json_object_set_new(record, word, json_real(watched)) != 0) return false;
  return task->watched != TARN__METRIC_NLL || !tarn__task_has(task, TARN__METRIC_PPL) ||
         json_object_set_new(record, "ppl", json_real(fmin(exp(watched), DBL_MAX))) == 0;
}

// Takes ownership of `more` even on failure.
static bool add_all(json_t *record, json_t *more) {
  const bool added = more && json_object_update(record, more) == 0;
  json_decref(more);
  return added;
}

static tarn_status log_window(tarn_train *t, double rate) {
  const tarn__progress *p = &t->progress;
  double tokens = (double)p->window_target;
  tarn_train_event event = {
      .kind = TARN_TRAIN_EVENT_LOG,
      .loss = p->loss_sum / tokens,
      .nll = nll_of(t, p->nll_sum / tokens),
      .lr = rate,
      .grad_norm = p->norm_sum / (double)p->window_updates,
      .tokens_per_second = rate_of((double)(p->window_source + p->window_target), p->window_seconds)};
  json_t *record = json_pack("{s:s, s:I, s:f, s:f, s:f}", "kind", "train", "step", (json_int_t)p->update, "epoch",
                             tarn__train_epoch(t), "time", p->seconds, "loss", event.loss);
  bool whole = record && add_watched(record, tarn__config_task(t->config), p->nll_sum / tokens) &&
               add_all(record, json_pack("{s:f, s:f, s:f, s:I, s:I}", "lr", rate, "tokens_per_second",
                                         event.tokens_per_second, "grad_norm", event.grad_norm, "source_tokens",
                                         (json_int_t)p->source_tokens, "target_tokens", (json_int_t)p->target_tokens));
  whole = whole && tarn__features_log(&t->features, record);
  const double joules = tarn__cost_joules(p);
  if (!isnan(joules)) whole = whole && json_object_set_new(record, "joules", json_real(joules)) == 0;
  whole = whole && tarn__rank_use_describe(&t->rank_use, record, false);
  return tarn__train_note(t, record, whole, &event);
}

// Logs the updates since the last such line, if they made predictions, which a few short masked sentences may not do;
// then begins the next window.
static tarn_status close_window(tarn_train *t, double rate) {
  tarn__progress *p = &t->progress;
  if (p->window_target == 0) return TARN_STATUS_OK;
  TARN_TRY(tarn__numbers_read(t));
  TARN_TRY(tarn__rank_use_share(&t->rank_use, p->update));
  if (t->comm->rank == 0) TARN_TRY(log_window(t, rate));
  p->loss_sum = p->nll_sum = p->norm_sum = p->window_seconds = 0.0;
  p->window_updates = p->window_source = p->window_target = 0;
  tarn__features_logged(&t->features);
  return TARN_STATUS_OK;
}

static tarn_status close_last_window(tarn_train *t) {
  return close_window(t, tarn__schedule_rate(&t->config->train, t->progress.update));
}

static tarn_status log_validation(tarn_train *t, bool best, const char *path) {
  const tarn__validation *v = &t->session.validation;
  json_t *record = json_pack("{s:s, s:I, s:f, s:f}", "kind", "valid", "step", (json_int_t)t->progress.update, "epoch",
                             tarn__train_epoch(t), "time", t->progress.seconds);
  int failed = !record || !tarn__train_add_scores(record, "valid_", v);
  failed |= json_object_set_new(record, "seconds", json_real(v->seconds)) != 0;
  if (path) failed |= json_object_set_new(record, "checkpoint", json_string("average")) != 0;
  if (!path) failed |= json_object_set_new(record, "best", json_boolean(best)) != 0;
  tarn_train_event event = {.kind = TARN_TRAIN_EVENT_VALID,
                            .scores = v->scores,
                            .best = best,
                            .signature = *v->signature ? v->signature : NULL,
                            .path = path};
  return tarn__train_note(t, record, !failed, &event);
}

static tarn_status save_state(tarn_train *t) { return tarn__train_save(t, false); }
static tarn_status save_numbered(tarn_train *t) { return tarn__train_save(t, true); }

static tarn_status interrupt(tarn_train *t) {
  TARN_TRY(tarn__train_lead(t, save_state));
  return tarn__fail(TARN_STATUS_INTERRUPTED,
                    "stopped after update %lld, all is saved; go on with: tarn train --resume %s",
                    (long long)t->progress.update, t->go_on);
}

static tarn_status compute_validation(tarn_train *t) {
  tarn__validation result;
  TARN_TRY(tarn__train_validate(t, t->validator, &result));
  if (!isfinite(result.scores[TARN__METRIC_LOSS]))
    return tarn__train_fail(t, t->progress.update, "the validation loss", "not a finite number");
  t->session.validation = result;
  t->session.validated = true;
  t->session.validation_seconds = result.seconds;
  return TARN_STATUS_OK;
}

// The part of ranks other than 0.
static tarn_status help_validation(tarn_train *t) {
  tarn__validation nothing;
  return tarn__train_validate(t, t->validator, &nothing);
}

// The curve of a diverged run shows where it diverged; such a model is not the best.
static tarn_status validate(tarn_train *t) {
  tarn__progress *p = &t->progress;
  TARN_TRY(compute_validation(t));
  if (tarn__train_has_diverged(t, tarn__train_watched(t))) {
    TARN_TRY(log_validation(t, false, NULL));
    return tarn__train_check_diverged(t, p->update, "validation loss", tarn__train_watched(t));
  }
  const int by = t->config->valid.metric;
  const double metric = t->session.validation.scores[by];
  bool best = p->best_update == 0 || tarn__metric_better(metric, p->best, by);
  p->validated = p->update;
  p->worse = best ? 0 : p->worse + 1;
  if (best) {
    p->best = metric;
    p->best_update = p->update;
    tarn__cost_best(p);
  }
  return log_validation(t, best, NULL);
}

// Validates the untrained model: a point of the curve at time 0, but never the best model.
static tarn_status validate_start(tarn_train *t) {
  TARN_TRY(compute_validation(t));
  t->progress.at_start = 1;
  return log_validation(t, false, NULL);
}

static bool validation_due(const tarn_train *t, bool ends) {
  const tarn__progress *p = &t->progress;
  int64_t every = t->config->valid.every;
  if (!t->validator || p->update == 0 || p->validated == p->update) return false;
  return ends || (every > 0 ? p->update % every == 0 : p->index == 0);
}

static bool save_due(const tarn_train *t, bool ends) {
  const tarn__progress *p = &t->progress;
  int64_t every = t->config->train.save_every;
  if (p->update == 0 || p->saved == p->update) return false;
  return ends || (every > 0 ? p->update % every == 0 : p->validated == p->update);
}

static bool limit_reached(const tarn_train *t, tarn_train_end *end) {
  const tarn_config_train *limits = &t->config->train;
  const tarn__progress *p = &t->progress;
  if (tarn__features_update(t->config)) return tarn__features_over(t, end);
  bool updates = limits->max_updates > 0 && p->update >= limits->max_updates;
  bool epochs = limits->max_epochs > 0 && p->epoch >= limits->max_epochs;
  bool minutes = limits->max_minutes > 0 && p->seconds >= limits->max_minutes * 60.0;
  bool patience = limits->patience > 0 && p->worse >= limits->patience;
  *end = updates   ? TARN_TRAIN_END_UPDATES
         : epochs  ? TARN_TRAIN_END_EPOCHS
         : minutes ? TARN_TRAIN_END_MINUTES
                   : TARN_TRAIN_END_PATIENCE;
  return updates || epochs || minutes || patience;
}

bool tarn_train_is_over(const tarn_train *train, tarn_train_end *end) {
  return train->progress.update > 0 && limit_reached(train, end);
}

static tarn_status tell_update(tarn_train *t, const tarn__train_update_result *result) {
  const tarn__progress *p = &t->progress;
  tarn_train_event event = {
      .kind = TARN_TRAIN_EVENT_UPDATE,
      .loss = result->loss,
      .nll = nll_of(t, result->nll),
      .lr = result->rate,
      .grad_norm = result->norm,
      .tokens_per_second = rate_of((double)(p->window_source + p->window_target), p->window_seconds)};
  tarn__train_tell(t, &event);
  return tarn__features_told(&t->features);
}

static tarn_status step_and_log(tarn_train *t) {
  tarn__train_update_result result;
  const bool closed = tarn__features_update(t->config);
  tarn__progress *p = &t->progress;
  const double begin = tarn__seconds(), trained = p->seconds;
  TARN_TRY(closed ? tarn__features_make_update(&t->features, &result) : tarn__train_step(t, &result));
  t->session.step_wall += tarn__seconds() - begin;
  t->session.step_clock += p->seconds - trained;
  const bool logs = closed || p->update % t->config->train.log_every == 0;
  if (t->comm->rank == 0) TARN_TRY(tell_update(t, &result));
  if (logs) TARN_TRY(close_window(t, result.rate));
  return tarn__features_after_update(&t->features);
}

// Rank 0 decides, and the others help. An interruption stops all ranks.
static tarn_status validate_together(tarn_train *t, tarn_status (*how)(tarn_train *),
                                     tarn_status (*help)(tarn_train *)) {
  const tarn_status status = tarn__train_share(t, how, help);
  return status == TARN_STATUS_INTERRUPTED ? interrupt(t) : status;
}

static tarn_status score_sets(tarn_train *t) {
  return validate_together(t, tarn__train_score_sets, tarn__train_help_sets);
}

// Rank 0 computes them, with the weights that the others may hold.
static tarn_status compute_dynamics(tarn_train *t) {
  TARN_TRY(tarn__numbers_read(t));
  const tarn_status status = tarn__train_lead(t, tarn__train_compute_dynamics);
  return status == TARN_STATUS_INTERRUPTED ? interrupt(t) : status;
}

static tarn_status validate_now(tarn_train *t) {
  TARN_TRY(tarn__numbers_read(t));
  TARN_TRY(validate_together(t, validate, help_validation));
  return t->progress.best_update == t->progress.update ? tarn__train_lead(t, tarn__train_save_best) : TARN_STATUS_OK;
}

// Everything between two steps. *ended is set when a limit is reached and all final actions are done.
static tarn_status between_steps(tarn_train *t, tarn_train_end *end, bool *ended) {
  bool stop;
  TARN_TRY(tarn__train_asked_to_stop(t, &stop));
  if (stop) return interrupt(t);
  *ended = limit_reached(t, end);
  if (*ended) TARN_TRY(close_last_window(t));
  if (validation_due(t, *ended)) {
    TARN_TRY(validate_now(t));
    *ended = *ended || limit_reached(t, end);  // patience
    if (*ended) TARN_TRY(close_last_window(t));
  }
  t->session.ends = *ended;
  if (tarn__train_sets_due(t, *ended)) TARN_TRY(score_sets(t));
  if (tarn__train_dynamics_due(t, *ended)) TARN_TRY(compute_dynamics(t));
  bool save = t->save && *t->save != t->session.saves;
  if (save) t->session.saves = *t->save;
  if (save_due(t, *ended)) return tarn__train_lead(t, save_numbered);
  save = save || (t->comm->rank == 0 && tarn__seconds() - t->session.saved_at > AUTOSAVE);
  TARN_TRY(tarn__comm_any(t->comm, &save));
  return save ? tarn__train_lead(t, save_state) : TARN_STATUS_OK;
}

static bool averages(const tarn_train *t) {
  return t->config->train.average > 0 && t->config->train.keep_last > 0 && t->progress.update > 0;
}

// The average of the last checkpoints, and its validation.
static tarn_status average(tarn_train *t) {
  if (!averages(t)) {
    unlink(t->dir.average);  // an older average would be mistaken for the result of this training run
    return TARN_STATUS_OK;
  }
  TARN_TRY(tarn__train_average(t));
  if (!t->validator) return TARN_STATUS_OK;
  TARN_TRY(tarn__train_share_values(t));
  tarn_status status = compute_validation(t);
  TARN_REQUIRE(status != TARN_STATUS_INTERRUPTED, INTERRUPTED,
               "stopped while validating the average; go on with: tarn train --resume %s", t->go_on);
  TARN_TRY(status);
  TARN_TRY(log_validation(t, false, t->dir.average));
  return tarn__train_check_diverged(t, t->progress.update, "validation loss of the average", tarn__train_watched(t));
}

static tarn_status help_average(tarn_train *t) {
  if (!averages(t) || !t->validator) return TARN_STATUS_OK;
  TARN_TRY(tarn__train_share_values(t));
  return help_validation(t);
}

static tarn_status finish(tarn_train *t, tarn_train_result *result) {
  TARN_TRY(tarn__train_share(t, average, help_average));
  tarn__train_result_fill(t, result);
  tarn_checkpoint_found_close(&t->end.found);
  TARN_TRY(tarn_checkpoint_find(&t->end.found, t->dir.path, TARN_CHECKPOINT_CHOICE_AUTO));
  result->checkpoint = t->end.found.path;
  result->checkpoint_reason = t->end.found.reason;
  return TARN_STATUS_OK;
}

// Writes files before the first step.
static tarn_status begin(tarn_train *t) {
  const bool log_begun = t->progress.log.bytes > 0 && !t->log_why[0];
  TARN_TRY(tarn__train_open_log(t));
  t->session.saved_at = tarn__seconds();
  TARN_TRY(tarn__features_begin(&t->features, log_begun));
  // From the start there is a checkpoint to resume from.
  if (!tarn__file_exists(t->dir.last)) TARN_TRY(tarn__train_save(t, false));
  // The process may have been killed between saving and pruning.
  return tarn__run_dir_prune(&t->dir, t->config->train.keep_last);
}

static tarn_status run(tarn_train *t, tarn_train_result *result) {
  TARN_TRY(tarn__train_lead(t, begin));
  if (t->comm->rank > 0) TARN_TRY(tarn__features_begin(&t->features, true));
  if (t->validator && t->config->valid.at_start && t->progress.update == 0 && !t->progress.at_start)
    TARN_TRY(validate_together(t, validate_start, help_validation));
  if (t->progress.update == 0 && tarn__train_sets_due(t, false)) TARN_TRY(score_sets(t));
  const tarn_status status = tarn__features_ready(&t->features);
  if (status == TARN_STATUS_INTERRUPTED) return interrupt(t);
  TARN_TRY(status);
  bool begun = false;
  for (;;) {
    bool ended = false;
    TARN_TRY(between_steps(t, &result->end, &ended));
    if (ended) break;
    if (!begun && t->comm->rank == 0)
      unlink(t->dir.average);  // the average of an earlier end, no longer that of this run
    if (!begun) tarn__profile_leave_out(t->profile);
    begun = true;
    TARN_TRY(step_and_log(t));
  }
  return finish(t, result);
}

tarn_status tarn_train_run(tarn_train *t, tarn_train_result *result) {
  *result = (tarn_train_result){0};
  TARN_REQUIRE(!t->planned_only, USAGE, "a training that was opened to plan cannot run");
  tarn__profile_start(t->profile);
  tarn_status status = tarn__cost_open(t);
  if (status == TARN_STATUS_OK) status = tarn__train_rescue(t, run(t, result));
  tarn__energy_close(&t->energy);
  tarn__profile_stop(t->profile);
  if (t->comm->rank == 0) status = tarn__train_result_write(t, result, status);
  // Reports to the other ranks how training ended, or that the result could not be written.
  if (status == TARN_STATUS_OK) status = tarn__comm_barrier(t->comm);
  if (status != TARN_STATUS_OK) tarn__train_fail_all(t, status);
  return status;
}
