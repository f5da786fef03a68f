// The comparison of configurations.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "report/measures.h"
#include "report/run_files.h"
#include "report/table_build.h"
#include "tarn/text.h"

void tarn_results_default(tarn_results_options *options) {
  *options = (tarn_results_options){.resamples = 1000, .seed = 12345};
}

tarn_status tarn__table_note(struct tarn__results_table_memory *t, const char *format, ...) {
  char text[1024];
  char *copy;
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  TARN_TRY(tarn__arena_strdup(&t->arena, &copy, text));
  TARN_TRY(tarn__grow(&t->notes, &t->note_capacity, t->public.note_count + 1, sizeof *t->notes));
  t->notes[t->public.note_count++] = copy;
  return TARN_STATUS_OK;
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
// -------------------------------------------------------------------------------------------------------------

static tarn_status measure_runs(struct tarn__results_table_memory *t) {
  const tarn_results *r = t->results;
  double minutes = t->public.budget / 60;
  for (size_t i = 0; i < r->run_count; i++) {
    const tarn_results_run *run = &r->runs[i];
    tarn_results_measures *m = &t->measures[i];
    tarn__measures_blank(m);
    if (run->state == TARN_RESULTS_FAILED)
      TARN_TRY(tarn__table_note(t, "%s failed and is in no mean: %s", run->path,
                                run->message ? run->message : "it does not say why"));
    if (run->state == TARN_RESULTS_UNFINISHED || run->state == TARN_RESULTS_PENDING)
      TARN_TRY(tarn__table_note(t, "%s %s and is in no mean", run->path,
                                run->state == TARN_RESULTS_PENDING ? "has not begun" : "is not finished"));
    if (run->state != TARN_RESULTS_FINISHED) continue;
    const tarn_results_series *series = tarn_results_find(run, t->public.metric);
    TARN_TRY(tarn__measures_of(m, run, series, t->public.budget));
    if (m->held)
      TARN_TRY(tarn__table_note(t, "%s: the curve ends after %.4g of %.4g minutes (train.%s%s); its last value is held",
                                run->path, series->points[series->count - 1].seconds / 60, minutes,
                                strcmp(run->end, "patience") == 0 ? "" : "max_", run->end));
  }
  return TARN_STATUS_OK;
}

// --- configurations
// ---------------------------------------------------------------------------------------------------

// The mean and deviation over a group's finished runs of the field at `offset` of the measures, where it is known.
static tarn_results_statistic summarise(const struct tarn__results_table_memory *t, const tarn_results_group *group,
                                        size_t offset) {
  tarn_results_statistic s = {NAN, NAN, 0};
  double sum = 0;
  double squares = 0;
  for (int pass = 0; pass < 2; pass++) {
    s.count = 0;
    for (size_t i = 0; i < group->run_count; i++) {
      double value;
      memcpy(&value, (const char *)&t->measures[group->runs[i]] + offset, sizeof value);
      if (isnan(value)) continue;
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
#define SUMMARISE(field) row->field = summarise(t, group, offsetof(tarn_results_measures, field))
  SUMMARISE(aucc);
  SUMMARISE(aucc_mean);
  SUMMARISE(best);
  SUMMARISE(best_seconds);
  SUMMARISE(min_loss);
  SUMMARISE(min_loss_seconds);
  SUMMARISE(epoch_seconds);
  SUMMARISE(budget_step);
  SUMMARISE(budget_epoch);
  SUMMARISE(test_bleu);
  SUMMARISE(test_blimp);
  SUMMARISE(peak_bytes);
#undef SUMMARISE
  for (size_t i = 0; i < group->run_count; i++) {
    row->held += t->measures[group->runs[i]].held;
    row->assumed_start += t->measures[group->runs[i]].assumed_start;
  }
  row->pooled = (tarn_results_significance){NAN, NAN, NAN, NAN, NAN, NAN, NAN};
}

// --- the regular configuration with as many updatable layers
// ----------------------------------------------------------

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
         all_regular(&group->decoder) && group->decoder.count > 0;  // a language model has no encoder
}

// Whether the updatable layers of both stacks mix tokens in the same ways, from the bottom to the top.
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

static bool matches(const struct tarn__results_table_memory *t, size_t group, size_t regular) {
  const tarn_results_group *a = &t->results->groups[group];
  const tarn_results_group *b = &t->results->groups[regular];
  return t->rows[regular].best_seconds.count > 0 && is_regular(t->results, b) &&
         same_updatable(&a->encoder, &b->encoder) && same_updatable(&a->decoder, &b->decoder);
}

static void find_regular(struct tarn__results_table_memory *t, size_t group) {
  size_t count = t->results->group_count;
  tarn_results_row *row = &t->rows[group];
  row->regular = t->public.baseline;
  if (!matches(t, group, row->regular))
    for (row->regular = 0; row->regular < count && !matches(t, group, row->regular);) row->regular++;
  row->time_ratio = NAN;
  // A regular configuration that is scored only before its training has no time that another could save.
  if (row->regular < count && row->best_seconds.count > 0 && t->rows[row->regular].best_seconds.mean > 0)
    row->time_ratio = row->best_seconds.mean / t->rows[row->regular].best_seconds.mean;
}

// --- all
// --------------------------------------------------------------------------------------------------------------

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
  TARN_REQUIRE(t->options.resamples >= 0 && t->options.resamples <= 1000000, USAGE,
               "the bootstrap takes 0 to 1000000 resamples, not %lld", (long long)t->options.resamples);
  TARN_REQUIRE(isfinite(t->options.budget) && t->options.budget >= 0, USAGE, "the budget must not be negative");
  t->public.resamples = t->options.resamples;
  TARN_TRY(take(t));
  TARN_TRY(tarn__table_check(t));
  TARN_TRY(find_baseline(t));
  TARN_TRY(measure_runs(t));
  for (size_t g = 0; g < r->group_count; g++) fill_row(t, g);
  for (size_t g = 0; g < r->group_count; g++) {
    find_regular(t, g);
    assumed += t->rows[g].assumed_start;
  }
  if (assumed > 0 && strcmp(t->public.metric, "valid/bleu") == 0)
    TARN_TRY(
        tarn__table_note(t, "BLEU is taken as 0 at time 0, where %zu runs did not validate (valid.at_start)", assumed));
  if (assumed > 0 && strcmp(t->public.metric, "valid/bleu") != 0)
    TARN_TRY(tarn__table_note(t, "%s has no value at time 0; the first value of %zu runs stands for it",
                              t->public.metric, assumed));
  TARN_TRY(tarn__table_significance(t));
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
