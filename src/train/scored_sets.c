// Scoring during training: the validation data, and the sets that do not select a model. None of it counts as training
// time.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/profile.h"
#include "train/trainer.h"

tarn_status tarn__train_open_scoring(tarn_train *t) {
  const tarn_config *config = t->config;
  if (config->data.valid) {
    const tarn__validator_data what = {config->data.valid, config->data.valid_reference, config->valid.bleu,
                                       config->valid.max_sentences, " of the validation loss"};
    TARN_TRY(tarn__validator_open(&t->validator, &what, t->model, t->source, t->target, t->comm, t->threads));
  }
  for (int32_t i = 0; i < config->set_count; i++) {
    const tarn_config_scored_set *set = &config->sets[i];
    const tarn__validator_data what = {set->data, set->reference, set->bleu, set->max_sentences, " of the loss"};
    tarn_status status = tarn__validator_open(&t->sets[i], &what, t->model, t->source, t->target, t->comm, t->threads);
    if (status != TARN_STATUS_OK) return tarn__fail_prefix(status, "sets.%s: ", set->name);
  }
  return TARN_STATUS_OK;
}

void tarn__train_close_scoring(tarn_train *t) {
  tarn__validator_close(&t->validator);
  for (int i = 0; i < TARN_CONFIG_SETS; i++) tarn__validator_close(&t->sets[i]);
}

bool tarn__train_scoring_bounds(const tarn_train *t, tarn__stepper_bounds *bounds) {
  *bounds = (tarn__stepper_bounds){0};
  if (t->validator) tarn__validator_bounds(t->validator, bounds);
  for (int32_t i = 0; i < t->config->set_count; i++) tarn__validator_bounds(t->sets[i], bounds);
  return t->validator || t->config->set_count > 0;
}

void tarn__train_set_hashes(const tarn_train *t, char hashes[TARN__SET_HASHES]) {
  size_t used = 0;
  *hashes = '\0';
  for (int32_t i = 0; i < t->config->set_count; i++)
    used += (size_t)snprintf(hashes + used, TARN__SET_HASHES - used, "%s%s", i > 0 ? " " : "",
                             tarn__validator_hash(t->sets[i]));
}

bool tarn__train_describe_sets(const tarn_train *t, json_t *object) {
  if (t->config->set_count == 0) return true;
  json_t *sets = json_object();
  bool whole = sets != NULL;
  for (int32_t i = 0; i < t->config->set_count && whole; i++) {
    const char *bleu = tarn__validator_bleu_hash(t->sets[i]);
    json_t *set = json_pack("{s:s}", "hash", tarn__validator_loss_hash(t->sets[i]));
    whole = set && (!*bleu || json_object_set_new(set, "bleu_hash", json_string(bleu)) == 0);
    whole = json_object_set_new(sets, t->config->sets[i].name, set) == 0 && whole;
  }
  return json_object_set_new(object, "sets", sets) == 0 && whole;
}

bool tarn__train_add_scores(json_t *record, const char *prefix, const tarn__validation *v) {
  char key[32];
  bool added = true;
  for (int m = 0; m < TARN__METRIC_COUNT && added; m++) {
    const tarn_measure *measure = tarn_measure_of(m);
    if (measure->derived || isnan(v->scores[m])) continue;
    snprintf(key, sizeof key, "%s%s", prefix, measure->word);
    added = json_object_set_new(record, key, json_real(v->scores[m])) == 0;
    if (added && m == TARN__METRIC_BLEU)
      added = json_object_set_new(record, "signature", json_string(v->signature)) == 0;
  }
  return added;
}

static tarn_status log_scores(tarn_train *t, const tarn_config_scored_set *set, const tarn__validation *v) {
  json_t *record =
      json_pack("{s:s, s:s, s:I, s:f, s:f}", "kind", "scored", "set", set->name, "step", (json_int_t)t->progress.update,
                "epoch", tarn__train_epoch(t), "time", t->progress.seconds);
  const bool whole = record && tarn__train_add_scores(record, "", v) &&
                     json_object_set_new(record, "seconds", json_real(v->seconds)) == 0;
  tarn_train_event event = {.kind = TARN_TRAIN_EVENT_VALID,
                            .scores = v->scores,
                            .set = set->name,
                            .signature = *v->signature ? v->signature : NULL};
  return tarn__train_note(t, record, whole, &event);
}

// Depends on the progress alone, like everything between two steps.
static bool is_due(const tarn_train *t, int32_t set, bool ends) {
  const tarn__progress *p = &t->progress;
  const int64_t every = t->config->sets[set].every;
  if (p->scored[set] == p->update + 1) return false;
  if (p->update == 0) return t->config->valid.at_start;
  return ends || (every > 0 ? p->update % every == 0 : p->index == 0);
}

bool tarn__train_sets_due(const tarn_train *t, bool ends) {
  for (int32_t i = 0; i < t->config->set_count; i++)
    if (is_due(t, i, ends)) return true;
  return false;
}

tarn_status tarn__train_validate(tarn_train *t, tarn__validator *validator, tarn__validation *result) {
  const double begin = tarn__profile_clock(t->profile);
  const tarn_status status = tarn__validator_run(validator, result, &t->stepper, t->stop);
  TARN_TRY(tarn__train_check_data(t));
  TARN_TRY(status);
  return tarn__profile_work(t->profile, "validation", begin);
}

static tarn_status score(tarn_train *t, int32_t index) {
  const tarn_config_scored_set *set = &t->config->sets[index];
  tarn__validation result;
  char what[TARN_CONFIG_KIND_NAME + 16];
  TARN_TRY(tarn__train_validate(t, t->sets[index], &result));
  snprintf(what, sizeof what, "the loss of %s", set->name);
  if (!isfinite(result.scores[TARN__METRIC_LOSS]))
    return tarn__train_fail(t, t->progress.update, what, "not a finite number");
  t->progress.scored[index] = t->progress.update + 1;
  t->session.set_seconds[index] = result.seconds;
  return log_scores(t, set, &result);
}

tarn_status tarn__train_score_sets(tarn_train *t) {
  for (int32_t i = 0; i < t->config->set_count; i++)
    if (is_due(t, i, t->session.ends)) TARN_TRY(score(t, i));
  return TARN_STATUS_OK;
}

tarn_status tarn__train_help_sets(tarn_train *t) {
  tarn__validation nothing;
  for (int32_t i = 0; i < t->config->set_count; i++)
    if (is_due(t, i, t->session.ends)) TARN_TRY(tarn__train_validate(t, t->sets[i], &nothing));
  return TARN_STATUS_OK;
}
