// What stands in the tables.
#include "report/report_table.h"

#include <math.h>
#include <string.h>

#include "report/svg_axis.h"

#define DASH "\xE2\x80\x93"
#define MINUS "\xE2\x88\x92"

static const tarn__table_cell nothing = {DASH, NAN};

static tarn__table_cell words(const char *text) { return (tarn__table_cell){text, NAN}; }

static tarn__table_cell number(tarn__report *view, double value, int decimals) {
  return (tarn__table_cell){tarn__report_number(view, value, decimals), value};
}

static tarn__table_cell spread(tarn__report *view, const tarn_results_statistic *statistic, double unit, int decimals) {
  return (tarn__table_cell){tarn__report_spread(view, statistic, unit, decimals),
                            statistic->count ? statistic->mean : NAN};
}

// A whole number that may be unknown (-1), divided by `unit`.
static tarn__table_cell amount(tarn__report *view, int64_t value, double unit, int decimals) {
  return value < 0 ? nothing : number(view, (double)value / unit, decimals);
}

static tarn_status open_table(tarn__table *table, tarn__report *view, size_t rows) {
  void *memory = NULL;
  TARN_TRY(tarn__arena_alloc(&view->arena, &memory, rows, sizeof *table->rows));
  table->rows = memory;
  table->count = rows;
  while (table->width < TARN__TABLE_COLUMNS && table->columns[table->width].head) table->width++;
  for (size_t i = 0; i < rows; i++) {
    for (int c = 0; c < table->width; c++) table->rows[i].cells[c] = nothing;
  }
  return TARN_STATUS_OK;
}

// The columns that every table of configurations begins with.
static tarn__table_row *begin_row(tarn__table *table, tarn__report *view, size_t index) {
  tarn__table_row *row = &table->rows[index];
  const tarn__report_entry *entry = &view->entries[index];
  row->baseline = entry == view->baseline;
  row->failed = !entry->row && entry->group->failed > 0;
  row->open = !entry->row && !row->failed;
  row->cells[0] = words(entry->group->name);
  row->cells[1] = words(entry->label.note);
  return row;
}

static const char *significance(tarn__report *view, const tarn__report_entry *entry) {
  if (entry == view->baseline) return "baseline";
  if (!entry->row || entry->row->seed_count == 0 || isnan(entry->row->pooled.p_two_sided)) return DASH;
  return tarn__report_p(view, entry->row->pooled.p_two_sided);
}

static const char *difference(tarn__report *view, const tarn__report_entry *entry) {
  if (entry == view->baseline || !entry->row || entry->row->seed_count == 0) return DASH;
  const tarn_results_significance *s = &entry->row->pooled;
  if (isnan(s->difference)) return DASH;
  return tarn__report_text(view, "%s%.2f [%s%.2f, %s%.2f]", s->difference < 0 ? MINUS : "+", fabs(s->difference),
                           s->low < 0 ? MINUS : "+", fabs(s->low), s->high < 0 ? MINUS : "+", fabs(s->high));
}

static const char *run_counts(tarn__report *view, const tarn_results_group *group) {
  const char *text = tarn__report_text(view, "%zu", group->finished);
  if (group->failed) text = tarn__report_text(view, "%s, %zu failed", text, group->failed);
  size_t other = group->run_count - group->finished - group->failed;
  if (other) text = tarn__report_text(view, "%s, %zu unfinished", text, other);
  return text;
}

// For values whose size is not known beforehand.
static int fitting_decimals(double value) { return fabs(value) >= 100 ? 0 : fabs(value) >= 1 ? 2 : 4; }

static tarn_status quality(tarn__table *table, tarn__report *view) {
  int better = view->table->less ? -1 : 1;
  *table = (tarn__table){
      .id = "quality",
      .title = "Quality",
      .caption = tarn__report_text(
          view,
          "Mean and standard deviation over seeds, of finished runs. AUCC is the area under the curve of %s%s over "
          "training time up to %s; divided by that time it reads as an average score.%s",
          view->table->less ? "the negative of " : "", view->score, view->budget,
          view->has_bleu ? " Difference: test BLEU minus the baseline's on the same seeds, with its 95 % interval; p: "
                           "paired bootstrap over test sentences, both tails."
                         : ""),
      .columns = {{"model", true, 0},
                  {"frozen layers", true, 0},
                  {"runs", true, 0},
                  {tarn__report_text(view, "best %s", view->score), false, better},
                  {"test BLEU", false, 1},
                  {"BLiMP (%)", false, 1},
                  {"BLEU over baseline", false, 0},
                  {"p", false, 0},
                  {tarn__report_text(view, "AUCC (score %s minutes)", "\xC3\x97"), false, 1},
                  {"AUCC / time", false, 1},
                  {"least validation loss", false, -1}}};
  TARN_TRY(open_table(table, view, view->count));
  for (size_t i = 0; i < view->count; i++) {
    const tarn__report_entry *entry = &view->entries[i];
    tarn__table_row *row = begin_row(table, view, i);
    row->cells[2] = words(run_counts(view, entry->group));
    if (!entry->row) continue;
    row->cells[3] = spread(view, &entry->row->best, 1, view->decimals);
    row->cells[4] = spread(view, &entry->row->test_bleu, 1, 2);
    row->cells[5] = spread(view, &entry->row->test_blimp, 1, 2);
    row->cells[6] = words(difference(view, entry));
    if (view->has_bleu) row->cells[7] = words(significance(view, entry));
    row->cells[8] = spread(view, &entry->row->aucc, 1, fitting_decimals(entry->row->aucc.mean));
    row->cells[9] = spread(view, &entry->row->aucc_mean, 1, view->decimals);
    row->cells[10] = spread(view, &entry->row->min_loss, 1, 3);
  }
  return TARN_STATUS_OK;
}

static bool has_ratio(const tarn__report *view) {
  for (size_t i = 0; i < view->count; i++)
    if (view->entries[i].row && !isnan(view->entries[i].row->time_ratio)) return true;
  return false;
}

static tarn_status speed(tarn__table *table, tarn__report *view) {
  *table = (tarn__table){
      .id = "speed",
      .title = "Speed",
      .caption = tarn__report_text(
          view, "Times are those of the training clock (%s), which does not run during validation and saving.%s",
          view->table->clock ? view->table->clock : "wall",
          has_ratio(view) ? " The ratio is the time to the best score over that of the regular model with as many "
                            "updatable layers, named beside it."
                          : ""),
      .columns = {{"model", true, 0},
                  {"frozen layers", true, 0},
                  {tarn__report_text(view, "updates in %s", view->budget), false, 1},
                  {tarn__report_text(view, "epochs in %s", view->budget), false, 1},
                  {tarn__report_text(view, "time an epoch (%s)", view->unit_mark), false, -1},
                  {tarn__report_text(view, "time to best (%s)", view->unit_mark), false, -1},
                  {"ratio to regular", false, -1},
                  {"regular model", true, 0},
                  {tarn__report_text(view, "time to least loss (%s)", view->unit_mark), false, -1}}};
  TARN_TRY(open_table(table, view, view->count));
  for (size_t i = 0; i < view->count; i++) {
    const tarn_results_row *data = view->entries[i].row;
    tarn__table_row *row = begin_row(table, view, i);
    if (!data) continue;
    row->cells[2] = spread(view, &data->budget_step, 1, 0);
    row->cells[3] = spread(view, &data->budget_epoch, 1, data->budget_epoch.mean < 10 ? 2 : 1);
    row->cells[4] = spread(view, &data->epoch_seconds, view->unit, 2);
    row->cells[5] = spread(view, &data->best_seconds, view->unit, 2);
    row->cells[6] = number(view, data->time_ratio, 2);
    if (data->regular < view->count && !isnan(data->time_ratio))
      row->cells[7] = words(view->results->groups[data->regular].name);
    row->cells[8] = spread(view, &data->min_loss_seconds, view->unit, 2);
  }
  return TARN_STATUS_OK;
}

static tarn_status size(tarn__table *table, tarn__report *view) {
  *table = (tarn__table){
      .id = "size",
      .title = "Size",
      .caption =
          "Every parameter counts once; sharing saves those of the further uses of a set. Peak memory is the "
          "resident memory of the process over the whole run, planned memory what was computed before it. "
          "Equalized: what the sweep changed to give a model the baseline's parameters or operations.",
      .columns = {{"model", true, 0},
                  {"frozen layers", true, 0},
                  {"encoder", true, 0},
                  {"decoder", true, 0},
                  {"trained parameters", false, -1},
                  {"frozen parameters", false, 0},
                  {"all parameters", false, -1},
                  {"saved by sharing", false, 0},
                  {"peak memory (MB)", false, -1},
                  {"planned (MB)", false, 0},
                  {"equalized", true, 0}}};
  TARN_TRY(open_table(table, view, view->count));
  for (size_t i = 0; i < view->count; i++) {
    const tarn__report_entry *entry = &view->entries[i];
    const tarn_results_group *group = entry->group;
    tarn__table_row *row = begin_row(table, view, i);
    if (group->encoder.pattern) row->cells[2] = words(group->encoder.pattern);
    if (group->decoder.pattern) row->cells[3] = words(group->decoder.pattern);
    if (group->equalized && *group->equalized) row->cells[10] = words(group->equalized);
    const tarn_results_run *run = tarn__report_first(view, group, tarn__report_has_sizes);
    if (run) {
      row->cells[4] = amount(view, run->trained_parameters, 1, 0);
      row->cells[5] = amount(view, run->frozen_parameters, 1, 0);
      row->cells[6] = amount(view, run->parameters, 1, 0);
      row->cells[7] = amount(view, run->shared_parameters, 1, 0);
      row->cells[9] = amount(view, run->planned_bytes, 1e6, 0);
    }
    if (entry->row) row->cells[8] = spread(view, &entry->row->peak_bytes, 1e6, 0);
  }
  return TARN_STATUS_OK;
}

static tarn_status each_run(tarn__table *table, tarn__report *view) {
  *table = (tarn__table){.id = "runs",
                         .title = "Every run",
                         .caption = "Runs that failed or have not finished have no part in any mean.",
                         .columns = {{"model", true, 0},
                                     {"frozen layers", true, 0},
                                     {"seed", false, 0},
                                     {"state", true, 0},
                                     {"updates", false, 0},
                                     {tarn__report_text(view, "training time (%s)", view->unit_mark), false, 0},
                                     {tarn__report_text(view, "best %s", view->score), false, 0},
                                     {"test BLEU", false, 0},
                                     {"BLiMP (%)", false, 0},
                                     {"AUCC / time", false, 0}}};
  TARN_TRY(open_table(table, view, view->results->run_count));
  size_t next = 0;
  for (size_t i = 0; i < view->count; i++) {
    const tarn__report_entry *entry = &view->entries[i];
    for (size_t k = 0; k < entry->group->run_count && next < table->count; k++) {
      size_t index = entry->group->runs[k];
      const tarn_results_run *run = &view->results->runs[index];
      const tarn_results_measures *measures = &view->table->measures[index];
      tarn__table_row *row = &table->rows[next++];
      row->failed = run->state == TARN_RESULTS_FAILED;
      row->open = run->state != TARN_RESULTS_FINISHED && !row->failed;
      row->cells[0] = words(entry->group->name);
      row->cells[1] = words(entry->label.note);
      row->cells[2] = words(tarn__report_text(view, "%lld", (long long)run->seed));
      const char *state = tarn_results_state_name(run->state);
      row->cells[3] = words(run->message ? tarn__report_text(view, "%s: %s", state, run->message) : state);
      row->cells[4] = amount(view, run->step, 1, 0);
      row->cells[5] = number(view, run->seconds / view->unit, 2);
      row->cells[6] = number(view, measures->best, view->decimals);
      row->cells[7] = number(view, run->test_bleu, 2);
      row->cells[8] = number(view, run->test_blimp, 2);
      row->cells[9] = number(view, measures->aucc_mean, view->decimals);
    }
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__report_tables(tarn__table tables[TARN__REPORT_TABLES], tarn__report *view) {
  TARN_TRY(quality(&tables[0], view));
  TARN_TRY(speed(&tables[1], view));
  TARN_TRY(size(&tables[2], view));
  TARN_TRY(each_run(&tables[3], view));
  return view->status;
}
