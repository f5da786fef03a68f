#include "compare_text.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "sequential_text.h"
#include "tarn/measure.h"
#include "text_table.h"

enum { SEEDS_SHOWN = 5 };

typedef struct printer {
  const tarn_results *results;
  const tarn_results_table *table;
  const char *metric;  // without "valid/"
  int digits;          // decimals of its values
  bool whole;          // no allocation has failed
} printer;

// A column of statistics. A measure with verdicts gets a mark if one row leads.
typedef struct column {
  const char *head;
  size_t offset;  // in tarn_results_row
  double unit;
  int digits;
  int judged;  // tarn_results_judged_measure, or -1
} column;

enum { EXPONENT_DIGITS = 4 };

#define ROW(field) offsetof(tarn_results_row, field)

static tarn_results_statistic statistic_of(const tarn_results_row *row, size_t offset) {
  tarn_results_statistic s;
  memcpy(&s, (const char *)row + offset, sizeof s);
  return s;
}

static bool is_shown(const printer *p, const column *c) {
  for (size_t i = 0; i < p->table->row_count; i++)
    if (statistic_of(&p->table->rows[i], c->offset).count > 0) return true;
  return false;
}

static void add_heads(text_table *table, const printer *p, const column *columns, size_t count) {
  for (size_t c = 0; c < count; c++)
    if (is_shown(p, &columns[c])) text_table_cell(table, "%s", columns[c].head);
}

static void add_cells(text_table *table, const printer *p, size_t row, const column *columns, size_t count) {
  for (size_t c = 0; c < count; c++) {
    const column *k = &columns[c];
    const tarn_results_statistic s = statistic_of(&p->table->rows[row], k->offset);
    const char *mark = k->judged >= 0 && p->table->judged[k->judged].leader == row ? "*" : "";
    if (!is_shown(p, k)) continue;
    if (s.count == 0)
      text_table_cell(table, "-");
    else if (s.count == 1)
      text_table_cell(table, "%s%.*f", mark, k->digits, s.mean / k->unit);
    else
      text_table_cell(table, "%s%.*f ± %.*f", mark, k->digits, s.mean / k->unit, k->digits, s.sd / k->unit);
  }
}

static const char *name_of(const printer *p, size_t row) { return p->results->groups[p->table->rows[row].group].name; }

static void cell_runs(text_table *table, const tarn_results_group *group) {
  if (group->failed)
    text_table_cell(table, "%zu of %zu, %zu failed", group->finished, group->run_count, group->failed);
  else if (group->finished < group->run_count)
    text_table_cell(table, "%zu of %zu", group->finished, group->run_count);
  else
    text_table_cell(table, "%zu", group->finished);
}

static void finish(printer *p, text_table *table) {
  p->whole = text_table_print(table) && p->whole;
  printf("\n");
}

static void print_scores(printer *p) {
  char area[TEXT_TABLE_CELL];
  char best[TEXT_TABLE_CELL];
  snprintf(area, sizeof area, "AUCC %s·min", p->metric);
  snprintf(best, sizeof best, "best %s", p->metric);
  char tested[TEXT_TABLE_CELL];
  const tarn_measure *test = p->table->test_measure;
  snprintf(tested, sizeof tested, "test %s", test ? test->word : "");
  const column columns[] = {{area, ROW(aucc), 1, 2, TARN_RESULTS_JUDGED_AUCC},
                            {"AUCC/T", ROW(aucc_mean), 1, p->digits, TARN_RESULTS_JUDGED_AUCC},
                            {best, ROW(best), 1, p->digits, TARN_RESULTS_JUDGED_BEST},
                            {"test BLEU", ROW(test_bleu), 1, 2, TARN_RESULTS_JUDGED_TEST_BLEU},
                            {"test chrF", ROW(test_chrf), 1, 2, TARN_RESULTS_JUDGED_TEST_CHRF},
                            {"BLiMP %", ROW(test_blimp), 1, 2, TARN_RESULTS_JUDGED_TEST_BLIMP},
                            {tested, ROW(test_score), 1, test ? test->digits : 2, TARN_RESULTS_JUDGED_TEST_SCORE},
                            {"last exponent", ROW(exponent), 1, EXPONENT_DIGITS, TARN_RESULTS_JUDGED_EXPONENT}};
  const size_t count = sizeof columns / sizeof *columns;
  text_table table = {0};
  text_table_row(&table);
  text_table_cell(&table, "scores");
  text_table_cell(&table, "runs");
  add_heads(&table, p, columns, count);
  for (size_t i = 0; i < p->table->row_count; i++) {
    text_table_row(&table);
    text_table_cell(&table, "%s%s", name_of(p, i), p->table->rows[i].baseline ? " (baseline)" : "");
    cell_runs(&table, &p->results->groups[p->table->rows[i].group]);
    add_cells(&table, p, i, columns, count);
  }
  finish(p, &table);
}

// "0.78 of regular-6", or a dash.
static void cell_ratio(text_table *table, const printer *p, double ratio, size_t regular) {
  if (isnan(ratio) || regular >= p->results->group_count)
    text_table_cell(table, "-");
  else
    text_table_cell(table, "%.2f of %s", ratio, p->results->groups[regular].name);
}

static void print_times(printer *p) {
  const column columns[] = {{"to best min", ROW(best_seconds), 60, 2, TARN_RESULTS_JUDGED_BEST_SECONDS},
                            {"s/epoch", ROW(epoch_seconds), 1, 2, TARN_RESULTS_JUDGED_EPOCH_SECONDS},
                            {"steps at T", ROW(budget_step), 1, 0, TARN_RESULTS_JUDGED_BUDGET_STEP},
                            {"epochs at T", ROW(budget_epoch), 1, 2, TARN_RESULTS_JUDGED_BUDGET_EPOCH}};
  const size_t count = sizeof columns / sizeof *columns;
  text_table table = {0};
  text_table_row(&table);
  text_table_cell(&table, "times");
  add_heads(&table, p, columns, 1);
  text_table_cell(&table, "same updatable");
  text_table_cell(&table, "same depth");
  add_heads(&table, p, columns + 1, count - 1);
  for (size_t i = 0; i < p->table->row_count; i++) {
    const tarn_results_row *row = &p->table->rows[i];
    text_table_row(&table);
    text_table_cell(&table, "%s", name_of(p, i));
    add_cells(&table, p, i, columns, 1);
    cell_ratio(&table, p, row->time_ratio, row->regular);
    cell_ratio(&table, p, row->time_ratio_deep, row->regular_deep);
    add_cells(&table, p, i, columns + 1, count - 1);
  }
  finish(p, &table);
}

static void print_losses(printer *p) {
  const column columns[] = {{"min valid", ROW(min_loss), 1, 3, TARN_RESULTS_JUDGED_MIN_LOSS},
                            {"at min", ROW(min_loss_seconds), 60, 2, -1},
                            {"min train", ROW(min_train_loss), 1, 3, TARN_RESULTS_JUDGED_MIN_TRAIN_LOSS},
                            {"at min", ROW(min_train_loss_seconds), 60, 2, -1},
                            {"last epoch", ROW(epoch_train_loss), 1, 3, TARN_RESULTS_JUDGED_EPOCH_TRAIN_LOSS}};
  const size_t count = sizeof columns / sizeof *columns;
  text_table table = {0};
  text_table_row(&table);
  text_table_cell(&table, "losses");
  add_heads(&table, p, columns, count);
  for (size_t i = 0; i < p->table->row_count; i++) {
    text_table_row(&table);
    text_table_cell(&table, "%s", name_of(p, i));
    add_cells(&table, p, i, columns, count);
  }
  finish(p, &table);
}

static void print_costs(printer *p) {
  const column columns[] = {{"J/epoch", ROW(epoch_joules), 1, 1, TARN_RESULTS_JUDGED_EPOCH_JOULES},
                            {"kJ to best", ROW(best_joules), 1e3, 3, TARN_RESULTS_JUDGED_BEST_JOULES},
                            {"kJ", ROW(joules), 1e3, 3, -1},
                            {"CO2 g", ROW(co2_grams), 1, 3, -1},
                            {"MFLOP/token", ROW(token_operations), 1e6, 3, -1},
                            {"TFLOP to best", ROW(best_operations), 1e12, 3, TARN_RESULTS_JUDGED_BEST_OPERATIONS},
                            {"TFLOP", ROW(operations), 1e12, 3, -1},
                            {"GB moved", ROW(moved_bytes), 1e9, 1, -1}};
  const size_t count = sizeof columns / sizeof *columns;
  bool any = false;
  for (size_t c = 0; c < count; c++) any = any || is_shown(p, &columns[c]);
  if (!any) return;
  text_table table = {0};
  text_table_row(&table);
  text_table_cell(&table, "costs");
  add_heads(&table, p, columns, count);
  for (size_t i = 0; i < p->table->row_count; i++) {
    text_table_row(&table);
    text_table_cell(&table, "%s", name_of(p, i));
    add_cells(&table, p, i, columns, count);
  }
  finish(p, &table);
}

// A number shared by all started runs of a group, in millions.
static void cell_shared(text_table *table, const printer *p, const tarn_results_group *group, size_t offset) {
  for (size_t i = 0; i < group->run_count; i++) {
    int64_t value;
    memcpy(&value, (const char *)&p->results->runs[group->runs[i]] + offset, sizeof value);
    if (value < 0) continue;
    text_table_cell(table, "%.2f", (double)value / 1e6);
    return;
  }
  text_table_cell(table, "-");
}

static void print_sizes(printer *p) {
  static const char *const heads[] = {"sizes", "encoder", "decoder", "updatable", "trained M", "frozen M", "total M"};
  static const column peak = {"peak MB", ROW(peak_bytes), 1e6, 0, TARN_RESULTS_JUDGED_PEAK_BYTES};
  text_table table = {0};
  text_table_row(&table);
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) text_table_cell(&table, "%s", heads[i]);
  add_heads(&table, p, &peak, 1);
  for (size_t i = 0; i < p->table->row_count; i++) {
    const tarn_results_group *group = &p->results->groups[p->table->rows[i].group];
    text_table_row(&table);
    text_table_cell(&table, "%s", group->name);
    text_table_cell(&table, "%s", group->encoder.pattern ? group->encoder.pattern : "-");
    text_table_cell(&table, "%s", group->decoder.pattern ? group->decoder.pattern : "-");
    const tarn_results_stack *low = &group->encoder, *high = &group->decoder;
    text_table_cell(&table, "%d+%d of %d+%d", (int)low->trained, (int)high->trained, (int)low->count, (int)high->count);
    cell_shared(&table, p, group, offsetof(tarn_results_run, trained_parameters));
    cell_shared(&table, p, group, offsetof(tarn_results_run, frozen_parameters));
    cell_shared(&table, p, group, offsetof(tarn_results_run, parameters));
    add_cells(&table, p, i, &peak, 1);
  }
  finish(p, &table);
}

// --- verdicts

static bool is_told(const printer *p, const tarn_results_judged *judged, size_t row) {
  return row != p->table->baseline && judged->verdicts[row].basis != TARN_RESULTS_NO_SCORES;
}

static void cell_seeds(text_table *table, const tarn_results_verdict *v, int digits) {
  char text[TEXT_TABLE_CELL] = "-";
  size_t used = 0;
  for (size_t i = 0; i < v->seed_count && i < SEEDS_SHOWN; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%+.*f", i ? " " : "", digits, v->by_seed[i]);
  if (v->seed_count > SEEDS_SHOWN)
    snprintf(text + used, sizeof text - used, " and %zu more", v->seed_count - SEEDS_SHOWN);
  text_table_cell(table, "%s", text);
}

static void print_verdict(text_table *table, const printer *p, const tarn_results_judged *judged, size_t row,
                          int digits) {
  char text[TARN_RESULTS_P_TEXT];
  const tarn_results_verdict *v = &judged->verdicts[row];
  text_table_row(table);
  text_table_cell(table, "%s", name_of(p, row));
  if (v->runs == v->other_runs)
    text_table_cell(table, "%zu", v->runs);
  else
    text_table_cell(table, "%zu, %zu", v->runs, v->other_runs);
  text_table_cell(table, "%+.*f", digits, v->difference);
  if (isnan(v->low))
    text_table_cell(table, "-");
  else
    text_table_cell(table, "[%+.*f, %+.*f]", digits, v->low, digits, v->high);
  cell_seeds(table, v, digits);
  tarn_results_p(text, v->p);
  text_table_cell(table, "%s", *text ? text : "-");
  text_table_cell(table, "%s", v->words);
}

static int digits_of(const printer *p, int measure) {
  if (measure == TARN_RESULTS_JUDGED_TEST_SCORE) return p->table->test_measure ? p->table->test_measure->digits : 2;
  if (measure == TARN_RESULTS_JUDGED_EXPONENT) return EXPONENT_DIGITS;
  return measure < TARN_RESULTS_JUDGED_BEST ? 2 : p->digits;
}

static void print_sequential_row(text_table *table, const printer *p, size_t row) {
  char words[TARN_SEQUENTIAL_TEXT];
  const tarn_sequential_verdict *v = &p->table->sequential[row];
  const tarn_sequential_design *design = &p->results->sequential;
  tarn_sequential_words(words, v, design);
  sequential_text_row(table, name_of(p, row), v, design, digits_of(p, (int)p->table->sequential_measure), words);
}

static void print_sequential(printer *p, const char *name) {
  const tarn_sequential_design *d = &p->results->sequential;
  printf("%s against %s by the sequential plan: up to %zu looks (%s, alpha %g), %zu comparison%s (Holm)\n", name,
         name_of(p, p->table->baseline), d->look_count, tarn_sequential_spending_name(d->spending), d->alpha,
         p->table->row_count - 1, p->table->row_count == 2 ? "" : "s");
  text_table table = {0};
  sequential_text_heads(&table, "configuration");
  for (size_t i = 0; i < p->table->row_count; i++)
    if (i != p->table->baseline) print_sequential_row(&table, p, i);
  finish(p, &table);
}

static void print_verdicts(printer *p, int measure, const char *name) {
  if (p->table->judged[measure].planned) {
    print_sequential(p, name);
    return;
  }
  static const char *const heads[] = {"seeds", "difference", "95 %", "by seed", "p", "verdict"};
  const tarn_results_judged *judged = &p->table->judged[measure];
  size_t told = 0;
  for (size_t i = 0; i < p->table->row_count; i++) told += is_told(p, judged, i);
  if (told == 0) return;
  printf("%s against %s", name, name_of(p, p->table->baseline));
  if (judged->comparisons > 0)
    printf(", %zu comparison%s (Holm)", judged->comparisons, judged->comparisons == 1 ? "" : "s");
  printf("\n");
  text_table table = {0};
  text_table_row(&table);
  text_table_cell(&table, "configuration");
  for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) text_table_cell(&table, "%s", heads[i]);
  for (size_t i = 0; i < p->table->row_count; i++)
    if (is_told(p, judged, i)) print_verdict(&table, p, judged, i, digits_of(p, measure));
  finish(p, &table);
}

int compare_print_text(const cli_command *command, const tarn_results *results, const tarn_results_table *t) {
  char best[TEXT_TABLE_CELL];
  printer p = {.results = results,
               .table = t,
               .metric = strncmp(t->metric, "valid/", 6) == 0 ? t->metric + 6 : t->metric,
               .whole = true};
  const tarn_measure *measure = tarn_measure_find(t->metric);
  p.digits = measure ? measure->digits : 2;
  printf("%s over T = ", t->metric);
  printf("%.4g minutes of training (%s clock)%s\n", t->budget / 60, t->clock ? t->clock : "unknown",
         t->less ? "; areas are of its negative, so that more is better" : "");
  if (t->processor) printf("times, energies, areas and memory of the runs on %s alone\n", t->processor);
  printf("\n");
  print_scores(&p);
  print_times(&p);
  print_losses(&p);
  print_costs(&p);
  print_sizes(&p);
  snprintf(best, sizeof best, "best %s", p.metric);
  print_verdicts(&p, TARN_RESULTS_JUDGED_TEST_BLEU, "test BLEU");
  print_verdicts(&p, TARN_RESULTS_JUDGED_TEST_CHRF, "test chrF");
  print_verdicts(&p, TARN_RESULTS_JUDGED_TEST_BLIMP, "BLiMP %");
  char tested[TEXT_TABLE_CELL];
  snprintf(tested, sizeof tested, "test %s", t->test_measure ? t->test_measure->word : "");
  print_verdicts(&p, TARN_RESULTS_JUDGED_TEST_SCORE, tested);
  print_verdicts(&p, TARN_RESULTS_JUDGED_BEST, best);
  print_verdicts(&p, TARN_RESULTS_JUDGED_AUCC, "AUCC/T");
  print_verdicts(&p, TARN_RESULTS_JUDGED_EXPONENT, "last exponent");
  bool marked = false;
  for (int m = 0; m < TARN_RESULTS_JUDGED_MEASURES; m++) marked |= t->judged[m].leader < t->row_count;
  if (marked) printf("note: * is decided to be better than each other value of its column\n");
  for (size_t i = 0; i < t->note_count; i++) printf("note: %s\n", t->notes[i]);
  return p.whole ? CLI_OK : cli_no_memory(command);
}
