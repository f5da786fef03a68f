// The comparison of configurations.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "description/description.h"
#include "report/measures.h"
#include "report/table_build.h"
#include "run/names.h"
#include "run/run_file.h"
#include "tarn/lab/results.h"
#include "tarn/measure.h"
#include "tarn/text.h"

void tarn_results_default(tarn_results_options *options) {
  *options = (tarn_results_options){.resamples = 1000, .seed = 12345};
}

static tarn_status find_baseline(struct tarn__results_table_memory *t) {
  const tarn_results *r = t->results;
  const char *name = t->options.baseline;
  const char *names[64];
  size_t count = 0;
  t->public.baseline = r->baseline < r->group_count ? r->baseline : 0;
  if (!name) return TARN_STATUS_OK;
  for (size_t g = 0; g < r->group_count; g++) {
    if (count < 64) names[count++] = r->groups[g].name;
    if (strcmp(r->groups[g].name, name) != 0) continue;
    t->public.baseline = g;
    return TARN_STATUS_OK;
  }
  const char *nearest = tarn_text_nearest(name, names, count);
  return tarn__fail(TARN_STATUS_USAGE, "there is no configuration \"%s\" to be the baseline; %s \"%s\"%s", name,
                    nearest ? "did you mean" : "the first one is", nearest ? nearest : r->groups[0].name,
                    nearest ? "?" : "");
}

// --- runs

// One note for all curves that end before T-hat: runs of a table often end alike.
static tarn_status note_held(struct tarn__results_table_memory *t) {
  const tarn_results *r = t->results;
  const char *names = "";
  size_t held = 0;
  for (size_t i = 0; i < r->run_count; i++) {
    const tarn_results_run *run = &r->runs[i];
    if (!t->measures[i].held || held++ >= TARN__NAMED_RUNS) continue;
    const tarn_results_series *series = tarn_results_find(run, t->public.metric);
    const bool ridge = strcmp(run->end, "pass") == 0;
    TARN_TRY(tarn__arena_print(&names, &t->arena, "%s%s%s after %.4g (train.%s%s)", names, held > 1 ? ", " : "",
                               run->path, series->points[series->count - 1].seconds / 60,
                               ridge || strcmp(run->end, "patience") == 0 ? "" : "max_",
                               ridge ? "optimiser: ridge" : run->end));
  }
  if (held > TARN__NAMED_RUNS)
    TARN_TRY(tarn__arena_print(&names, &t->arena, "%s and %zu more", names, held - TARN__NAMED_RUNS));
  if (held == 0) return TARN_STATUS_OK;
  return tarn__table_note(t, "%zu curve%s before %.4g minutes, and %s held: %s", held, held > 1 ? "s end" : " ends",
                          t->public.budget / 60, held > 1 ? "their last values are" : "its last value is", names);
}

// Adds a run to `names` if it is one of the first TARN__NAMED_RUNS; *count is the number before it.
static tarn_status add_name(struct tarn__results_table_memory *t, const char **names, size_t *count, const char *path) {
  if ((*count)++ >= TARN__NAMED_RUNS) return TARN_STATUS_OK;
  return tarn__arena_print(names, &t->arena, "%s%s%s", *names, *count > 1 ? ", " : "", path);
}

static tarn_status end_names(struct tarn__results_table_memory *t, const char **names, size_t count) {
  if (count <= TARN__NAMED_RUNS) return TARN_STATUS_OK;
  return tarn__arena_print(names, &t->arena, "%s and %zu more", *names, count - TARN__NAMED_RUNS);
}

// One note for all runs without a time to best.
static tarn_status note_unlearnt(struct tarn__results_table_memory *t) {
  const tarn_results *r = t->results;
  const char *names = "";
  size_t count = 0;
  for (size_t i = 0; i < r->run_count; i++)
    if (!isnan(t->measures[i].best) && isnan(t->measures[i].best_seconds))
      TARN_TRY(add_name(t, &names, &count, r->runs[i].path));
  if (count == 0) return TARN_STATUS_OK;
  TARN_TRY(end_names(t, &names, count));
  return tarn__table_note(t, "%zu run%s no better %s than at the first validation, and no time to best: %s", count,
                          count > 1 ? "s have" : " has", t->public.metric, names);
}

// One note for all runs that have not started, and one for those in progress.
static tarn_status note_unfinished(struct tarn__results_table_memory *t, tarn_results_state state, const char *one,
                                   const char *many) {
  const tarn_results *r = t->results;
  const char *names = "";
  size_t count = 0;
  for (size_t i = 0; i < r->run_count; i++)
    if (r->runs[i].state == state) TARN_TRY(add_name(t, &names, &count, r->runs[i].path));
  if (count == 0) return TARN_STATUS_OK;
  TARN_TRY(end_names(t, &names, count));
  if (count == 1) return tarn__table_note(t, "%s %s and is in no mean", names, one);
  return tarn__table_note(t, "%zu runs %s and are in no mean: %s", count, many, names);
}

// One note for all runs without a time to their smallest loss: in validation, and in training.
static tarn_status note_rising(struct tarn__results_table_memory *t) {
  size_t valid = 0, train = 0;
  for (size_t i = 0; i < t->results->run_count; i++) {
    const tarn_results_measures *m = &t->measures[i];
    valid += !isnan(m->min_loss) && isnan(m->min_loss_seconds);
    train += !isnan(m->min_train_loss) && isnan(m->min_train_loss_seconds);
  }
  if (valid > 0)
    TARN_TRY(tarn__table_note(t, "%zu run%s no less valid/loss than at the first validation, and no time to the least",
                              valid, valid > 1 ? "s have" : " has"));
  if (train > 0)
    TARN_TRY(tarn__table_note(t, "%zu run%s no less train/loss than on the log's first line, and no time to the least",
                              train, train > 1 ? "s have" : " has"));
  return TARN_STATUS_OK;
}

// Whether they are one training: of two the times differ, however alike they are.
static bool is_copy(const tarn_results_run *a, const tarn_results_run *b) {
  if (a->state != TARN_RESULTS_FINISHED || b->state != TARN_RESULTS_FINISHED) return false;
  if (!a->config_hash || !b->config_hash || strcmp(a->config_hash, b->config_hash) != 0) return false;
  return (a->reused || b->reused) && a->seconds == b->seconds && a->step == b->step;
}

// Runs that a queue copied, compared with those that it copied them from.
static tarn_status note_copies(struct tarn__results_table_memory *t) {
  const tarn_results *r = t->results;
  const char *names = "";
  size_t count = 0;
  for (size_t i = 0; i < r->run_count; i++) {
    size_t k = 0;
    while (k < i && !is_copy(&r->runs[k], &r->runs[i])) k++;
    if (k < i) TARN_TRY(add_name(t, &names, &count, r->runs[i].path));
  }
  TARN_TRY(end_names(t, &names, count));
  if (count == 0) return TARN_STATUS_OK;
  return tarn__table_note(t, "%zu run%s of trainings that stand here twice, so verdicts take one for two: %s", count,
                          count > 1 ? "s are copies" : " is a copy", names);
}

// Seconds of an update; 0: not known, or not the table's.
static double update_seconds(const struct tarn__results_table_memory *t, size_t index) {
  const tarn_results_run *run = &t->results->runs[index];
  const bool here = run->state == TARN_RESULTS_FINISHED && !t->measures[index].elsewhere;
  return here && run->step > 0 && run->seconds > 0 ? run->seconds / (double)run->step : 0;
}

// Processor time also grows where other work shares the caches and the cores' units, so that runs of one configuration
// differ by more than their seeds.
static tarn_status note_busy(struct tarn__results_table_memory *t) {
  static const double MOST = 1.5;
  const tarn_results *r = t->results;
  const char *names = "";
  size_t count = 0;
  double most = 0;
  for (size_t g = 0; g < r->group_count; g++) {
    const tarn_results_group *group = &r->groups[g];
    double least = INFINITY;
    for (size_t i = 0; i < group->run_count; i++) {
      const double own = update_seconds(t, group->runs[i]);
      if (own > 0) least = fmin(least, own);
    }
    for (size_t i = 0; i < group->run_count; i++) {
      const double ratio = update_seconds(t, group->runs[i]) / least;
      if (ratio <= MOST) continue;
      most = fmax(most, ratio);
      TARN_TRY(add_name(t, &names, &count, r->runs[group->runs[i]].path));
    }
  }
  TARN_TRY(end_names(t, &names, count));
  if (count == 0) return TARN_STATUS_OK;
  return tarn__table_note(t,
                          "updates of %zu run%s took up to %.2g times as long as in the fastest run of the same "
                          "configuration, as on a busy machine, so times and areas over time are not to be trusted: %s",
                          count, count > 1 ? "s" : "", most, names);
}

// The line of exponents at the end of a run, which has none of sentences whose perturbations vanish.
static tarn_status note_exponents(struct tarn__results_table_memory *t) {
  const tarn_results *r = t->results;
  const char *without = "", *partial = "";
  size_t without_count = 0, partial_count = 0;
  for (size_t i = 0; i < r->run_count; i++) {
    const tarn_results_run *run = &r->runs[i];
    if (run->state != TARN_RESULTS_FINISHED) continue;
    const int64_t step = tarn__measures_exponent_step(run, tarn__table_budget(t, i));
    if (step < 0) continue;
    if (isnan(t->measures[i].exponent))
      TARN_TRY(add_name(t, &without, &without_count, run->path));
    else if (tarn__measures_at(run, "dynamics/vanished", step) > 0 ||
             tarn__measures_at(run, "dynamics/diverged", step) > 0)
      TARN_TRY(add_name(t, &partial, &partial_count, run->path));
  }
  TARN_TRY(end_names(t, &without, without_count));
  TARN_TRY(end_names(t, &partial, partial_count));
  if (without_count > 0)
    TARN_TRY(tarn__table_note(t, "%zu run%s no last exponent, as no sentence has a finite one at the end: %s",
                              without_count, without_count > 1 ? "s have" : " has", without));
  if (partial_count == 0) return TARN_STATUS_OK;
  return tarn__table_note(t,
                          "%zu run%s sentences at the end whose perturbations vanish or whose states diverge, and the "
                          "last exponent is the median of those that have one: %s",
                          partial_count, partial_count > 1 ? "s have" : " has", partial);
}

// The source of a run's energy, NULL if unknown. Estimates with different watts are different sources.
static tarn_status source_of(struct tarn__results_table_memory *t, const char **label, const tarn_results_run *run) {
  const char *source = run->state == TARN_RESULTS_FINISHED ? run->cost.source : NULL;
  const double watts = run->config ? run->config->train.core_watts : 0;
  *label = source;
  if (!source || !strstr(source, "estimate") || !(watts > 0)) return TARN_STATUS_OK;
  return tarn__arena_print(label, &t->arena, "%s (train.core_watts %.10g)", source, watts);
}

static tarn_status note_source(struct tarn__results_table_memory *t, const char *source) {
  if (strcmp(source, "estimate") == 0)
    return tarn__table_note(t, "energy is an estimate: processor seconds times train.core_watts");
  if (strstr(source, "estimate"))
    return tarn__table_note(t,
                            "energy was measured on the whole machine in some parts of a training and estimated in the "
                            "others (%s): processor seconds times train.core_watts",
                            source);
  return tarn__table_note(t, "energy is that of the whole machine as %s measured it", source);
}

// Counters of a whole machine and an estimate for one process are not comparable.
static tarn_status note_sources(struct tarn__results_table_memory *t) {
  const char *first = NULL, *names = "";
  const char **labels;
  void *memory;
  size_t sources = 0;
  TARN_TRY(tarn__arena_alloc(&t->arena, &memory, t->results->run_count, sizeof *labels));
  labels = memory;
  for (size_t i = 0; i < t->results->run_count; i++) {
    if (t->measures[i].elsewhere) continue;  // its energy is in no verdict
    TARN_TRY(source_of(t, &labels[i], &t->results->runs[i]));
    bool seen = !labels[i];
    for (size_t k = 0; k < i && !seen; k++) seen = labels[k] && strcmp(labels[k], labels[i]) == 0;
    if (seen) continue;
    TARN_TRY(tarn__arena_print(&names, &t->arena, "%s%s%s", names, sources++ > 0 ? ", " : "", labels[i]));
    if (!first) first = t->results->runs[i].cost.source;
  }
  t->other_sources = sources > 1;
  if (sources > 1)
    return tarn__table_note(t, "energy comes from different sources, which no verdict compares: %s", names);
  return sources == 0 ? TARN_STATUS_OK : note_source(t, first);
}

static void set_apart(tarn_results_measures *m, const struct tarn__results_table_memory *t, size_t run) {
  m->elsewhere = tarn__table_elsewhere(t, run);
  if (!m->elsewhere) return;
  m->held = false;
  if (t->longest) m->aucc = m->aucc_mean = m->budget_step = m->budget_epoch = NAN;
}

static tarn_status measure_runs(struct tarn__results_table_memory *t) {
  const tarn_results *r = t->results;
  TARN_TRY(tarn__table_processors(t));
  for (size_t i = 0; i < r->run_count; i++) {
    const tarn_results_run *run = &r->runs[i];
    tarn_results_measures *m = &t->measures[i];
    tarn__measures_blank(m);
    if (run->config_changed)
      TARN_TRY(tarn__table_note(t, "%s/" TARN__RUN_CONFIG " is not the one that this run was trained with (%s)",
                                run->path, run->config_changed));
    if (run->log_changed)
      TARN_TRY(tarn__table_note(t, "%s: its log is not the one that the training wrote, so its curve is not either: %s",
                                run->path, run->log_changed));
    if (run->log_accepted)
      TARN_TRY(tarn__table_note(t,
                                "%s went on at update %lld with a log that was not the training's (--accept-log): %s",
                                run->path, (long long)run->log_accepted_step, run->log_accepted));
    if (run->state == TARN_RESULTS_FAILED)
      TARN_TRY(tarn__table_note(t, "%s failed and is in no mean: %s", run->path,
                                run->message ? run->message : "it does not say why"));
    m->elsewhere = run->state == TARN_RESULTS_FAILED && tarn__table_elsewhere(t, i);
    if (run->state != TARN_RESULTS_FINISHED) continue;
    const tarn_results_series *series = tarn_results_find(run, t->public.metric);
    TARN_TRY(tarn__measures_of(m, run, series, tarn__table_budget(t, i)));
    set_apart(m, t, i);
    if (t->public.test_measure) m->test_score = run->test[t->public.test_measure->number];
  }
  for (size_t g = 0; g < r->group_count; g++)
    if (r->groups[g].chosen) TARN_TRY(tarn__table_note(t, "%s: %s", r->groups[g].name, r->groups[g].chosen));
  TARN_TRY(note_unfinished(t, TARN_RESULTS_UNFINISHED, "is not finished", "are not finished"));
  TARN_TRY(note_unfinished(t, TARN_RESULTS_PENDING, "has not begun", "have not begun"));
  TARN_TRY(note_held(t));
  TARN_TRY(note_unlearnt(t));
  TARN_TRY(note_sources(t));
  TARN_TRY(note_copies(t));
  TARN_TRY(note_busy(t));
  TARN_TRY(note_exponents(t));
  return note_rising(t);
}

// --- configurations

// The mean and deviation over a group's finished runs of the field at `offset` of the measures, if known; if it is
// `timed`, of those on the table's processor.
static tarn_results_statistic summarise(const struct tarn__results_table_memory *t, const tarn_results_group *group,
                                        size_t offset, bool timed) {
  tarn_results_statistic s = {NAN, NAN, 0};
  double sum = 0;
  double squares = 0;
  for (int pass = 0; pass < 2; pass++) {
    s.count = 0;
    for (size_t i = 0; i < group->run_count; i++) {
      double value;
      memcpy(&value, (const char *)&t->measures[group->runs[i]] + offset, sizeof value);
      if (isnan(value) || (timed && t->measures[group->runs[i]].elsewhere)) continue;
      s.count++;
      if (pass == 0) sum += value;
      if (pass == 1) squares += (value - s.mean) * (value - s.mean);
    }
    if (s.count) s.mean = sum / (double)s.count;
  }
  if (s.count > 1) s.sd = sqrt(squares / (double)(s.count - 1));
  return s;
}

static void fill_row(struct tarn__results_table_memory *t, size_t index) {
  const tarn_results_group *group = &t->results->groups[index];
  tarn_results_row *row = &t->rows[index];
  row->group = index;
  row->baseline = index == t->public.baseline;
#define SUMMARISE(field) row->field = summarise(t, group, offsetof(tarn_results_measures, field), false)
#define TIMED(field) row->field = summarise(t, group, offsetof(tarn_results_measures, field), true)
  TIMED(aucc);
  TIMED(aucc_mean);
  SUMMARISE(best);
  TIMED(best_seconds);
  SUMMARISE(min_loss);
  TIMED(min_loss_seconds);
  TIMED(epoch_seconds);
  TIMED(budget_step);
  TIMED(budget_epoch);
  SUMMARISE(test_bleu);
  SUMMARISE(test_chrf);
  SUMMARISE(test_blimp);
  SUMMARISE(test_score);
  SUMMARISE(exponent);
  SUMMARISE(min_train_loss);
  TIMED(min_train_loss_seconds);
  SUMMARISE(epoch_train_loss);
  TIMED(peak_bytes);
  TIMED(joules);
  TIMED(epoch_joules);
  TIMED(best_joules);
  TIMED(co2_grams);
  SUMMARISE(token_operations);
  SUMMARISE(operations);
  SUMMARISE(best_operations);
  SUMMARISE(moved_bytes);
#undef SUMMARISE
#undef TIMED
  for (size_t i = 0; i < group->run_count; i++) {
    row->held += t->measures[group->runs[i]].held;
    row->assumed_start += t->measures[group->runs[i]].assumed_start;
  }
}

// --- the regular configurations with the same number of updatable layers, and of all layers

static const tarn_config *config_of(const tarn_results *r, const tarn_results_group *group) {
  for (size_t i = 0; i < group->run_count; i++)
    if (r->runs[group->runs[i]].config) return r->runs[group->runs[i]].config;
  return NULL;
}

static bool all_regular(const tarn_results_stack *stack) {
  for (int32_t i = 0; i < stack->count; i++)
    if (stack->layers[i].frozen || stack->layers[i].partly_frozen || stack->layers[i].shared) return false;
  return true;
}

static bool is_regular(const tarn_results *r, const tarn_results_group *group) {
  const tarn_config *config = config_of(r, group);
  if (!config || group->layer_drop > 0) return false;
  for (size_t i = 0; i < group->run_count; i++)
    if (r->runs[group->runs[i]].freeze_count > 0) return false;
  return config->model.frozen_embeddings == TARN_FROZEN_EMBEDDINGS_NONE && all_regular(&group->encoder) &&
         all_regular(&group->decoder) && (group->encoder.layers || group->decoder.layers);
}

// Whether the updatable layers of both stacks have the same token mixers, from bottom to top.
static bool same_updatable(const tarn_results_stack *a, const tarn_results_stack *b) {
  if (a->trained != b->trained) return false;
  int32_t j = 0;
  for (int32_t i = 0; i < a->count; i++) {
    if (a->layers[i].frozen) continue;
    while (b->layers[j].frozen) j++;
    if (strcmp(a->layers[i].mixer, b->layers[j++].mixer) != 0) return false;
  }
  return true;
}

static bool has_mixer(const tarn_results_stack *stack, const char *mixer, bool trained) {
  for (int32_t i = 0; i < stack->count; i++)
    if (!(trained && stack->layers[i].frozen) && strcmp(stack->layers[i].mixer, mixer) == 0) return true;
  return false;
}

// Whether the stack `b`, with all layers trained, is as deep as `a` and has the mixers of the trained layers of `a`:
// reservoirs may be of other kinds.
static bool same_depth(const tarn_results_stack *a, const tarn_results_stack *b) {
  if (a->count != b->count) return false;
  for (int32_t i = 0; i < a->count; i++) {
    if (!a->layers[i].frozen && !has_mixer(b, a->layers[i].mixer, false)) return false;
    if (a->trained > 0 && !has_mixer(a, b->layers[i].mixer, true)) return false;
  }
  return true;
}

typedef bool (*same_stack)(const tarn_results_stack *a, const tarn_results_stack *b);

static bool matches(const struct tarn__results_table_memory *t, size_t group, size_t regular, same_stack same) {
  const tarn_results_group *a = &t->results->groups[group];
  const tarn_results_group *b = &t->results->groups[regular];
  return t->rows[regular].best_seconds.count > 0 && is_regular(t->results, b) && same(&a->encoder, &b->encoder) &&
         same(&a->decoder, &b->decoder);
}

// The regular configuration with matching stacks in that sense, and the ratio of the mean times to best.
static void find_regular(struct tarn__results_table_memory *t, size_t group, same_stack same, size_t *regular,
                         double *ratio) {
  const size_t count = t->results->group_count;
  *regular = t->public.baseline;
  if (!matches(t, group, *regular, same))
    for (*regular = 0; *regular < count && !matches(t, group, *regular, same);) ++*regular;
  // A regular configuration that is best before training has no time that another one could save.
  const bool known = *regular < count && t->rows[*regular].best_seconds.mean > 0;
  *ratio = known ? t->rows[group].best_seconds.mean / t->rows[*regular].best_seconds.mean : NAN;
}

// --- all

static tarn_status take(struct tarn__results_table_memory *t) {
  void *memory;
  TARN_TRY(tarn__arena_alloc(&t->arena, &memory, t->results->run_count, sizeof *t->measures));
  t->measures = memory;
  TARN_TRY(tarn__arena_alloc(&t->arena, &memory, t->results->group_count, sizeof *t->rows));
  t->rows = memory;
  return TARN_STATUS_OK;
}

static tarn_status build(struct tarn__results_table_memory *t) {
  const tarn_results *r = t->results;
  size_t assumed = 0;
  const int64_t resamples = t->options.resamples;
  TARN_REQUIRE(resamples == 0 || (resamples >= TARN_SIGNIFICANCE_LEAST && resamples <= TARN_SIGNIFICANCE_MOST), USAGE,
               "the bootstrap takes 0, or %d to %d, resamples, not %lld", TARN_SIGNIFICANCE_LEAST,
               TARN_SIGNIFICANCE_MOST, (long long)resamples);
  TARN_REQUIRE(isfinite(t->options.budget) && t->options.budget >= 0, USAGE, "the budget must not be negative");
  t->public.resamples = resamples;
  TARN_TRY(take(t));
  TARN_TRY(tarn__table_check(t));
  TARN_TRY(tarn__table_checkpoints(t));
  TARN_TRY(find_baseline(t));
  TARN_TRY(measure_runs(t));
  for (size_t g = 0; g < r->group_count; g++) fill_row(t, g);
  for (size_t g = 0; g < r->group_count; g++) {
    tarn_results_row *row = &t->rows[g];
    find_regular(t, g, same_updatable, &row->regular, &row->time_ratio);
    find_regular(t, g, same_depth, &row->regular_deep, &row->time_ratio_deep);
    assumed += t->rows[g].assumed_start;
  }
  const tarn_measure *measure = tarn_measure_find(t->public.metric);
  const bool from_zero = measure && measure->from_zero;
  if (assumed > 0 && from_zero)
    TARN_TRY(tarn__table_note(t, "%s is taken as 0 at time 0, where %zu run%s did not validate (valid.at_start)",
                              measure->name, assumed, assumed > 1 ? "s" : ""));
  if (assumed > 0 && !from_zero)
    TARN_TRY(tarn__table_note(t, "%s has no value at time 0; the first value of %zu run%s stands for it",
                              t->public.metric, assumed, assumed > 1 ? "s" : ""));
  TARN_TRY(tarn__table_verdicts(t));
  t->public.rows = t->rows;
  t->public.row_count = r->group_count;
  t->public.measures = t->measures;
  t->public.notes = t->notes;
  return TARN_STATUS_OK;
}

tarn_status tarn_results_compare(tarn_results_table **table, const tarn_results *results,
                                 const tarn_results_options *options) {
  *table = NULL;
  void *memory;
  TARN_TRY(tarn__alloc(&memory, TARN__MEMORY_OTHER, 1, sizeof(struct tarn__results_table_memory)));
  struct tarn__results_table_memory *t = memory;
  t->public.memory = t;
  t->results = results;
  tarn_results_default(&t->options);
  if (options) t->options = *options;
  tarn_status status = build(t);
  *table = &t->public;
  if (status != TARN_STATUS_OK) tarn_results_table_close(table);
  return status;
}

void tarn_results_table_close(tarn_results_table **table) {
  if (!*table) return;
  struct tarn__results_table_memory *t = (*table)->memory;
  tarn__free(t->notes);
  tarn__arena_close(&t->arena);
  tarn__free(t);
  *table = NULL;
}
