#include "report/report_view.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/config_word.h"
#include "report/svg_axis.h"
#include "tarn/measure.h"
#include "task/task.h"

#define DASH "\xE2\x80\x93"
#define MINUS "\xE2\x88\x92"
#define PLUS_MINUS "\xC2\xB1"

const char *tarn__report_text(tarn__report *view, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  void *text = NULL;
  if (view->status == TARN_STATUS_OK && length >= 0)
    view->status = tarn__arena_alloc(&view->arena, &text, (size_t)length + 1, 1);
  if (view->status != TARN_STATUS_OK || !text) return "";
  va_start(arguments, format);
  vsnprintf(text, (size_t)length + 1, format, arguments);
  va_end(arguments);
  return text;
}

const char *tarn__report_number(tarn__report *view, double value, int decimals) {
  char text[TARN__SVG_NUMBER];
  if (isnan(value)) return DASH;
  tarn__svg_number(text, value, decimals);
  return tarn__report_text(view, "%s", text);
}

const char *tarn__report_spread(tarn__report *view, const tarn_results_statistic *statistic, double unit,
                                int decimals) {
  char mean[TARN__SVG_NUMBER];
  char sd[TARN__SVG_NUMBER];
  if (statistic->count == 0 || isnan(statistic->mean)) return DASH;
  tarn__svg_number(mean, statistic->mean / unit, decimals);
  if (isnan(statistic->sd)) return tarn__report_text(view, "%s", mean);
  tarn__svg_number(sd, statistic->sd / unit, decimals);
  return tarn__report_text(view, "%s " PLUS_MINUS " %s", mean, sd);
}

const char *tarn__report_signed(tarn__report *view, double value, int decimals) {
  char text[TARN__SVG_NUMBER];
  if (isnan(value)) return DASH;
  tarn__svg_number(text, fabs(value), decimals);
  return tarn__report_text(view, "%s%s", value < 0 ? MINUS : "+", text);
}

bool tarn__report_has_config(const tarn_results_run *run) { return run->config != NULL; }
bool tarn__report_has_sizes(const tarn_results_run *run) { return run->parameters >= 0; }

const tarn_results_run *tarn__report_first(const tarn__report *view, const tarn_results_group *group,
                                           tarn__report_has has) {
  for (size_t i = 0; i < group->run_count; i++)
    if (has(&view->results->runs[group->runs[i]])) return &view->results->runs[group->runs[i]];
  return NULL;
}

// --- frozen layers

// Appends " 1 3 5" or " 1" DASH "4": the depths of frozen layers, runs of three or more as a range.
static void depths(char *text, size_t size, const tarn_results_stack *stack) {
  size_t used = strlen(text);
  for (int i = 0; i < stack->count && used + 32 < size; i++) {
    if (!stack->layers[i].frozen) continue;
    int last = i;
    while (last + 1 < stack->count && stack->layers[last + 1].frozen) last++;
    if (last - i >= 2) {
      used += (size_t)snprintf(text + used, size - used, " %d" DASH "%d", i + 1, last + 1);
      i = last;
    } else {
      used += (size_t)snprintf(text + used, size - used, " %d", i + 1);
    }
  }
}

static const char *stack_frozen(tarn__report *view, const char *name, const tarn_results_stack *stack) {
  char text[2048];
  snprintf(text, sizeof text, "%s", name);
  depths(text, sizeof text, stack);
  return tarn__report_text(view, "%s of %d", text, stack->count);
}

static int count_partly(const tarn_results_stack *stack) {
  int count = 0;
  for (int32_t i = 0; i < stack->count; i++) count += stack->layers[i].partly_frozen;
  return count;
}

static int count_matrices(const tarn_results_stack *stack) {
  int count = 0;
  for (int32_t i = 0; i < stack->count; i++) count += stack->layers[i].matrices;
  return count;
}

static bool has_layers(const tarn_results_group *group) { return group->encoder.layers || group->decoder.layers; }

const char *tarn__report_frozen(tarn__report *view, const tarn_results_group *group) {
  const tarn_results_run *first = tarn__report_first(view, group, tarn__report_has_config);
  if (!has_layers(group)) return "not begun";
  const char *text = "no layer frozen";
  const char *encoder = stack_frozen(view, "encoder", &group->encoder);
  const char *decoder = stack_frozen(view, "decoder", &group->decoder);
  if (group->encoder.frozen && group->decoder.frozen)
    text = tarn__report_text(view, "%s, %s frozen", encoder, decoder);
  else if (group->encoder.frozen || group->decoder.frozen)
    text = tarn__report_text(view, "%s frozen", group->encoder.frozen ? encoder : decoder);
  const int matrices = count_matrices(&group->encoder) + count_matrices(&group->decoder);
  if (matrices)
    text = matrices == group->encoder.frozen + group->decoder.frozen
               ? tarn__report_text(view, "%s but for norms and biases", text)
               : tarn__report_text(view, "%s, %d of them but for norms and biases", text, matrices);
  const tarn_config *config = first ? first->config : NULL;
  if (config && config->model.frozen_embeddings != TARN_FROZEN_EMBEDDINGS_NONE)
    text = tarn__report_text(
        view,
        tarn__task_sides(tarn__config_task(config)) > 1 ? "%s, input embeddings (%s) frozen" : "%s, embedding frozen",
        text, tarn__config_word("model.frozen_embeddings", (int)config->model.frozen_embeddings));
  const int partly = count_partly(&group->encoder) + count_partly(&group->decoder);
  if (partly)
    text = group->encoder.frozen + group->decoder.frozen
               ? tarn__report_text(view, "%s, parts of %d more", text, partly)
               : tarn__report_text(view, "parts of %d layer%s frozen", partly, partly > 1 ? "s" : "");
  size_t at_once = 0, later = 0;
  for (size_t i = 0; i < group->run_count; i++) {
    const tarn_results_run *run = &view->results->runs[group->runs[i]];
    size_t start = 0;
    while (start < run->freeze_count && run->freezes[start].step == 0) start++;
    if (start > at_once) at_once = start;
    if (run->freeze_count - start > later) later = run->freeze_count - start;
  }
  // A partially fine-tuned body has frozen parts that are not reservoirs.
  const bool regular = strcmp(text, "no layer frozen") == 0;
  if (at_once && regular)
    text = tarn__report_text(view, "%zu part%s frozen from update 0", at_once, at_once > 1 ? "s" : "");
  else if (at_once)
    text = tarn__report_text(view, "%s, %zu more from update 0", text, at_once);
  if (later && regular && !at_once)
    text = tarn__report_text(view, "%zu layer%s frozen during training", later, later > 1 ? "s" : "");
  else if (later)
    text = tarn__report_text(view, "%s, %zu more during training", text, later);
  if (group->layer_drop > 0) text = tarn__report_text(view, "%s, LayerDrop %g", text, group->layer_drop);
  return text;
}

// --- names and units

const char *tarn__report_score(tarn__report *view, const char *name) {
  const char *slash = strchr(name, '/');
  if (!slash) return tarn__report_text(view, "%s", name);
  const char *word = slash + 1;
  size_t part = (size_t)(slash - name);
  const tarn_measure *measure = tarn_measure_find(name);
  if (measure) word = measure->name;
  if (part == 5 && strncmp(name, "valid", 5) == 0) return tarn__report_text(view, "validation %s", word);
  if (part == 5 && strncmp(name, "train", 5) == 0) return tarn__report_text(view, "training %s", word);
  return tarn__report_text(view, "%.*s %s", (int)part, name, word);
}

int tarn__report_decimals(const char *name) {
  const tarn_measure *measure = tarn_measure_find(name);
  return measure ? measure->digits : 2;
}

const char *tarn__report_processor(tarn__report *view, const char *what) {
  if (!view->table->processor) return "";
  return tarn__report_text(view, " %s of the runs on %s alone.", what, view->table->processor);
}

static void take_units(tarn__report *view) {
  char number[TARN__SVG_NUMBER];
  double budget = view->table->budget;
  bool minutes = budget >= 300;
  view->unit = minutes ? 60 : 1;
  view->unit_name = minutes ? "minutes" : "seconds";
  view->unit_mark = minutes ? "min" : "s";
  const double shown = budget / view->unit;
  tarn__svg_number(number, shown, fabs(shown - round(shown)) < 0.05 ? 0 : 1);
  view->budget = tarn__report_text(view, "%s %s", number, view->unit_name);
}

static void take_entries(tarn__report *view) {
  int style = 1;
  for (size_t r = 0; r < view->table->row_count; r++)
    view->entries[view->table->rows[r].group].row = &view->table->rows[r];
  view->baseline = &view->entries[view->table->rows[view->table->baseline].group];
  for (size_t i = 0; i < view->count; i++) {
    tarn__report_entry *entry = &view->entries[i];
    entry->group = &view->results->groups[i];
    if (entry->row && entry->group->finished == 0) entry->row = NULL;
    const bool begun = has_layers(entry->group);
    entry->label = (tarn__chart_label){.name = entry->group->name,
                                       .note = tarn__report_frozen(view, entry->group),
                                       .encoder = begun ? &entry->group->encoder : NULL,
                                       .decoder = begun ? &entry->group->decoder : NULL,
                                       .style = entry == view->baseline ? 0 : style++};
  }
}

static void take_test(tarn__report *view) {
  bool has_blimp = false;
  for (size_t i = 0; i < view->results->run_count; i++) {
    view->has_bleu |= !isnan(view->results->runs[i].test_bleu);
    has_blimp |= !isnan(view->results->runs[i].test_blimp);
  }
  const tarn_measure *measure = view->table->test_measure;
  view->test_score = measure ? tarn__report_text(view, "test %s", measure->name) : "test score";
  view->test_decimals = measure ? measure->digits : 2;
  view->test = view->has_bleu ? "test BLEU" : has_blimp ? "BLiMP (%)" : view->test_score;
  view->tested = view->has_bleu ? TARN_RESULTS_JUDGED_TEST_BLEU
                 : has_blimp    ? TARN_RESULTS_JUDGED_TEST_BLIMP
                                : TARN_RESULTS_JUDGED_TEST_SCORE;
  view->has_test = has_blimp || view->has_bleu || measure;
}

const tarn_results_statistic *tarn__report_test(const tarn__report *view, const tarn_results_row *row) {
  return view->tested == TARN_RESULTS_JUDGED_TEST_SCORE   ? &row->test_score
         : view->tested == TARN_RESULTS_JUDGED_TEST_BLIMP ? &row->test_blimp
                                                          : &row->test_bleu;
}

tarn_status tarn__report_view_open(tarn__report *view, const tarn_results *results, const tarn_results_table *table,
                                   const char *title) {
  view->results = results;
  view->table = table;
  view->count = results->group_count;
  void *entries = NULL;
  TARN_TRY(tarn__arena_alloc(&view->arena, &entries, view->count, sizeof *view->entries));
  view->entries = entries;
  take_test(view);
  view->title = title ? title : results->sweep;
  if (!view->title)
    view->title =
        tarn__report_text(view, "Comparison of %zu configuration%s", view->count, view->count == 1 ? "" : "s");
  view->score = tarn__report_score(view, table->metric);
  view->decimals = tarn__report_decimals(table->metric);
  take_units(view);
  take_entries(view);
  return tarn__report_origin(view);
}

void tarn__report_view_close(tarn__report *view) { tarn__arena_close(&view->arena); }
