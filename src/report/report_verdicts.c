// Verdicts in words and as a table. table_verdicts.c computes them; this file only writes them.
#include <math.h>

#include "report/report_table.h"

const char *tarn__report_judged(tarn__report *view, tarn_results_judged_measure measure, int *decimals) {
  *decimals = measure == TARN_RESULTS_JUDGED_TEST_SCORE ? view->test_decimals
              : measure < TARN_RESULTS_JUDGED_BEST      ? 2
              : measure == TARN_RESULTS_JUDGED_EXPONENT ? 4
                                                        : view->decimals;
  switch (measure) {
    case TARN_RESULTS_JUDGED_TEST_BLEU:
      return "test BLEU";
    case TARN_RESULTS_JUDGED_TEST_CHRF:
      return "test chrF";
    case TARN_RESULTS_JUDGED_TEST_BLIMP:
      return "BLiMP (%)";
    case TARN_RESULTS_JUDGED_TEST_SCORE:
      return view->test_score;
    case TARN_RESULTS_JUDGED_BEST:
      return tarn__report_text(view, "best %s", view->score);
    case TARN_RESULTS_JUDGED_AUCC:
      return "AUCC / time";
    case TARN_RESULTS_JUDGED_EXPONENT:
      return "last exponent";
    default:
      return view->table->judged[measure].key;
  }
}

static bool is_told(const tarn__report *view, const tarn_results_judged *judged, size_t row) {
  return row != view->table->baseline && judged->verdicts[row].basis != TARN_RESULTS_NO_SCORES;
}

static size_t count_told(const tarn__report *view, tarn_results_judged_measure measure) {
  size_t count = 0;
  for (size_t i = 0; i < view->count; i++) count += is_told(view, &view->table->judged[measure], i);
  return count;
}

bool tarn__report_has_verdicts(const tarn__report *view, tarn_results_judged_measure measure) {
  return count_told(view, measure) > 0;
}

static const char *interval(tarn__report *view, const tarn_results_verdict *v, int decimals) {
  return tarn__report_text(view, "[%s, %s]", tarn__report_signed(view, v->low, decimals),
                           tarn__report_signed(view, v->high, decimals));
}

const char *tarn__report_difference(tarn__report *view, const tarn_results_verdict *v, int decimals) {
  char p[TARN_RESULTS_P_TEXT];
  const char *text = tarn__report_signed(view, v->difference, decimals);
  if (!isnan(v->low)) text = tarn__report_text(view, "%s %s", text, interval(view, v, decimals));
  tarn_results_p(p, v->p);
  return *p ? tarn__report_text(view, "%s, p %s%s", text, *p == '<' ? "" : "= ", p) : text;
}

static const char *by_seed(tarn__report *view, const tarn_results_verdict *v, int decimals) {
  const char *text = "";
  for (size_t i = 0; i < v->seed_count; i++)
    text = tarn__report_text(view, "%s%s%s", text, i ? " " : "", tarn__report_signed(view, v->by_seed[i], decimals));
  return *text ? text : "\xE2\x80\x93";
}

static const char *seeds(tarn__report *view, const tarn_results_verdict *v) {
  if (v->runs == v->other_runs) return tarn__report_text(view, "%zu", v->runs);
  return tarn__report_text(view, "%zu, %zu", v->runs, v->other_runs);
}

static void fill_row(tarn__table_row *row, tarn__report *view, size_t index, tarn_results_judged_measure measure) {
  char p[TARN_RESULTS_P_TEXT];
  int decimals;
  const tarn_results_verdict *v = &view->table->judged[measure].verdicts[index];
  const tarn__report_entry *entry = &view->entries[index];
  row->cells[0] = entry->group->name;
  row->cells[1] = entry->label.note;
  row->cells[2] = tarn__report_judged(view, measure, &decimals);
  row->cells[3] = seeds(view, v);
  row->cells[4] = tarn__report_signed(view, v->difference, decimals);
  if (!isnan(v->low)) row->cells[5] = interval(view, v, decimals);
  row->cells[6] = by_seed(view, v, decimals);
  tarn_results_p(p, v->p);
  if (*p) row->cells[7] = tarn__report_text(view, "%s", p);
  row->cells[8] = v->words;
}

// "test BLEU 5, AUCC / time 5": number of comparisons corrected together.
static const char *comparisons(tarn__report *view) {
  const char *text = "";
  for (int m = 0; m < TARN_RESULTS_JUDGED_SCORES; m++) {
    int decimals;
    if (view->table->judged[m].comparisons == 0) continue;
    text = tarn__report_text(view, "%s%s%s %zu", text, *text ? ", " : "", tarn__report_judged(view, m, &decimals),
                             view->table->judged[m].comparisons);
  }
  return text;
}

tarn_status tarn__report_verdict_table(tarn__table *table, tarn__report *view) {
  size_t rows = 0;
  const char *counts = comparisons(view), *planned = "";
  for (int m = 0; m < TARN_RESULTS_JUDGED_SCORES; m++) {
    int decimals;
    if (view->table->judged[m].planned)
      planned = tarn__report_text(view,
                                  " %s is judged by the sequential design: by the runs up to the latest look, with "
                                  "intervals and p that count all looks.",
                                  tarn__report_judged(view, m, &decimals));
  }
  for (int m = 0; m < TARN_RESULTS_JUDGED_SCORES; m++) rows += count_told(view, m);
  *table = (tarn__table){
      .id = "verdicts",
      .title = "Verdicts",
      .caption = tarn__report_text(
          view,
          "Against %s. Difference: mean over all runs minus the baseline's. Interval: 95 %%, of that comparison by "
          "itself; it counts what other seeds would change%s. By seed: the differences of the runs whose seed both "
          "have. p: two-sided, corrected for the "
          "comparisons of the measure%s%s. A verdict needs p of 0.05 or less and three seeds on both "
          "sides; with one seed on both it is one on the two models, not on their configurations.%s",
          view->baseline->group->name,
          view->tested != TARN_RESULTS_JUDGED_TEST_SCORE
              ? " and, of test scores, what other sentences or minimal pairs would"
              : "",
          *counts ? " (Holm), which are: " : "", counts, planned),
      .columns = {{"model", true, 0},
                  {"frozen layers", true, 0},
                  {"measure", true, 0},
                  {"seeds", false, 0},
                  {"difference", false, 0},
                  {"95 % interval", false, 0},
                  {"by seed", false, 0},
                  {"p", false, 0},
                  {"verdict", true, 0}}};
  TARN_TRY(tarn__table_open(table, view, rows));
  size_t next = 0;
  for (int m = 0; m < TARN_RESULTS_JUDGED_SCORES; m++)
    for (size_t i = 0; i < view->count; i++)
      if (is_told(view, &view->table->judged[m], i)) fill_row(&table->rows[next++], view, i, m);
  return view->status;
}
