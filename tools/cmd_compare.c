// tarn compare: the tables of a comparison.
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "compare_json.h"
#include "tarn/results.h"
#include "text_table.h"

static const cli_command COMMAND = {
    "compare", "RUN...", "Compare finished runs: area under the curve, times, sizes, scores, significance.",
    "RUN is a run directory, a sweep's folder, or a folder that holds some. Runs that differ only by their seed are "
    "one\n"
    "configuration, shown as mean ± sample standard deviation. See docs/experiments.md for the measures."};

static void cell_statistic(text_table *table, const tarn_results_statistic *s, double unit, int digits) {
  if (s->count == 0)
    text_table_cell(table, "-");
  else if (s->count == 1)
    text_table_cell(table, "%.*f", digits, s->mean / unit);
  else
    text_table_cell(table, "%.*f ± %.*f", digits, s->mean / unit, digits, s->sd / unit);
}

static void cell_number(text_table *table, double value, const char *format, bool known) {
  char text[64];
  // The format is one of the literals below.
  snprintf(text, sizeof text, "%.*f%s", format[0] - '0', known ? value : 0, format + 1);
  text_table_cell(table, "%s", known ? text : "-");
}

static void cell_runs(text_table *table, const tarn_results_group *group) {
  if (group->failed)
    text_table_cell(table, "%zu of %zu, %zu failed", group->finished, group->run_count, group->failed);
  else if (group->finished < group->run_count)
    text_table_cell(table, "%zu of %zu", group->finished, group->run_count);
  else
    text_table_cell(table, "%zu", group->finished);
}

static void add_head(text_table *table, const char *const *names) {
  for (; *names; names++) text_table_cell(table, "%s", *names);
}

// Language models are tested on minimal pairs, translation models by BLEU; a column that no row has is left out.
static void note_tests(const tarn_results_table *t, bool *bleu, bool *blimp) {
  *bleu = *blimp = false;
  for (size_t i = 0; i < t->row_count; i++) {
    *bleu |= t->rows[i].test_bleu.count > 0;
    *blimp |= t->rows[i].test_blimp.count > 0;
  }
  *bleu |= !*blimp;
}

static bool print_scores(const tarn_results *results, const tarn_results_table *t) {
  text_table table = {0};
  const char *name = strncmp(t->metric, "valid/", 6) == 0 ? t->metric + 6 : t->metric;
  bool bleu;
  bool blimp;
  note_tests(t, &bleu, &blimp);
  char area[TEXT_TABLE_CELL];
  char best[TEXT_TABLE_CELL];
  snprintf(area, sizeof area, "AUCC %s·min", name);
  snprintf(best, sizeof best, "best %s", name);
  const char *const head[] = {"configuration", "runs", area, "AUCC/T", best, "to best min", "ratio", "min loss", NULL};
  const char *const tested[] = {"difference", "p (Koehn)", NULL};
  text_table_row(&table);
  add_head(&table, head);
  if (bleu) text_table_cell(&table, "test BLEU");
  if (blimp) text_table_cell(&table, "BLiMP %%");
  add_head(&table, tested);
  for (size_t i = 0; i < t->row_count; i++) {
    const tarn_results_row *row = &t->rows[i];
    text_table_row(&table);
    text_table_cell(&table, "%s%s", results->groups[row->group].name, row->baseline ? " (baseline)" : "");
    cell_runs(&table, &results->groups[row->group]);
    cell_statistic(&table, &row->aucc, 1, 2);
    cell_statistic(&table, &row->aucc_mean, 1, 2);
    cell_statistic(&table, &row->best, 1, 2);
    cell_statistic(&table, &row->best_seconds, 60, 2);
    cell_number(&table, row->time_ratio, "2", !isnan(row->time_ratio));
    cell_statistic(&table, &row->min_loss, 1, 3);
    if (bleu) cell_statistic(&table, &row->test_bleu, 1, 2);
    if (blimp) cell_statistic(&table, &row->test_blimp, 1, 2);
    cell_number(&table, row->pooled.difference, "2", row->seed_count > 0);
    cell_number(&table, row->pooled.p, "3", row->seed_count > 0);
  }
  return text_table_print(&table);
}

// A number that all begun runs of a group share.
static double shared_number(const tarn_results *results, const tarn_results_group *group, size_t offset) {
  for (size_t i = 0; i < group->run_count; i++) {
    int64_t value;
    memcpy(&value, (const char *)&results->runs[group->runs[i]] + offset, sizeof value);
    if (value >= 0) return (double)value;
  }
  return -1;
}

static bool print_costs(const tarn_results *results, const tarn_results_table *t) {
  text_table table = {0};
  const char *const head[] = {"configuration", "encoder", "decoder",    "updatable",   "trained M", "frozen M",
                              "total M",       "s/epoch", "steps at T", "epochs at T", "peak MB",   NULL};
  text_table_row(&table);
  add_head(&table, head);
  for (size_t i = 0; i < t->row_count; i++) {
    const tarn_results_row *row = &t->rows[i];
    const tarn_results_group *group = &results->groups[row->group];
    text_table_row(&table);
    text_table_cell(&table, "%s", group->name);
    text_table_cell(&table, "%s", group->encoder.pattern ? group->encoder.pattern : "-");
    text_table_cell(&table, "%s", group->decoder.pattern ? group->decoder.pattern : "-");
    text_table_cell(&table, "%d+%d of %d+%d", (int)group->encoder.trained, (int)group->decoder.trained,
                    (int)group->encoder.count, (int)group->decoder.count);
    const size_t offsets[] = {offsetof(tarn_results_run, trained_parameters),
                              offsetof(tarn_results_run, frozen_parameters), offsetof(tarn_results_run, parameters)};
    for (size_t k = 0; k < 3; k++) {
      double value = shared_number(results, group, offsets[k]);
      cell_number(&table, value / 1e6, "2", value >= 0);
    }
    cell_statistic(&table, &row->epoch_seconds, 1, 2);
    cell_statistic(&table, &row->budget_step, 1, 0);
    cell_statistic(&table, &row->budget_epoch, 1, 2);
    cell_statistic(&table, &row->peak_bytes, 1e6, 0);
  }
  return text_table_print(&table);
}

static int print_text(const tarn_results *results, const tarn_results_table *t) {
  printf("%s over T = %.4g minutes of training (%s clock)%s\n\n", t->metric, t->budget / 60,
         t->clock ? t->clock : "unknown", t->less ? "; areas are of its negative, so that more is better" : "");
  bool whole = print_scores(results, t);
  printf("\n");
  whole = print_costs(results, t) && whole;
  if (t->note_count) printf("\n");
  for (size_t i = 0; i < t->note_count; i++) printf("note: %s\n", t->notes[i]);
  return whole ? CLI_OK : cli_no_memory(&COMMAND);
}

static int compare(const cli_list *paths, const tarn_results_options *options, bool json) {
  tarn_results *results;
  tarn_results_table *table = NULL;
  tarn_status status = tarn_results_open(&results, paths->items, paths->count);
  if (status == TARN_STATUS_OK) status = tarn_results_compare(&table, results, options);
  int code = status != TARN_STATUS_OK ? cli_report(&COMMAND, status)
             : json                   ? compare_print_json(&COMMAND, results, table)
                                      : print_text(results, table);
  tarn_results_table_close(&table);
  tarn_results_close(&results);
  return code;
}

int cmd_compare(int argc, char **argv) {
  tarn_results_options options;
  tarn_results_default(&options);
  cli_list paths = {0};
  double minutes = 0;
  int64_t seed = (int64_t)options.seed;
  bool json = false;
  const cli_option table[] = {
      {"metric", CLI_TEXT, &options.metric, "NAME",
       "score to compare by: bleu, loss, nll, ppl, train/loss, or any other of the log; without it bleu, or loss where "
       "not all runs have it",
       0, 0},
      {"budget", CLI_REAL, &minutes, "MIN",
       "minutes of training to compare over; 0: the runs' own, which must be equal", 0, 1e7},
      {"baseline", CLI_TEXT, &options.baseline, "NAME",
       "configuration to test against; without it the sweep's, or the first", 0, 0},
      {"resamples", CLI_INT, &options.resamples, "N", "resamples of the paired bootstrap; 0: none", 0, 1e6},
      {"seed", CLI_INT, &seed, "N", "seed of the bootstrap", 0, 9007199254740992},
      {"json", CLI_FLAG, &json, NULL, "print everything as one JSON object", 0, 0},
      {0}};
  int code = cli_parse(&COMMAND, table, argc, argv, &paths, 1, 100000);
  if (code < 0) {
    options.budget = minutes * 60;
    options.seed = (uint64_t)seed;
    code = compare(&paths, &options, json);
  }
  cli_list_free(&paths);
  return code;
}
