// The contents of the tables.
#include "report/report_table.h"
#include "run/names.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "report/svg_axis.h"

#define DASH "\xE2\x80\x93"

static const char *number(tarn__report *view, double value, int decimals) {
  return tarn__report_number(view, value, decimals);
}

static const char *spread(tarn__report *view, const tarn_results_statistic *statistic, double unit, int decimals) {
  return tarn__report_spread(view, statistic, unit, decimals);
}

// An integer that may be unknown (-1), divided by `unit`.
static const char *amount(tarn__report *view, int64_t value, double unit, int decimals) {
  return value < 0 ? DASH : number(view, (double)value / unit, decimals);
}

tarn_status tarn__table_open(tarn__table *table, tarn__report *view, size_t rows) {
  void *memory = NULL;
  TARN_TRY(tarn__arena_alloc(&view->arena, &memory, rows, sizeof *table->rows));
  table->rows = memory;
  table->count = rows;
  while (table->width < TARN__TABLE_COLUMNS && table->columns[table->width].head) table->width++;
  for (size_t i = 0; i < rows; i++) {
    for (int c = 0; c < table->width; c++) table->rows[i].cells[c] = DASH;
  }
  return TARN_STATUS_OK;
}

// The first columns of every table of configurations.
static tarn__table_row *begin_row(tarn__table *table, tarn__report *view, size_t index) {
  tarn__table_row *row = &table->rows[index];
  const tarn__report_entry *entry = &view->entries[index];
  row->baseline = entry == view->baseline;
  row->failed = !entry->row && entry->group->failed > 0;
  row->open = !entry->row && !row->failed;
  row->cells[0] = entry->group->name;
  row->cells[1] = entry->label.note;
  return row;
}

// The significantly leading row of a measure.
static size_t leader(const tarn__report *view, tarn_results_judged_measure measure) {
  const size_t row = view->table->judged[measure].leader;
  return row < view->count ? row + 1 : 0;
}

// The row with the smallest number of parameters, which involves no chance; ties lead nothing.
static size_t least(const tarn__report *view, size_t offset) {
  size_t row = 0;
  int64_t best = INT64_MAX;
  for (size_t i = 0; i < view->count; i++) {
    int64_t value;
    const tarn_results_run *run = tarn__report_first(view, view->entries[i].group, tarn__report_has_sizes);
    if (!run) continue;
    memcpy(&value, (const char *)run + offset, sizeof value);
    if (value == best) row = 0;
    if (value >= best) continue;
    best = value;
    row = i + 1;
  }
  return view->count > 1 ? row : 0;
}

static const char *run_counts(tarn__report *view, const tarn_results_group *group) {
  const char *text = tarn__report_text(view, "%zu", group->finished);
  if (group->failed) text = tarn__report_text(view, "%s, %zu failed", text, group->failed);
  size_t other = group->run_count - group->finished - group->failed;
  if (other) text = tarn__report_text(view, "%s, %zu unfinished", text, other);
  return text;
}

// For values of unknown magnitude.
static int fitting_decimals(double value) { return fabs(value) >= 100 ? 0 : fabs(value) >= 1 ? 2 : 4; }

static tarn_status quality(tarn__table *table, tarn__report *view) {
  *table = (tarn__table){
      .id = "quality",
      .title = "Quality",
      .caption = tarn__report_text(
          view,
          "Mean and standard deviation over seeds, of finished runs. AUCC is the area under the curve of %s%s over "
          "training time up to %s; divided by that time it reads as an average score.%s",
          view->table->less ? "the negative of " : "", view->score, view->budget,
          tarn__report_processor(view, "Both are")),
      .columns = {{"model", true, 0},
                  {"frozen layers", true, 0},
                  {"runs", true, 0},
                  {tarn__report_text(view, "best %s", view->score), false, leader(view, TARN_RESULTS_JUDGED_BEST)},
                  {"test BLEU", false, leader(view, TARN_RESULTS_JUDGED_TEST_BLEU)},
                  {"test chrF", false, leader(view, TARN_RESULTS_JUDGED_TEST_CHRF)},
                  {"BLiMP (%)", false, leader(view, TARN_RESULTS_JUDGED_TEST_BLIMP)},
                  {view->test_score, false, leader(view, TARN_RESULTS_JUDGED_TEST_SCORE)},
                  {tarn__report_text(view, "AUCC (score %s minutes)", "\xC3\x97"), false,
                   leader(view, TARN_RESULTS_JUDGED_AUCC)},
                  {"AUCC / time", false, leader(view, TARN_RESULTS_JUDGED_AUCC)}}};
  TARN_TRY(tarn__table_open(table, view, view->count));
  for (size_t i = 0; i < view->count; i++) {
    const tarn__report_entry *entry = &view->entries[i];
    tarn__table_row *row = begin_row(table, view, i);
    row->cells[2] = run_counts(view, entry->group);
    if (!entry->row) continue;
    row->cells[3] = spread(view, &entry->row->best, 1, view->decimals);
    row->cells[4] = spread(view, &entry->row->test_bleu, 1, 2);
    row->cells[5] = spread(view, &entry->row->test_chrf, 1, 2);
    row->cells[6] = spread(view, &entry->row->test_blimp, 1, 2);
    row->cells[7] = spread(view, &entry->row->test_score, 1, view->test_decimals);
    row->cells[8] = spread(view, &entry->row->aucc, 1, fitting_decimals(entry->row->aucc.mean));
    row->cells[9] = spread(view, &entry->row->aucc_mean, 1, view->decimals);
  }
  return TARN_STATUS_OK;
}

static bool has_ratio(const tarn__report *view) {
  for (size_t i = 0; i < view->count; i++) {
    const tarn_results_row *row = view->entries[i].row;
    if (row && !(isnan(row->time_ratio) && isnan(row->time_ratio_deep))) return true;
  }
  return false;
}

// "0.78 of regular-6": the ratio, and the reference model.
static const char *ratio(tarn__report *view, double value, size_t regular) {
  if (isnan(value) || regular >= view->count) return DASH;
  return tarn__report_text(view, "%s of %s", tarn__report_number(view, value, 2), view->results->groups[regular].name);
}

static tarn_status speed(tarn__table *table, tarn__report *view) {
  *table = (tarn__table){
      .id = "speed",
      .title = "Speed",
      .caption = tarn__report_text(
          view, "Times are those of the training clock (%s), which does not run during validation and saving.%s%s",
          view->table->clock ? view->table->clock : "wall", tarn__report_processor(view, "They are"),
          has_ratio(view) ? " The ratios are the mean time to the best score over that of a regular model, in which "
                            "nothing is frozen, shared or left out: with as many updatable layers, and with as many "
                            "layers in all."
                          : ""),
      .columns = {{"model", true, 0},
                  {"frozen layers", true, 0},
                  {tarn__report_text(view, "updates in %s", view->budget), false,
                   leader(view, TARN_RESULTS_JUDGED_BUDGET_STEP)},
                  {tarn__report_text(view, "epochs in %s", view->budget), false,
                   leader(view, TARN_RESULTS_JUDGED_BUDGET_EPOCH)},
                  {tarn__report_text(view, "time an epoch (%s)", view->unit_mark), false,
                   leader(view, TARN_RESULTS_JUDGED_EPOCH_SECONDS)},
                  {tarn__report_text(view, "time to best (%s)", view->unit_mark), false,
                   leader(view, TARN_RESULTS_JUDGED_BEST_SECONDS)},
                  {"of the regular model with as many updatable layers", false, 0},
                  {"of the regular model of equal depth", false, 0}}};
  TARN_TRY(tarn__table_open(table, view, view->count));
  for (size_t i = 0; i < view->count; i++) {
    const tarn_results_row *data = view->entries[i].row;
    tarn__table_row *row = begin_row(table, view, i);
    if (!data) continue;
    row->cells[2] = spread(view, &data->budget_step, 1, 0);
    row->cells[3] = spread(view, &data->budget_epoch, 1, data->budget_epoch.mean < 10 ? 2 : 1);
    row->cells[4] = spread(view, &data->epoch_seconds, view->unit, 2);
    row->cells[5] = spread(view, &data->best_seconds, view->unit, 2);
    row->cells[6] = ratio(view, data->time_ratio, data->regular);
    row->cells[7] = ratio(view, data->time_ratio_deep, data->regular_deep);
  }
  return TARN_STATUS_OK;
}

static tarn_status losses(tarn__table *table, tarn__report *view) {
  *table = (tarn__table){
      .id = "losses",
      .title = "Losses",
      .caption = tarn__report_text(
          view,
          "Up to %s of training. Training losses are with dropout and label smoothing: the least is that of one line "
          "of the log, which is a mean over the updates before it, and lines of fewer updates than the others are left "
          "out; the last epoch is the last pass over the data, or "
          "all of the training where it is less than one.%s",
          view->budget, tarn__report_processor(view, "Times are")),
      .columns = {{"model", true, 0},
                  {"frozen layers", true, 0},
                  {"least validation loss", false, leader(view, TARN_RESULTS_JUDGED_MIN_LOSS)},
                  {tarn__report_text(view, "time to it (%s)", view->unit_mark), false, 0},
                  {"least training loss", false, leader(view, TARN_RESULTS_JUDGED_MIN_TRAIN_LOSS)},
                  {tarn__report_text(view, "time to it (%s)", view->unit_mark), false, 0},
                  {"training loss of the last epoch", false, leader(view, TARN_RESULTS_JUDGED_EPOCH_TRAIN_LOSS)}}};
  TARN_TRY(tarn__table_open(table, view, view->count));
  for (size_t i = 0; i < view->count; i++) {
    const tarn_results_row *data = view->entries[i].row;
    tarn__table_row *row = begin_row(table, view, i);
    if (!data) continue;
    row->cells[2] = spread(view, &data->min_loss, 1, 3);
    row->cells[3] = spread(view, &data->min_loss_seconds, view->unit, 2);
    row->cells[4] = spread(view, &data->min_train_loss, 1, 3);
    row->cells[5] = spread(view, &data->min_train_loss_seconds, view->unit, 2);
    row->cells[6] = spread(view, &data->epoch_train_loss, 1, 3);
  }
  return TARN_STATUS_OK;
}

static bool has_source(const tarn_results_run *run) { return run->cost.source != NULL; }

// Omits rows that runs of earlier versions have no data for.
static tarn_status cost(tarn__table *table, tarn__report *view) {
  *table = (tarn__table){
      .id = "cost",
      .title = "Energy and operations",
      .caption = tarn__report_text(
          view,
          "Of training time, without validation and saving; energy by its source: counters (rapl, nvml) or a "
          "battery's power are of the whole machine, an estimate is processor seconds times the stated watts of a "
          "core. Operations and bytes are those of the graphs that ran, a multiply-add counts two.%s",
          tarn__report_processor(view, "Energies are")),
      .columns = {{"model", true, 0},
                  {"frozen layers", true, 0},
                  {"energy by", true, 0},
                  {"energy an epoch (J)", false, leader(view, TARN_RESULTS_JUDGED_EPOCH_JOULES)},
                  {"energy to best (kJ)", false, leader(view, TARN_RESULTS_JUDGED_BEST_JOULES)},
                  {"energy (kJ)", false, 0},
                  {"CO2 (g)", false, 0},
                  {"operations a token (10^6)", false, 0},
                  {"operations to best (10^12)", false, leader(view, TARN_RESULTS_JUDGED_BEST_OPERATIONS)},
                  {"operations (10^12)", false, 0},
                  {"moved (GB)", false, 0}}};
  TARN_TRY(tarn__table_open(table, view, view->count));
  bool known = false;
  for (size_t i = 0; i < view->count; i++) {
    const tarn_results_row *data = view->entries[i].row;
    tarn__table_row *row = begin_row(table, view, i);
    if (!data) continue;
    const tarn_results_run *run = tarn__report_first(view, view->entries[i].group, has_source);
    if (run) row->cells[2] = run->cost.source;
    row->cells[3] = spread(view, &data->epoch_joules, 1, fitting_decimals(data->epoch_joules.mean));
    row->cells[4] = spread(view, &data->best_joules, 1e3, fitting_decimals(data->best_joules.mean / 1e3));
    row->cells[5] = spread(view, &data->joules, 1e3, fitting_decimals(data->joules.mean / 1e3));
    row->cells[6] = spread(view, &data->co2_grams, 1, fitting_decimals(data->co2_grams.mean));
    row->cells[7] = spread(view, &data->token_operations, 1e6, fitting_decimals(data->token_operations.mean / 1e6));
    row->cells[8] = spread(view, &data->best_operations, 1e12, fitting_decimals(data->best_operations.mean / 1e12));
    row->cells[9] = spread(view, &data->operations, 1e12, fitting_decimals(data->operations.mean / 1e12));
    row->cells[10] = spread(view, &data->moved_bytes, 1e9, fitting_decimals(data->moved_bytes.mean / 1e9));
    known = known || run || data->operations.count > 0;
  }
  if (!known) table->count = 0;
  return TARN_STATUS_OK;
}

static tarn_status size(tarn__table *table, tarn__report *view) {
  *table = (tarn__table){
      .id = "size",
      .title = "Size",
      .caption = tarn__report_text(
          view,
          "Every parameter counts once; sharing saves those of the further uses of a set. Peak memory is the "
          "resident memory of the process over the whole run, planned memory what was computed before it. "
          "Equalized: what the sweep changed to give a model the baseline's parameters or operations.%s",
          tarn__report_processor(view, "Peaks are")),
      .columns = {{"model", true, 0},
                  {"frozen layers", true, 0},
                  {"encoder", true, 0},
                  {"decoder", true, 0},
                  {"trained parameters", false, least(view, offsetof(tarn_results_run, trained_parameters))},
                  {"frozen parameters", false, 0},
                  {"all parameters", false, least(view, offsetof(tarn_results_run, parameters))},
                  {"saved by sharing", false, 0},
                  {"peak memory (MB)", false, leader(view, TARN_RESULTS_JUDGED_PEAK_BYTES)},
                  {"planned (MB)", false, 0},
                  {"equalized", true, 0}}};
  TARN_TRY(tarn__table_open(table, view, view->count));
  for (size_t i = 0; i < view->count; i++) {
    const tarn__report_entry *entry = &view->entries[i];
    const tarn_results_group *group = entry->group;
    tarn__table_row *row = begin_row(table, view, i);
    if (group->encoder.pattern) row->cells[2] = group->encoder.pattern;
    if (group->decoder.pattern) row->cells[3] = group->decoder.pattern;
    if (group->equalized && *group->equalized) row->cells[10] = group->equalized;
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
                                     {"test chrF", false, 0},
                                     {"BLiMP (%)", false, 0},
                                     {view->test_score, false, 0},
                                     {"AUCC / time", false, 0},
                                     {"tested checkpoint", true, 0}}};
  TARN_TRY(tarn__table_open(table, view, view->results->run_count));
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
      row->cells[0] = entry->group->name;
      row->cells[1] = entry->label.note;
      row->cells[2] = tarn__report_text(view, "%lld", (long long)run->seed);
      const char *state = tarn_results_state_name(run->state);
      if (measures->elsewhere && run->processor) state = tarn__report_text(view, "%s on %s", state, run->processor);
      row->cells[3] = run->message ? tarn__report_text(view, "%s: %s", state, run->message) : state;
      if (run->config_changed)
        row->cells[3] =
            tarn__report_text(view, "%s; its " TARN__RUN_CONFIG " was changed: %s", row->cells[3], run->config_changed);
      if (run->log_changed)
        row->cells[3] = tarn__report_text(view, "%s; its log was changed: %s", row->cells[3], run->log_changed);
      if (run->log_accepted)
        row->cells[3] = tarn__report_text(view, "%s; went on with a changed log at update %lld: %s", row->cells[3],
                                          (long long)run->log_accepted_step, run->log_accepted);
      row->cells[4] = amount(view, run->step, 1, 0);
      row->cells[5] = number(view, run->seconds / view->unit, 2);
      row->cells[6] = number(view, measures->best, view->decimals);
      row->cells[7] = number(view, run->test_bleu, 2);
      row->cells[8] = number(view, run->test_chrf, 2);
      row->cells[9] = number(view, run->test_blimp, 2);
      row->cells[10] = number(view, measures->test_score, view->test_decimals);
      row->cells[11] = number(view, measures->aucc_mean, view->decimals);
      if (run->test_checkpoint) row->cells[12] = run->test_checkpoint;
    }
  }
  return TARN_STATUS_OK;
}

tarn_status tarn__report_tables(tarn__table tables[TARN__REPORT_TABLES], tarn__report *view) {
  TARN_TRY(quality(&tables[0], view));
  TARN_TRY(tarn__report_verdict_table(&tables[1], view));
  TARN_TRY(speed(&tables[2], view));
  TARN_TRY(losses(&tables[3], view));
  TARN_TRY(cost(&tables[4], view));
  TARN_TRY(size(&tables[5], view));
  TARN_TRY(each_run(&tables[6], view));
  return view->status;
}
