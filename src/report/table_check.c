// Checks which runs are comparable: one T-hat, one clock, one validation set, one test, one way of scoring.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "description/description.h"
#include "report/measures.h"
#include "report/table_build.h"
#include "run/names.h"
#include "tarn/score.h"
#include "tarn/status.h"
#include "task/measure_entry.h"
#include "task/task.h"

static bool is_finished(const tarn_results_run *run) { return run->state == TARN_RESULTS_FINISHED; }

static tarn_status check_finished(const tarn_results *r) {
  size_t counts[TARN_RESULTS_STATES] = {0};
  for (size_t i = 0; i < r->run_count; i++) counts[r->runs[i].state]++;
  TARN_REQUIRE(counts[TARN_RESULTS_FINISHED] > 0, USAGE,
               "there is no finished run to compare: %zu failed, %zu unfinished, %zu not begun",
               counts[TARN_RESULTS_FAILED], counts[TARN_RESULTS_UNFINISHED], counts[TARN_RESULTS_PENDING]);
  return TARN_STATUS_OK;
}

static bool has_validation(const tarn_results_run *run) {
  for (size_t i = 0; i < run->series_count; i++)
    if (strncmp(run->series[i].name, "valid/", 6) == 0) return true;
  return false;
}

// Whether the scores are missing because the log is damaged.
static bool lost_validations(const tarn_results_run *run) {
  return run->log_changed && run->config->data.valid && !has_validation(run);
}

// The common valid.metric of all finished runs, if it is the same.
static const char *common_metric(const tarn_results *r) {
  const char *metric = NULL;
  for (size_t i = 0; i < r->run_count; i++) {
    const tarn_results_run *run = &r->runs[i];
    if (!is_finished(run)) continue;
    if (!run->metric || (metric && strcmp(metric, run->metric) != 0) || !tarn_results_find(run, run->metric))
      return "valid/loss";
    metric = run->metric;
  }
  return metric;
}

static tarn_status find_metric(struct tarn__results_table_memory *t) {
  const tarn_results *r = t->results;
  const char *metric = t->options.metric;
  bool all_bleu = true;
  for (size_t i = 0; i < r->run_count; i++) {
    const tarn_results_run *run = &r->runs[i];
    if (!is_finished(run)) continue;
    TARN_REQUIRE(metric || has_validation(run) || !lost_validations(run), DATA,
                 "%s/" TARN__RUN_LOG " is damaged, and no validation is left in it: %s", run->path, run->log_changed);
    TARN_REQUIRE(metric || has_validation(run), DATA,
                 "%s has no validation, so there is nothing to compare; give "
                 "data.valid when training",
                 run->path);
    all_bleu = all_bleu && tarn_results_find(run, "valid/bleu");
  }
  if (!metric) metric = all_bleu ? "valid/bleu" : common_metric(r);
  for (size_t i = 0; i < r->run_count && !t->public.metric; i++) {
    const tarn_results_series *series = tarn_results_find(&r->runs[i], metric);
    if (!series) continue;
    t->public.metric = series->name;
    t->public.less = series->less;
  }
  if (!t->public.metric) return tarn_results_check_name(r, metric);
  for (size_t i = 0; i < r->run_count; i++) {
    const tarn_results_run *run = &r->runs[i];
    if (!is_finished(run)) continue;
    TARN_REQUIRE(tarn_results_find(run, t->public.metric) || !lost_validations(run), DATA,
                 "%s/" TARN__RUN_LOG " is damaged, and no %s is left in it: %s", run->path, t->public.metric,
                 run->log_changed);
    TARN_REQUIRE(tarn_results_find(run, t->public.metric), DATA, "%s has no %s%s, and other runs have", run->path,
                 t->public.metric, has_validation(run) ? "" : " (it has no validation at all)");
  }
  return TARN_STATUS_OK;
}

static bool same_text(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

static const char *shown(const char *text) { return text ? text : "unknown"; }

static bool same_smoothing(const tarn_results_run *a, const tarn_results_run *b) {
  return a->config->train.label_smoothing == b->config->train.label_smoothing;
}

// Whether losses of both are sums over the same predictions: a masked model's are over the masked words alone,
// and those of a model that edits are over its edits.
static bool same_predictions(const tarn_results_run *a, const tarn_results_run *b) {
  return tarn__config_task(a->config)->task == tarn__config_task(b->config)->task;
}

// Fails if a measure is computed from losses, and those of the two runs are of different predictions.
static tarn_status check_predictions(const tarn_results_run *a, const tarn_results_run *b, const char *metric) {
  const unsigned losses = 1u << TARN__KEPT_LOSS | 1u << TARN__KEPT_NLL | 1u << TARN__KEPT_WORDS;
  const tarn_measure *measure = tarn_measure_find(metric);
  const tarn__task *own = tarn__config_task(a->config), *other = tarn__config_task(b->config);
  const bool bleu = tarn__task_has(own, TARN__METRIC_BLEU) && tarn__task_has(other, TARN__METRIC_BLEU);
  if (!measure || !(tarn__measure_at(measure->number)->of & losses)) return TARN_STATUS_OK;
  TARN_REQUIRE(
      same_predictions(a, b), DATA,
      "%s and %s cannot stand in one table: %s and %s predict different things, so their %s is not to be compared%s",
      a->path, b->path, own->model, other->model, metric, bleu ? "; compare bleu" : "");
  return TARN_STATUS_OK;
}

// Compares the smallest loss of runs compared by another score.
static tarn_status note_losses(struct tarn__results_table_memory *t, const tarn_results_run *a,
                               const tarn_results_run *b) {
  t->other_smoothing |= !same_smoothing(a, b);
  t->other_losses |= !same_text(a->valid_hash, b->valid_hash);
  t->other_predictions |= !same_predictions(a, b);
  if (strcmp(t->public.metric, "valid/loss") == 0 || !tarn_results_find(b, "valid/loss")) return TARN_STATUS_OK;
  if (!same_predictions(a, b))
    TARN_TRY(tarn__table_note(t, "losses of %s and %s are not to be compared: %s and %s predict different things",
                              a->path, b->path, tarn__config_task(a->config)->model,
                              tarn__config_task(b->config)->model));
  if (!same_smoothing(a, b))
    TARN_TRY(tarn__table_note(t, "losses of %s and %s are not to be compared: train.label_smoothing is %g and %g",
                              a->path, b->path, a->config->train.label_smoothing, b->config->train.label_smoothing));
  if (same_text(a->valid_hash, b->valid_hash)) return TARN_STATUS_OK;
  return tarn__table_note(t, "losses of %s and %s are not to be compared: they count other sentences", a->path,
                          b->path);
}

static tarn_status check_validation(const tarn_results_run *a, const tarn_results_run *b, bool bleu) {
  const bool same = bleu && a->valid_bleu_hash && b->valid_bleu_hash ? same_text(a->valid_bleu_hash, b->valid_bleu_hash)
                                                                     : same_text(a->valid_hash, b->valid_hash);
  const bool carried = a->config->train.carry_state || b->config->train.carry_state;
  TARN_REQUIRE(
      same, DATA,
      "%s and %s cannot stand in one table: their validation data differ (%s and %s, of which model.max_length "
      "%lld and %lld are taken%s%s)",
      a->path, b->path, shown(a->config->data.valid), shown(b->config->data.valid),
      (long long)a->config->model.max_length, (long long)b->config->model.max_length,
      bleu ? ", with valid.max_sentences and data.valid_reference" : "",
      carried
          ? "; train.carry_state reads them in tracks, whose number must be the same and depends on train.max_tokens"
          : "");
  return TARN_STATUS_OK;
}

static tarn_status check_sets(const tarn_results_run *a, const tarn_results_run *b, const tarn_results_set *own,
                              const tarn_results_set *other, bool bleu) {
  const char *first = bleu && own ? own->bleu_hash : own ? own->hash : NULL;
  const char *second = bleu && other ? other->bleu_hash : other ? other->hash : NULL;
  const bool same = first && second && strcmp(first, second) == 0;
  TARN_REQUIRE(same, DATA,
               "%s and %s cannot stand in one table: what they scored as %s differs (sets.%s, of which "
               "model.max_length %lld and %lld are taken)",
               a->path, b->path, own ? own->name : other->name, own ? own->name : other->name,
               (long long)a->config->model.max_length, (long long)b->config->model.max_length);
  return TARN_STATUS_OK;
}

// Fails unless both runs measure the same thing in the same way.
static tarn_status check_pair(const tarn_results_run *a, const tarn_results_run *b, const char *metric) {
  const tarn_config_valid *x = &a->config->valid;
  const tarn_config_valid *y = &b->config->valid;
  TARN_REQUIRE(same_text(a->clock, b->clock), DATA,
               "%s and %s cannot stand in one table: their clocks differ (train.clock %s and %s)", a->path, b->path,
               shown(a->clock), shown(b->clock));
  TARN_TRY(check_predictions(a, b, metric));
  const bool valid = strncmp(metric, "valid/", 6) == 0;
  const tarn_results_set *own = tarn__results_set_of(a, metric), *other = tarn__results_set_of(b, metric);
  if (!valid && !own && !other) return TARN_STATUS_OK;
  const tarn_measure *measure = tarn_measure_find(metric);
  const bool bleu = measure && measure->number == TARN__METRIC_BLEU;
  TARN_TRY(valid ? check_validation(a, b, bleu) : check_sets(a, b, own, other, bleu));
  TARN_REQUIRE(!measure || !tarn__measure_at(measure->number)->smoothed || same_smoothing(a, b), DATA,
               "%s and %s cannot stand in one table: their losses have other label smoothing (%g and %g); compare nll",
               a->path, b->path, a->config->train.label_smoothing, b->config->train.label_smoothing);
  if (!bleu) return TARN_STATUS_OK;
  TARN_REQUIRE(same_text(a->signature, b->signature), DATA,
               "%s and %s cannot stand in one table: their BLEU has other signatures (%s and %s)", a->path, b->path,
               shown(a->signature), shown(b->signature));
  TARN_REQUIRE(!valid || x->max_sentences == y->max_sentences, DATA,
               "%s and %s cannot stand in one table: valid.max_sentences (%lld and %lld) must be the same", a->path,
               b->path, (long long)x->max_sentences, (long long)y->max_sentences);
  return TARN_STATUS_OK;
}

static tarn__decoding decoding_of(const tarn_results_run *run) { return tarn__config_task(run->config)->decoding; }

// The first of some runs for each kind of decoding. Kinds are compared as they are, and each with itself.
typedef struct kinds {
  const tarn_results_run *first[TARN__DECODING_COUNT];
} kinds;

// The earlier run of the same kind; NULL: this is the first, and a note says so if it is not the only kind.
static tarn_status find_kind(struct tarn__results_table_memory *t, kinds *k, const tarn_results_run *run,
                             const tarn_results_run **same) {
  const tarn__decoding own = decoding_of(run);
  const tarn_results_run *other = NULL;
  *same = k->first[own];
  if (*same) return TARN_STATUS_OK;
  for (int i = 0; i < TARN__DECODING_COUNT && !other; i++) other = k->first[i];
  k->first[own] = run;
  if (!other || t->other_decoding) return TARN_STATUS_OK;
  t->other_decoding = true;
  return tarn__table_note(t, "%s is %s and %s is %s, which translate in different ways: beams are not compared",
                          other->path, tarn__config_task(other->config)->model, run->path,
                          tarn__config_task(run->config)->model);
}

// Whether both runs, of one kind of decoding, made the translations of their validation in the same way.
static tarn_status check_search(const tarn_results_run *a, const tarn_results_run *b) {
  const tarn_config_valid *x = &a->config->valid, *y = &b->config->valid;
  const tarn_config_translate *own = &a->config->translate, *other = &b->config->translate;
  if (decoding_of(a) == TARN__DECODING_EDITS) {
    TARN_REQUIRE(own->iterations == other->iterations && own->placeholder_penalty == other->placeholder_penalty, DATA,
                 "%s and %s cannot stand in one table: translate.iterations (%lld and %lld) and "
                 "translate.placeholder_penalty (%g and %g) must be the same",
                 a->path, b->path, (long long)own->iterations, (long long)other->iterations, own->placeholder_penalty,
                 other->placeholder_penalty);
    return TARN_STATUS_OK;
  }
  if (decoding_of(a) == TARN__DECODING_MASKS) {
    TARN_REQUIRE(own->iterations == other->iterations && own->length_beam == other->length_beam, DATA,
                 "%s and %s cannot stand in one table: translate.iterations (%lld and %lld) and translate.length_beam "
                 "(%lld and %lld) must be the same",
                 a->path, b->path, (long long)own->iterations, (long long)other->iterations,
                 (long long)own->length_beam, (long long)other->length_beam);
    return TARN_STATUS_OK;
  }
  TARN_REQUIRE(x->beam == y->beam && x->length_penalty == y->length_penalty, DATA,
               "%s and %s cannot stand in one table: valid.beam (%lld and %lld) and valid.length_penalty (%g and %g) "
               "must be the same",
               a->path, b->path, (long long)x->beam, (long long)y->beam, x->length_penalty, y->length_penalty);
  return TARN_STATUS_OK;
}

static tarn_status check_searches(struct tarn__results_table_memory *t) {
  const tarn_measure *measure = tarn_measure_find(t->public.metric);
  kinds k = {0};
  if (!measure || measure->number != TARN__METRIC_BLEU) return TARN_STATUS_OK;
  for (size_t i = 0; i < t->results->run_count; i++) {
    const tarn_results_run *run = &t->results->runs[i], *same;
    if (!is_finished(run)) continue;
    TARN_TRY(find_kind(t, &k, run, &same));
    if (same) TARN_TRY(check_search(same, run));
  }
  return TARN_STATUS_OK;
}

// Files with equal contents are the same test set, whatever their names; files that are no longer readable are
// identified by name only.
static tarn_status same_lines(bool *same, const char *a, const char *b) {
  tarn_score_lines x = {0};
  tarn_score_lines y = {0};
  *same = same_text(a, b);
  if (!a || !b || *same) return TARN_STATUS_OK;
  tarn_status status = tarn_score_lines_open(&x, a);
  if (status == TARN_STATUS_OK) status = tarn_score_lines_open(&y, b);
  *same = status == TARN_STATUS_OK && x.count == y.count;
  for (size_t i = 0; *same && i < x.count; i++) *same = strcmp(x.items[i], y.items[i]) == 0;
  tarn_score_lines_close(&x);
  tarn_score_lines_close(&y);
  return status == TARN_STATUS_MEMORY ? status : TARN_STATUS_OK;
}

static bool same_folder(const char *a, const char *b) { return a == b || (a && b && tarn__file_same(a, b)); }

static tarn_status check_precisions(const tarn_results_run *a, const tarn_results_run *b) {
  const char *x = a->test_precision ? a->test_precision : "fp32";
  const char *y = b->test_precision ? b->test_precision : "fp32";
  TARN_REQUIRE(strcmp(x, y) == 0, DATA, "%s and %s cannot stand in one table: their tests were computed in %s and %s",
               a->path, b->path, x, y);
  return TARN_STATUS_OK;
}

static tarn_status check_translations(const tarn_results_run *a, const tarn_results_run *b) {
  bool same;
  TARN_TRY(check_precisions(a, b));
  TARN_REQUIRE(same_text(a->test_signature, b->test_signature), DATA,
               "%s and %s cannot stand in one table: their test BLEU has other signatures (%s and %s)", a->path,
               b->path, shown(a->test_signature), shown(b->test_signature));
  TARN_TRY(same_lines(&same, a->test_reference, b->test_reference));
  TARN_REQUIRE(
      a->test_sentences == b->test_sentences && same, DATA,
      "%s and %s cannot stand in one table: their test BLEU has other references (%lld lines of %s and %lld of "
      "%s)",
      a->path, b->path, (long long)a->test_sentences, shown(a->test_reference), (long long)b->test_sentences,
      shown(b->test_reference));
  TARN_TRY(same_lines(&same, a->test_source, b->test_source));
  TARN_REQUIRE(same, DATA, "%s and %s cannot stand in one table: their test BLEU is of other sources (%s and %s)",
               a->path, b->path, shown(a->test_source), shown(b->test_source));
  return TARN_STATUS_OK;
}

// The same for both runs' ways of decoding, which are of one kind.
static tarn_status check_test_search(const tarn_results_run *a, const tarn_results_run *b) {
  if (decoding_of(a) == TARN__DECODING_EDITS) {
    const double x = a->test_placeholder_penalty, y = b->test_placeholder_penalty;
    TARN_REQUIRE(a->test_iterations == b->test_iterations && (x == y || isnan(x) || isnan(y)), DATA,
                 "%s and %s cannot stand in one table: their test BLEU has other iterations (%lld and %lld) or "
                 "placeholder penalties (%g and %g)",
                 a->path, b->path, (long long)a->test_iterations, (long long)b->test_iterations, x, y);
    return TARN_STATUS_OK;
  }
  if (decoding_of(a) == TARN__DECODING_MASKS) {
    TARN_REQUIRE(a->test_iterations == b->test_iterations && a->test_length_beam == b->test_length_beam, DATA,
                 "%s and %s cannot stand in one table: their test BLEU has other iterations (%lld and %lld) or length "
                 "beams (%lld and %lld)",
                 a->path, b->path, (long long)a->test_iterations, (long long)b->test_iterations,
                 (long long)a->test_length_beam, (long long)b->test_length_beam);
    return TARN_STATUS_OK;
  }
  TARN_REQUIRE(a->test_beam == b->test_beam, DATA,
               "%s and %s cannot stand in one table: their test BLEU has other beams (%lld and %lld)", a->path, b->path,
               (long long)a->test_beam, (long long)b->test_beam);
  const double x = a->test_length_penalty, y = b->test_length_penalty;
  TARN_REQUIRE(x == y || isnan(x) || isnan(y), DATA,
               "%s and %s cannot stand in one table: their test BLEU has other length penalties (%g and %g)", a->path,
               b->path, x, y);
  return TARN_STATUS_OK;
}

static tarn_status check_pairs(const tarn_results_run *a, const tarn_results_run *b) {
  TARN_TRY(check_precisions(a, b));
  TARN_REQUIRE(a->test_pairs == b->test_pairs && same_folder(a->test_folder, b->test_folder), DATA,
               "%s and %s cannot stand in one table: their minimal pairs differ (%lld of %s and %lld of %s)", a->path,
               b->path, (long long)a->test_pairs, shown(a->test_folder), (long long)b->test_pairs,
               shown(b->test_folder));
  return TARN_STATUS_OK;
}

static bool is_measured(const tarn_results_run *run) { return run->test_set != NULL; }

static bool all_tested_by(const tarn_results *r, const tarn_measure *measure) {
  size_t count = 0;
  for (size_t i = 0; i < r->run_count; i++) {
    if (!is_finished(&r->runs[i]) || !is_measured(&r->runs[i])) continue;
    if (isnan(r->runs[i].test[measure->number])) return false;
    count++;
  }
  return count > 0;
}

static void find_test_measure(struct tarn__results_table_memory *t) {
  const tarn_measure *own = tarn_measure_find(t->public.metric);
  if (own && all_tested_by(t->results, own)) t->public.test_measure = own;
  if (t->public.test_measure) return;
  int most = 0;
  for (int m = 0; m < TARN__METRIC_COUNT; m++) {
    const tarn__measure *measure = tarn__measure_at(m);
    if (measure->precedence <= most || !all_tested_by(t->results, &measure->shown)) continue;
    t->public.test_measure = &measure->shown;
    most = measure->precedence;
  }
}

static tarn_status check_measured(const tarn_results_run *a, const tarn_results_run *b) {
  TARN_TRY(check_precisions(a, b));
  TARN_REQUIRE(same_text(a->test_set, b->test_set) && a->test_size == b->test_size, DATA,
               "%s and %s cannot stand in one table: they were tested on other data (%lld of %s and %lld of %s)",
               a->path, b->path, (long long)a->test_size, shown(a->test_set), (long long)b->test_size,
               shown(b->test_set));
  TARN_REQUIRE(a->test_window == b->test_window && a->test_stride == b->test_stride, DATA,
               "%s and %s cannot stand in one table: windows and strides of their tests differ (%lld and %lld, %lld "
               "and %lld)",
               a->path, b->path, (long long)a->test_window, (long long)a->test_stride, (long long)b->test_window,
               (long long)b->test_stride);
  return TARN_STATUS_OK;
}

// Fails unless all test scores of a kind are from one test; notes their precision if it is not fp32.
static tarn_status check_tests(struct tarn__results_table_memory *t) {
  const tarn_results *r = t->results;
  const tarn_results_run *translated = NULL;
  const tarn_results_run *paired = NULL;
  const tarn_results_run *measured = NULL;
  kinds k = {0};
  for (size_t i = 0; i < r->run_count; i++) {
    const tarn_results_run *run = &r->runs[i];
    const tarn_results_run *same = NULL;
    if (!is_finished(run)) continue;
    if (!isnan(run->test_bleu) && translated) TARN_TRY(check_translations(translated, run));
    if (!isnan(run->test_bleu)) TARN_TRY(find_kind(t, &k, run, &same));
    if (same) TARN_TRY(check_test_search(same, run));
    if (!isnan(run->test_blimp) && paired) TARN_TRY(check_pairs(paired, run));
    if (is_measured(run) && measured) TARN_TRY(check_measured(measured, run));
    if (is_measured(run) && !measured) measured = run;
    if (!isnan(run->test_bleu) && !translated) translated = run;
    if (!isnan(run->test_blimp) && !paired) paired = run;
  }
  const tarn_results_run *tested = translated ? translated : paired ? paired : measured;
  find_test_measure(t);
  if (!tested || !tested->test_precision || strcmp(tested->test_precision, "fp32") == 0) return TARN_STATUS_OK;
  return tarn__table_note(t, "the tests were computed in %s", tested->test_precision);
}

double tarn__table_end(const tarn_results_run *run) {
  double end = run->seconds;
  for (size_t s = 0; s < run->series_count; s++) {
    const tarn_results_series *series = &run->series[s];
    if (series->count > 0) end = fmax(end, series->points[series->count - 1].seconds);
  }
  return end;
}

// The runs' own limits, if T-hat is not given.
static tarn_status own_budget(struct tarn__results_table_memory *t, const tarn_results_run *first,
                              const tarn_results_run *run) {
  double a = first->config->train.max_minutes;
  double b = run->config->train.max_minutes;
  TARN_REQUIRE(a == b, DATA,
               "%s and %s cannot stand in one table: their budgets differ (train.max_minutes %g and %g); give a budget "
               "that all have",
               first->path, run->path, a, b);
  // Runs limited by updates or epochs are all shown to their end.
  t->public.budget = b > 0 ? b * 60 : fmax(t->public.budget, tarn__table_end(run));
  TARN_REQUIRE(t->public.budget > 0, DATA, "%s has no budget (train.max_minutes is 0) and took no time", run->path);
  return TARN_STATUS_OK;
}

static tarn_status check_reach(const tarn_results_run *run, double budget) {
  double own = run->config->train.max_minutes * 60;
  TARN_REQUIRE(strcmp(run->end, "minutes") != 0 || own >= budget * (1 - 1e-6), DATA,
               "%s ended by train.max_minutes after %g minutes and says nothing of a budget of %g; give a smaller one",
               run->path, own / 60, budget / 60);
  return TARN_STATUS_OK;
}

tarn_status tarn__table_check(struct tarn__results_table_memory *t) {
  const tarn_results *r = t->results;
  const tarn_results_run *first = NULL;
  TARN_TRY(check_finished(r));
  TARN_TRY(find_metric(t));
  TARN_TRY(check_tests(t));
  TARN_TRY(check_searches(t));
  t->public.budget = t->options.budget > 0 ? t->options.budget : r->budget;
  bool given = t->public.budget > 0;
  for (size_t i = 0; i < r->run_count; i++) {
    const tarn_results_run *run = &r->runs[i];
    if (!is_finished(run)) continue;
    if (!first) first = run;
    TARN_TRY(check_pair(first, run, t->public.metric));
    TARN_TRY(note_losses(t, first, run));
    if (!given) TARN_TRY(own_budget(t, first, run));
    if (given) TARN_TRY(check_reach(run, t->public.budget));
    if (first->threads != run->threads && run->clock && strcmp(run->clock, "wall") == 0)
      TARN_TRY(tarn__table_note(t, "%s ran with %lld threads, %s with %lld", run->path, (long long)run->threads,
                                first->path, (long long)first->threads));
    if (!same_text(first->version, run->version))
      TARN_TRY(tarn__table_note(t, "%s was trained by tarn %s, %s by tarn %s", run->path, shown(run->version),
                                first->path, shown(first->version)));
    else if (run == first && run->version && strcmp(run->version, TARN_VERSION) != 0)
      TARN_TRY(tarn__table_note(t, "the runs were trained by tarn %s, this is tarn %s", run->version, TARN_VERSION));
  }
  t->longest = !given && first->config->train.max_minutes <= 0;
  t->public.clock = first->clock;
  return TARN_STATUS_OK;
}
